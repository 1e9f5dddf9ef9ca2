"""Exact facts about a finite mechanism: its privacy profile, Lemma O, and the best event of given
probability."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Channel:
    """`law[x1, ..., xn, output]`, rows independent from `population`."""

    law: np.ndarray
    population: np.ndarray

    @property
    def rows(self) -> int:
        return self.law.ndim - 1

    @classmethod
    def random(
        cls, rng: np.random.Generator, universe: int, rows: int, outputs: int, spread: float
    ) -> Channel:
        """Outputs tilted by a random amount for each table; a small spread is a private mechanism."""
        logits = spread * rng.standard_normal((*[universe] * rows, outputs)) + rng.standard_normal(outputs)
        law = np.exp(logits)
        population = rng.dirichlet(np.ones(universe))
        return cls(law / law.sum(axis=-1, keepdims=True), population)

    @classmethod
    def response(cls, epsilon: float, weight: float) -> Channel:
        """Randomized response on one bit that is 1 with probability `weight`."""
        truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        return cls(np.array([[truth, 1.0 - truth], [1.0 - truth, truth]]), np.array([1.0 - weight, weight]))

    def profile(self, ratio: float) -> float:
        """delta at e^epsilon = ratio: the largest sum of (M(s) - ratio M(s'))_+ over neighbours."""
        worst = 0.0
        for i in range(self.rows):
            moved = np.moveaxis(self.law, i, 0)
            for x, z in itertools.permutations(range(len(self.population)), 2):
                worst = max(worst, float(np.maximum(0.0, moved[x] - ratio * moved[z]).sum(axis=-1).max()))
        return worst

    def posterior(self, row: int, query: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Pr, u, w) over (other rows, output): u = E[q(S_i) | output, other rows], w = q(P); query[output,
        x]."""
        moved = np.moveaxis(self.law, row, 0)
        p = self.population
        others = np.ones(moved.shape[1:-1])
        for axis in range(self.rows - 1):
            shape = [1] * (self.rows - 1)
            shape[axis] = len(p)
            others = others * p.reshape(shape)
        joint = moved * p.reshape(-1, *[1] * (moved.ndim - 1)) * others[None, ..., None]
        total = joint.sum(axis=0)
        mean = np.einsum("x...o,ox->...o", joint, query) / total
        return total, mean, np.broadcast_to(query @ p, total.shape)

    def lemma_o(self, row: int, query: np.ndarray, ratio: float) -> float:
        """E (u(1-w) - ratio w(1-u))_+, which Lemma O bounds by the profile."""
        chance, u, w = self.posterior(row, query)
        return float((chance * np.maximum(0.0, u * (1.0 - w) - ratio * w * (1.0 - u))).sum())

    def best_mean(self, beta: float) -> float:
        """The largest E[q~(S) - q~(P) | E] over events of probability beta and queries, both functions of the
        output."""
        u = len(self.population)
        subsets = np.array(list(itertools.product((0.0, 1.0), repeat=u)))
        chance = np.zeros(self.law.shape[-1])
        best = np.full(self.law.shape[-1], -1.0)
        for q in subsets:
            mean = 0.0
            for row in range(self.rows):
                total, post, w = self.posterior(row, np.broadcast_to(q, (self.law.shape[-1], u)))
                axes = tuple(range(total.ndim - 1))
                chance = total.sum(axis=axes)
                mean = mean + (total * (post - w)).sum(axis=axes) / chance / self.rows
            best = np.maximum(best, mean)
        return conditional_tail(chance, best, beta)


def conditional_tail(chance: np.ndarray, value: np.ndarray, beta: float) -> float:
    """CVaR: the mean of the largest values that together have probability beta."""
    left, total = beta, 0.0
    for i in np.argsort(-value):
        take = min(left, float(chance[i]))
        total += take * float(value[i])
        left -= take
        if left <= 0.0:
            break
    return total / beta


def sharp_transfer(profile: Callable[[float], float], beta: float, cells: int = 400) -> float:
    """T1* from any profile (of the ratio e^epsilon): least over theta of theta + (1/beta) * integral of delta
    dm.

    The profile falls, so the integral is bounded by values at the left ends of the cells: never too small.
    """
    edges = np.linspace(0.0, 1.0, cells + 1)[:-1]
    ratios = ((1.0 + edges) / (1.0 - edges)) ** 2
    delta = np.array([profile(float(r)) for r in ratios])
    ends = np.append(edges[1:], 1.0)
    best = 1.0
    for i in range(1, cells):
        theta = edges[i]
        atom = (1.0 - theta) / (1.0 + theta) * delta[i]
        mass = 2.0 * theta * (1.0 / (1.0 + edges[i:]) - 1.0 / (1.0 + ends[i:]))
        best = min(best, float(theta + (atom + (mass * delta[i:]).sum()) / beta))
    return best
