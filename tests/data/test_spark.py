"""Spark as a source: the same codes, exact draws, and tasks that are lost."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from oracles.statistics import FALSE_ALARM, uniform
from pages import run
from services import postgres, spark

from data.hospital import SECRET, hospital
from data.tables import from_spark, whole
from data.test_encode import DECLARED, objects
from data.test_laws import (  # noqa: F401  (Spark keeps the laws of every source, in this file's session)
    COLUMNS,
    LAWS,
    check_closing,
    check_draw,
    check_gather,
    check_scan,
    small_blocks,
    test_bad_requests,
    test_ids_are_clipped_and_may_repeat_or_be_none,
    test_scans_may_be_left_and_interleaved,
    test_the_fingerprint_is_random,
    test_writing_into_a_block_does_not_reach_the_rows,
)
from data.test_lookup import COLUMNS as LOOKING_UP
from data.test_lookup import check_door
from data.test_unit_build import declared, divided, held
from holdfast.data import spark as module
from holdfast.data.encode import encode_sql
from holdfast.data.pool import pool_rows
from holdfast.data.source import Block, Source
from holdfast.data.spark import SparkSource, is_spark
from holdfast.data.spark_dialect import SPARK
from holdfast.data.unit_open import open_units
from holdfast.errors import DataError, InputError, SchemaError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.subset import with_replacement
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema
from holdfast.query.statistic import Statistic, workload

NUMBERED = Schema(id=Integer(0, 10**7), half=Real(0, 10**7))


def numbered(rows: int, partitions: int = 3) -> Any:
    return spark().range(0, rows, 1, partitions).selectExpr("id", "id / 2 AS half")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """What the laws are asked about."""
    opened = from_spark(COLUMNS, tmp_path_factory.mktemp("spark"))
    assert isinstance(opened, SparkSource)
    yield opened
    opened.close()


def test_closing_twice_is_allowed_and_reading_afterwards_is_not() -> None:
    check_closing(SparkSource(numbered(40).selectExpr("id AS age"), Schema(age=Integer(0, 120))))


def test_every_law_in_eight_threads(source: Source) -> None:
    laws = [*LAWS, check_scan, check_gather]
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(law, source) for law in laws]
        assert [answer.result() for answer in asked] == [None] * 8


# Values into codes

TEXTS = [
    *(
        "",
        " ",
        ".",
        "+",
        "-",
        "1.",
        ".5",
        "+5",
        "-7",
        "1e",
        "e5",
        "0x10",
        "1_000",
        "1d",
        "1f",
        "5L",
        "nan",
        "NaN",
        "٣",
    ),
    *(
        "1e999999999",
        "-1e999999999",
        "0e999999999",
        "1e-999999999",
        "-1e-400",
        "5e-324",
        "2.4703282292062328e-324",
    ),
    *(
        "9" * 38,
        "9" * 39,
        "9" * 40,
        "9" * 41,
        "-" + "9" * 40,
        "0" * 39 + "5",
        "0" * 400 + "5",
        "9007199254740993",
    ),
    *(
        "0.49999999999999999999",
        "119.5",
        "-0.5",
        "-7.5",
        " 12\t",
        "12\x0b",
        "\u00a012",
        "12\n",
        "12\n\n",
        "a\n12",
    ),
    *(
        "inf",
        "-INF",
        "+Infinity",
        "infinity ",
        "-inf ",
        "in",
        "1e20",
        "1e+20",
        "18446744073709551615",
        "-0.0",
        "0.1",
    ),
    *(
        "2021-02-29",
        "2020-02-29",
        "1900-02-29",
        "0000-01-01",
        "2020-13-01",
        "2020-1-1",
        "2020-05-05T25:99",
        "9999-12-31",
    ),
    *(
        "2020-05-05 08:30",
        "2020-05-05T08:30:59.1234567Z",
        "2020-05-05 23:30-02:30",
        "2020-05-05 00:30:00+0100",
        "2020-05-05 12:00:00+23",
        "2020-05-05 12:00:00.",
        "08:30",
        "23:59:59.999999999",
        "24:00",
        "8:30",
        "2020-05-05 \n x",
        "12020-05-05",
        "-2020-05-05",
        "2020-05-05Z",
        "2020-04-31",
        "0001-01-01",
        "1969-12-31",
    ),
    *(
        "no",
        "yes",
        "it's",
        "☃",
        " x",
        "true",
        "FALSE",
        " t ",
        "N",
        "tRuE",
        "K",
        "İ",
        "l0",
        "l7",
        "l299",
        "l300",
        "L7",
    ),
    *("\\", "\\n", "'", '"', "%", "_", "0.5", "12", "-3", "1e-05", "1e+300"),
]
NUMBERS = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    119.5,
    120.5,
    0.49999999999999994,
    -7.5,
    1e20,
    1e-5,
    1e300,
    5e-324,
    2.0**53 + 4,
]
FLOATS = [
    *NUMBERS,
    math.nan,
    math.inf,
    -math.inf,
    2.0**62,
    2.0**63,
    -(2.0**64),
    18446744073709551615.0,
    -1e300,
    None,
]
WHOLE = [
    0,
    1,
    -1,
    12,
    -3,
    119,
    120,
    121,
    2**53 + 1,
    2**53 + 5,
    2**60 + 1,
    -(2**61) - 1,
    2**63 - 1,
    -(2**63),
    None,
]
WIDE = [
    *("0.5", "-0.5", "119.5", "-6.5", "-7.5", "0.1", "1000000.00000000000000001", "-1.50000000000000001"),
    None,
]
TINY = [*("0." + "4" + "9" * 36, "0.5", "-0." + "5" + "0" * 35 + "1", "0." + "0" * 36 + "1", "-0.5"), None]
BIG = [*("9" * 38, "-" + "9" * 38, "9007199254740993", "120", "0"), None]
DAYS = [
    datetime.date(1, 1, 1),
    datetime.date(9999, 12, 31),
    datetime.date(2020, 2, 29),
    datetime.date(1969, 12, 31),
    None,
]
MOMENTS = [datetime.datetime(2020, 3, 1, 23, 59, 59, 999999), datetime.datetime(1969, 12, 31, 0, 0, 1), None]
UTC = datetime.UTC
CASES: dict[str, tuple[pa.DataType, list[Any], int]] = {
    "boolean": (pa.bool_(), [True, False, None], 12),
    "tinyint": (pa.int8(), [v for v in WHOLE if v is None or abs(v) < 128], 12),
    "bigint": (pa.int64(), WHOLE, 12),
    "float": (
        pa.float32(),
        [None if v is None else float(np.float32(v)) for v in FLOATS if v != 1e300 and v != -1e300],
        12,
    ),
    "double": (pa.float64(), FLOATS, 12),
    "decimal(38,17)": (pa.decimal128(38, 17), [v and Decimal(v) for v in WIDE], 8),
    "decimal(38,38)": (pa.decimal128(38, 38), [v and Decimal(v) for v in TINY], 8),
    "decimal(38,0)": (pa.decimal128(38, 0), [v and Decimal(v) for v in BIG], 8),
    "decimal(18,2)": (
        pa.decimal128(18, 2),
        [Decimal("9007199254740993.01"), Decimal("-0.50"), Decimal("119.50")],
        8,
    ),
    "string": (pa.string(), [*TEXTS, None], 18),
    "date": (pa.date32(), DAYS, 4),
    "timestamp_ntz": (pa.timestamp("us"), MOMENTS, 6),
    "timestamp": (pa.timestamp("us", "UTC"), [v and v.replace(tzinfo=UTC) for v in MOMENTS], 6),
    "void": (pa.null(), [None, None], 18),
}


KINDS = list(CASES)


@pytest.fixture(params=["true", "false"])
def ansi(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark in its ANSI mode, and not."""
    spark().conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark().conf.set("spark.sql.ansi.enabled", "true")


