"""What one column may hold: eight declared types, each with a code for every value and for NULL.

Rows reach the evaluator as *codes*. A discrete type with `codes` values uses 0 .. codes-1 in the smallest
unsigned dtype that also holds `null_code` = codes, so NULL is always the largest code. A Real is its own
float64 code and NULL is NaN. Codes keep the order of the values. The codes of a Text are places in a dictionary of the
texts that occur (`holdfast.query.dictionary`), which is as secret as the rows.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.check import shown
from holdfast.errors import HoldfastError, InputError, SchemaError
from holdfast.query import reading
from holdfast.query.calling import constructed
from holdfast.query.discrete import Codes, Discrete, flat, in_order
from holdfast.query.temporal import Date, Temporal, Time, Timestamp
from holdfast.query.wording import listed

INTEGER_LIMIT = 2**62
MAX_LABELS = 2**20
MAX_LENGTH = 2**16
MAX_STEPS = 2**32  # a sum of 2^31 rows, each at most this many steps, still fits int64


@constructed
@dataclass(frozen=True, slots=True)
class Integer(Discrete):
    """Whole numbers in [lo, hi]; code = value - lo. Others are clamped, fractions round half up."""

    lo: int
    hi: int
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        for side in ("lo", "hi"):
            object.__setattr__(self, side, _whole(getattr(self, side), f"Integer {side}"))
        in_order(self.lo, self.hi, "Integer")
        if self.lo < -INTEGER_LIMIT or self.hi > INTEGER_LIMIT or self.hi - self.lo >= INTEGER_LIMIT:
            raise SchemaError(
                "an Integer needs bounds within ±2^62 and hi - lo below 2^62; use closer bounds"
            )

    @property
    def codes(self) -> int:
        return self.hi - self.lo + 1

    def encode_array(self, values: NDArray[Any]) -> Codes:
        """Codes of an array of any number, text or object dtype. Total on values.

        A fraction x becomes floor(x) + (x - floor(x) >= 1/2), which is exact where floor(x + 0.5) is not.
        """
        whole, null = reading.integers(flat(values), self.lo, self.hi, self.kind)
        whole -= self.lo
        codes = whole.astype(self.dtype)
        codes[null] = self.null_code
        return codes

    def code(self, value: int) -> int:
        """The code of a whole number; outside 0 .. codes-1 if the number is out of bounds."""
        return _whole(value, "a value of an Integer column", InputError) - self.lo

    def value(self, code: int) -> int:
        return code + self.lo

    def decode(self, codes: Codes) -> list[int | None]:
        null, lo = self.null_code, self.lo
        return [None if c == null else c + lo for c in codes.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "lo": self.lo, "hi": self.hi}


@constructed
@dataclass(frozen=True, slots=True)
class Boolean:
    """False, true or NULL: codes 0, 1 and 2. A number is true unless it is zero."""

    lo: ClassVar[int] = 0
    hi: ClassVar[int] = 1
    codes: ClassVar[int] = 2
    null_code: ClassVar[int] = 2
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)
    kind: ClassVar[str] = "boolean"

    def encode_array(self, values: NDArray[Any]) -> Codes:
        """Codes of an array of any number, text or object dtype. Total on values."""
        return reading.truths(flat(values), self.kind)

    def code(self, value: bool) -> int:
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"expected True or False, got {value!r}")
        return int(value)

    def value(self, code: int) -> bool:
        return code == 1

    def decode(self, codes: Codes) -> list[bool | None]:
        return [(False, True, None)[c] for c in codes.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind}


@constructed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Category(Discrete):
    """One of the declared labels; code = place in the declaration. Any other value becomes NULL."""

    labels: tuple[str, ...]
    places: dict[str, int] = field(compare=False)
    kind: ClassVar[str] = "category"
    lo: ClassVar[int] = 0

    def __init__(self, *labels: str | int) -> None:
        if not labels:
            raise SchemaError("a Category needs at least one label, got none; write Category('no', 'yes')")
        if len(labels) > MAX_LABELS:
            raise SchemaError(f"expected at most {MAX_LABELS} labels of a Category, got {len(labels)}")
        texts = tuple(_label(label) for label in labels)
        if len(set(texts)) < len(texts):
            twice = Counter(texts).most_common(1)[0][0]
            raise SchemaError(f"expected distinct labels of a Category, got {twice!r} twice")
        object.__setattr__(self, "labels", texts)
        object.__setattr__(self, "places", {text: code for code, text in enumerate(texts)})

    @property
    def hi(self) -> int:
        return len(self.labels) - 1

    @property
    def codes(self) -> int:
        return len(self.labels)

    def encode_array(self, values: NDArray[Any]) -> Codes:
        """Codes of an array of any number, text or object dtype. Total on values.

        A number stands for its shortest decimal text (3.0 for "3"), a truth value for "true" or "false".
        """
        return reading.labels(flat(values), self.labels, self.dtype, self.kind)

    def code(self, value: str | int) -> int:
        """The code of a declared label."""
        if str(value) not in self.places:
            raise InputError(f"expected one of the labels {listed(self.labels)}, got {value!r}")
        return self.places[str(value)]

    def value(self, code: int) -> str:
        return self.labels[code]

    def decode(self, codes: Codes) -> list[str | None]:
        texts = (*self.labels, None)
        return [texts[c] for c in codes.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "labels": list(self.labels)}

    def __repr__(self) -> str:
        return f"Category({', '.join(map(repr, self.labels))})"


@constructed
@dataclass(frozen=True, slots=True)
class Real:
    """Numbers in [lo, hi] as float64; others are clamped, -0.0 becomes 0.0, NULL is NaN.

    `step` is the grid on which sums are exact integers; by default (hi - lo) / 2^20.
    """

    lo: float
    hi: float
    step: float | None = None
    kind: ClassVar[str] = "real"
    codes: ClassVar[None] = None
    null_code: ClassVar[float] = math.nan
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float64)

    def __post_init__(self) -> None:
        for side in ("lo", "hi"):
            object.__setattr__(self, side, _finite(getattr(self, side), f"Real {side}"))
        in_order(self.lo, self.hi, "Real")
        width = self.hi - self.lo
        if not 0 < width < math.inf:
            raise SchemaError(
                f"a Real needs lo < hi and a finite hi - lo, got [{self.lo!r}, {self.hi!r}]; "
                "use Integer for a column with one value, closer bounds for a wide one"
            )
        step = width / 2**20 if self.step is None else _finite(self.step, "Real step")
        if not (step > 0 and 1 <= width / step <= MAX_STEPS):
            raise SchemaError(
                f"expected a Real's step that fits between 1 and 2^32 times into hi - lo = {width!r}, "
                f"got {step!r}"
            )
        object.__setattr__(self, "step", step)

    @property
    def grid(self) -> float:
        """`step`, typed as the number it always is."""
        assert self.step is not None
        return self.step

    def encode_array(self, values: NDArray[Any]) -> Codes:
        """Clamped float64 values of an array of any number, text or object dtype. Total on values."""
        return reading.reals(flat(values), self.lo, self.hi, self.kind)

    def decode(self, codes: Codes) -> list[float | None]:
        return [None if c != c else c for c in codes.tolist()]

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "lo": self.lo, "hi": self.hi, "step": self.grid}


@constructed
@dataclass(frozen=True, slots=True)
class Text(Discrete):
    """Texts of at most `max_length` code points in normal form NFC, without NUL; any other value becomes NULL.

    Whole numbers stand for their decimal text. `keys` are texts that a session has discovered, so that they are public;
    an owner declares none.
    """

    max_length: int
    keys: tuple[str, ...] | None = None
    kind: ClassVar[str] = "text"
    lo: ClassVar[int] = 0

    def __post_init__(self) -> None:
        length = _whole(self.max_length, "Text max_length")
        if not 1 <= length <= MAX_LENGTH:
            raise SchemaError(
                f"expected max_length= of a Text from 1 to {MAX_LENGTH}, got {length}; say how long texts may be"
            )
        object.__setattr__(self, "max_length", length)
        if self.keys is not None and not isinstance(self.keys, tuple):
            raise SchemaError(
                "expected no keys for a Text, got some; they are discovered, and known labels are a Category"
            )

    @property
    def codes(self) -> int:
        return 2**32 - 1

    def canonical(self, value: object) -> str | None:
        """The text that a value stands for, or None: NULL."""
        return reading.text_of(value, self.max_length)

    def encode_array(self, values: NDArray[Any]) -> Codes:
        """Codes of an array of texts, whole numbers or objects, with their dictionary. Total on values."""
        from holdfast.query.dictionary import encoded

        if (given := flat(values)).dtype.kind not in "USTOiu":
            raise reading.impossible(given, self.kind)
        return encoded(given.tolist(), self)

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "max_length": self.max_length}


ColumnType: TypeAlias = Integer | Boolean | Category | Temporal | Real | Text


def column_from_json(fields: object) -> ColumnType:
    """The column type that `to_json` wrote."""
    if not isinstance(fields, dict):
        raise SchemaError(f"expected a table of settings for a column, got {type(fields).__name__}")
    rest = dict(fields)
    kind = rest.pop("type", None)
    try:
        match kind:
            case "integer":
                return Integer(**rest)
            case "boolean":
                return Boolean(**rest)
            case "real":
                return Real(**rest)
            case "date":
                return Date(**rest)
            case "time":
                return Time(**rest)
            case "timestamp":
                return Timestamp(**rest)
            case "text" if set(rest) == {"max_length"}:
                return Text(**rest)
            case "category" if set(rest) == {"labels"} and isinstance(rest["labels"], list | tuple):
                return Category(*rest["labels"])
    except TypeError:
        pass  # a setting is missing or unknown: the message below names them all
    raise SchemaError(
        "a column is type='integer' with lo, hi; 'real' with lo, hi and perhaps step; 'date' with lo, hi; "
        "'timestamp' with lo, hi and perhaps step; 'time' with what of these there is; "
        f"'category' with labels; 'text' with max_length; or 'boolean'; got type={kind!r} with {sorted(map(str, rest))}"
    )


def _whole(value: Any, name: str, error: type[HoldfastError] = SchemaError) -> int:
    if isinstance(value, bool | np.bool_):
        raise error(f"{name} must be a whole number, got a truth value")
    try:
        return operator.index(value)
    except TypeError:
        raise error(f"{name} must be a whole number, got {shown(value)}") from None


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise SchemaError(f"expected a number as {name}, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SchemaError(f"expected a finite number as {name}, got {number!r}")
    return number + 0.0  # -0.0 becomes 0.0


def _label(label: object) -> str:
    if isinstance(label, bool | np.bool_) or not isinstance(label, str | int | np.integer):
        raise SchemaError(f"expected texts or whole numbers as a Category's labels, got {shown(label)}")
    text = str(label)
    if "\0" in text or not reading.is_utf8(text):
        raise SchemaError(f"expected labels of valid text without NUL characters, got {text!r}")
    return text
