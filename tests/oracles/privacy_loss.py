"""The slow truth about privacy loss: mpmath for formulas, enumeration and linear programs for mechanisms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath as mp
import numpy as np

PRECISION = 60  # decimal digits


def gaussian_profile(epsilon: float, mu: float) -> mp.mpf:
    """Q(eps/mu - mu/2) - e^eps Q(eps/mu + mu/2), with digits to spare."""
    with mp.workdps(PRECISION):
        e, m = mp.mpf(epsilon), mp.mpf(mu)

        def q(x: mp.mpf) -> mp.mpf:
            return mp.erfc(x / mp.sqrt(2)) / 2

        return q(e / m - m / 2) - mp.exp(e) * q(e / m + m / 2)


def concentrated_delta(rho: float, epsilon: float, alpha: float) -> mp.mpf:
    """The bound of Canonne, Kamath and Steinke at one order, as printed."""
    with mp.workdps(PRECISION):
        a, r, e = mp.mpf(alpha), mp.mpf(rho), mp.mpf(epsilon)
        return mp.exp((a - 1) * (a * r - e)) * (1 - 1 / a) ** a / (a - 1)


def best_concentrated_delta(rho: float, epsilon: float) -> mp.mpf:
    """Its least value over a grid of orders, refined until the error is below 1e-14."""
    grid = [mp.mpf(10) ** (mp.mpf(i) / 8) for i in range(-80, 121)]
    for _ in range(9):
        values = [concentrated_delta(rho, epsilon, 1 + t) for t in grid]
        best = min(range(len(grid)), key=values.__getitem__)
        low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        grid = [low * (high / low) ** (mp.mpf(i) / 20) for i in range(21)]
    return min(values)


def randomized_response_delta(epsilons: Sequence[float], target: float) -> mp.mpf:
    """delta(target) of the product of randomized responses, over all 2^k outcomes."""
    with mp.workdps(PRECISION):
        total = mp.mpf(0)
        for flips in itertools.product((0, 1), repeat=len(epsilons)):
            p = q = mp.mpf(1)
            for flip, epsilon in zip(flips, epsilons, strict=True):
                high = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
                p *= (1 - high) if flip else high
                q *= high if flip else (1 - high)
            total += max(mp.mpf(0), p - mp.exp(mp.mpf(target)) * q)
        return total


def renyi(first: Sequence[float], second: Sequence[float], alpha: float) -> float:
    """The Rényi divergence of two laws on the same finite set; alpha = 1 is Kullback and Leibler's."""
    p, q = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if alpha == 1.0:
        return float(np.sum(p * np.log(p / q)))
    exponents = alpha * np.log(p) + (1.0 - alpha) * np.log(q)
    top = exponents.max()
    return float((top + math.log(np.exp(exponents - top).sum())) / (alpha - 1.0))


def max_log_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    return float(np.max(np.abs(np.log(np.asarray(first)) - np.log(np.asarray(second)))))


def binomial(trials: int, chance: Fraction) -> list[Fraction]:
    return [math.comb(trials, i) * chance**i * (1 - chance) ** (trials - i) for i in range(trials + 1)]


def sampled_sum(ones: int, rows: int, draws: int, epsilon: float, *, replace: bool) -> list[mp.mpf]:
    """The law of (sum of drawn 0/1 rows) + discrete Laplace of scale 1/epsilon, up to a common constant.

    Outputs past either end repeat the last ratio, so -1 .. draws+1 shows them all.
    """
    if replace:
        weights = binomial(draws, Fraction(ones, rows))
    else:
        weights = [
            Fraction(math.comb(ones, s) * math.comb(rows - ones, draws - s), math.comb(rows, draws))
            for s in range(draws + 1)
        ]
    with mp.workdps(PRECISION):
        return [
            mp.fsum(
                mp.mpf(w.numerator) / w.denominator * mp.exp(-epsilon * abs(y - s))
                for s, w in enumerate(weights)
            )
            for y in range(-1, draws + 2)
        ]


def sampled_laplace_loss(rows: int, draws: int, epsilon: float, *, replace: bool) -> float:
    """The exact pure loss of a Laplace count on sampled rows: worst table, worst output, both directions."""
    worst = mp.mpf(0)
    for ones in range(rows):
        first = sampled_sum(ones + 1, rows, draws, epsilon, replace=replace)
        second = sampled_sum(ones, rows, draws, epsilon, replace=replace)
        worst = max([worst, *(abs(mp.log(p / q)) for p, q in zip(first, second, strict=True))])
    return float(worst)


def worst_mechanism_with_replacement(rows: int, draws: int, epsilon: float) -> float:
    """The largest loss of any epsilon-DP mechanism run on draws with replacement, by a linear program.

    One output is enough: m(t) is its probability on the drawn tuple t over the values x, x' and other.
    Maximise E_S m subject to E_S' m = 1 and m(t) <= e^epsilon m(t') for tuples that differ in one place.
    """
    from scipy.optimize import linprog

    tuples = list(itertools.product(range(3), repeat=draws))
    index = {t: i for i, t in enumerate(tuples)}
    share = 1.0 / rows

    def law(replaced: int) -> np.ndarray:
        chance = [0.0, 0.0, 1.0 - share]
        chance[replaced] = share
        return np.array([math.prod(chance[v] for v in t) for t in tuples])

    constraints = []
    for t in tuples:
        for place in range(draws):
            for value in range(3):
                if value != t[place]:
                    row = np.zeros(len(tuples))
                    row[index[t]] = 1.0
                    row[index[(*t[:place], value, *t[place + 1 :])]] = -math.exp(epsilon)
                    constraints.append(row)
    found = linprog(
        -law(0), A_ub=np.array(constraints), b_ub=np.zeros(len(constraints)), A_eq=law(1)[None, :], b_eq=[1.0]
    )
    return math.log(-found.fun)


def general_with_replacement_bound(rows: int, draws: int, epsilon: float) -> float:
    """Least E with pi_0 + sum_j pi_j (e^(j eps) - E)_+ <= E pi_0."""
    pi = [float(w) for w in binomial(draws, Fraction(1, rows))]
    low, high = 1.0, math.exp(draws * epsilon)
    for _ in range(200):
        middle = (low + high) / 2
        total = pi[0] + sum(w * max(0.0, math.exp(j * epsilon) - middle) for j, w in enumerate(pi) if j)
        low, high = (middle, high) if total > middle * pi[0] else (low, middle)
    return math.log(high)


def discrete_gaussian(variance: float, shift: int, reach: int) -> list[mp.mpf]:
    """Probabilities of shift + N_Z(0, variance) on -reach .. reach."""
    with mp.workdps(PRECISION):
        v = mp.mpf(variance)
        total = mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / (2 * v)) for k in range(-2 * reach, 2 * reach + 1))
        return [mp.exp(-(mp.mpf(k - shift) ** 2) / (2 * v)) / total for k in range(-reach, reach + 1)]
