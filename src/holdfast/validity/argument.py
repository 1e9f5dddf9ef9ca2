"""What a caller may pass: each check raises InputError before anything is computed."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real

from holdfast.errors import InputError
from holdfast.privacy.number import show
from holdfast.privacy.rounding import float_down


def whole(name: str, value: object, least: int = 1) -> int:
    """`value` as an int, if it is whole and at least `least`. Whole floats such as 1e6 are welcome."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(
            f"{name} must be a whole number of at least {least}, got {show(value)}; pass an integer"
        )
    return int(value)


def positive(name: str, value: object) -> float:
    """`value` as a float, if it is a finite number above 0."""
    number = _number(name, value)
    if not 0.0 < number < math.inf:
        raise InputError(f"{name} must be a finite number above 0, got {show(value)}; pass a positive number")
    return number


def not_negative(name: str, value: object) -> float:
    """`value` as a float, if it is a finite number of at least 0."""
    number = _number(name, value)
    if not 0.0 <= number < math.inf:
        raise InputError(
            f"{name} must be a finite number of at least 0, got {show(value)}; pass such a number"
        )
    return number


def proportion(name: str, value: object, high: float = 1.0) -> float:
    """`value` as a float, if it lies strictly between 0 and `high`."""
    number = _number(name, value)
    if not 0.0 < number < high:
        raise InputError(
            f"{name} must lie strictly between 0 and {high:g}, got {show(value)}; choose one inside"
        )
    return number


def miss(confidence: object) -> float:
    """beta = 1 - confidence, rounded down; a float is what a person meant who wrote it, so 0.95 gives
    1/20."""
    number = proportion("confidence", confidence)
    return float_down(1 - Fraction(repr(number)))


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real | Fraction):
        raise InputError(f"{name} must be a number, got {type(value).__name__}; pass a float")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} must be below 1.8e308, got a larger number; pass a smaller one") from None
