"""Which rows these are, whatever they are called, so that nobody counts them twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from holdfast.data.files import parquet_files
from holdfast.data.postgres_link import Link
from holdfast.data.postgres_table import find_table
from holdfast.errors import DataError

_SERVER = """
SELECT CAST(system_identifier AS text), (SELECT CAST(oid AS bigint) FROM pg_database WHERE datname = current_database())
FROM pg_control_system()
"""


def marks(place: str, relation: str | None = None) -> frozenset[str]:
    """What tells the rows at a place from others. Two places hold the same rows only if they share a mark.

    A file is marked by its path, with all links followed, and by device and inode, which hard links share; a folder
    by its own and by those of the files with rows in it. A table of PostgreSQL (`relation`) is marked by its server,
    its database and the name and number of each of its heaps, however it was reached. Copies share no mark.
    """
    return frozenset(_file_marks(place) if relation is None else _heap_marks(place, relation))


def _file_marks(place: str) -> Iterator[str]:
    try:
        for file in _files(Path(place)):
            status = os.stat(file)
            yield f"path {file.resolve()}"
            yield f"file {status.st_dev} {status.st_ino}"
    except OSError:
        raise DataError("expected a file or folder that can be read, got none") from None


def _files(place: Path) -> Iterator[Path]:
    yield place
    if place.is_dir():
        yield from place.glob("*.bin")  # the columns of a store
        yield from parquet_files(str(place))


def _heap_marks(url: str, relation: str) -> Iterator[str]:
    with closing(Link(url)) as link:
        found = find_table(link, relation)
        ((server, database),) = link.rows(_SERVER)
    here = f"{server} {database}"
    yield f"table {here} {found.relation.removeprefix('ONLY ')}"
    for name, number in found.heaps:
        yield f"table {here} {name.removeprefix('ONLY ')}"
        yield f"heap {here} {number}"
