"""Half-widths from a recipe and a promise, each against the sum of its parts written down once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach, sample_reach, votes_reach
from holdfast.planning.plan import Recipe
from holdfast.planning.promise import Promise, promises, share
from holdfast.planning.terms import Terms
from holdfast.planning.width import spans, table_reaches, widths
from holdfast.query.expression import Column
from holdfast.query.grouping import grouping
from holdfast.query.predicate import Always
from holdfast.query.statistic import Statistic, workload
from holdfast.validity.transfer import concentrated_term

SCHEMA = hf.Schema(age=hf.Integer(-10, 120), kind=hf.Category("a", "b", "c"))
ROWS = 50_000
TABLE = Promise("table", 0.003)
POPULATION = Promise("population", 2e-5, population=0.01, slack=0.0005, most_rho=1e-5)
UNEVEN = Promise("population", 2e-5, population=0.01001, slack=0.0005, most_rho=1e-5)
"""Of 50,000 rows the population adds 525 and a half."""
QUARTER = Fraction(1, 4)
RECIPES = [
    Recipe("gaussian", Fraction(400), ROWS),
    Recipe("laplace", Fraction(30), ROWS),
    Recipe("votes", Fraction(9000), 9000, QUARTER),
    Recipe("subsampled-laplace", Fraction(3), 6000),
]


def reach(recipe: Recipe, promise: Promise, span: int, totals: int) -> float:
    """What noise and sampling may move one of so many totals by, in units of the total."""
    over = promise.target == "population"
    each = promise.allowance / totals
    in_counts = each * ROWS * span if over else each
    if recipe.mechanism == "gaussian":
        return gaussian_reach(recipe.noise, in_counts, over)
    if recipe.mechanism == "laplace":
        return laplace_reach(recipe.noise, in_counts, over)
    if recipe.mechanism == "votes":
        return ROWS * span * votes_reach(9000, QUARTER, each, over)
    return ROWS * span * sample_reach(6000, ROWS, recipe.noise, each, over, span)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.mechanism)
@pytest.mark.parametrize("promise", [TABLE, POPULATION], ids=lambda p: p.target)
@pytest.mark.parametrize("groups", [1, 3])
def test_a_fraction_is_as_wide_as_its_parts(recipe: Recipe, promise: Promise, groups: int) -> None:
    by = grouping(SCHEMA, "kind") if groups == 3 else None
    totals = workload(Statistic("fraction", Always(), by=by), SCHEMA, ROWS)
    found = widths(totals, recipe, promise, ROWS)
    noise = reach(recipe, promise, 1, groups)
    extra = promise.population + promise.slack
    assert found.totals == (pytest.approx(noise + extra * ROWS, rel=1e-12),)
    assert found.whole == pytest.approx(noise / ROWS + extra, rel=1e-9)
    assert found.whole >= noise / ROWS + extra
    assert found.population == pytest.approx(extra, rel=1e-9)
    sampled = {"votes": 1 / 4, "subsampled-laplace": 1 / 2}.get(recipe.mechanism, 0.0)
    assert found.sampling == pytest.approx(noise / ROWS * sampled, rel=1e-9)
    assert found.noise == pytest.approx(noise / ROWS * (1 - sampled), rel=1e-9)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.mechanism)
@pytest.mark.parametrize("promise", [TABLE, POPULATION], ids=lambda p: p.target)
def test_a_sum_is_as_wide_as_its_span_and_its_grid(recipe: Recipe, promise: Promise) -> None:
    totals = workload(Statistic("sum", Always(), value=Column("age")), SCHEMA, ROWS)
    found = widths(totals, recipe, promise, ROWS)
    noise = reach(recipe, promise, 130, 1)
    extra = (promise.population + promise.slack) * ROWS * 130
    assert found.whole == pytest.approx((noise + extra) * totals.unit, rel=1e-9)
    assert found.population == pytest.approx(extra * totals.unit, rel=1e-9)
    assert found.noise + found.sampling == pytest.approx(noise * totals.unit, rel=1e-9)


def test_a_mechanism_without_a_theorem_has_no_width() -> None:
    totals = workload(Statistic("fraction", Always()), SCHEMA, ROWS)
    with pytest.raises(AssertionError, match="a new one"):
        widths(totals, Recipe("a new one", Fraction(1), ROWS), TABLE, ROWS)


@pytest.mark.parametrize("promise", [TABLE, POPULATION], ids=lambda p: p.target)
def test_a_mean_is_as_wide_as_if_every_row_qualified(promise: Promise) -> None:
    totals = workload(Statistic("mean", Always(), value=Column("age")), SCHEMA, ROWS)
    high = totals.measurements[0].grid.high  # type: ignore[union-attr]
    low = totals.measurements[0].grid.low  # type: ignore[union-attr]
    recipe = Recipe("gaussian", Fraction(10**6), ROWS)
    found = widths(totals, recipe, promise, ROWS)
    extra = (promise.population + promise.slack) * ROWS
    top = reach(recipe, promise, high - low, 2) + extra * (high - low)
    count = reach(recipe, promise, totals.measurements[1].high, 2) + extra * totals.measurements[1].high
    missing = count / totals.measurements[1].high
    expected = (top + max(high, -low) * missing) / (ROWS - missing) * totals.unit + totals.rounding
    assert expected <= found.whole <= expected * (1 + 1e-9)


def test_a_mean_whose_rows_may_all_be_noise_has_no_width() -> None:
    totals = workload(Statistic("mean", Always(), value=Column("age")), SCHEMA, 20)
    found = widths(totals, Recipe("gaussian", Fraction(10**8), 20), TABLE, 20)
    assert found.whole == math.inf and found.sampling == 0


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("promise", [TABLE, POPULATION, UNEVEN], ids=["table", "population", "uneven"])
def test_a_quantile_misses_its_rank_by_what_the_selection_may_lose(promise: Promise, groups: int) -> None:
    """Each end: bins e^{-epsilon d/2} is its chance of missing by more than d rows; times 2/epsilon in the mean."""
    bins = grouping(SCHEMA, "age", [0, 30, 60, 90])
    by = grouping(SCHEMA, "kind") if groups == 3 else None
    statistic = Statistic("quantile", Always(), by=by, rank=Fraction(1, 2), bins=bins)
    epsilon = 0.05
    found = widths(
        workload(statistic, SCHEMA, ROWS), Recipe("exponential", Fraction(1, 20), ROWS), promise, ROWS
    )
    candidates = groups * (bins.size + 2)
    each = promise.allowance / 2
    chance = each if promise.target == "table" else each * ROWS * epsilon / 2
    distance = 2 / epsilon * math.log(candidates / chance)
    extra = (promise.population + promise.slack) * ROWS
    assert distance <= found.totals[0] - math.ceil(extra) <= distance + 1.001
    assert found.noise == pytest.approx(2 * math.ceil(distance) / ROWS)
    assert found.population == pytest.approx(2 * math.ceil(extra) / ROWS) and found.sampling == 0


def test_a_quantile_that_misses_by_a_whole_number_of_rows_has_one_more() -> None:
    """2/epsilon ln(candidates/chance) is 200 as far as floats can tell, and may be above."""
    bins = grouping(SCHEMA, "age", [0, 30, 60, 90])
    totals = workload(Statistic("quantile", Always(), rank=Fraction(1, 2), bins=bins), SCHEMA, ROWS)
    epsilon = Fraction(2 * math.log((bins.size + 2) / (TABLE.allowance / 2)) / 200)
    assert widths(totals, Recipe("exponential", epsilon, ROWS), TABLE, ROWS).totals == (201,)
    less = epsilon * (1 - Fraction(1, 10**9)), epsilon * (1 + Fraction(1, 10**9))
    found = [widths(totals, Recipe("exponential", one, ROWS), TABLE, ROWS).totals for one in less]
    assert found == [(201,), (200,)]


def test_a_quantile_of_very_little_noise_misses_by_one_row_at_least() -> None:
    bins = grouping(SCHEMA, "age", [0, 30, 60, 90])
    statistic = Statistic("quantile", Always(), rank=Fraction(1, 2), bins=bins)
    found = widths(
        workload(statistic, SCHEMA, ROWS), Recipe("exponential", Fraction(10**6), ROWS), TABLE, ROWS
    )
    assert found.totals == (1,)


def test_levels_double_and_share_the_chance_of_a_miss() -> None:
    n, beta, weight = 10_000, 0.05, 0.125
    for level, promise in zip(range(30), promises("population", n, beta, weight, 0.0), strict=False):
        chance = beta / ((level + 1) * (level + 2))
        assert promise.most_rho == 2.0**level / (8 * n)
        assert promise.population == concentrated_term(chance, promise.most_rho)
        assert promise.slack == pytest.approx(promise.population / 20)
        assert promise.allowance == pytest.approx(weight * chance * promise.slack, rel=1e-12)
    start = next(promises("population", n, beta, weight, 4 / (8 * n)))
    assert start.most_rho == 8 / (8 * n), "a level that is used up exactly is over"
    assert len(list(promises("population", n, beta, weight, 0.0))) == 64
    assert next(promises("table", n, beta, weight, 0.0)) == Promise("table", beta * weight)


def test_shares_add_up_to_one_over_all_places() -> None:
    assert share(8, 3) == 1 / 8
    assert share(None, 1) == 1 / 2
    assert [share(None, place) for place in (2, 3, 4, 7, 8)] == [1 / 12, 1 / 12, 1 / 48, 1 / 48, 1 / 160]
    assert math.fsum(share(None, place) for place in range(1, 1 << 14)) == pytest.approx(1 - 1 / 15)


# The interval for the rows themselves


def tail(variance: Fraction, reach: int) -> float:
    """Pr[|N_Z(0, variance)| > reach], summed term by term."""
    weights = [math.exp(-(j * j) / (2 * float(variance))) for j in range(1, 4000)]
    return 2 * sum(weights[reach:]) / (1 + 2 * sum(weights))


def terms_of(session: hf.Session) -> Terms:
    return session._terms


@pytest.mark.parametrize("kind", ["fraction", "mean", "by groups", "level", "by width"])
def test_an_interval_for_the_rows_is_missed_by_noise_with_the_answers_share_of_beta(kind: str) -> None:
    rows = {"age": np.arange(3000) % 131 - 10, "kind": np.array(list("abc") * 1000)}
    table = hf.open(rows, SCHEMA, ledger=MemoryLedger())
    how: dict[str, Any] = {"within": 0.2, "queries": 6} if kind == "by width" else {"rho": 0.5, "queries": 6}
    session = table.session(**how, confidence=0.9)
    if kind == "level":
        session.fraction("age = 3", rho=1e-5, mechanism="laplace")  # ends the theorem
    ask: dict[str, Callable[[], hf.Plan]] = {
        "mean": lambda: session.estimate.mean("age", rho=1e-3),
        "by groups": lambda: session.estimate.fraction("age > 60", by="kind"),
        "by width": lambda: session.estimate.fraction("age > 60"),
    }
    planned = ask.get(kind, lambda: session.estimate.fraction("age > 60", rho=1e-3))()
    totals = workload(planned.statistic, SCHEMA, 3000)
    reaches = table_reaches(totals, planned.recipe, planned.promise, terms_of(session))
    share_of_beta = 0.1 / 6 * (1 if kind != "level" else 1 / 20)
    each = share_of_beta / totals.size * (totals.size if kind == "by width" else 1)
    assert len(reaches) == len(totals.measurements)
    for span, reached in zip(spans(totals), reaches, strict=True):
        if planned.mechanism == "votes":
            assert planned.recipe.flip is not None
            votes = votes_reach(int(planned.recipe.noise), planned.recipe.flip, each, False)
            assert reached == pytest.approx(3000 * span * votes)
            continue
        variance = planned.recipe.noise * (span**2 if planned.recipe.per_span else 1)
        if variance < 10**6:
            assert tail(variance, math.floor(reached)) <= each * (1 + 1e-9)
            if kind != "level":
                assert tail(variance, math.floor(reached * 0.8)) > each, (
                    "four fifths of it would miss too often"
                )


def test_an_answer_for_the_population_shows_the_rows_own_interval() -> None:
    draw = np.random.default_rng(3)
    rows = {"age": draw.integers(-10, 121, 30_000), "kind": draw.choice(list("abc"), 30_000)}
    session = hf.open(rows, SCHEMA, ledger=MemoryLedger()).session(epsilon=1.0, delta=1e-6, queries=8)
    true = float(np.mean(rows["age"] > 60))
    answer = session.fraction("age > 60")
    assert answer.low < answer.table_low <= true <= answer.table_high < answer.high
    assert hf.Answer.from_json(answer.to_json()) == answer and ", of these rows [" in str(answer)
    groups = session.mean("age", by="kind")
    assert (groups.low <= groups.table_low).all() and (groups.table_high <= groups.high).all()
    for name in "abc":
        mean = float(np.mean(rows["age"][rows["kind"] == name]))
        assert groups[name].table_low <= mean <= groups[name].table_high
    assert str(groups).count("of these rows") == 3 and "of these rows" in groups._repr_html_()
    census = hf.open(rows, SCHEMA, ledger=MemoryLedger()).session(rho=0.1, queries=8, target="table")
    assert census.fraction("age > 60").table_low is None
    assert session.quantile("age", 0.5, rho=1e-3).table_low is None
