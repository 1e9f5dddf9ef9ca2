"""Keys of units as pairs of numbers, the same whichever door they came through.

A whole number is itself, also where it is written as a text; any other text is 120 bits of its SHA-256. Two texts
are taken for one with a chance below n^2/2^121 (10^-20 for 10^8 units); whoever can find such texts on purpose can
break SHA-256 as well. NULL, an empty text, and a number that is not whole are no key.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from holdfast.data.dialect import Dialect
from holdfast.errors import DataError
from holdfast.query.column import Integer
from holdfast.query.reading import is_utf8
from holdfast.query.schema import Schema

KEY_LIMIT = 2**60
"""Each half of a key is below it; NULL is equal to it."""
_WHOLE = 10**17
"""Whole numbers of up to so much are keys as they are."""
_SHIFT = 2**59
_DIGITS = "0|-?[1-9][0-9]{0,16}"
_PLAIN = re.compile(_DIGITS)
_SCALARS = (int, float, str, np.number, datetime.date, Decimal, UUID)
"""What may be a key among objects; dates, decimals and identifiers by their texts."""
_MISSING = ("NoneType", "NAType")


@dataclass(frozen=True, slots=True)
class KeyHalf(Integer):
    """One half of the key that stands in the column `column`."""

    column: str
    half: int
    kind: ClassVar[str] = "key"

    def encode_array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Codes of an array of numbers or texts. DataError where texts and numbers are mixed."""
        if values.dtype.kind in "iu":
            return self._whole(values)
        if values.dtype.kind == "f":
            whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < _WHOLE)
            return self._hidden(self._whole(np.where(whole, values, 0).astype(np.int64)), ~whole)
        if values.dtype.kind == "b":
            return self._whole(values.astype(np.int64))
        return self._objects(values)

    def _whole(self, values: NDArray[Any]) -> NDArray[Any]:
        near = (values < _WHOLE) & (values > -_WHOLE) if values.dtype.kind == "i" else values < _WHOLE
        codes = (
            np.where(near, values, 0).astype(np.int64) + _SHIFT
            if self.half
            else np.zeros(len(values), np.int64)
        )
        codes = codes.astype(np.uint64)
        for place in np.flatnonzero(~near):
            codes[place] = self._digest(str(values[place]))
        return codes

    def _objects(self, values: NDArray[Any]) -> NDArray[Any]:
        known: dict[Any, int] = {}
        kinds: set[str] = set()
        codes = np.empty(len(values), dtype=np.uint64)
        for place, value in enumerate(values.tolist()):
            if not isinstance(value, _SCALARS) and type(value).__name__ not in _MISSING:
                raise DataError(
                    f"expected the keys in {self.column!r} as numbers or texts, got {type(value).__name__}"
                )
            if value not in known:
                known[value] = self._object(value, kinds)
            codes[place] = known[value]
        if len(kinds) > 1:
            raise DataError(
                f"expected the keys in {self.column!r} to be all numbers or all texts, got both; make them texts"
            )
        return codes

    def _object(self, value: Any, kinds: set[str]) -> int:
        if not isinstance(value, _SCALARS) or value != value or value == "":
            return KEY_LIMIT
        if isinstance(value, int | np.integer):
            kinds.add("number")
            value = str(int(value))
        elif isinstance(value, float):
            kinds.add("number")
            if not value.is_integer() or abs(value) >= _WHOLE:
                return KEY_LIMIT
            value = str(int(value))
        elif isinstance(value, str):
            kinds.add("text")
        text = str(value)
        if not is_utf8(text):
            raise DataError(f"expected the keys in {self.column!r} as valid text, got one that is not UTF-8")
        return self._of_text(text)

    def _of_text(self, text: str) -> int:
        if _PLAIN.fullmatch(text):
            return int(text) + _SHIFT if self.half else 0
        return self._digest(text)

    def _digest(self, text: str) -> int:
        start = 15 * self.half
        return int(hashlib.sha256(text.encode()).hexdigest()[start : start + 15], 16)

    def _hidden(self, codes: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        codes[missing] = KEY_LIMIT
        return codes


def key_names(unit: str) -> tuple[str, str]:
    """The names of the two halves beside the declared columns."""
    return f"key of {unit}, first half", f"key of {unit}, second half"


def with_key(schema: Schema, unit: str) -> Schema:
    """The declared columns, and the key of the unit that owns each row."""
    halves = {name: KeyHalf(0, KEY_LIMIT - 1, unit, half) for half, name in enumerate(key_names(unit))}
    return Schema.from_mapping({**schema, **halves})


def origin(schema: Schema, name: str) -> str:
    """The raw column that a declared one is read from."""
    column = schema[name]
    return column.column if isinstance(column, KeyHalf) else name


def key_sql(sql: Dialect, column: KeyHalf, x: str, family: str) -> str | None:
    """The code of one half as SQL."""
    text = f"CAST({x} AS {sql.text_type})"

    def of(number: str) -> str:
        return f"CAST({number} AS BIGINT) + {_SHIFT}" if column.half else "0"

    digest = sql.digest(text, 15 * column.half + 1, 15)
    match family:
        case "boolean":
            return f"CASE WHEN {x} IS NOT NULL THEN {of(f'CAST({x} AS INT)')} END"
        case "whole" | "wide":
            near = f"{x} > {-_WHOLE} AND {x} < {_WHOLE}"
            return f"CASE WHEN {near} THEN {of(x)} WHEN {x} IS NOT NULL THEN {digest} END"
        case "float" | "decimal":
            # Compared first, so that nothing that cannot be cast is.
            near = f"{sql.known(x, family)} AND {x} > {-_WHOLE} AND {x} < {_WHOLE} AND {x} = FLOOR({x})"
            return f"CASE WHEN {near} THEN {of(x)} END"
        case "text":
            whole = sql.matches(text, _DIGITS)
            known = f"WHEN {whole} THEN {of(text)} WHEN {x} IS NOT NULL THEN {digest}"
            return f"CASE WHEN {text} = '' THEN NULL {known} END"
        case "date":
            return f"CASE WHEN {x} IS NOT NULL THEN {digest} END"
    return None
