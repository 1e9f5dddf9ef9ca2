"""Rows are known again whatever they are called; copies and other rows are not mistaken for them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from services import postgres

import holdfast as hf
from holdfast.data.identity import marks
from holdfast.errors import DataError


def _csv(place: Path) -> None:
    place.write_text("age\n40\n")


def _folder(place: Path) -> None:
    (place / "year=2024").mkdir(parents=True)
    for name in ("a.parquet", "year=2024/b.parquet"):
        pq.write_table(pa.table({"age": [40]}), place / name)


def _store(place: Path) -> None:
    hf.open({"age": [40]}, hf.Schema(age=hf.Integer(0, 99))).save(place)


MADE: dict[str, Callable[[Path], None]] = {"rows.csv": _csv, "rows": _folder, "rows.hf": _store}


@pytest.mark.parametrize("name", MADE)
def test_files_and_folders_are_known_by_every_name(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    MADE[name](place)
    (tmp_path / "link").symlink_to(place)
    (tmp_path / "around").symlink_to(tmp_path)
    own = marks(str(place))
    for other in (
        f"{place}/" if place.is_dir() else f"{tmp_path}/./{name}",
        tmp_path / "link",
        tmp_path / "around" / name,
    ):
        assert marks(str(other)) & own
    linked = tmp_path / "hard"
    if place.is_dir():
        shutil.copytree(place, linked, copy_function=os.link)
    else:
        os.link(place, linked)
    assert marks(str(linked)) & own
    copied = tmp_path / "copied"
    (shutil.copytree if place.is_dir() else shutil.copy)(place, copied)
    assert not marks(str(copied)) & own, "the control"


def test_a_file_in_a_folder_is_known_as_part_of_it(tmp_path: Path) -> None:
    _folder(tmp_path / "rows")
    own = marks(str(tmp_path / "rows"))
    os.link(tmp_path / "rows/a.parquet", tmp_path / "hard.parquet")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/link.parquet").symlink_to(tmp_path / "rows/a.parquet")
    for part in ("rows/a.parquet", "rows/year=2024", "rows/year=2024/b.parquet", "hard.parquet", "other"):
        assert marks(str(tmp_path / part)) & own, part
    pq.write_table(pa.table({"age": [40]}), tmp_path / "apart.parquet")
    assert not marks(str(tmp_path / "apart.parquet")) & own, "the control"


def test_a_file_is_known_by_its_place_when_it_was_written_anew(tmp_path: Path) -> None:
    _csv(tmp_path / "rows.csv")
    own = marks(str(tmp_path / "rows.csv"))
    _csv(tmp_path / "new.csv")
    assert not marks(str(tmp_path / "new.csv")) & own
    (tmp_path / "new.csv").rename(tmp_path / "rows.csv")
    assert marks(str(tmp_path / "rows.csv")) & own


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can be read"):
        marks(str(tmp_path / "none.csv"))


@contextmanager
def _tables(*statements: str) -> Iterator[None]:
    with psycopg.connect(postgres().url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA marked")
        try:
            for statement in statements:
                connection.execute(statement)
            yield
        finally:
            connection.execute("DROP SCHEMA marked CASCADE")


def test_tables_of_a_server_are_known_by_every_name_and_address() -> None:
    url = postgres().url
    with _tables("CREATE TABLE marked.t (age int)", "CREATE TABLE marked.u (age int)"):
        own = marks(url, "marked.t")
        assert marks(url, '"marked"."t"') == own
        assert marks(f"{url}&options=-csearch_path%3Dmarked", "t") == own
        assert marks(url.replace("postgresql://", "postgres://"), "MARKED.T") == own
        assert not marks(url, "marked.u") & own, "the control"
        assert not marks(url.replace("/postgres?", "/template1?"), "pg_catalog.pg_class") & marks(
            url, "pg_catalog.pg_class"
        ), "another database"
        postgres().execute("ALTER TABLE marked.t RENAME TO v")
        assert marks(url, "marked.v") & own
        postgres().execute("CREATE TABLE marked.t (age int)")
        assert marks(url, "marked.t") & own, "a table that took its place"


def test_a_part_of_a_table_is_known_as_part_of_it() -> None:
    with _tables(
        "CREATE TABLE marked.p (age int) PARTITION BY RANGE (age)",
        "CREATE TABLE marked.young PARTITION OF marked.p FOR VALUES FROM (0) TO (40)",
        "CREATE TABLE marked.old PARTITION OF marked.p FOR VALUES FROM (40) TO (99)",
    ):
        whole, young, old = (marks(postgres().url, f"marked.{name}") for name in ("p", "young", "old"))
        assert whole & young and whole & old and not young & old
