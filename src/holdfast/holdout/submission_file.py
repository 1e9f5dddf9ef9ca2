"""Predictions in a file: under a folder that the owner declared, rows matched by their ids."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DataError, InputError
from holdfast.holdout.file_column import read_column

MOST_BYTES = 1 << 31
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Without waiting for who writes to a pipe."""


class SubmissionFolder:
    """Where predictions may be read from, and the ids of the holdout's rows in order.

    Guarantee: no file outside the folder is opened, neither by "..", nor by an absolute path, nor by a symbolic link,
    whoever changes the folder meanwhile. What is read is one copy. With `ids` a file has one line for each id, in any
    order, and no other; without, one prediction for each row, in order.
    """

    def __init__(self, folder: Path | str, ids: NDArray[Any] | None = None) -> None:
        self.folder = Path(folder).resolve()
        if not self.folder.is_dir():
            raise InputError(f"expected a folder for files of predictions, got {self.folder}; make it")
        self.ids = None if ids is None else ids.astype(np.str_)
        if self.ids is not None and len(np.unique(self.ids)) != len(self.ids):
            raise InputError("expected an id for each row, no two alike, got some twice; name another column")

    def read(self, name: str, *, column: str | None = None, id_column: str | None = None) -> NDArray[Any]:
        """The predictions of a file in the order of the holdout's rows; InputError or DataError for anything else.

        A .csv or .parquet file has a column of ids, `id_column` or "id", and one of predictions: `column`, or
        "prediction", or the only other one.
        """
        with self._copied(name) as path:
            if self.ids is None:
                return read_column(path, column)
            if path.suffix.lower() not in (".csv", ".parquet"):
                raise InputError(
                    f"expected a .csv or .parquet file with ids, got {path.name}; add a column of ids"
                )
            given = read_column(path, id_column or "id").astype(np.str_)
            said = _predictions(path, column, id_column or "id")
        return said[self._order(given)]

    @contextmanager
    def _copied(self, name: str) -> Iterator[Path]:
        """A copy of the file, which nobody else can change."""
        with tempfile.TemporaryDirectory() as own, os.fdopen(self._opened(name), "rb") as given:
            copy, size = Path(own) / Path(name).name, 0
            with copy.open("wb") as kept:
                while block := given.read(1 << 20):
                    size += len(block)
                    if size > MOST_BYTES:
                        raise InputError(
                            f"expected a file of at most {MOST_BYTES >> 20} MiB, got a larger one; round the numbers"
                        )
                    kept.write(block)
            yield copy

    def _opened(self, name: str) -> int:
        """A descriptor of the file, opened folder by folder and without following a link: what is checked is read."""
        if not isinstance(name, str) or "\0" in name or Path(name).is_absolute():
            raise InputError(
                "expected the name of a file below the declared folder, got another; leave out the folder"
            )
        folders = Path(name).parts[:-1]
        if ".." in Path(name).parts:
            raise _way_out()
        found = -1
        try:
            found = os.open(self.folder, _FOLDER)
            for part in (*folders, Path(name).name):
                above, found = found, -1
                try:
                    found = os.open(part, _FILE, dir_fd=above)
                finally:
                    os.close(above)
            if stat.S_ISREG(os.fstat(found).st_mode):
                return found
            os.close(found)
        except (FileNotFoundError, PermissionError):
            pass
        except OSError:
            raise _way_out() from None
        raise DataError("expected a file of predictions below the declared folder, got none of that name")

    def _order(self, given: NDArray[Any]) -> NDArray[np.int64]:
        """Where each of the holdout's ids is among these; InputError if some are missing, unknown or there twice."""
        assert self.ids is not None
        places = np.argsort(given, kind="stable")
        ordered = given[places]
        if len(np.unique(ordered)) != len(ordered):
            raise InputError("expected each id once, got some twice; drop the repeated lines")
        found = np.minimum(np.searchsorted(ordered, self.ids), max(0, len(ordered) - 1))
        known = int((ordered[found] == self.ids).sum()) if len(ordered) else 0
        if known < len(self.ids) or len(given) != len(self.ids):
            raise InputError(
                f"expected one line for each of {len(self.ids):,} ids, got {known:,} of them and "
                f"{len(given) - known:,} others; match the sample's ids"
            )
        return np.asarray(places[found], dtype=np.int64)


def _way_out() -> InputError:
    return InputError(
        "expected a file below the declared folder, got a way out of it; put the file itself there, no link"
    )


def _predictions(path: Path, column: str | None, id_column: str) -> NDArray[Any]:
    """The column that is named, the one called "prediction", or the only one beside the ids."""
    if column is not None:
        return read_column(path, column)
    try:
        return read_column(path, "prediction")
    except InputError:
        return read_column(path, besides=id_column)
