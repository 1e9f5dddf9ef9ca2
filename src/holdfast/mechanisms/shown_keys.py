"""Which keys are shown: those whose noisy weight reaches a threshold; and what a unit weighs that has several."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.logistic import exceeds
from holdfast.privacy.event import KeysByGaussian, KeysByLogistic


def shown_keys(
    weights: NDArray[np.int64], event: KeysByGaussian | KeysByLogistic, bits: Bits | None = None
) -> NDArray[np.int64]:
    """The places of the keys that are shown, of those whose weight is above 0.

    `weights` are in the units of the event: each unit's as `KeysByGaussian` says, or one for each of its keys.
    Guarantee: (rho, delta)-approximate zCDP, as `privacy.key_losses` computes of the event.
    Requires: keys are then named in an order that does not depend on the rows.
    Reference: docs/theorems.md, Theorems 49 (Gaussian) and 50 (logistic).
    Cost: `event`; one draw for each key that occurs.
    """
    if isinstance(event, KeysByGaussian):
        present = np.flatnonzero(weights)
        if not len(present):
            return present
        noisy = np.asarray(add_gaussian(weights[present], event.variance, bits))
        return present[noisy >= event.threshold]
    present = np.flatnonzero(weights >= event.least)
    scale = 1 / event.rate
    shown = [exceeds(int(weight) - event.threshold, scale, bits) for weight in weights[present]]
    return present[np.array(shown, dtype=np.bool_)]


def unit_weights(
    codes: NDArray[np.integer],
    lengths: NDArray[np.int64],
    size: int,
    event: KeysByGaussian | KeysByLogistic,
    bits: Bits | None = None,
) -> NDArray[np.int64]:
    """What each of `size` keys weighs for a block of units: `codes` are those of their events, unit after unit.

    A unit counts for at most `event.keys` different keys of its events, chosen by coins of its own if it has more; with
    t of them each weighs floor(scale/sqrt(t)), or 1 for logistic noise. A code of `size` or above is no key.
    Guarantee: what a unit adds depends on its events and its coins alone, as Theorems 49 and 50 require.
    Reference: docs/theorems.md, Theorem 120.
    """
    owners = np.repeat(np.arange(len(lengths)), lengths)
    known = codes < size
    pairs = np.unique(owners[known] * size + codes[known])
    owners, keys = np.divmod(pairs, max(size, 1))
    counts = np.bincount(owners, minlength=len(lengths))
    if counts.max(initial=0) > event.keys:
        coins = (bits or system_bits()).words(len(pairs))
        order = np.lexsort((coins, owners))
        owners, keys = owners[order], keys[order]
        ranks = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
        owners, keys = owners[ranks < event.keys], keys[ranks < event.keys]
        counts = np.minimum(counts, event.keys)
    scale = event.scale if isinstance(event, KeysByGaussian) else 0
    each = np.array([math.isqrt(scale**2 // t) if scale else 1 for t in range(1, event.keys + 1)], np.int64)
    weights = np.zeros(size, dtype=np.int64)
    np.add.at(weights, keys, each[counts[owners] - 1])
    return weights