def together(kinds: list[str]) -> Any:
    """One frame with a column `a.<kind>` of each kind, the shorter ones filled up with NULL."""
    rows = max(len(CASES[kind][1]) for kind in kinds)
    columns = {f"a.`{kind}": pa.array(values_of(kind, rows), CASES[kind][0]) for kind in kinds}
    if "timestamp_ntz" not in kinds:
        return spark().createDataFrame(pa.table({"place": range(rows), **columns}))
    # By way of text, which follows no time zone.
    columns["a.`timestamp_ntz"] = pa.array([v and str(v) for v in values_of("timestamp_ntz", rows)])
    frame = spark().createDataFrame(pa.table({"place": range(rows), **columns}))
    return frame.withColumn("a.`timestamp_ntz", frame["`a.``timestamp_ntz`"].cast("timestamp_ntz"))


def values_of(kind: str, rows: int) -> list[Any]:
    """The values of a kind, and NULL until there are so many."""
    values = CASES[kind][1]
    return [*values, *[None] * (rows - len(values))]


# Spark compiles at most a hundred columns as one piece, and each job costs more than its rows.
@pytest.mark.parametrize("kinds", [KINDS[:5], KINDS[5:]], ids=["numbers", "others"])
@pytest.mark.usefixtures("ansi")
def test_codes_agree(kinds: list[str]) -> None:
    frame = together(kinds)
    assert frame.dtypes == [("place", "bigint"), *((f"a.`{kind}", kind) for kind in kinds)]
    compared, chosen = [], []
    for kind, column in itertools.product(kinds, DECLARED):
        with contextlib.suppress(DataError):
            chosen.append(encode_sql(SPARK, column, f"a.`{kind}", kind))
            compared.append((kind, column))
    assert Counter(kind for kind, _ in compared) == {kind: CASES[kind][2] for kind in kinds}
    found = frame.selectExpr("place", *(f"{text} AS c{i}" for i, text in enumerate(chosen))).toArrow()
    order = np.argsort(found.column("place").to_numpy())
    for i, (kind, column) in enumerate(compared):
        expected = column.encode_array(objects(values_of(kind, len(order))))
        codes = found.column(f"c{i}").to_numpy().astype(column.dtype)[order]
        np.testing.assert_array_equal(codes, expected, err_msg=f"{kind} as {column!r}")
        if isinstance(column, Real):
            np.testing.assert_array_equal(np.signbit(codes), np.signbit(expected) & ~np.isnan(expected))


