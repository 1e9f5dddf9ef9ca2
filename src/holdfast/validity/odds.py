"""Odds intervals: narrow for rare and for frequent events, because privacy bounds how far the odds can
move."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from holdfast.privacy.profile import gdp_delta
from holdfast.privacy.rounding import down, up
from holdfast.validity.gaussian_answers import MOST_QUERIES, tuned
from holdfast.validity.normal_quantile import profile_at, two_sided_quantile, upper_quantile
from holdfast.validity.search import least
from holdfast.validity.vote_answers import votes_sharp_term
from holdfast.validity.wilson import overshoot, wilson_low


@dataclass(frozen=True, slots=True)
class GaussianOdds:
    """Theorem V. Call it with an answer to get (low, high); `reach` is sigma z + c, `epsilon` moves the
    odds."""

    reach: float
    epsilon: float

    def __call__(self, answer: float) -> tuple[float, float]:
        """The interval for q(P): logit(answer -+ reach) -+ epsilon, arguments clipped to [0,1], rounded
        outward."""
        return _widened(answer - self.reach, answer + self.reach, self.epsilon)


@dataclass(frozen=True, slots=True)
class VotesOdds:
    """Theorem W for votes. Call it with an answer (A/m - a)/(1-2a) to get (low, high)."""

    votes: int
    flip: float
    z: float
    slack: float
    epsilon: float

    def __call__(self, answer: float) -> tuple[float, float]:
        """Wilson limits of the votes, widened by c = `slack` and then by epsilon in the odds, rounded
        outward."""
        ones = min(self.votes, max(0, round(self.votes * (self.flip + (1.0 - 2.0 * self.flip) * answer))))
        low = wilson_low(ones, self.votes, self.flip, self.z)
        high = 1.0 - wilson_low(self.votes - ones, self.votes, self.flip, self.z)
        return _widened(low - self.slack, high + self.slack, self.epsilon)


@lru_cache(maxsize=4096)
def gaussian_odds(
    rows: int, queries: int, beta: float, standard_deviation_counts: float, grid: int = 1, at: float = 0.01
) -> GaussianOdds:
    """Theorem V for discrete Gaussian noise of one s for all answers; epsilon is tuned for events of
    frequency `at`.

    Guarantee: Pr[some q_j(P) outside its interval] <= beta, for every adaptive analyst.
    Requires: as `gaussian_width`; `at` is fixed beforehand (any value is valid, it only sets where the
    interval is narrow). These intervals may not be intersected with the uniform width at the same beta.
    Reference: docs/theorems.md, Theorem 8 (V) and Lemma 7: c = delta(epsilon)/beta, z >= 1, shift 1/(2gn).
    """
    s = standard_deviation_counts
    if not s > 2.0 or queries > MOST_QUERIES:
        return GaussianOdds(math.inf, math.inf)
    beta = down(beta)
    mu = up(grid * math.sqrt(queries / ((s - 2.0) * (s + 2.0))))
    noise = up((s * max(1.0, two_sided_quantile(beta, queries)) + 0.5) / (grid * rows))

    def half_width(t: float) -> float:
        return _half(noise + profile_at(t, mu) / beta, mu * t - mu * mu / 2.0, at)

    _, t = least(half_width, mu / 2.0 + 1e-3, mu / 2.0 + 12.0, 40)
    epsilon = mu * t - mu * mu / 2.0
    return GaussianOdds(up(noise + up(gdp_delta(epsilon, mu) / beta)), epsilon)


def gaussian_odds_noise(
    rows: int, queries: int, beta: float, at: float = 0.01, grid: int = 1
) -> tuple[float, float]:
    """(half-width at frequency `at`, standard deviation in counts of 1/g) where V is narrowest there."""

    def half_width(s: float) -> float:
        odds = gaussian_odds(rows, queries, beta, s, grid, at)
        return _half(odds.reach, odds.epsilon, at)

    return tuned(half_width, rows, queries, grid)


@lru_cache(maxsize=256)
def votes_odds(
    rows: int, queries: int, beta: float, votes: int, flip: float = 0.25, at: float = 0.01
) -> VotesOdds:
    """Theorem W for m votes an answer: Wilson limits, c = (delta(epsilon) + k y)/beta.

    Guarantee: Pr[some q_j(P) outside its interval] <= beta, for every adaptive analyst.
    Requires: as `votes_width`; `at` fixed beforehand. delta comes from Theorem L, its remainder included.
    Reference: docs/theorems.md, Theorems 9 and 11 (W). Cost: some tenths of a second once, then cached.
    """
    profile = votes_sharp_term(rows, queries * votes, flip, beta)[1]
    mu, err = profile.mu, profile.err
    p = flip + (1.0 - 2.0 * flip) * at
    # The overshoot is largest at frequency 1/2; to be paid at `at`, z moves by the ratio of the deviations.
    z = upper_quantile(min(0.5, beta / (2.0 * queries) * 2.0 * math.sqrt(p * (1.0 - p))))
    y = 2.0 * overshoot(votes, flip, z)
    local = z * math.sqrt(p * (1.0 - p) / votes) / (1.0 - 2.0 * flip)

    def slack(t: float) -> float:
        return (profile_at(t, mu) + math.exp(mu * t - mu * mu / 2.0) * err + queries * y) / beta

    def half_width(t: float) -> float:
        return _half(local + slack(t), mu * t - mu * mu / 2.0, at)

    _, t = least(half_width, mu / 2.0 + 1e-3, mu / 2.0 + 12.0, 40)
    epsilon = mu * t - mu * mu / 2.0
    delta = up(gdp_delta(epsilon, mu) + math.exp(epsilon) * err)
    return VotesOdds(votes, flip, z, up(up(delta + queries * y) / beta), epsilon)


def _half(reach: float, epsilon: float, at: float) -> float:
    low, high = _widened(at - reach, at + reach, epsilon)
    return max(high - at, at - low)


def _widened(low: float, high: float, epsilon: float) -> tuple[float, float]:
    """(x_lo, x_hi) clipped to [0,1], their odds divided and multiplied by e^epsilon, rounded outward."""
    if not (math.isfinite(low) and math.isfinite(high)) or epsilon > 600.0:
        return 0.0, 1.0
    r = up(math.exp(epsilon))
    x_lo, x_hi = max(0.0, low), min(1.0, high)
    w_lo = x_lo / (x_lo + r * (1.0 - x_lo)) if 0.0 < x_lo < 1.0 else float(x_lo >= 1.0)
    w_hi = r * x_hi / (1.0 - x_hi + r * x_hi) if 0.0 < x_hi < 1.0 else float(x_hi >= 1.0)
    return down(w_lo), min(1.0, up(w_hi))
