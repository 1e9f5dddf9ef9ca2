"""What stands out of noise in a pair of columns: less noise, the same signal, independence where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.weights.low_rank import denoised

ROWS, SHAPE = 50_000, (30, 24)


def pair(strength: float) -> tuple[Any, Any, Any]:
    """Counts of two columns that hang together along one direction."""
    draw = np.random.default_rng(0)
    first, second = draw.dirichlet(np.full(SHAPE[0], 5.0)), draw.dirichlet(np.full(SHAPE[1], 5.0))
    up, across = draw.choice([-1.0, 1.0], SHAPE[0]), draw.choice([-1.0, 1.0], SHAPE[1])
    up, across = up - up @ first, across - across @ second
    chances = np.outer(first, second) * (1 + strength * np.outer(up, across))
    return ROWS * chances, ROWS * first, ROWS * second


def away(found: Any, truth: Any) -> float:
    return float(np.abs(found - truth).sum()) / ROWS / 2


@pytest.mark.parametrize("deviation", [30.0, 60.0])
def test_most_of_the_noise_goes_and_the_signal_stays(deviation: float) -> None:
    truth, first, second = pair(0.2)
    noise = deviation * np.random.default_rng(1).standard_normal(SHAPE)
    found = denoised(truth + noise, first, second, deviation)
    alone = np.outer(first, second) / ROWS
    assert away(found, truth) < 0.5 * away(truth + noise, truth)
    assert away(found, truth) < 0.8 * away(alone, truth)
    blunt = denoised(truth + noise, first, second, deviation / 3)  # a twin that takes noise for signal
    assert away(blunt, truth) > 1.5 * away(found, truth)


def test_independent_columns_stay_independent_and_sums_are_kept() -> None:
    truth, first, second = pair(0.0)
    noise = 60.0 * np.random.default_rng(2).standard_normal(SHAPE)
    assert denoised(truth + noise, first, second, 60.0) == pytest.approx(truth)
    found = denoised(pair(0.4)[0] + noise, first, second, 60.0)
    assert found.sum(axis=1) == pytest.approx(first) and found.sum(axis=0) == pytest.approx(second)


def test_without_noise_nothing_is_lost_and_one_value_says_nothing() -> None:
    truth, first, second = pair(0.3)
    assert denoised(truth, first, second, 1e-6) == pytest.approx(truth, abs=1e-3)
    assert denoised(first[:, None], first, np.array([float(ROWS)]), 5.0) == pytest.approx(first[:, None])
