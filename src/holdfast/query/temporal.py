"""Columns of days, times of day and moments: whole numbers of steps, counted from 1970-01-01 or from midnight.

There are no time zones. A value without one is taken as it is written; a moment that has one is taken in UTC.
"""

from __future__ import annotations

import datetime
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.check import shown
from holdfast.errors import HoldfastError, InputError, SchemaError
from holdfast.query import reading, time_reading
from holdfast.query.calling import constructed
from holdfast.query.discrete import Codes, Discrete, flat, in_order
from holdfast.query.time_reading import DAY, STEPS

Moment: TypeAlias = datetime.date | datetime.time
"""What these columns hold: a date, a datetime, or a time of day."""


class Temporal(Discrete):
    """Steps of `unit` microseconds from `lo` to `hi`, both included; code = steps since lo. Others are clamped."""

    __slots__ = ()
    lo: int
    hi: int
    kind: ClassVar[str]

    @property
    @abstractmethod
    def unit(self) -> int:
        """Microseconds in a step."""

    @abstractmethod
    def read(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Steps, and which values are NULL."""

    @abstractmethod
    def moment(self, step: int) -> Any:
        """The value after so many steps."""

    @abstractmethod
    def microseconds(self, value: object) -> int | None:
        """What a value written by hand stands for; None if it is none of these."""

    @property
    @abstractmethod
    def widest(self) -> Temporal:
        """The same steps over all there is."""

    @property
    def codes(self) -> int:
        return self.hi - self.lo + 1

    @property
    def first(self) -> Any:
        return self.moment(self.lo)

    @property
    def last(self) -> Any:
        return self.moment(self.hi)

    def encode_array(self, values: NDArray[Any]) -> Codes:
        """Codes of an array of datetime64, text or object dtype. Total on values."""
        steps, null = self.read(flat(values))
        codes = (np.clip(steps, self.lo, self.hi) - self.lo).astype(self.dtype)
        codes[null] = self.null_code
        return codes

    def code(self, value: object) -> int:
        """The code of a value; outside 0 .. codes-1 if it is out of bounds."""
        return _steps(self, value, f"a value of a {type(self).__name__} column", InputError) - self.lo

    def value(self, code: int) -> Any:
        return self.moment(code + self.lo)

    def decode(self, codes: Codes) -> list[Any]:
        null, lo = self.null_code, self.lo
        return [None if c == null else self.moment(c + lo) for c in codes.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "lo": str(self.first), "hi": str(self.last)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, list(self.to_json().values())[1:]))})"


@constructed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Date(Temporal):
    """Days from lo to hi, both included; code = days since lo. Others are clamped, times of day dropped.

    `lo` and `hi` are days since 1970-01-01; `first` and `last` are the same as dates.
    """

    lo: int
    hi: int
    kind: ClassVar[str] = "date"
    unit: ClassVar[int] = DAY

    def __init__(self, lo: str | datetime.date, hi: str | datetime.date) -> None:
        _bound(self, lo, hi)

    def read(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        return reading.days(values, self.kind)

    def moment(self, step: int) -> datetime.date:
        return reading.date_of(step)

    def microseconds(self, value: object) -> int | None:
        day = reading.day_of(value)
        return None if day is None else day * DAY

    @property
    def widest(self) -> Date:
        return Date("0001-01-01", "9999-12-31")


@constructed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Timestamp(Temporal):
    """Moments from lo to hi, both included, in steps: "second", or another of `STEPS`. Others are clamped, and
    what is finer than a step is dropped.

    A moment has no time zone: one that comes with a zone is taken in UTC, any other as it is written. A date as `hi`
    means the end of that day. `lo` and `hi` are steps since 1970-01-01; `first` and `last` are the same as datetimes.
    """

    lo: int
    hi: int
    step: str
    kind: ClassVar[str] = "timestamp"

    def __init__(self, lo: str | datetime.date, hi: str | datetime.date, step: str = "second") -> None:
        object.__setattr__(self, "step", _step(step))
        day = reading.day_of(hi) if _is_day(hi) else None
        _bound(self, lo, hi if day is None else time_reading.datetime_of((day + 1) * DAY - self.unit))

    @property
    def unit(self) -> int:
        return STEPS[self.step]

    def read(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        found, null = time_reading.moments(values, self.kind)
        return found // self.unit, null

    def moment(self, step: int) -> datetime.datetime:
        return time_reading.datetime_of(step * self.unit)

    def microseconds(self, value: object) -> int | None:
        return time_reading.moment_of(value)

    @property
    def widest(self) -> Timestamp:
        return Timestamp("0001-01-01", "9999-12-31", self.step)

    def to_json(self) -> dict[str, Any]:
        return Temporal.to_json(self) | {"step": self.step}


@constructed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Time(Temporal):
    """Times of day from lo to hi, both included, in steps: "second", or another of `STEPS`. Others are clamped,
    and what is finer than a step is dropped.

    Of a moment it takes the time of day, in UTC where it has a zone. `lo` and `hi` are steps since midnight; `first`
    and `last` are the same as times.
    """

    lo: int
    hi: int
    step: str
    kind: ClassVar[str] = "time"

    def __init__(
        self,
        lo: str | datetime.time = "00:00:00",
        hi: str | datetime.time = "23:59:59.999999",
        step: str = "second",
    ) -> None:
        object.__setattr__(self, "step", _step(step))
        _bound(self, lo, hi)

    @property
    def unit(self) -> int:
        return STEPS[self.step]

    def read(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        found, null = time_reading.clocks(values, self.kind)
        return found // self.unit, null

    def moment(self, step: int) -> datetime.time:
        return time_reading.datetime_of(step * self.unit).time()

    def microseconds(self, value: object) -> int | None:
        return time_reading.clock_of(value)

    @property
    def widest(self) -> Time:
        return Time(step=self.step)

    def to_json(self) -> dict[str, Any]:
        return Temporal.to_json(self) | {"step": self.step}


_WRITTEN = {"date": "a date or a 'YYYY-MM-DD' text", "time": "a time or an 'HH:MM:SS' text",
            "timestamp": "a datetime or a 'YYYY-MM-DD HH:MM:SS' text"}  # fmt: skip


def _bound(kind: Any, lo: object, hi: object) -> None:
    name = type(kind).__name__
    object.__setattr__(kind, "lo", _steps(kind, lo, f"{name} lo", SchemaError))
    object.__setattr__(kind, "hi", _steps(kind, hi, f"{name} hi", SchemaError))
    in_order(kind.lo, kind.hi, name)


def _steps(kind: Temporal, value: object, name: str, error: type[HoldfastError]) -> int:
    found = kind.microseconds(value)
    if found is None:
        raise error(f"{name} must be {_WRITTEN[kind.kind]}, got {shown(value)}")
    return found // kind.unit


def _step(step: object) -> str:
    if not isinstance(step, str) or step not in STEPS:
        raise SchemaError(f"expected step= as one of {', '.join(map(repr, STEPS))}, got {shown(step)}")
    return step


def _is_day(value: object) -> bool:
    """Whether it says a day and no time of day."""
    if isinstance(value, str):
        return len(value.strip()) == 10
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
