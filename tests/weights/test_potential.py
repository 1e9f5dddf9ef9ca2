"""The potential argument: each update that has the certified gap lowers KL(table || weights) by 2 m^2."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesis.people import COLUMNS, EDGES, SCHEMA

from holdfast.errors import InputError
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.privacy.approximate import approx
from holdfast.privacy.conversion import approx_to_zcdp
from holdfast.privacy.event import Repeat
from holdfast.privacy.filter import UNITS, Filter
from holdfast.query.region import GRID, Region, factors, region
from holdfast.query.universe import universe
from holdfast.weights.answerer import projection
from holdfast.weights.distribution import Weights
from holdfast.weights.terms_choice import compare
from holdfast.weights.versions import (
    WeightsTerms,
    best,
    best_within,
    lecture,
    lecture_sigma,
    run_reach,
    textbook,
    textbook_within,
)
from weights.test_universe import CONDITIONS
from weights.test_universe import dense as dense_over

UNIVERSE = universe(SCHEMA, COLUMNS, EDGES, nulls=[])
RHO = approx_to_zcdp(1, 1e-6)


def divergence(table: np.ndarray[Any, Any], weights: Weights) -> float:
    cells, outside = weights.probabilities()
    model = np.append(cells.reshape(-1), outside)
    held = table > 0
    return float((table[held] * np.log(table[held] / model[held])).sum())


def dense(one: Region) -> np.ndarray[Any, Any]:
    return dense_over(one, UNIVERSE)


def query_values(one: Region) -> np.ndarray[Any, Any]:
    return np.append(dense(one).reshape(-1), 0.0)


queries = st.one_of(
    st.sampled_from(CONDITIONS[:9]).map(lambda where: region(UNIVERSE, where)),
    st.lists(st.floats(0, 1), min_size=5, max_size=5).map(lambda v: factors(UNIVERSE, {"grade": v})),
)


def drop(seed: int, spread: float, one: Region, share: float, stretch: float) -> tuple[float, float] | None:
    """The fall of the potential in one update, and the m it was made with; None where there is no gap."""
    draw = np.random.default_rng(seed)
    table = draw.dirichlet(np.full(UNIVERSE.size + 1, spread))
    weights = Weights(UNIVERSE)
    for where in draw.choice(CONDITIONS[:9], 3):
        weights.tilt(region(UNIVERSE, str(where)), float(draw.normal()))
    p = weights.fraction(one)
    gap = float((table * query_values(one)).sum()) - p
    if abs(gap) < 1e-3:
        return None
    moved = share * abs(gap)
    sign = math.copysign(1, gap)
    before = divergence(table, weights)
    weights.tilt(one, sign * stretch * projection(p, sign * moved, counting=one.is_counting))
    return before - divergence(table, weights), moved


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.2, 2.0]), queries, st.floats(0.05, 1.0))
def test_an_update_lowers_the_potential_by_twice_the_square_of_the_certified_gap(
    seed: int, spread: float, one: Region, share: float
) -> None:
    result = drop(seed, spread, one, share, 1.0)
    if result is not None:
        fall, moved = result
        assert fall >= 2 * moved**2 - 1e-9


@pytest.mark.parametrize("stretch", [-1.0, 3.0])
def test_a_step_in_the_wrong_direction_or_three_times_too_long_breaks_it(stretch: float) -> None:
    one = region(UNIVERSE, "sick")
    results = [drop(seed, 0.02, one, 1.0, stretch) for seed in range(40)]
    assert any(r is not None and r[0] < 2 * r[1] ** 2 - 1e-9 for r in results)


def test_the_projection_moves_a_counting_query_exactly() -> None:
    one = region(UNIVERSE, "group = 'x' AND grade < 3")
    weights = Weights(UNIVERSE)
    p = weights.fraction(one)
    weights.tilt(one, projection(p, 0.3, counting=True))
    assert weights.fraction(one) == pytest.approx(p + 0.3, abs=1e-12)


@pytest.mark.parametrize("answer", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("rows", "points", "within"), [(10**5, 2**16, 0.3), (10**6, 2**20, 0.1), (500, 9, 0.5)]
)
def test_the_terms_of_the_best_version_add_up(answer: str, rows: int, points: int, within: float) -> None:
    terms = best(rows, points, 10**6, within, 0.05, answer)
    unit = rows * GRID
    reach = run_reach(terms.run_epsilon, terms.updates, 10**6, 0.05)
    assert terms.threshold + reach <= within * unit + 1
    assert terms.threshold - reach >= terms.least_gap * unit - 2
    assert terms.answer_reach <= terms.least_gap * unit / 2
    assert terms.updates * 2 * terms.least_gap**2 <= math.log(points) * (1 + 1e-9) or terms.updates == 1
    assert (terms.updates + 1) * 2 * terms.least_gap**2 > math.log(points)
    assert WeightsTerms.from_json(terms.to_json()) == terms
    if answer == "gaussian":
        charged = Filter.zcdp(10**6).cost(Repeat(terms.event, terms.updates)) / UNITS
        assert charged == pytest.approx(terms.rho, rel=1e-6, abs=1e-8)


def test_the_reach_is_that_of_the_sparse_vectors() -> None:
    epsilon, c, k, failure = Fraction(1, 50), 300, 10**6, 0.03
    vector = SparseVector(0, sensitivity=GRID, epsilon=epsilon, hits=1)
    single = vector.half_width(k, 2 * failure / 3)
    # One threshold gets failure/3 there and failure/(3 c) here.
    assert run_reach(epsilon, c, k, failure) > single
    more = run_reach(epsilon, 1, k, failure)
    assert more == pytest.approx(single, rel=1e-6)


@pytest.mark.parametrize(("rows", "cells"), [(10**5, 2**20), (10**6, 2**16), (10**7, 2**20)])
def test_the_planner_is_honest_and_ours_certifies_less_than_the_textbook_everywhere(
    rows: int, cells: int
) -> None:
    for k in (10**3, 10**5, 10**7, 10**8):
        found = compare(rows=rows, cells=cells, queries=k, rho=RHO)
        certified = {name: e for name, e in found.errors.items() if e is not None and name != "mwem"}
        assert found.winner == min(certified, key=lambda name: certified[name])
        ours, theirs = found.errors["weights"], textbook_within(rows, cells + 1, k, 1.0, 1e-6, 0.05)
        assert ours is not None
        assert ours < theirs / 4
    assert compare(rows=rows, cells=cells, queries=1000, rho=RHO).winner == "gaussian"
    assert compare(rows=10**5, cells=cells, queries=10**8, rho=RHO).winner == "weights"
    assert "answer each question by itself" in str(compare(rows=rows, cells=cells, queries=1000, rho=RHO))


def test_the_budget_gives_the_least_width_that_it_affords() -> None:
    terms = best_within(10**6, 2**16, 10**6, 0.05, rho=RHO)
    assert terms.rho <= RHO
    assert best(10**6, 2**16, 10**6, terms.within * 0.995, 0.05).rho > RHO
    with pytest.raises(InputError, match="no error below 1"):
        best_within(100, 2**16, 10**6, 0.05, rho=RHO)


def test_the_textbook_version_costs_its_epsilon_and_delta() -> None:
    terms = textbook(10**7, 2**16, 10**4, 1.0, 1e-6, 0.05)
    assert terms.within == pytest.approx(textbook_within(10**7, 2**16, 10**4, 1.0, 1e-6, 0.05))
    assert terms.updates == math.ceil(4 * math.log(2**16) / (terms.within / 3) ** 2)
    assert terms.eta == pytest.approx(terms.within / 6)
    assert approx(Repeat(terms.event, terms.updates), 1e-6).epsilon <= 1.0 + 1e-9
    with pytest.raises(InputError, match="no error below 1"):
        textbook(10**4, 2**16, 10**4, 1.0, 1e-6, 0.05)


def test_the_lecture_version_has_root_n_times_epsilon_below() -> None:
    assert lecture_sigma(4 * 10**4, 2**16, 2.0, 1e-6) == pytest.approx(lecture_sigma(10**4, 2**16, 4.0, 1e-6))
    printed = 10 * math.log(1e6) * math.log(2**16) ** 0.25 / math.sqrt(10**4 * 2.0)
    assert lecture_sigma(10**4, 2**16, 2.0, 1e-6) < printed
    terms = lecture(10**6, 2**10, 1000, 50.0, 1e-6, 0.05)
    assert terms.updates == math.floor(10**6 * math.sqrt(math.log(2**10)))
    vector = SparseVector(terms.threshold, sensitivity=GRID, epsilon=terms.run_epsilon, hits=1)
    sigma = lecture_sigma(10**6, 2**10, 50.0, 1e-6) * 10**6 * GRID
    assert float(vector.allocation.question) == pytest.approx(sigma, rel=1e-4)


def test_shares_of_many_places_are_the_sum_of_each() -> None:
    from holdfast.planning.promise import share, shares

    for place, count in ((1, 1), (1, 1000), (37, 100), (512, 513)):
        assert shares(None, place, count) == pytest.approx(sum(share(None, place + i) for i in range(count)))
    assert shares(1000, 5, 10) == 0.01
    assert shares(None, 1, 10**9) < 1
