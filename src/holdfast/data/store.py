"""Rows in a folder: one raw file per column, and one of records, mapped into memory.

    people.hf/
        manifest.json       written last: format, version, schema, rows, fingerprint, checksums
        column-0000.bin     the codes of the first column, little-endian, nothing else
        column-0001.bin     ...
        words-0001.bin      the dictionary of the second column, if that holds texts
        packed.bin          the narrowest columns once more, side by side (see `holdfast.data.packed`)

This is the layout for reading few rows of many: row i of a column lies at byte i times its width. Where most
rows are far from the cache, the time goes into reaching a place; a record brings several columns for one.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.frame import blocks, check_codes
from holdfast.data.manifest import PACKED_FILE, Manifest, column_file, read_manifest, words_files
from holdfast.data.mapped import MappedColumn, disk_reads, take_rows
from holdfast.data.packed import record
from holdfast.data.source import (
    BLOCK_ROWS,
    Block,
    Codes,
    Measurement,
    checked_columns,
    checked_ids,
    draw_by_gather,
    totals_by_scan,
)
from holdfast.errors import DataError, StoreError
from holdfast.noise.bits import Bits
from holdfast.query.dictionary import Words
from holdfast.query.schema import ColumnType, Schema

_PACKED = ""
"""The key of the records among the columns; no column has it."""


class StoreSource:
    """A `Source` over a saved store.

    Opening checks the manifest and the size of every file, in time independent of the number of rows;
    `verify` reads every byte. Any number of processes may map one store. A file that was cut short is noticed
    before every reading; one that is cut in the middle of a reading kills the process (the operating
    system's answer to reading past the end).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._manifest = read_manifest(self._path)
        schema, rows = self._manifest.schema, self._manifest.rows
        self._columns: dict[str, MappedColumn] = {
            name: mapped(self._path / column_file(index), schema[name].dtype.newbyteorder("<"), rows, name)
            for index, name in enumerate(schema)
        }
        self._in_memory = False
        """Whether the last pass waited for no disk."""
        self._together = frozenset(self.packed)
        if self._together:
            layout = record(self.packed, schema)
            self._columns[_PACKED] = mapped(self._path / PACKED_FILE, layout, rows, PACKED_FILE)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def schema(self) -> Schema:
        return self._manifest.schema

    @property
    def rows(self) -> int:
        return self._manifest.rows

    @property
    def rows_per_unit(self) -> int:
        """How many rows one person may own, as declared when the store was saved."""
        return self._manifest.rows_per_unit

    @property
    def packed(self) -> tuple[str, ...]:
        """The columns that lie side by side in records as well; none if only one is narrow enough."""
        return self._manifest.packed

    @property
    def fingerprint(self) -> str:
        return self._manifest.fingerprint

    @cached_property
    def words(self) -> Mapping[str, Words]:
        """Read when the first text is asked about."""
        return saved_words(self._path, self._manifest)

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return self._blocks(checked_columns(columns, self.schema))

    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]:
        chosen = [self._opened()[name] for name in names]
        codes = {name: column.codes for name, column in zip(names, chosen, strict=True)}
        ahead, before, small = 0, disk_reads(), self.rows <= BLOCK_ROWS
        for block in blocks(codes, names):
            # One block ahead, so that the disk works while the block before is added up. What is all in memory needs it
            # not, which a pass over a small table has seen; a large one may be, and its beginning be gone again.
            length = len(block[names[0]])
            for column in chosen:
                if small and self._in_memory:
                    column.check()
                else:
                    column.expect(ahead, ahead + 2 * length)
            ahead += length
            yield block
        self._in_memory = disk_reads() == before

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        opened, names, ids = self._opened(), checked_columns(columns, self.schema), checked_ids(ids)
        if len(self._together.intersection(names)) < 2:
            return take_rows({name: opened[name] for name in names}, ids)
        alone = {name: opened[name] for name in names if name not in self._together}
        taken = take_rows({_PACKED: opened[_PACKED], **alone}, ids)
        records = taken.pop(_PACKED)
        # NumPy compares what lies together three times as quickly.
        return {name: taken[name] if name in alone else records[name].copy() for name in names}

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        return draw_by_gather(self, columns, count, bits)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return totals_by_scan(self, measurement)

    def verify(self) -> None:
        """Read every byte: checksums as saved, codes within the declared ranges, records that hold the same
        codes as the columns; `StoreError` if not.

        Cost: two passes over all files, about 1 s a GB.
        """
        opened = self._opened()
        for name, words in self.words.items():
            for block in blocks({name: opened[name].codes}, (name,)):
                try:
                    check_places(block[name], self.schema[name], words)
                except DataError as error:
                    raise StoreError(f"{error}, in {self._path}; make it again from its origin") from None
        for name, expected in zip(self.schema, self._manifest.checksums, strict=True):
            self._check_bytes(name, expected, f"column {name!r}")
            try:
                for block in blocks({name: opened[name].codes}, (name,)):
                    check_codes(self.schema, name, block[name])
            except DataError as error:
                raise StoreError(f"{error}, in {self._path}") from None
        if self._together:
            self._check_bytes(_PACKED, self._manifest.packed_checksum, PACKED_FILE)
            self._check_records()

    def _check_bytes(self, name: str, expected: str, what: str) -> None:
        digest = hashlib.blake2b(digest_size=32)
        for block in self._blocks((name,)):
            digest.update(block[name].view(np.uint8).data)
        if digest.hexdigest() != expected:
            raise StoreError(
                f"expected {what} of {self._path} as it was saved, got different bytes; "
                "the store is damaged: make it again from its origin"
            )

    def _check_records(self) -> None:
        names = self.packed
        for block in self._blocks((_PACKED, *names)):
            for name in names:
                same = np.array_equal(
                    block[_PACKED][name], block[name], equal_nan=self.schema[name].codes is None
                )
                if not same:
                    raise StoreError(
                        f"expected the codes of column {name!r} in the records of {self._path}, got others; "
                        "the store is damaged: make it again from its origin"
                    )

    def close(self) -> None:
        self._columns = {}

    def _opened(self) -> dict[str, MappedColumn]:
        columns = self._columns
        if not columns:
            raise DataError(f"expected an open store, got a closed one; open {self._path} again")
        return columns


