"""DuckDB's spellings."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.data.dialect import EVER, Dialect, Key, clamped

_MANY = 64
"""Above this many labels a lookup by hash is faster than comparing one after another."""


class DuckDB(Dialect):
    """It casts with care, and has unsigned integers and very wide ones."""

    def texts(self, x: str) -> tuple[str, ...]:
        raw = f"CAST({x} AS VARCHAR)"
        return raw, f"TRIM({raw}, ' ' || CHR(9) || CHR(13) || CHR(10))"

    def bytes_of(self, text: str) -> str:
        return f"STRLEN({text})"

    def matches(self, text: str, pattern: str) -> str:
        return f"REGEXP_FULL_MATCH({text}, '{pattern}', 's')"

    def rounded(self, decimal: str, lo: int, hi: int) -> str:
        # Read from its digits, because arithmetic on wide decimals can overflow.
        text = f"CAST({decimal} AS VARCHAR)"
        # Without digits before the point, as in '-.25', the whole part is 0.
        magnitude = f"COALESCE(TRY_CAST(REGEXP_EXTRACT({text}, '^-?([0-9]+)', 1) AS HUGEINT), 0)"
        above = f"CASE WHEN REGEXP_MATCHES({text}, '[.][5-9]') THEN 1 ELSE 0 END"
        below = f"CASE WHEN REGEXP_MATCHES({text}, '[.]([6-9]|5[0-9]*[1-9])') THEN 1 ELSE 0 END"
        return f"CASE WHEN {decimal} >= 0 THEN {magnitude} + {above} ELSE -({magnitude} + {below}) END"

    def digest(self, text: str, first: int, digits: int) -> str:
        return f"CAST('0x' || SUBSTR(SHA256({text}), {first}, {digits}) AS BIGINT)"

    def utc_day(self, instant: str) -> str:
        return f"TRY_CAST(MAKE_TIMESTAMP(EPOCH_US({instant})) AS DATE)"

    def microseconds(self, x: str, family: str) -> str:
        if family == "clock":
            return f"EPOCH_US({x})"
        if family == "nanoseconds":  # a cast would round those before 1970 up
            return f"(EPOCH_NS({x}) - ((EPOCH_NS({x}) % 1000) + 1000) % 1000) // 1000"
        moment = f"MAKE_TIMESTAMP(EPOCH_US({x}))" if family == "instant" else f"TRY_CAST({x} AS TIMESTAMP)"
        return f"EPOCH_US({clamped(moment, *EVER)})"

    def quotient(self, whole: str, divisor: int) -> str:
        return f"({whole}) // {divisor}"

    def lookup(self, key: str, codes: Mapping[Key, int]) -> str:
        if len(codes) <= _MANY:
            cases = " ".join(f"WHEN {self.literal(value)} THEN {code}" for value, code in codes.items())
            return f"CASE {key} {cases} END"
        # The inner names are longer than the column's, so that they cannot hide it.
        value, code = self.quoted(f"value of {key}"), self.quoted(f"code of {key}")
        values = f"UNNEST([{', '.join(map(self.literal, codes))}]) AS {value}"
        places = f"UNNEST(CAST('{[*codes.values()]}' AS INT[])) AS {code}"
        return f"(SELECT {code} FROM (SELECT {values}, {places}) WHERE {value} = {key})"


DUCKDB = DuckDB(
    families={
        "boolean": "boolean",
        **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), "whole"),
        **dict.fromkeys(("utinyint", "usmallint", "uinteger"), "whole"),
        **dict.fromkeys(("ubigint", "hugeint", "uhugeint"), "wide"),
        **dict.fromkeys(("float", "double"), "float"),
        "decimal": "decimal",
        **dict.fromkeys(("varchar", "enum"), "text"),
        "date": "date",
        **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms"), "time"),
        "timestamp_ns": "nanoseconds",
        "time": "clock",
        "timestamp with time zone": "instant",
        '"null"': "null",
    },
    code_types={"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64},
    text_type="VARCHAR",
    wide_type="HUGEINT",
)
