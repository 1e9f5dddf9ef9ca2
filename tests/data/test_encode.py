"""The SQL of a column's code agrees with `encode_array` on every value of every type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.data.duckdb_dialect import DUCKDB
from holdfast.data.encode import encode_sql
from holdfast.errors import DataError
from holdfast.query.schema import (
    Boolean,
    Category,
    ColumnType,
    Date,
    Integer,
    Real,
    Temporal,
    Time,
    Timestamp,
)

MANY = Category(*(f"l{i}" for i in range(300)), "12", "it's", "", "☃", "0.5", "-3", "inf", "1e+300", "true")
DECLARED: list[ColumnType] = [
    Integer(0, 120),
    Integer(-(2**61), 2**60),
    Integer(2**53, 2**53 + 9),
    Integer(-7, -7),
    Real(-1.5, 1e6),
    Real(0, 1),
    Real(-1e300, 1e-300),
    Boolean(),
    Category("no", "yes", "it's", "", "☃", " x", "true", "false"),
    Category("1", "-3", "0", "0.5", "1e+20", "18446744073709551615", "inf", "nan", "1e-05", "2.0", "-0.0"),
    MANY,
    Category(*range(-40, 60), "0.5", "1e+20", "inf"),
    Date("2020-01-01", "2026-12-31"),
    Date("0001-01-01", "9999-12-31"),
    Timestamp("2020-01-01", "2026-12-31"),
    Timestamp("0001-01-01", "9999-12-31", "microsecond"),
    Time(),
    Time("06:30", "22:00", "minute"),
]
INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UHUGEINT": (0, 2**128 - 1),
}
EDGES = [0, 1, -1, 12, -3, 120, 121, 2**53 + 1, 2**53 + 5, 2**60 + 1, -(2**61) - 1, 2**64 - 1, -(2**64)]

number_texts = st.one_of(
    st.integers(-(10**45), 10**45).map(str),
    st.floats().map(repr),
    st.from_regex(r"\A[+-]?[0-9]{0,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{0,4})?\Z"),
    st.text(alphabet="0123456789+-.eE_xX infatyINFATY\t\r\n", max_size=12),
)
texts = st.one_of(
    number_texts,
    st.sampled_from([*MANY.labels[-12:], "no", "yes", "TRUE", " t ", "N", "nan", "l7", "l300", "L7"]),
    st.dates().map(str),
    st.datetimes().map(str),
    st.times().map(str),
    st.datetimes(timezones=st.timezones(), allow_imaginary=False).map(
        lambda m: m.replace(microsecond=0).isoformat()
    ),
    st.from_regex(
        r"\A2020-02-29[T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?(Z|[+-][0-2][0-9](:?[0-6][0-9])?)?\Z"
    ),
    st.from_regex(r"\A[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?\Z"),
    st.from_regex(r"\A[ \t]?[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][^\0]{0,8})?[ \n]?\Z"),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)

# What generated texts hardly ever are: infinite, or just too long for a machine's integer.
EDGE_TEXTS: list[str | None] = [
    *(sign + text for sign in ("", "+", "-") for text in ("inf", "Infinity", "1e400", "9" * 18, "9" * 19)),
    *(sign + text for sign in ("", "+", "-") for text in ("9" * 38, "9" * 40, "9" * 41, "0" * 41 + "7")),
]


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def by_sql(
    connection: duckdb.DuckDBPyConnection, column: ColumnType, values: list[Any], kind: str, *, sql: str = ""
) -> list[Any]:
    """Codes through DuckDB; the values travel as texts, which the type's own cast reads exactly."""
    cursor = connection.cursor()
    written = pa.array(
        [None if v is None else v if isinstance(v, str) else str(v) for v in values], pa.string()
    )
    given_values = pa.table({"place": range(len(values)), "raw": written})
    cursor.register("given_values", given_values)
    expression = sql or encode_sql(DUCKDB, column, 'the "value"', kind)
    rows = cursor.execute(
        f'SELECT {expression} FROM (SELECT place, CAST(raw AS {kind}) AS "the ""value""" FROM given_values) '
        "ORDER BY place"
    ).fetchall()
    cursor.unregister("given_values")
    return [np.nan if row[0] is None else row[0] for row in rows]


