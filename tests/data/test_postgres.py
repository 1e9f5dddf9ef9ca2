"""PostgreSQL as a source: the same codes, exact draws by place, one snapshot, and servers that die."""

from __future__ import annotations

import datetime
import itertools
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.statistics import FALSE_ALARM, uniform
from services import PostgresServer, postgres

from data.tables import whole
from data.test_encode import DECLARED
from data.test_encode import texts as some_texts
from holdfast.data import postgres as module
from holdfast.data.encode import encode_sql
from holdfast.data.frame import FrameSource
from holdfast.data.open import open_source
from holdfast.data.pool import pool_rows
from holdfast.data.postgres import PostgresSource
from holdfast.data.postgres_dialect import LONGEST, POSTGRES
from holdfast.data.postgres_link import Link
from holdfast.data.source import Block
from holdfast.errors import DataError, InputError
from holdfast.noise.bits import ReplayedBits, system_bits
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.schema import Boolean, Category, ColumnType, Date, Integer, Real, Schema, Timestamp
from holdfast.query.statistic import Statistic, workload

serial = itertools.count()


def table(definition: str, rows: str = "", server: PostgresServer | None = None) -> str:
    """A new table with these columns, filled by the SELECT or VALUES."""
    name = f"t{next(serial)}"
    (server or postgres()).execute(
        f"CREATE TABLE {name} ({definition}); " + (f"INSERT INTO {name} {rows}" if rows else "")
    )
    return name


def opened(name: str, schema: Schema, server: PostgresServer | None = None) -> PostgresSource:
    return PostgresSource((server or postgres()).url, name, schema)


# Values into codes


@pytest.fixture(scope="module")
def connection() -> Any:
    with psycopg.connect(postgres().url, autocommit=True) as link:
        link.execute("SET extra_float_digits = 1; SET TimeZone = 'America/New_York'")
        yield link


def by_sql(connection: Any, column: ColumnType, values: list[Any], kind: str) -> list[Any]:
    """Codes through PostgreSQL; values travel as texts, which the type's own cast reads exactly."""
    written = [None if v is None else v if isinstance(v, str) else str(v) for v in values]
    rows = psycopg.RawCursor(connection).execute(
        f"SELECT {encode_sql(POSTGRES, column, 'the value', _family(kind))} "
        f'FROM (SELECT place, CAST(raw AS {kind}) AS "the value" '
        "FROM unnest(CAST($1 AS text[])) WITH ORDINALITY AS given(raw, place)) AS t ORDER BY place",
        (written,),
    )
    return [math.nan if code is None else code for (code,) in rows]


def _family(kind: str) -> str:
    return kind.split("(")[0]


def check(connection: Any, values: list[Any], kind: str, expected: list[Any] | None = None) -> int:
    """Compare with `encode_array` for every declared column that can be read from this type."""
    array = np.empty(len(values), dtype=object)
    array[:] = values if expected is None else expected
    compared = 0
    for column in DECLARED:
        try:
            encode_sql(POSTGRES, column, "x", _family(kind))
        except DataError:
            continue
        found = np.array(by_sql(connection, column, values, kind), dtype=column.dtype)
        wanted = column.encode_array(array)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{kind} as {column!r}")
        if isinstance(column, Real):
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted) & ~np.isnan(wanted))
        compared += 1
    return compared


INTEGERS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(connection: Any, kind: str) -> None:
    limit = INTEGERS[kind]
    near = [0, 1, -1, 12, -3, 119, 120, 121, 2**53 + 1, 2**53 + 5, 2**60 + 1, -(2**61) - 1, limit - 1, -limit]
    values = [None, *(v for v in near if -limit <= v < limit)]
    assert check(connection, values, kind) == 12


