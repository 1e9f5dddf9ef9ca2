"""How foreign values are read: arrays of any dtype in, clamped values and NULL marks out.

Every function is total on values: what cannot be read is NULL. Only a dtype that can never hold the declared
type (complex numbers, dates for an Integer) raises DataError, and the dtype is public.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DataError

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0"})

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE | re.ASCII)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ].*)?", re.DOTALL)
BLANK = " \t\r\n"
_FLOAT_LIMIT = 2.0**62
_COARSE = {"Y": 600_000, "M": 600_000, "W": 600_000}  # beyond every declarable date, far from overflow


def integers(values: NDArray[Any], lo: int, hi: int, kind: str) -> tuple[Ints, Mask]:
    """Values clamped to [lo, hi] as int64, and which are NULL. Exact for every integer dtype."""
    null = np.zeros(len(values), dtype=np.bool_)
    match values.dtype.kind:
        case "b" | "i":
            whole = values.astype(np.int64)
        case "u":
            whole = np.minimum(values.astype(np.uint64), np.uint64(2**63 - 1)).astype(np.int64)
        case "f":
            whole, null = _rounded(values)
        case "U" | "S" | "T" | "O":
            return each(values, lambda v: _whole_of(v, lo, hi), lo, np.dtype(np.int64))
        case _:
            raise impossible(values, kind)
    return np.clip(whole, lo, hi), null


def reals(values: NDArray[Any], lo: float, hi: float, kind: str) -> NDArray[np.float64]:
    """Values clamped to [lo, hi] as float64; NULL is NaN."""
    match values.dtype.kind:
        case "b" | "i" | "u":
            floats = values.astype(np.float64)
        case "f":
            with np.errstate(all="ignore"):  # a signalling NaN, or a long double beyond float64
                floats = np.clip(values, lo, hi).astype(np.float64) if values.itemsize > 8 else _wide(values)
        case "U" | "S" | "T" | "O":
            floats, null = each(values, lambda v: _real_of(v, lo, hi), lo, np.dtype(np.float64))
            floats[null] = np.nan
        case _:
            raise impossible(values, kind)
    clamped: NDArray[np.float64] = np.clip(floats, lo, hi) + 0.0  # + 0.0 turns -0.0 into 0.0
    return clamped


def truths(values: NDArray[Any], kind: str) -> NDArray[np.uint8]:
    """0 for false, 1 for true, 2 for NULL."""
    codes: NDArray[np.uint8]
    match values.dtype.kind:
        case "b" | "i" | "u" | "f":
            codes = np.not_equal(values, 0).astype(np.uint8)
            codes[np.isnan(values)] = 2
        case "U" | "S" | "T" | "O":
            codes, null = each(values, _truth_of, 2, np.dtype(np.uint8))
            codes[null] = 2
        case _:
            raise impossible(values, kind)
    return codes


def labels(values: NDArray[Any], declared: tuple[str, ...], dtype: np.dtype[Any], kind: str) -> NDArray[Any]:
    """The place of each value among the declared labels; len(declared) for any other value."""
    null = len(declared)
    place = {text: code for code, text in enumerate(declared)}
    match values.dtype.kind:
        case "U":
            order = np.array(sorted(range(null), key=declared.__getitem__), dtype=dtype)
            known = np.array([declared[code] for code in order])
            near = np.minimum(np.searchsorted(known, values), null - 1)
            return np.where(known[near] == values, order[near], np.array(null, dtype))
        case "b" | "i" | "u" | "f":
            distinct, inverse = np.unique(values, return_inverse=True)
            table = np.array([place.get(_label_of(v) or "", null) for v in distinct.tolist()], dtype)
            if len(distinct) and distinct.dtype.kind == "f":
                table[np.isnan(distinct)] = null
            return table[inverse.reshape(-1)] if len(values) else np.empty(0, dtype)
        case "S" | "T" | "O":
            codes, missing = each(values, lambda v: _place_of(v, place), null, dtype)
            codes[missing] = null
            return codes
    raise impossible(values, kind)


def days(values: NDArray[Any], kind: str) -> tuple[Ints, Mask]:
    """Days since 1970-01-01, and which are NULL."""
    if values.dtype.kind == "M":
        null = np.isnat(values)
        unit, count = np.datetime_data(values.dtype)
        if unit in _COARSE:
            limit = _COARSE[unit] // count
            clipped = np.clip(values.view(np.int64), -limit, limit)
            values = np.where(null, 0, clipped).view(values.dtype)
        elif unit == "generic":
            return np.zeros(len(values), np.int64), null
        day = values.astype("datetime64[D]").view(np.int64).copy()
        day[null] = 0
        return day, null
    if values.dtype.kind in "USTO":
        return each(values, day_of, 0, np.dtype(np.int64))
    raise impossible(values, kind)


def day_of(value: object) -> int | None:
    """Days since 1970-01-01 of a date, a datetime (its own calendar day), or a 'YYYY-MM-DD...' text."""
    if isinstance(value, datetime.date):
        if value != value:  # pandas' NaT calls itself a datetime
            return None
        return value.toordinal() - _EPOCH
    if isinstance(value, np.datetime64):
        found, null = days(np.array([value]), "date")
        return None if null[0] else int(found[0])
    if isinstance(value, str) and (match := _DATE.fullmatch(value.strip(BLANK))):
        try:
            return datetime.date(*map(int, match.groups())).toordinal() - _EPOCH
        except ValueError:
            return None
    return None


def date_of(day: int) -> datetime.date:
    """The date that many days after 1970-01-01."""
    return datetime.date.fromordinal(day + _EPOCH)


def text_of(value: object, longest: int) -> str | None:
    """The text of at most so many code points that a value stands for, in NFC; None for any other value.

    NFC makes a text at most four times shorter (U+1F82), so what is longer than that needs no look: a long run of marks
    would take quadratic time.
    """
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = str(int(value)) if -(2**64) < value < 2**64 else None
    if not isinstance(value, str) or len(value) > 4 * longest or "\0" in value or not is_utf8(value):
        return None
    text = unicodedata.normalize("NFC", value)
    return text if len(text) <= longest else None


def is_utf8(text: str) -> bool:
    """Whether the text can be written down: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wide(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float64)


