"""How moments and times of day are read: arrays of any dtype in, microseconds and NULL marks out.

Moments count from 1970-01-01, times of day from midnight. What has a time zone is taken in UTC. Total on values, as
`holdfast.query.reading` is.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.reading import BLANK, Ints, Mask, day_of, each, impossible

DAY = 86_400_000_000
STEPS = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""What a column may count, in microseconds."""

CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
ZONE = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
PADDING = ":00.000000"
"""What a time of day that ends early goes on with."""
_CLOCK = re.compile(CLOCK)
_MOMENT = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[T ](?P<clock>{CLOCK})(?P<zone>{ZONE})?)?")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FAR = 11_000 * 366
"""Days on either side of 1970, beyond every declarable moment and far from overflow."""
_A_DAY = {
    "Y": 1 / 366,
    "M": 1 / 31,
    "W": 1 / 7,
    "D": 1,
    "h": 24,
    "m": 1440,
    "s": 86_400,
    "ms": 86_400_000,
    "us": DAY,
}


def moments(values: NDArray[Any], kind: str) -> tuple[Ints, Mask]:
    """Microseconds since 1970-01-01, and which are NULL."""
    if values.dtype.kind == "M":
        null = np.isnat(values)
        unit, count = np.datetime_data(values.dtype)
        if unit == "generic":
            return np.zeros(len(values), np.int64), null
        steps = values.view(np.int64)
        if unit in _A_DAY:
            limit = int(_FAR * _A_DAY[unit]) // count
            steps = np.clip(steps, -limit, limit)
        clipped = np.where(null, 0, steps).view(values.dtype)
        return clipped.astype("datetime64[us]").view(np.int64).copy(), null
    if values.dtype.kind in "USTO":
        return each(values, moment_of, 0, np.dtype(np.int64))
    raise impossible(values, kind)


def clocks(values: NDArray[Any], kind: str) -> tuple[Ints, Mask]:
    """Microseconds since midnight, and which are NULL."""
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in ("Y", "M", "W", "D"):
        found, null = moments(values, kind)
        return found % DAY, null
    if values.dtype.kind in "USTO":
        return each(values, clock_of, 0, np.dtype(np.int64))
    raise impossible(values, kind)


def moment_of(value: object) -> int | None:
    """Microseconds since 1970-01-01 of a datetime, a date (its midnight), or a 'YYYY-MM-DD HH:MM:SS' text."""
    if isinstance(value, datetime.datetime):
        if value != value:  # pandas' NaT calls itself a datetime
            return None
        offset = value.utcoffset() or datetime.timedelta(0)
        return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND - offset // _MICROSECOND
    if isinstance(value, np.datetime64):
        found, null = moments(np.array([value]), "timestamp")
        return None if null[0] else int(found[0])
    if isinstance(value, datetime.date):
        return (value.toordinal() - _EPOCH.toordinal()) * DAY
    if isinstance(value, str) and (match := _MOMENT.fullmatch(value.strip(BLANK))):
        day = day_of(match[1])
        if day is None:
            return None
        return day * DAY + _clock(match["clock"] or "00:00") - _offset(match["zone"] or "Z")
    return None


def clock_of(value: object) -> int | None:
    """Microseconds since midnight of a time, of the time of a datetime, or of an 'HH:MM:SS' text."""
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if isinstance(value, datetime.datetime | np.datetime64):
        moment = moment_of(value)
        return None if moment is None else moment % DAY
    if isinstance(value, str) and _CLOCK.fullmatch(text := value.strip(BLANK)):
        return _clock(text)
    return None


def datetime_of(microseconds: int) -> datetime.datetime:
    """The moment that many microseconds after 1970-01-01."""
    return _EPOCH + microseconds * _MICROSECOND


def written(text: str) -> datetime.date | datetime.time:
    """The date, the datetime or the time that `isoformat` wrote."""
    if "T" in text:
        return datetime.datetime.fromisoformat(text)
    return datetime.time.fromisoformat(text) if ":" in text else datetime.date.fromisoformat(text)


def difference(high: Any, low: Any) -> Any:
    """How far two values are apart: numbers, or the time between dates, moments or times of day; also of arrays."""
    if isinstance(high, np.ndarray) and high.dtype.kind == "O":
        return np.array([difference(a, b) for a, b in zip(high, low, strict=True)], dtype=object)
    if isinstance(high, datetime.time):
        return (clock_of(high) - clock_of(low)) * _MICROSECOND  # type: ignore[operator]
    return high - low


def middle(low: Any, high: Any) -> Any:
    """Half-way between two numbers, dates, moments or times of day."""
    half = difference(high, low) / 2
    if isinstance(low, datetime.time):
        return (datetime.datetime.combine(_EPOCH, low) + half).time()
    return low + half


def _clock(text: str) -> int:
    whole = text + PADDING[len(text) - 5 :]
    hours, minutes, seconds, rest = (int(whole[a:b]) for a, b in ((0, 2), (3, 5), (6, 8), (9, 15)))
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + rest


def _offset(zone: str) -> int:
    digits = zone.replace(":", "") + "00"
    if zone == "Z":
        return 0
    minutes = int(digits[1:3]) * 60 + int(digits[3:5])
    return (-minutes if zone[0] == "-" else minutes) * 60_000_000