def test_truth_values(connection: Any) -> None:
    assert check(connection, [None, True, False], "bool") == 12


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(), max_size=20))
@example(
    [-0.0, 0.5, -0.5, 1.5, 0.49999999999999994, 2.0**53 + 4, 2.0**63, -(2.0**64), 1e300, 5e-324, 1e20, 1e-5]
)
@example([math.inf, -math.inf, math.nan, 120.5, -7.5, -6.5, 18446744073709551615.0])
def test_floats(connection: Any, values: list[float]) -> None:
    assert check(connection, [*map(repr, values)], "float8", values) == 12
    narrow = [float(np.float32(v)) for v in np.clip(values, -1e38, 1e38)]
    assert check(connection, [*map(repr, narrow)], "float4", narrow) == 12


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**60), max_value=10**60), max_size=20
    )
)
@example(
    [
        Decimal("0.5"),
        Decimal("-0.5"),
        Decimal("119.5"),
        Decimal("1e-400"),
        Decimal("-1e-330"),
        Decimal("1e400"),
    ]
)
@example([Decimal("2.4703282292062327e-324"), Decimal("2.4703282292062328e-324"), Decimal("4.9e-324")])
@example([Decimal("0.1"), Decimal("1e308"), Decimal("-1.5"), Decimal("-1.50000000000000001"), Decimal("1e6")])
def test_decimals(connection: Any, values: list[Decimal]) -> None:
    assert check(connection, [format(v, "f") for v in values], "numeric", values) == 8


def test_decimals_without_a_value(connection: Any) -> None:
    values = ["NaN", "Infinity", "-Infinity", None]
    expected = [None, math.inf, -math.inf, None]
    assert check(connection, values, "numeric", expected) == 8


@settings(max_examples=60, deadline=None)
@given(st.lists(some_texts, max_size=20))
@example(
    [
        "1e999999999",
        "-1e999999999",
        "0e999999999",
        "1e-999999999",
        "1e10000",
        "-1e-10000",
        "0.0e-99999",
        "1e+00009",
    ]
)
@example(
    ["9" * 400, "-" + "9" * 400, "0." + "0" * 400 + "1", "." + "9" * 300 + "e300", "1" + "0" * 300 + "e-290"]
)
@example(
    [
        "2021-02-29",
        "2020-02-29",
        "1900-02-29",
        "2000-02-29",
        "0000-01-01",
        "2020-13-01",
        "2020-00-10",
        "2020-04-31",
    ]
)
@example(
    [
        "infinity",
        "-INF",
        "+Inf",
        "nan",
        "1.",
        ".5",
        ".",
        "",
        "+",
        "1e",
        "٣",
        "0x10",
        "1_000",
        " 12\t",
        "12\x0b",
        "\u00a012",
    ]
)
@example(["TRUE", " yes\n", "tRuE", "ﬀ", "İ", "K", "N", "\\", "'", '"', "it's", "☃", "l299", "L7"])
def test_texts(connection: Any, values: list[str]) -> None:
    assert check(connection, values, "text") == 18


def test_texts_of_other_types(connection: Any) -> None:
    values = ["no", "yes", "12", "0.5", "2020-05-05", "true"]
    assert check(connection, values, "varchar(20)") == 18
    assert check(connection, values, "bpchar") == 18


def test_a_very_long_number_is_null(connection: Any) -> None:
    for text in ("9" * (LONGEST + 1), "0" * 140_000 + ".5", "1" * 200_000 + "e5"):
        assert by_sql(connection, Real(0, 1), [text], "text")[0] != 0
        assert by_sql(connection, Boolean(), [text], "text") == [2]
    assert by_sql(connection, Real(0, 1), ["9" * LONGEST], "text") == [1.0]


def test_many_labels_and_backslashes(connection: Any) -> None:
    labels = ["\\", "\\\\", "'", '"', "\\'", 'a"b', "\t", "☃", "", "1", *(f"x{i}" for i in range(100))]
    for column in (Category(*labels), Category(*labels[:12])):
        found = by_sql(connection, column, [*labels, "nothing", None], "text")
        np.testing.assert_array_equal(
            found, column.encode_array(np.array([*labels, "nothing", None], object))
        )


