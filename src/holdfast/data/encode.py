"""Raw values into codes, as SQL: what `encode_array` does to arrays, said to an engine in its dialect.

Every expression is total: what cannot be read becomes NULL, what lies outside is clamped, and no value makes
the engine raise. Both ways agree on every value (tests/data/test_encode.py, test_postgres.py, test_spark.py),
so a table has the same codes whichever door it came through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.data.dialect import Dialect, clamped
from holdfast.data.unit_key import KeyHalf, key_sql
from holdfast.errors import DataError
from holdfast.query.reading import FALSE_WORDS, TRUE_WORDS
from holdfast.query.schema import (
    Boolean,
    Category,
    ColumnType,
    Date,
    Integer,
    Real,
    Temporal,
    Text,
    Time,
    Timestamp,
)
from holdfast.query.time_reading import CLOCK, DAY, PADDING, STEPS, ZONE

_SHORT = "[+-]?[0-9]{1,18}"  # fits BIGINT without a look
_INTEGER = "[+-]?[0-9]{1,40}"
_INFINITY = "[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_DAY = (
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP})"
)
_LIMIT = 2.0**62
"""No declared integer is larger, and doubles so far are whole numbers that BIGINT holds."""


def encode_sql(
    sql: Dialect, column: ColumnType, name: str, engine_type: str, place: str | None = None
) -> str:
    """The code of a raw column as an SQL expression.

    Discrete columns give an integer of the dialect's `code_types`, with the NULL code for NULL; a Real gives
    a double, or SQL's NULL; a Text is coded by `place`, an expression that looks a raw text up. `DataError` if
    a type can never hold the declared kind.
    """
    if isinstance(column, Text):
        assert place is not None
        return f"CAST(COALESCE({place}, {column.null_code}) AS {sql.code_type(column.null_code)})"
    family = sql.family(engine_type)
    read = _READERS[type(column)]
    value = "NULL" if family == "null" else read(sql, column, sql.quoted(name), family)
    if value is None:
        raise DataError(
            f"column {name!r} of type {engine_type.split('(')[0][:60]} cannot be read as {column.kind}; "
            f"{sql.remedy}"
        )
    if isinstance(column, Real):
        return f"CAST({value} AS {sql.double_type})"
    return f"CAST(COALESCE({value}, {column.null_code}) AS {sql.code_type(column.null_code)})"


def _integer(sql: Dialect, column: Integer, x: str, family: str) -> str | None:
    lo, hi = str(column.lo), str(column.hi)

    def code(value: str) -> str:
        return f"CAST({clamped(value, lo, hi)} AS BIGINT) - ({lo})"

    match family:
        case "boolean":
            value = f"CAST({x} AS INT)"
        case "whole":
            value = f"CAST({x} AS BIGINT)"
        case "wide":
            value = f"COALESCE({sql.try_cast}({x} AS {sql.wide_type}), {hi})"
        case "float":
            value = _half_up(sql, f"CAST({x} AS {sql.double_type})")
        case "decimal":
            value = sql.rounded(x, column.lo, column.hi)
        case "text":
            first, text = sql.texts(x)[0], sql.texts(x)[-1]
            wide = f"COALESCE({sql.try_cast}({text} AS {sql.wide_type}), {_by_sign(text, lo, hi)})"
            numbers = _numbers(sql, [text], -_LIMIT, _LIMIT)
            return _case(
                [
                    (sql.matches(first, _SHORT), code(f"{sql.try_cast}({first} AS BIGINT)")),
                    (sql.matches(text, _INTEGER), code(wide)),
                    *((test, code(_half_up(sql, number))) for test, number in numbers),
                ]
            )
        case _:
            return None
    return _case([(sql.known(x, family), code(value))])


def _real(sql: Dialect, column: Real, x: str, family: str) -> str | None:
    lo, hi, zero = map(sql.double, (column.lo, column.hi, 0.0))

    def code(value: str) -> str:
        return f"{clamped(value, lo, hi)} + {zero}"  # adding 0.0 turns -0.0 into 0.0

    match family:
        case "boolean":
            value = f"CAST(CAST({x} AS INT) AS {sql.double_type})"
        case "whole" | "float":
            value = f"CAST({x} AS {sql.double_type})"
        case "wide" | "decimal":
            value = sql.nearest(x, column.lo, column.hi)
        case "text":
            numbers = _numbers(sql, sql.texts(x), column.lo, column.hi)
            return _case((test, code(number)) for test, number in numbers)
        case _:
            return None
    return _case([(sql.known(x, family), code(value))])


def _boolean(sql: Dialect, column: Boolean, x: str, family: str) -> str | None:
    match family:
        case "boolean":
            return f"CAST({x} AS INT)"
        case "whole" | "wide" | "decimal" | "float":
            return _case([(sql.known(x, family), f"CAST({x} <> 0 AS INT)")])
        case "text":
            words = {code: ", ".join(map(sql.text, sorted(w))) for code, w in _WORDS.items()}
            texts = sql.texts(x)
            return _case((f"LOWER({t}) IN ({words[code]})", code) for t in texts for code in words)
    return None


def _category(sql: Dialect, column: Category, x: str, family: str) -> str | None:
    text, number = f"CAST({x} AS {sql.text_type})", f"CAST({x} AS {sql.double_type})"
    match family:
        case "text" | "boolean" | "whole":
            return sql.lookup(text, column.places)
        case "wide":
            wide = f"{sql.try_cast}({x} AS {sql.wide_type})"
            near = f"{wide} > {-(2**64)} AND {wide} < {2**64}"
            return _case([(near, sql.lookup(text, column.places))])
        case "float":
            floats = {_float_of(label): code for label, code in column.places.items()}
            codes = {value: code for value, code in floats.items() if value is not None}
            return sql.lookup(number, codes) if codes else "NULL"
    return None


def _date(sql: Dialect, column: Date, x: str, family: str) -> str | None:
    match family:
        case "date" | "time" | "nanoseconds":
            day = f"{sql.try_cast}({x} AS DATE)"
        case "instant":
            day = sql.utc_day(x)
        case "text":
            day = _case((_dated(sql, text, "([T ].*)?"), _day(sql, text)) for text in sql.texts(x))
        case _:
            return None
    lo, hi = (f"DATE '{edge.isoformat()}'" for edge in (column.first, column.last))
    return _case([(f"{day} IS NOT NULL", sql.days(clamped(day, lo, hi), lo))])


def _timestamp(sql: Dialect, column: Timestamp, x: str, family: str) -> str | None:
    match family:
        case "date":
            day = clamped(x, "DATE '0001-01-01'", "DATE '9999-12-31'")
            return _stepped(sql, column, f"{x} IS NOT NULL", f"{_since(sql, day)} * {DAY}")
        case "time" | "nanoseconds" | "instant":
            return _stepped(sql, column, f"{x} IS NOT NULL", sql.microseconds(x, family))
        case "text":
            text = sql.texts(x)[-1]
            rest = f"SUBSTR({text}, 12)"
            clock = f"REGEXP_REPLACE({rest}, '[Z+-].*', '')"
            digits = f"(REPLACE(SUBSTR({rest}, LENGTH({clock}) + 1), ':', '') || '00')"
            offset = f"({_digits(sql, digits, 2)} * 60 + {_digits(sql, digits, 4)}) * {STEPS['minute']}"
            moment = _case(
                [
                    (f"LENGTH({text}) = 10", "0"),
                    (f"LENGTH({digits}) < 5", _clock(sql, clock)),
                    (f"{digits} LIKE '-%'", f"{_clock(sql, clock)} + {offset}"),
                    ("TRUE", f"{_clock(sql, clock)} - {offset}"),
                ]
            )
            day = f"{_since(sql, _day(sql, text))} * {DAY}"
            return _stepped(sql, column, _dated(sql, text, f"([T ]{CLOCK}{ZONE}?)?"), f"{day} + {moment}")
    return None


def _time(sql: Dialect, column: Time, x: str, family: str) -> str | None:
    match family:
        case "clock":
            return _stepped(sql, column, f"{x} IS NOT NULL", sql.microseconds(x, family))
        case "time" | "nanoseconds" | "instant":
            moment = f"(({sql.microseconds(x, family)}) % {DAY} + {DAY}) % {DAY}"
            return _stepped(sql, column, f"{x} IS NOT NULL", moment)
        case "text":
            text = sql.texts(x)[-1]
            return _stepped(sql, column, sql.matches(text, CLOCK), _clock(sql, text))
    return None


def _stepped(sql: Dialect, column: Temporal, test: str, microseconds: str) -> str:
    """The code of what passes a test."""
    lo, hi = column.lo * column.unit, column.hi * column.unit
    since = f"{clamped(f'({microseconds})', str(lo), str(hi))} - ({lo})"
    return _case([(test, sql.quotient(since, column.unit))])


def _dated(sql: Dialect, text: str, more: str) -> str:
    """Whether a text begins with a day, and goes on in such a way."""
    return f"{sql.matches(text, _DAY + more)} AND {text} NOT LIKE '0000%'"


def _day(sql: Dialect, text: str) -> str:
    return f"{sql.try_cast}(SUBSTR({text}, 1, 10) AS DATE)"


def _since(sql: Dialect, day: str) -> str:
    """The days since 1970-01-01."""
    first = "DATE '1970-01-01'"
    return f"CAST({sql.days(day, first)} AS BIGINT)"


def _clock(sql: Dialect, text: str) -> str:
    """The microseconds of a text that matches CLOCK."""
    whole = f"({text} || SUBSTR('{PADDING}', LENGTH({text}) - 4))"
    hours, minutes, seconds = (_digits(sql, whole, first) for first in (1, 4, 7))
    rest = _digits(sql, whole, 10, 6)
    return f"((({hours} * 60 + {minutes}) * 60 + {seconds}) * 1000000 + {rest})"


def _digits(sql: Dialect, text: str, first: int, count: int = 2) -> str:
    return f"{sql.try_cast}(SUBSTR({text}, {first}, {count}) AS BIGINT)"


_READERS: dict[type, Callable[..., str | None]] = {
    Integer: _integer,
    Real: _real,
    Boolean: _boolean,
    Category: _category,
    Date: _date,
    Time: _time,
    Timestamp: _timestamp,
    KeyHalf: key_sql,
}
_WORDS = {"1": TRUE_WORDS, "0": FALSE_WORDS}


def _numbers(sql: Dialect, texts: Sequence[str], lo: float, hi: float) -> list[tuple[str, str]]:
    """Tests whose OR is that a text is a number or infinite, and behind each a double."""
    finite = [case for text in texts for case in sql.numbers(text, lo, hi)]
    beyond = _by_sign(texts[-1], sql.double(lo), sql.double(hi))
    return [*finite, (sql.matches(texts[-1], _INFINITY), beyond)]


def _half_up(sql: Dialect, number: str) -> str:
    """A double that is not NaN rounded half up, exactly; the cast is safe because it is clamped first."""
    near = clamped(number, sql.double(-_LIMIT), sql.double(_LIMIT))
    return f"CAST(FLOOR({near}) AS BIGINT) + CASE WHEN {near} - FLOOR({near}) >= 0.5 THEN 1 ELSE 0 END"


def _float_of(label: str) -> float | None:
    """The float that a label stands for, if there is one."""
    try:
        value = float(label)
    except ValueError:
        return None
    text = str(int(value)) if value.is_integer() and abs(value) < 2**64 else repr(value)
    return value if text == label and value == value else None


def _by_sign(text: str, negative: str, positive: str) -> str:
    return f"CASE WHEN {text} LIKE '-%' THEN {negative} ELSE {positive} END"


def _case(cases: Iterable[tuple[str, str]]) -> str:
    return f"CASE {' '.join(f'WHEN {test} THEN {value}' for test, value in cases)} END"
