"""What a session has spent and answered, ready to print."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.planning.budget import Amount
from holdfast.planning.meter import Meter
from holdfast.planning.terms import Terms
from holdfast.privacy.rounding import sure
from holdfast.session import display
from holdfast.session.history import Release

if TYPE_CHECKING:
    from holdfast.session.answer import Answer

SHOWN = 20
"""Releases that a report prints, the latest; `history` has all."""


@dataclass(frozen=True, repr=False)
class Report:
    """A session's budget and history. Print it, or let a notebook show it: the latest releases, under a summary."""

    name: str
    budget: str
    spent: Amount
    remaining: Amount
    terms: Terms
    history: list[Answer | Release]
    meter: Meter | None = None
    """The answers left, and how near each will be, beside the budget."""

    @property
    def summary(self) -> list[str]:
        """A few plain sentences."""
        planned = "any number of answers" if self.terms.queries is None else f"{self.terms.queries} answers"
        asked, others = len(self.answers), len(self.history) - len(self.answers)
        beside = f", and {others} other release{'s' * (others != 1)}" if others else ""
        return [
            f"Budget: {self.budget}.",
            f"Spent: {_amount(self.spent)}, {self._share(self.spent)} of the budget; "
            f"{self._share(self.remaining)} is left.",
            f"{asked} answer{'s' * (asked != 1)} so far{beside}; all intervals cover the {self.terms.target} at once "
            f"with confidence {sure(self.terms.confidence)}, planned for {planned}.",
            *([] if self.meter is None else [f"{self.meter}."]),
            *(
                [f"Below, the latest {SHOWN} of them; `.history` has all."]
                if len(self.history) > SHOWN
                else []
            ),
        ]

    @property
    def answers(self) -> list[Answer]:
        """What has an interval."""
        return [each for each in self.history if not isinstance(each, Release)]

    @property
    def _shown(self) -> list[Answer | Release]:
        return self.history[-SHOWN:]

    def _share(self, amount: Amount) -> str:
        return f"{float(amount) / self.terms.session.limit:.1%}"

    def __str__(self) -> str:
        return "\n".join([*self.summary, *map(str, self._shown)])

    __repr__ = __str__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In the terminal of IPython."""
        printer.text(str(self))

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table

        table = Table("question", "value", "interval", "cost")
        for answer in self._shown:
            if isinstance(answer, Release):
                table.add_row(answer.question, answer.said, "", answer.price)
                continue
            if answer.labels is None:
                (line,) = display.lines(answer)
                shown = (line.value, f"{line.interval} {line.missed}".rstrip())
            else:
                shown = (f"{len(answer.labels)} groups", display.kept(answer))
            table.add_row(answer.question, *shown, display.cost(answer))
        return Group(*self.summary, table)

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{html.escape(line)}</div>" for line in self.summary)
        return lines + "".join(answer._repr_html_() for answer in self._shown)


def _amount(amount: Amount) -> str:
    epsilon = "" if amount.epsilon is None else f"epsilon {amount.epsilon:.4g}"
    if amount.epsilon is not None and amount.delta:
        epsilon += f" at delta {amount.delta:.2g}"
    return epsilon or f"rho {amount.rho:.4g}"
