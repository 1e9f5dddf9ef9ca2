"""Counts without most of their noise: nearer to the truth, spikes kept, nothing added where nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.weights.smooth_counts import drawn_together, of_total, smoothed


def test_without_noise_nothing_changes() -> None:
    for size in (1, 2, 3, 16, 85):
        counts = np.random.default_rng(size).integers(0, 1000, size).astype(float)
        assert smoothed(counts, 0.0) == pytest.approx(counts)


def test_smooth_stretches_and_spikes_come_nearer_to_the_truth() -> None:
    draw, places = np.random.default_rng(0), np.arange(85)
    truth = 900 * np.exp(-(((places - 30) / 18) ** 2))
    spiked = truth.copy()
    spiked[[20, 60]] += 8000
    for counts, part in ((truth, 0.75), (spiked, 0.75)):
        noisy = counts + draw.normal(0, 30, (200, 85))
        made = np.array([smoothed(one, 30.0) for one in noisy])
        assert np.abs(made - counts).mean() < part * np.abs(noisy - counts).mean()
        half = np.array([smoothed(one, 15.0) for one in noisy])
        assert np.abs(made - counts).mean() < 0.9 * np.abs(half - counts).mean()  # which leaves noise
        assert made[:, 20].mean() == pytest.approx(counts[20], rel=0.02)


def test_what_is_rough_stays_rough() -> None:
    draw = np.random.default_rng(3)
    rough = draw.integers(0, 1000, 64).astype(float)
    noisy = rough + draw.normal(0, 30, (100, 64))
    made = np.array([smoothed(one, 30.0) for one in noisy])
    flat = np.array([smoothed(one, 300.0) for one in noisy])  # as if the noise were ten times as large
    assert np.square(made - rough).mean() < 1.2 * 30**2 < np.square(flat - rough).mean()


def test_groups_without_an_order_are_drawn_together_as_far_as_they_are_alike() -> None:
    draw = np.random.default_rng(4)
    alike, falling = np.full(500, 20.0), 4000.0 / np.arange(1, 501)
    for counts, part in ((alike, 0.1), (falling, 0.8)):
        noisy = counts + draw.normal(0, 30, (100, 500))
        made = np.array([drawn_together(one, 30.0, 3.0) for one in noisy])
        assert np.abs(made - counts).mean() < part * np.abs(noisy - counts).mean()
        half = np.array([drawn_together(one, 15.0, 3.0) for one in noisy])  # which takes noise for counts
        assert np.abs(made - counts).mean() < 0.9 * np.abs(half - counts).mean()
        assert (made[noisy >= 90] == noisy[noisy >= 90]).all()
    assert drawn_together(np.array([7.0]), 30.0, 3.0).tolist() == [7.0]
    assert drawn_together(np.zeros(3), 0.0, 3.0).tolist() == [0.0] * 3


def test_counts_of_a_total_are_the_nearest() -> None:
    draw = np.random.default_rng(1)
    for _ in range(50):
        counts, total = draw.normal(0, 5, 6), float(draw.integers(1, 30))
        made = of_total(counts, total)
        assert made.min() >= 0 and made.sum() == pytest.approx(total)
        others = draw.dirichlet(np.ones(6), 500) * total
        assert np.square(made - counts).sum() <= np.square(others - counts).sum(axis=1).min()


def test_empty_groups_stay_nearly_empty() -> None:
    draw = np.random.default_rng(2)
    noisy = np.append(10_000.0, np.zeros(99)) + draw.normal(0, 30, (100, 100))
    kept = np.array([of_total(one, 10_000.0)[1:].sum() for one in noisy])
    clipped = np.maximum(noisy, 0)[:, 1:].sum(axis=1)
    assert kept.mean() < 0.1 * clipped.mean()
