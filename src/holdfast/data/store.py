"""Rows in a folder: one raw file per column, mapped into memory.

    people.hf/
        manifest.json       written last: format, version, schema, rows, fingerprint, checksums
        column-0000.bin     the codes of the first column, little-endian, nothing else
        column-0001.bin     ...

This is the layout for reading few rows of many: row i of a column lies at byte i times its width.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.data.frame import blocks, check_codes
from holdfast.data.manifest import Manifest, column_file, read_manifest
from holdfast.data.mapped import MappedColumn, take_rows
from holdfast.data.source import (
    Block,
    Measurement,
    checked_columns,
    checked_ids,
    draw_by_gather,
    totals_by_scan,
)
from holdfast.errors import DataError, StoreError
from holdfast.noise.bits import Bits
from holdfast.query.schema import Schema


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
        self._columns: dict[str, MappedColumn] = {
            name: _map_column(self._path, self._manifest, index, name)
            for index, name in enumerate(self._manifest.schema)
        }

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
    def fingerprint(self) -> str:
        return self._manifest.fingerprint

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return self._blocks(checked_columns(columns, self.schema))

    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]:
        chosen = [self._opened()[name] for name in names]
        codes = {name: column.codes for name, column in zip(names, chosen, strict=True)}
        ahead = 0
        for block in blocks(codes, names):
            # One block ahead, so that the disk works while the block before is added up.
            length = len(block[names[0]])
            for column in chosen:
                column.expect(ahead, ahead + 2 * length)
            ahead += length
            yield block

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        opened, names = self._opened(), checked_columns(columns, self.schema)
        return take_rows({name: opened[name] for name in names}, checked_ids(ids))

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        return draw_by_gather(self, columns, count, bits)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return totals_by_scan(self, measurement)

    def verify(self) -> None:
        """Read every byte: checksums as saved, codes within the declared ranges; `StoreError` if not.

        Cost: one pass over all files, about 1 s a GB.
        """
        opened = self._opened()
        for name, expected in zip(self.schema, self._manifest.checksums, strict=True):
            digest = hashlib.blake2b(digest_size=32)
            for block in self._blocks((name,)):
                digest.update(block[name].data)
            if digest.hexdigest() != expected:
                raise StoreError(
                    f"expected column {name!r} of {self._path} as it was saved, got different bytes; "
                    "the store is damaged: make it again from its origin"
                )
            try:
                for block in blocks({name: opened[name].codes}, (name,)):
                    check_codes(self.schema, name, block[name])
            except DataError as error:
                raise StoreError(f"{error}, in {self._path}") from None

    def close(self) -> None:
        self._columns = {}

    def _opened(self) -> dict[str, MappedColumn]:
        columns = self._columns
        if not columns:
            raise DataError(f"expected an open store, got a closed one; open {self._path} again")
        return columns


def _map_column(folder: Path, manifest: Manifest, index: int, name: str) -> MappedColumn:
    path = folder / column_file(index)
    try:
        # Links are not followed: a store given by somebody else must not reach outside its folder.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        raise StoreError(
            f"expected a readable file {path.name} in {folder}, got none; the store is damaged"
        ) from None
    try:
        status, expected = os.fstat(descriptor), manifest.column_bytes(name)
        if not stat.S_ISREG(status.st_mode) or status.st_size != expected:
            raise StoreError(
                f"expected a plain file {path.name} of {expected} bytes in {folder}, "
                f"got {status.st_size} bytes; the store is damaged"
            )
        dtype = manifest.schema[name].dtype.newbyteorder("<")
        return MappedColumn(descriptor, dtype, manifest.rows, name)
    finally:
        os.close(descriptor)  # the mapping keeps its own
