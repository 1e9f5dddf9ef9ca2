"""Spark's spellings, the same whether or not it is in its ANSI mode."""

from __future__ import annotations

from holdfast.data.dialect import Dialect

_MICROSECONDS_A_DAY = 86_400_000_000


class Spark(Dialect):
    """Its integers are all signed, and its literals and time zones are the session's: none is relied on."""

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text(self, text: str) -> str:
        return f"CAST(X'{text.encode().hex()}' AS STRING)"  # it needs no escapes

    def texts(self, x: str) -> tuple[str, ...]:
        return (f"BTRIM({x}, CONCAT(' ', CHR(9), CHR(13), CHR(10)))",)

    def matches(self, text: str, pattern: str) -> str:
        # A raw literal, because backslashes mean different things in different sessions; \z is the very end.
        return rf"{text} RLIKE R'(?s)\A({pattern})\z'"

    def rounded(self, decimal: str, lo: int, hi: int) -> str:
        # The remainder by 1 is exact for every decimal; most other arithmetic rounds wide ones.
        rest = f"({decimal} % CAST(1 AS DECIMAL(1, 0)))"
        step = f"CASE WHEN {rest} >= 0.5BD THEN 1 WHEN {rest} < -0.5BD THEN -1 ELSE 0 END"
        outside = f"WHEN {decimal} <= {lo} THEN {lo} WHEN {decimal} >= {hi} THEN {hi}"
        return f"CASE {outside} ELSE CAST({decimal} AS BIGINT) + {step} END"

    def digest(self, text: str, first: int, digits: int) -> str:
        return f"CAST(CONV(SUBSTR(SHA2({text}, 256), {first}, {digits}), 16, 10) AS BIGINT)"

    def utc_day(self, instant: str) -> str:
        moment = f"UNIX_MICROS({instant})"
        days = f"({moment} - PMOD({moment}, {_MICROSECONDS_A_DAY})) DIV {_MICROSECONDS_A_DAY}"
        return f"DATE_FROM_UNIX_DATE(CAST({days} AS INT))"

    def microseconds(self, x: str, family: str) -> str:
        if family == "instant":
            return f"UNIX_MICROS({x})"
        minutes = f"(EXTRACT(HOUR FROM {x}) * 60 + EXTRACT(MINUTE FROM {x}))"
        clock = f"({minutes} * 60000000L + CAST(EXTRACT(SECOND FROM {x}) * 1000000 AS BIGINT))"
        days = f"CAST(DATEDIFF(CAST({x} AS DATE), DATE '1970-01-01') AS BIGINT)"
        return clock if family == "clock" else f"({days} * {_MICROSECONDS_A_DAY} + {clock})"

    def quotient(self, whole: str, divisor: int) -> str:
        return f"({whole}) DIV {divisor}"

    def days(self, day: str, first: str) -> str:
        return f"DATEDIFF({day}, {first})"


SPARK = Spark(
    families={
        "boolean": "boolean",
        **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "whole"),
        **dict.fromkeys(("float", "double"), "float"),
        "decimal": "decimal",
        **dict.fromkeys(("string", "varchar", "char"), "text"),
        "date": "date",
        "timestamp_ntz": "time",
        "timestamp": "instant",
        "time": "clock",
        "void": "null",
    },
    code_types={"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63},
    text_type="STRING",
    wide_type="DECIMAL(38, 0)",
)
