"""Several measurements of the same rows in one pass, which work out once what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.query.measurement import Block, Measurement, Shared


@dataclass(frozen=True)
class Together:
    """Measurements of one question, with the same groups: their totals one after another, as one measurement.

    Guarantee: they are those of each by itself.
    """

    measurements: tuple[Measurement, ...]

    @property
    def size(self) -> int:
        """The number of totals."""
        return sum(each.size for each in self.measurements)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that any of them needs; those of the schema first and in its order."""
        first = self.measurements[0]
        needed = {name for each in self.measurements for name in each.columns}
        ordered = first.schema.ordered(needed)
        return (*ordered, *(name for name in first.columns if name not in ordered))

    def totals(self, block: Block) -> NDArray[np.int64]:
        """The totals over a block of rows."""
        rows = Shared(self.measurements[0].rows(block))
        return np.concatenate([each.added(rows) for each in self.measurements])

    def sql(self, relation: str) -> str:
        """One pass of an engine: a sum beside a sum, and then one below another."""
        first = self.measurements[0]
        values = ", ".join(f"{each.contribution_sql()} AS v{i}" for i, each in enumerate(self.measurements))
        added = ", ".join(f"CAST(SUM(v{i}) AS BIGINT) AS v{i}" for i in range(len(self.measurements)))
        below = " UNION ALL ".join(
            f"SELECT g + {i * first.size} AS g, v{i} FROM s" for i in range(len(self.measurements))
        )
        return (
            f"WITH s AS (SELECT g, {added} FROM (SELECT {first.group_sql()} AS g, {values} FROM {relation}) AS t "
            f"WHERE g IS NOT NULL GROUP BY g) {below}"
        )

    def apart(self, totals: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The totals of each."""
        ends = np.cumsum([each.size for each in self.measurements])
        return np.split(totals, ends[:-1])


def together(measurements: Sequence[object]) -> Together | None:
    """The measurements as one, where they are sums over the same rows in the same groups; None where they are not."""
    plain = tuple(each for each in measurements if type(each) is Measurement)
    if len(plain) != len(measurements) or len(plain) < 2:
        return None
    first = plain[0]
    alike = all((m.schema, m.by, m.over) == (first.schema, first.by, first.over) for m in plain)
    return Together(plain) if alike else None
