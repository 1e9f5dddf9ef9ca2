"""Bins from noisy counts: clear of the noise, in order, NULL by itself, and what stands in each."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.weights.column_bins import CLEAR, bins


def test_neighbours_are_put_together_until_they_are_clear_of_the_noise() -> None:
    noisy = np.array([500.0, 10.0, 5.0, 8.0, 400.0, 3.0, -4.0, 0.0])
    made = bins(noisy, 10.0, ordered=True, most=32, rows=900)
    assert made.places.tolist() == [
        0,
        1,
        1,
        1,
        2,
        2,
        2,
        2,
    ]  # the spikes stand alone, or with what ends the column
    assert np.bincount(made.places, weights=made.shares).tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert made.shares[1:4].tolist() == pytest.approx([1 / 3] * 3, abs=0.11)  # smoothed
    assert made.shares[-1] == 0.0  # a NULL that is not clear of the noise


def test_bins_are_about_as_many_as_are_asked_for() -> None:
    noisy = np.append(np.full(1000, 100.0), 0.0)
    for most in (2, 16, 32):
        made = bins(noisy, 1.0, ordered=True, most=most, rows=100_000)
        assert most <= made.size <= most + 1
        assert np.all(np.diff(made.places) >= 0)


def test_the_largest_categories_are_bins_and_the_rest_is_one() -> None:
    noisy = np.array([5.0, 900.0, -3.0, 200.0, 40.0, 300.0])
    made = bins(noisy, 10.0, ordered=False, most=2, rows=1442)
    assert made.places.tolist() == [2, 0, 2, 1, 2, 3]  # NULL is clear here
    assert made.shares[[0, 2, 4]].tolist() == pytest.approx([1 / 42, 1 / 42, 40 / 42])
    assert made.together(noisy).tolist() == pytest.approx([900, 200, 42, 300])
    assert made.table.sum(axis=1).tolist() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("ordered", [True, False])
def test_columns_of_nothing_of_one_value_and_of_null_only(ordered: bool) -> None:
    for noisy in (
        np.array([-5.0, 3.0]),
        np.array([1e4, 2.0]),
        np.array([1.0, -2.0, 0.0, 1e4]),
    ):
        made = bins(noisy, 10.0, ordered=ordered, most=32, rows=10_000)
        assert made.table.sum(axis=1).tolist() == pytest.approx([1.0] * made.size)
        assert np.all(made.shares >= 0)
        if noisy[-1] >= CLEAR * 10:
            assert made.shares[-1] == 1.0