def check(
    connection: duckdb.DuckDBPyConnection,
    column: ColumnType,
    values: list[Any],
    kind: str,
    array: Any,
    **more: Any,
) -> None:
    expected = column.encode_array(array)
    found = np.array(by_sql(connection, column, values, kind, **more), dtype=column.dtype)
    np.testing.assert_array_equal(found, expected, err_msg=f"{kind} as {column!r}")
    if isinstance(column, Real):
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def objects(values: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def readable(column: ColumnType, kind: str) -> bool:
    try:
        encode_sql(DUCKDB, column, "x", kind)
    except DataError:
        return False
    return True


@settings(max_examples=8, deadline=None)
@given(st.lists(st.none() | texts, min_size=1, max_size=60))
@example(EDGE_TEXTS)
def test_texts(connection: duckdb.DuckDBPyConnection, values: list[str | None]) -> None:
    for column in DECLARED:
        check(connection, column, values, "VARCHAR", objects(values))


@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_integers(connection: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    for kind, (low, high) in INTEGERS.items():
        near = st.sampled_from([value for value in (*EDGES, low, high) if low <= value <= high])
        values = data.draw(st.lists(st.none() | near | st.integers(low, high), min_size=1, max_size=30))
        for column in DECLARED:
            if readable(column, kind):
                check(connection, column, values, kind, objects(values))
            else:
                assert isinstance(column, Temporal)


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_floats(connection: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    halves = st.integers(-300, 300).map(lambda i: i / 2)
    near = st.sampled_from([0.49999999999999994, -0.5, -0.0, 120.5, 2.0**62, 1e20, 1e-5, 0.5, 2.0**53 + 2])
    for kind, width in (("DOUBLE", 64), ("FLOAT", 32)):
        numbers = (
            st.floats(width=width)
            | halves
            | near.map(lambda x, w=width: float(np.float32(x)) if w == 32 else x)
        )
        values = data.draw(st.lists(numbers, min_size=1, max_size=40))
        array = np.array(values, dtype=np.float64 if width == 64 else np.float32)
        for column in DECLARED:
            if readable(column, kind):
                check(connection, column, [repr(v) for v in values], kind, array)
            else:
                assert isinstance(column, Temporal)


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_decimals(connection: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    for width, scale in ((38, 0), (38, 37), (38, 10), (9, 3), (4, 1), (18, 18)):
        digits = st.integers(-(10**width) + 1, 10**width - 1) | st.integers(-3000, 3000)
        ties = st.integers(-20, 20).map(
            lambda i, s=scale, w=width: i * 5 * 10 ** (s - 1) if 2 + s <= w else i
        )
        integers = data.draw(st.lists(digits | (ties if scale else digits), min_size=1, max_size=20))
        values = [Decimal(f"{i}e-{scale}") for i in integers]
        kind = f"DECIMAL({width},{scale})"
        for column in DECLARED:
            if readable(column, kind):
                check(connection, column, [format(v, "f") for v in values], kind, objects(values))
            else:
                assert isinstance(column, Temporal | Category)


@pytest.mark.parametrize("column", DECLARED, ids=lambda c: repr(c)[:30])
def test_booleans_and_nothing(connection: duckdb.DuckDBPyConnection, column: ColumnType) -> None:
    nothing = [None, None]
    check(
        connection,
        column,
        nothing,
        "VARCHAR",
        objects(nothing),
        sql=encode_sql(DUCKDB, column, 'the "value"', '"NULL"'),
    )
    values = [True, None, False]
    if readable(column, "BOOLEAN"):
        check(connection, column, values, "BOOLEAN", objects(values))
    else:
        assert isinstance(column, Temporal)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.dates(), min_size=1, max_size=30))
def test_dates(connection: duckdb.DuckDBPyConnection, values: list[datetime.date | None]) -> None:
    for column in DECLARED:
        if isinstance(column, Date | Timestamp):
            check(connection, column, values, "DATE", objects(values))


INSTANTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.none() | INSTANTS, min_size=1, max_size=30))
@example([datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2020, 1, 1), None])
def test_times(connection: duckdb.DuckDBPyConnection, values: list[datetime.datetime | None]) -> None:
    connection.execute("SET GLOBAL TimeZone = 'Pacific/Auckland'")  # must not matter; global, for cursors
    kinds = [Date("1960-01-01", "2100-01-01"), *(c for c in DECLARED if isinstance(c, Time | Timestamp))]
    units = {"TIMESTAMP": "us", "TIMESTAMP_S": "s", "TIMESTAMP_MS": "ms", "TIMESTAMP_NS": "ns"}
    for column in kinds:
        for kind, unit in units.items():
            array = np.array(values, dtype=f"datetime64[{unit}]")
            written = [
                None if np.isnat(moment) else str(moment) for moment in array
            ]  # a cast of texts would round
            check(connection, column, written, kind, array)
        zoned = [None if v is None else v.isoformat() + "+00:00" for v in values]
        check(connection, column, zoned, "TIMESTAMP WITH TIME ZONE", np.array(values, dtype="datetime64[us]"))


