"""How much a recipe tells of the rows, in the units of the ledger: billionths of I/n, rounded up."""

from __future__ import annotations

import math
from typing import Protocol

from holdfast.ledger import UNCOVERED
from holdfast.mechanisms.votes import FLIP
from holdfast.planning.plan import DISAGREEMENT_NOISE, Plan, Recipe
from holdfast.planning.recipe_event import SELECTIONS
from holdfast.planning.width import deviation, spans
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import up
from holdfast.query.schema import Schema
from holdfast.query.statistic import Workload, workload
from holdfast.validity.leave_out_charges import groups_radius_squared
from holdfast.validity.told import difference_told, gaussian_told, quantile_told, rare_told, votes_told


class Answer(Protocol):
    """What is read off an answer."""

    @property
    def value(self) -> float: ...
    @property
    def disagreement(self) -> float | None: ...


_FURTHEST = 16
"""More standard deviations of noise than this are not drawn: 6e-58, which the rounding of every chance pays for."""


def recipe_information(totals: Workload, recipe: Recipe, rows: int, rare: bool = False) -> int:
    """What an answer by this recipe tells at most; UNCOVERED where no theorem bounds it. `rare` says that it will be
    read off the answer (`told_by_answer`).

    Reference: docs/theorems.md, Theorems 24 and 75 (vectors), 25 (rare events), 27 (votes), 33 (quantiles), 37
    (differences) and 101 (logistic noise, which tells what Gaussian noise of a certain size tells).
    """
    if recipe.mechanism == "votes":
        count = int(recipe.noise) * len(totals.measurements)
        return units_told(votes_told(rows, count, float(recipe.flip or FLIP)), rows)
    if recipe.mechanism == "smoothed":
        groups = 1 if totals.statistic.by is None else totals.statistic.by.size
        return units_told(SELECTIONS * groups * quantile_told(rows, float(recipe.noise)), rows)
    if recipe.mechanism not in ("gaussian", "logistic") or totals.statistic.distinct is not None:
        return UNCOVERED
    if recipe.expect is not None:
        sigma = 2 * deviation(2, recipe, rows)
        most = 1 + _FURTHEST * sigma * math.sqrt(DISAGREEMENT_NOISE)
        return units_told(_difference_told(totals, recipe, rows, most), rows)
    if totals.joint is not None and not recipe.per_span:
        sigma = deviation(1, recipe, rows)
        return units_told(gaussian_told(up(float(totals.joint.radius_squared)), sigma), rows)
    deviations = [deviation(span, recipe, rows) for span in spans(totals)]
    if rare:
        return units_told(rare_told(rows, deviations[0], 0.5), rows)
    return units_told(math.fsum(gaussian_told(radius_squared(totals), sigma) for sigma in deviations), rows)


def told_by_answer(planned: Plan, answer: Answer, schema: Schema) -> int | None:
    """What an answer turned out to tell, where that is read off it; None where it tells what was reserved.

    How it is read was fixed with the plan, before the answer; never by which is less.
    """
    rows, recipe = planned.rows, planned.recipe
    if recipe.expect is None and not planned.promise.rare:
        return None
    totals = workload(planned.statistic, schema, rows)
    if recipe.expect is not None:
        assert answer.disagreement is not None
        return units_told(_difference_told(totals, recipe, rows, answer.disagreement), rows)
    span, measurement = spans(totals)[0], totals.measurements[0]
    share = (answer.value / totals.unit / rows - measurement.low) / span
    share += (0.5 - share) * 2.0**-40  # outward, more than the floats above can have moved it
    return units_told(rare_told(rows, deviation(span, recipe, rows), share), rows)


def _difference_told(totals: Workload, recipe: Recipe, rows: int, disagreement: float) -> float:
    (span,) = spans(totals)
    sigma = span * deviation(span, recipe, rows)
    assert recipe.expect is not None
    return difference_told(
        rows, disagreement, sigma * math.sqrt(DISAGREEMENT_NOISE), sigma, float(recipe.expect)
    )


def radius_squared(totals: Workload) -> float:
    """R^2 of one measurement's contributions, its span being 1: a row is in one group or in none.

    A ball around 0 holds contributions of both signs.
    """
    by = totals.statistic.by
    if by is None:
        return 0.25
    signed = any(m.low < 0 < m.high for m in totals.measurements)
    return 1.0 if signed else groups_radius_squared(by.size)


def units_told(information: float, rows: int) -> int:
    """So much information in the ledger's units."""
    units = up(information / rows * UNITS)
    return math.ceil(units) if units < UNCOVERED else UNCOVERED


def told_by(units: int, rows: int) -> float:
    """The information that these units of the ledger stand for."""
    return up(units / UNITS * rows) if units else 0.0