def test_days(connection: Any) -> None:
    days = [
        datetime.date(1, 1, 1),
        datetime.date(9999, 12, 31),
        datetime.date(2020, 2, 29),
        datetime.date(1969, 12, 31),
    ]
    assert check(connection, [*days, None], "date") == 4
    moments = [datetime.datetime(2020, 3, 1, 23, 59, 59, 999999), datetime.datetime(1969, 12, 31, 0, 0, 1)]
    assert check(connection, [*moments, None], "timestamp") == 6
    instants = ["2020-03-01 23:30:00-05", "2020-03-01 00:30:00+02", None]
    utc = [datetime.datetime(2020, 3, 2, 4, 30), datetime.datetime(2020, 2, 29, 22, 30), None]
    assert check(connection, instants, "timestamptz", utc) == 6
    times = [datetime.time(8, 30, 59, 999999), datetime.time(), datetime.time(22), None]
    assert check(connection, times, "time") == 2
    far = ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "20000-01-01"]
    for column in (Date("2020-01-01", "2026-12-31"), Date("0001-01-01", "9999-12-31")):
        hi = column.codes - 1
        assert by_sql(connection, column, far, "date") == [hi, 0, 0, hi, hi]
        for kind in ("timestamp", "timestamptz"):
            assert by_sql(connection, column, far[:2], kind) == [hi, 0]
    stamped = Timestamp("2020-01-01", "2026-12-31")
    hi, far[3] = stamped.codes - 1, "294000-12-31"
    for kind in ("date", "timestamp", "timestamptz"):
        assert by_sql(connection, stamped, far, kind) == [hi, 0, 0, hi, hi]


def test_impossible_types() -> None:
    name = table("x bytea, y int[], z time, u uuid", "VALUES (NULL, NULL, NULL, NULL)")
    for column, kind in [
        ("x", Integer(0, 1)),
        ("y", Integer(0, 1)),
        ("z", Date("2020-01-01", "2020-01-02")),
        ("u", Boolean()),
    ]:
        with pytest.raises(DataError, match="cannot be read as"):
            opened(name, Schema.from_mapping({column: kind}))


def test_domains_and_enums() -> None:
    postgres().execute(
        "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE DOMAIN year AS int4; CREATE DOMAIN age AS year"
    )
    name = table("m mood, a age", "VALUES ('happy', 7), ('sad', NULL), (NULL, 130)")
    source = opened(name, Schema(m=Category("happy", "sad"), a=Integer(0, 120)))
    codes = whole(source)
    assert codes["m"].tolist() == [0, 1, 2]
    assert codes["a"].tolist() == [7, 121, 120]
    source.close()


# Draws

NUMBERED = Schema(id=Integer(0, 10**7), pad=Category("a", "b"))


def numbered(rows: int, server: PostgresServer | None = None) -> str:
    """Rows 0..rows-1, in pages that are full, half empty, empty, and full of old versions."""
    name = table(
        "id int, pad text, wide text",
        f"SELECT i, 'a', repeat('x', i % 100) FROM generate_series(0, {rows * 2}) AS i",
        server,
    )
    (server or postgres()).execute(
        f"DELETE FROM {name} WHERE id % 2 = 1 OR id >= {rows * 2} OR id BETWEEN 200 AND 599; "
        f"UPDATE {name} SET pad = 'b' WHERE id < {rows}; "
        f"INSERT INTO {name} SELECT i, 'a', '' FROM generate_series(200, 598, 2) AS i; UPDATE {name} SET id = id / 2"
    )
    return name


def places(source: PostgresSource) -> np.ndarray[Any, Any]:
    """The ids in the order of scanning."""
    return whole(source, ["id"])["id"].astype(np.int64)


