"""Parts of a day as whole numbers, in NumPy and in SQL: what `year(visit)` and its kin mean.

A day is its number since 1970-01-01, in the Gregorian calendar, from the year 1 to the year 9999. Weeks are those of
ISO 8601; `dow` counts from Sunday, 0, and `isodow` from Monday, 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.column import Date

PARTS = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
}
"""Each part, and the least and the greatest it can be."""
TRUNCATED = ("year", "quarter", "month", "week", "day")
"""What `date_trunc` goes back to the beginning of."""
_TABULATED = 2**16
_WEEK = 7 * 10**6
"""More days than there are, and a whole number of weeks."""


def bounds(part: str, kind: Date) -> tuple[int, int]:
    """The least and the greatest that a part can be on the declared days."""
    if part == "year":
        return kind.first.year, kind.last.year
    if kind.codes > _TABULATED:
        return PARTS[part]
    found = compute(part, np.arange(kind.lo, kind.hi + 1, dtype=np.int64))
    return int(found.min()), int(found.max())


def compute(part: str, days: NDArray[np.int64]) -> NDArray[np.int64]:
    """The part of each day."""
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


def sql(part: str, day: str) -> str:
    """The part as SQL, from the day's number as a BIGINT; DuckDB, PostgreSQL and Spark read it alike."""
    if part == "dow":  # the remainder of a negative number differs
        return f"(({day} + {_WEEK + 4}) % 7)"
    if part == "isodow":
        return f"(({day} + {_WEEK + 3}) % 7 + 1)"
    return f"CAST(EXTRACT({part.upper()} FROM (DATE '1970-01-01' + CAST({day} AS INTEGER))) AS BIGINT)"


def _months(days: Any) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (
        np.asarray(days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    )
    return found
