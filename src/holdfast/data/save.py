"""Write a store so that a crash at any moment leaves a whole one or none."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from holdfast.check import integer
from holdfast.data.manifest import (
    MANIFEST_NAME,
    PACKED_FILE,
    Manifest,
    column_file,
    files_of,
    read_manifest,
    words_files,
)
from holdfast.data.packed import pack, packed_columns, packed_events, record
from holdfast.data.source import Block, Codes, Source
from holdfast.data.store import StoreSource
from holdfast.errors import StoreError
from holdfast.query.dictionary import Words
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import UnitSchema

Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all)."""


class StoreWriter:
    """Collects blocks in a hidden folder beside the target; `commit` makes it the store.

    Guarantee: the target path holds the complete new store or what it held before. The columns and then the
    manifest reach the disk before one rename makes the folder visible under its name. When an existing store
    is replaced there are two renames; a crash between them leaves no store at the path, and the old one
    whole beside it (`.NAME.XXXX.old`).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: Schema,
        *,
        fingerprint: str,
        rows_per_unit: int = 1,
        overwrite: bool = False,
        words: Mapping[str, Words] | None = None,
    ) -> None:
        self.words = dict(words or {})
        self._words_files = words_files(schema)
        self._target = Path(os.path.abspath(path))
        self._schema = schema
        self._fingerprint = fingerprint
        self._rows_per_unit = integer("rows_per_unit", rows_per_unit, most=2**62 - 1)
        self._overwrite = overwrite
        self._rows = 0
        check_target(self._target, overwrite)
        token = secrets.token_hex(4)
        self._partial = self._target.parent / f".{self._target.name}.{token}.partial"
        self._old = self._target.parent / f".{self._target.name}.{token}.old"
        self._packed = _packed(schema)
        self._files: dict[str, int] = {}
        self._digests = {file: hashlib.blake2b(digest_size=32) for file in self._names()}

    def __enter__(self) -> Self:
        try:
            # The rows are somebody's secret: only the owner may enter until the owner says otherwise.
            os.mkdir(self._partial, 0o700)
            for file in self._names():
                self._files[file] = _create(self._partial / file)
        except OSError as error:
            self._abandon()
            raise self._failure(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._abandon()
        if isinstance(error, OSError):
            raise self._failure(error) from None

    @property
    def folder(self) -> Path:
        """Where the store is being written, before it gets its name."""
        return self._partial

    def append(self, block: Block) -> None:
        """Write the codes of the next rows."""
        for index, name in enumerate(self._schema):
            dtype = self._schema[name].dtype.newbyteorder("<")
            self._add(column_file(index), np.ascontiguousarray(block[name], dtype=dtype))
        if self._packed:
            self._add(PACKED_FILE, pack(block, record(self._packed, self._schema)))
        self._rows += len(block[name])

    def _add(self, file: str, codes: Codes) -> None:
        raw = codes.view(np.uint8).data
        self._digests[file].update(raw)
        _write(self._files[file], raw)

    def _names(self) -> list[str]:
        """The files of the rows."""
        texts = self._words_files.values()
        plain = [] if isinstance(self._schema, UnitSchema) else [PACKED_FILE]
        return [*files_of(self._schema, self._packed), *texts, *(plain if self._packed else [])]

    def commit(self) -> None:
        """Bring everything to the disk and give the folder its name."""
        self._finish()
        for name, file in self._words_files.items():
            texts = "".join(f"{text}\0" for text in self.words[name].texts)
            self._add(file, np.frombuffer(texts.encode(), dtype=np.uint8))
        for descriptor in self._files.values():
            os.fsync(descriptor)
        checksums = {file: digest.hexdigest() for file, digest in self._digests.items()}
        packed_checksum = checksums.pop(PACKED_FILE, "")
        manifest = Manifest(
            schema=self._schema,
            rows=self._rows,
            rows_per_unit=self._rows_per_unit,
            fingerprint=self._fingerprint,
            checksums=tuple(checksums[file] for file in files_of(self._schema, self._packed)),
            words=tuple(checksums[file] for file in self._words_files.values()),
            packed=self._packed,
            packed_checksum=packed_checksum,
        )
        descriptor = _create(self._partial / MANIFEST_NAME)
        try:
            _write(descriptor, memoryview(manifest.to_bytes()))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _sync_folder(self._partial)
        self._move_in()
        _sync_folder(self._target.parent)
        shutil.rmtree(self._old, ignore_errors=True)

    def _finish(self) -> None:
        """Whatever is left to write once all rows are."""

    def _move_in(self) -> None:
        replacing = self._overwrite and self._target.exists()
        if replacing:
            os.rename(self._target, self._old)
        try:
            os.rename(self._partial, self._target)
        except OSError:
            if replacing:
                os.rename(self._old, self._target)
            raise

    def _abandon(self) -> None:
        """Close and remove what is left; after a commit nothing is."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}
        shutil.rmtree(self._partial, ignore_errors=True)

    def _failure(self, error: OSError) -> StoreError:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            return StoreError(f"expected a free path for the store, got an existing one: {self._target}")
        return StoreError(
            f"expected to write the store {self._target}, got {os.strerror(error.errno or 0)}; choose another path"
        )


def save_store(
    source: Source,
    path: str | os.PathLike[str],
    *,
    rows_per_unit: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
    beside: Callable[[Path], None] | None = None,
) -> StoreSource:
    """Copy all rows of a source into a store and open it.

    `beside` may write further files into the folder before it gets its name (a ledger): they are there from
    the first moment that the store is.

    The store keeps the source's fingerprint: they are the same rows, and what was spent on them stays spent.
    An existing path is refused; with `overwrite` an existing store is replaced, anything else still refused.
    Cost: one scan; memory for one block.
    """
    names = tuple(source.schema)
    with StoreWriter(
        path,
        source.schema,
        fingerprint=source.fingerprint,
        rows_per_unit=rows_per_unit,
        overwrite=overwrite,
        words=source.words,
    ) as writer:
        done = 0
        for block in source.scan(names):
            writer.append(block)
            done += len(block[names[0]])
            if progress is not None:
                progress(done, source.rows)
        if beside is not None:
            beside(writer.folder)
        writer.commit()
    return StoreSource(path)


def check_target(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse, before any work, a path where the store cannot go."""
    target = Path(os.path.abspath(path))
    if not target.parent.is_dir():
        raise StoreError(
            f"expected an existing folder to put the store in, got {target.parent}; make it first"
        )
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise StoreError(
            f"expected a free path for the store, got an existing one: {target}; choose another, or overwrite it "
            "(overwrite=True, --overwrite)"
        )
    try:
        read_manifest(target)
    except StoreError:
        raise StoreError(
            f"expected a store to overwrite, got something else: {target}; remove it yourself"
        ) from None


def _packed(schema: Schema) -> tuple[str, ...]:
    """The columns that are also in records; those of events with their tables in front."""
    if not isinstance(schema, UnitSchema):
        return packed_columns(schema)
    tables = schema.events.items()
    return tuple(
        f"{table}.{name}" for table, each in tables for name in packed_events(each.schema, each.most)
    )


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _write(descriptor: int, raw: memoryview) -> None:
    while raw:
        raw = raw[os.write(descriptor, raw) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
