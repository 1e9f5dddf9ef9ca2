"""What is saved comes back; what is damaged, foreign or hostile does not open."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.tables import SCHEMA, as_arrays, generated, whole
from holdfast.data import manifest as first_page
from holdfast.data import save
from holdfast.data.open import open_source
from holdfast.data.save import StoreWriter, save_store
from holdfast.data.store import StoreSource
from holdfast.errors import InputError, SchemaError, StoreError
from holdfast.query.schema import Integer, Schema

COLUMNS = generated(500, seed=5)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    save_store(open_source(as_arrays(COLUMNS), SCHEMA), tmp_path / "people.hf")
    return tmp_path / "people.hf"


def rewrite(store: Path, change: Callable[[dict[str, Any]], object], *, seal: bool = True) -> None:
    """Change the manifest as somebody would who knows how to compute its checksum."""
    path = store / first_page.MANIFEST_NAME
    body = json.loads(path.read_text())
    change(body)
    if seal:
        body["checksum"] = first_page._own_checksum(body)
    path.write_text(json.dumps(body))


def test_round_trip(store: Path) -> None:
    origin = open_source(as_arrays(COLUMNS), SCHEMA)
    saved = save_store(origin, store.parent / "again.hf", rows_per_unit=3)
    assert (saved.schema, saved.rows, saved.fingerprint) == (SCHEMA, 500, origin.fingerprint)
    assert saved.rows_per_unit == 3
    saved.verify()
    for name, codes in whole(origin).items():
        np.testing.assert_array_equal(whole(saved)[name], codes)
    assert open_source(saved.path).fingerprint == origin.fingerprint
    assert open_source(str(saved.path), SCHEMA).rows == 500
    with pytest.raises(SchemaError, match="leave it out"):
        open_source(saved.path, Schema(age=Integer(0, 120)))


def test_files_are_raw_little_endian_codes(store: Path) -> None:
    codes = SCHEMA["wide"].encode_array(np.array(COLUMNS["wide"], dtype=object))
    assert (store / "column-0001.bin").read_bytes() == codes.astype("<u8").tobytes()
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert sorted(p.name for p in store.parent.iterdir()) == ["people.hf"]


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.data import frame

    monkeypatch.setattr(frame, "BLOCK_ROWS", 200)
    seen: list[tuple[int, int]] = []
    save_store(open_source(as_arrays(COLUMNS), SCHEMA), tmp_path / "p.hf", progress=lambda *a: seen.append(a))
    assert seen == [(200, 500), (400, 500), (500, 500)]


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0")


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [truncate, lengthen, link, folder, pipe, Path.unlink])
@pytest.mark.parametrize("name", ["column-0000.bin", "column-0005.bin", "packed.bin"])
def test_damaged_columns_do_not_open(store: Path, damage: Callable[[Path], object], name: str) -> None:
    StoreSource(store).close()
    damage(store / name)
    with pytest.raises(StoreError):
        StoreSource(store)


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "foreign": lambda body: body.update(format="parquet"),
    "no format": lambda body: body.pop("format"),
    "newer": lambda body: body.update(version=2),
    "version is a text": lambda body: body.update(version="1"),
    "version is true": lambda body: body.update(version=True),
    "version zero": lambda body: body.update(version=0),
    "no rows": lambda body: body.update(rows=0),
    "negative rows": lambda body: body.update(rows=-5),
    "fewer rows": lambda body: body.update(rows=499),
    "more rows": lambda body: body.update(rows=501),
    "huge rows": lambda body: body.update(rows=2**70),
    "rows as float": lambda body: body.update(rows=500.0),
    "rows missing": lambda body: body.pop("rows"),
    "no unit": lambda body: body.update(rows_per_unit=0),
    "unit missing": lambda body: body.pop("rows_per_unit"),
    "fingerprint": lambda body: body.update(fingerprint="../../ledger"),
    "fingerprint missing": lambda body: body.pop("fingerprint"),
    "checksums missing": lambda body: body.pop("checksums"),
    "checksums too few": lambda body: body["checksums"].pop(),
    "checksum not hexadecimal": lambda body: body["checksums"].__setitem__(0, "z" * 64),
    "checksum a number": lambda body: body["checksums"].__setitem__(0, 7),
    "schema missing": lambda body: body.pop("schema"),
    "schema a list": lambda body: body.update(schema=[]),
    "schema empty": lambda body: body["schema"].update(columns=[]),
    "column without type": lambda body: body["schema"]["columns"].__setitem__(0, {"name": "age"}),
    "column is a number": lambda body: body["schema"]["columns"].__setitem__(0, 3),
    "unknown type": lambda body: body["schema"]["columns"][0].update(type="file:///etc/passwd"),
    "bounds the wrong way round": lambda body: body["schema"]["columns"][0].update(lo=200),
    "wider column": lambda body: body["schema"]["columns"][0].update(hi=100_000),
    "one column more": lambda body: body["schema"]["columns"].append({"name": "x", "type": "boolean"}),
    "records are a number": lambda body: body.update(packed=3),
    "records without columns": lambda body: body["packed"].update(columns=[]),
    "records of unknown columns": lambda body: body["packed"]["columns"].__setitem__(0, "../ledger"),
    "records of numbers": lambda body: body["packed"]["columns"].__setitem__(0, 7),
    "records of one column twice": lambda body: body["packed"]["columns"].append("age"),
    "records of other columns": lambda body: body["packed"]["columns"].pop(0),
    "records that are too long": lambda body: body["packed"]["columns"].append("income"),
    "records without checksum": lambda body: body["packed"].pop("checksum"),
    "twice the same name": lambda body: body["schema"]["columns"][1].update(name="age"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_manifests_do_not_open(store: Path, name: str) -> None:
    rewrite(store, HOSTILE[name])
    with pytest.raises(StoreError):
        StoreSource(store)


def test_a_flipped_bit_in_the_manifest_is_noticed(store: Path) -> None:
    rewrite(store, lambda body: body["schema"]["columns"][0].update(hi=121), seal=False)
    with pytest.raises(StoreError, match="checksum"):
        StoreSource(store)
    rewrite(store, lambda body: None)
    assert StoreSource(store).schema["age"].hi == 121  # the twin: without the check it would open


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"format": "holdfast store"', b"\xff\xfe", b"\0" * 10],
)
def test_broken_json_does_not_open(store: Path, content: bytes) -> None:
    (store / first_page.MANIFEST_NAME).write_bytes(content)
    with pytest.raises(StoreError):
        StoreSource(store)


def test_an_enormous_manifest_is_not_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_page, "MAX_BYTES", 100)
    with pytest.raises(StoreError, match="below 100 bytes"):
        StoreSource(store)


def test_no_folder_and_no_manifest(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.hf", tmp_path):
        with pytest.raises(StoreError, match=r"manifest\.json"):
            StoreSource(path)
    with pytest.raises(StoreError):
        open_source(tmp_path / "nothing.hf")


def test_verify_finds_one_changed_byte(store: Path) -> None:
    path = store / "column-0002.bin"
    raw = bytearray(path.read_bytes())
    raw[17] ^= 1
    path.write_bytes(raw)
    source = StoreSource(store)
    with pytest.raises(StoreError, match="income"):
        source.verify()


def test_verify_finds_codes_outside_the_declaration(store: Path) -> None:
    """A store whose checksums are right and whose codes would break every sensitivity."""
    import hashlib

    raw = bytes([200]) * 500
    (store / "column-0000.bin").write_bytes(raw)
    digest = hashlib.blake2b(raw, digest_size=32).hexdigest()
    rewrite(store, lambda body: body["checksums"].__setitem__(0, digest))
    with pytest.raises(StoreError, match="declared range"):
        StoreSource(store).verify()


def test_an_existing_path_is_refused_unless_asked(store: Path) -> None:
    other = open_source(as_arrays(generated(7, seed=6)), SCHEMA)
    with pytest.raises(StoreError, match="overwrite"):
        save_store(other, store)
    assert StoreSource(store).rows == 500
    kept = StoreSource(store)
    assert save_store(other, store, overwrite=True).rows == 7
    assert len(whole(kept)["age"]) == 500  # an open store keeps its rows
    assert sorted(p.name for p in store.parent.iterdir()) == ["people.hf"]


def test_only_stores_are_overwritten(tmp_path: Path) -> None:
    source = open_source(as_arrays(COLUMNS), SCHEMA)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for name in ("papers", "file"):
        with pytest.raises(StoreError, match="remove it yourself"):
            save_store(source, tmp_path / name, overwrite=True)
    assert (tmp_path / "papers" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(StoreError, match="make it first"):
        save_store(source, tmp_path / "no" / "such" / "folder.hf")


@pytest.mark.parametrize("units", [0, -1, True, 1.0, None, 2**62])
def test_bad_rows_per_unit(tmp_path: Path, units: Any) -> None:
    with pytest.raises(InputError, match="rows_per_unit"):
        save_store(open_source(as_arrays(COLUMNS), SCHEMA), tmp_path / "p.hf", rows_per_unit=units)


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "mkdir"])
def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    source = open_source(as_arrays(COLUMNS), SCHEMA)

    def full(*arguments: object, **named: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(save.os, call, full)
    with pytest.raises(StoreError, match="No space left"):
        save_store(source, tmp_path / "p.hf")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_somebody_else_was_faster(tmp_path: Path) -> None:
    source = open_source(as_arrays(COLUMNS), SCHEMA)
    with StoreWriter(tmp_path / "p.hf", SCHEMA, fingerprint="0" * 32, words=source.words) as writer:
        for block in source.scan(list(SCHEMA)):
            writer.append(block)
        save_store(source, tmp_path / "p.hf")
        with pytest.raises(OSError, match="not empty"):
            writer.commit()
    assert StoreSource(tmp_path / "p.hf").fingerprint == source.fingerprint
    assert [p.name for p in tmp_path.iterdir()] == ["p.hf"]


READER = """
import sys, numpy
from holdfast.data.store import StoreSource
source = StoreSource(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
print(sum(int(block["age"].sum()) for block in source.scan(["age"])), flush=True)
"""


def test_two_processes_map_one_store(store: Path) -> None:
    command = [sys.executable, "-c", READER, str(store)]
    readers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    source = StoreSource(store)
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
    expected = int(whole(source)["age"].sum())
    for reader in readers:
        output, _ = reader.communicate("go\n", timeout=60)
        assert output == f"{expected}\n"
