"""A private answer with its interval."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.noise._replay import replaying
from holdfast.query.temporal import Moment
from holdfast.query.time_reading import difference, written
from holdfast.session import answer_columns, display

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.figure import Figure

Value = Any
"""A number or a date; an array of them for a vector answer. Which one, the question says, and no type checker can
know; a union would have every reader of a number rule out dates."""

Width = float | datetime.timedelta | NDArray[Any]
"""A number, or a time between dates; an array of them for a vector answer."""


@dataclass(frozen=True, repr=False)
class Answer:
    """What was released. Everything in it is public.

    `low` and `high` cover the true value of the `target` ("table" or "population"), together with all other
    answers of the session, with probability `confidence`. The half-width is the sum of three parts: `noise`
    (privacy), `sampling` (rows not read) and `population` (adaptivity). For a vector answer `value`, `low`,
    `high`, the parts and `too_few` are arrays, one for each of `labels`.

    An answer for the population also has `table_low` and `table_high`, which cover the value on the rows themselves:
    noise and sampling alone. All of these hold at once with probability `confidence`, and so do all of `low` and
    `high`; both together with probability 1 - 2(1 - confidence). None for the table, where they would be `low` and
    `high`, and for quantiles, whose ends are chosen privately for one target.

    `within` is the half-width that was asked for (None if none was, and for a quantile, whose width is in rank and
    always kept); `met` says whether it was kept. `too_few` says that a mean could be anywhere in its declared range:
    too few rows qualified for the noise, and `value` says nothing.
    """

    question: str
    value: Value
    low: Value
    high: Value
    confidence: float
    noise: Value
    sampling: Value
    population: Value
    target: str
    rho: float
    epsilon: float | None
    rows_read: int
    mechanism: str
    explanation: str
    labels: tuple[str, ...] | None = None
    keys: tuple[tuple[str, ...], ...] | None = None
    """With groups of several columns, the label of each group in each of them."""
    by: tuple[str, ...] | None = None
    """With groups of several columns, what these are called."""
    within: float | None = None
    too_few: Value = False
    disagreement: float | None = None
    """Of a difference for the population, the noisy share of the rows on which the two conditions disagree."""
    currency: str | None = None
    """What the session counts in: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu squared). The cost is shown in it, so
    that the word epsilon means that of the budget. `epsilon` is what a pure mechanism costs alone."""
    table_low: Value = None
    table_high: Value = None
    ends_theorem: bool = False
    """It was the first on its table that the leave-out theorem does not cover: later intervals are wider."""
    repeated: bool = field(default=False, compare=False)
    """This is the stored answer to a question asked before; it cost nothing."""
    replayed: bool = field(default_factory=replaying, compare=False)
    """A test made it with noise that repeats itself: it is not private, whatever was charged."""

    @property
    def width(self) -> Width:
        """Half the length of the interval."""
        half: Width = difference(self.high, self.low) / 2
        return half

    @property
    def differs(self) -> bool | NDArray[np.bool_]:
        """Whether the interval does not hold 0: of a difference or a covariance, that there is one.

        Guarantee: with probability `confidence` no answer of the session says so of what is 0, however the questions
        were chosen (docs/theorems.md, Theorem 77).
        """
        apart: bool | NDArray[np.bool_] = _python((self.low > 0) | (self.high < 0))
        return apart

    @property
    def private(self) -> bool:
        """Whether it is differentially private, at a loss of `rho`. Some holdouts' answers are not."""
        return math.isfinite(self.rho)

    @property
    def met(self) -> bool | NDArray[np.bool_] | None:
        """Whether the half-width is at most the one asked for, up to the rounding of floats; for each group.

        None if none was asked for. Only a mean can miss it: the plan says how many rows must qualify.
        """
        if self.within is None:
            return None
        if self.labels is None:
            return bool(
                self.width <= self.within * (1 + 2.0**-40) + 2.0**-50 * max(abs(self.low), abs(self.high))
            )
        last_digits = 2.0**-50 * np.maximum(np.abs(self.low), np.abs(self.high))
        kept: bool | NDArray[np.bool_] = _python(self.width <= self.within * (1 + 2.0**-40) + last_digits)
        return kept

    def explain(self) -> str:
        """What was chosen to answer, in plain words."""
        return self.explanation

    def __iter__(self) -> Iterator[tuple[str, Value, Value, Value]]:
        """The groups of a vector answer: label, value, low, high."""
        if self.labels is None:
            return iter([("", self.value, self.low, self.high)])
        return zip(self.labels, self.value, self.low, self.high, strict=True)

    def __len__(self) -> int:
        """How many groups there are; 1 without groups."""
        return 1 if self.labels is None else len(self.labels)

    def __bool__(self) -> bool:
        """There is an answer, whatever its value is."""
        return True

    def __float__(self) -> float:
        """The value of an answer that is one number."""
        if self.labels is not None or isinstance(self.value, Moment):
            what = f"{len(self)} groups" if self.labels is not None else "a date or a time"
            raise InputError(
                f"expected an answer that is one number, got {what}; take `.value`, or one group"
            )
        return float(self.value)

    def __getitem__(self, label: object) -> Answer:
        """One group of a vector answer, as an answer of its own."""
        index = self._place(label)
        parts = {name: getattr(self, name) for name in answer_columns.PARTS}
        picked = {name: _python(part[index]) if np.ndim(part) else part for name, part in parts.items()}
        said = ", ".join(map(str, label)) if isinstance(label, tuple) else label
        return replace(self, question=f"{self.question} = {said}", labels=None, keys=None, by=None, **picked)

    def _place(self, label: object) -> int:
        """The place of a group: by its label, or by its labels in several columns."""
        if self.keys is not None and isinstance(label, tuple):
            names, wanted = self.keys, tuple(map(str, label))
            if wanted in names:
                return names.index(wanted)
        elif self.labels is not None and str(label) in self.labels:
            return self.labels.index(str(label))
        if self.keys and self.by is not None:
            example = ", ".join(map(repr, self.keys[0]))
            raise KeyError(
                f"no group {label!r}; one is a label in each of {', '.join(self.by)}, as in [{example}]"
            )
        known = self.labels or ()
        some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
        raise KeyError(f"no group {label!r}; {f'there are {some}' if known else 'the answer has none'}")

    def to_dict(self) -> dict[str, list[object]]:
        """Columns by name: `group` (with groups), `value`, `low`, `high`, the three parts and `too_few`."""
        return answer_columns.columns(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The columns of `to_dict` as a pandas DataFrame, a row for each group."""
        return answer_columns.pandas_frame(self.to_dict())

    def to_polars(self) -> polars.DataFrame:
        """The columns of `to_dict` as a Polars DataFrame."""
        return answer_columns.polars_frame(self.to_dict())

    def to_arrow(self) -> pyarrow.Table:
        """The columns of `to_dict` as an Arrow table."""
        return answer_columns.arrow_table(self.to_dict())

    def plot(self, path: Path | str | None = None) -> Figure:
        """A matplotlib figure of every group with its interval; written to `path`, if one is given."""
        return answer_columns.picture(self, path)

    def to_json(self) -> str:
        """The whole answer as JSON text, with what follows from it (`met`). One that is not private says so, and has
        no rho. Of a single number it is written once."""
        if (written_before := vars(self).get("_text")) is not None:
            return str(written_before)
        parts = vars(self) | {"met": self.met}
        del parts["repeated"]
        if not self.replayed:
            del parts["replayed"]
        if not self.private:
            parts |= {"rho": None, "private": False}
        if self.labels is not None:
            return _ENCODER.encode(parts)
        planned = _planned_text(*map(parts.pop, _PLANNED))
        text = f"{_ENCODER.encode(parts)[:-1]}, {planned[1:]}"
        vars(self)["_text"] = text
        return text

    @classmethod
    def from_json(cls, text: str, *, repeated: bool = False) -> Answer:
        """The answer that `to_json` wrote."""
        parts = {"replayed": False} | {name: _readable(part) for name, part in json.loads(text).items()}
        del parts["met"]
        if not parts.pop("private", True):
            parts["rho"] = math.inf
        for name in ("labels", "by"):
            if parts.get(name) is not None:
                parts[name] = tuple(parts[name])
        if parts.get("keys") is not None:
            parts["keys"] = tuple(map(tuple, parts["keys"]))
        return cls(**parts, repeated=repeated)

    def __str__(self) -> str:
        return display.answer_text(self)

    __repr__ = __str__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In the terminal of IPython."""
        printer.text(str(self))

    def __rich__(self) -> Any:
        return display.answer_rich(self)

    def _repr_html_(self) -> str:
        return display.answer_html(self)


def _python(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


def _jsonable(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return (
            {"array": part.tolist()} if part.dtype.kind != "O" else {"dates": [d.isoformat() for d in part]}
        )
    if isinstance(part, Moment):
        return {"date": part.isoformat()}
    if isinstance(part, np.generic):
        return part.item()
    raise TypeError(type(part).__name__)


def _readable(part: Any) -> Any:
    if isinstance(part, dict):
        if "array" in part:
            return np.array(part["array"])
        if "dates" in part:
            return np.array([written(d) for d in part["dates"]], dtype=object)
        return written(part["date"])
    return part


_ENCODER = json.JSONEncoder(default=_jsonable)
_PLANNED = (
    "confidence", "target", "rho", "epsilon", "rows_read", "mechanism", "within", "noise", "sampling", "population",
    "labels", "keys", "by", "ends_theorem", "currency",
)  # fmt: skip
"""What a plan says of an answer before there is one: the same for all questions that it serves."""


@lru_cache(maxsize=256, typed=True)
def _planned_text(*planned: Any) -> str:
    """These parts of a single number's answer as JSON."""
    return _ENCODER.encode(dict(zip(_PLANNED, planned, strict=True)))
