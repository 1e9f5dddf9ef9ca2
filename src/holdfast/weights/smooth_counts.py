"""Noisy counts of ordered groups without most of their noise: spikes and smooth stretches stand out of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_THRESHOLD = 1.5
"""So many standard deviations of noise a difference must have; larger ones are kept the more the larger they are."""


def smoothed(noisy: Array, deviation: float) -> Array:
    """Counts nearer to the true ones, from counts of ordered groups with white noise of this deviation.

    A function of released numbers. The differences of neighbouring groups, of pairs of groups, and so on (Haar), at
    every shift and all averaged, are shrunk by the garrote: what is hard to tell from noise is left out, and a spike
    keeps nearly all of its height. The ends are mirrored.
    Reference: Coifman and Donoho 1995, Translation-Invariant De-Noising; Gao 1998, Wavelet Shrinkage Denoising Using
    the Non-Negative Garrote. Cost: n log n for n groups.
    """
    levels = max(0, len(noisy) - 1).bit_length()
    rough = np.resize(np.concatenate([noisy, noisy[::-1]]), 2 << levels)
    kept, least = [], max(_THRESHOLD * deviation, 1e-300)
    for level in range(levels):
        later = np.roll(rough, -(1 << level))
        away, rough = (rough - later) / np.sqrt(2), (rough + later) / np.sqrt(2)
        kept.append(away * (1 - (least / np.maximum(np.abs(away), least)) ** 2))
    for level in reversed(range(levels)):
        away = kept[level]
        rough = ((rough + away) + np.roll(rough - away, 1 << level)) / np.sqrt(8)
    return rough[: len(noisy)]


def drawn_together(noisy: Array, deviation: float, clear: float) -> Array:
    """Counts nearer to the true ones, from counts of groups without an order with white noise of this deviation.

    A function of released numbers. Counts below `clear` deviations are drawn to their mean, the more the less of their
    spread the noise leaves for them: all the way where they are alike, as far as one can tell; others stay.
    Reference: Efron and Morris 1973, Stein's Estimation Rule and Its Competitors (empirical Bayes).
    """
    made, low = noisy.copy(), np.flatnonzero(noisy < clear * deviation)
    if len(low) > 1:
        mean, spread = float(noisy[low].mean()), float(noisy[low].var(ddof=1))
        own = max(0.0, spread - deviation**2)
        made[low] = mean + own / max(spread, 1e-300) * (noisy[low] - mean)
    return made


def of_total(counts: Array, total: float) -> Array:
    """The counts that are none below 0 and add up to `total`, nearest in squared distance: all less one number, or 0.

    Beside setting negative counts to 0, this adds nothing to the groups that are empty.
    """
    falling = np.sort(counts.ravel())[::-1]
    less = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = int(np.flatnonzero(falling > less)[-1])
    return np.asarray(np.maximum(counts - less[last], 0.0))
