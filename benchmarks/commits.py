"""How often SQLite commits: the disk's own pace, as it is or slowed down.

python -m benchmarks.commits FOLDER SECONDS     prints one-row commits a second
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent


def bare(folder: Path, seconds: float, environment: dict[str, str] | None = None) -> float:
    """One-row commits a second, each synced, in a process of its own."""
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks.commits", str(folder.resolve()), str(seconds)],
        cwd=HERE.parent, env=os.environ | (environment or {}), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(said.stdout)


def slower(folder: Path, milliseconds: float) -> dict[str, str] | None:
    """The environment of a process whose every sync takes so much longer; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder.resolve() / "slow_sync.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-o", library, HERE / "slow_sync.c", "-ldl"], check=True
    )
    return {"LD_PRELOAD": str(library), "SLOW_SYNC_MICROSECONDS": str(round(1000 * milliseconds))}


def _rate(folder: Path, seconds: float) -> float:
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        closing(sqlite3.connect(Path(place) / "bare.sqlite", isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, text TEXT)")
        start, count = time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < seconds:
            connection.execute("INSERT INTO facts (text) VALUES (?)", ("x" * 300,))
            count += 1
        return count / spent


if __name__ == "__main__":
    print(_rate(Path(sys.argv[1]), float(sys.argv[2])))
