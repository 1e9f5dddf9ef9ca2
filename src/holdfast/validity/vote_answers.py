"""Votes: a few random rows, one noisy bit each; the answer costs the same on a billion rows as on a
million."""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.average_kl import information_votes_term
from holdfast.validity.martingale import cosh_constant, posterior_votes_term
from holdfast.validity.normal_quantile import two_sided_quantile
from holdfast.validity.search import first, least
from holdfast.validity.small_steps import NearGaussian, votes_profile
from holdfast.validity.transfer import concentrated_term, sharp_term

MOST_VOTES = 10**18


@lru_cache(maxsize=65536)
def votes_sharp_term(rows: int, total: int, flip: float, beta: float) -> tuple[float, NearGaussian]:
    """(alpha_*, profile): T1* on Theorem L, with T0 tuned from (n, N, a, beta) only. Any T0 is valid."""

    def bound(log_slack: float) -> float:
        profile = votes_profile(rows, total, flip, math.exp(log_slack))
        return sharp_term(beta, profile.mu, profile.err) if profile.err < beta else 1.0 + profile.err

    value, place = least(bound, math.log(1e-9), math.log(30.0), 20)
    return min(1.0, value), votes_profile(rows, total, flip, math.exp(place))


@lru_cache(maxsize=65536)
def votes_term(rows: int, total: int, flip: float, beta: float) -> float:
    """The least of T1* on Theorem L, T3, T4v, and T1° on the zCDP profile. All hold, so the minimum is free.

    T1* is the least when N is large beside 1/beta; T4v for few votes or a tiny beta; T3 for beta above 0.25.
    Reference: docs/theorems.md, Theorems 4, 5, 9, 13 and 16.
    """
    shift, a = (1.0 - 2.0 * flip) / rows, flip
    term = min(votes_sharp_term(rows, total, a, beta)[0], information_votes_term(rows, total, a, beta))
    # T4v is at least mu C(beta)/4, so that it need not be computed where the others are already below.
    if term > 0.25 * shift * math.sqrt(total / (a * (1.0 - a))) * cosh_constant(beta) * (1.0 - 1e-9):
        term = min(term, posterior_votes_term(rows, total, a, beta))
    if 0.2 * a < shift < 1.0 - 2.0 * a:  # coarse votes on a handful of rows: their bounded range may say more
        eta = up(math.log((a + shift) * (1.0 - a) / (a * (1.0 - a - shift))))
        term = min(term, concentrated_term(beta, up(total * eta * eta / 8.0)))
    return term


@lru_cache(maxsize=65536)
def votes_width(rows: int, queries: int, beta: float, votes: int, flip: float = 0.25) -> float:
    """J0 for votes: sigma_v z + 1/(m(1-2a)) + alpha_*, z = max(1, Q^{-1}(beta/2k)), alpha_* from
    `votes_term`.

    Guarantee: Pr[some |a_j - q_j(P)| > width] <= beta, for every adaptive analyst and at any stopping time.
    Requires: n independent rows; at most k queries into [0,1], each answered by (A/m - a)/(1-2a) from m fresh
    votes (row drawn uniformly with replacement, index secret; a value in [0,1] rounded to a random bit; the
    bit flipped with probability a); one m and one a for all; no other release on these rows.
    Reference: docs/theorems.md, Theorems 5, 9 and 11; sigma_v = 1/(2(1-2a) sqrt(m)). The remainder err0 is
    part of alpha_*, and the shift by one vote is necessary. Cost: under a millisecond, then cached.
    """
    if queries * votes > MOST_VOTES or not 0.0 < flip < 0.5:
        return math.inf
    beta = down(beta)
    keep = 1.0 - 2.0 * flip
    z = max(1.0, two_sided_quantile(beta, queries))
    noise = up(z / (2.0 * keep * math.sqrt(votes)) + 1.0 / (votes * keep))
    return noise + votes_term(rows, queries * votes, flip, beta)


def votes_noise(rows: int, queries: int, beta: float, flip: float = 0.25) -> tuple[float, int]:
    """(width, votes per answer) where `votes_width` is least. Public numbers only."""
    if queries > 10**12:
        return math.inf, 1

    def width(log_votes: float) -> float:
        return votes_width(rows, queries, beta, max(1, round(math.exp(log_votes))), flip)

    spread = flip * (1.0 - flip) / (1.0 - 2.0 * flip) ** 2
    centre = math.log(4.0 + 6.0 * rows * math.sqrt(spread / queries))
    value, place = least(width, centre - 3.0, centre + 3.0, 26)
    return value, max(1, round(math.exp(place)))


def fewest_votes(rows: int, queries: int, beta: float, within: float, flip: float = 0.25) -> int | None:
    """The least number of votes an answer with `votes_width` <= within; None if no number is enough."""
    narrowest, best = votes_noise(rows, queries, beta, flip)
    if narrowest > within:
        return None
    # Below the best m the width falls as m grows, so the first that fits is found by bisection.
    return first(lambda m: m >= best or votes_width(rows, queries, beta, m, flip) <= within)


def votes(rows: int, queries: int, beta: float, votes: int | None = None, flip: float = 0.25) -> float:
    """`votes_width`, at the best number of votes when none is given."""
    if votes is not None:
        return votes_width(rows, queries, beta, votes, flip)
    return votes_noise(rows, queries, beta, flip)[0]
