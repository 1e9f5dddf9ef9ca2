"""One index with probability proportional to exp(rate*score), exactly."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import statistics
from oracles.choice_tree import Law as Walked
from oracles.choice_tree import walk

from holdfast.errors import InputError
from holdfast.noise import choice as choice_module
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.choice import choice, smoothed_choice

CASES = [
    ([0], Fraction(1)),
    ([3, 3, 3], Fraction(2)),
    ([0, 1, 2], Fraction(1)),
    ([2, 0, 1, 2], Fraction(1, 3)),
    ([-5, 5], Fraction(1, 2)),
    ([0, 100, 0], Fraction(1)),
    ([-(2**63), 2**63 - 1], Fraction(1, 2**64)),
    ([1, 2, 3], Fraction(0)),
    ([0, 1], Fraction(10) ** 300),
]


def truth(scores: list[int], rate: Fraction) -> dict[object, float]:
    with mpmath.workdps(40):
        r = mpmath.mpf(rate.numerator) / rate.denominator
        weights = [mpmath.exp(r * (s - max(scores))) for s in scores]
        return {i: float(w / mpmath.fsum(weights)) for i, w in enumerate(weights)}


def quickly(distance: np.ndarray, rate: Fraction, head: int) -> int | None:
    """What floats alone say of a choice."""
    return choice_module._filter(np.exp(-np.minimum(distance * float(rate), 64.0)), head, 64)


def walked_choice(scores: list[int], rate: Fraction, width: int = 4) -> Walked:
    array = np.array(scores, dtype=np.int64)
    return walk(lambda bits: choice(array, rate, bits, width=width), floor=2**-24)


@pytest.mark.parametrize(("scores", "rate"), CASES)
@pytest.mark.parametrize("width", [1, 4])
def test_choice_walked(scores: list[int], rate: Fraction, width: int) -> None:
    walked = walked_choice(scores, rate, width)
    assert walked.leftover < 1e-5
    assert walked.contradicts(truth(scores, rate), tolerance=1e-12) is None


def test_the_walk_catches_a_wrong_rate() -> None:
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        walked = walked_choice([0, 1, 2], factor)
        assert walked.contradicts(truth([0, 1, 2], Fraction(1))) is not None


def test_a_choice_that_trusts_its_floats_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(head: int, width: int, cumulative: object, bits: object) -> int:
        return 0

    monkeypatch.setattr(choice_module, "invert", trusting)
    assert walked_choice([0, 1, 2], Fraction(1)).contradicts(truth([0, 1, 2], Fraction(1))) is not None


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=3000),
    st.fractions(0, 3, max_denominator=1000),
    st.integers(0, 2**64 - 1),
)
def test_the_filter_never_contradicts_exact_arithmetic(scores: list[int], rate: Fraction, head: int) -> None:
    """Whatever the rounded weights settle, the exact brackets settle the same way."""
    distance = choice_module._distances(np.array(scores))
    quick = quickly(distance, rate, head)
    exact = choice_module._cumulative(distance, rate, 96)
    if quick is not None:
        before = exact.high[quick - 1] if quick else 0
        assert before << 64 <= head * exact.total_high
        assert (head + 1) * exact.total_low <= (exact.low[quick] << 64) or quick == len(scores) - 1


@given(st.integers(0, 2**64 - 1), st.integers(0, 2000))
def test_numbers_near_a_boundary_are_left_open_by_the_filter(head: int, off: int) -> None:
    distance = choice_module._distances(np.array([0, 1, 2]))
    exact = choice_module._cumulative(distance, Fraction(1), 96)
    boundary = (exact.low[1] << 64) // exact.total_low
    assert quickly(distance, Fraction(1), boundary - off) is None
    assert quickly(distance, Fraction(1), boundary + off) is None


def test_few_numbers_are_left_open() -> None:
    distance = choice_module._distances(np.arange(100_000) % 977)
    heads = ReplayedBits(3).words(200).tolist()
    assert all(quickly(distance, Fraction(1, 50), h) is not None for h in heads)


def test_float_weights_are_within_the_margin() -> None:
    """The promise on which the filter rests, with room to spare: 2**-45 where 2**-42 is allowed."""
    losses = np.concatenate([np.linspace(0, 44, 500), ReplayedBits(1).words(500) / 2**64 * 44])
    with mpmath.workdps(40):
        for loss in losses.tolist():
            assert (
                abs(mpmath.mpf(float(np.exp(-np.float64(loss)))) / mpmath.exp(-mpmath.mpf(loss)) - 1) < 2**-48
            )


def test_default_width_statistically() -> None:
    scores, bits = np.array([0, 1, 2, 3, 3, -4]), ReplayedBits(8)
    counts = np.bincount([choice(scores, Fraction(1, 2), bits) for _ in range(8_000)], minlength=6)
    right, wrong = (list(truth(scores.tolist(), r).values()) for r in (Fraction(1, 2), Fraction(2, 3)))
    assert statistics.chi_square(counts, right) > statistics.FALSE_ALARM
    assert statistics.chi_square(counts, wrong) < statistics.FALSE_ALARM


def test_many_candidates() -> None:
    scores = np.zeros(200_000, dtype=np.int32)
    scores[123_456] = 40
    assert choice(scores, Fraction(1)) == 123_456  # fails with probability 1e-12
    picks = [choice(np.zeros(5000, dtype=np.int64), Fraction(1)) for _ in range(2000)]
    assert statistics.uniform(np.bincount(np.array(picks) // 500, minlength=10)) > statistics.FALSE_ALARM


@pytest.mark.parametrize(
    "scores",
    [
        np.array([]),
        np.array([], dtype=np.int64),
        np.array([1.0]),
        np.array([True]),
        np.zeros((2, 2), dtype=int),
        [1, 2],
        None,
    ],
)
def test_bad_scores_are_refused(scores: object) -> None:
    with pytest.raises(InputError, match="scores"):
        choice(scores, Fraction(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [-1, 0.5, True, None, float("nan")])
def test_bad_rates_are_refused(rate: object) -> None:
    with pytest.raises(InputError, match="rate"):
        choice(np.array([1, 2]), rate)  # type: ignore[arg-type]


SMOOTHED = [
    ([0], [0], Fraction(1)),
    ([3, 1, -2, -4], [-5, -2, 0, 3], Fraction(1, 2)),
    ([100, 0, -100], [-100, -100, 100], Fraction(1)),
    ([0, 1], [-1, 0], Fraction(0)),
    ([2**61, -3], [-(2**61), 2], Fraction(1, 3)),
    ([2, 2, 2], [1, 1, 1], Fraction(1, 10)),
]


def smoothed_truth(first: list[int], second: list[int], rate: Fraction) -> dict[object, float]:
    with mpmath.workdps(60):
        r = mpmath.mpf(rate.numerator) / rate.denominator
        weights = [
            1 / (1 + mpmath.exp(r * x) + mpmath.exp(r * y)) for x, y in zip(first, second, strict=True)
        ]
        return {i: float(w / mpmath.fsum(weights)) for i, w in enumerate(weights)}


def walked_smoothed(first: list[int], second: list[int], rate: Fraction, width: int) -> Walked:
    arrays = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
    return walk(lambda bits: smoothed_choice(*arrays, rate, bits, width=width), floor=2**-24)


@pytest.mark.parametrize(("first", "second", "rate"), SMOOTHED)
@pytest.mark.parametrize("width", [1, 4])
def test_smoothed_choice_walked(first: list[int], second: list[int], rate: Fraction, width: int) -> None:
    walked = walked_smoothed(first, second, rate, width)
    assert walked.leftover < 1e-5
    assert walked.contradicts(smoothed_truth(first, second, rate), tolerance=1e-12) is None


def test_the_walk_catches_a_smoothed_choice_of_another_rate() -> None:
    first, second, rate = SMOOTHED[1]
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        walked = walked_smoothed(first, second, rate * factor, 4)
        assert walked.contradicts(smoothed_truth(first, second, rate)) is not None


def test_floats_and_integers_choose_alike_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    right = np.cumsum(draw.integers(0, 5, 300))
    first, second = 400 - right, np.concatenate([[0], right[:-1]]) - 400
    quick = [smoothed_choice(first, second, Fraction(1, 9), ReplayedBits(seed)) for seed in range(20)]
    monkeypatch.setattr(choice_module, "_filter", lambda *how: None)
    assert quick == [smoothed_choice(first, second, Fraction(1, 9), ReplayedBits(seed)) for seed in range(20)]
