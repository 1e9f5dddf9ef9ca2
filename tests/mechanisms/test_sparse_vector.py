"""The sparse vector: exact laws against its own event, twins that break them, and a state that survives."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.sparse_vector_law import Logistic, excess, gaussian, laplace, law, worst_log_ratio
from oracles.statistics import FALSE_ALARM, chi_square

from holdfast.errors import BudgetError, InputError
from holdfast.mechanisms import allocation
from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach, logistic_reach
from holdfast.mechanisms.allocation import Allocation
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.noise.bits import ReplayedBits
from holdfast.privacy import advanced_composition, approx, events, optimal_composition, pure, zcdp

EITHER_WAY = list(product((-1, 0, 1), repeat=4))
SAME_WAY = [s for s in EITHER_WAY if min(s) >= 0]
BASES = [(0, 0, 0, 0), (2, -1, 3, 0)]
EPSILON = Fraction(3, 2)


def laws(a: Allocation, values: tuple[int, ...], hits: int) -> dict:
    noise = gaussian if a.noise == "gaussian" else laplace
    question = Logistic(a.question) if a.noise == "logistic" else noise(a.question)
    return law(values, 1, noise(a.threshold), question, hits=hits, redraw=a.redraw)


def worst(a: Allocation, hits: int, shifts: list[tuple[int, ...]]) -> float:
    return max(
        worst_log_ratio(
            laws(a, base, hits), laws(a, tuple(b + s for b, s in zip(base, shift, strict=True)), hits)
        )
        for base in BASES
        for shift in shifts
        if any(shift)
    )


@pytest.mark.parametrize("hits", [1, 2])
def test_best_is_within_epsilon_on_neighbours(hits: int) -> None:
    a = allocation.pure(1, EPSILON, hits, monotone=False, numeric=False)
    assert pure(a.event).epsilon == EPSILON
    assert worst(a, hits, EITHER_WAY) <= EPSILON + 1e-9
    broken = replace(a, question=a.question / 4, threshold=a.threshold / 2)
    assert worst(broken, hits, EITHER_WAY) > EPSILON, "twin: too little noise"


@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_logistic_is_within_epsilon_on_neighbours(hits: int, monotone: bool) -> None:
    a = allocation.logistic(allocation.pure(1, EPSILON, hits, monotone=monotone, numeric=False))
    shifts = SAME_WAY if monotone else EITHER_WAY
    assert pure(a.event).epsilon == EPSILON
    assert worst(a, hits, shifts) <= EPSILON + 1e-9
    broken = replace(a, question=a.question / 6, threshold=a.threshold / 2)
    assert worst(broken, hits, shifts) > EPSILON, "twin: too little noise"


def test_a_public_threshold_makes_every_answer_below_cost_something() -> None:
    """The twin: eleven questions that rise by one row, without noise on the threshold."""
    a = allocation.logistic(allocation.pure(1, EPSILON, 1, monotone=False, numeric=False))
    low, high = (0,) * 11, (1,) * 11
    assert worst_log_ratio(laws(a, low, 1), laws(a, high, 1)) <= EPSILON + 1e-9
    bare = [
        law(v, 1, laplace(Fraction(1, 100)), Logistic(a.question), hits=1, redraw=False) for v in (low, high)
    ]
    assert worst_log_ratio(*bare) > EPSILON


def test_logistic_has_the_budget_of_best_and_runs_follow_its_law() -> None:
    for terms in ({"epsilon": 2.0}, {"rho": 0.5}, {"epsilon": 2.0, "delta": 0.01}):
        found = SparseVector(3, hits=3, version="logistic", **terms)
        best = SparseVector(3, hits=3, **terms)
        assert found.allocation == replace(best.allocation, noise="logistic")
    bits, values, seen = ReplayedBits(5), (0, 2, 1, 3), Counter()
    for _ in range(4000):
        vector = SparseVector(1, epsilon=EPSILON, hits=2, version="logistic", bits=bits)
        seen[tuple(vector.above(value) for value in values if not vector.halted)] += 1
    twice = replace(vector.allocation, question=vector.allocation.question * 2)
    fits, twin = (
        chi_square([seen[o] for o in truth], list(truth.values()))
        for truth in (laws(a, values, 2) for a in (vector.allocation, twice))
    )
    assert twin < FALSE_ALARM < fits, "twin: twice the noise"


def test_monotone_questions_need_less_noise_and_only_they() -> None:
    a = allocation.pure(1, EPSILON, 2, monotone=True, numeric=False)
    general = allocation.pure(1, EPSILON, 2, monotone=False, numeric=False)
    assert a.question < general.question
    assert worst(a, 2, SAME_WAY) <= EPSILON + 1e-9
    # Twin: eleven questions that rise and one that falls.
    up, down = (*[0] * 11, 1), (*[1] * 11, 0)
    one = allocation.pure(1, EPSILON, 1, monotone=True, numeric=False)
    assert worst_log_ratio(laws(one, up, 1), laws(one, down, 1)) > EPSILON


def test_lecture_version_is_within_epsilon_and_keeps_its_constants() -> None:
    a = allocation.lecture(1, EPSILON, Fraction(0), 2, numeric=False)
    assert (a.threshold, a.question) == (4 / EPSILON, 8 / EPSILON)
    assert worst(a, 2, EITHER_WAY) <= EPSILON + 1e-9


@pytest.mark.parametrize("hits", [1, 10, 100])
def test_lecture_version_with_delta_has_the_right_square_root(hits: int) -> None:
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    a = allocation.lecture(1, epsilon, delta, hits, numeric=False)
    assert float(a.threshold) == pytest.approx(math.sqrt(32 * hits * math.log(10**6)), rel=1e-5)
    assert a.question == 2 * a.threshold
    assert isinstance(a.event, events.Repeat)
    each = a.event.event.epsilon
    assert each * a.threshold == 2, "each run pays for its own two noises"
    assert advanced_composition(each, hits, delta) <= epsilon
    assert approx(a.event, delta).epsilon <= epsilon
    if hits == 100:
        assert advanced_composition(each * 3, hits, delta) > epsilon, "twin: a third of the noise"


@pytest.mark.parametrize("hits", [1, 5, 30, 300, 5000])
def test_approximate_version_composes_to_its_promise_and_beats_the_others(hits: int) -> None:
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    a = allocation.approximate(1, epsilon, delta, hits, monotone=False, numeric=False)
    if isinstance(a.event, events.Repeat):
        compose = optimal_composition if hits <= 4096 else advanced_composition
        assert compose(a.event.event.epsilon, hits, delta) <= epsilon
        assert compose(a.event.event.epsilon * Fraction(11, 10), hits, delta) > epsilon
    else:
        assert pure(a.event).epsilon == epsilon
    for other in (
        allocation.pure(1, epsilon, hits, monotone=False, numeric=False),
        allocation.lecture(1, epsilon, delta, hits, numeric=False),
    ):
        assert a.question <= other.question


@pytest.mark.parametrize("hits", [1, 10, 1000])
def test_concentrated_version_costs_at_most_rho(hits: int) -> None:
    rho = Fraction(1, 50)
    a = allocation.concentrated(1, rho, hits, monotone=False, numeric=False)
    assert rho * Fraction(99, 100) < Fraction(zcdp(a.event).rho) <= rho * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("monotone", [False, True])
def test_gaussian_version_is_within_epsilon_and_delta(monotone: bool) -> None:
    epsilon, delta, shifts = Fraction(1), Fraction(1, 100), SAME_WAY if monotone else EITHER_WAY

    def worst_excess(a: Allocation) -> float:
        pairs = [
            (laws(a, base, 2), laws(a, tuple(b + s for b, s in zip(base, shift, strict=True)), 2))
            for base in BASES
            for shift in shifts
        ]
        return max(max(excess(p, q, float(epsilon)), excess(q, p, float(epsilon))) for p, q in pairs)

    a = allocation.gaussian(1, epsilon, delta, 2, 4, monotone=monotone, numeric=False)
    assert worst_excess(a) <= delta
    assert worst_excess(replace(a, threshold=a.threshold / 100, question=a.question / 100)) > delta, "twin"


@pytest.mark.parametrize("c", [1, 4, 50])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_division_is_the_best_one(c: int, monotone: bool) -> None:
    a = allocation.pure(1, EPSILON, c, monotone=monotone, numeric=False)
    factor = (1 if monotone else 2) * c

    def variance(first: float) -> float:
        return 1 / first**2 + factor**2 / (float(EPSILON) - first) ** 2

    chosen = float(1 / a.threshold)
    assert float(a.question) == pytest.approx(factor / (float(EPSILON) - chosen))
    grid = [float(EPSILON) * i / 1000 for i in range(1, 1000)]
    assert variance(chosen) <= min(map(variance, grid)) * (1 + 1e-9)


def test_gaussian_division_is_the_best_one() -> None:
    a = allocation.gaussian(1, Fraction(1), Fraction(1, 10**6), 9, 100, monotone=False, numeric=False)
    R = 1 / (2 * a.threshold) + Fraction(4 * 9) / (2 * a.question)
    total = [1 / (2 * float(R) * i / 1000) + 36 / (2 * float(R) * (1 - i / 1000)) for i in range(1, 1000)]
    assert float(a.threshold + a.question) <= min(total) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("terms", "redraw"),
    [
        ({"epsilon": Fraction(3)}, False),
        ({"epsilon": Fraction(3), "version": "lecture"}, True),
        ({"epsilon": Fraction(3), "delta": 0.01, "version": "gaussian", "questions": 3}, False),
    ],
)
def test_answers_follow_the_law_and_not_its_neighbours(terms: dict, redraw: bool) -> None:
    values, runs, bits = (1, 0, 4), 3000, ReplayedBits(21)
    seen: Counter[tuple[bool, ...]] = Counter()
    for _ in range(runs):
        vector, answers = SparseVector(1, hits=2, bits=bits, **terms), []
        for value in values:
            answers.append(vector.above(value))
            if vector.halted:
                break
        seen[tuple(answers)] += 1
    assert vector.allocation.redraw is redraw
    p_values = []
    for scale in (1.0, 0.6, 1.7):
        a = vector.allocation
        noisier = Fraction(scale) if a.noise == "laplace" else Fraction(scale) ** 2
        truth = laws(replace(a, threshold=a.threshold * noisier, question=a.question * noisier), values, 2)
        p_values.append(chi_square([seen[o] for o in truth], list(truth.values())))
    assert p_values[0] > FALSE_ALARM
    assert max(p_values[1:]) < FALSE_ALARM


def test_it_halts_and_says_so() -> None:
    vector = SparseVector(0, epsilon=1.0, hits=2)
    event = vector.event
    assert [vector.above(10**6), vector.above(-(10**6)), vector.above(10**6)] == [True, False, True]
    assert vector.halted
    assert (vector.hits_left, vector.asked) == (0, 3)
    with pytest.raises(BudgetError, match="after 3 questions and 2 hits"):
        vector.above(5)
    assert vector.event == event == events.PureMechanism(1)
    capped = SparseVector(0, epsilon=1.0, hits=2, delta=1e-6, version="gaussian", questions=2)
    assert [capped.above(-(10**6)), capped.above(-(10**6))] == [False, False]
    assert capped.halted


class ForgetfulVector(SparseVector):
    """Twin: draws its threshold again after a restart, which is a free second look."""

    __slots__ = ()

    @classmethod
    def from_json(cls, saved, bits=None):  # type: ignore[no-untyped-def]
        self = super().from_json(saved, bits)
        self._draw_threshold()
        return self


def restarts_keep_the_threshold(kind: type[SparseVector]) -> bool:
    vector = kind(100, epsilon=1e-12, hits=3, bits=ReplayedBits(4))
    before = vector.to_json()
    for _ in range(5):
        vector = kind.from_json(json.loads(json.dumps(vector.to_json())))
    return vector.to_json() == before


def test_a_restart_draws_nothing_again() -> None:
    assert restarts_keep_the_threshold(SparseVector)
    assert not restarts_keep_the_threshold(ForgetfulVector)


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 0.3},
        {"epsilon": 0.3, "numeric": True, "sensitivity": 0.5},
        {"epsilon": 0.3, "delta": 1e-6, "monotone": True},
        {"rho": 0.1},
        {"epsilon": 0.3, "delta": 1e-6, "version": "lecture"},
        {"epsilon": 0.3, "delta": 1e-6, "version": "gaussian", "questions": 9},
    ],
)
def test_json_round_trip_goes_on_where_it_stopped(terms: dict) -> None:
    vector = SparseVector(10, hits=3, bits=ReplayedBits(4), **terms)
    vector.above(10**6)
    saved = json.dumps(vector.to_json())
    again = SparseVector.from_json(json.loads(saved))
    assert json.dumps(again.to_json()) == saved
    assert (again.event, again.allocation, again.terms) == (vector.event, vector.allocation, vector.terms)
    assert (again.hits_left, again.asked) == (2, 1)


@pytest.mark.parametrize("broken", ["terms", "secret", None])
def test_a_foreign_state_is_refused(broken: str | None) -> None:
    saved = SparseVector(10, epsilon=1.0, hits=3).to_json()
    if broken is None:
        saved["secret"]["left"] = 4
    else:
        saved[broken] = {}
    with pytest.raises(InputError, match="to_json"):
        SparseVector.from_json(saved)


def test_floats_are_rounded_exactly_so_that_the_sensitivity_stays() -> None:
    vector = SparseVector(0.5, sensitivity=Fraction(1, 3), epsilon=1.0, hits=1)
    rng = np.random.default_rng(2)
    for x in rng.uniform(-100, 100, 500):
        assert vector._units(Fraction(x) + Fraction(1, 3)) - vector._units(float(x)) == 2**20
    assert vector._units(math.nan) == vector._units(-math.inf) < -(10**50)
    assert vector._units(math.inf) > 10**50
    assert (
        vector.allocation.threshold
        == SparseVector(0, sensitivity=2**20, epsilon=1.0, hits=1).allocation.threshold
    )


def test_numeric_answers_have_their_own_noise() -> None:
    vector = SparseVector(0, epsilon=1.0, hits=400, numeric=True, bits=ReplayedBits(3))
    scale = float(vector.allocation.value or 0)
    assert scale == pytest.approx(400 * 3)
    noises = [vector.answer(10**9) - 10**9 for _ in range(400)]  # type: ignore[operator]
    assert np.mean(np.abs(noises)) == pytest.approx(scale, rel=0.35)
    assert SparseVector(0, epsilon=1.0, hits=1, numeric=True).answer(-(10**6)) is None
    with pytest.raises(InputError, match="numeric"):
        SparseVector(0, epsilon=1.0, hits=1).answer(3)
    a = allocation.pure(1, EPSILON, 2, monotone=False, numeric=True)
    spent = 1 / a.threshold + 4 / a.question + 2 / (a.value or 1)
    assert spent == EPSILON


@pytest.mark.parametrize("version", ["best", "logistic", "lecture", "gaussian"])
def test_the_half_width_holds_at_its_confidence(version: str) -> None:
    extra = {"delta": 1e-3, "questions": 20} if version == "gaussian" else {}
    bits, misses, beta, runs = ReplayedBits(8), 0, 0.2, 200
    for _ in range(runs):
        vector = SparseVector(0, epsilon=1.0, hits=3, version=version, bits=bits, **extra)  # type: ignore[arg-type]
        h = int(vector.half_width(20, beta))
        wrong = any(vector.above(-h - 1) for _ in range(19))
        misses += wrong or not vector.above(h + 1)
    assert misses <= beta * runs
    tight = SparseVector(0, epsilon=1.0, hits=3)
    assert tight.half_width(20, 0.2) < tight.half_width(20, 0.1) < tight.half_width(40, 0.1)


@pytest.mark.parametrize("version", ["best", "logistic", "lecture", "gaussian"])
@pytest.mark.parametrize("scale", [1, 0.5])
def test_the_half_width_is_the_reach_of_both_noises(version: str, scale: float) -> None:
    """Half of beta for the thresholds (one for each hit where they are drawn again), half for the questions; off the
    integers rounding moves a value and the threshold by half a step each."""
    extra = {"delta": 1e-3, "questions": 20} if version == "gaussian" else {}
    vector = SparseVector(5 * scale, sensitivity=scale, epsilon=1.0, hits=3, version=version, **extra)  # type: ignore[arg-type]
    allocated, beta = vector.allocation, 0.07
    reach = gaussian_reach if allocated.noise == "gaussian" else laplace_reach
    thresholds = 3 if allocated.redraw else 1
    first = reach(allocated.threshold, beta / 2 / thresholds, False)
    both = first + (
        logistic_reach(allocated.question, beta / 2 / 11)
        if version == "logistic"
        else reach(allocated.question, beta / 2 / 11, False)
    )
    expected = both if scale == 1 else float((both + 1) * vector._step)
    assert vector.half_width(11, beta) == expected
    assert vector.half_width(1, beta) < expected
    with pytest.raises(InputError):
        vector.half_width(0, beta)
    for bad in (0.0, 1.0):
        with pytest.raises(InputError):
            vector.half_width(11, bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": None},
        {"epsilon": 1.0, "rho": 1.0},
        {"epsilon": math.nan},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": True},
        {"hits": 0},
        {"hits": 1.0},
        {"hits": True},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"delta": math.nan},
        {"delta": "0"},
        {"threshold": math.inf},
        {"threshold": "1"},
        {"sensitivity": 0},
        {"monotone": 1},
        {"numeric": None},
        {"version": "lyu"},
        {"version": "lecture", "monotone": True},
        {"version": "gaussian"},
        {"version": "gaussian", "delta": 1e-6},
        {"version": "gaussian", "questions": 9},
        {"questions": 9},
        {"rho": 0.1, "epsilon": None, "delta": 1e-6},
        {"version": "lecture", "delta": 0.5, "epsilon": 50.0, "hits": 50},
    ],
)
def test_bad_parameters_are_refused(bad: dict) -> None:
    given = {"threshold": 10, "epsilon": 1.0, "hits": 1} | bad
    with pytest.raises(InputError):
        SparseVector(given.pop("threshold"), **given)


@pytest.mark.parametrize("value", [0.5, "1", None, True, np.array([1, 2])])
def test_values_are_refused_by_type_and_never_shown(value: object) -> None:
    with pytest.raises(InputError) as refused:
        SparseVector(0, epsilon=1.0, hits=1).above(value)  # type: ignore[arg-type]
    assert "0.5" not in str(refused.value)
    with pytest.raises(InputError):
        SparseVector(0.0, epsilon=1.0, hits=1).above("1")  # type: ignore[arg-type]


def test_the_lecture_s_two_examples() -> None:
    """A stream of salaries, and a model checked on a holdout: only what crosses the threshold is paid for."""
    bits = ReplayedBits(1)
    salaries = SparseVector(1000, epsilon=1.0, hits=2, bits=bits)
    counts = [0, 3, 10, 2000, 5, 1900]
    assert [salaries.above(n) for n in counts] == [False, False, False, True, False, True]
    rows = 100_000
    holdout = SparseVector(0.05, sensitivity=Fraction(1, rows), epsilon=1.0, hits=1, bits=bits)
    gaps = [0.001, 0.002, 0.0, 0.004, 0.11]
    assert [holdout.above(gap) for gap in gaps] == [False, False, False, False, True]
    assert holdout.halted
