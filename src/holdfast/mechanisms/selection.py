"""Private choice: a candidate with a high score, and nothing else about the scores."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from holdfast.check import exact_positive, integer, probability
from holdfast.mechanisms.flips import flips
from holdfast.mechanisms.grid_scores import STEPS
from holdfast.mechanisms.grid_scores import scores as on_grid
from holdfast.mechanisms.values import ROUND_UP
from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.choice import choice


def exponential(
    scores: ArrayLike,
    *,
    sensitivity: float | Fraction = 1,
    epsilon: float | Fraction,
    monotone: bool = False,
    bits: Bits | None = None,
) -> int:
    """The index of a candidate, with probability proportional to exp(epsilon*score/(2*sensitivity)).

    Guarantee: epsilon-bounded-range, hence epsilon-DP and epsilon^2/8-zCDP, exactly, if each score differs by
    at most `sensitivity` between neighbours. `monotone` doubles the exponent: it promises that between any
    two neighbours all scores move the same way, as counts do when a row is added. Replacing a row may raise
    one count and lower another, so with replace-one neighbours it is false for counts.
    Requires: integers, fractions, or floats, which are rounded to a grid (see `scores`).
    Reference: McSherry and Talwar 2007; bounded range: Durfee and Rogers 2019, Cesar and Rogers 2021.
    Cost: `events.BoundedRange(epsilon)`. About 20 ns a candidate, whatever the scores are.
    """
    secret = on_grid(scores, sensitivity)
    return choice(secret.units, _rate(secret.sensitivity, epsilon, monotone), bits)


def permute_and_flip(
    scores: ArrayLike,
    *,
    sensitivity: float | Fraction = 1,
    epsilon: float | Fraction,
    monotone: bool = False,
    bits: Bits | None = None,
) -> int:
    """The index of a candidate; never a worse expected score than `exponential` at the same epsilon.

    Guarantee: epsilon-DP, exactly, under the same promises as `exponential`; not bounded-range, so choose
    `exponential` where zCDP is the currency.
    The paper walks the candidates in random order and stops at the first accepted one. Stopping tells the
    number of good candidates through time. Here every coin is flipped and one of the accepted candidates is
    drawn uniformly, which is the same law, because a random order meets each of them first equally often.
    Reference: McKenna and Sheldon 2020, Algorithm 1, Theorems 1 and 2.
    Cost: `events.PureMechanism(epsilon)`. About 25 ns a candidate; what still depends on the scores is
    copying the accepted indices, at most 8 bytes each.
    """
    secret = on_grid(scores, sensitivity)
    bits = system_bits() if bits is None else bits
    distances = secret.units.max() - secret.units
    accepted = np.flatnonzero(flips(distances, _rate(secret.sensitivity, epsilon, monotone), bits))
    return int(accepted[bits.below(accepted.size)])


def selection_loss(
    candidates: int,
    *,
    sensitivity: float | Fraction = 1,
    epsilon: float | Fraction,
    beta: float,
    best: int = 1,
    monotone: bool = False,
    rounded: bool = False,
) -> float:
    """How far the chosen score may be below the best one: more than this with probability at most `beta`.

    Guarantee: (2*sensitivity/epsilon)*(ln(candidates/best) + ln(1/beta)), rounded up; half of that for
    monotone scores. `best` is how many candidates are known to share the best score (1 is always right);
    `rounded` adds what the grid of floats and fractions costs. Holds for `exponential` and
    `permute_and_flip`.
    Reference: McSherry and Talwar 2007; Dwork and Roth 2014, Theorem 3.11.
    """
    n, beta = integer("candidates", candidates), probability("beta", beta)
    top = integer("best", best, most=n)
    delta = exact_positive("sensitivity", sensitivity)
    scale = (1 if monotone else 2) * delta / exact_positive("epsilon", epsilon)
    loss = float(scale) * (math.log(n / top) + math.log(1 / beta)) * ROUND_UP
    # A rate for 2^20 + 1 steps instead of 2^20, and at most 3/4 step of rounding for each of two scores.
    return loss * (1 + 1 / STEPS) + 1.5 * float(delta) / STEPS if rounded else loss


@lru_cache(maxsize=1024, typed=True)
def _rate(sensitivity: Fraction, epsilon: float | Fraction, monotone: bool) -> Fraction:
    return exact_positive("epsilon", epsilon) / ((1 if monotone else 2) * sensitivity)
