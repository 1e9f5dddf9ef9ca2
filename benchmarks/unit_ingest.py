"""Ingest of events in any order into a store of units: time, memory and disk.

A file is read, each event's unit found, all sorted by unit on disk, at most 20 events of each kept, and the store
written; in a process of its own. *Memory* is the most that the process held (VmHWM), mapped pages of the files that it
writes included; *disk* is the most that the folder held at once, with the file itself. The order is that of chance
(ten events a unit), or scattered by a multiplication (one event a unit).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.answers import goal

_MAKE = """
import sys
import duckdb
rows, units, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
person = f"i * 7919 % {units}" if rows == units else f"random() * {units}"
duckdb.sql("SET memory_limit = '2GB'; SET preserve_insertion_order = false")
duckdb.sql(
    f"COPY (SELECT CAST({person} AS BIGINT) AS person, CAST(random() * 999 AS INT) AS cost, "
    f"CAST(CAST(random() * 2 AS INT) AS VARCHAR) AS ward FROM range({rows}) AS t(i)) TO '{place}'"
)
"""
_INGEST = """
import json, re, sys, threading, time
from pathlib import Path
import holdfast as hf
from holdfast.data.unit_open import declared_units, ingest_units
place = Path(sys.argv[1])
held, done = [0], threading.Event()
def watch():
    while not done.wait(0.5):
        now = 0
        for file in place.parent.rglob("*"):
            try:
                now += file.stat().st_blocks * 512
            except OSError:
                pass
        held[0] = max(held[0], now)
watching = threading.Thread(target=watch)
watching.start()
schema = hf.Schema(cost=hf.Integer(0, 999), ward=hf.Category("0", "1", "2"))
start = time.perf_counter()
made = ingest_units(declared_units(place, schema, "person", 20), place.parent / "events.hf", bytes(16))
seconds = time.perf_counter() - start
peak = re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())  # of this program, not of its parent
done.set()
watching.join()
print(json.dumps({
    "units": made.rows, "events kept": int(made.events("rows").offsets[-1]), "s": round(seconds, 1),
    "processor s": round(time.process_time(), 1), "memory GB": round(int(peak[1]) / 1e6, 2),
    "disk GB": round(held[0] / 1e9, 2),
}))
"""  # fmt: skip


def rows(quick: bool = False) -> list[dict[str, object]]:
    """Seconds, gigabytes of memory and of disk."""
    n = 10**5 if quick else 10**8
    cases = [("parquet", n, n // 10), ("parquet", n, n), ("csv", n, n // 10)]
    found = [{"file": kind, "rows": many, **_ingested(kind, many, units)} for kind, many, units in cases]
    most = max(float(str(each["memory GB"])) for each in found)
    return [*found, goal("memory of an ingest", most, 2, "GB")]


def _ingested(kind: str, many: int, units: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"events.{kind}"
        _told(_MAKE, many, units, place)
        found: dict[str, object] = json.loads(_told(_INGEST, place))
    return found


def _told(program: str, *arguments: object) -> str:
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