def test_every_place_is_one_row_or_none() -> None:
    source = opened(numbered(1500), NUMBERED)
    layout = source._layout
    assert source.rows == 1500
    assert sorted(places(source)) == list(range(1500))
    assert layout.places > 2 * source.rows
    order = np.random.default_rng(1).permutation(layout.places)
    tries = source.rows * layout.places * 21 // (source.rows * 20) + 64
    # Every place once and then the first again: exactly the rows come, each once, in the order of places.
    choices = [int(i) for i in np.resize(order, tries)]
    drawn = source.draw(["id"], source.rows, ReplayedBits(choices=choices))["id"]
    assert sorted(drawn) == list(range(1500))
    again = source.draw(
        ["id"], 1500, ReplayedBits(choices=[int(i) for i in np.resize(np.arange(layout.places), tries)])
    )
    np.testing.assert_array_equal(again["id"], places(source))
    source.close()


class PagesFirst(PostgresSource):
    """A page, and then one of its rows: rows in half-empty pages come too often."""

    def _drawn(self, names: tuple[str, ...], count: int, bits: Any) -> Block:
        layout = self._layout
        found, codes = self._look_up(names, layout, np.arange(layout.places))
        pages = found // layout.slots
        held = np.unique(pages)
        chosen = held[bits.integers_below(len(held), count)]
        low, high = np.searchsorted(pages, chosen), np.searchsorted(pages, chosen, side="right")
        rows = low + np.array([bits.below(int(n)) for n in high - low])
        return {name: array[rows] for name, array in codes.items()}


class NextRow(PostgresSource):
    """An empty place stands for the next row."""

    def _drawn(self, names: tuple[str, ...], count: int, bits: Any) -> Block:
        layout = self._layout
        found, codes = self._look_up(names, layout, np.arange(layout.places))
        rows = np.searchsorted(found, bits.integers_below(layout.places, count)) % len(found)
        return {name: array[rows] for name, array in codes.items()}


def test_draws_are_uniform() -> None:
    name = numbered(1500)

    def p_value(kind: type[PostgresSource]) -> float:
        source = kind(postgres().url, name, NUMBERED)
        drawn = source.draw(["id"], 150_000)["id"]
        source.close()
        return uniform(np.bincount(drawn, minlength=1500))

    assert p_value(PostgresSource) > FALSE_ALARM
    assert p_value(PagesFirst) < FALSE_ALARM
    assert p_value(NextRow) < FALSE_ALARM


