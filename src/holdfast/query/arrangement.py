"""ORDER BY, HAVING and LIMIT: which released groups are shown, and in which order. Post-processing, and free."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether the released value of an aggregate, by its place, compares so with a number."""

    aggregate: int
    op: str
    number: float

    def keeps(self, values: Sequence[Any]) -> bool:
        return bool(_COMPARES[self.op](values[self.aggregate], self.number))


@dataclass(frozen=True, slots=True)
class Combined:
    """All of several conditions, or any of them."""

    parts: tuple[Having, ...]
    every: bool

    def keeps(self, values: Sequence[Any]) -> bool:
        kept = (part.keeps(values) for part in self.parts)
        return all(kept) if self.every else any(kept)


Having = Compared | Combined


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What a SELECT does with the groups once they are released.

    `names` are the aggregates' aliases, or the way they are written. `order` holds the place of an aggregate, or None
    for the groups themselves (in their declared order), and whether the largest comes first.
    """

    names: tuple[str, ...]
    order: tuple[tuple[int | None, bool], ...] = ()
    having: Having | None = None
    limit: int | None = None

    @property
    def changes(self) -> bool:
        """Whether anything but the names is asked for."""
        return bool(self.order) or self.having is not None or self.limit is not None

    def places(self, values: Sequence[Sequence[Any]]) -> list[int]:
        """The places of the groups that are shown, in order; `values` holds the groups of each aggregate."""
        kept = [
            place
            for place, group in enumerate(zip(*values, strict=True))
            if self.having is None or self.having.keeps(group)
        ]
        for aggregate, descending in reversed(self.order):
            column = range(len(values[0])) if aggregate is None else values[aggregate]
            kept.sort(key=lambda place: column[place], reverse=descending)
        return kept[: self.limit]
