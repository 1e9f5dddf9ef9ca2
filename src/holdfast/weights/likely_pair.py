"""A noisy pair of columns without most of its noise: what is likely beside a guess, by the noise's known variance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_REACHES = (0.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_STRENGTHS = np.geomspace(0.1, 1e6, 36)
"""Variances of the largest direction, each over that of the noise."""


def likely(noisy: Array, guess: Array, deviation: float, ordered: tuple[bool, bool]) -> Array:
    """The counts of a pair that are to be expected, given noisy ones and a guess; a function of released numbers.

    Beforehand it is even odds that the guess lacks nothing. If not, it lacks a Gaussian field: cells differ in
    proportion to their groups, neighbours of an ordered column are alike as far as it reaches, and the sums over each
    column are the guess's; all strengths and reaches are alike likely. The mean given the counts is that over all of
    these, by how likely each makes the counts, so that what could be noise is left out. In the directions of a field
    (Kronecker products have their own) its mean is the counts, shrunk.
    Reference: Rasmussen and Williams 2006, Gaussian Processes, 2.2 and 5.2; Hoeting and others 1999, Bayesian Model
    Averaging. Cost: a few thousand operations a cell.
    """
    away, noise = noisy - guess, deviation * deviation
    firsts, seconds = _fields(guess.sum(axis=1), ordered[0]), _fields(guess.sum(axis=0), ordered[1])
    beforehand = -math.log(len(firsts) * len(seconds) * len(_STRENGTHS))
    alone = float((away * away).sum()) / noise
    found, top, weight = np.zeros_like(away), 0.0, 1.0  # of nothing lacking; sums are relative to e^top
    for first, down in firsts:
        half = down.T @ away
        for second, across in seconds:
            turned = half @ across
            louder = 1 + np.outer(_STRENGTHS, np.outer(first, second))
            misfit = (1 / louder) @ (turned * turned).ravel() / noise - alone
            logs = beforehand - 0.5 * (np.log(louder).sum(axis=1) + misfit)
            higher = max(top, float(logs.max()))
            found, weight, top = found * math.exp(top - higher), weight * math.exp(top - higher), higher
            weights = np.exp(logs - top)
            found += down @ (turned * (weights @ (1 - 1 / louder)).reshape(turned.shape)) @ across.T
            weight += float(weights.sum())
    return np.asarray(guess + found / weight)


def _fields(masses: Array, ordered: bool) -> list[tuple[Array, Array]]:
    """The variances of a column's directions, the largest 1, and the directions: for every reach."""
    shares = np.maximum(masses, 0.0) + 1e-3 * max(float(masses.sum()), 1.0) / len(masses)
    shares /= shares.sum()
    apart = np.abs(np.subtract.outer(np.arange(len(masses)), np.arange(len(masses))))
    even, found = np.eye(len(masses)) - np.outer(shares, np.ones(len(masses))), []
    for reach in _REACHES if ordered else _REACHES[:1]:
        alike = np.exp(-apart / reach) if reach else np.eye(len(masses))
        values, directions = np.linalg.eigh(even @ (shares[:, None] * alike * shares) @ even.T)
        found.append((np.maximum(values, 0.0) / max(float(values[-1]), 1e-300), directions))
    return found
