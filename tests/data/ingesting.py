"""A process of its own that sorts events by unit into a store, and is killed on the way; for tests of crashes.

usage: ingesting.py PARQUET STORE PART [in-place]
With "in-place" it writes where the store will be: a broken twin.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import holdfast as hf
from holdfast.data.unit_build import LeftOut, units_on_disk
from holdfast.data.unit_open import declared_units
from holdfast.data.unit_store import UnitStore, UnitWriter

SCHEMA = hf.Schema(cost=hf.Integer(0, 999))
MOST = 20


def ingest(parquet: str, store: str, part: float = 2.0) -> UnitStore:
    def report(done: int, total: int) -> None:
        if done >= part * total:
            os.kill(os.getpid(), signal.SIGKILL)

    plan = declared_units(parquet, SCHEMA, "person", MOST)
    return units_on_disk(plan.schema, plan.sources(), bytes(16), LeftOut(), store, progress=report)


def in_place() -> None:
    begin = UnitWriter.__init__

    def broken(writer: Any, path: Any, *terms: Any, **named: Any) -> None:
        begin(writer, path, *terms, **named)
        writer._partial = writer._target

    UnitWriter.__init__ = broken  # type: ignore[method-assign]


if __name__ == "__main__":
    if sys.argv[4:] == ["in-place"]:
        in_place()
    ingest(sys.argv[1], sys.argv[2], float(sys.argv[3]))
