"""How far above the least loss the result can be: one theorem for each rule of steps, then the population.

Notation: T steps, d coordinates, D the diameter of the region, r its radius around the start, G a bound on every
row's gradient (penalty included), H strong convexity, L smoothness, sigma the sub-Gaussian scale of the noise in
one coordinate of the mean gradient. Proofs: docs/learn.md.
"""

from __future__ import annotations

import math

from holdfast.mechanisms.values import ROUND_UP
from holdfast.session.minimize.loss import Loss
from holdfast.session.promise import Promise

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
    Reference: docs/learn.md. Zinkevich 2003; Hazan, Agarwal, Kale 2007; theory 1.2, 2.4(5).
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


def population_part(loss: Loss, promise: Promise, n: int) -> tuple[float, float]:
    """(what the population adds to the excess, the chance that is left for the table's part).

    A row's loss, counted from the start, lies in an interval of some length. Two ways, and public numbers say
    which is less. By uniform convergence over the region: outright chances, which together stay within
    `outright`. By the transfer theorem: whether the claim fails is decided by theta, which is released, so the
    gap at theta is at most the promise's term; the table's excess and the gap at the population's optimum
    (Hoeffding) enter by their expected overshoot, at most their chance times their greatest value.
    """
    if promise.target == "table":
        return 0.0, promise.allowance
    region = loss.region
    length = 2 * (loss.step * loss.norm + loss.rounding) * region.radius
    chance = outright(promise) / 3
    best = length * math.sqrt(math.log(1 / chance) / (2 * n))
    uniform = (loss.complexity(n, chance) + best) * ROUND_UP
    greatest = 1 + loss.penalty * region.reach**2 / (2 * length)
    half = promise.allowance / greatest / 2
    best = length * math.sqrt(math.log(1 / half) / (2 * n))
    transfer = (length * (promise.population + promise.slack) + best) * ROUND_UP
    return (uniform, chance) if uniform <= transfer else (transfer, half)


def outright(promise: Promise) -> float:
    """The chance with which a claim may fail for reasons that need no transfer.

    Let a level's other claims have overshoots of (1-w) beta o in all, width h + o + alpha, and let this one
    fail with chance c. If the others failed with chance beta - c, then (beta-c)(o + alpha) < (1-w) beta o +
    alpha beta, which c (o + alpha) <= w beta o excludes. So all together fail with chance at most beta.
    """
    return promise.allowance / max(1.0, promise.slack + promise.population)


def score_unit(loss: Loss) -> float:
    return (loss.step * loss.norm + loss.rounding) * loss.region.radius / SCORE
