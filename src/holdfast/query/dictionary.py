"""The dictionary of a text column: the texts that occur, in order. It is as secret as the rows.

Conditions on texts are decided once for each text of the dictionary; a row then looks up its code.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.query.column import Text
from holdfast.query.expression import Column
from holdfast.query.like import like
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import UnitSchema

_KEPT = 64
"""Conditions whose table is kept: those of a session come again with every block."""


class Words:
    """Distinct texts in the order of their code points; the code of a text is its place.

    Nothing about them is shown: not how many there are, and no text.
    """

    __slots__ = ("table", "texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self.table: Callable[[str, str | int], NDArray[np.bool_]] = lru_cache(_KEPT)(self._table)
        """Which codes pass a test (see `TextTest`)."""

    def __repr__(self) -> str:
        return "Words(secret)"

    def code(self, text: str) -> int | None:
        """The code of a text, if it occurs."""
        place = bisect_left(self.texts, text)
        return place if self.texts[place : place + 1] == (text,) else None

    def _table(self, test: str, value: str | int) -> NDArray[np.bool_]:
        passed = np.zeros(len(self.texts), dtype=np.bool_)
        if test == "=":
            code = self.code(str(value))
            passed[[] if code is None else [code]] = True
        elif test == "starts_with":
            prefix = str(value)
            first = bisect_left(self.texts, prefix)
            last = bisect_left(self.texts, True, first, key=lambda text: not text.startswith(prefix))
            passed[first:last] = True
        elif test == "LIKE":
            matches = like(str(value))
            passed[:] = [matches(text) for text in self.texts]
        else:
            lengths = np.fromiter(map(len, self.texts), np.int64, len(self.texts))
            passed[:] = {"<=": np.less_equal, ">=": np.greater_equal, "=": np.equal}[test.split()[1]](
                lengths, value
            )
        return passed


class TextCodes(np.ndarray[Any, np.dtype[np.uint32]]):
    """Codes of texts together with their dictionary, which goes along with every slice."""

    words: Words

    def __array_finalize__(self, made_from: Any) -> None:
        self.words = getattr(made_from, "words", _NO_WORDS)

    def passing(self, test: str, value: str | int) -> NDArray[np.bool_]:
        """Which rows pass a test; a NULL passes none."""
        table = np.append(self.words.table(test, value), False)
        return table.take(np.asarray(self), mode="clip")

    def places(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """The place of each row's text among the keys, or -1."""
        table = np.full(len(self.words.texts) + 1, -1)
        for place, key in enumerate(keys):
            if (code := self.words.code(key)) is not None:
                table[code] = place
        return table.take(np.asarray(self), mode="clip")


_NO_WORDS = Words(())


def with_words(codes: NDArray[Any], words: Words) -> TextCodes:
    """The same codes, which know their dictionary."""
    found = codes.view(TextCodes)
    found.words = words
    return found


@lru_cache(maxsize=1024)
def text_behind(schema: Schema, name: str) -> str | None:
    """The text column whose dictionary and keys a column has, by whatever name it is read; None if it has no texts.

    The least, greatest, first or last text of a unit's events has those of the events.
    """
    name = schema.spelling(name) or name
    if not isinstance(schema, UnitSchema):
        return name if isinstance(schema.get(name), Text) else None
    if name in schema.texts:
        return name
    picked = schema.aggregate(name)
    return (
        picked.value.name
        if picked and isinstance(picked.value, Column) and isinstance(picked.type, Text)
        else None
    )


def texts_of(codes: NDArray[Any]) -> TextCodes:
    """The codes of a block that knows its dictionaries: one that a desk hands out."""
    if not isinstance(codes, TextCodes):
        raise InputError("expected texts with their dictionary, got bare codes; read them through a desk")
    return codes


def dictionary(raw: Iterable[object], column: Text) -> tuple[Words, dict[Any, int]]:
    """The dictionary of distinct raw values, and the code of each that is a text of the column."""
    canonical = {value: text for value in raw if (text := column.canonical(value)) is not None}
    words = Words(sorted(set(canonical.values())))
    codes = {text: code for code, text in enumerate(words.texts)}
    return words, {value: codes[text] for value, text in canonical.items()}


def encoded(values: list[object], column: Text) -> TextCodes:
    """The codes of values in memory. Each distinct text is looked at once."""
    readable = (str, bytes, int, np.integer)
    known = [
        value if isinstance(value, readable) and value is not True and value is not False else None
        for value in values
    ]
    words, codes = dictionary(dict.fromkeys(known), column)
    found = (codes.get(value, column.null_code) for value in known)
    return with_words(np.fromiter(found, column.dtype, len(known)), words)


def normal(text: str) -> str:
    """A text of a question in the form that texts of rows have."""
    return unicodedata.normalize("NFC", text)
