"""The slow truth about adaptivity: exact dynamic programmes over every analyst, in worlds small enough.

A world is a finite population P and n independent rows from it, seen as a histogram. A mechanism is the law
of an answer given q(S). The analyst may choose each query from all earlier answers; the programmes take the
best choice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

Law = Callable[[float], np.ndarray]


@dataclass(frozen=True)
class World:
    """Populations and rows: `means[q, state]` is q(S), `truth[q]` is q(P), `prior[state]` is Pr[S]."""

    means: np.ndarray
    truth: np.ndarray
    prior: np.ndarray

    @classmethod
    def of(cls, population: tuple[float, ...], rows: int) -> World:
        """All histograms of `rows` draws from `population`; the queries are all proper subsets of the
        universe."""
        u = len(population)
        states = [h for h in itertools.product(range(rows + 1), repeat=u) if sum(h) == rows]
        prior = []
        for h in states:
            ways = math.factorial(rows)
            for c in h:
                ways //= math.factorial(c)
            prior.append(ways * math.prod(p**c for p, c in zip(population, h, strict=True)))
        subsets = [q for q in itertools.product((0.0, 1.0), repeat=u) if 0 < sum(q) < u]
        means = np.array(
            [[sum(x * c for x, c in zip(q, h, strict=True)) / rows for h in states] for q in subsets]
        )
        truth = np.array([sum(x * p for x, p in zip(q, population, strict=True)) for q in subsets])
        return cls(means, truth, np.array(prior))


def votes_law(votes: int, flip: float) -> Law:
    """Bin(m, a + (1-2a) s)."""

    def law(mean: float) -> np.ndarray:
        p = flip + (1.0 - 2.0 * flip) * mean
        return np.array([math.comb(votes, j) * p**j * (1.0 - p) ** (votes - j) for j in range(votes + 1)])

    return law


def likelihoods(world: World, law: Law) -> np.ndarray:
    """[query, answer, state]."""
    return np.array([np.array([law(mean) for mean in row]).T for row in world.means])


def best_miss(world: World, law: Law, queries: int, missed: Callable[[int, int], bool]) -> float:
    """The largest Pr[some answer j with missed(query, answer)] that any adaptive analyst reaches."""
    table = likelihoods(world, law)

    def best(joint: np.ndarray, left: int) -> float:
        if left == 0:
            return 0.0
        values = []
        for q in range(len(table)):
            value = 0.0
            for answer in range(table.shape[1]):
                after = joint * table[q, answer]
                value += float(after.sum()) if missed(q, answer) else best(after, left - 1)
            values.append(value)
        return max(values)

    return best(world.prior, queries)


def best_stop_loss(world: World, law: Law, queries: int, theta: float) -> float:
    """The largest E (D - theta)_+ over analysts, D = max over q of E[q(S) | transcript] - q(P)."""
    table = likelihoods(world, law)
    gain = world.means - world.truth[:, None] - theta

    def best(joint: np.ndarray, left: int) -> float:
        if left == 0:
            return max(0.0, float(np.max(gain @ joint)))
        return max(sum(best(joint * row, left - 1) for row in table[q]) for q in range(len(table)))

    return best(world.prior, queries)


def best_conditional_mean(world: World, law: Law, queries: int, beta: float, steps: int = 16) -> float:
    """The least over theta of theta + max E (D - theta)_+/beta, which is convex in theta: by golden section.

    No less than the largest E[q~(S) - q~(P) | E] over analysts, events of probability beta and queries.
    """
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = 0.0, 0.9
    value = math.inf
    for _ in range(steps):
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        at_c, at_d = (t + best_stop_loss(world, law, queries, t) / beta for t in (c, d))
        low, high = (low, d) if at_c <= at_d else (c, high)
        value = min(value, at_c, at_d)
    return value


def vote_profile(rows: int, votes: int, flip: float, epsilon: float) -> float:
    """delta(epsilon) of adaptive votes by dynamic programming: the analyst picks the bias of each vote.

    The likelihood ratio is a product of few factors, so that states recombine; the biases are those at the
    ends of [a, 1-a] and in the middle, moved by the whole shift B in either direction.
    """
    shift = (1.0 - 2.0 * flip) / rows
    pairs = [(flip, flip + shift), (flip + shift, flip), (1.0 - flip - shift, 1.0 - flip)]
    pairs += [(0.5 - shift / 2.0, 0.5 + shift / 2.0)]
    threshold = math.exp(epsilon)

    @cache
    def best(log_ratio: float, left: int) -> float:
        if left == 0:
            return max(0.0, math.exp(log_ratio) - threshold)
        values = []
        for p, other in pairs:
            hit = best(round(log_ratio + math.log(other / p), 12), left - 1)
            miss = best(round(log_ratio + math.log((1.0 - other) / (1.0 - p)), 12), left - 1)
            values.append(p * hit + (1.0 - p) * miss)
        return max(values)

    return best(0.0, votes)