def test_impossible_types() -> None:
    frame = spark().sql("SELECT ARRAY(1) AS a, X'00' AS b, MAP(1, 2) AS c, DATE '2020-01-01' AS d")
    for name, column in [
        ("a", Integer(0, 1)),
        ("b", Boolean()),
        ("c", Category("x")),
        ("d", Integer(0, 1)),
        ("d", Real(0, 1)),
    ]:
        with pytest.raises(DataError, match="cannot be read as"):
            SparkSource(frame, Schema.from_mapping({name: column}))


# Draws


@pytest.mark.parametrize(("rows", "partitions"), [(1, 1), (3, 7), (5000, 3)])
def test_a_pass_keeps_order_and_repeats(rows: int, partitions: int) -> None:
    source = SparkSource(numbered(rows, partitions), NUMBERED)
    assert source.rows == rows
    np.testing.assert_array_equal(whole(source)["id"], np.arange(rows))
    for count in (0, 1, 700) if rows > 3 else (700,):
        drawn = source.draw(["half", "id"], count, ReplayedBits(3))
        expected = with_replacement(rows, count, ReplayedBits(3))
        np.testing.assert_array_equal(drawn["id"], expected)
        np.testing.assert_array_equal(drawn["half"], expected / 2)
    source.close()


class EqualShares(SparkSource):
    """Every partition gives the same number of rows, whatever it holds."""

    def gather(self, columns: Any, ids: Any) -> Block:
        parts = len(self._numbers)
        part = np.arange(len(ids)) % parts
        sizes = np.diff(self._starts)
        return super().gather(columns, self._starts[part] + ids % sizes[part])


def test_draws_are_uniform() -> None:
    left, right = numbered(100, 1), spark().range(100, 1001, 1, 2).selectExpr("id", "id / 2 AS half")

    def p_value(kind: type[SparkSource]) -> float:
        source = kind(left.union(right), NUMBERED)
        drawn = source.draw(["id"], 60_000)["id"]
        source.close()
        return uniform(np.bincount(drawn, minlength=1001))

    assert p_value(SparkSource) > FALSE_ALARM
    assert p_value(EqualShares) < FALSE_ALARM


