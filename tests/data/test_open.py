"""Files become sources and stores; bad data is refused in plain words, and never in its own."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.tables import SCHEMA as PEOPLE
from data.tables import arrow, generated, whole, write_csv
from holdfast.data import open as door
from holdfast.data.duckdb import DuckSource
from holdfast.data.engine import Engine
from holdfast.data.files import csv_relation
from holdfast.data.frame import FrameSource
from holdfast.data.open import ingest, open_source
from holdfast.data.store import StoreSource
from holdfast.errors import DataError, HoldfastError, InputError, SchemaError, StoreError
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema

CANARY = "c4n4ry-8f1d"
SCHEMA = Schema(age=Integer(0, 120), kind=Category("no", "yes"))
CSV = f"age,kind\n41,yes\n17,no\n{CANARY},{CANARY}\n"


def chain(error: BaseException | None) -> str:
    """Everything a traceback or a logger could print."""
    return "" if error is None else f"{error!r} {error} {chain(error.__cause__)} {chain(error.__context__)}"


def refused(data: Any, schema: Any = SCHEMA, **options: Any) -> str:
    with pytest.raises(HoldfastError) as caught:
        list(open_source(data, schema, **options).scan(["age"]))
    assert CANARY not in chain(caught.value)
    return str(caught.value)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


BAD_CSV: dict[str, str | bytes] = {
    "a line too short": CSV + CANARY,
    "a line too long": CSV + f"{CANARY},yes,{CANARY}\n",
    "an open quote": CSV + f'1,"{CANARY}',
    "text after a quote": CSV + f'1,"{CANARY}"{CANARY}\n',
    "not UTF-8": CSV.encode() + CANARY.encode() + b",\xff\n",
    "header not UTF-8": b"\xff" + CSV.encode(),
    "nothing": "",
    "only a newline": "\n",
    "header only": "age,kind\n",
    "UTF-16": CSV.encode("utf-16"),
    "a line longer than the engine's buffer": CSV + f'1,"{CANARY * 300_000}"\n',
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_bad_csv(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "people.csv", BAD_CSV[name])
    message = refused(path)
    assert message.startswith("expected ")
    with pytest.raises(DataError) as caught:
        ingest(path, tmp_path / "people.hf", SCHEMA, progress=lambda done, total: None)
    assert CANARY not in chain(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


def test_the_canary_test_can_fail(tmp_path: Path) -> None:
    """DuckDB's own message quotes the line."""
    path = write(tmp_path / "people.csv", BAD_CSV["an open quote"])
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect().execute(f"SELECT * FROM {csv_relation(path, ['age', 'kind'])}").fetchall()
    assert CANARY in chain(caught.value)


def test_the_line_of_a_bad_csv_is_named(tmp_path: Path) -> None:
    assert "near line 5" in refused(write(tmp_path / "people.csv", BAD_CSV["a line too short"]))


def test_a_value_that_looks_like_a_line_number_is_not_shown(tmp_path: Path) -> None:
    text = 'age,kind\n1,"x: CSV Error on Line: 12345\n'
    assert "12345" not in refused(write(tmp_path / "people.csv", text))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", CSV),
        ("crlf.csv", CSV.replace("\n", "\r\n")),
        ("mark.csv", "\ufeff" + CSV),
        ("tabs.tsv", CSV.replace(",", "\t")),
        ("quoted.csv", f'"kind","age","a,""b\nc"\nyes,41,\nno,"17",\n{CANARY},{CANARY},x\n'),
        ("packed.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("without an end.csv", CSV.rstrip("\n")),
        ("it's [odd]*.csv", CSV),
        ("spaces.csv", f"age,kind\n 41 ,yes\n17\t,no\n{CANARY},\n"),
    ],
)
def test_good_csv(tmp_path: Path, name: str, content: str | bytes) -> None:
    source = open_source(write(tmp_path / name, content), SCHEMA)
    assert whole(source)["age"].tolist() == [41, 17, 121]
    assert whole(source)["kind"].tolist() == [1, 0, 2]


