"""Numbers at the door: every parameter of the arithmetic is checked here, before anything happens."""

from __future__ import annotations

import math
import numbers
import sys
from fractions import Fraction

from holdfast.errors import InputError

Number = int | float | Fraction

LARGEST = 10**300  # beyond this a float formula may overflow; no honest parameter is near it
_SMALLEST = Fraction(sys.float_info.min)  # below this floats are denormal and lose their precision
_BITS = 4096  # a longer numerator or denominator is an attack on time, not a parameter


def exact(name: str, value: object) -> Fraction:
    """The value as a Fraction: integers and Fractions as they are, floats exactly as the binary number they
    hold.

    Refuses with InputError: bool, other types, NaN, infinities, negative numbers, denormals and huge numbers.
    Zero passes; see `positive`.
    """
    if isinstance(value, Fraction):
        result = value
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        result = Fraction(int(value))
    elif isinstance(value, numbers.Real) and not isinstance(value, bool | numbers.Rational):
        as_float = float(value)
        if not math.isfinite(as_float):
            raise InputError(f"{name} must be a finite number, got {as_float!r}; give a number")
        result = Fraction(as_float)
    else:
        raise InputError(f"{name} must be an int, a float or a Fraction, got {show(value)}; convert it first")
    if result < 0:
        raise InputError(f"{name} must not be negative, got {show(value)}; give a number above zero")
    if result and not _SMALLEST <= result <= LARGEST:
        raise InputError(f"{name} must lie between 2.3e-308 and 1e300, got {show(value)}; check its unit")
    if max(result.numerator.bit_length(), result.denominator.bit_length()) > _BITS:
        raise InputError(f"{name} must have fewer than {_BITS} bits in numerator and denominator; round it")
    return result


def positive(name: str, value: object) -> Fraction:
    """`exact`, and zero is refused as well."""
    result = exact(name, value)
    if result == 0:
        raise InputError(f"{name} must be above zero, got 0; give a positive number")
    return result


def written(name: str, value: object) -> Fraction:
    """`exact`, but a float is what a person meant who wrote it: the shortest decimal that reads back, 0.1 is
    1/10.

    For limits and targets only, so that ten charges of 0.1 fit a budget of 1.0; it differs from the binary
    number by less than half a unit in the last place. Facts about mechanisms (events) are read exactly
    instead.
    """
    result = exact(name, value)
    return Fraction(repr(float(value))) if isinstance(value, float) else result


def whole(name: str, value: object, least: int = 1) -> int:
    """An integer no less than `least`; bool and float are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(f"{name} must be an int, got {show(value)}; give a whole number")
    result = int(value)
    if result < least or result > LARGEST:
        raise InputError(f"{name} must be an int from {least} to 1e300, got {show(value)}; check it")
    return result


def chance(name: str, value: object) -> float:
    """A float strictly between 0 and 1."""
    result = float(positive(name, value))
    if result >= 1.0:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {show(value)}; 1e-6 is usual")
    return result


def show(value: object) -> str:
    """A parameter for an error message, cut short; a number too long to print does not break the message."""
    try:
        text = repr(value)
    except ValueError:
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= 60 else text[:57] + "..."
