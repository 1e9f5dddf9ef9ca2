"""Raw values into codes, as SQL: what `encode_array` does to arrays, said to DuckDB.

Every expression is total: what cannot be read becomes NULL, what lies outside is clamped, and no value makes
the engine raise. Both ways agree on every value (tests/data/test_encode.py), so a table has the same codes
whichever door it came through.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import DataError
from holdfast.query.reading import FALSE_WORDS, TRUE_WORDS
from holdfast.query.schema import Boolean, Category, ColumnType, Date, Integer, Real

_FAMILIES = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "whole"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), "whole"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "wide"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    "DECIMAL": "decimal",
    **dict.fromkeys(("VARCHAR", "ENUM"), "text"),
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "time"),
    "TIMESTAMP WITH TIME ZONE": "instant",
    '"NULL"': "null",
}
_CODE_TYPES = {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER", 8: "UBIGINT"}
_SHORT = "[+-]?[0-9]{1,18}"  # fits BIGINT without a look
_INTEGER = "[+-]?[0-9]{1,40}"
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"
_INFINITY = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"
_MANY_LABELS = 64
"""Above this many labels a lookup by hash is faster than comparing one after another."""


def encode_sql(column: ColumnType, name: str, duckdb_type: str) -> str:
    """The code of a raw column as an SQL expression.

    Discrete columns give an unsigned integer, with the NULL code for NULL; a Real gives a DOUBLE, or SQL's
    NULL. `DataError` if a type can never hold the declared kind.
    """
    family = family_of(duckdb_type)
    x = quoted(name)
    if family == "null":
        value: str | None = "NULL"
    else:
        value = _READERS[type(column)](column, x, family)
    if value is None:
        raise DataError(
            f"column {name!r} of type {duckdb_type.split('(')[0]} cannot be read as {column.kind}; "
            "convert it before opening"
        )
    if isinstance(column, Real):
        return f"CAST({value} AS DOUBLE)"
    return f"CAST(COALESCE({value}, {column.null_code}) AS {code_type(column)})"


def family_of(duckdb_type: str) -> str:
    """How a DuckDB type is read; "other" for nested types, blobs, times of day and the like."""
    name = duckdb_type.upper()
    return "other" if name.endswith("]") else _FAMILIES.get(name.split("(")[0], "other")


def code_type(column: ColumnType) -> str:
    """The DuckDB type that holds the codes of a column."""
    return "DOUBLE" if column.codes is None else _CODE_TYPES[column.dtype.itemsize]


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL text literal."""
    return "'" + text.replace("'", "''") + "'"


def _integer(column: Integer, x: str, family: str) -> str | None:
    lo, hi = column.lo, column.hi

    def clamped(value: str) -> str:
        return f"(LEAST(GREATEST({value}, {lo}), {hi}) - ({lo}))"

    match family:
        case "boolean" | "whole":
            return _unless_null(x, clamped(f"CAST({x} AS BIGINT)"))
        case "wide":
            return _unless_null(x, clamped(f"COALESCE(TRY_CAST({x} AS HUGEINT), {hi})"))
        case "float":
            number = f"CAST({x} AS DOUBLE)"
            return (
                f"CASE WHEN {number} IS NOT NULL AND NOT ISNAN({number}) THEN {clamped(_half_up(number))} END"
            )
        case "decimal":
            return _unless_null(x, clamped(_half_up_decimal(x)))
        case "text":
            raw, text = _text(x)
            beyond = f"CASE WHEN STARTS_WITH({text}, '-') THEN {lo} ELSE {hi} END"
            wide, number = f"COALESCE(TRY_CAST({text} AS HUGEINT), {beyond})", f"TRY_CAST({text} AS DOUBLE)"
            return (
                f"CASE WHEN {_matches(raw, _SHORT)} THEN {clamped(f'TRY_CAST({raw} AS BIGINT)')} "
                f"WHEN {_matches(text, _INTEGER)} THEN {clamped(wide)} "
                f"WHEN {_matches(text, NUMBER)} THEN {clamped(_half_up(number))} "
                f"WHEN {_matches(text, '[+-]?' + _INFINITY)} THEN {clamped(beyond)} END"
            )
    return None


