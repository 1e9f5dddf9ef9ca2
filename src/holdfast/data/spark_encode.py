"""Raw values into codes, as SQL for Spark: what `encode_array` does to arrays.

Every expression is total, whether or not Spark is in its ANSI mode, and follows no session's time zone.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.data.dialect import backticked
from holdfast.data.encode import NUMBER
from holdfast.data.postgres_encode import float_of
from holdfast.errors import DataError
from holdfast.query.reading import FALSE_WORDS, TRUE_WORDS
from holdfast.query.schema import Boolean, Category, ColumnType, Date, Integer, Real

_FAMILIES = {
    "boolean": "boolean",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "whole"),
    **dict.fromkeys(("float", "double"), "float"),
    "decimal": "decimal",
    **dict.fromkeys(("string", "varchar", "char"), "text"),
    "date": "date",
    "timestamp_ntz": "time",
    "timestamp": "instant",
    "void": "null",
}
_INFINITY = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"
_MICROSECONDS_A_DAY = 86_400_000_000


def encode_spark(column: ColumnType, name: str, spark_type: str) -> str:
    """The code of a raw column as an SQL expression.

    Discrete columns give a signed integer, with the NULL code for NULL; a Real gives a DOUBLE, or SQL's NULL.
    `DataError` if a type can never hold the declared kind.
    """
    family = _FAMILIES.get(spark_type.split("(")[0], "other")
    value = "NULL" if family == "null" else _READERS[type(column)](column, backticked(name), family)
    if value is None:
        raise DataError(
            f"column {name!r} of type {spark_type.split('(')[0][:60]} cannot be read as {column.kind}; "
            "convert it before opening"
        )
    if isinstance(column, Real):
        return f"CAST({value} AS DOUBLE)"
    return f"CAST(COALESCE({value}, {column.null_code}) AS {code_type(column.null_code)})"


def code_type(largest: int) -> str:
    """The narrowest type of Spark, whose integers are all signed, that holds codes up to this one."""
    return next(
        name
        for name, bits in (("TINYINT", 7), ("SMALLINT", 15), ("INT", 31), ("BIGINT", 63))
        if largest < 2**bits
    )


def _integer(column: Integer, x: str, family: str) -> str | None:
    lo, hi = column.lo, column.hi

    def clamped(value: str) -> str:
        return f"(CAST(LEAST(GREATEST({value}, {_whole(lo)}), {_whole(hi)}) AS BIGINT) - {_whole(lo)})"

    match family:
        case "boolean":
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST(CAST({x} AS INT) AS BIGINT)')} END"
        case "whole":
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST({x} AS BIGINT)')} END"
        case "float":
            return f"CASE WHEN {_known(x)} THEN {clamped(_half_up(f'CAST({x} AS DOUBLE)'))} END"
        case "decimal":
            # The remainder by 1 is exact for every decimal; most other arithmetic rounds wide ones.
            rest = f"({x} % CAST(1 AS DECIMAL(1, 0)))"
            step = f"CASE WHEN {rest} >= 0.5BD THEN 1L WHEN {rest} < -0.5BD THEN -1L ELSE 0L END"
            inside = f"CAST({x} AS BIGINT) + {step}"
            return (
                f"CASE WHEN {x} <= {lo} THEN 0L WHEN {x} >= {hi} THEN {_whole(hi - lo)} "
                f"WHEN {x} IS NOT NULL THEN {clamped(inside)} END"
            )
        case "text":
            text = _trimmed(x)
            beyond = f"CASE WHEN {text} LIKE '-%' THEN {_whole(lo)} ELSE {_whole(hi)} END"
            wide = f"COALESCE(TRY_CAST({text} AS DECIMAL(38, 0)), CAST({beyond} AS DECIMAL(38, 0)))"
            return (
                f"CASE WHEN {_matches(text, '[+-]?[0-9]{1,18}')} THEN {clamped(f'TRY_CAST({text} AS BIGINT)')} "
                f"WHEN {_matches(text, '[+-]?[0-9]{1,40}')} THEN {clamped(wide)} "
                f"WHEN {_matches(text, NUMBER)} THEN {clamped(_half_up(f'TRY_CAST({text} AS DOUBLE)'))} "
                f"WHEN {_matches(text, '[+-]?' + _INFINITY)} THEN {clamped(beyond)} END"
            )
    return None


def _real(column: Real, x: str, family: str) -> str | None:
    lo, hi = _double(column.lo), _double(column.hi)

    def clamped(value: str) -> str:  # adding 0 turns -0.0 into 0.0
        return f"(LEAST(GREATEST({value}, {lo}), {hi}) + {_double(0.0)})"

    match family:
        case "boolean" | "whole":
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST({x} AS DOUBLE)')} END"
        case "float":
            return f"CASE WHEN {_known(x)} THEN {clamped(f'CAST({x} AS DOUBLE)')} END"
        case "decimal":
            # By way of text: the direct cast of decimals rounds twice.
            number = f"CAST(CAST({x} AS STRING) AS DOUBLE)"
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(number)} END"
        case "text":
            text = _trimmed(x)
            return (
                f"CASE WHEN {_matches(text, NUMBER)} THEN {clamped(f'TRY_CAST({text} AS DOUBLE)')} "
                f"WHEN {_matches(text, '[+]?' + _INFINITY)} THEN {hi} "
                f"WHEN {_matches(text, '-' + _INFINITY)} THEN {lo} END"
            )
    return None


def _boolean(column: Boolean, x: str, family: str) -> str | None:
    match family:
        case "boolean":
            return f"CAST({x} AS INT)"
        case "whole" | "decimal":
            return f"CAST({x} <> 0 AS INT)"
        case "float":
            return f"CASE WHEN {_known(x)} THEN CAST({x} <> 0 AS INT) END"
        case "text":
            word = f"LOWER({_trimmed(x)})"
            true, false = (", ".join(map(_text, sorted(words))) for words in (TRUE_WORDS, FALSE_WORDS))
            return f"CASE WHEN {word} IN ({true}) THEN 1 WHEN {word} IN ({false}) THEN 0 END"
    return None


def _category(column: Category, x: str, family: str) -> str | None:
    match family:
        case "text" | "boolean" | "whole":
            text = f"CAST({x} AS STRING)"
            # Spark compares texts by their bytes.
            places = sorted((label.encode(), code) for code, label in enumerate(column.labels))
            return _search(text, places)
        case "float":
            cases = " ".join(
                f"WHEN {x} = {_double(value)} THEN {code}"
                for code, label in enumerate(column.labels)
                if (value := float_of(label)) is not None
            )
            return f"CASE {cases} END" if cases else "NULL"
    return None


def _date(column: Date, x: str, family: str) -> str | None:
    match family:
        case "date" | "time":
            day = f"CAST({x} AS DATE)"
        case "instant":
            # The day in UTC; a plain cast would follow the session's time zone.
            moment = f"UNIX_MICROS({x})"
            whole_days = f"({moment} - PMOD({moment}, {_MICROSECONDS_A_DAY}L)) DIV {_MICROSECONDS_A_DAY}L"
            day = f"DATE_FROM_UNIX_DATE(CAST({whole_days} AS INT))"
        case "text":
            text = _trimmed(x)
            day = (
                f"CASE WHEN {_matches(text, _DAY)} AND {text} NOT LIKE '0000%' "
                f"THEN TRY_CAST(SUBSTR({text}, 1, 10) AS DATE) END"
            )
        case _:
            return None
    lo, hi = (f"DATE '{edge.isoformat()}'" for edge in (column.first, column.last))
    return f"CASE WHEN {day} IS NOT NULL THEN DATEDIFF(LEAST(GREATEST({day}, {lo}), {hi}), {lo}) END"


_READERS: dict[type, Callable[..., str | None]] = {
    Integer: _integer,
    Real: _real,
    Boolean: _boolean,
    Category: _category,
    Date: _date,
}


def _search(text: str, places: list[tuple[bytes, int]]) -> str:
    """The code beside a text in a sorted list, found by halving."""
    if len(places) <= 4:
        cases = " ".join(f"WHEN {text} = {_bytes(label)} THEN {code}" for label, code in places)
        return f"CASE {cases} END"
    middle = len(places) // 2
    below, above = _search(text, places[:middle]), _search(text, places[middle:])
    return f"CASE WHEN {text} < {_bytes(places[middle][0])} THEN {below} ELSE {above} END"


def _half_up(number: str) -> str:
    """A double that is not NaN rounded half up, exactly; FLOOR is safe because it is clamped first."""
    near = f"LEAST(GREATEST({number}, {_double(-(2.0**62))}), {_double(2.0**62)})"
    return f"(FLOOR({near}) + CASE WHEN {near} - FLOOR({near}) >= {_double(0.5)} THEN 1L ELSE 0L END)"


def _known(x: str) -> str:
    """A float that is neither NULL nor NaN. Spark's ISNAN(NULL) is false, not NULL."""
    return f"{x} IS NOT NULL AND NOT ISNAN({x})"


def _trimmed(x: str) -> str:
    return f"BTRIM({x}, CONCAT(' ', CHR(9), CHR(13), CHR(10)))"


def _matches(text: str, pattern: str) -> str:
    # A raw literal, because backslashes mean different things in different sessions; \z is the very end.
    return rf"{text} RLIKE R'(?s)\A({pattern})\z'"


def _text(text: str) -> str:
    return _bytes(text.encode())


def _bytes(text: bytes) -> str:
    """A text literal that needs no escapes."""
    return f"CAST(X'{text.hex()}' AS STRING)"


def _whole(number: int) -> str:
    return f"({number}L)"


def _double(number: float) -> str:
    return f"CAST('{number!r}' AS DOUBLE)"
