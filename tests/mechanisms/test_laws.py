"""One suite over every mechanism; a newcomer in `holdfast.mechanisms` must be listed here or the suite fails."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast import audit, mechanisms
from holdfast.errors import InputError
from holdfast.mechanisms.accuracy import discrete_logistic_reach, gaussian_reach, laplace_reach, votes_reach
from holdfast.mechanisms.response import response_epsilon
from holdfast.privacy import approx, events, pure, zcdp

BAD = [0, -1, math.nan, math.inf, -math.inf, "1", None, True, 1j]


@dataclass(frozen=True)
class Law:
    """A mechanism at budget epsilon on two neighbouring inputs, and what it says of itself."""

    run: Callable[[Any, float], Any]
    first: Any
    second: Any
    event: Callable[[float], events.Event]
    spread: Callable[[float], float] | None = None
    """How much noise a budget buys: must not grow with it."""
    miss: Callable[[float, float], tuple[float, float]] | None = None
    """(measured, allowed): how often the stated accuracy is missed at (epsilon, beta)."""
    parameter: str = "epsilon"


def _gaussian_rho(epsilon: float) -> float:
    return epsilon * epsilon / 2


def _additive_miss(kind: str) -> Callable[[float, float], tuple[float, float]]:
    def measure(epsilon: float, beta: float) -> tuple[float, float]:
        zeros = np.zeros(40_000, dtype=np.int64)
        if kind == "laplace":
            noise = mechanisms.laplace(zeros, epsilon=epsilon)
            reach = laplace_reach(1 / Fraction(epsilon), beta, False)
        elif kind == "logistic":
            noise = mechanisms.logistic(zeros, epsilon=epsilon)
            reach = discrete_logistic_reach(1 / Fraction(epsilon), beta, False)
        else:
            noise = mechanisms.gaussian(zeros, rho=_gaussian_rho(epsilon))
            reach = gaussian_reach(1 / (2 * Fraction(_gaussian_rho(epsilon))), beta, False)
        return float(np.mean(np.abs(noise) > reach)), beta

    return measure


def _selection_miss(choose: Callable[..., int]) -> Callable[[float, float], tuple[float, float]]:
    def measure(epsilon: float, beta: float) -> tuple[float, float]:
        scores = np.array([0, 3, 7, 10, 10, 4])
        loss = mechanisms.selection_loss(len(scores), epsilon=epsilon, beta=beta)
        below = [10 - scores[choose(scores, epsilon=epsilon)] > loss for _ in range(3000)]
        return float(np.mean(below)), beta

    return measure


def _votes_miss(epsilon: float, beta: float) -> tuple[float, float]:
    truths = np.arange(400) % 4 == 0
    reach = votes_reach(400, Fraction(1, 4), beta, False)
    draw = np.random.default_rng(1)
    missed = 0
    for _ in range(3000):
        drawn = truths[draw.integers(0, 400, 400)]
        missed += abs((mechanisms.votes(drawn) / 400 - 0.25) / 0.5 - 0.25) > reach
    return missed / 3000, beta


def _watch(values: list[int], epsilon: float) -> tuple[bool, ...]:
    vector = mechanisms.SparseVector(5, sensitivity=1, epsilon=epsilon, hits=1)
    answers: list[bool] = []
    for value in values:
        if vector.halted:
            break
        answers.append(vector.above(value))
    return tuple(answers)


def _watch_miss(epsilon: float, beta: float) -> tuple[float, float]:
    missed = 0
    for _ in range(1500):
        vector = mechanisms.SparseVector(0, sensitivity=1, epsilon=epsilon, hits=1)
        reach = math.ceil(vector.half_width(2, beta)) + 1
        missed += vector.above(-reach) or not vector.above(reach)
    return missed / 1500, beta


def _vote_table(ones: int, epsilon: float) -> int:
    """One vote on a table of so many rows that a vote costs epsilon."""
    rows = max(2, round(2 / math.expm1(epsilon)))
    chosen = np.arange(rows) < ones
    return mechanisms.votes(chosen[np.random.default_rng().integers(0, rows, 1)])


SCORES = ([3, 1, 2], [2, 2, 1])
LAWS: dict[str, Law] = {
    "laplace": Law(
        lambda value, epsilon: mechanisms.laplace(value, epsilon=epsilon),
        3,
        4,
        lambda epsilon: events.Laplace(1, 1 / Fraction(epsilon)),
        lambda epsilon: float(1 / Fraction(epsilon)),
        _additive_miss("laplace"),
    ),
    "logistic": Law(
        lambda value, epsilon: mechanisms.logistic(value, epsilon=epsilon),
        3,
        4,
        lambda epsilon: events.Logistic(1, 1, 1 / Fraction(epsilon)),
        lambda epsilon: float(1 / Fraction(epsilon)),
        _additive_miss("logistic"),
    ),
    "gaussian": Law(
        lambda value, epsilon: mechanisms.gaussian(value, rho=_gaussian_rho(epsilon)),
        3,
        4,
        lambda epsilon: events.Gaussian(1, 1 / (2 * Fraction(_gaussian_rho(epsilon)))),
        lambda epsilon: 1 / _gaussian_rho(epsilon),
        _additive_miss("gaussian"),
        "rho",
    ),
    "exponential": Law(
        lambda scores, epsilon: mechanisms.exponential(np.array(scores), epsilon=epsilon),
        *SCORES,
        events.BoundedRange,
        lambda epsilon: mechanisms.selection_loss(3, epsilon=epsilon, beta=0.1),
        _selection_miss(mechanisms.exponential),
    ),
    "permute_and_flip": Law(
        lambda scores, epsilon: mechanisms.permute_and_flip(np.array(scores), epsilon=epsilon),
        *SCORES,
        events.PureMechanism,
        lambda epsilon: mechanisms.selection_loss(3, epsilon=epsilon, beta=0.1),
        _selection_miss(mechanisms.permute_and_flip),
    ),
    "report_noisy_max": Law(
        lambda scores, epsilon: mechanisms.report_noisy_max(np.array(scores), epsilon=epsilon),
        *SCORES,
        events.PureMechanism,
    ),
    "lecture_rejection_sampler": Law(
        lambda scores, epsilon: mechanisms.lecture_rejection_sampler(np.array(scores), epsilon=epsilon).index,
        *SCORES,
        events.BoundedRange,
    ),
    "SparseVector": Law(
        _watch,
        [4, 5, 4, 6],
        [5, 4, 5, 5],
        lambda epsilon: mechanisms.SparseVector(5, sensitivity=1, epsilon=epsilon, hits=1).event,
        lambda epsilon: mechanisms.SparseVector(5, sensitivity=1, epsilon=epsilon, hits=1).half_width(9, 0.1),
        _watch_miss,
    ),
    "randomized_response": Law(
        lambda bit, epsilon: mechanisms.randomized_response(bit, truth=1 / (1 + math.exp(-epsilon))),
        0,
        1,
        lambda epsilon: events.PureMechanism(response_epsilon(1 / (1 + math.exp(-epsilon)))),
        parameter="truth",
    ),
    "votes": Law(
        _vote_table,
        0,
        1,
        lambda epsilon: events.Votes(max(2, round(2 / math.expm1(epsilon))), 1, Fraction(1, 4)),
        miss=_votes_miss,
        parameter="flip",
    ),
}
NOT_MECHANISMS = {"selection_loss"}


def test_every_mechanism_is_under_the_laws() -> None:
    assert set(LAWS) == set(mechanisms.__all__) - NOT_MECHANISMS


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_event_is_known_before_release_and_costs_what_it_says(name: str) -> None:
    law = LAWS[name]
    for epsilon in (0.1, 0.5, 1.0):
        event = law.event(epsilon)
        assert events.from_json(events.to_json(event)) == event
        assert zcdp(event).rho <= epsilon * math.tanh(epsilon / 2) * 1.0001 or name in ("gaussian", "votes")
        if name == "gaussian":
            assert zcdp(event).rho == pytest.approx(epsilon**2 / 2)
        else:
            assert pure(event).epsilon <= epsilon * 1.001 or name == "votes"


@pytest.mark.parametrize("name", sorted(name for name, law in LAWS.items() if law.spread))
def test_more_budget_never_buys_more_noise(name: str) -> None:
    spread = LAWS[name].spread
    assert spread is not None
    sizes = [spread(epsilon) for epsilon in (0.05, 0.1, 0.3, 0.31, 1.0, 3.0)]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_neighbours_stay_within_the_claim(name: str) -> None:
    """An audited lower bound with a false-alarm rate of 1e-9 stays below what the event claims."""
    law, epsilon = LAWS[name], 1.0
    event = law.event(epsilon)
    delta = 1e-3 if name == "gaussian" else 0.0
    claimed = approx(event, delta).epsilon if delta else pure(event).epsilon
    found = audit.epsilon_lower_bound(
        lambda value: law.run(value, epsilon),
        law.first,
        law.second,
        runs=4000,
        confidence=1 - 1e-9,
        delta=delta,
    )
    assert found.epsilon_lower <= claimed


@pytest.mark.parametrize(
    "name", ["laplace", "logistic", "exponential", "permute_and_flip", "SparseVector", "randomized_response"]
)
def test_three_times_the_budget_is_caught(name: str) -> None:
    """The broken twin of the law above spends 3 and claims 1; the same audit, with as many runs, sees it."""
    law = LAWS[name]
    first, second = (law.first, law.second) if name != "SparseVector" else ([5, 5, 5, 5], [4, 4, 4, 6])
    found = audit.epsilon_lower_bound(
        lambda value: law.run(value, 6.0 if name == "SparseVector" else 3.0),
        first,
        second,
        runs=4000,
        confidence=1 - 1e-9,
    )
    assert found.epsilon_lower > 1.0


@pytest.mark.parametrize("name", sorted(name for name, law in LAWS.items() if law.miss))
def test_the_stated_accuracy_is_kept(name: str) -> None:
    miss = LAWS[name].miss
    assert miss is not None
    for epsilon, beta in ((0.5, 0.2), (1.0, 0.02)):
        measured, allowed = miss(epsilon, beta)
        assert measured <= allowed + 6.2 * math.sqrt(allowed / 1500)


@pytest.mark.parametrize("name", sorted(LAWS))
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_budgets_are_refused(name: str, bad: Any) -> None:
    inputs: dict[str, Any] = {
        "laplace": lambda: mechanisms.laplace(1, epsilon=bad),
        "logistic": lambda: mechanisms.logistic(1, epsilon=bad),
        "gaussian": lambda: mechanisms.gaussian(1, rho=bad),
        "SparseVector": lambda: mechanisms.SparseVector(1, sensitivity=1, epsilon=bad, hits=1),
        "randomized_response": lambda: mechanisms.randomized_response(1, truth=bad),
        "votes": lambda: mechanisms.votes(np.array([True]), flip=bad),
    }
    choose = getattr(mechanisms, name)
    with pytest.raises(InputError):
        inputs.get(name, lambda: choose(np.array([1, 2]), epsilon=bad))()


@pytest.mark.parametrize("name", ["laplace", "logistic", "gaussian"])
@pytest.mark.parametrize("values", [1.5, [1.5], np.array([True]), "1", [None]])
def test_additive_mechanisms_take_integers_only(name: str, values: Any) -> None:
    budget = {"rho": 1.0} if name == "gaussian" else {"epsilon": 1.0}
    with pytest.raises(InputError):
        getattr(mechanisms, name)(values, **budget)


def test_shapes_and_extremes_come_through() -> None:
    for values in (np.zeros((3, 4), dtype=np.int8), np.array([2**63], dtype=np.uint64), [-(2**62)], []):
        noisy = hf.mechanisms.laplace(np.array(values, dtype=getattr(values, "dtype", np.int64)), epsilon=1.0)
        assert np.shape(noisy) == np.shape(values)
    assert isinstance(hf.mechanisms.laplace(10**30, epsilon=1.0), int)
    assert isinstance(hf.mechanisms.gaussian(np.int16(3), rho=1.0), int)
    assert isinstance(hf.mechanisms.logistic(10**30, epsilon=1.0), int)
    assert np.shape(hf.mechanisms.logistic(np.zeros((3, 4), dtype=np.int8), epsilon=1.0)) == (3, 4)


def test_secret_state_survives_json() -> None:
    vector = mechanisms.SparseVector(5, sensitivity=1, epsilon=0.5, hits=2)
    vector.above(3)
    back = mechanisms.SparseVector.from_json(vector.to_json())
    assert back.to_json() == vector.to_json()


def test_laplace_noise_is_symmetric_about_the_value() -> None:
    counts = Counter(np.sign(mechanisms.laplace(np.full(100_000, 7), epsilon=1.0) - 7).tolist())
    assert abs(counts[1] - counts[-1]) < 6.2 * math.sqrt(100_000)
