"""Reusable holdouts: half of the rows guess, the other half checks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from holdfast.audit.overfitting.game import Answerer, Truths, Vector
from holdfast.audit.overfitting.noisy import laplace_tail
from holdfast.mechanisms.values import round_up
from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian_vector
from holdfast.noise.laplace import laplace, laplace_vector
from holdfast.validity.gaussian_answers import gaussian_noise
from holdfast.validity.guess_and_check import accept_slack, failure_share, holdout_width
from holdfast.validity.guess_and_check import guess_and_check as guess_and_check_width
from holdfast.validity.search import least
from holdfast.validity.transfer import concentrated_term


def thresholdout(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """Answer from the training half while it agrees with the holdout half, else from the holdout with noise.

    Guarantee: T1° on B/(sigma h)^2-zCDP with the CVaR of all noises; B is a tenth of the questions, at least
    8.
    Reference: Dwork et al. 2015; Rogers et al. 2020, Algorithm 4.
    """
    half, budget = rows // 2, max(8, queries // 10)
    threshold = math.ceil(math.sqrt(half * math.log(2 * queries / beta)))
    _, place = least(
        lambda x: _thresholdout_width(half, queries, beta, budget, threshold, math.exp(x)),
        0.0,
        math.log(half + 2.0),
    )
    sigma = round_up(Fraction(math.exp(place)))
    width = _thresholdout_width(half, queries, beta, budget, threshold, float(sigma))
    return thresholdout_with(half, threshold, sigma, budget, width, bits)


def thresholdout_with(
    half: int, threshold: int, sigma: Fraction, budget: int, width: float, bits: Bits | None
) -> Answerer:
    """Thresholdout at given parameters, in counts of the `half` holdout rows.

    The first `half` rows train and the next `half` are held out; when the analyst brings its own guesses, all
    rows are held out.
    """
    bar = threshold + laplace(2 * sigma, bits)

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        nonlocal bar, budget
        held = np.count_nonzero(truths[-half:], axis=0)
        guessed = np.count_nonzero(truths[:half], axis=0) if guesses is None else guesses * half
        noise = laplace_vector(4 * sigma, len(held), bits)
        answers = guessed / half
        for j in range(len(held)):
            if budget <= 0:
                answers[j:] = np.nan
                break
            if abs(held[j] - guessed[j]) > bar + noise[j]:
                answers[j] = (held[j] + laplace(sigma, bits)) / half
                bar = threshold + laplace(2 * sigma, bits)
                budget -= 1
        return answers

    return Answerer("thresholdout", width, answer)


def _thresholdout_width(
    half: int, queries: int, beta: float, budget: int, threshold: int, sigma: float
) -> float:
    """T, the CVaRs of the three kinds of noise, and the transfer term."""
    noise = laplace_tail(2 * sigma, budget + 1, beta) + laplace_tail(4 * sigma, queries, beta)
    noise = max(threshold + noise, laplace_tail(sigma, budget, beta))
    return noise / half + concentrated_term(beta, budget / sigma**2)


_FAILURES = 4


def guess_and_check(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """The training half guesses with Gaussian noise; the holdout half checks; failed guesses are paid for.

    Guarantee: the width holds for any guesser (`holdfast.validity.guess_and_check`); it halts when the
    holdout can certify no more.
    Reference: Rogers et al. 2020, Algorithm 2.
    """
    half = rows // 2
    width = 2.5 * guess_and_check_width(half, queries, beta, _FAILURES)
    cells = math.ceil(4.0 / width)
    variance = round_up(Fraction(gaussian_noise(half, queries, beta)[1] ** 2) / 16)
    asked = failures = 0

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        nonlocal asked, failures
        held = truths[-half:].mean(axis=0)
        counts = np.count_nonzero(truths[:half], axis=0)
        answers = (
            (counts + gaussian_vector(variance, len(counts), bits)) / half
            if guesses is None
            else guesses.copy()
        )
        for j in range(len(held)):
            asked += 1
            share = failure_share(beta, asked, failures, cells)
            if abs(answers[j] - held[j]) <= accept_slack(width, half, share):
                continue
            if holdout_width(half, share) + 1.0 / cells > width:
                answers[j:] = np.nan
                break
            answers[j] = min(math.floor(held[j] * cells), cells - 1) / cells
            failures += 1
        return answers

    return Answerer("guess-and-check", width, answer)