def test_one_row_and_a_million() -> None:
    one = opened(table("id int, pad text", "VALUES (5, 'b')"), NUMBERED)
    assert set(one.draw(["id"], 1000)["id"]) == {5}
    assert one.draw(["pad"], 3, system_bits())["pad"].tolist() == [1, 1, 1]
    one.close()
    name = table("id int, pad text", "SELECT i, 'a' FROM generate_series(0, 999999) AS i")
    many = opened(name, NUMBERED)
    drawn = many.draw(["id"], 100_000)["id"]
    assert uniform(np.bincount(drawn // 1000, minlength=1000)) > FALSE_ALARM
    assert len(many.draw(["id"], 400_000)["id"]) == 400_000
    np.testing.assert_array_equal(places(many), np.arange(10**6))
    ids = np.array([999_999, 0, 17, 17])
    np.testing.assert_array_equal(many.gather(["id"], ids)["id"], ids)
    many.close()


def test_sixteen_threads_draw_from_one_source() -> None:
    source = opened(numbered(1500), NUMBERED)

    def work(turn: int) -> int:
        if turn % 4 == 0:
            return int(sum(len(block["id"]) for block in source.scan(["id"])) == 1500)
        return int(len(source.draw(["id"], 20_000)["id"]) == 20_000)

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(work, range(48))) == 48
    source.close()


def test_partitions() -> None:
    name = table("x int", "")
    parent = f"{name}_parts"
    postgres().execute(
        f"CREATE TABLE {parent} (id int, pad text) PARTITION BY RANGE (id); "
        + "".join(
            f"CREATE TABLE {parent}{i} PARTITION OF {parent} FOR VALUES FROM ({500 * i}) TO ({500 * i + 500}); "
            for i in range(4)
        )
        + f"INSERT INTO {parent} SELECT i, 'a' FROM generate_series(0, 999) AS i; DELETE FROM {parent} WHERE id % 3 = 0"
    )
    source = opened(parent, NUMBERED)
    expected = [i for i in range(1000) if i % 3]
    assert places(source).tolist() == expected
    drawn = source.draw(["id"], 100_000)["id"]
    assert uniform(np.bincount(drawn, minlength=1000)[expected]) > FALSE_ALARM
    assert len(set(drawn)) == len(expected)
    count = workload(Statistic("count", parse_predicate("id >= 900", NUMBERED)), NUMBERED, 666).measurements[
        0
    ]
    assert source.totals(count).tolist() == [sum(i >= 900 for i in expected)]
    source.close()


def test_materialized_views_and_what_is_refused() -> None:
    name = table("id int, pad text", "SELECT i, 'a' FROM generate_series(1, 50) AS i")
    postgres().execute(
        f"CREATE MATERIALIZED VIEW {name}_kept AS SELECT * FROM {name}; "
        f"CREATE VIEW {name}_seen AS SELECT * FROM {name}; "
        f"CREATE TABLE {name}_child () INHERITS ({name}); CREATE TABLE {name}_none (id int, pad text)"
    )
    kept = opened(f"{name}_kept", NUMBERED)
    assert kept.rows == 50
    kept.close()
    refusals = {
        f"{name}_seen": "materialized view",
        name: "materialized view",
        f"{name}_none": "empty",
        "no_such": "nothing",
    }
    for other, message in refusals.items():
        with pytest.raises(DataError, match=message):
            opened(other, NUMBERED)
    with pytest.raises(DataError, match="expected a column 'z'"):
        opened(f"{name}_kept", Schema(z=Integer(0, 1)))
    with pytest.raises(DataError, match="name of a table"):
        opened("a b; DROP TABLE x", NUMBERED)
    for bad in ("", 5, None, "a\0b"):
        with pytest.raises(InputError):
            opened(bad, NUMBERED)  # type: ignore[arg-type]


def test_unusual_names() -> None:
    place, first, second = '"My Schema"."the ""Table"""', "A %s $1 {b}", "a %s $1 {b}"
    postgres().execute(f'CREATE SCHEMA "My Schema"; CREATE TABLE {place} ("{second}" int, "{first}" int)')
    postgres().execute(f"INSERT INTO {place} VALUES (1, 2), (3, NULL)")
    source = opened(place, Schema.from_mapping({first: Integer(0, 9), second: Integer(0, 9)}))
    codes = whole(source)
    assert codes[first].tolist() == [2, 10]
    assert codes[second].tolist() == [1, 3]
    assert set(source.draw([second], 100)[second]) == {1, 3}
    source.close()


# Totals


def test_a_product_below_the_least_double_is_zero() -> None:
    schema = Schema(x=Real(0, 1e12), y=Real(0, 1))
    source = opened(
        table("x float8, y float8", "VALUES (5e-324, 1e-200), (3, 0.5), (NULL, 1), (1e12, 5e-324)"), schema
    )
    block = whole(source)
    for statistic in (
        Statistic("sum", parse_predicate("x * y > 0", schema), parse_expression("x", schema)),
        Statistic("mean", parse_predicate("y * y * y = 0", schema), parse_expression("y", schema)),
        Statistic("sum", parse_predicate("x >= 0", schema), parse_expression("x", schema)),
    ):
        for measurement in workload(statistic, schema, 4).measurements:
            np.testing.assert_array_equal(source.totals(measurement), measurement.totals(block))
    source.close()


def test_doubles_beside_whole_numbers() -> None:
    """A constant with a fraction is a double, not a decimal: 3 * 0.1 is 0.30000000000000004."""
    schema = Schema(k=Integer(0, 10), x=Real(0, 10))
    name = table("k int, x float8", "SELECT i % 11, i / 10.0 FROM generate_series(0, 100) AS i")
    source = opened(name, schema)
    block = whole(source)
    for text in (
        "k * 0.1 <= x",
        "k * 0.1 = 0.30000000000000004",
        "k * 0.1 + x * 0.1 > 0.7",
        "least(k, x * 1.1) >= 3.3",
    ):
        measurement = workload(Statistic("count", parse_predicate(text, schema)), schema, 101).measurements[0]
        assert source.totals(measurement).tolist() == measurement.totals(block).tolist()
    source.close()


# The link


def test_a_snapshot_does_not_move() -> None:
    name = numbered(1500)
    source = opened(name, NUMBERED)
    before = sorted(places(source))
    postgres().execute(
        f"DELETE FROM {name} WHERE id < 700; INSERT INTO {name} VALUES (9999, 'a', ''); UPDATE {name} SET id = id + 1"
    )
    assert sorted(places(source)) == before
    assert set(source.draw(["id"], 30_000)["id"]) <= set(range(1500))
    assert source.rows == 1500
    source.close()


def test_transactions_are_read_only_and_end_in_time() -> None:
    link = Link(postgres().url, timeout=1)
    for statement in ("CREATE TABLE never (x int)", "SELECT nextval('never')"):
        with pytest.raises(DataError, match=r"25006|42P01"):
            link.rows(statement)
    with pytest.raises(DataError, match="within 1 s"):
        link.rows("SELECT pg_sleep(30)")
    assert link.rows("SELECT 1") == [(1,)]
    link.close()
    with pytest.raises(DataError, match="closed"):
        link.rows("SELECT 1")


def test_errors_do_not_quote_values_or_passwords() -> None:
    link = Link(postgres().url)
    with pytest.raises(DataError) as caught:
        link.rows("SELECT CAST('secret 4711' AS int)")
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    link.close()
    for url in (
        "postgresql://me:hush@127.0.0.1:1/x",
        "postgresql://me:hush@/x?host=/nowhere",
        "postgresql://me:hush@:bad/",
    ):
        with pytest.raises(DataError) as caught:
            Link(url)
        assert "hush" not in str(caught.value)
        assert caught.value.__context__ is None


def test_a_lost_connection_is_replaced() -> None:
    """Others may end our connections, even the one that keeps the snapshot."""
    source = opened(numbered(1500), NUMBERED)
    before = places(source)
    postgres().execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'"
    )
    np.testing.assert_array_equal(places(source), before)
    source.close()


