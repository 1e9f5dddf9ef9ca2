"""Means and second moments: exact sums, one row's influence, and the noise that was asked for."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.learn import moments
from holdfast.learn.moments import (
    GRAM_SENSITIVITY_SQUARED,
    gram_deviation,
    gram_rounding,
    mean_sensitivity_squared,
    noisy_gram,
    noisy_mean,
)

SIDE = 1 << 15


@pytest.fixture
def told(monkeypatch: Any) -> list[Any]:
    """The whole numbers before noise, which is left out."""
    seen: list[Any] = []

    def add(values: Any, variance: Fraction) -> Any:
        seen.append(np.asarray(values))
        return np.asarray(values)

    monkeypatch.setattr(moments, "add_gaussian", add)
    return seen


def test_without_noise_they_are_the_means_up_to_the_grid(told: list[Any]) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (3000, 4))
    assert noisy_mean(rows, Fraction(1)) == pytest.approx(rows.mean(axis=0), abs=1 / SIDE)
    short = rows / 2.5
    exact = short.T @ short / 3000
    gram = noisy_gram(short, Fraction(1))
    assert np.linalg.norm(gram - exact, 2) <= gram_rounding(4)
    assert (gram == gram.T).all()
    assert all(values.dtype == np.int64 for values in told)


def test_a_row_moves_the_sums_by_the_stated_sensitivity_and_no_more(told: list[Any]) -> None:
    """The worst pairs attain it: opposite corners for the mean, right angles for the second moments."""
    corners = [np.array(signs, dtype=float) for signs in itertools.product((-1, 1, 5), repeat=2)]
    axes = [
        np.array([1.0, 0.0]),
        np.array([0.0, 1.0]),
        np.array([0.6, 0.8]),
        np.zeros(2),
        np.array([9.0, 9.0]),
    ]
    most = {"mean": 0, "gram": 0}
    for name, release, kinds in (("mean", noisy_mean, corners), ("gram", noisy_gram, axes)):
        for one, other in itertools.product(kinds, repeat=2):
            told.clear()
            for row in (one, other):
                release(np.stack([row, np.array([0.3, -0.2])]), Fraction(1))
            moved = (told[0] - told[1]).tolist()
            most[name] = max(most[name], sum(step**2 for step in moved))
    assert mean_sensitivity_squared(2) * 0.999 < most["mean"] <= mean_sensitivity_squared(2)
    assert GRAM_SENSITIVITY_SQUARED * 0.999 < most["gram"] <= GRAM_SENSITIVITY_SQUARED


def test_the_noise_has_the_stated_deviation() -> None:
    variance = Fraction(10**16)
    noise = noisy_gram(np.zeros((10, 60)), variance)[np.triu_indices(60)]
    assert noise.std() == pytest.approx(gram_deviation(variance, 10), rel=0.1)
    assert gram_deviation(variance, 10) == pytest.approx(1e8 / 10 / 2**30)
