"""Rounding towards more loss. Every step from exact numbers to floats passes through here.

Why a margin: Python's exp, log, expm1, log1p, tanh, erfc and sqrt come from the C library, which errs by a
few units in the last place (2^-52). The formulas of this room chain at most some twenty of them, none with a
condition number above one except where `size` is given. MARGIN = 2^-44 is 256 such units. `size` is the sum
of the magnitudes of the terms that were added, so that a cancellation is covered too.
"""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.check import probability
from holdfast.errors import InputError

MARGIN = 2.0**-44

# Losses are added as integers: a grain is 10^-18 * 2^-128. Decimals of 18 digits and floats above 2^-75 are
# whole numbers of grains, so that adding them is exact, associative and quick.
GRAINS = 10**18 << 128


def up(value: float, size: float = 0.0) -> float:
    """A float no less than the true number that `value` approximates. Never 0: an underflow stays visible."""
    return math.nextafter(value + MARGIN * max(abs(value), size), math.inf)


def down(value: float, size: float = 0.0) -> float:
    """A float no more than the true non-negative number which `value` approximates, and no less than 0."""
    return max(0.0, math.nextafter(value - MARGIN * max(abs(value), size), -math.inf))


def float_up(value: Fraction) -> float:
    """The least float which is no less than `value`. Exact."""
    nearest = _nearest(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The greatest float which is no more than `value`. Exact."""
    nearest = _nearest(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def miss(confidence: object) -> float:
    """beta = 1 - confidence, rounded down; a float is what a person meant who wrote it, so 0.95 gives 1/20."""
    return float_down(1 - Fraction(repr(probability("confidence", confidence))))


def sure(confidence: float, *, percent: bool = False) -> str:
    """A confidence in few digits and never as more than it is: 0.95 or 95%, and 1 - 1e-12, not 1."""
    own = Fraction(repr(confidence))
    text = f"{100 * confidence if percent else confidence:.4g}"
    if Fraction(text) / (100 if percent else 1) <= own:
        return text + "%" * percent
    chance = float(1 - own)
    digit, power = f"{chance:.0e}".split("e")
    rest = Fraction(f"{digit}e{power}")
    return f"1 - {float(rest if rest >= 1 - own else rest + Fraction(f'1e{power}')):.0e}"


def grains(value: Fraction | float | int) -> int:
    """The least whole number of grains which is no less than `value`. A positive value never becomes 0."""
    return units_up(value, GRAINS)


def units_up(value: Fraction | float | int, units: int) -> int:
    """The least whole number of 1/units which is no less than `value`. Exact."""
    numerator, denominator = value.as_integer_ratio()
    return -(-numerator * units // denominator)


def from_grains(amount: int) -> Fraction:
    """The exact number that so many grains are."""
    return Fraction(amount, GRAINS)


def _nearest(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise InputError("expected a privacy loss below 1.8e308, got more; add noise") from None


def round_down(number: float) -> Fraction:
    """A fraction with 20 significant bits, at most `number`: noise parameters stay small and are shared."""
    mantissa, exponent = math.frexp(number)
    return Fraction(math.floor(mantissa * 2**20)) * Fraction(2) ** (exponent - 20)


def round_up(number: Fraction) -> Fraction:
    """A fraction with 20 significant bits, at least `number`."""
    shift = 20 - (number.numerator.bit_length() - number.denominator.bit_length())
    return Fraction(math.ceil(number * Fraction(2) ** shift)) / Fraction(2) ** shift
