"""The odometer's bound holds at every time at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError, NoRuleError
from holdfast.privacy import Filter, Odometer, events

KINDS = ("mixture", "filter", "stitched")
DELTA = 0.05
RUNS = 4000
# A true chance of 0.05 gives 292 misses or more in 4000 runs with probability below 1e-9.
MOST_MISSES = 292


@pytest.fixture(scope="module")
def losses() -> tuple[np.ndarray, np.ndarray]:
    """The privacy loss of 4000 runs of 400 randomized responses, while V grows by seven orders."""
    steps = 400
    epsilons = 1e-4 * 1.02 ** np.arange(steps)
    generator = np.random.default_rng(20240601)
    truth = generator.random((RUNS, steps)) < 1 / (1 + np.exp(-epsilons))
    return epsilons, np.cumsum(np.where(truth, epsilons, -epsilons), axis=1)


def misses(losses: np.ndarray, bounds: np.ndarray) -> int:
    return int((losses > bounds).any(axis=1).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_misses_than_delta(kind, losses) -> None:  # type: ignore[no-untyped-def]
    epsilons, paths = losses
    state, bounds = Odometer(DELTA, kind), []
    for epsilon in epsilons:
        state = state.charge(events.PureMechanism(epsilon))
        bounds.append(state.epsilon)
    assert misses(paths, np.array(bounds)) < MOST_MISSES


def test_a_bound_for_one_time_is_caught(losses) -> None:  # type: ignore[no-untyped-def]
    """The twin: the fixed-time bound, read at every time."""
    epsilons, paths = losses
    v = np.cumsum(epsilons**2)
    assert misses(paths, np.sqrt(2 * v * math.log(1 / DELTA)) + v / 2) > MOST_MISSES


@pytest.mark.parametrize("kind", KINDS)
def test_the_formulas(kind) -> None:  # type: ignore[no-untyped-def]
    """Whitehouse et al. 2023, written again with y* from its own formula (corrected: +2 epsilon under the root)."""
    delta, around, v = 1e-6, 1.0, 0.02
    log_delta = math.log(1 / delta)
    y = (-math.sqrt(2 * log_delta) + math.sqrt(2 * log_delta + 2 * around)) ** 2
    assert math.sqrt(2 * y * log_delta) + y / 2 == pytest.approx(around)
    gamma = y / (2 * log_delta + math.log(1 + 2 * log_delta) + 1)
    v0 = y / 100
    expected = {
        "filter": math.sqrt(2 * y * log_delta) / 2
        + math.sqrt(2 * log_delta) * v / (2 * math.sqrt(y))
        + v / 2,
        "mixture": math.sqrt(2 * (v + gamma) * math.log(math.sqrt((v + gamma) / gamma) / delta)) + v / 2,
        "stitched": 1.7 * math.sqrt(v * (math.log(math.log(2 * v / v0)) + 0.72 * math.log(5.2 / delta)))
        + v / 2,
    }
    state = Odometer(delta, kind).charge(events.PureMechanism(math.sqrt(v)))
    assert state.epsilon == pytest.approx(expected[kind], rel=1e-9)


def test_at_its_centre_the_line_meets_the_filter() -> None:
    budget = Filter.approx(1, 1e-6)
    state = Odometer(1e-6, "filter", around=1).charge(events.PureMechanism(math.sqrt(budget.limit)))
    assert state.epsilon == pytest.approx(1.0, rel=1e-6)
    mixture = Odometer(1e-6, around=1).charge(events.PureMechanism(math.sqrt(budget.limit)))
    assert 1.0 < mixture.epsilon < 1.12  # the price of holding at every time


@given(st.lists(st.floats(1e-6, 1.0), max_size=8), st.sampled_from(KINDS))
def test_it_only_grows_and_order_does_not_matter(epsilons: list[float], kind) -> None:  # type: ignore[no-untyped-def]
    forward = backward = Odometer(1e-6, kind)
    assert forward.epsilon == 0.0
    for first, last in zip(epsilons, reversed(epsilons), strict=True):
        previous = forward.epsilon
        forward, backward = (
            forward.charge(events.PureMechanism(first)),
            backward.charge(events.PureMechanism(last)),
        )
        assert forward.epsilon > 0.0
        assert forward.epsilon >= previous
    assert forward.epsilon == backward.epsilon
    assert forward.charge(events.Nothing()).epsilon == forward.epsilon


def test_only_pure_charges() -> None:
    for event in (events.Gaussian(1, 10), events.ConcentratedMechanism(1), events.ApproxMechanism(1, 1e-6)):
        with pytest.raises(NoRuleError):
            Odometer(1e-6).charge(event)


def test_bad_input() -> None:
    for delta in (0, 1, -1, math.nan, True, None):
        with pytest.raises(InputError):
            Odometer(delta)  # type: ignore[arg-type]
    for around in (0, -1, math.nan, True):
        with pytest.raises(InputError):
            Odometer(1e-6, around=around)
    with pytest.raises(InputError, match="kind"):
        Odometer(1e-6, "best")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Odometer(1e-6, spent=-1)
