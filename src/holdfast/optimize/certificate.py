"""How far above the least loss the result can be: one theorem for each rule of steps, then the population.

Notation: T steps, d coordinates, D the diameter of the region, r its radius around the start, G a bound on every
row's gradient (penalty included), H strong convexity, L smoothness, sigma the sub-Gaussian scale of the noise in
one coordinate of the mean gradient. Proofs: docs/learn.md.
"""

from __future__ import annotations

import math

from holdfast.mechanisms.values import ROUND_UP
from holdfast.optimize.objective import Loss
from holdfast.session.footing import Footing

SCORE = 1 << 20
"""Grid steps in the greatest loss of a row, counted from the start, for the choice among runs."""


def table_excess(loss: Loss, rule: str, iterations: int, sigma: float, beta: float) -> tuple[float, float]:
    """(excess with probability 1 - beta, expected excess) of T noisy steps, on the rows themselves.

    Guarantee: with N = sigma (sqrt d + sqrt(2 ln(2T/beta))), which bounds the noise of all steps, and G' = G + N:
      convex            3/2 D G'/sqrt T + D sigma sqrt(2 ln(2/beta)/T)
      strongly-convex   (G'^2/H)(1 + ln T)/T + 2 sigma^2 ln(2/beta)/(H T)
      smooth            L r^2/(2T) + D sigma sqrt(2 ln(2/beta)/T) + N^2/L
      smooth-last       as smooth, plus T (N + rounding)^2/(2L), for the last iterate in place of the average
    each plus D*rounding. In expectation the middle terms vanish. And with M = N + rounding, q = 1 - H/L and
    p_t = q^t r + M/H, for the last iterate
      smooth-strong     L/2 p_{T-1}^2 + M p_T
    for which no better expectation is claimed.
    Requires: noise of mean zero, independent over coordinates, each sub-Gaussian with `sigma` given the past.
    Reference: docs/learn.md. Zinkevich 2003; Hazan, Agarwal, Kale 2007.
    """
    T, d, region = iterations, loss.dimension, loss.region
    D, r, G = region.diameter, region.radius, slope(loss)
    noise = noise_norm(d, T, sigma, beta)
    likely = math.sqrt(2 * math.log(2 / beta))
    grid = D * loss.rounding
    if rule == "convex":
        expected = 1.5 * D * (G + noise) / math.sqrt(T) + grid
        sure = expected + D * sigma * likely / math.sqrt(T)
    elif rule == "strongly-convex":
        harmonic = (1 + math.log(T)) / (loss.strong * T)
        expected = (G**2 + d * sigma**2) * harmonic + grid
        sure = (G + noise) ** 2 * harmonic + (sigma * likely) ** 2 / (loss.strong * T) + grid
    elif rule == "smooth-strong":
        assert loss.smooth is not None
        q, error = max(0.0, 1 - loss.strong / loss.smooth), noise + loss.rounding
        before, after = (q**t * r + error / loss.strong for t in (T - 1, T))
        sure, expected = loss.smooth / 2 * before**2 + error * after, math.inf
    else:
        assert loss.smooth is not None
        L = loss.smooth
        expected = L * r**2 / (2 * T) + d * sigma**2 / L + grid
        sure = L * r**2 / (2 * T) + D * sigma * likely / math.sqrt(T) + noise**2 / L + grid
        if rule == "smooth-last":  # a step raises the loss by at most the square of its error over 2L
            expected += T * (math.sqrt(d) * sigma + loss.rounding) ** 2 / (2 * L)
            sure += T * (noise + loss.rounding) ** 2 / (2 * L)
    return sure * ROUND_UP, expected * ROUND_UP


def noise_norm(d: int, iterations: int, sigma: float, beta: float) -> float:
    """Hsu, Kakade, Zhang 2012: a sub-Gaussian vector is longer than this with probability at most beta/(2T)."""
    return sigma * (math.sqrt(d) + math.sqrt(2 * math.log(2 * iterations / beta)))


def slope(loss: Loss) -> float:
    return loss.step * loss.norm + loss.penalty * loss.region.reach


def rules(loss: Loss) -> tuple[str, ...]:
    """The rules whose conditions the loss declares."""
    found = ["convex"]
    if loss.strong > 0:
        found.append("strongly-convex")
    if loss.smooth is not None:
        found += ["smooth", "smooth-last"]
    if loss.strong > 0 and loss.smooth is not None:
        found.append("smooth-strong")
    return tuple(found)


def population_part(loss: Loss, footing: Footing) -> tuple[float, float]:
    """(what the population adds to the excess, the chance that is left for the table's part).

    Guarantee: if the table's part fails with at most that chance, given the rows and everything before, then
    the excess on the population is among the claims that hold together with the session's confidence.
    The loss at the population's best point, minus that at theta, is a query that was chosen by all that was told,
    the steps of this descent included; a row's lies within G D of 0 on either side. Where the leave-out theorem
    covers all that was told, it adds 2 G D times the one side of Corollary A, and the table's part has the chance that
    a place keeps for noise. Else by transfer: 2 G D (alpha + o), and the table's part may overshoot by its chance times
    its greatest value, G D plus what the penalty adds.
    On a fresh table, if that is less: uniform convergence over the region, and Hoeffding's inequality at the
    best point, each with a third of the chance of an outright claim.
    Reference: docs/theorems.md, Theorems 43, 91 and 21.
    """
    promise, region = footing.promise, loss.region
    if promise.target == "table":
        return 0.0, promise.allowance
    steep = loss.step * loss.norm + loss.rounding
    length = 2 * steep * region.diameter
    if footing.covered:
        chosen = length * footing.beyond(footing.covered_chance) * ROUND_UP, footing.noise_chance
    else:
        greatest = 0.5 + loss.penalty * region.reach**2 / (2 * length)
        chosen = length * footing.transfer * ROUND_UP, promise.allowance / greatest
    if not footing.fresh:
        return chosen
    chance = footing.outright / 3
    best = 2 * steep * region.radius * math.sqrt(math.log(1 / chance) / (2 * footing.units))
    return min(chosen, ((loss.complexity(footing.units, chance) + best) * ROUND_UP, chance))


def score_unit(loss: Loss) -> float:
    return (loss.step * loss.norm + loss.rounding) * loss.region.radius / SCORE
