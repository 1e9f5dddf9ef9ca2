"""The end of a session: it answers nothing new, and stands in nobody's way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from holdfast.ledger import Ledger


class Closing:
    """What can be closed: `with table.session(...) as session:` does it at the end."""

    name: str
    _ledger: Ledger

    def close(self) -> None:
        """Answer nothing new, ever again: a fact in the ledger. Closing twice is allowed.

        Guarantee: what was answered is still told at no cost, and what was paid for and lost in a crash can be asked
        again; nothing else is charged. What is left of the budget is given up. What was not told of its share of the
        meter is free for others, whose plans hold as before (docs/theorems.md, Theorem 41), and what ends the leave-out
        theorem is no longer refused because of it.
        """
        self._ledger.end(self.name)

    @property
    def closed(self) -> bool:
        """Whether it was closed, here or elsewhere."""
        return self.name in self._ledger.ended()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
