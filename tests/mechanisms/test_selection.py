"""Private choice: exact laws, e^epsilon on every small pair of neighbours, and twins that break them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.choice_tree import walk
from oracles.selection_laws import (
    exponential_law,
    log_range,
    mp,
    noisy_max_law,
    permute_and_flip_law,
    worst_log_ratio,
)
from oracles.statistics import FALSE_ALARM, chi_square

from holdfast.errors import InputError
from holdfast.mechanisms import selection
from holdfast.mechanisms.flips import flips
from holdfast.mechanisms.grid_scores import STEPS, scores
from holdfast.mechanisms.noisy_max import report_noisy_max
from holdfast.mechanisms.selection import exponential, permute_and_flip, selection_loss
from holdfast.noise.bits import ReplayedBits

EPSILON = Fraction(3, 2)
SLACK = mp.mpf(10) ** -15
BASES = [(0, 0, 0), (0, 1, 2), (3, 0, 3), (5, 1, 0)]
EITHER_WAY = [s for s in product((-1, 0, 1), repeat=3) if any(s)]
SAME_WAY = [s for s in product((0, 1), repeat=3) if any(s)]


def rate_used(mechanism: Callable[..., int], monkeypatch: pytest.MonkeyPatch, monotone: bool) -> Fraction:
    """The rate that the mechanism hands to its sampler."""
    seen: list[Fraction] = []

    def spy(units: np.ndarray, rate: Fraction, bits: object = None) -> object:
        seen.append(rate)
        return 0 if mechanism is exponential else np.ones(units.size, dtype=bool)

    monkeypatch.setattr(selection, "choice" if mechanism is exponential else "flips", spy)
    mechanism([1, 2, 3], sensitivity=1, epsilon=EPSILON, monotone=monotone)
    return seen[0]


def worst(law: Callable[..., list], rate: Fraction, shifts: list[tuple[int, ...]]) -> mp.mpf:
    """The worst log-ratio over all small neighbours."""
    return max(
        worst_log_ratio(law(base, rate), law([b + s for b, s in zip(base, shift, strict=True)], rate))
        for base in BASES
        for shift in shifts
    )


@pytest.mark.parametrize(
    ("mechanism", "law"), [(exponential, exponential_law), (permute_and_flip, permute_and_flip_law)]
)
def test_the_law_is_within_epsilon_on_neighbours(
    mechanism: Callable[..., int], law: Callable[..., list], monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = rate_used(mechanism, monkeypatch, monotone=False)
    assert worst(law, rate, EITHER_WAY) <= EPSILON + SLACK
    assert worst(law, rate, EITHER_WAY) > EPSILON / 2, "the bound should not be far from tight"
    assert worst(law, 2 * rate, EITHER_WAY) > EPSILON, "twin: the factor 2 forgotten"


@pytest.mark.parametrize(
    ("mechanism", "law"), [(exponential, exponential_law), (permute_and_flip, permute_and_flip_law)]
)
def test_monotone_scores_need_half_the_noise_and_only_they(
    mechanism: Callable[..., int], law: Callable[..., list], monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = rate_used(mechanism, monkeypatch, monotone=True)
    assert worst(law, rate, SAME_WAY) <= EPSILON + SLACK
    assert worst(law, rate, EITHER_WAY) > EPSILON, "twin: counts under replace-one are not monotone"


def test_bounded_range_holds_for_exponential_and_not_for_permute_and_flip() -> None:
    def spread(law: Callable[..., list]) -> mp.mpf:
        return max(
            log_range(law(b, EPSILON / 2), law([x + s for x, s in zip(b, shift, strict=True)], EPSILON / 2))
            for b in BASES
            for shift in EITHER_WAY
        )

    assert spread(exponential_law) <= EPSILON + SLACK
    assert spread(permute_and_flip_law) > EPSILON, "so its event must not be BoundedRange"


def test_permute_and_flip_is_never_worse_in_expectation() -> None:
    for base in BASES:
        em, pf = (law(base, EPSILON / 2) for law in (exponential_law, permute_and_flip_law))
        assert sum(p * b for p, b in zip(pf, base, strict=True)) >= sum(
            p * b for p, b in zip(em, base, strict=True)
        )


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_noisy_max_is_within_epsilon_on_neighbours(noise: str) -> None:
    def worst_at(scale: Fraction, shifts: list[tuple[int, ...]]) -> mp.mpf:
        law = [
            (
                noisy_max_law(base, scale, two_sided=noise == "laplace"),
                [
                    noisy_max_law(
                        [b + s for b, s in zip(base, shift, strict=True)], scale, two_sided=noise == "laplace"
                    )
                    for shift in shifts
                ],
            )
            for base in ((0, 1, 2), (5, 1, 0))
        ]
        return max(worst_log_ratio(own, other) for own, others in law for other in others)

    few = [(1, -1, -1), (-1, 1, 1), (1, -1, 0), (-1, -1, 1)]
    assert worst_at(2 / EPSILON, few) <= EPSILON + SLACK
    assert worst_at(1 / EPSILON, few) > EPSILON, "twin: the factor 2 forgotten"
    assert worst_at(1 / EPSILON, [(1, 0, 0), (0, 1, 1), (1, 1, 0)]) <= EPSILON + SLACK


SCORES = (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (exponential, lambda e: exponential_law(SCORES, e / 2)),
        (permute_and_flip, lambda e: permute_and_flip_law(SCORES, e / 2)),
        (report_noisy_max, lambda e: noisy_max_law(SCORES, 2 / e, two_sided=False)),
    ],
)
def test_draws_follow_the_law_and_not_its_neighbours(
    mechanism: Callable[..., int], law: Callable[[Fraction], list]
) -> None:
    bits, epsilon = ReplayedBits(5), Fraction(2)
    drawn = [mechanism(np.array(SCORES), epsilon=epsilon, bits=bits) for _ in range(12_000)]
    counts = np.bincount(drawn, minlength=len(SCORES))
    p_values = [chi_square(counts, [float(p) for p in law(epsilon * k / 10)]) for k in (10, 9, 11)]
    assert p_values[0] > FALSE_ALARM
    assert max(p_values[1:]) < FALSE_ALARM


@pytest.mark.parametrize("distances", [(0, 0), (0, 3), (2, 1)])
def test_flips_have_exactly_their_chances(distances: tuple[int, ...]) -> None:
    rate = Fraction(2, 5)
    walked = walk(lambda bits: tuple(flips(np.array(distances), rate, bits, width=3).tolist()), floor=2**-15)
    chances = [math.exp(-float(rate) * d) for d in distances]
    truth = {
        outcome: math.prod(p if o else 1 - p for o, p in zip(outcome, chances, strict=True))
        for outcome in product((False, True), repeat=2)
    }
    assert walked.leftover < 0.02
    assert walked.contradicts(truth) is None
    twin = {o: p**0.9 for o, p in truth.items()}
    assert distances == (0, 0) or walked.contradicts(twin) is not None


def test_flips_at_the_ends() -> None:
    far = np.array([0, 2**62, 0, 2**62])
    assert flips(far, Fraction(1, 3), ReplayedBits(1)).tolist() == [True, False, True, False]
    assert flips(far, Fraction(0), ReplayedBits(1)).all()
    # A head of 0 is left open for the tiniest chance, and then decided by exact arithmetic.
    zeros = ReplayedBits(choices=[0] + [0] * 40)
    assert flips(np.array([45]), Fraction(1), zeros).tolist() == [True]
    assert flips(np.array([45]), Fraction(1), ReplayedBits(choices=[0] + [2**64 - 1] * 40)).tolist() == [
        False
    ]


def test_floats_move_by_at_most_one_step_more() -> None:
    rng, sensitivity = np.random.default_rng(3), 1001.0
    # Where the quotient crosses a power of two, two neighbours are rounded to different precisions.
    low = 2.0**29 * sensitivity - rng.integers(0, 1001 * 2**12, 200_000) * 2.0**-12
    high = low + sensitivity
    assert np.all(high - low == sensitivity), "the declared sensitivity holds for the floats themselves"
    first, second = scores(low, sensitivity), scores(high, sensitivity)
    moved = np.abs(first.units - second.units).max()
    assert moved <= first.sensitivity == STEPS + 1
    assert moved > STEPS, "twin: without the extra step the charge would be too small"
    assert first.step == Fraction(sensitivity) / STEPS


def test_fractions_keep_their_sensitivity_exactly() -> None:
    sensitivity = Fraction(1, 7)
    low = [Fraction(k, 10**9 + 7) * 100 for k in range(1, 2000, 7)]
    first, second = scores(low, sensitivity), scores([x + sensitivity for x in low], sensitivity)
    assert np.array_equal(second.units - first.units, np.full(len(low), STEPS))
    assert first.sensitivity == STEPS


def test_no_float_is_refused_for_its_value() -> None:
    units = scores([math.nan, -math.inf, 0.0, math.inf], 1.0).units
    assert units[0] == units[1] < units[2] < units[3]


@pytest.mark.parametrize("law", [exponential_law, permute_and_flip_law])
@pytest.mark.parametrize("beta", [0.5, 0.1, 0.01])
def test_the_utility_bound_holds(law: Callable[..., list], beta: float) -> None:
    for base in [(0,) * 7 + (20,), (0, 10, 20, 30), (5, 5, 5, 5)]:
        loss = selection_loss(len(base), epsilon=Fraction(1), beta=beta)
        p = law(base, Fraction(1, 2))
        assert sum(p[i] for i, b in enumerate(base) if b < max(base) - loss) <= beta


def test_a_thirtieth_of_the_utility_bound_is_none() -> None:
    missed = sum(exponential_law((0,) * 1000 + (1,), Fraction(1, 2))[:-1])
    for beta in (0.5, 0.1, 0.01):
        loss = selection_loss(1001, epsilon=Fraction(1), beta=beta) / 30
        assert loss < 1
        assert missed > beta


def test_the_utility_bound_knows_ties_monotony_and_rounding() -> None:
    plain = selection_loss(100, epsilon=1.0, beta=0.05)
    assert plain == pytest.approx(2 * math.log(100 / 0.05))
    assert selection_loss(100, epsilon=1.0, beta=0.05, best=10) == pytest.approx(2 * math.log(10 / 0.05))
    assert selection_loss(100, epsilon=1.0, beta=0.05, monotone=True) == pytest.approx(plain / 2)
    assert plain < selection_loss(100, epsilon=1.0, beta=0.05, rounded=True) < plain * 1.00001
    in_thirds = selection_loss(100, sensitivity=3, epsilon=Fraction(1, 2), beta=0.05)
    assert in_thirds == pytest.approx(6 * plain, rel=1e-12)
    assert plain >= 2 * math.log(100 / 0.05)
    steps = 2**20  # a rate for one step more, and 3/4 of a step for each of two scores
    rounded = selection_loss(100, sensitivity=3, epsilon=1.0, beta=0.05, rounded=True)
    assert rounded - 3 * plain == pytest.approx((3 * plain + 1.5 * 3) / steps, rel=1e-6)


@pytest.mark.parametrize("bad", [{"beta": 0.0}, {"beta": 1.0}, {"best": 0}, {"best": 101}])
def test_the_utility_bound_refuses_what_is_no_chance_and_no_number_of_ties(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        selection_loss(100, epsilon=1.0, **({"beta": 0.05} | bad))  # type: ignore[arg-type]
    assert selection_loss(1, epsilon=1.0, beta=0.05, best=1) == pytest.approx(2 * math.log(20))


@pytest.mark.parametrize("mechanism", [exponential, permute_and_flip, report_noisy_max])
@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"epsilon": 0},
        {"epsilon": True},
        {"epsilon": math.inf},
        {"epsilon": "1"},
        {"sensitivity": 0},
        {"sensitivity": math.nan},
        {"scores": []},
        {"scores": [[1, 2]]},
        {"scores": ["a"]},
        {"scores": [True, False]},
        {"scores": [0.5, Fraction(1, 2)]},
    ],
)
def test_bad_parameters_are_refused(mechanism: Callable[..., int], bad: dict) -> None:
    given = {"scores": [1, 2, 3], "sensitivity": 1, "epsilon": 1.0} | bad
    with pytest.raises(InputError):
        mechanism(given.pop("scores"), **given)


def test_noisy_max_refuses_other_noise() -> None:
    with pytest.raises(InputError, match="laplace"):
        report_noisy_max([1, 2], epsilon=1.0, noise="gumbel")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [{"beta": 0}, {"beta": 1.0}, {"candidates": 0}, {"best": 9}, {"epsilon": 0}])
def test_the_utility_bound_refuses(bad: dict) -> None:
    given = {"candidates": 5, "epsilon": 1.0, "beta": 0.1} | bad
    with pytest.raises(InputError):
        selection_loss(given.pop("candidates"), **given)


def test_a_million_candidates_with_one_far_ahead() -> None:
    secret = np.zeros(10**6, dtype=np.int64)
    secret[123_456] = 1000
    bits = ReplayedBits(9)
    for mechanism in (exponential, permute_and_flip, report_noisy_max):
        assert mechanism(secret, epsilon=1.0, bits=bits) == 123_456
        assert mechanism(secret / 7, sensitivity=1 / 7, epsilon=1.0, bits=bits) == 123_456
