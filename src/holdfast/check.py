"""What a caller may pass: the checks of numbers, names and words, before anything is computed or charged.

Every refusal is one sentence, "expected WHAT for NAME, got VALUE; what to do". A number is what Python, NumPy and
their kin call one; truth values, texts, arrays, NaN and infinities are none.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from typing import TypeVar

import numpy as np

from holdfast.errors import InputError

Number = int | float | Fraction
Word = TypeVar("Word", bound=str)

LARGEST = 10**300  # beyond this a float formula may overflow; no honest parameter is near it
_SMALLEST = sys.float_info.min  # below this floats are denormal and lose their precision
_BITS = 4096  # a longer numerator or denominator is an attack on time, not a parameter


def positive(name: str, value: object, hint: str = "") -> float:
    """A finite number above 0."""
    number = _float(value)
    if not 0.0 < number < math.inf:
        raise refusal("a positive finite number", name, value, hint)
    return number


def probability(name: str, value: object, below: float = 1.0, hint: str = "") -> float:
    """A number strictly between 0 and `below`."""
    number = _float(value)
    if not _SMALLEST <= number < below:
        raise refusal(f"a number strictly between 0 and {below:g}", name, value, hint)
    return number


def between(
    name: str, value: object, low: float = -math.inf, high: float = math.inf, hint: str = ""
) -> float:
    """A finite number with low <= value <= high."""
    number = _float(value)
    if not (low <= number <= high and math.isfinite(number)):
        bounds = f" of at least {low:g}" if low > -math.inf else ""
        bounds = f" from {low:g} to {high:g}" if high < math.inf else bounds
        raise refusal(f"a finite number{bounds}", name, value, hint)
    return number


def integer(name: str, value: object, least: int = 1, most: int | None = LARGEST, hint: str = "") -> int:
    """An integer with least <= value <= most, whatever type of integer it is."""
    if type(value) is not int and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)
    if type(value) is not int or not least <= value <= (value if most is None else most):
        bounds = f"of at least {least}" if most in (None, LARGEST) else f"from {least} to {most}"
        raise refusal(f"an integer {bounds}", name, value, hint)
    return value


def whole(name: str, value: object, least: int = 1, most: int | None = LARGEST, hint: str = "") -> int:
    """`integer`, or a number that is whole: people write 1e6."""
    number = None if type(value) is int else _fraction(value)
    return integer(
        name, value if number is None or number.denominator > 1 else number.numerator, least, most, hint
    )


def exact(name: str, value: object, hint: str = "") -> Fraction:
    """A number that is not negative, exactly: a float is the binary number that it holds.

    Denormal, huge and endlessly long numbers are refused, since a formula in floats may fail on them.
    """
    number = _fraction(value)
    if number is None or number < 0:
        raise refusal("a finite number of at least 0", name, value, hint)
    if number and not _SMALLEST <= number <= LARGEST:
        raise refusal("a number between 2.3e-308 and 1e300", name, value, hint or "check its unit")
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _BITS:
        raise refusal(f"numerator and denominator of at most {_BITS} bits", name, value, hint or "round it")
    return number


def exact_positive(name: str, value: object, hint: str = "") -> Fraction:
    """`exact`, and not 0."""
    number = exact(name, value, hint)
    if not number:
        raise refusal("a positive number", name, value, hint)
    return number


def written(name: str, value: object, hint: str = "") -> Fraction:
    """`exact`, but a float is what a person meant who wrote it: the shortest decimal that reads back, 0.1 is 1/10.

    For limits and targets only, so that ten charges of 0.1 fit a budget of 1.0; it differs from the binary number by
    less than half a unit in the last place. Facts about mechanisms (events) are read exactly instead.
    """
    number = exact(name, value, hint)
    return Fraction(repr(float(value))) if isinstance(value, float) else number


def rational(name: str, value: object, *, positive: bool = False, most: int | None = None) -> Fraction:
    """A Fraction or an integer, not negative. Floats are refused: a sampler is exact for the number it is given, and
    only the caller knows which rational was meant."""
    number = _fraction(value) if isinstance(value, numbers.Rational) else None
    if number is None or number < 0 or (positive and not number) or (most is not None and number > most):
        least = "above 0" if positive else "of at least 0"
        bounds = least if most is None else f"{least} and at most {shown(most)}"
        raise refusal(f"a Fraction or an int {bounds}", name, value, "convert it, e.g. Fraction(1, 10)")
    return number


def printable(name: str, value: object, most: int | None = None) -> str:
    """A name that people can read and every database can keep: nothing in it is invisible."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or not value.isprintable()
        or len(value) > (most or len(value))
    ):
        what = "printable characters" if most is None else f"1 to {most} printable characters"
        raise InputError(f"expected {what} for {name}, got something else; choose another")
    return value


def one_of(name: str, value: object, options: Iterable[Word]) -> Word:
    """One of some words."""
    words = list(options)
    if not isinstance(value, str) or value not in words:
        wanted = " or ".join(f'"{word}"' for word in words)
        hint = near(value, words) if isinstance(value, str) else ""
        raise InputError(f"expected {wanted} for {name}, got {shown(value)}{hint}")
    return words[words.index(value)]


def refusal(what: str, name: str, value: object, hint: str = "") -> InputError:
    """The one sentence of all refusals."""
    return InputError(f"expected {what} for {name}, got {shown(value)}{hint and '; '}{hint}")


def shown(value: object) -> str:
    """What was given, for an error message: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # a number with very many digits, or an object of somebody else
        return type(value).__name__
    return text if len(text) <= 60 else f"{text[:50]}… ({type(value).__name__})"


def near(word: str, names: Iterable[str]) -> str:
    """The words "; did you mean ...?" after a misspelt name, or nothing; looks at a thousand names only."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in islice(names, 1000)}
    found = get_close_matches(word.casefold()[:100], folded, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(folded[f] for f in found)}?" if found else ""


def _fraction(value: object) -> Fraction | None:
    """A number exactly, or None for what is no finite number."""
    if isinstance(value, bool | np.bool_ | str | bytes) or getattr(value, "ndim", 0) != 0:
        return None
    try:
        if isinstance(value, numbers.Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        return Fraction(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def _float(value: object) -> float:
    """A number as a float, or NaN for what is no finite number."""
    if type(value) is float:
        return value
    number = _fraction(value)
    try:
        return math.nan if number is None else float(number)
    except OverflowError:
        return math.inf
