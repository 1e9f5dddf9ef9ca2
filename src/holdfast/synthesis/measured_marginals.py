"""Which marginals a synthetic table was fitted to, and how near each of their numbers is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach
from holdfast.mechanisms.values import ROUND_UP
from holdfast.privacy.event import Event, Gaussian, Laplace
from holdfast.session.footing import footing_after
from holdfast.synthesis.marginal_plan import MarginalPlan, deviation
from holdfast.weights.column_bins import Bins

if TYPE_CHECKING:
    from holdfast.session.session import Session


@dataclass(frozen=True)
class MeasuredMarginal:
    """Counts of some columns that were measured, over all rows; NULL is the last group of each column.

    `values` are shares of the rows. All of them, in all marginals of the release at once, are within `within` of the
    table's, and within `population` of the population's (None where no theorem covers it). What is of the session's
    target stands in its joint promise, as one of its answers; `within` in a session for the population has the
    session's confidence by itself. Reference: docs/theorems.md, Theorem 96.
    """

    columns: tuple[str, ...]
    values: Any
    deviation: float
    within: float
    population: float | None


@dataclass(frozen=True)
class Measured(Sequence[MeasuredMarginal]):
    """All marginals of a release, in the order in which they were measured."""

    found: tuple[MeasuredMarginal, ...]

    @classmethod
    def of(cls, planned: MarginalPlan, told: dict[str, Any], binned: Sequence[Bins]) -> Measured:
        names, rows = planned.universe.columns, planned.rows
        beyond, made = told["beyond"], []
        parts: list[tuple[list[int], Any, Event]] = [
            ([axis], counts, planned.columns[axis]) for axis, counts in enumerate(told["columns"])
        ]
        for (axes, cells), noise in zip(told["marginals"], planned.noises, strict=True):
            sizes = [binned[axis].size for axis in axes]
            parts.append((axes, np.array(cells).reshape(sizes), noise))
        for axes, counts, noise in parts:
            within = noise_reach(noise, beyond["table"]) / rows * ROUND_UP
            far = None
            if "rows" in beyond:
                far = (noise_reach(noise, beyond["noise"]) / rows + beyond["rows"]) * ROUND_UP
            made.append(
                MeasuredMarginal(
                    tuple(names[axis] for axis in axes),
                    np.asarray(counts) / rows,
                    deviation(noise) / rows,
                    within,
                    far,
                )
            )
        return cls(tuple(made))

    def __getitem__(self, place: Any) -> Any:
        return self.found[place]

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        lines = ["measured                                  numbers   table    population"]
        for one in self.found:
            far = "no theorem" if one.population is None else f"{one.population:.4f}"
            lines.append(f"{', '.join(one.columns)[:40]:<40} {one.values.size:>8,}  {one.within:.4f}   {far}")
        return "\n".join(lines)


def noise_reach(noise: Event, chance: float) -> int:
    """How far the noise of one count goes but with this chance, in counts."""
    if isinstance(noise, Gaussian):
        return gaussian_reach(noise.variance, chance, overshoot=False)
    assert isinstance(noise, Laplace)
    return laplace_reach(noise.scale, chance, overshoot=False)


def intervals(session: Session, planned: MarginalPlan) -> dict[str, float]:
    """What all claims stand on, fixed when the release is made: the chance of one number's noise in the claim about the
    table; and, where the leave-out theorem covers it, that in the claim about the population, and how far the
    population may be from the rows.

    Reference: docs/theorems.md, Theorem 96: the noise has the chance that the place keeps for it, the rows that of the
    leave-out theorem, by a union over as many numbers as the plan allows, on both sides; each is a query into [0,1]
    that the transcript chose (Theorem 43).
    """
    standing, count = footing_after(session, fresh=False), planned.numbers
    if session._terms.target == "table":
        return {"table": standing.promise.allowance / count}
    made = {"table": (1 - session.confidence) / count}
    if standing.covered:
        beyond = standing.beyond(standing.covered_chance / (2 * count))
        made |= {"noise": standing.noise_chance / count, "rows": beyond}
    return made