@pytest.fixture(scope="module")
def mortal() -> Any:
    return PostgresServer()


def test_a_server_that_dies_and_comes_back(mortal: PostgresServer) -> None:
    name = numbered(1500, mortal)
    source = opened(name, NUMBERED, mortal)
    total = workload(Statistic("count", parse_predicate("id < 300", NUMBERED)), NUMBERED, 1500).measurements[
        0
    ]
    pool = pool_rows(NUMBERED, 1500, module.POOL_ROWS)
    assert len(source.draw(["id"], 10)["id"]) == 10
    scanning = source.scan(["id"])
    mortal.stop()
    assert len(source.draw(["id"], pool - 10)["id"]) == pool - 10  # these were drawn before
    for ask in (
        lambda: source.draw(["id"], 10),
        lambda: source.totals(total),
        lambda: list(scanning),
        lambda: places(source),
    ):
        with pytest.raises(DataError, match="expected a PostgreSQL server"):
            ask()
    mortal.start()
    assert len(source.draw(["id"], 10)["id"]) == 10
    assert source.totals(total).tolist() == [300]
    assert sorted(places(source)) == list(range(1500))
    source.close()


def test_what_was_charged_stays_charged_and_the_answer_is_resumed(mortal: PostgresServer) -> None:
    import holdfast as hf

    people = hf.open(mortal.url, NUMBERED, table=numbered(1500, mortal))
    session = people.session(rho=2.0, queries=10)
    mortal.stop()
    for _ in range(2):
        with pytest.raises(hf.DataError, match="expected a PostgreSQL server"):
            session.fraction("id < 300", within=0.2)
        charged = session.spent.rho
        assert charged > 0
    with pytest.raises(hf.DataError):
        session.sample("id < 300")
    mortal.start()
    before = session.spent.rho
    assert before > charged  # the sample was charged too
    answer = session.fraction("id < 300", within=0.2)
    assert session.spent.rho == before
    assert answer.low <= 0.2 <= answer.high


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {0} VALUES (7, 'a', ''); DELETE FROM {0} WHERE id = 9",
        "UPDATE {0} SET pad = 'b' WHERE id = 1400",
        "DELETE FROM {0} WHERE id = 3",
        "TRUNCATE {0}; INSERT INTO {0} SELECT i, 'a', '' FROM generate_series(0, 1499) AS i",
    ],
)
def test_rows_that_changed_while_the_server_was_away_are_refused(mortal: PostgresServer, change: str) -> None:
    name = numbered(1500, mortal)
    source = opened(name, NUMBERED, mortal)
    mortal.stop()
    mortal.start()
    mortal.execute(change.format(name))
    for _ in range(2):
        with pytest.raises(DataError, match="got changed ones"):
            source.draw(["id"], 10)
    source.close()


