"""An engine's spellings: each is needed, none knows the kinds of columns, and questions use the same ones."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from data.test_encode import check, objects
from holdfast.data import encode
from holdfast.data.dialect import Dialect, Key
from holdfast.data.duckdb_dialect import DUCKDB, DuckDB
from holdfast.data.encode import encode_sql
from holdfast.data.postgres_dialect import POSTGRES
from holdfast.data.spark_dialect import SPARK
from holdfast.query.parse import parse_predicate
from holdfast.query.schema import Boolean, Category, ColumnType, Date, Integer, Real, Schema
from holdfast.query.statistic import Statistic, workload

SPELLINGS = sorted(Path(encode.__file__).parent.glob("*_dialect.py"))


def imports(path: Path) -> set[str]:
    """The modules that a file imports, and `module.name` for each name it takes from one."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def knows_kinds(path: Path) -> bool:
    """Whether a file can tell an Integer from a Date."""
    return bool(imports(path) & {"holdfast.query.schema", "holdfast.query.column", "holdfast.data.encode"})


def knows_an_engine(path: Path) -> bool:
    """Whether a file can tell one engine from another."""
    return any("_dialect" in name or name.split(".")[0] == "duckdb" for name in imports(path))


def test_the_encoder_knows_no_engine_and_no_dialect_a_kind_of_column() -> None:
    assert [path.stem for path in SPELLINGS] == ["duckdb_dialect", "postgres_dialect", "spark_dialect"]
    assert knows_kinds(Path(encode.__file__))
    assert not knows_an_engine(Path(encode.__file__))
    assert not any(map(knows_kinds, SPELLINGS))


@pytest.mark.parametrize(
    "line",
    [
        "from holdfast.query.schema import Date",
        "from holdfast.query import column",
        "import holdfast.data.encode",
    ],
)
def test_a_dialect_with_a_reader_of_its_own_would_be_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.py").write_text(f"def f():\n    {line}\n")
    assert knows_kinds(tmp_path / "bad.py")


@pytest.mark.parametrize(
    "line", ["from holdfast.data.duckdb_dialect import DUCKDB", "from holdfast.data import spark_dialect"]
)
def test_an_encoder_with_an_exception_for_one_engine_would_be_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.py").write_text(line)
    assert knows_an_engine(tmp_path / "bad.py")


def test_a_dialect_that_leaves_a_spelling_open_cannot_be_made() -> None:
    class Half(Dialect):
        def matches(self, text: str, pattern: str) -> str:
            return f"{text} ~ '{pattern}'"

    with pytest.raises(TypeError, match="rounded, texts, utc_day"):
        Half(families={}, code_types={}, text_type="TEXT", wide_type="NUMERIC")  # type: ignore[abstract]


QUESTION = """SELECT "a ""b`", 'DOUBLE "c" 1e5' FROM t WHERE CAST(x1e5 AS DOUBLE) < 1.5e0 * 3e-324"""


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (
            POSTGRES,
            """SELECT "a ""b`", 'DOUBLE "c" 1e5' FROM t WHERE CAST(x1e5 AS DOUBLE PRECISION) < """
            "CAST('1.5' AS DOUBLE PRECISION) * CAST('5e-324' AS DOUBLE PRECISION)",
        ),
        (
            SPARK,
            """SELECT `a "b```, 'DOUBLE "c" 1e5' FROM t WHERE CAST(x1e5 AS DOUBLE) < """
            "CAST('1.5' AS DOUBLE) * CAST('5e-324' AS DOUBLE)",
        ),
    ],
)
def test_questions_are_respelled_by_the_word(dialect: Dialect, expected: str) -> None:
    assert dialect.question(QUESTION) == expected