def test_nanoseconds_are_dropped_on_both_sides_of_1970(connection: duckdb.DuckDBPyConnection) -> None:
    texts = [
        "1969-12-31 23:59:58.999999999",
        "1970-01-01 00:00:01.000000999",
        "2020-02-29 12:00:00.123456789",
    ]
    array = np.array(texts, dtype="datetime64[ns]")
    for column in (Timestamp("1960-01-01", "2030-01-01", "microsecond"), Time(step="second")):
        check(connection, column, texts, "TIMESTAMP_NS", array)
    moved = array + np.timedelta64(1, "us")
    with pytest.raises(AssertionError):
        check(connection, Timestamp("1960-01-01", "2030-01-01", "microsecond"), texts, "TIMESTAMP_NS", moved)


def test_moments_beyond_all_that_can_be_declared(connection: duckdb.DuckDBPyConnection) -> None:
    column = Timestamp("2020-01-01", "2026-12-31")
    far = ["infinity", "-infinity", "4713-01-01 (BC) 00:00:00", "290000-12-31 00:00:00"]
    for kind in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        assert by_sql(connection, column, far[2:], kind) == [0, column.codes - 1]
    assert by_sql(connection, column, far, "TIMESTAMP") == [column.codes - 1, 0, 0, column.codes - 1]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.none() | st.times(), min_size=1, max_size=30))
def test_times_of_day(connection: duckdb.DuckDBPyConnection, values: list[datetime.time | None]) -> None:
    for column in DECLARED:
        if isinstance(column, Time):
            check(connection, column, values, "TIME", objects(values))
        else:
            assert not readable(column, "TIME")


def test_labels_of_an_enum(connection: duckdb.DuckDBPyConnection) -> None:
    values = ["it's", None, "12", "l5", "other"]
    kind = "ENUM('it''s', '12', 'l5', 'other')"
    assert DUCKDB.family(kind) == "text"
    for column in DECLARED:
        check(connection, column, values, kind, objects(values))


@pytest.mark.parametrize(
    "kind",
    ["INTEGER[]", "STRUCT(a INTEGER)", "BLOB", "TIME WITH TIME ZONE", "INTERVAL", "VARCHAR[3]", "UUID"],
)
def test_other_types_are_refused_without_their_details(kind: str) -> None:
    for column in DECLARED:
        with pytest.raises(DataError, match="cannot be read as") as caught:
            encode_sql(DUCKDB, column, "x", kind)
        assert "STRUCT(" not in str(caught.value)


def test_code_types_hold_all_codes() -> None:
    for column, code_type in {
        Integer(0, 254): "UTINYINT",
        Integer(0, 255): "USMALLINT",
        Integer(0, 2**40): "UBIGINT",
        Real(0, 1): "DOUBLE",
    }.items():
        assert encode_sql(DUCKDB, column, "x", "INTEGER").endswith(f" AS {code_type})")


TWINS = {
    "a plain cast": ("VARCHAR", ["7", "x"], 'CAST("the ""value""" AS UTINYINT)'),
    "an engine's own reading": (
        "VARCHAR",
        ["0x10", "1_000"],
        'CAST(TRY_CAST("the ""value""" AS INTEGER) AS UTINYINT)',
    ),
    "floor(x + 1/2)": ("DOUBLE", ["0.49999999999999994"], 'CAST(FLOOR("the ""value""" + 0.5) AS UTINYINT)'),
    "rounding half to even": ("DOUBLE", ["2.5"], 'CAST("the ""value""" AS UTINYINT)'),
    "clamping that swallows NULL": (
        "BIGINT",
        [None],
        'CAST(LEAST(GREATEST("the ""value""", 0), 120) AS UTINYINT)',
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_broken_twins_are_caught(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    kind, values, sql = TWINS[name]
    column = Integer(0, 120)
    array = np.array(values, dtype=np.float64) if kind == "DOUBLE" else objects(values)
    check(connection, column, values, kind, array)
    with pytest.raises((AssertionError, duckdb.Error, ValueError)):
        check(connection, column, values, kind, array, sql=sql)
