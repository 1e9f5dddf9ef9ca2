"""PostgreSQL's spellings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, localcontext

from holdfast.data.dialect import EVER, NUMBER, Dialect, Key, clamped

LONGEST = 5000
"""A text of more characters is no number here."""

_SHORT_NUMBER = NUMBER.replace("[0-9]{1,9})?", "0*[0-9]{1,4})?")  # PostgreSQL's decimals hold all of these
with localcontext(prec=1100):
    _HALF_LEAST = format(Decimal(2) ** -1075, "e")
    """Up to this size a decimal rounds to the double 0, which PostgreSQL refuses to do."""


class Postgres(Dialect):
    """It has no cast that gives NULL instead of an error, so every cast stands behind a test."""

    def text(self, text: str) -> str:
        # The E, because servers think differently of backslashes.
        return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    def texts(self, x: str) -> tuple[str, ...]:
        # In the collation "C" letters are bytes: no locale has a say.
        return (f"(BTRIM(CAST({x} AS TEXT), E' \\t\\r\\n') COLLATE \"C\")",)

    def matches(self, text: str, pattern: str) -> str:
        return f"{text} ~ '^({pattern})$'"

    def known(self, x: str, family: str) -> str:
        return f"{x} <> 'NaN'" if family in ("float", "decimal") else super().known(x, family)

    def rounded(self, decimal: str, lo: int, hi: int) -> str:
        # Clamped first, because the sum could leave the widest decimals.
        return f"FLOOR(LEAST(GREATEST({decimal}, {lo - 1}), {hi + 1}) + 0.5)"

    def nearest(self, decimal: str, lo: float, hi: float) -> str:
        # Clamped first, because a decimal beyond the doubles cannot be cast.
        near = f"LEAST(GREATEST({decimal}, CAST('{lo!r}' AS NUMERIC)), CAST('{hi!r}' AS NUMERIC))"
        tiny = f"ABS({near}) <= CAST('{_HALF_LEAST}' AS NUMERIC)"
        return f"CASE WHEN {tiny} THEN {self.double(0.0)} ELSE CAST({near} AS {self.double_type}) END"

    def numbers(self, text: str, lo: float, hi: float) -> list[tuple[str, str]]:
        def passes(pattern: str) -> str:
            return f"LENGTH({text}) <= {LONGEST} AND {self.matches(text, pattern)}"

        huge = f"{passes(NUMBER)} AND {text} ~ '[eE][+]?[0-9]' AND {text} ~ '^[+-]?[0.]*[1-9]'"
        beyond = f"CASE WHEN {text} LIKE '-%' THEN {self.double(lo)} ELSE {self.double(hi)} END"
        return [
            (passes(_SHORT_NUMBER), self.nearest(f"CAST({text} AS NUMERIC)", lo, hi)),
            (huge, beyond),  # not 0, with an exponent far beyond all doubles
            (passes(NUMBER), self.double(0.0)),
        ]

    def digest(self, text: str, first: int, digits: int) -> str:
        hexadecimal = f"ENCODE(SHA256(CONVERT_TO({text}, 'UTF8')), 'hex')"
        return f"CAST(CAST('x' || SUBSTR({hexadecimal}, {first}, {digits}) AS BIT({4 * digits})) AS BIGINT)"

    def utc_day(self, instant: str) -> str:
        return f"CAST({instant} AT TIME ZONE 'UTC' AS DATE)"

    def microseconds(self, x: str, family: str) -> str:
        if family == "clock":
            return f"CAST(EXTRACT(EPOCH FROM {x}) * 1000000 AS BIGINT)"
        moment = f"({x} AT TIME ZONE 'UTC')" if family == "instant" else x
        return f"CAST(EXTRACT(EPOCH FROM {clamped(moment, *EVER)}) * 1000000 AS BIGINT)"

    def lookup(self, key: str, codes: Mapping[Key, int]) -> str:
        if any(isinstance(value, float) for value in codes):
            return super().lookup(key, codes)
        # An object of JSON finds its keys by halving, in every encoding and locale.
        places = self.text(json.dumps(codes, ensure_ascii=False))
        return f"CAST(CAST({places} AS JSONB) ->> {key} AS BIGINT)"


POSTGRES = Postgres(
    families={
        "bool": "boolean",
        **dict.fromkeys(("int2", "int4", "int8"), "whole"),
        **dict.fromkeys(("float4", "float8"), "float"),
        "numeric": "decimal",
        **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "enum"), "text"),
        "date": "date",
        "timestamp": "time",
        "time": "clock",
        "timestamptz": "instant",
    },
    code_types={"BIGINT": 63},
    text_type="TEXT",
    double_type="DOUBLE PRECISION",
    wide_type="NUMERIC",
    try_cast="CAST",
    remedy="convert it in a materialized view and open that",
)
