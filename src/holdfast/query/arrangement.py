"""ORDER BY, HAVING, LIMIT and OFFSET: which released groups are shown, in which order. Post-processing, and free."""

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

    `names` are the aggregates' aliases, or the way they are written. A place below their number is the value of an
    aggregate; the lower ends of their intervals come after all values, and the upper ends after those. -1 is the first
    column of the groups (in their declared order), -2 the second. `order` holds places, and whether the largest comes
    first; `shown` the columns of the result, each with its name and its place.
    """

    names: tuple[str, ...]
    order: tuple[tuple[int, bool], ...] = ()
    having: Having | None = None
    limit: int | None = None
    shown: tuple[tuple[str, int], ...] = ()
    offset: int = 0

    @property
    def changes(self) -> bool:
        """Whether anything but the names is asked for."""
        return bool(self.order) or self.having is not None or self.limit is not None or self.offset > 0

    def places(
        self, values: Sequence[Sequence[Any]], keys: Sequence[tuple[str, ...]] | None = None
    ) -> list[int]:
        """The places of the groups that are shown, in order; `values` holds the groups of each aggregate, perhaps with
        the ends of their intervals, and `keys` the labels of each group in several columns."""
        kept = [
            place
            for place, group in enumerate(zip(*values, strict=True))
            if self.having is None or self.having.keeps(group)
        ]
        for aggregate, descending in reversed(self.order):
            column = values[aggregate] if aggregate >= 0 else _declared(-1 - aggregate, len(values[0]), keys)
            kept.sort(key=lambda place: column[place], reverse=descending)
        return kept[self.offset :][: self.limit]


def _declared(column: int, size: int, keys: Sequence[tuple[str, ...]] | None) -> Sequence[int]:
    """The place of each group in the declared order of one column of the groups."""
    if keys is None:
        return range(size)
    first: dict[str, int] = {}
    return [first.setdefault(key[column], len(first)) for key in keys]