def test_a_packed_file_that_ends_in_the_middle(tmp_path: Path) -> None:
    packed = gzip.compress((CSV + "5,no\n" * 100_000).encode(), mtime=0)
    refused(write(tmp_path / "people.csv.gz", packed[: len(packed) // 2]))
    refused(write(tmp_path / "people.csv.gz", packed[:5]))


def test_header_names(tmp_path: Path) -> None:
    assert "got data with 'age', 'sort'" in refused(write(tmp_path / "a.csv", "age,sort\n1,no\n"))
    assert "2 of that name" in refused(write(tmp_path / "b.csv", "age,kind,age\n1,no,2\n"))
    assert "expected a column 'age'" in refused(write(tmp_path / "c.csv", "AGE,kind\n1,no\n"))


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [41, 17, 300], "kind": ["yes", CANARY, None]}), path)
    return path


def test_truncated_parquet(parquet: Path) -> None:
    content = parquet.read_bytes()
    for length in (0, 3, len(content) // 2, len(content) - 1):
        assert "ends in the middle" in refused(write(parquet, content[:length]))
    assert "ends in the middle" in refused(write(parquet, b"age,kind\n1,no\n"))


def test_damaged_parquet_pages(parquet: Path) -> None:
    """The footer is whole, so only reading finds out."""
    content = bytearray(parquet.read_bytes())
    content[4:40] = b"\xff" * 36
    write(parquet, bytes(content))
    for in_memory in (True, False):
        assert refused(parquet, in_memory=in_memory)


def test_parquet_columns(parquet: Path, tmp_path: Path) -> None:
    assert "got data with 'age', 'kind'" in refused(parquet, Schema(age=Integer(0, 1), weight=Real(0, 1)))
    nested = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"age": [[1], [2]], "kind": ["no", "yes"]}), nested)
    assert "cannot be read as integer" in refused(nested)
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"age": pa.array([], pa.int64()), "kind": pa.array([], pa.string())}), empty)
    assert "empty table" in refused(empty)


