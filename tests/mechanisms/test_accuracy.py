"""Half-widths: the certified reach against exact sums over the noise's own law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.mechanisms.accuracy import (
    gaussian_reach,
    laplace_reach,
    most_noise,
    sample_reach,
    votes_reach,
)

ALLOWANCES = [0.4, 0.05, 1e-3, 1e-9]


def gaussian_law(variance: float) -> tuple[np.ndarray, np.ndarray]:
    reach = math.ceil(40 * math.sqrt(variance)) + 40
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-(x**2) / (2 * variance))
    return x, weight / weight.sum()


def laplace_law(scale: float) -> tuple[np.ndarray, np.ndarray]:
    reach = math.ceil(60 * scale) + 60
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(x) / scale)
    return x, weight / weight.sum()


def missed(x: np.ndarray, p: np.ndarray, h: float, overshoot: bool) -> float:
    return float((p * np.maximum(np.abs(x) - h, 0)).sum() if overshoot else p[np.abs(x) > h].sum())


@pytest.mark.parametrize("overshoot", [False, True])
@pytest.mark.parametrize("allowance", ALLOWANCES)
@pytest.mark.parametrize("size", [Fraction(1, 4), Fraction(3), Fraction(100), Fraction(20_000)])
def test_gaussian_and_laplace_reach(size: Fraction, allowance: float, overshoot: bool) -> None:
    for reach, law in ((gaussian_reach, gaussian_law), (laplace_reach, laplace_law)):
        noise = size if reach is gaussian_reach else Fraction(math.sqrt(size))
        x, p = law(float(noise))
        h = reach(noise, allowance, overshoot)
        assert missed(x, p, h, overshoot) <= allowance * (1 + 1e-9)
        if h > 20:  # and it is not much wider than it has to be
            assert missed(x, p, 0.9 * h - 2, overshoot) > allowance


def test_a_tail_is_not_an_overshoot() -> None:
    """The broken twin uses the tail's half-width where the theorem needs the overshoot's."""
    x, p = gaussian_law(10_000.0)
    tail = gaussian_reach(Fraction(10_000), 1e-3, False)
    assert missed(x, p, tail, False) <= 1e-3
    assert missed(x, p, tail, True) > 1e-3
    assert gaussian_reach(Fraction(10_000), 1e-3, True) > tail


@pytest.mark.parametrize("overshoot", [False, True])
@pytest.mark.parametrize("allowance", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("votes", [10, 500, 20_000])
def test_votes_reach(votes: int, allowance: float, overshoot: bool) -> None:
    for flip in (Fraction(1, 4), Fraction(1, 16)):
        a, h = float(flip), votes_reach(votes, flip, allowance, overshoot)
        ones = np.arange(votes + 1)
        estimates = (ones / votes - a) / (1 - 2 * a)
        for s in (0.0, 0.01, 0.3, 0.5, 1.0):
            p = stats.binom.pmf(ones, votes, a + (1 - 2 * a) * s)
            assert missed(estimates - s, p, h, overshoot) <= allowance * (1 + 1e-9)


@pytest.mark.parametrize("allowance", [1e-3, 1e-6])
def test_the_overshoot_of_votes_is_hoeffdings_integral(allowance: float) -> None:
    """2 sigma sqrt(2 pi) Q(z), sigma = 1/(2(1-2a) sqrt m), and no wider."""
    for votes, flip in ((500, Fraction(1, 4)), (20_000, Fraction(1, 16))):
        sigma = 1 / (2 * (1 - 2 * float(flip)) * math.sqrt(votes))
        truth = sigma * stats.norm.isf(allowance / (2 * sigma * math.sqrt(2 * math.pi)))
        assert votes_reach(votes, flip, allowance, True) == pytest.approx(truth, rel=1e-9)


def test_votes_reach_without_the_shift_by_one_is_caught() -> None:
    """The broken twin leaves out 1/(m(1-2a)); Zubkov-Serov then fails near one half."""
    caught = False
    for votes in range(2, 60):
        sigma = 1 / math.sqrt(votes)  # 1/(2(1-2a)sqrt(m)) at a = 1/4
        for allowance in (0.3, 0.1, 0.02):
            twin = sigma * max(1.0, stats.norm.isf(allowance / 2))
            ones = np.arange(votes + 1)
            estimates = (ones / votes - 0.25) / 0.5
            for s in np.linspace(0, 1, 41):
                p = stats.binom.pmf(ones, votes, 0.25 + 0.5 * s)
                caught |= missed(estimates - s, p, twin - 1e-12, False) > allowance
    assert caught


@pytest.mark.parametrize("overshoot", [False, True])
@pytest.mark.parametrize(("rows", "drawn"), [(50, 20), (200, 150), (1000, 40), (30, 30)])
def test_sample_reach(rows: int, drawn: int, overshoot: bool) -> None:
    scale, allowance = Fraction(3), 0.02
    h = sample_reach(drawn, rows, scale, allowance, overshoot)
    noise, q = laplace_law(3.0)
    for ones in (0, rows // 10, rows // 2):
        k = np.arange(drawn + 1)
        p = stats.hypergeom.pmf(k, rows, ones, drawn)
        errors = (k[:, None] + noise[None, :]) / drawn - ones / rows
        joint = p[:, None] * q[None, :]
        assert missed(errors, joint, h, overshoot) <= allowance * (1 + 1e-9)


def test_most_noise_ends_on_the_narrow_side() -> None:
    for half_width in (1, 7, 1000, 123_456):
        for reach, start in ((gaussian_reach, 4.0), (laplace_reach, 4.0)):
            noise = most_noise(lambda n, r=reach: r(n, 1e-4, False), half_width, start)
            assert reach(noise, 1e-4, False) <= half_width
            assert reach(noise * 2, 1e-4, False) > half_width


def test_subsampled_laplace_knows_the_grid_of_its_noise() -> None:
    """Noise of scale 10 on a sum of contributions up to 100 is not noise of scale 1/10 on a sum of bits."""
    sampling = sample_reach(50, 100, Fraction(1, 1000), 0.002, False)
    reach = sample_reach(50, 100, Fraction(10), 0.002, False, span=100) - sampling
    noise = np.abs(hf.mechanisms.laplace(np.zeros(100_000, dtype=np.int64), epsilon=0.1)) / (50 * 100)
    assert np.mean(noise > reach) <= 0.002
    twin = sample_reach(50, 100, Fraction(1, 10), 0.002, False) - sampling
    assert np.mean(noise > twin) > 0.5
