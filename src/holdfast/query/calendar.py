"""Parts of days and times as whole numbers, in NumPy and in SQL: what `year(visit)` and `hour(departed)` mean.

A moment is a number of steps since 1970-01-01, in the Gregorian calendar, from the year 1 to the year 9999; a time of
day is one since midnight. A step takes `unit` microseconds. Weeks are those of ISO 8601; `dow` counts from Sunday, 0,
and `isodow` from Monday, 1. Seconds are whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import QueryError
from holdfast.query.temporal import Date, Temporal, Time
from holdfast.query.time_reading import DAY, STEPS

PARTS = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""Each part, and the least and the greatest it can be."""
OF_DAY = ("hour", "minute", "second")
TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute")
"""What `date_trunc` goes back to the beginning of."""
MAX_STARTS = 2**22
"""How many beginnings are written down to compare one with a moment: the minutes of eight years."""
_TABULATED = 2**16
_WEEK = 7 * 10**6
"""More days than there are, and a whole number of weeks."""


def has(part: str, kind: Temporal) -> bool:
    """Whether there is such a part of the column's values."""
    return part not in OF_DAY if isinstance(kind, Date) else part in OF_DAY or not isinstance(kind, Time)


def bounds(part: str, kind: Temporal) -> tuple[int, int]:
    """The least and the greatest that a part can be on the declared steps."""
    if part == "year":
        return kind.first.year, kind.last.year
    if kind.codes > _TABULATED:
        return PARTS[part]
    found = compute(part, np.arange(kind.lo, kind.hi + 1, dtype=np.int64), kind.unit)
    return int(found.min()), int(found.max())


def compute(part: str, steps: NDArray[np.int64], unit: int = DAY) -> NDArray[np.int64]:
    """The part of each moment."""
    if part in OF_DAY:
        return steps * unit // STEPS[part] % (PARTS[part][1] + 1)
    days = steps if unit == DAY else steps * unit // DAY
    if part == "dow":
        return (days + 4) % 7
    if part == "isodow":
        return (days + 3) % 7 + 1
    if part == "week":  # the week of its Thursday, which is of the same year
        thursday = days - (days + 3) % 7 + 3
        return (thursday - begin("year", thursday)) // 7 + 1
    if part in ("day", "doy"):
        return days - begin("month" if part == "day" else "year", days) + 1
    months = _months(days)
    if part == "year":
        return months // 12 + 1970
    return months % 12 + 1 if part == "month" else months % 12 // 3 + 1


def begin(part: str, days: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first day of the year, quarter, month or week of each day."""
    if part == "day":
        return days
    if part == "week":
        return days - (days + 3) % 7
    length = {"year": 12, "quarter": 3, "month": 1}[part]
    months = _months(days)
    return (months - months % length).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def starts(part: str, kind: Temporal, most: int = MAX_STARTS) -> NDArray[np.int64]:
    """The microseconds at which each year, month or hour begins; the first may lie before what is declared."""
    length = max(STEPS.get(part, DAY), kind.unit)
    first, last = kind.lo * kind.unit // length, kind.hi * kind.unit // length
    if part in OF_DAY and last - first >= most:
        raise QueryError(
            f"there are {last - first + 1:,} of these, and at most {most:,} may be told apart; cut it coarser"
        )
    found = np.arange(first, last + 1, dtype=np.int64)
    if part not in OF_DAY:
        found = np.unique(begin(part, found))
        if len(found) > most:
            raise QueryError(
                f"there are {len(found):,} of these, and at most {most:,} may be told apart; cut it coarser"
            )
    return found * length


def sql(part: str, step: str, unit: int = DAY) -> str:
    """The part as SQL, from the number of steps as a BIGINT; DuckDB, PostgreSQL and Spark read it alike."""
    if part in OF_DAY:
        inside = f"(({step} + {10**6 * (DAY // unit)}) % {max(1, _longer(part) // unit)})"
        # Of whole numbers below 2^53 the quotient is never rounded up to a whole number.
        return f"CAST(FLOOR({inside} * 1.0e0 / {max(1, STEPS[part] // unit)}.0e0) AS BIGINT)"
    day = step if unit == DAY else _day_sql(step, DAY // unit)
    if part == "dow":  # the remainder of a negative number differs
        return f"(({day} + {_WEEK + 4}) % 7)"
    if part == "isodow":
        return f"(({day} + {_WEEK + 3}) % 7 + 1)"
    return f"CAST(EXTRACT({part.upper()} FROM (DATE '1970-01-01' + CAST({day} AS INTEGER))) AS BIGINT)"


def _day_sql(step: str, length: int) -> str:
    """The day of a step, of which a day has `length`: a multiple of it, divided by it, is off by less than 1/2."""
    late = f"({step} + {10**6 * length})"
    return f"(CAST(FLOOR(({late} - {late} % {length}) * 1.0e0 / {length}.0e0 + 0.5e0) AS BIGINT) - {10**6})"


def _longer(part: str) -> int:
    """How long it takes until a part of the day begins anew."""
    return {"hour": DAY, "minute": STEPS["hour"], "second": STEPS["minute"]}[part]


def _months(days: Any) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (
        np.asarray(days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    )
    return found