def _real(column: Real, x: str, family: str) -> str | None:
    lo, hi = _double(column.lo), _double(column.hi)

    def clamped(value: str) -> str:
        return f"(LEAST(GREATEST({value}, {lo}), {hi}) + {_double(0.0)})"  # adding 0.0 turns -0.0 into 0.0

    match family:
        case "boolean" | "whole":
            return _unless_null(x, clamped(f"CAST({x} AS DOUBLE)"))
        case "wide" | "decimal":
            # By way of text: the direct casts of wide numbers round twice.
            return _unless_null(x, clamped(f"TRY_CAST(CAST({x} AS VARCHAR) AS DOUBLE)"))
        case "float":
            return f"CASE WHEN {x} IS NOT NULL AND NOT ISNAN({x}) THEN {clamped(f'CAST({x} AS DOUBLE)')} END"
        case "text":
            raw, text = _text(x)
            return (
                f"CASE WHEN {_matches(raw, NUMBER)} THEN {clamped(f'TRY_CAST({raw} AS DOUBLE)')} "
                f"WHEN {_matches(text, NUMBER)} THEN {clamped(f'TRY_CAST({text} AS DOUBLE)')} "
                f"WHEN {_matches(text, '[+]?' + _INFINITY)} THEN {hi} "
                f"WHEN {_matches(text, '-' + _INFINITY)} THEN {lo} END"
            )
    return None


def _boolean(column: Boolean, x: str, family: str) -> str | None:
    match family:
        case "boolean":
            return f"CAST({x} AS INTEGER)"
        case "whole" | "wide" | "decimal":
            return f"CAST({x} <> 0 AS INTEGER)"
        case "float":
            return f"CASE WHEN ISNAN({x}) THEN NULL ELSE CAST({x} <> 0 AS INTEGER) END"
        case "text":
            true, false = (", ".join(map(literal, sorted(words))) for words in (TRUE_WORDS, FALSE_WORDS))
            cases = " ".join(
                f"WHEN LOWER({text}) IN ({true}) THEN 1 WHEN LOWER({text}) IN ({false}) THEN 0"
                for text in _text(x)
            )
            return f"CASE {cases} END"
    return None


def _category(column: Category, x: str, family: str) -> str | None:
    match family:
        case "text" | "boolean" | "whole":
            return _place(column, x, f"CAST({x} AS VARCHAR)")
        case "wide":
            wide = f"TRY_CAST({x} AS HUGEINT)"
            near = f"{wide} > {-(2**64)} AND {wide} < {2**64}"
            return f"CASE WHEN {near} THEN {_place(column, x, f'CAST({x} AS VARCHAR)')} END"
        case "float":
            number = f"CAST({x} AS DOUBLE)"
            whole = f"{number} = FLOOR({number}) AND ABS({number}) < {_double(2.0**64)}"
            place = _place(column, x, f"CAST(TRY_CAST({number} AS HUGEINT) AS VARCHAR)")
            fractions = " ".join(
                f"WHEN {number} = {_double(value)} THEN {code}" for value, code in _fractions(column)
            )
            return f"CASE WHEN ISNAN({number}) THEN NULL WHEN {whole} THEN {place} {fractions} END"
    return None


