"""Checks of what samplers are given, before any bit is drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.errors import InputError

LARGEST_SCALE = 1 << 52
"""Noise of a larger scale might not fit into 64 bits; up to here that has probability below 2**-2900."""


def natural(name: str, value: int, *, least: int = 0, most: int | None = None) -> int:
    """`value` as a Python int, or InputError unless it is an integer with least <= value <= most."""
    if type(value) is not int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise InputError(f"{name}: expected an integer, got {type(value).__name__}; convert it first")
        value = int(value)
    if value < least or (most is not None and value > most):
        bound = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InputError(f"{name}: expected an integer {bound}, got {_short(value)}")
    return value


def rational(
    name: str, value: Fraction | int, *, positive: bool = False, most: int | None = None
) -> Fraction:
    """`value` as a Fraction, or InputError unless it is exact, not negative, and within the bounds.

    Floats are refused: a sampler is exact for the number it is given, and only the caller knows which
    rational was meant.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Fraction | int | np.integer):
        raise InputError(
            f"{name}: expected a Fraction or an int, got {type(value).__name__}; "
            "convert it, e.g. Fraction(1, 10) or Fraction(0.1)"
        )
    exact = value if isinstance(value, Fraction) else Fraction(int(value))
    if exact < 0 or (positive and exact == 0):
        raise InputError(f"{name}: expected {'more than' if positive else 'at least'} 0, got {_short(exact)}")
    if most is not None and exact > most:
        raise InputError(f"{name}: expected at most {_short(most)}, got {_short(exact)}")
    return exact


def _short(value: Fraction | int) -> str:
    """The value in few characters: a number of a million digits must not fill the message."""
    size = max(abs(value.numerator), value.denominator).bit_length()
    return str(value) if size <= 110 else f"a number of {size} bits"