def _rounded(values: NDArray[Any]) -> tuple[Ints, Mask]:
    with np.errstate(all="ignore"):
        floats = values if values.itemsize > 8 else _wide(values)
        null = np.isnan(floats)
        floats = np.clip(np.where(null, 0.0, floats), -_FLOAT_LIMIT, _FLOAT_LIMIT)
        below = np.floor(floats)
        return below.astype(np.int64) + (floats - below >= 0.5), null


def each(
    values: NDArray[Any], read: Callable[[Any], Any], filler: Any, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], Mask]:
    """Read value by value; each distinct text once."""
    if values.dtype.kind == "S":
        values = np.array([v.decode("utf-8", "replace") for v in values.tolist()], dtype=object)
    seen: dict[str, Any] = {}
    found: list[Any] = []
    for value in values.tolist():
        if type(value) is str:
            if value not in seen:
                seen[value] = read(value)
            found.append(seen[value])
        else:
            found.append(read(value))
    null = np.array([v is None for v in found], dtype=np.bool_)
    return np.array([filler if v is None else v for v in found], dtype=dtype), null


def _number_of(value: object) -> int | float | Decimal | Fraction | None:
    """The number in a Python object, or None. NaN is None, infinities stay."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int(value)
    if isinstance(value, str):
        text = value.strip(BLANK)
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            return float(text)
        if found := _INFINITE.fullmatch(text):
            return float(found[1] + "inf")
        return None
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    if isinstance(value, Fraction):
        return value
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if number != number else number
    return None


def _whole_of(value: object, lo: int, hi: int) -> int | None:
    number = _number_of(value)
    if number is None:
        return None
    if number <= lo:
        return lo
    if number >= hi:
        return hi
    if isinstance(number, Decimal):  # not by way of Fraction: 1E-999999999 has a long denominator
        return int(number.to_integral_value(ROUND_HALF_UP if number >= 0 else ROUND_HALF_DOWN))
    below = number.__floor__()
    return below + (number - below >= Fraction(1, 2))


def _real_of(value: object, lo: float, hi: float) -> float | None:
    number = _number_of(value)
    if number is None:
        return None
    return float(min(max(number, lo), hi))


def _truth_of(value: object) -> int | None:
    if isinstance(value, str):
        word = value.strip(BLANK).lower()
        return 1 if word in TRUE_WORDS else 0 if word in FALSE_WORDS else None
    number = _number_of(value)
    return None if number is None else int(number != 0)


def _label_of(value: object) -> str | None:
    """The text a value stands for as a label."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value)) if -(2**64) < value < 2**64 else None
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 2**64 else repr(number)
    return None


def _place_of(value: object, place: dict[str, int]) -> int | None:
    if isinstance(value, float | np.floating) and value != value:
        return None
    text = _label_of(value)
    return None if text is None else place.get(text)


def impossible(values: NDArray[Any], kind: str) -> DataError:
    """The refusal of a dtype that can never hold the declared kind."""
    return DataError(f"a column of dtype {values.dtype} cannot be read as {kind}; convert it before opening")