def test_parquet_folders(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    for year, ages in (("2019", [1, 2]), ("2020", [3])):
        (folder / f"year={year}").mkdir(parents=True)
        kinds = ["no"] * len(ages)
        pq.write_table(pa.table({"age": ages, "kind": kinds}), folder / f"year={year}" / "a[1]*.parquet")
    schema = Schema(age=Integer(0, 120), kind=Category("no", "yes"), year=Integer(2000, 2100))
    for where in (folder, f"{folder}/**/*.parquet", str(folder) + "/"):
        for in_memory in (True, False):
            found = whole(open_source(where, schema, in_memory=in_memory))
            assert found["age"].tolist() == [1, 2, 3]
            assert found["year"].tolist() == [19, 19, 20]
    pq.write_table(pa.table({"age": ["x"], "kind": ["no"]}), folder / "year=2020" / "b.parquet")
    assert "equal types" in refused(folder, schema)
    pq.write_table(pa.table({"age": [1]}), folder / "year=2020" / "b.parquet")
    assert "expected a column 'kind'" in refused(folder, schema)


def test_parquet_that_changes_is_noticed(parquet: Path) -> None:
    source = open_source(parquet, SCHEMA, in_memory=False)
    assert isinstance(source, DuckSource)
    pq.write_table(pa.table({"age": [1], "kind": ["no"]}), parquet)
    with pytest.raises(DataError, match="changed"):
        list(source.scan(["age"]))
    parquet.unlink()
    with pytest.raises(DataError, match="changed"):
        source.gather(["age"], np.array([0]))


def test_small_files_are_read_into_memory_and_large_ones_stay(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(open_source(parquet, SCHEMA), FrameSource)
    monkeypatch.setattr(door, "MEMORY_BYTES", 5)
    assert isinstance(open_source(parquet, SCHEMA), DuckSource)
    assert isinstance(open_source(parquet, SCHEMA, in_memory=True), FrameSource)


@pytest.mark.parametrize(
    "name",
    ["people.xlsx", "people", "people.csv.zip", "people.parquet", "people.csv", "people.hf", "*.parquet", ""],
)
def test_missing_and_unknown_files(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="expected"):
        open_source(name, SCHEMA)
    if name in ("people.xlsx", "people", "people.csv.zip"):
        write(tmp_path / name, "x")
        with pytest.raises(DataError, match="expected a file ending in"):
            open_source(name, SCHEMA)


def test_an_empty_folder(tmp_path: Path) -> None:
    assert "folder of Parquet files" in refused(tmp_path)


@pytest.mark.parametrize("data", [None, 5, [1, 2], b"x", object(), pl.LazyFrame({"age": [1]}), iter([1])])
def test_unknown_kinds_of_data(data: Any) -> None:
    with pytest.raises(InputError, match="expected a mapping of arrays"):
        open_source(data, SCHEMA)


@pytest.mark.parametrize("schema", [{"age": Integer(0, 1)}, "schema.toml", 5])
def test_bad_schemas(schema: Any) -> None:
    with pytest.raises(InputError, match="expected a Schema"):
        open_source({"age": [1]}, schema)


def test_a_schema_is_needed(tmp_path: Path) -> None:
    for data in ({"age": [1]}, pd.DataFrame({"age": [1]}), pl.DataFrame({"age": [1]}), tmp_path / "x.csv"):
        with pytest.raises(InputError, match="only a saved store"):
            open_source(data)


@pytest.mark.parametrize("option", [1, "yes", 0.0])
def test_bad_options(option: Any) -> None:
    with pytest.raises(InputError, match="in_memory"):
        open_source({"age": [1]}, SCHEMA, in_memory=option)
    with pytest.raises(InputError, match="path"):
        open_source("a\0b", SCHEMA)


EMPTY: list[Any] = [
    {"age": [], "kind": []},
    {"age": np.array([], dtype=np.int64), "kind": np.array([], dtype="U3")},
    pd.DataFrame({"age": [], "kind": []}),
    pl.DataFrame({"age": [], "kind": []}),
    pa.table({"age": pa.array([], pa.int64()), "kind": pa.array([], pa.string())}),
]


@pytest.mark.parametrize("data", EMPTY, ids=lambda d: type(d).__module__)
def test_empty_tables(data: Any) -> None:
    assert "empty table" in refused(data)


def test_only_nulls() -> None:
    nothing = pl.DataFrame({"age": [None] * 2, "kind": pl.Series([None] * 2, dtype=pl.String)})
    for data in ({"age": [None, None], "kind": [None, None]}, nothing):
        found = whole(open_source(data, SCHEMA))
        assert (found["age"].tolist(), found["kind"].tolist()) == ([121, 121], [2, 2])


@pytest.mark.parametrize("in_memory", [True, False])
def test_relations_are_snapshots(in_memory: bool) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 41 AS age, 'yes' AS kind")
    source = open_source(connection.table("people"), SCHEMA, in_memory=in_memory)
    connection.execute("INSERT INTO people VALUES (1, 'no')")
    connection.execute("UPDATE people SET age = 5")
    assert whole(source)["age"].tolist() == [41]
    assert source.rows == 1


def test_a_relation_that_fails_does_not_quote_its_rows() -> None:
    connection = duckdb.connect()
    relation = connection.sql(
        f"SELECT CAST(x AS INTEGER) AS age, 'no' AS kind FROM (VALUES ('1'), ('{CANARY}')) t(x)"
    )
    refused(relation)
    connection.close()
    refused(relation)


def test_wide_types_of_a_relation() -> None:
    connection = duckdb.connect()
    relation = connection.sql(
        f"SELECT {2**100}::HUGEINT AS age, 'yes'::ENUM('no', 'yes') AS kind, 1.5::DECIMAL(9, 2) AS price, "
        "TIMESTAMPTZ '2020-01-02 23:30:00+00' AS day, NULL AS flag"
    )
    schema = Schema(
        age=Integer(0, 120),
        kind=Category("no", "yes"),
        price=Real(0, 2),
        day=Date("2020-01-01", "2020-12-31"),
        flag=Boolean(),
    )
    found = {name: codes.tolist() for name, codes in whole(open_source(relation, schema)).items()}
    assert found == {"age": [120], "kind": [1], "price": [1.5], "day": [1], "flag": [2]}


def test_case_matters_and_cannot_be_the_only_difference() -> None:
    both = Schema.from_mapping({"a": Integer(0, 9), "A": Integer(0, 9)})
    assert whole(open_source({"a": [1], "A": [2]}, both))["A"].tolist() == [2]
    with pytest.raises(SchemaError, match="more than case"):
        open_source(pl.DataFrame({"a": [1], "A": [2]}), both)
    with pytest.raises(DataError, match="expected a column 'age'"):
        open_source(pl.DataFrame({"Age": [1], "kind": ["no"]}), SCHEMA)


def test_names_that_look_like_sql(tmp_path: Path) -> None:
    names = [
        "select",
        'a"; DROP TABLE codes; --',
        "c0",
        "codes",
        "rowid",
        "file_row_number ",
        "x' y",
        "stream",
        "🙂",
    ]
    many = Category(*(f"l{i}" for i in range(100)))
    schema = Schema.from_mapping(dict.fromkeys(names, many))
    data = {name: [f"l{i}", None] for i, name in enumerate(names)}
    expected = {name: [i, 100] for i, name in enumerate(names)}
    pl.DataFrame(data).write_parquet(tmp_path / "p.parquet")
    pd.DataFrame(data).to_csv(tmp_path / "p.csv", index=False)
    for given in (data, pl.DataFrame(data), pd.DataFrame(data), tmp_path / "p.parquet", tmp_path / "p.csv"):
        for in_memory in (True, False):
            found = whole(open_source(given, schema, in_memory=in_memory))
            assert {name: codes.tolist() for name, codes in found.items()} == expected


def test_an_open_source_reads_no_other_file(parquet: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.csv", CSV)
    engine = Engine()
    assert engine.rows(f"SELECT COUNT(*) FROM read_csv('{other}')") == [(3,)]
    engine.lock([str(parquet)])
    assert engine.rows(f"SELECT COUNT(*) FROM read_parquet('{parquet}')") == [(3,)]
    for statement in (
        f"SELECT COUNT(*) FROM read_csv('{other}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'new.duckdb'}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(DataError):
            engine.run(statement)


def test_what_was_spilled_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_source(pl.DataFrame({"age": [1], "kind": ["no"]}), SCHEMA)
    assert list(tmp_path.iterdir()) == []
    engine = Engine(tmp_path)
    engine.run("CREATE TABLE x AS SELECT 1")
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    del engine
    assert list(tmp_path.iterdir()) == []
    assert source.rows == 1


WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = None
sys.modules["pandas"] = None
import polars
from holdfast.data.open import open_source
from holdfast.query.schema import Category, Integer, Schema
schema = Schema(age=Integer(0, 120), kind=Category("no", "yes"))
frame = polars.DataFrame({"age": [41, None], "kind": ["yes", "?"]})
frame.write_csv(sys.argv[1] + "/p.csv")
frame.write_parquet(sys.argv[1] + "/p.parquet")
plain = {"age": [41, None], "kind": ["yes", "?"]}
for data in (frame, sys.argv[1] + "/p.csv", sys.argv[1] + "/p.parquet", plain):
    for block in open_source(data, schema).scan(["age", "kind"]):
        print(block["age"].tolist(), block["kind"].tolist())
"""


def test_neither_pyarrow_nor_pandas_is_needed(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_ARROW, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.stdout == "[41, 121] [1, 2]\n" * 4, result.stderr
    assert result.stderr == ""


def test_duckdb_is_imported_only_when_used() -> None:
    script = (
        "import sys, numpy\n"
        "from holdfast.data.open import open_source\n"
        "from holdfast.query.schema import Integer, Schema\n"
        "open_source({'a': numpy.arange(3)}, Schema(a=Integer(0, 9)))\n"
        "heavy = ('duckdb', 'pandas', 'polars', 'pyarrow', 'sqlglot', 'scipy')\n"
        "print([module for module in heavy if module in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout == "[]\n", result.stderr


COLUMNS = generated(3000, seed=8)


@pytest.fixture(params=["csv", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "csv":
        return write_csv(COLUMNS, tmp_path / "people.csv")
    pl.DataFrame(arrow(COLUMNS)).write_parquet(tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_ingest(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    target = path.parent / "people.hf"
    store = ingest(path, target, PEOPLE, rows_per_unit=4, progress=lambda *step: seen.append(step))
    store.verify()
    assert (store.rows, store.rows_per_unit) == (3000, 4)
    for name, codes in whole(open_source(path, PEOPLE)).items():
        np.testing.assert_array_equal(whole(store)[name], codes)
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, "people.hf"])


def test_an_existing_store_is_refused_before_any_work(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = path.parent / "people.hf"
    ingest(path, target, PEOPLE)
    with monkeypatch.context() as patch:
        patch.setattr(door, "csv_source", None)
        patch.setattr(door, "open_source", None)
        with pytest.raises(StoreError, match="existing"):
            ingest(path, target, PEOPLE)
    first = StoreSource(target).fingerprint
    assert ingest(path, target, PEOPLE, overwrite=True).fingerprint != first


@pytest.mark.parametrize("name", ["nothing.csv", "nothing.parquet", "nothing.hf", "nothing"])
def test_nothing_to_ingest(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError):
        ingest(tmp_path / name, tmp_path / "out.hf", PEOPLE)
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_callback_leaves_nothing(path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(path, path.parent / "people.hf", PEOPLE, progress=stop)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
