"""Records are the columns once more: the same rows, from one place; a store without them stays a store."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from data.tables import SCHEMA, as_arrays, generated
from holdfast.data import manifest as first_page
from holdfast.data.mapped import MappedColumn
from holdfast.data.open import open_source
from holdfast.data.packed import RECORD_BYTES, pack, packed_columns, record
from holdfast.data.save import save_store
from holdfast.data.store import StoreSource
from holdfast.errors import StoreError
from holdfast.query.schema import Boolean, Integer, Real, Schema

ROWS = 3000
SCHEMAS = {
    "one column": Schema(a=Integer(0, 9)),
    "two wide": Schema(x=Real(0, 1), y=Real(0, 1)),
    "three wide": Schema(x=Real(0, 1), y=Real(0, 1), z=Real(0, 1)),
    "people": Schema(age=Integer(0, 120), income=Integer(0, 50_000), smoker=Boolean()),
    "many": Schema.from_mapping({f"c{place}": Boolean() for place in range(40)}),
    "all kinds": SCHEMA,
}


@pytest.fixture
def store(tmp_path: Path) -> StoreSource:
    return save_store(open_source(as_arrays(generated(ROWS, seed=8)), SCHEMA), tmp_path / "people.hf")


def reseal(store: Path, packed: dict[str, object] | None) -> None:
    """Put something else for the records into the manifest, with its right checksum."""
    path = store / first_page.MANIFEST_NAME
    body = json.loads(path.read_text())
    body["packed"] = packed
    body["checksum"] = first_page._own_checksum(body)
    path.write_text(json.dumps(body))


@pytest.mark.parametrize("name", SCHEMAS)
def test_records_are_short_and_aligned(name: str) -> None:
    schema = SCHEMAS[name]
    names = packed_columns(schema)
    if not names:
        assert name == "one column"
        return
    layout = record(names, schema)
    assert layout.itemsize <= RECORD_BYTES
    assert layout.itemsize.bit_count() == 1
    assert layout.fields is not None
    ends = [0]
    for field in names:
        dtype, offset = layout.fields[field][:2]
        assert dtype == schema[field].dtype
        assert offset == ends[-1]
        assert offset % dtype.itemsize == 0
        ends.append(offset + dtype.itemsize)
    left_out = [schema[field].dtype.itemsize for field in schema if field not in names]
    assert all(ends[-1] + width > RECORD_BYTES for width in left_out)


def test_rows_are_the_same_with_and_without_records(store: StoreSource) -> None:
    ids = np.random.default_rng(3).integers(0, ROWS, 2500)
    wanted = [["age", "visit"], ["visit", "income", "age"], ["income", "wide"], list(SCHEMA)]
    quick = [store.gather(names, ids) for names in wanted]
    assert store._together == set(packed_columns(SCHEMA)) < set(SCHEMA)
    reseal(store.path, None)
    (store.path / first_page.PACKED_FILE).unlink()
    older = StoreSource(store.path)
    older.verify()
    for names, found in zip(wanted, quick, strict=True):
        assert list(found) == names
        for name, codes in older.gather(names, ids).items():
            np.testing.assert_array_equal(found[name], codes)
            assert found[name].dtype == SCHEMA[name].dtype


def test_two_columns_come_from_one_place_and_one_from_its_own(
    store: StoreSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(MappedColumn, "check", lambda column: read.append(column._name))
    for names, expected in (
        (["age"], ["age"]),
        (["age", "visit"], ["packed.bin"]),
        (["income", "age"], ["income", "age"]),
        (["income", "age", "visit"], ["packed.bin", "income"]),
    ):
        read.clear()
        store.gather(names, np.arange(9))
        assert read == expected


def test_verify_compares_records_with_columns(store: StoreSource) -> None:
    store.verify()
    names = packed_columns(SCHEMA)
    layout, path = record(names, SCHEMA), store.path / first_page.PACKED_FILE
    block = {name: codes.copy() for name, codes in store.gather(names, np.arange(ROWS)).items()}
    assert path.read_bytes() == pack(block, layout).tobytes()
    block["age"][77] ^= 1
    raw = pack(block, layout).tobytes()
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="different bytes"):
        StoreSource(store.path).verify()
    digest = hashlib.blake2b(raw, digest_size=32).hexdigest()
    reseal(store.path, {"columns": list(names), "checksum": digest})
    with pytest.raises(StoreError, match="'age' in the records"):
        StoreSource(store.path).verify()
