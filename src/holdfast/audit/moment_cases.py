"""Sums that are told together: the vector that leaves, before anything is read off it, against what it is charged.

What a session prints of a variance or a regression is a few numbers of many; a row shows in them less than in the sums
themselves. So these cases look at the sums, with the noise that a session gives them, on the two rows that are farthest
apart in L1 or in L2 (docs/theorems.md, Theorem 75): nothing less than the joint sensitivity is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.case import DELTA, Case, Many
from holdfast.planning.plan import Recipe
from holdfast.planning.question import Difference, Interval, Paired, Ratio, Regression, Spread
from holdfast.planning.question import Fraction as Share
from holdfast.planning.recipe_event import event_of
from holdfast.privacy.conversion import gdp_epsilon
from holdfast.privacy.rule import gdp, pure
from holdfast.query.schema import Boolean, Integer, Schema
from holdfast.query.statistic import Workload, workload
from holdfast.session.release import with_noise

SCHEMA = Schema(a=Boolean(), x=Integer(-3, 3), y=Integer(-2, 2))
Values = Mapping[str, int]
OUTSIDE, LOW, HIGH = ({"a": a, "x": x, "y": 2} for a, x in ((0, 3), (1, -3), (1, 3)))
"""A row that does not qualify (a is false); and two that do, at both ends of x."""
_RUNS = 400_000

ASKED: dict[str, tuple[Interval, Values, Values]] = {
    "variance": (Spread(kind="variance", column="x", where="a"), LOW, HIGH),
    "variance, of a row that comes": (Spread(kind="variance", column="x", where="a"), OUTSIDE, HIGH),
    "covariance": (Paired(kind="covariance", column="x", other="y", where="a"), LOW, HIGH),
    "correlation": (Paired(kind="correlation", column="x", other="y", where="a"), LOW, HIGH),
    "correlation, of a row that comes": (
        Paired(kind="correlation", column="x", other="y", where="a"),
        OUTSIDE,
        HIGH,
    ),
    "regression": (Regression(column="x", features=["y"], where="a"), LOW, HIGH),
    "regression, of a row that comes": (Regression(column="x", features=["y"], where="a"), OUTSIDE, HIGH),
    "ratio": (Ratio(column="x", divisor="CASE WHEN x > 0 THEN 3 ELSE 0 END", where="a"), LOW, HIGH),
    "share": (Share(where="x > 0", given="a"), LOW, HIGH),
    "difference of means": (Difference(where="a", other="y > 0", of="x"), LOW, HIGH),
    "difference of means, apart": (Difference(where="x > 0", other="x < 0", of="x"), LOW, HIGH),
}
"""Questions with two rows that are as far apart as any in the noise that follows."""


def moments() -> list[Case]:
    """Every kind of statistic that is a function of several sums, by the noise whose distance its rows attain."""
    found = []
    for name, (asked, first, second) in ASKED.items():
        totals = workload(asked.read(SCHEMA).statistics[0], SCHEMA, 1)
        apart = _apart(totals, first, second)
        if apart[0] == totals.sensitivity().l1:
            found.append(_laplace(name, totals, first, second))
        if apart[1] == totals.sensitivity().l2_squared:
            found.append(_gaussian(name, totals, first, second))
    return found


def _apart(totals: Workload, first: Values, second: Values) -> tuple[Fraction, Fraction]:
    """How far two rows are apart, in L1 and in L2 squared."""
    parts = [
        Fraction(int(_total(m, first)[0]) - int(_total(m, second)[0]), scale)
        for m, scale in zip(totals.measurements, totals.scales, strict=True)
    ]
    return sum(map(abs, parts), Fraction()), sum((part**2 for part in parts), Fraction())


def _laplace(name: str, totals: Workload, first: Values, second: Values) -> Case:
    recipe = Recipe("laplace", Fraction(totals.sensitivity().l1) / 2, 1)
    claimed = pure(event_of(totals, recipe, 1)).epsilon
    return Case(
        f"sums of a {name}, laplace", _told(totals, recipe, first, second), first, second, claimed, 0.0, _RUNS
    )


def _gaussian(name: str, totals: Workload, first: Values, second: Values) -> Case:
    # Far above 4, which a Gaussian budget takes away from every variance (Lemma 7).
    recipe = Recipe("gaussian", 8 + 4 * Fraction(totals.sensitivity().l2_squared), 1)
    claimed = gdp_epsilon(gdp(event_of(totals, recipe, 1)).mu_squared ** 0.5, DELTA)
    return Case(
        f"sums of a {name}, gaussian",
        _told(totals, recipe, first, second),
        first,
        second,
        claimed,
        DELTA,
        _RUNS,
    )


def _told(totals: Workload, recipe: Recipe, first: Values, second: Values) -> Many:
    """What tells the two rows apart best: how much nearer the noisy sums are to those of the first one."""
    power = 2 if recipe.mechanism == "gaussian" else 1

    def many(row: Values, runs: int) -> NDArray[Any]:
        exact = [np.broadcast_to(_total(m, row), runs) for m in totals.measurements]
        nearer = np.zeros(runs)
        parts = zip(totals.measurements, totals.scales, with_noise(totals, recipe, exact), strict=True)
        for measurement, scale, noisy in parts:
            here, there = (
                np.abs((noisy - _total(measurement, end)) / scale) ** power for end in (first, second)
            )
            nearer += there - here
        return np.round(nearer, 9)

    return many


def _total(measurement: Any, row: Values) -> NDArray[np.int64]:
    totals: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.int64]] = measurement.totals
    return totals(
        {
            name: np.array([value - getattr(SCHEMA[name], "lo", 0)], SCHEMA[name].dtype)
            for name, value in row.items()
        }
    )