def test_a_large_frame_and_sixteen_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POOL_ROWS", 2**14)
    rows = 200_000
    source = SparkSource(numbered(rows, 4), NUMBERED)
    statistic = Statistic("count", parse_predicate("id >= 50000", NUMBERED))
    (total,) = workload(statistic, NUMBERED, rows).measurements

    def work(turn: int) -> NDArray[Any]:
        if turn == 7:
            assert source.totals(total).tolist() == [150_000]
            return np.empty(0, dtype=np.int64)
        drawn = source.draw(["id", "half"], 2_500)
        np.testing.assert_array_equal(drawn["id"], drawn["half"] * 2)
        return drawn["id"]

    with ThreadPoolExecutor(16) as threads:
        drawn = np.concatenate(list(threads.map(work, range(16))))
    source.close()
    assert len(drawn) == 15 * 2_500
    assert uniform(np.bincount(drawn // 2_000, minlength=100)) > FALSE_ALARM


# Totals


def test_doubles_beside_whole_numbers() -> None:
    schema = Schema.from_mapping({"k `x`": Integer(0, 10), "y.z": Real(0, 1e12)})
    frame = spark().sql(
        "SELECT id % 11 AS `k ``x```, CASE WHEN id = 7 THEN 5e-324D ELSE id / 10D END AS `y.z` FROM RANGE(101)"
    )
    source = SparkSource(frame, schema)
    block = whole(source)
    for text in ('"k `x`" * 0.1 <= "y.z"', '"k `x`" * 0.1 = 0.30000000000000004', '"y.z" * "y.z" = 0'):
        mean = Statistic("mean", parse_predicate(text, schema), parse_expression('"y.z"', schema))
        for measurement in workload(mean, schema, 101).measurements:  # a sum and a count
            assert source.totals(measurement).tolist() == measurement.totals(block).tolist()
    source.close()


# What goes wrong


def test_bad_frames() -> None:
    with pytest.raises(DataError, match="empty"):
        SparkSource(numbered(5).where("id < 0"), NUMBERED)
    with pytest.raises(DataError, match="expected a column 'z'"):
        SparkSource(numbered(5), Schema(z=Integer(0, 1)))
    with pytest.raises(DataError, match="differ by case"):
        SparkSource(numbered(5).selectExpr("id", "half AS ID"), Schema(id=Integer(0, 1)))
    with pytest.raises(SchemaError, match="case"):
        SparkSource(numbered(5), Schema(id=Integer(0, 1), ID=Integer(0, 1)))
    source = SparkSource(numbered(5), NUMBERED)
    for count in (-1, 1.5, True, None):
        with pytest.raises(InputError):
            source.draw(["id"], count)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        source.draw(["nothing"], 1)
    source.close()
    assert is_spark(numbered(1))
    assert not any(map(is_spark, (pa.table({"x": [1]}), {}, None, "x", spark())))


def test_failures_are_told_without_values() -> None:
    spark().conf.set("spark.sql.ansi.enabled", "true")
    frame = spark().sql("SELECT CAST(CONCAT('secret ', id) AS INT) AS id, 0D AS half FROM RANGE(5)")
    with pytest.raises(DataError, match="got a failure") as caught:
        SparkSource(frame, NUMBERED)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def moody(rows: int, mood: Path) -> Any:
    """A frame of one task, which does what a file says: kill its own process, forget rows, or be well."""
    path = str(mood)

    def read(batches: Any) -> Any:
        import os

        with open(path) as file:
            now = file.read()
        if now == "die":
            os._exit(1)
        for batch in batches:
            yield batch.slice(rows // 2) if now == "forget" else batch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PySpark's opinion of the newest pandas
        return numbered(rows, 1).mapInArrow(read, "id bigint, half double")


def test_lost_tasks_and_rows_are_told_and_later_ones_succeed(tmp_path: Path) -> None:
    mood = tmp_path / "mood"
    mood.write_text("well")
    source = SparkSource(moody(5000, mood), NUMBERED)
    pool = pool_rows(NUMBERED, 5000, module.POOL_ROWS)
    assert len(source.draw(["id"], 10)["id"]) == 10
    source._codes.unpersist(blocking=True)  # as if the machines that kept the rows were lost
    mood.write_text("die")
    assert len(source.draw(["id"], pool - 10)["id"]) == pool - 10  # drawn before; nobody has seen them
    for now, told in (("die", "expected Spark to read the rows"), ("forget", "got another number")):
        mood.write_text(now)
        for ask in (lambda: source.draw(["id"], 10), lambda: whole(source)):
            with pytest.raises(DataError, match=told):
                ask()
    mood.write_text("well")
    assert len(source.draw(["id"], 10)["id"]) == 10
    np.testing.assert_array_equal(whole(source)["id"], np.arange(5000))
    source.close()


def test_a_forked_child_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SparkSource(numbered(10), NUMBERED)
    monkeypatch.setattr(source, "_process", source._process + 1)
    with pytest.raises(DataError, match="forked child"):
        source.gather(["id"], np.array([1]))
    monkeypatch.undo()
    source.close()
    with pytest.raises(DataError, match="closed"):
        source.gather(["id"], np.array([1]))


def test_days_do_not_follow_the_time_zone() -> None:
    assert spark().conf.get("spark.sql.session.timeZone") == "America/New_York"
    frame = spark().createDataFrame(
        pa.table({"d": pa.array([datetime.datetime(2020, 1, 2, 0, 30, tzinfo=UTC)])})
    )
    source = SparkSource(frame, Schema(d=Date("2020-01-01", "2020-01-09")))
    assert whole(source)["d"].tolist() == [1]
    source.close()


def test_the_page_on_sources() -> None:
    postgres().execute(
        "CREATE TABLE people AS SELECT i % 100 AS age, CASE WHEN i % 3 = 0 THEN 'yes' ELSE 'no' END AS smoker "
        "FROM generate_series(1, 5000) AS i"
    )
    spark().sql(
        "SELECT id % 100 AS age, IF(id % 3 = 0, 'yes', 'no') AS smoker FROM RANGE(5000)"
    ).createOrReplaceTempView("visits")
    names = run("docs/sources.md", {"url": postgres().url, "spark": spark()})
    answer = names["session"].fraction("age > 40 AND smoker = 'yes'", within=0.2)
    assert answer.low <= 0.59 / 3 <= answer.high


def test_units_of_frames_are_the_same_as_those_of_lists() -> None:
    """The law suite of tests/data/test_unit_build.py, through Spark's door."""
    frames = {name: spark().createDataFrame(pa.table(table)) for name, table in hospital().items()}
    opened = open_units(declared(frames), SECRET)
    assert held(opened) == held(open_units(declared(hospital()), SECRET))
    assert divided(frames) == divided(hospital())


def test_public_tables_stand_beside_the_rows_of_a_cluster(tmp_path: Path) -> None:
    check_door(from_spark(LOOKING_UP, tmp_path))


def test_units_of_a_frame_are_set_aside_on_the_cluster() -> None:
    """Both parts together are all rows, and share none, however they are read."""
    import holdfast as hf
    from holdfast.ledger import MemoryLedger

    schema = hf.Schema(id=hf.Integer(0, 599))
    frame = spark().createDataFrame(pa.table({"id": np.arange(600)}))
    table = hf.open(frame, schema, ledger=MemoryLedger(), set_aside=0.25)
    parts = [set(whole(part._source)["id"].tolist()) for part in (table, table.aside)]
    assert [len(part) for part in parts] == [450, 150] and parts[0] | parts[1] == set(range(600))
    assert set(table.aside._source.draw(["id"], 300)["id"].tolist()) <= parts[1]
    again = hf.open(frame, schema, ledger=table.ledger)
    assert set(whole(again.aside._source)["id"].tolist()) == parts[1], "the same units at another opening"
    answer = table.session(rho=1e6, target="table").count("id < 300", rho=1e4)
    assert round(answer.value) == sum(number < 300 for number in parts[0])
