"""Which keys are shown: those whose noisy weight reaches a threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.noise.bits import Bits
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
