"""Report noisy max: add noise to every score and tell only who won."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from holdfast.check import exact_positive, one_of
from holdfast.mechanisms.grid_scores import scores as on_grid
from holdfast.noise.bits import Bits
from holdfast.noise.geometric import geometric_vector
from holdfast.noise.laplace import laplace_vector


def report_noisy_max(
    scores: ArrayLike,
    *,
    sensitivity: float | Fraction = 1,
    epsilon: float | Fraction,
    noise: Literal["laplace", "exponential"] = "exponential",
    monotone: bool = False,
    bits: Bits | None = None,
) -> int:
    """The index of the largest noisy score; the first one of equals.

    Guarantee: epsilon-DP, exactly, if each score differs by at most `sensitivity` between neighbours
    (`monotone` as in `exponential`). Given the noise of all others, candidate i wins if its own noise
    reaches a whole number t; for a neighbour t moves by at most k = 2*sensitivity (k = sensitivity if
    monotone), and both noises satisfy Pr[Z >= t + k] >= e^{-epsilon} Pr[Z >= t] over the integers. A fixed
    rule for ties keeps that form. The winning noisy score must not be released.
    Reference: Dwork and Roth 2014, Claim 3.9 (Laplace); Ding, Kifer et al. 2021 and McKenna and Sheldon 2020
    (exponential noise, which is permute-and-flip on a fine grid).
    Cost: `events.PureMechanism(epsilon)`. Some 10 ns a candidate.
    """
    secret = on_grid(scores, sensitivity)
    scale = (1 if monotone else 2) * secret.sensitivity / exact_positive("epsilon", epsilon)
    if one_of("noise", noise, ("laplace", "exponential")) == "laplace":
        drawn = laplace_vector(scale, secret.units.size, bits)
    else:
        drawn = geometric_vector(1 / scale, secret.units.size, bits)
    return int(np.argmax(secret.units + drawn))
