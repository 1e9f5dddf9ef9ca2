"""T4 and T4v: transfer terms from the posterior of one row, which is a martingale."""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.privacy.rounding import up
from holdfast.validity.search import least


@lru_cache(maxsize=1024)
def cosh_constant(beta: float) -> float:
    """C(beta) = inf over x of arccosh(e^{x^2/2}/beta)/x <= sqrt(2 ln(2/beta)); any x is valid."""
    value = least(lambda x: math.acosh(math.exp(x * x / 2.0) / beta) / x, 0.05, 12.0, 60)[0]
    return up(min(value, math.sqrt(2.0 * math.log(2.0 / beta))))


def posterior_term(beta: float, mu: float) -> float:
    """T4: (1/2) sqrt(e^{mu^2/4} - 1) C(beta), about 0.679 mu at beta = 0.05.

    Guarantee: E[q~(S) - q~(P) | E] <= result for events and queries that are functions of the transcript.
    Requires: all answers Gaussian, sum of (Delta/sigma_j)^2 <= mu^2 on every path; sigma_j and stopping may
    depend on the transcript, never on S. Reference: docs/theorems.md, Theorem 15.
    """
    return min(1.0, up(0.5 * math.sqrt(math.expm1(min(mu * mu, 2000.0) / 4.0)) * cosh_constant(beta)))


def vote_remainder(rows: int, total: int, flip: float, lam: float) -> tuple[float, float, float]:
    """(s^2, lambda_0, kappa) of T4v at lambda: what a third-order step leaves over. kappa may never be
    dropped."""
    a = flip
    shift = (1.0 - 2.0 * a) / rows
    s2 = shift * shift / (4.0 * a * (1.0 - a))
    eps0, tau3 = math.log1p(shift / a), (shift / a) ** 3 * (1.0 + shift / a)
    lam0 = lam * math.exp(min(300.0, s2 * total / 2.0))
    z = lam0 * eps0
    if s2 * total > 600.0 or z > 100.0:
        return s2, math.inf, math.inf
    kappa = 2.0 * tau3 * (lam0**2 / 16.0 + lam0**3 / (8.0 * math.sqrt(48.0)) + eps0 * lam0**4 / 768.0)
    kappa += (z**3 / 12.0 + z**6 / 11520.0) * math.exp(z / 2.0)
    return s2, lam0, kappa


@lru_cache(maxsize=4096)
def posterior_votes_term(rows: int, total: int, flip: float, beta: float) -> float:
    """T4v: (1/2) inf over lambda of arccosh(exp(s^2 N lambda_0^2/2 + N kappa)/beta)/lambda; any lambda is
    valid.

    Guarantee: as `posterior_term`. Requires: at most N votes, as `votes_profile`.
    Reference: docs/theorems.md, Theorem 16.
    """

    def at(log_lambda: float) -> float:
        lam = math.exp(log_lambda)
        s2, lam0, kappa = vote_remainder(rows, total, flip, lam)
        exponent = 0.5 * s2 * total * lam0 * lam0 + total * kappa - math.log(beta)
        # arccosh(e^y) = y + ln(1 + sqrt(1 - e^-2y)), which does not overflow
        return 0.5 * (exponent + math.log1p(math.sqrt(-math.expm1(-2.0 * exponent)))) / lam

    spread = (1.0 - 2.0 * flip) / (2.0 * rows) * math.sqrt(total / (flip * (1.0 - flip)))
    centre = math.log(math.sqrt(2.0 * math.log(2.0 / beta)) / spread)
    return min(1.0, up(least(at, centre - 4.0, centre + 1.5, 40)[0]))
