"""The dictionaries of text columns behind an engine: its distinct raw texts come here and get their codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.data.dialect import Dialect
from holdfast.errors import DataError
from holdfast.query.dictionary import Words, dictionary
from holdfast.query.schema import Text

Places = Mapping[str, int]
"""The code of each raw text that is a text of its column."""

MOST_INLINE = 2**20
"""Distinct texts that a statement can carry with it."""


def raw_text(sql: Dialect, column: Text, name: str, engine_type: str) -> str:
    """A raw value as a text of the engine, NULL if it is far too long; the rest is decided by `Text.canonical`.

    A text in NFC is at most four times shorter than it was, and a code point takes at most four bytes.
    """
    family, raw = sql.family(engine_type), f"CAST({sql.quoted(name)} AS {sql.text_type})"
    if family == "null":
        return f"CAST(NULL AS {sql.text_type})"
    if family not in ("text", "whole"):
        raise DataError(
            f"column {name!r} of type {engine_type.split('(')[0][:60]} cannot be read as text; {sql.remedy}"
        )
    return f"CASE WHEN {sql.bytes_of(raw)} <= {16 * column.max_length} THEN {raw} END"


def read_texts(column: Text, raw: Iterable[str | bytes | None]) -> tuple[Words, dict[str, int]]:
    """The dictionary of an engine's distinct texts (or of their bytes), and the code of each."""
    words, places = dictionary(raw, column)
    return words, {text.decode() if isinstance(text, bytes) else text: code for text, code in places.items()}


def refuse_too_many(name: str, places: Places) -> None:
    """DataError where a statement cannot carry the dictionary."""
    if len(places) > MOST_INLINE:
        raise DataError(
            f"expected at most {MOST_INLINE} distinct texts in column {name!r} behind this engine, got more; "
            "copy the table into a file and open that"
        )
