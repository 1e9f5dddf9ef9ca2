"""The mechanisms of the trusted curator, each with the neighbours that tell most about it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.case import DELTA, Case, one_by_one
from holdfast.mechanisms.gaussian import gaussian
from holdfast.mechanisms.laplace import laplace
from holdfast.mechanisms.logistic import logistic
from holdfast.mechanisms.noisy_max import report_noisy_max
from holdfast.mechanisms.rejection_sampling import lecture_rejection_sampler
from holdfast.mechanisms.response import randomized_response, response_epsilon
from holdfast.mechanisms.selection import exponential, permute_and_flip
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.votes import FLIP, votes
from holdfast.noise.laplace import laplace_vector
from holdfast.noise.subset import with_replacement, without_replacement
from holdfast.privacy import events
from holdfast.privacy.conversion import zcdp_to_approx
from holdfast.privacy.rule import pure

LOW, HIGH = (0, 1, 0, 0), (1, 0, 1, 1)
"""Scores of neighbours: the best candidate falls by one while all others rise by one."""


def additive() -> list[Case]:
    """Noise on counts."""
    approximate = zcdp_to_approx(0.5, DELTA)
    coin = partial(_noisy, randomized_response, truth=0.55)
    zeros, ones = (0, 0, 0, 0), (1, 1, 1, 1)
    return [
        Case("laplace", partial(_noisy, laplace, epsilon=1.0), 0, 1, 1.0, runs=400_000),
        Case(
            "laplace, histogram",
            partial(_noisy, laplace, sensitivity=2, epsilon=1.0),
            (5, 5, 0),
            (4, 6, 0),
            1.0,
        ),
        Case("logistic", partial(_noisy, logistic, epsilon=1.0), 0, 1, 1.0, runs=400_000),
        Case("gaussian", partial(_noisy, gaussian, rho=0.5), 0, 1, approximate, DELTA, runs=400_000),
        Case(
            "gaussian, vector",
            partial(_noisy, gaussian, sensitivity=2, rho=0.5),
            zeros,
            ones,
            approximate,
            DELTA,
        ),
        Case("randomized response", coin, 0, 1, response_epsilon(Fraction(11, 20)), runs=400_000),
    ]


def sampled() -> list[Case]:
    """A few rows of many: votes, and Laplace noise on a sample."""
    zeros, one = (0,) * 10, (0,) * 9 + (1,)
    inner = events.Laplace(1, 1)
    return [
        Case("votes", one_by_one(_votes), zeros, one, pure(events.Votes(10, 5, FLIP)).epsilon),
        Case(
            "laplace on a sample",
            partial(_sample, draw=without_replacement, size=5),
            zeros,
            one,
            pure(events.Subsampled(inner, 5, 10)).epsilon,
            runs=40_000,
        ),
        Case(
            "laplace on a sample with replacement",
            partial(_sample, draw=with_replacement, size=10),
            zeros,
            one,
            pure(events.SubsampledWithReplacement(inner, 10, 10)).epsilon,
            runs=40_000,
        ),
    ]


def selection() -> list[Case]:
    """Private choice."""
    choosers: dict[str, Callable[..., Any]] = {
        "exponential": exponential,
        "permute-and-flip": permute_and_flip,
        "noisy max, exponential noise": report_noisy_max,
        "noisy max, laplace noise": partial(report_noisy_max, noise="laplace"),
    }
    cases = [
        Case(name, one_by_one(partial(chooser, sensitivity=1, epsilon=1.0)), LOW, HIGH, 1.0, runs=20_000)
        for name, chooser in choosers.items()
    ]
    return [
        *cases,
        Case(
            "exponential, monotone",
            one_by_one(partial(exponential, epsilon=1.0, monotone=True)),
            (0, 0),
            (1, 0),
            1.0,
            runs=20_000,
        ),
        Case("rejection sampler", one_by_one(_rejection), LOW, HIGH, 1.0, runs=4_000),
    ]


def sparse_vectors() -> list[Case]:
    """Above or below, on a sequence in which every value moves the wrong way."""
    quiet, loud = (0,) * 4 + (1,) * 2, (1,) * 4 + (0,) * 2
    gaussian_version = {"epsilon": 4.0, "hits": 1, "version": "gaussian", "delta": DELTA, "questions": 6}
    settings: dict[str, dict[str, Any]] = {
        "sparse vector": {"epsilon": 4.0, "hits": 1},
        "sparse vector, two hits": {"epsilon": 4.0, "hits": 2},
        "sparse vector, logistic": {"epsilon": 4.0, "hits": 1, "version": "logistic"},
        "sparse vector, numeric": {"epsilon": 4.0, "hits": 1, "numeric": True},
        "sparse vector, lecture": {"epsilon": 4.0, "hits": 1, "version": "lecture"},
        "sparse vector, gaussian": gaussian_version,
    }
    return [
        Case(
            name,
            one_by_one(partial(_sparse, setting)),
            quiet,
            loud,
            4.0,
            setting.get("delta", 0.0),
            runs=20_000,
        )
        for name, setting in settings.items()
    ]


def _noisy(mechanism: Callable[..., Any], value: Any, runs: int, **parameters: Any) -> NDArray[np.int64]:
    noisy: NDArray[np.int64] = mechanism(np.broadcast_to(value, (runs, *np.shape(value))), **parameters)
    return noisy


def _votes(sample: tuple[int, ...]) -> int:
    """Five votes from random rows."""
    return votes(np.array(sample, dtype=np.bool_)[with_replacement(len(sample), 5)])


def _sample(sample: tuple[int, ...], runs: int, draw: Callable[..., Any], size: int) -> NDArray[np.int64]:
    rows = np.array(sample)
    sums = np.array([rows[draw(len(rows), size)].sum() for _ in range(runs)])
    return sums + laplace_vector(1, runs)


def _rejection(scores: tuple[int, ...]) -> int:
    return lecture_rejection_sampler(scores, epsilon=1.0).index


def _sparse(setting: dict[str, Any], values: tuple[int, ...]) -> tuple[Any, ...]:
    """All answers until the halt; None stands for "not above" where answers are numbers."""
    vector = SparseVector(1, **setting)
    ask = vector.answer if setting.get("numeric") else vector.above
    answers: list[Any] = []
    for value in values:
        if vector.halted:
            break
        answers.append(ask(value))
    return tuple(answers)
