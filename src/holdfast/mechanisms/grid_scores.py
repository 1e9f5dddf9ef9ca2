"""Scores on a grid: what a private choice compares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import NDArray

from holdfast.check import exact_positive
from holdfast.errors import InputError
from holdfast.mechanisms.values import integers

STEPS = 1 << 20
"""Grid steps in one sensitivity, for scores that are not integers."""

_REACH = 1 << 30
"""Scores farther than this many sensitivities from 0 are clamped, which moves no two scores apart."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores as whole steps of a grid.

    Guarantee: if each score of neighbouring inputs differs by at most the declared sensitivity, each entry of
    `units` differs by at most `sensitivity`, which counts steps of size `step`.
    """

    units: NDArray[np.int64]
    sensitivity: Fraction
    step: Fraction


def scores(values: object, sensitivity: float | Fraction) -> Scores:
    """One score per candidate, put on a grid that does not depend on them.

    Integers stay as they are. Fractions are rounded half up to multiples of sensitivity/2^20: this rounding
    commutes with whole shifts, so the sensitivity stays 2^20 steps exactly. Floats are divided and rounded in
    floating point, which errs by at most 1/4 step before the rounding to whole steps, so neighbours end up at
    most 2^20 + 1 steps apart, and that is charged. NaN is the worst score.
    Requires: one dimension, at least one candidate. Refuses by type and shape alone.
    """
    declared = exact_positive("sensitivity", sensitivity)
    array = np.asarray(values)
    if array.ndim != 1 or not array.size:
        raise InputError(f"expected one score for each candidate, got shape {array.shape}; give a flat list")
    if array.dtype.kind in "iu":
        units = integers(array)
        assert not isinstance(units, int)
        return Scores(units, declared, Fraction(1))
    if array.dtype.kind == "f":
        return Scores(_from_floats(array, declared), Fraction(STEPS + 1), declared / STEPS)
    if array.dtype.kind == "O" and all(isinstance(v, Rational) and not isinstance(v, bool) for v in array):
        return Scores(_from_fractions(array, declared), Fraction(STEPS), declared / STEPS)
    raise InputError(
        f"expected integers, floats or fractions for scores, got {array.dtype}; convert them first"
    )


def _from_floats(array: NDArray[np.floating], sensitivity: Fraction) -> NDArray[np.int64]:
    # After clamping a quotient is at most 2^50 steps. Its relative error is below 2^-52: one rounding of a
    # wider float, one of the division. That is 1/4 step a score; neighbours stay within 2^20 + 1/2 + 1
    # steps, which leaves 2^20 + 1 whole ones. The rounded divisor is the same for both, so it adds nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        quotient = np.asarray(array, dtype=np.float64) / float(sensitivity)
    quotient = np.where(np.isnan(quotient), -_REACH, np.clip(quotient, -_REACH, _REACH))
    return np.rint(quotient * STEPS).astype(np.int64)


def _from_fractions(array: NDArray[np.object_], sensitivity: Fraction) -> NDArray[np.int64]:
    most = _REACH * STEPS
    rounded = (math.floor(Fraction(v) * STEPS / sensitivity + Fraction(1, 2)) for v in array)
    return np.array([min(max(v, -most), most) for v in rounded], dtype=np.int64)