def check_places(codes: Codes, column: ColumnType, words: Words) -> None:
    """Refuse codes of texts that the dictionary does not have."""
    known = codes[codes != column.null_code]
    if len(known) and int(known.max()) >= len(words.texts):
        raise DataError("expected codes of texts, got others")


def saved_words(folder: Path, manifest: Manifest) -> dict[str, Words]:
    """The dictionaries of a store's text columns."""
    files = words_files(manifest.schema)
    return {
        name: Words(_read_words(folder / file, checksum))
        for (name, file), checksum in zip(files.items(), manifest.words, strict=True)
    }


def _read_words(path: Path, checksum: str) -> list[str]:
    """The texts of a dictionary as it was saved; StoreError for anything else."""
    try:
        content = path.read_bytes()
        texts = content.decode().split("\0")
    except (OSError, UnicodeDecodeError):
        content, texts = b"", [""]
    whole = hashlib.blake2b(content, digest_size=32).hexdigest() == checksum
    if not whole or texts.pop() or any(a >= b for a, b in itertools.pairwise(texts)):
        raise StoreError(
            f"expected a whole file {path.name} in {path.parent}, got none; the store is damaged"
        )
    return texts


def mapped(path: Path, dtype: np.dtype[Any], rows: int, name: str) -> MappedColumn:
    try:
        # Links are not followed: a store given by somebody else must not reach outside its folder.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        raise StoreError(
            f"expected a readable file {path.name} in {path.parent}, got none; the store is damaged"
        ) from None
    try:
        status, expected = os.fstat(descriptor), rows * dtype.itemsize
        if not stat.S_ISREG(status.st_mode) or status.st_size != expected:
            raise StoreError(
                f"expected a plain file {path.name} of {expected} bytes in {path.parent}, "
                f"got {status.st_size} bytes; the store is damaged"
            )
        return MappedColumn(descriptor, dtype, rows, name)
    finally:
        os.close(descriptor)  # the mapping keeps its own
