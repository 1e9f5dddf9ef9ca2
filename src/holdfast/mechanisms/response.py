"""Randomized response: a bit that lies with a known probability."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import probability, refusal, written
from holdfast.errors import InputError
from holdfast.noise.bernoulli import bernoulli, bernoulli_vector
from holdfast.noise.bits import Bits
from holdfast.privacy.rounding import up


@overload
def randomized_response(bits: int, *, truth: float | Fraction, source: Bits | None = None) -> int: ...
@overload
def randomized_response(
    bits: ArrayLike, *, truth: float | Fraction, source: Bits | None = None
) -> NDArray[Any]: ...
def randomized_response(
    bits: ArrayLike, *, truth: float | Fraction, source: Bits | None = None
) -> int | NDArray[Any]:
    """Each bit as it is with probability `truth`, else its opposite; a scalar or an array, of the type given.

    Guarantee: ln(truth/(1-truth))-DP for each bit, exactly.
    Requires: truth values or integers, where any integer but 0 counts as 1; 1/2 <= truth < 1, where a float
    is read as it is written, so 0.55 is 11/20. `source` is where random bits come from; leave it out.
    Reference: Warner 1965.
    Cost: `response_epsilon(truth)`; 0.55 gives ln(11/9).
    """
    p = response_truth(truth)
    secret = np.asarray(bits)
    if secret.dtype.kind not in "biu":
        raise InputError(
            f"expected bits (truth values or integers), got {secret.dtype}; compare or convert first"
        )
    if secret.ndim == 0:
        told = bool(secret != 0) == bernoulli(p, source)
        return told if secret.dtype.kind == "b" else int(told)
    kept = bernoulli_vector(p, secret.size, source).reshape(secret.shape)
    told_all: NDArray[Any] = np.equal(secret != 0, kept).astype(secret.dtype)
    return told_all


def response_truth(truth: object) -> Fraction:
    """A probability of telling the truth, at least 1/2 and below 1, as the person wrote it."""
    probability("truth", truth)
    p = written("truth", truth)
    if p < Fraction(1, 2):
        raise refusal("at least 1/2", "truth", truth, "use 1 - truth and flip the bits")
    return p


def response_epsilon(truth: Fraction) -> float:
    """ln(truth/(1-truth)), rounded up."""
    return up(math.log1p((2 * truth - 1) / (1 - truth)))
