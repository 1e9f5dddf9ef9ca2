"""How much a recipe tells of the rows, in the units of the ledger: billionths of I/n, rounded up."""

from __future__ import annotations

import math

from holdfast.ledger import UNCOVERED
from holdfast.mechanisms.votes import FLIP
from holdfast.planning.plan import Recipe
from holdfast.planning.width import spans
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import up
from holdfast.query.statistic import Workload
from holdfast.validity.leave_out_charges import groups_radius_squared
from holdfast.validity.told import gaussian_told, votes_told


def recipe_information(totals: Workload, recipe: Recipe, rows: int) -> int:
    """What an answer by this recipe tells; UNCOVERED where no theorem bounds it.

    Reference: docs/theorems.md, Theorems 24 (vectors) and 27 (votes).
    """
    if recipe.mechanism == "votes":
        count = int(recipe.noise) * len(totals.measurements)
        return units_told(votes_told(rows, count, float(recipe.flip or FLIP)), rows)
    if recipe.mechanism != "gaussian":
        return UNCOVERED
    deviations = (
        math.sqrt(recipe.noise) / (rows * (1 if recipe.per_span else span)) for span in spans(totals)
    )
    return units_told(math.fsum(gaussian_told(radius_squared(totals), sigma) for sigma in deviations), rows)


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
