"""The first page of a store: what is in the folder, and how to tell that all of it is there."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.data.packed import RECORD_BYTES, UNIT_BYTES, record, unit_record
from holdfast.errors import SchemaError, StoreError
from holdfast.formats import FORMATS, check_format
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import UnitSchema, event_columns, schema_from_json

MANIFEST_NAME = "manifest.json"
MAGIC = "holdfast store"
MAX_BYTES = 2**26
"""A manifest holds the schema; 64 MiB is far above any honest list of categories."""

_HEX_32_BYTES = re.compile(r"[0-9a-f]{64}")
_HEX_16_BYTES = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Schema, number of rows, how many of them one person may own, identity, and one checksum (BLAKE2b,
    32 bytes) per column in schema order; with records, their columns and their checksum. Records of units have one
    each among the others, and their columns are written with their tables."""

    schema: Schema
    rows: int
    rows_per_unit: int
    fingerprint: str
    checksums: tuple[str, ...]
    packed: tuple[str, ...] = ()
    packed_checksum: str = ""
    words: tuple[str, ...] = ()
    """A checksum of the dictionary of each text column, in schema order."""

    def to_bytes(self) -> bytes:
        """JSON with its own checksum, so that a flipped bit in the schema does not go unnoticed."""
        body: dict[str, Any] = {
            "format": MAGIC,
            "version": FORMATS["store"],
            "rows": self.rows,
            "rows_per_unit": self.rows_per_unit,
            "fingerprint": self.fingerprint,
            "schema": self.schema.to_json(),
            "checksums": list(self.checksums),
        }
        if self.packed:
            body["packed"] = {"columns": list(self.packed)}
            if self.packed_checksum:
                body["packed"]["checksum"] = self.packed_checksum
        if self.words:
            body["words"] = list(self.words)
        body["checksum"] = _own_checksum(body)
        return json.dumps(body, ensure_ascii=False, indent=1).encode()


def column_file(index: int) -> str:
    """The file of the column at this place in the schema. Names from a manifest never become paths."""
    return f"column-{index:04d}.bin"


def words_files(schema: Schema) -> dict[str, str]:
    """The file of the dictionary of each text column: UTF-8, a NUL after each text."""
    places = {name: f"{index:04d}" for index, name in enumerate(schema)}
    if isinstance(schema, UnitSchema):
        tables = list(schema.events)
        for name, table, column in event_columns(schema):
            index = list(schema.events[table].schema).index(column)
            places[name] = f"{tables.index(table):04d}-{index:04d}"
    return {name: f"words-{places[name]}.bin" for name in schema.texts}


PACKED_FILE = "packed.bin"
"""The file of the records."""


def events_file(table: int, index: int) -> str:
    """The file of a column of events, by the places of the table and of the column."""
    return f"events-{table:04d}-{index:04d}.bin"


def offsets_file(table: int) -> str:
    """Where the events of each unit begin and end."""
    return f"events-{table:04d}-offsets.bin"


def records_file(table: int) -> str:
    """The records of the events of each unit, by the place of the table."""
    return f"events-{table:04d}-packed.bin"


