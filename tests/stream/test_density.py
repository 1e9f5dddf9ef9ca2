"""Pan-private density: the exact law of the state, of an intrusion with the answer, and of two intrusions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest
from oracles.choice_tree import walk
from oracles.sparse_vector_law import laplace

from holdfast.errors import BudgetError, InputError
from holdfast.noise.bits import Bits, ReplayedBits
from holdfast.privacy import pure
from holdfast.stream import PanPrivateDensity

EPSILON = Fraction(1, 2)
STREAMS = [[], [0], [0, 0, 0], [1, 0], [1]]


def run(stream: list[int], bits: Bits, watch: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The states at the watched times."""
    density = PanPrivateDensity(2, epsilon=EPSILON, method="lecture", bits=bits)
    seen = []
    for t in range(len(stream) + 1):
        if t in watch:
            seen.append(density.state)
        if t < len(stream):
            density.see(stream[t])
    return tuple(seen)


def law(stream: list[int], *watch: int) -> dict[Hashable, Fraction]:
    walked = walk(lambda bits: run(stream, bits, watch), floor=Fraction(1, 1 << 40))
    assert walked.leftover == 0
    return walked.probabilities


def worst(first: dict, second: dict) -> float:
    ratios = []
    for outcome in {*first, *second}:
        p, q = first.get(outcome, 0), second.get(outcome, 0)
        ratios.append(math.inf if not p or not q else abs(math.log(p / q)))
    return max(ratios)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("user", [0, 1])
def test_the_state_is_private_at_every_moment(stream: list[int], user: int) -> None:
    """Neighbours: all appearances of one user taken out; the clock goes on without them."""
    without = [u for u in stream if u != user]
    for t in range(len(stream) + 1):
        absent = sum(u != user for u in stream[:t])
        assert worst(law(stream, t), law(without, absent)) <= EPSILON


def test_a_state_that_remembers_is_caught() -> None:
    """Twin: bits that start at 0 and are set when the user appears."""
    assert worst({(0, 0): Fraction(1)}, {(1, 0): Fraction(1)}) == math.inf


def test_the_state_s_law_is_the_stated_one_and_the_estimate_unbiased() -> None:
    states = law([0, 0], 2)
    one = Fraction(1, 2) + EPSILON / 4
    for (bits,), p in states.items():
        assert p == (one if bits[0] else 1 - one) / 2
    mean = sum(p * sum(bits) for (bits,), p in states.items()) / 2
    assert (mean - Fraction(1, 2)) / (EPSILON / 4) == Fraction(1, 2), "one of two users appeared"


def test_two_intrusions_are_not_private_and_nobody_says_so() -> None:
    present, absent = law([0], 0, 1), law([], 0)
    twice = {state + state: p for state, p in absent.items()}
    assert worst(present, twice) == math.inf
    assert "Not guaranteed: two intrusions" in (PanPrivateDensity.__doc__ or "")


def test_one_intrusion_and_the_answer_cost_twice_epsilon() -> None:
    noise = laplace(1 / EPSILON)
    reach = noise.support[-1]

    def joint(stream: list[int], watch: int) -> dict[Hashable, float]:
        out: dict[Hashable, float] = {}
        for states, p in law(stream, watch, len(stream)).items():
            early, late = states if len(states) == 2 else (states[0], states[0])
            for answer in range(-20, 22):
                mass = float(p) * float(noise.mass[answer - sum(late) + reach])
                out[early, answer] = out.get((early, answer), 0.0) + mass
        return out

    pairs = [worst(joint([0], 0), joint([], 0)), worst(joint([0, 0], 1), joint([], 0))]
    assert max(pairs) <= 2 * EPSILON + 1e-9
    assert max(pairs) > EPSILON, "twin: one epsilon does not pay for both"
    assert pure(PanPrivateDensity(2, epsilon=EPSILON).event).epsilon == 2 * EPSILON


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1.0, 5.0])
def test_the_best_bias_is_the_largest_that_keeps_the_ratios(epsilon: float) -> None:
    bias = PanPrivateDensity(2, epsilon=epsilon).bias
    assert 1 - 2 * bias >= math.exp(-epsilon)
    assert 1 + 2 * bias <= math.exp(epsilon)
    assert 1 - 2 * bias * Fraction(100001, 100000) < math.exp(-epsilon), "twin: slightly more is too much"
    if epsilon <= 0.5:
        assert bias > PanPrivateDensity(2, epsilon=epsilon, method="lecture").bias


@pytest.mark.parametrize("sampled", [None, 400])
def test_the_answer_is_near_and_told_once(sampled: int | None) -> None:
    misses, errors = 0, []
    for seed in range(60):
        density = PanPrivateDensity(1000, epsilon=1.0, sampled=sampled, bits=ReplayedBits(seed))
        for user in list(range(300)) * 2:
            density.see(user)
        answer = density.density()
        assert density.density() == answer
        misses += abs(answer - 0.3) > density.half_width(0.2)
        errors.append(answer - 0.3)
    assert misses <= 12
    assert abs(np.mean(errors)) < 0.05
    with pytest.raises(BudgetError):
        density.see(1)


def test_json_round_trip() -> None:
    density = PanPrivateDensity(50, epsilon=1.0, sampled=20)
    density.see(density.sampled[0])
    again = PanPrivateDensity.from_json(json.loads(json.dumps(density.to_json())))
    assert (again.state, again.sampled, again.to_json()) == (
        density.state,
        density.sampled,
        density.to_json(),
    )
    answer = again.density()
    assert PanPrivateDensity.from_json(json.loads(json.dumps(again.to_json()))).density() == answer


@pytest.mark.parametrize(
    "refused",
    [
        lambda: PanPrivateDensity(0, epsilon=1.0),
        lambda: PanPrivateDensity(10, epsilon=0),
        lambda: PanPrivateDensity(10, epsilon=math.nan),
        lambda: PanPrivateDensity(10, epsilon=True),
        lambda: PanPrivateDensity(10, epsilon=1.0, sampled=11),
        lambda: PanPrivateDensity(10, epsilon=1.0, method="lecture"),
        lambda: PanPrivateDensity(10, epsilon=1.0, method="other"),
        lambda: PanPrivateDensity(10, epsilon=1.0).see(10),
        lambda: PanPrivateDensity(10, epsilon=1.0).see(-1),
        lambda: PanPrivateDensity(10, epsilon=1.0).half_width(1),
        lambda: PanPrivateDensity.from_json({}),
    ],
)
def test_bad_parameters_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        refused()
