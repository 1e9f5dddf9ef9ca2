"""Raw values into codes, as SQL for PostgreSQL: what `encode_array` does to arrays.

PostgreSQL has no cast that gives NULL instead of an error, so every cast stands behind a test that it cannot
fail. A text longer than LONGEST characters is no number here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, localcontext

from holdfast.data.encode import NUMBER, literal, quoted
from holdfast.errors import DataError
from holdfast.query.reading import FALSE_WORDS, TRUE_WORDS
from holdfast.query.schema import Boolean, Category, ColumnType, Date, Integer, Real

_FAMILIES = {
    "bool": "boolean",
    **dict.fromkeys(("int2", "int4", "int8"), "whole"),
    **dict.fromkeys(("float4", "float8"), "float"),
    "numeric": "decimal",
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "enum"), "text"),
    "date": "date",
    "timestamp": "time",
    "timestamptz": "instant",
}
LONGEST = 5000
_SHORT_NUMBER = NUMBER.replace("[0-9]{1,9})?", "0*[0-9]{1,4})?")  # PostgreSQL's decimals hold all of these
_INFINITY = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_DAY = (
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP})([T ].*)?"
)
_MANY_LABELS = 64
with localcontext(prec=1100):
    _HALF_LEAST = format(Decimal(2) ** -1075, "e")
    """Up to this size a decimal rounds to the double 0, which PostgreSQL refuses to do."""


def encode_postgres(column: ColumnType, name: str, postgres_type: str) -> str:
    """The code of a raw column as an SQL expression.

    Discrete columns give a bigint, with the NULL code for NULL; a Real gives a double precision, or SQL's
    NULL. `DataError` if a type can never hold the declared kind.
    """
    value = _READERS[type(column)](column, quoted(name), _FAMILIES.get(postgres_type, "other"))
    if value is None:
        raise DataError(
            f"column {name!r} of type {postgres_type} cannot be read as {column.kind}; "
            "convert it in a materialized view and open that"
        )
    if isinstance(column, Real):
        return f"CAST({value} AS double precision)"
    return f"CAST(COALESCE({value}, {column.null_code}) AS bigint)"


def _integer(column: Integer, x: str, family: str) -> str | None:
    lo, hi = column.lo, column.hi

    def clamped(value: str) -> str:
        return f"CAST(LEAST(GREATEST({value}, {lo}), {hi}) AS bigint) - ({lo})"

    match family:
        case "boolean":
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST({x} AS int)')} END"
        case "whole":
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST({x} AS bigint)')} END"
        case "float":
            return f"CASE WHEN {x} <> 'NaN' THEN {clamped(_half_up(f'CAST({x} AS double precision)'))} END"
        case "decimal":
            # Clamped first, because the sum could leave the widest decimals.
            near = f"LEAST(GREATEST({x}, {lo - 1}), {hi + 1})"
            return f"CASE WHEN {x} <> 'NaN' THEN {clamped(f'FLOOR({near} + 0.5)')} END"
        case "text":
            text = _trimmed(x)
            beyond = f"CASE WHEN {text} LIKE '-%' THEN {lo} ELSE {hi} END"
            limit = 2**62
            number = _half_up(_as_double(f"CAST({text} AS numeric)", str(-limit), str(limit)))
            return (
                f"CASE WHEN {_matches(text, '[+-]?[0-9]{1,40}')} THEN {clamped(f'CAST({text} AS numeric)')} "
                f"WHEN {_is_short_number(text)} THEN {clamped(number)} "
                f"WHEN {_is_huge(text)} OR {_matches(text, '[+-]?' + _INFINITY)} THEN {clamped(beyond)} "
                f"WHEN {_is_tiny(text)} THEN {clamped('0')} END"
            )
    return None


def _real(column: Real, x: str, family: str) -> str | None:
    lo, hi = column.lo, column.hi

    def clamped(value: str) -> str:  # adding 0 turns -0.0 into 0.0
        return f"(LEAST(GREATEST({value}, {_double(lo)}), {_double(hi)}) + {_double(0.0)})"

    match family:
        case "boolean":
            return (
                f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST(CAST({x} AS int) AS double precision)')} END"
            )
        case "whole":
            return f"CASE WHEN {x} IS NOT NULL THEN {clamped(f'CAST({x} AS double precision)')} END"
        case "float":
            return f"CASE WHEN {x} <> 'NaN' THEN {clamped(f'CAST({x} AS double precision)')} END"
        case "decimal":
            return f"CASE WHEN {x} <> 'NaN' THEN {clamped(_as_double(x, repr(lo), repr(hi)))} END"
        case "text":
            text = _trimmed(x)
            beyond = f"CASE WHEN {text} LIKE '-%' THEN {_double(lo)} ELSE {_double(hi)} END"
            return (
                f"CASE WHEN {_is_short_number(text)} "
                f"THEN {clamped(_as_double(f'CAST({text} AS numeric)', repr(lo), repr(hi)))} "
                f"WHEN {_is_huge(text)} OR {_matches(text, '[+-]?' + _INFINITY)} THEN {beyond} "
                f"WHEN {_is_tiny(text)} THEN {_double(min(max(0.0, lo), hi))} END"
            )
    return None


def _boolean(column: Boolean, x: str, family: str) -> str | None:
    match family:
        case "boolean":
            return f"CAST({x} AS int)"
        case "whole":
            return f"CAST({x} <> 0 AS int)"
        case "float" | "decimal":
            return f"CASE WHEN {x} <> 'NaN' THEN CAST({x} <> 0 AS int) END"
        case "text":
            word = f"LOWER({_trimmed(x)})"
            true, false = (", ".join(map(literal, sorted(words))) for words in (TRUE_WORDS, FALSE_WORDS))
            return f"CASE WHEN {word} IN ({true}) THEN 1 WHEN {word} IN ({false}) THEN 0 END"
    return None


def _category(column: Category, x: str, family: str) -> str | None:
    match family:
        case "text" | "boolean" | "whole":
            text = f'CAST({x} AS text) COLLATE "C"'
            if len(column.labels) > _MANY_LABELS:  # an object of JSON finds its keys by halving
                places = json.dumps(column.places, ensure_ascii=False)
                return f"CAST(CAST({_plain(places)} AS jsonb) ->> CAST({x} AS text) AS int)"
            cases = " ".join(f"WHEN {_plain(label)} THEN {code}" for code, label in enumerate(column.labels))
            return f"CASE {text} {cases} END"
        case "float":
            cases = " ".join(
                f"WHEN CAST({x} AS double precision) = {_double(value)} THEN {code}"
                for code, label in enumerate(column.labels)
                if (value := float_of(label)) is not None
            )
            return f"CASE {cases} END" if cases else "NULL"
    return None


def _date(column: Date, x: str, family: str) -> str | None:
    match family:
        case "date" | "time":
            day = f"CAST({x} AS date)"
        case "instant":
            # The day in UTC; a plain cast would follow the session's time zone.
            day = f"CAST({x} AT TIME ZONE 'UTC' AS date)"
        case "text":
            text = _trimmed(x)
            valid = f"{_matches(text, _DAY)} AND {text} NOT LIKE '0000%'"
            day = f"CASE WHEN {valid} THEN CAST(SUBSTR({text}, 1, 10) AS date) END"
        case _:
            return None
    lo, hi = (f"DATE '{edge.isoformat()}'" for edge in (column.first, column.last))
    return (
        f"CASE WHEN {x} IS NOT NULL AND {day} IS NOT NULL THEN LEAST(GREATEST({day}, {lo}), {hi}) - {lo} END"
    )


_READERS: dict[type, Callable[..., str | None]] = {
    Integer: _integer,
    Real: _real,
    Boolean: _boolean,
    Category: _category,
    Date: _date,
}


def _half_up(number: str) -> str:
    """A double that is not NaN rounded half up, exactly; the cast is safe because it is clamped first."""
    near = f"LEAST(GREATEST({number}, {_double(-(2.0**62))}), {_double(2.0**62)})"
    return f"(CAST(FLOOR({near}) AS bigint) + CASE WHEN {near} - FLOOR({near}) >= 0.5 THEN 1 ELSE 0 END)"


def _as_double(number: str, lo: str, hi: str) -> str:
    """A decimal, clamped to bounds that doubles can hold and then rounded to a double."""
    near = f"LEAST(GREATEST({number}, CAST('{lo}' AS numeric)), CAST('{hi}' AS numeric))"
    least = f"CAST('{_HALF_LEAST}' AS numeric)"
    return f"CASE WHEN ABS({near}) <= {least} THEN {_double(0.0)} ELSE CAST({near} AS double precision) END"


def float_of(label: str) -> float | None:
    """The float that a label stands for, if there is one."""
    try:
        value = float(label)
    except ValueError:
        return None
    text = str(int(value)) if value.is_integer() and abs(value) < 2**64 else repr(value)
    return value if text == label and value == value else None


def _is_short_number(text: str) -> str:
    return f"(LENGTH({text}) <= {LONGEST} AND {_matches(text, _SHORT_NUMBER)})"


def _is_huge(text: str) -> str:
    """A number that is not 0, with an exponent far beyond all doubles. Asked after `_is_short_number`."""
    beyond = f"{_matches(text, NUMBER)} AND {text} ~ '[eE][+]?[0-9]' AND {text} ~ '^[+-]?[0.]*[1-9]'"
    return f"(LENGTH({text}) <= {LONGEST} AND {beyond})"


def _is_tiny(text: str) -> str:
    """Any other number. Asked after `_is_huge`."""
    return f"(LENGTH({text}) <= {LONGEST} AND {_matches(text, NUMBER)})"


def _trimmed(x: str) -> str:
    # In the collation "C" letters are bytes: no locale has a say.
    return f"(BTRIM(CAST({x} AS text), E' \\t\\r\\n') COLLATE \"C\")"


def _matches(text: str, pattern: str) -> str:
    return f"{text} ~ '^({pattern})$'"


def _plain(text: str) -> str:
    """A text literal whatever the server thinks of backslashes."""
    return " E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _double(number: float) -> str:
    return f"CAST('{number!r}' AS double precision)"