def test_rows_that_only_moved_are_kept(mortal: PostgresServer) -> None:
    name = numbered(1500, mortal)
    source = opened(name, NUMBERED, mortal)
    mortal.stop()
    mortal.start()
    with psycopg.connect(mortal.url, autocommit=True) as connection:
        connection.execute(f"VACUUM FULL {name}")  # type: ignore[arg-type]
    assert sorted(places(source)) == list(range(1500))
    assert len(set(source.draw(["id"], 60_000)["id"])) == 1500
    source.close()


# The door


def test_one_door() -> None:
    name, url = numbered(1500), postgres().url
    source = open_source(url, NUMBERED, table=name)
    assert isinstance(source, PostgresSource)
    copy = open_source(url.replace("postgresql://", "postgres://"), NUMBERED, table=name, in_memory=True)
    assert isinstance(copy, FrameSource)
    np.testing.assert_array_equal(whole(copy)["id"], whole(source)["id"])
    source.close()
    for arguments in (
        {"data": url},
        {"data": {"id": [1]}, "table": "t"},
        {"data": "people.csv", "table": "t"},
    ):
        with pytest.raises(InputError, match="table="):
            open_source(**arguments, schema=NUMBERED)
    with pytest.raises(InputError, match="schema"):
        open_source(url, table=name)


def test_a_session_over_a_table() -> None:
    import holdfast as hf

    with pytest.raises(hf.DataError):
        hf.open("postgresql://nobody@/none?host=/nowhere", NUMBERED, table="t")
    people = hf.open(postgres().url, NUMBERED, table=numbered(1500))
    answer = people.session(rho=5.0).fraction("id < 750", within=0.3)
    assert answer.low <= 0.5 <= answer.high


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
from holdfast.data.postgres import PostgresSource
from holdfast.query.schema import Category, Integer, Schema
source = PostgresSource(sys.argv[1], sys.argv[2], Schema(id=Integer(0, 10**7), pad=Category("a", "b")))
source.draw(["id"], 100)
if (child := os.fork()) == 0:
    rows = sum(len(block["id"]) for block in source.scan(["id"]))
    good = rows == 1500 and len(source.draw(["id"], 1000)["id"]) == 1000
    source.close()
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
assert status == 0
assert sum(len(block["id"]) for block in source.scan(["id"])) == 1500
assert len(source.draw(["id"], 200_000)["id"]) == 200_000
source.close()
"""


def test_a_forked_child_has_connections_of_its_own() -> None:
    folder = str(Path(module.__file__).parents[2])
    arguments = [sys.executable, "-c", FORK, postgres().url, numbered(1500)]
    finished = subprocess.run(
        arguments, env={**os.environ, "PYTHONPATH": folder}, timeout=60, capture_output=True
    )
    assert finished.returncode == 0, finished.stderr.decode()
