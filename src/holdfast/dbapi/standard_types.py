"""The constants, constructors and types of PEP 249."""

from __future__ import annotations

import datetime
from typing import Any

apilevel = "2.0"
threadsafety = 2
"""Threads may share a connection, and not a cursor."""
paramstyle = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes
DateFromTicks = datetime.date.fromtimestamp


def TimeFromTicks(ticks: float) -> datetime.time:  # the name is PEP 249's
    """The time of day of a Unix time, here."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # the name is PEP 249's
    """The date and time of a Unix time, here."""
    return datetime.datetime.fromtimestamp(ticks)


class TypeCode:
    """Equal to each of the codes that it stands for."""

    def __init__(self, *codes: str) -> None:
        self.codes = frozenset(codes)

    def __eq__(self, other: object) -> bool:
        return other in self.codes if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.codes)


STRING = TypeCode("text")
NUMBER = TypeCode("number")
DATETIME = TypeCode("date")
BINARY = TypeCode()
ROWID = TypeCode()


def type_code(values: list[Any]) -> str:
    """The code of a column, from its values."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, datetime.date | datetime.time):
        return "date"
    return "text" if isinstance(first, str) else "number"
