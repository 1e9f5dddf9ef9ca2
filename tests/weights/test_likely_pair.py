"""What is likely in a noisy pair of columns: less noise, the same signal, the guess where there is nothing more."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from holdfast.weights import likely_pair
from holdfast.weights.likely_pair import likely

ROWS, SHAPE = 50_000, (30, 24)
LISTED, ORDERED = (False, False), (True, True)


def pair(strength: float, smooth: bool = False) -> tuple[Any, Any]:
    """Counts of two columns that hang together along one direction; and those of independent ones."""
    draw = np.random.default_rng(0)
    first, second = draw.dirichlet(np.full(SHAPE[0], 5.0)), draw.dirichlet(np.full(SHAPE[1], 5.0))
    up, across = draw.choice([-1.0, 1.0], SHAPE[0]), draw.choice([-1.0, 1.0], SHAPE[1])
    if smooth:
        up, across = np.sort(up), np.sort(across)
    up, across = up - up @ first, across - across @ second
    even = ROWS * np.outer(first, second)
    return even * (1 + strength * np.outer(up, across)), even


def away(found: Any, truth: Any) -> float:
    return float(np.abs(found - truth).sum()) / ROWS / 2


def noise(deviation: float, seed: int = 1) -> Any:
    return deviation * np.random.default_rng(seed).standard_normal(SHAPE)


@pytest.mark.parametrize("deviation", [30.0, 60.0])
@pytest.mark.parametrize("smooth", [False, True])
def test_most_of_the_noise_goes_and_the_signal_stays(deviation: float, smooth: bool) -> None:
    truth, even = pair(0.4, smooth)
    noisy = truth + noise(deviation)
    found = likely(noisy, even, deviation, ORDERED if smooth else LISTED)
    assert away(found, truth) < 0.75 * away(noisy, truth)
    assert away(found, truth) < 0.75 * away(even, truth)
    blunt = likely(
        noisy, even, deviation / 3, ORDERED if smooth else LISTED
    )  # a twin: noise taken for signal
    assert away(blunt, truth) > 1.15 * away(found, truth)


def test_neighbours_of_an_ordered_column_lend_each_other_strength() -> None:
    truth, even = pair(0.4, smooth=True)
    noisy = truth + noise(60.0)
    assert away(likely(noisy, even, 60.0, ORDERED), truth) < 0.7 * away(
        likely(noisy, even, 60.0, LISTED), truth
    )


def test_what_is_only_noise_leaves_the_guess_and_sums_are_kept() -> None:
    truth, even = pair(0.0)
    errors = [away(likely(truth + noise(60.0, seed), even, 60.0, ORDERED), truth) for seed in range(20)]
    assert np.mean(errors) < 0.02 * away(truth + noise(60.0), truth)
    found = likely(pair(0.4)[0] + noise(60.0), even, 60.0, LISTED)
    assert found.sum(axis=1) == pytest.approx(even.sum(axis=1)) and found.sum() == pytest.approx(ROWS)


def test_without_noise_nothing_is_lost_and_one_value_says_nothing() -> None:
    truth, even = pair(0.3)
    assert away(likely(truth, even, 1e-3, LISTED), truth) < 1e-4
    alone = even.sum(axis=1)[:, None]
    assert likely(alone + noise(5.0)[:, :1], alone, 5.0, LISTED) == pytest.approx(alone)


def test_it_is_the_mean_over_all_fields_by_how_likely_each_is() -> None:
    """Cell by cell, with the covariance of the noisy counts written out."""
    draw = np.random.default_rng(3)
    even, deviation = np.outer([30.0, 50.0, 20.0], [0.5, 0.3, 0.2]), 2.0
    noisy = even + 4 * draw.standard_normal(even.shape)
    rows, columns = (likely_pair._fields(even.sum(axis=axis), True) for axis in (1, 0))
    means, logs, beside = [even.ravel()], [0.0], (noisy - even).ravel()
    eye = np.eye(even.size)
    flat = -0.5 * beside @ beside / deviation**2 - 0.5 * even.size * np.log(deviation**2)
    for (first, down), (second, across), strength in product(rows, columns, likely_pair._STRENGTHS):
        field = np.kron((down * first) @ down.T, (across * second) @ across.T) * strength * deviation**2
        whole = field + deviation**2 * eye
        solved = np.linalg.solve(whole, beside)
        logs.append(-0.5 * beside @ solved - 0.5 * np.linalg.slogdet(whole)[1] - flat)
        means.append(even.ravel() + field @ solved)
    weights = np.exp(np.array(logs) - max(logs))
    weights[1:] /= len(weights) - 1
    told = weights @ np.array(means) / weights.sum()
    assert likely(noisy, even, deviation, ORDERED).ravel() == pytest.approx(told, rel=1e-6)
