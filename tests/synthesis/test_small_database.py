"""BLR: its law is the exponential mechanism's, exactly; what cannot be listed is refused."""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM, chi_square

import holdfast as hf
from holdfast.errors import InputError
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.query.universe import universe
from holdfast.synthesis import Workload, small_database
from holdfast.synthesis.small_database import database_count, databases, exact_error, indicators, scores

SCHEMA = hf.Schema(a=hf.Boolean(), b=hf.Category("x", "y"))
QUERIES = ["a", "b = 'x'", "a AND b = 'y'", "NOT a OR b = 'x'"]
POINTS = [(False, "x"), (False, "y"), (True, "x"), (True, "y"), None]
TESTS = [
    lambda p: p is not None and p[0],
    lambda p: p is not None and p[1] == "x",
    lambda p: p is not None and p[0] and p[1] == "y",
    lambda p: p is not None and (not p[0] or p[1] == "x"),
]
WORK = Workload(universe(SCHEMA, ["a", "b"], nulls=[]), QUERIES)


def table_of(rows: list[Any]) -> hf.Table:
    data = {
        "a": np.array([None if r is None else r[0] for r in rows], dtype=object),
        "b": np.array([None if r is None else r[1] for r in rows], dtype=object),
    }
    return hf.open(data, SCHEMA)


def utility(rows: list[Any], database: tuple[int, ...]) -> Fraction:
    """The slow truth: -max over queries of the difference of two averages."""
    gaps = []
    for test in TESTS:
        held = Fraction(sum(map(test, rows)), len(rows))
        own = Fraction(sum(test(POINTS[i]) for i in database), len(database))
        gaps.append(abs(held - own))
    return -max(gaps)


