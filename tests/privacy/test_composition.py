"""Composition theorems against the exact profile of randomized response."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.privacy_loss import randomized_response_delta

from holdfast.errors import InputError
from holdfast.privacy import (
    advanced_composition,
    basic_composition,
    lecture_composition,
    optimal_composition,
    pure_to_zcdp,
    zcdp_to_approx,
)

THEOREMS = (lecture_composition, advanced_composition, optimal_composition)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("queries", [1, 2, 5, 9])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.1])
def test_optimal_is_exact(epsilon: float, queries: int, delta: float) -> None:
    result = optimal_composition(epsilon, queries, delta)
    assert randomized_response_delta([epsilon] * queries, result) <= delta
    if result > 0.0:
        assert randomized_response_delta([epsilon] * queries, result * (1 - 1e-6)) > delta


@given(st.floats(1e-4, 3), st.integers(1, 400), st.floats(1e-12, 0.5))
def test_the_theorems_are_ordered(epsilon: float, queries: int, delta: float) -> None:
    optimal = optimal_composition(epsilon, queries, delta)
    advanced = advanced_composition(epsilon, queries, delta)
    assert optimal <= advanced * (1 + 1e-9)
    assert optimal <= zcdp_to_approx(queries * pure_to_zcdp(epsilon), delta) * (1 + 1e-9)
    assert advanced <= lecture_composition(epsilon, queries, delta) * (1 + 1e-12)
    assert advanced <= basic_composition(epsilon, queries)


def test_every_theorem_holds_and_a_tighter_claim_does_not() -> None:
    epsilon, queries, delta = 0.3, 10, 1e-3
    for theorem in THEOREMS:
        assert randomized_response_delta([epsilon] * queries, theorem(epsilon, queries, delta)) <= delta
    twin = optimal_composition(0.9 * epsilon, queries, delta)  # noise for 0.9 epsilon, charged as such
    assert randomized_response_delta([epsilon] * queries, twin) > delta


def test_by_formula() -> None:
    assert basic_composition(0.25, 8) == 2.0
    root = math.sqrt(2 * 1000 * math.log(1e6)) * 0.1
    assert lecture_composition(0.1, 1000, 1e-6) == pytest.approx(root + 2 * 1000 * 0.01, rel=1e-12)
    assert advanced_composition(0.1, 1000, 1e-6) == pytest.approx(root + 100 * math.tanh(0.05), rel=1e-12)
    assert advanced_composition(0.1, 2, 1e-6) == 0.2
    assert optimal_composition(400, 3, 1e-6) == 1200.0
    assert optimal_composition(1e-9, 1, 0.5) == 0.0


def test_many_queries_stay_accurate() -> None:
    """k = 20 000 against the Gaussian limit, and k = 100 against dp-accounting's distribution."""
    from dp_accounting.pld import privacy_loss_distribution

    from holdfast.privacy import gdp_epsilon

    epsilon, queries, delta = 0.01, 20_000, 1e-6
    ours = optimal_composition(epsilon, queries, delta)
    assert ours == pytest.approx(gdp_epsilon(math.sqrt(queries) * epsilon, delta), rel=2e-3)
    flip = 2 / (1 + math.exp(0.1))
    pld = privacy_loss_distribution.from_randomized_response(flip, 2, value_discretization_interval=1e-5)
    theirs = pld.self_compose(100).get_epsilon_for_delta(1e-6)
    assert optimal_composition(0.1, 100, 1e-6) == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, "1", True, None, 5e-324])
def test_bad_epsilons(bad: object) -> None:
    with pytest.raises(InputError):
        basic_composition(bad, 3)  # type: ignore[arg-type]
    for theorem in THEOREMS:
        with pytest.raises(InputError):
            theorem(bad, 3, 1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None])
def test_bad_counts(bad: object) -> None:
    with pytest.raises(InputError):
        basic_composition(1, bad)  # type: ignore[arg-type]
    for theorem in THEOREMS:
        with pytest.raises(InputError):
            theorem(1, bad, 1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, 1, -1, math.nan, True])
def test_bad_deltas(bad: object) -> None:
    for theorem in THEOREMS:
        with pytest.raises(InputError):
            theorem(1, 3, bad)  # type: ignore[arg-type]


def mass(x: int, scale: Fraction) -> float:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(x)


def test_adaptive_composition_adds_up_exactly() -> None:
    """The second question, and its scale, depend on the first answer; the joint law stays within the sum."""
    first, cheap, dear = Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)

    def joint(count: int, other: int) -> dict[tuple[int, int], float]:
        out = {}
        for a in range(-30, 31):
            asked, epsilon = (count, cheap) if a > 0 else (other, dear)
            for b in range(-60, 61):
                out[a, b] = mass(a - count, 1 / first) * mass(b - asked, 1 / epsilon)
        return out

    here, there = joint(0, 0), joint(1, -1)
    worst = max(abs(math.log(here[o] / there[o])) for o in here)
    assert worst <= first + dear + 1e-9
    assert worst > max(first, dear) + 0.1, "twin: the larger of the two is not a bound"
    assert basic_composition(first, 3) == 1.5