def test_a_question_and_its_respelling_have_one_answer() -> None:
    schema = Schema.from_mapping({'a "b"': Integer(0, 9), "y": Real(0, 1)})
    where = parse_predicate('"a ""b""" * 0.1 > y AND y < 0.30000000000000004', schema)
    (count,) = workload(Statistic("count", where), schema, 8).measurements
    codes = '(SELECT i AS "a ""b""", i / 10.0e0 AS y FROM RANGE(8) AS r(i)) AS t'
    asked, respelled = count.sql(codes), DUCKDB.question(count.sql(codes))
    assert asked != respelled
    assert duckdb.sql(asked).fetchall() == duckdb.sql(respelled).fetchall() != []


# Each spelling of DuckDB's in turn, broken.


class Untrimmed(DuckDB):
    def texts(self, x: str) -> tuple[str, ...]:
        return super().texts(x)[:1]


class PartMatch(DuckDB):
    def matches(self, text: str, pattern: str) -> str:
        return f"REGEXP_MATCHES({text}, '{pattern}', 's')"


class NaNIsKnown(DuckDB):
    def known(self, x: str, family: str) -> str:
        return super().known(x, "whole")


class Truncated(DuckDB):
    def rounded(self, decimal: str, lo: int, hi: int) -> str:
        return f"CAST(FLOOR({decimal}) AS HUGEINT)"


class RoundedTwice(DuckDB):
    def nearest(self, decimal: str, lo: float, hi: float) -> str:
        return f"CAST({decimal} AS DOUBLE)"


class LocalDay(DuckDB):
    def utc_day(self, instant: str) -> str:
        return f"CAST({instant} AS DATE)"


class DaysFromOne(DuckDB):
    def days(self, day: str, first: str) -> str:
        return f"{super().days(day, first)} + 1"


class FoldedLabels(DuckDB):
    def lookup(self, key: str, codes: Mapping[Key, int]) -> str:
        return super().lookup(f"LOWER({key})", codes)


class NarrowCodes(DuckDB):
    def code_type(self, largest: int) -> str:
        return super().code_type(largest - 1)


DAYS = Date("2020-01-01", "2020-12-31")
TWINS: dict[type[DuckDB], tuple[ColumnType, str, list[Any], Any]] = {
    Untrimmed: (Integer(0, 9), "VARCHAR", ["1", " 2\t"], None),
    PartMatch: (Integer(0, 9), "VARCHAR", ["1", "x1y"], None),
    NaNIsKnown: (Boolean(), "DOUBLE", [1.0, np.nan], None),
    Truncated: (Integer(0, 9), "DECIMAL(3,1)", ["1.5", "1.4"], np.array([1.5, 1.4])),
    RoundedTwice: (Real(0, 1e38), "HUGEINT", [83076749736557251279859978122297345], None),
    LocalDay: (
        DAYS,
        "TIMESTAMP WITH TIME ZONE",
        ["2020-05-05 23:00:00+00"],
        np.array(["2020-05-05T23"], dtype="datetime64[h]"),
    ),
    DaysFromOne: (DAYS, "DATE", ["2020-01-03"], None),
    FoldedLabels: (Category("a", "A"), "VARCHAR", ["a", "A"], None),
    NarrowCodes: (Integer(0, 255), "INTEGER", [255, None], None),
}


def made(dialect: type[DuckDB]) -> DuckDB:
    return dialect(
        **{name: getattr(DUCKDB, name) for name in ("families", "code_types", "text_type", "wide_type")}
    )


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_spelling_is_caught(twin: type[DuckDB]) -> None:
    connection = duckdb.connect()
    connection.execute("SET GLOBAL TimeZone = 'Pacific/Auckland'")
    column, kind, values, array = TWINS[twin]

    def agrees(dialect: Dialect) -> None:
        expected = objects(values) if array is None else array
        sql = encode_sql(dialect, column, 'the "value"', kind)
        check(connection, column, values, kind, expected, sql=sql)

    agrees(DUCKDB)
    with pytest.raises((AssertionError, duckdb.Error)):
        agrees(made(twin))
