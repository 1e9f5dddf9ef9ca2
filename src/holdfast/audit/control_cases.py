"""Mechanisms that are broken on purpose. An auditor that lets one of them pass is broken itself."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.case import Case
from holdfast.audit.central_cases import _sample
from holdfast.noise.bits import system_bits
from holdfast.noise.laplace import laplace_vector
from holdfast.noise.subset import with_replacement


def controls() -> list[Case]:
    """Each with the claim that its author would make."""
    zeros, one = (0,) * 10, (0,) * 9 + (1,)
    proposition_7 = math.log(1 + (1 - 0.9**10) * (math.e - 1))
    return [
        Case("float laplace", _float_laplace, 0.0, 1.0, 1.0, runs=40_000, origin="control"),
        Case("laplace, half of the noise", _half, 0, 1, 1.0, origin="control"),
        Case(
            "laplace on a sample with replacement, by Proposition 7",
            partial(_sample, draw=with_replacement, size=10),
            zeros,
            one,
            proposition_7,
            runs=40_000,
            origin="control",
        ),
        Case("sparse vector without noise on the questions", _bare_sparse, 0, 1, 1.0, origin="control"),
    ]


def _float_laplace(value: float, runs: int) -> NDArray[np.float64]:
    """The textbook formula in double precision (Mironov 2012): right law on paper, porous in the machine."""
    words = system_bits().words(runs)
    uniform = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    return value + sign * np.log(uniform)


def _half(value: int, runs: int) -> NDArray[np.int64]:
    return 2 * value + laplace_vector(1, runs)


def _bare_sparse(value: int, runs: int) -> NDArray[np.bool_]:
    """Lyu, Su and Li's variant 5: only the threshold has noise. Two questions with values v and 1-v."""
    threshold = laplace_vector(2, runs)
    return np.stack([value >= threshold, 1 - value >= threshold], axis=1)