def _date(column: Date, x: str, family: str) -> str | None:
    match family:
        case "date" | "time":
            day = f"TRY_CAST({x} AS DATE)"
        case "instant":
            # The day in UTC; a plain cast would follow the session's time zone.
            day = f"TRY_CAST(MAKE_TIMESTAMP(EPOCH_US({x})) AS DATE)"
        case "text":
            cases = " ".join(
                f"WHEN {_matches(text, _DATE)} AND NOT STARTS_WITH({text}, '0000') "
                f"THEN TRY_CAST(SUBSTR({text}, 1, 10) AS DATE)"
                for text in _text(x)
            )
            day = f"CASE {cases} END"
        case _:
            return None
    lo, hi = (f"DATE '{edge.isoformat()}'" for edge in (column.first, column.last))
    return _unless_null(day, f"LEAST(GREATEST({day}, {lo}), {hi}) - {lo}")


_READERS: dict[type, Callable[..., str | None]] = {
    Integer: _integer,
    Real: _real,
    Boolean: _boolean,
    Category: _category,
    Date: _date,
}


def _place(column: Category, x: str, text: str) -> str:
    """The place of a text among the labels."""
    if len(column.labels) <= _MANY_LABELS:
        cases = " ".join(f"WHEN {literal(label)} THEN {code}" for code, label in enumerate(column.labels))
        return f"CASE {text} {cases} END"
    # The inner name is longer than the column's, so that it cannot hide it.
    label, code = x[:-1] + ' label"', x[:-1] + ' code"'
    labels = ", ".join(map(literal, column.labels))
    pairs = f"SELECT UNNEST([{labels}]) AS {label}, UNNEST(RANGE({len(column.labels)})) AS {code}"
    return f"(SELECT {code} FROM ({pairs}) WHERE {label} = {text})"


def _fractions(column: Category) -> list[tuple[float, int]]:
    """The labels that stand for a float which is not a whole number below 2^64."""
    found = []
    for code, label in enumerate(column.labels):
        try:
            value = float(label)
        except ValueError:
            continue
        whole = value.is_integer() and abs(value) < 2**64
        if not whole and repr(value) == label and value == value:
            found.append((value, code))
    return found


def _half_up(number: str) -> str:
    """A DOUBLE that is not NaN rounded half up, exactly; the cast is safe because it is clamped first."""
    limit = 2.0**62
    near = f"LEAST(GREATEST({number}, {_double(-limit)}), {_double(limit)})"
    return f"(CAST(FLOOR({near}) AS BIGINT) + CASE WHEN {near} - FLOOR({near}) >= 0.5 THEN 1 ELSE 0 END)"


def _half_up_decimal(x: str) -> str:
    """A DECIMAL rounded half up. Read from its digits, because arithmetic on wide decimals can overflow."""
    text = f"CAST({x} AS VARCHAR)"
    # Without digits before the point, as in '-.25', the whole part is 0.
    magnitude = f"COALESCE(TRY_CAST(REGEXP_EXTRACT({text}, '^-?([0-9]+)', 1) AS HUGEINT), 0)"
    above = f"CASE WHEN REGEXP_MATCHES({text}, '[.][5-9]') THEN 1 ELSE 0 END"
    below = f"CASE WHEN REGEXP_MATCHES({text}, '[.]([6-9]|5[0-9]*[1-9])') THEN 1 ELSE 0 END"
    return f"CASE WHEN {x} >= 0 THEN {magnitude} + {above} ELSE -({magnitude} + {below}) END"


def _unless_null(test: str, value: str) -> str:
    """LEAST and GREATEST skip NULL; this keeps it."""
    return f"CASE WHEN {test} IS NOT NULL THEN {value} END"


def _text(x: str) -> tuple[str, str]:
    """A text as it is and without blanks around it; the first is tried first, for trimming is slow."""
    raw = f"CAST({x} AS VARCHAR)"
    return raw, f"TRIM({raw}, ' ' || CHR(9) || CHR(13) || CHR(10))"


def _matches(text: str, pattern: str) -> str:
    return f"REGEXP_FULL_MATCH({text}, '{pattern}', 's')"


def _double(number: float) -> str:
    return f"CAST('{number!r}' AS DOUBLE)"