def records_of(schema: UnitSchema, packed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The columns that are in the records of each table of events that has some."""
    found = {
        table: tuple(name.removeprefix(f"{table}.") for name in packed if name.startswith(f"{table}."))
        for table in schema.events
    }
    return {table: names for table, names in found.items() if names}


def files_of(schema: Schema, packed: Sequence[str] = ()) -> list[str]:
    """The files of the rows, less the records of plain ones: of the columns, then of each table of events."""
    if not isinstance(schema, UnitSchema):
        return [column_file(index) for index in range(len(schema))]
    files = [column_file(index) for index in range(len(schema.own))]
    for place, events in enumerate(schema.events.values()):
        files += [offsets_file(place), *(events_file(place, index) for index in range(len(events.schema)))]
    places = list(schema.events)
    return files + [records_file(places.index(table)) for table in records_of(schema, packed)]


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a store folder; whatever is wrong becomes a `StoreError`."""
    path = folder / MANIFEST_NAME
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError:
        raise StoreError(
            f"expected a store with a {MANIFEST_NAME}, got a folder without one: {folder}"
        ) from None
    if len(content) > MAX_BYTES:
        raise StoreError(f"expected a {MANIFEST_NAME} below {MAX_BYTES} bytes, got a larger one in {folder}")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise StoreError(f"expected JSON in {path}, got something else; the store is damaged") from None
    return _checked(body, folder)


def _checked(body: Any, folder: Path) -> Manifest:
    if not isinstance(body, dict) or body.get("format") != MAGIC:
        raise StoreError(f"expected a folder written by holdfast, got a foreign {MANIFEST_NAME} in {folder}")
    check_format("store", body.get("version"), folder, StoreError)
    if body.get("checksum") != _own_checksum(body):
        raise _damaged(folder, "checksum")
    fingerprint, checksums = body.get("fingerprint"), body.get("checksums")
    for field in ("rows", "rows_per_unit"):
        if type(body.get(field)) is not int or not 1 <= body[field] < 2**62:
            raise _damaged(folder, field)
    if not isinstance(fingerprint, str) or not _HEX_16_BYTES.fullmatch(fingerprint):
        raise _damaged(folder, "fingerprint")
    try:
        schema = schema_from_json(body["schema"])
    except (SchemaError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise _damaged(folder, "schema") from None
    packed, packed_checksum = _packed(body, schema, folder)
    texts, words, files = len(schema.texts), body.get("words", []), len(files_of(schema, packed))
    for field, sums, wanted in (("checksums", checksums, files), ("words", words, texts)):
        if not isinstance(sums, list) or len(sums) != wanted:
            raise _damaged(folder, field)
        if not all(isinstance(each, str) and _HEX_32_BYTES.fullmatch(each) for each in sums):
            raise _damaged(folder, field)
    return Manifest(
        schema=schema,
        rows=body["rows"],
        rows_per_unit=body["rows_per_unit"],
        fingerprint=fingerprint,
        checksums=tuple(body["checksums"]),
        packed=packed,
        packed_checksum=packed_checksum,
        words=tuple(words),
    )


def _packed(body: dict[str, Any], schema: Schema, folder: Path) -> tuple[tuple[str, ...], str]:
    """The columns of the records and their checksum; nothing in a store that has none."""
    packed = body.get("packed")
    if packed is None:
        return (), ""
    names, checksum = (packed.get("columns"), packed.get("checksum")) if isinstance(packed, dict) else (0, 0)
    if isinstance(schema, UnitSchema):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _damaged(folder, "packed")
        records = records_of(schema, names)
        if not names or sorted(names) != sorted(
            {f"{t}.{name}" for t, some in records.items() for name in some}
        ):
            raise _damaged(folder, "packed")
        for table, some in records.items():
            events = schema.events[table]
            known = all(name in events.schema for name in some)
            if not known or unit_record(some, events.schema, events.most).itemsize > UNIT_BYTES:
                raise _damaged(folder, "packed")
        return tuple(names), ""
    if not isinstance(names, list) or not isinstance(checksum, str) or not _HEX_32_BYTES.fullmatch(checksum):
        raise _damaged(folder, "packed")
    known = all(isinstance(name, str) and name in schema for name in names)
    if not known or not names or len(set(names)) < len(names):
        raise _damaged(folder, "packed")
    if record(names, schema).itemsize > RECORD_BYTES:
        raise _damaged(folder, "packed")
    return tuple(names), checksum


def _damaged(folder: Path, field: str) -> StoreError:
    return StoreError(
        f"expected a valid {field!r} in the manifest of {folder}, got a damaged one; save it again"
    )


def _own_checksum(body: dict[str, Any]) -> str:
    rest = {key: value for key, value in body.items() if key != "checksum"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=32).hexdigest()
