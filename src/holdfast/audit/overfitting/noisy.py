"""Exact aggregates plus exact noise, and votes: the mechanisms that Holdfast ships."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from holdfast.audit.overfitting.game import Answerer, Truths, Vector
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.laplace import add_laplace
from holdfast.mechanisms.values import round_up
from holdfast.mechanisms.votes import FLIP, unbiased
from holdfast.mechanisms.votes import votes as cast_votes
from holdfast.noise.bits import Bits
from holdfast.noise.subset import with_replacement
from holdfast.privacy.conversion import pure_to_zcdp
from holdfast.validity.gaussian_answers import gaussian_noise, gaussian_width
from holdfast.validity.search import least
from holdfast.validity.transfer import concentrated_term
from holdfast.validity.vote_answers import votes_noise

_BLOCK = 1 << 20


def gaussian(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """The exact count plus discrete Gaussian noise, planned for these numbers.

    Reference: `holdfast.validity.gaussian_answers` (Theorem J0 with T1*).
    """
    variance = round_up(Fraction(gaussian_noise(rows, queries, beta)[1] ** 2))
    width = gaussian_width(rows, queries, beta, math.sqrt(variance))

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        counts = np.count_nonzero(truths, axis=0)
        return np.asarray(add_gaussian(counts, variance, bits)) / rows

    return Answerer("gaussian", width, answer)


def laplace(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """The exact count plus discrete Laplace noise.

    Reference: docs/theorems.md, Theorem 4, with the CVaR of the noise.
    """
    _, place = least(
        lambda x: _laplace_width(rows, queries, beta, math.exp(x)), 0.0, math.log(rows + 2.0), 40
    )
    scale = round_up(Fraction(math.exp(place)))

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        counts = np.count_nonzero(truths, axis=0)
        return np.asarray(add_laplace(counts, scale, bits)) / rows

    return Answerer("laplace", _laplace_width(rows, queries, beta, float(scale)), answer)


def votes(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """m random rows, one bit each, flipped with probability 1/4. Reads m rows, however many there are.

    Reference: `holdfast.validity.vote_answers` (Theorems L and J0 with T1*).
    """
    width, count = votes_noise(rows, queries, beta, float(FLIP))
    return Answerer("votes", width, lambda truths, guesses: _count_votes(truths, count, bits))


def _count_votes(truths: Truths, count: int, bits: Bits | None) -> Vector:
    rows, columns = truths.shape
    sample = np.ascontiguousarray(truths.T)
    answers = np.empty(columns)
    block = max(1, _BLOCK // count)
    for start in range(0, columns, block):
        stop = min(start + block, columns)
        ids = with_replacement(rows, (stop - start) * count, bits).reshape(stop - start, count)
        for j in range(start, stop):
            ones = cast_votes(sample[j].take(ids[j - start]), bits=bits)
            answers[j] = unbiased(ones, count, FLIP)
    return answers


def laplace_tail(scale: float, queries: int, beta: float) -> float:
    """An upper bound of CVaR_beta of the largest of k discrete Laplace draws, in counts.

    CVaR <= t + (k/beta) E(|X| - t)_+ for every t; for integers E(|X| - t)_+ = 2 r^(t+1)/((1+r)(1-r)) with
    r = exp(-1/scale).
    """
    r = math.exp(-1.0 / scale)
    t = max(0, round(scale * math.log(queries / beta)))
    return t + queries / beta * 2.0 * math.exp(-(t + 1) / scale) / ((1.0 + r) * (1.0 - r))


def _laplace_width(rows: int, queries: int, beta: float, scale: float) -> float:
    rho = queries * pure_to_zcdp(1.0 / scale)
    return laplace_tail(scale, queries, beta) / rows + concentrated_term(beta, rho)
