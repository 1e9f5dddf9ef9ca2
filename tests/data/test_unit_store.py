"""A store of units tells nobody how many events there are, and notices damage."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.hospital import SCHEMAS, SECRET, hospital
from data.test_unit_build import declared, held
from holdfast.data import manifest, unit_build
from holdfast.data.open import open_source, open_store
from holdfast.data.unit_open import open_units
from holdfast.data.unit_store import UnitStore, save_units
from holdfast.errors import DataError, StoreError
from holdfast.query.unit_schema import Slots


def saved(folder: Path, tables: Any = None) -> UnitStore:
    return save_units(open_units(declared(tables or hospital()), SECRET), folder / "h.hf")


def test_a_saved_store_holds_the_same(tmp_path: Path) -> None:
    source = open_units(declared(hospital()), SECRET)
    store = save_units(source, tmp_path / "h.hf")
    assert held(store) == held(source)
    assert (store.fingerprint, store.schema, store.rows) == (source.fingerprint, source.schema, source.rows)
    again = open_source(tmp_path / "h.hf")
    assert isinstance(again, UnitStore) and again.schema == source.schema
    again.verify()
    again.close()
    with pytest.raises(DataError, match="closed"):
        list(again.scan(["age"]))


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_sizes_and_manifest_are_the_same_however_many_events_there_are(tmp_path: Path) -> None:
    """Row 12 of docs/threats.md, on disk: a person with a million rows."""
    few, many = tmp_path / "few", tmp_path / "many"
    for folder in (few, many):
        folder.mkdir()
    saved(few)
    tables = hospital()
    for name, values in tables["visits"].items():
        values.extend(
            [["p40"], [1.0], ["heart"], [3], [True], ["ether"]][list(tables["visits"]).index(name)] * 1000
        )
    saved(many, tables)
    found = [sizes(folder / "h.hf") for folder in (few, many)]
    assert found[0] == found[1]
    texts = [(folder / "h.hf" / "manifest.json").read_text() for folder in (few, many)]
    for store, text in zip((few, many), texts, strict=True):
        total = int(UnitStore(store / "h.hf").events("visits").offsets[-1])
        assert str(total) not in text.replace("\n", " ").split()
    # The control: on disk there is a difference, which only the owner's own tools show.
    spans = [int(UnitStore(f / "h.hf").events("visits").offsets[-1]) for f in (few, many)]
    assert spans[0] != spans[1]


def test_the_dictionary_holds_the_texts_of_kept_rows_only(tmp_path: Path) -> None:
    """A person with very many texts adds as many as their bound; the twin that keeps all tells how many there were."""
    tables = hospital()
    for name, values in tables["visits"].items():
        many = [f"only {place}" for place in range(100)] if name == "drug" else [values[0]] * 100
        values.extend(["p40"] * 100 if name == "person" else many)
    in_memory = open_units(declared(tables), SECRET)
    on_disk = open_units(declared(tables), SECRET, in_memory=False)
    texts = in_memory.words["visits.drug"].texts
    assert sum(text.startswith("only") for text in texts) <= 4 < 100
    assert "caféine" in texts and "cafe\u0301ine" not in texts and "" not in texts
    assert on_disk.words["visits.drug"].texts == texts and held(on_disk) == held(in_memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_build, "kept_texts", lambda block, words: (block, words))
        twin = open_units(declared(tables), SECRET).words["visits.drug"].texts
    assert sum(text.startswith("only") for text in twin) == 100


@pytest.mark.parametrize("name", ["words-0000-0004.bin", "words-0002.bin"])
def test_a_damaged_dictionary_is_noticed(name: str, tmp_path: Path) -> None:
    saved(tmp_path)
    file = tmp_path / "h.hf" / name
    file.write_bytes(file.read_bytes().replace(b"x1\0", b"x!\0").replace(b"Ulm", b"Ulx"))
    with pytest.raises(StoreError, match="words"):
        UnitStore(tmp_path / "h.hf")


@pytest.mark.parametrize(
    "name", ["events-0000-0000.bin", "events-0000-offsets.bin", "events-0000-packed.bin", "column-0000.bin"]
)
def test_damage_is_noticed(name: str, tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "h.hf" / name
    content = bytearray(path.read_bytes())
    content[8] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"different bytes|more events|range|records"):
        open_store(tmp_path / "h.hf").verify()  # type: ignore[union-attr]
    os.truncate(path, len(content) - 1)
    with pytest.raises(StoreError, match="damaged"):
        open_store(tmp_path / "h.hf")


def test_offsets_beyond_the_bound_never_reach_a_question(tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "h.hf" / "events-0000-offsets.bin"
    offsets = np.fromfile(path, "<i8")
    offsets[1:] += 100
    offsets.tofile(path)
    store = open_store(tmp_path / "h.hf")
    with pytest.raises(DataError, match="more events than its bound"):
        store.gather(["count(visits)"], np.arange(store.rows))


def test_records_hold_the_events_of_a_unit_with_their_number(tmp_path: Path) -> None:
    """What is read of them is as long for every unit, and a store of before them stays a store."""
    store = saved(tmp_path)
    visits, folder = store.events("visits"), tmp_path / "h.hf"
    assert visits.records is not None and visits.records.codes.dtype.itemsize == 64
    assert visits.records.codes.dtype.names == ("drug", "day", "urgent", "ward", "")
    assert sizes(folder)["events-0000-packed.bin"] == 64 * store.rows
    ids = np.arange(store.rows)[::-1]
    names = ["day", "drug", "urgent"]
    lengths, quick = visits.of(names, ids, slots=True)
    bare = replace(visits, records=None)
    expected, block = bare.of(names, ids)
    assert isinstance(lengths, Slots) and lengths.tolist() == expected.tolist()
    full = np.arange(visits.most) < expected[:, None]
    for name in names:
        assert quick[name].reshape(full.shape)[full].tolist() == block[name].tolist()
        assert not np.any(quick[name].reshape(full.shape)[~full])  # nothing of others
    before = held(store)
    store.close()
    for file in folder.glob("*-packed.bin"):
        file.unlink()
    body = json.loads((folder / "manifest.json").read_text())
    body["checksums"] = body["checksums"][:-2]
    del body["packed"]
    body["checksum"] = manifest._own_checksum(body)
    (folder / "manifest.json").write_text(json.dumps(body))
    older = UnitStore(folder)
    older.verify()
    assert older.events("visits").records is None and held(older) == before


def test_records_that_say_otherwise_than_the_columns_are_noticed(tmp_path: Path) -> None:
    saved(tmp_path)
    folder = tmp_path / "h.hf"
    file = folder / "events-0000-packed.bin"
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    body = json.loads((folder / "manifest.json").read_text())
    body["checksums"][-2] = hashlib.blake2b(content, digest_size=32).hexdigest()
    body["checksum"] = manifest._own_checksum(body)
    (folder / "manifest.json").write_text(json.dumps(body))
    with pytest.raises(StoreError, match="records of units"):
        UnitStore(folder).verify()
    content[:] = b"\xff" * len(content)
    file.write_bytes(content)
    with pytest.raises(DataError, match="more events than its bound"):
        UnitStore(folder).gather(["sum(visits.day)"], np.arange(3))


@pytest.mark.parametrize(
    "columns",
    [
        ["visits.cost", "visits.drug", "visits.day", "visits.urgent", "visits.ward", "drugs.dose"],
        ["visits.age"],
        ["day"],
        ["visits.day"] * 2,
        [],
        3,
    ],
)
def test_a_manifest_with_other_records_is_damaged(columns: object, tmp_path: Path) -> None:
    saved(tmp_path)
    page = tmp_path / "h.hf" / "manifest.json"
    body = json.loads(page.read_text())
    assert body["packed"]["columns"][0] == "visits.drug"
    body["packed"]["columns"] = columns
    body["checksum"] = manifest._own_checksum(body)
    page.write_text(json.dumps(body))
    with pytest.raises(StoreError, match="packed"):
        UnitStore(tmp_path / "h.hf")


def test_the_declaration_survives(tmp_path: Path) -> None:
    store = saved(tmp_path)
    assert list(store.schema) == list(SCHEMAS["people"])
    assert store.schema.events["visits"].order == "day"
    assert store.schema.events["drugs"].most == 2