def law(rows: list[Any], size: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """Dwork and Roth's SmallDB: probability proportional to exp(epsilon n u/2)."""
    listed = list(combinations_with_replacement(range(5), size))
    weights = [math.exp(epsilon * len(rows) * float(utility(rows, one)) / 2) for one in listed]
    return {one: w / sum(weights) for one, w in zip(listed, weights, strict=True)}


ROWS = [POINTS[i] for i in (0, 0, 0, 1, 2, 3, 3, 4, 0, 3, 2, 0)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_scores_are_the_utilities_in_steps_of_size_times_rows(size: int) -> None:
    listed = databases(5, size)
    assert [tuple(one) for one in listed] == list(combinations_with_replacement(range(5), size))
    assert len(listed) == database_count(5, size)
    counts = np.array([sum(map(test, ROWS)) for test in TESTS])
    found = scores(listed, indicators(WORK), counts, len(ROWS))
    assert [Fraction(int(s), size * len(ROWS)) for s in found] == [
        utility(ROWS, tuple(one)) for one in listed
    ]


def test_the_mechanism_is_given_exactly_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponent of the mechanism: epsilon score/(2 sensitivity) must be epsilon n u/2, as fractions."""
    seen: dict[str, Any] = {}

    def spy(score: Any, *, sensitivity: int, epsilon: Fraction) -> int:
        seen.update(score=score, sensitivity=sensitivity, epsilon=epsilon)
        return 0

    monkeypatch.setattr(sys.modules["holdfast.synthesis.small_database"], "exponential", spy)
    session = table_of(ROWS).session(epsilon=9.0, target="table")
    small_database(session, ["a", "b"], QUERIES, epsilon=1.25, size=3, nulls=[])
    for one, score in zip(databases(5, 3), seen["score"], strict=True):
        exponent = seen["epsilon"] * int(score) / (2 * seen["sensitivity"])
        assert exponent == Fraction(5, 4) * len(ROWS) * utility(ROWS, tuple(one)) / 2


def test_the_law_is_private_and_a_twin_that_forgets_the_size_is_not() -> None:
    epsilon = 1.0
    worst = worst_twin = 0.0
    for i in range(len(ROWS)):
        for other in POINTS:
            neighbour = [*ROWS[:i], other, *ROWS[i + 1 :]]
            first, second = law(ROWS, 2, epsilon), law(neighbour, 2, epsilon)
            worst = max(worst, *(abs(math.log(first[y] / second[y])) for y in first))
            # Sensitivity 1 instead of m: the exponent is m times too large.
            first, second = law(ROWS, 2, 2 * epsilon), law(neighbour, 2, 2 * epsilon)
            worst_twin = max(worst_twin, *(abs(math.log(first[y] / second[y])) for y in first))
    assert worst <= epsilon + 1e-12
    assert worst_twin > epsilon


def test_the_draws_follow_the_law_and_not_its_neighbours() -> None:
    session = table_of(ROWS).session(epsilon=10.0**6, target="table")
    epsilon, runs = 3.0, 3500
    drawn: Counter[tuple[int, ...]] = Counter()
    with replayed(ReplayedBits(11)):
        for i in range(runs):
            made = small_database(
                session, ["a", "b"], QUERIES, epsilon=epsilon, size=3, name=str(i), nulls=[]
            )
            cells, outside = made.weights.probabilities()
            counts = [round(3 * float(p)) for p in (*cells.reshape(-1), outside)]
            drawn[tuple(i for i, c in enumerate(counts) for _ in range(c))] += 1
    order = sorted(law(ROWS, 3, epsilon))
    observed = [drawn[one] for one in order]

    def p_value(e: float) -> float:
        expected = law(ROWS, 3, e)
        return chi_square(observed, [expected[one] for one in order])

    assert p_value(epsilon) > FALSE_ALARM
    assert p_value(epsilon * 0.9) < FALSE_ALARM
    assert p_value(epsilon * 1.1) < FALSE_ALARM


def test_the_error_stays_within_the_theorem() -> None:
    rows = [POINTS[i % 4] for i in range(20_000)] + [POINTS[0]] * 6000
    session = table_of(rows).session(epsilon=10.0**4, target="table")
    bound = exact_error(len(rows), 5, 8, 4, 2.0, 0.05)
    for i in range(20):
        made = small_database(session, ["a", "b"], QUERIES, epsilon=2.0, size=8, name=str(i))
        errors = [
            abs(made.fraction(q) - sum(map(t, rows)) / len(rows)) for q, t in zip(QUERIES, TESTS, strict=True)
        ]
        assert max(errors) <= bound
    assert "exact exponential mechanism" in made.explanation
    assert made.explanation.endswith(", by itself")  # outside the joint promise of the session


def test_what_cannot_be_listed_is_refused_with_its_size_and_without_a_chain() -> None:
    schema = hf.Schema(**{f"c{i}": hf.Boolean() for i in range(10)})
    table = hf.open({name: np.zeros(50, dtype=bool) for name in schema}, schema)
    session = table.session(epsilon=10.0, target="table")
    queries = [f"c{i}" for i in range(10)]
    with pytest.raises(InputError, match=r"10\^\d+\.\d databases of 231 rows.*Markov chain"):
        small_database(session, list(schema), queries, epsilon=1.0, within=0.1)
    assert float(session.spent) == 0
    greedy = small_database(session, list(schema), queries, epsilon=4.0, size=5, search="greedy")
    assert "composition" in greedy.explanation
    assert float(session.spent) == pytest.approx(4.0, abs=1e-6)
    some = small_database(
        session, list(schema), queries, epsilon=1.0, size=5, search="candidates", candidates=500
    )
    assert "without the rows" in some.explanation


@pytest.mark.parametrize("search", ["greedy", "candidates"])
def test_the_relaxations_are_close_when_they_may_spend(search: str) -> None:
    session = table_of(ROWS * 200).session(epsilon=10.0**5, target="table")
    made = small_database(session, ["a", "b"], QUERIES, epsilon=1000.0, size=12, search=search)
    errors = [
        abs(made.fraction(q) - sum(map(t, ROWS)) / len(ROWS)) for q, t in zip(QUERIES, TESTS, strict=True)
    ]
    assert max(errors) < 0.2


def test_the_same_release_is_returned_and_not_drawn_again() -> None:
    session = table_of(ROWS).session(epsilon=3.0, target="table")
    first, second = (small_database(session, ["a", "b"], QUERIES, epsilon=1.0, size=3) for _ in range(2))
    assert np.array_equal(first.weights.probabilities()[0], second.weights.probabilities()[0])
    assert float(session.spent) == 1.0


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0.0, "size": 2},
        {"epsilon": float("nan"), "size": 2},
        {"epsilon": 1.0},
        {"epsilon": 1.0, "size": 2, "within": 0.5},
        {"epsilon": 1.0, "size": 0},
        {"epsilon": 1.0, "size": 2, "search": "chain"},
        {"epsilon": 1.0, "size": 2, "search": "candidates", "candidates": 0},
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    session = table_of(ROWS).session(epsilon=3.0, target="table")
    with pytest.raises(InputError):
        small_database(session, ["a", "b"], QUERIES, **bad)
    with pytest.raises(InputError):
        small_database(session, ["a", "b"], [], epsilon=1.0, size=1)
    assert float(session.spent) == 0


def test_in_mu_squared_it_costs_its_range() -> None:
    session = table_of(ROWS).session(rho=1.0, only="gaussian", target="table")
    small_database(session, ["a", "b"], QUERIES, epsilon=1.0, size=1)
    assert float(session.spent) == pytest.approx(np.pi / 8, rel=1e-6)
