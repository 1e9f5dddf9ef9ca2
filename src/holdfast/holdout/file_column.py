"""One column of a file: labels or predictions."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import refusal
from holdfast.errors import DataError, InputError


def read_column(
    path: Path, name: str | None = None, *, besides: str | None = None, usual: str | None = None
) -> NDArray[Any]:
    """A column of a .npy, .csv, .txt or .parquet file: the one of this name, the only one (besides one), or where
    there are several the one of the usual name.

    Text that reads as numbers throughout becomes numbers. Pickled arrays are refused: they can run code.
    """
    if not path.is_file():
        raise DataError(f"expected a file of labels or predictions, got no file {path.name}; check the path")
    match path.suffix.lower():
        case ".npy":
            try:
                return np.asarray(np.load(path, allow_pickle=False))
            except (ValueError, OSError):
                raise DataError(
                    f"{path.name} is no plain array; save it with numpy.save, without objects"
                ) from None
        case ".txt":
            return _numbers(path.read_text().split())
        case ".csv":
            return _numbers(_csv(path, name, besides, usual))
        case ".parquet":
            return _parquet(path, name, besides, usual)
    raise InputError(f"expected a .npy, .csv, .txt or .parquet file, got {path.name}")


def _csv(path: Path, name: str | None, besides: str | None, usual: str | None) -> list[str]:
    with open(path, newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        place = _place(header, name, path, besides, usual)
        try:
            return [row[place] for row in rows if row]
        except IndexError:
            raise DataError(f"{path.name} has rows without column {header[place]!r}; mend the file") from None


def _parquet(path: Path, name: str | None, besides: str | None, usual: str | None) -> NDArray[Any]:
    import duckdb

    with duckdb.connect() as engine:
        table = engine.read_parquet(str(path))
        place = _place(table.columns, name, path, besides, usual)
        return np.asarray(table.select(f'"{table.columns[place]}"').fetchnumpy()[table.columns[place]])


def _place(header: list[str], name: str | None, path: Path, besides: str | None, usual: str | None) -> int:
    others = [column for column in header if column != besides]
    wanted = name or (others[0] if len(others) == 1 else usual)
    if wanted is not None and wanted in header:
        return header.index(wanted)
    advice = "name it with --column, or that of predictions with --predictions-column"
    raise refusal(f"one of {', '.join(header[:20])}", f"the column of {path.name}", name, advice)


def _numbers(texts: list[str]) -> NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            return np.array(texts, dtype=np.str_).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(texts, dtype=np.str_)
