"""Units with ten rows each beside a table of as many rows: `session.fraction` by votes, and the noise of counts.

*Rows*: a store of n rows, asked about one column. *Units*: a store of n units with 1 to 19 events each (ten on
average, 20 kept at most), written in order, asked about the unit's own column and about what its events say of it:
a draw reads all events of the units drawn. Texts are new each time, or (*known*) were planned before; all take turns,
the best turn's median counts, in processor time (the machine is shared). *One or two*: units with one or two events
each (two kept at most), of which there are ten times as many in the second store, written in order by a generator (1e8
of them in 1.3 GB of memory); disk is what that store takes, peak the memory of the whole process, whose mapped pages of
all stores count, or (*written*) of the process that wrote it.
*Bare* is NumPy's `take` of as many random rows or records, and nothing else: what reaching that many places costs.
On a machine that others load the ratios vary: between loads of 13 and 35 they were 2.0 to 3.7 for the first question
about events, 1.8 to 3.2 for known texts, and 1.2 to 1.7 for ten times the units (8 when their pages had been evicted);
alone, 2.1 to 2.4, 1.8 and 1.1.
*Noise* is the standard deviation of each of
1000 counts of events, 20 a unit, at (1, 1e-6), beside OpenDP's for the same contribution bound; and beside that of 600
counts of SmartNoise SQL, each with the epsilon at which its odometer says that 1000 are (1, 1e-6), where
HOLDFAST_SMARTNOISE names a Python that has it.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import holdfast as hf
from benchmarks import stores
from benchmarks.answers import WITHIN, ask, goal, session
from holdfast.data.source import new_fingerprint
from holdfast.data.unit_store import UnitStore, UnitWriter
from holdfast.ledger import MemoryLedger
from holdfast.query.unit_schema import Events, UnitSchema

VISITS = hf.Schema(cost=hf.Integer(0, 999), ward=hf.Category("surgery", "heart", "other"))
SCHEMA = UnitSchema("person", {"age": hf.Integer(0, 120)}, {"visits": Events(VISITS, 20)}, "people")
_BLOCK = 2**18
ROUNDS, CALLS = 5, 15
DRAWN = 14_000
"""About as many as a question draws."""


def rows(quick: bool = False, data: Path = Path("build/bench")) -> list[dict[str, object]]:
    """Milliseconds and their ratios; then noise beside OpenDP."""
    n = 10**5 if quick else 10**7
    plain, units = stores.store(data, n, stores.AGE), store(data, n)
    few, many_more = store(data, n, 2), store(data, 10 * n, 2)
    asked: dict[str, Any] = {
        name: session(source)  # type: ignore[arg-type]
        for name, source in {"rows": plain, "units": units, "few": few, "more": many_more}.items()
    }
    two = {"one or two events": "few", f"one or two, {10 * n:.0e} units": "more"}
    plans: dict[str, Callable[[], object]] = {
        "rows: age": lambda: ask(asked["rows"], next(stores.new_texts["one clause"])),
        "units: age": lambda: ask(asked["units"], next(stores.new_texts["one clause"])),
        "units: count(visits, ...) >= 3": lambda: ask(asked["units"], next(_texts)),
        "units: the same, known": _known(asked["units"], _texts),
        **{f"units: {name}": partial(_ask_next, asked[each], _small_texts) for name, each in two.items()},
    }
    for name, codes in _places(plain, units, few, many_more).items():
        plans[f"bare: {name}"] = partial(_taken, codes)
    times = _turns(plans, 1 if quick else ROUNDS)
    bare = times["rows: age"]
    held = dict.fromkeys(times, units) | {name: few for name in times if "one or two" in name}
    held |= {name: many_more for name in times if f"{10 * n:.0e}" in name}
    found: list[dict[str, object]] = [
        {
            "question": name,
            "n": held[name].rows,
            "events": int(held[name].events("visits").offsets[-1]) if "units" in name else 0,
            "ms": round(spent, 3),
            "against rows": round(spent / bare, 2),
        }
        for name, spent in times.items()
    ]
    for name in list(times)[1:4]:
        found.append(goal(f"{name}, against rows", times[name] / bare, 3, "x"))
    small, large = (f"units: {name}" for name in two)
    found.append(goal(f"{large}, against {n:.0e}", times[large] / times[small], 1.5, "x"))
    found.append(
        {
            "measured": f"store of {10 * n:.0e} units with one or two events, on disk",
            "value": sum(file.stat().st_blocks for file in _files(many_more)) * 512 / 1e9,
            "unit": "GB",
            "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }
    )
    found.append(_written(10 * n))
    found += _noises()
    return found


def _places(plain: Any, *stores: UnitStore) -> dict[str, Any]:
    """The one array that a question about each store reads: what its memory costs can be measured alone."""
    found = {"rows, 1 byte": plain._columns["age"].codes}
    for store in stores:
        records = store.events("visits").records
        assert records is not None
        many = "one or two" if records.codes.dtype.itemsize < 64 else "units"
        found[f"{many}, {records.codes.dtype.itemsize} bytes, {store.rows:.0e} units"] = records.codes
    return found


def _taken(codes: Any) -> object:
    return codes.take(np.random.default_rng().integers(0, len(codes), DRAWN))


def _known(asked: Any, texts: Iterator[str]) -> Callable[[], object]:
    """Asks what was planned before: as many texts as the turns need."""
    ready = list(itertools.islice(texts, (ROUNDS + 1) * CALLS))
    for text in ready:
        asked.estimate.fraction(text, within=WITHIN, mechanism="votes")
    return partial(_ask_next, asked, iter(ready))


def _ask_next(asked: Any, texts: Iterator[str]) -> object:
    return ask(asked, next(texts))


def _files(source: UnitStore) -> list[Path]:
    assert source.path is not None
    return list(source.path.iterdir())


def store(folder: Path, units: int, most: int = 20) -> UnitStore:
    """A store of `units` people, with 1 to 19 visits each (or one or two); 3 bytes a visit, 9 a person."""
    path = folder / f"people-visits-{units}{'' if most == 20 else f'-{most}'}.hf"
    schema = UnitSchema("person", SCHEMA.own, {"visits": Events(VISITS, most)}, "people")
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        rng = np.random.default_rng(units)
        with UnitWriter(path, schema, fingerprint=new_fingerprint()) as writer:
            offsets = np.zeros(1, np.int64)
            writer.append_offsets("visits", offsets)
            for first in range(0, units, _BLOCK):
                count = min(_BLOCK, units - first)
                lengths = rng.integers(1, max(most, 3), count)
                ends = offsets[-1] + np.cumsum(lengths)
                writer.append_units({"age": rng.integers(0, 121, count, dtype=np.uint8)}, count)
                events = {name: stores._codes(rng, VISITS, name, int(lengths.sum())) for name in VISITS}
                writer.append_events("visits", events)
                writer.append_offsets("visits", ends)
                offsets = ends
            writer.commit()
    return UnitStore(path)


def _new_texts() -> Iterator[str]:
    for cost, least in itertools.product(range(1, 999), range(1, 15)):
        yield f"count(visits, cost > {cost}) >= {least}"


_texts = _new_texts()
_small_texts = (f"count(visits, cost > {cost}) >= {least}" for cost in range(1, 999) for least in (1, 2))


def _turns(plans: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in plans}
    for turn in range(-1, rounds):
        for name, call in plans.items():
            each = []
            for _ in range(CALLS):
                start = time.thread_time()
                call()
                each.append((time.thread_time() - start) * 1e3)
            if turn >= 0:
                spent[name].append(median(each))
            gc.collect()
    return {name: min(turns) for name, turns in spent.items()}


_WRITE = """
import re, sys, time
from pathlib import Path
from benchmarks.units import store
start = time.perf_counter()
written = store(Path(sys.argv[2]), int(sys.argv[1]), 2)
seconds = time.perf_counter() - start
peak = re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())  # of this program, not of its parent
print(written.rows, seconds, int(peak[1]) / 1e6)
"""


def _written(units: int) -> dict[str, object]:
    """Units with one or two events in their order, from a generator into a store, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        _, seconds, memory = _told(_WRITE, units, folder)
    return {
        "measured": f"{units:.0e} units with one or two events, written in order",
        "value": seconds,
        "unit": "s",
        "peak GB": memory,
    }


def _told(program: str, rows: int, folder: str) -> tuple[int, float, float]:
    """Units, seconds and gigabytes, by a program."""
    run = subprocess.run(
        [sys.executable, "-c", program, str(rows), folder],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    units, seconds, memory = run.stdout.split()
    return int(units), float(seconds), float(memory)


def _noises() -> list[dict[str, object]]:
    people = {"person": np.arange(100), "age": np.zeros(100, np.int64)}
    visits = {"person": np.arange(100), "cost": np.arange(100)}
    schemas = {"people": hf.Schema(age=hf.Integer(0, 120)), "visits": hf.Schema(cost=hf.Integer(0, 999))}
    table = hf.open(
        {"people": people, "visits": visits},
        schemas,
        unit="person",
        rows_per_unit={"visits": 20},
        ledger=MemoryLedger(),
    )
    opened = table.session(epsilon=1.0, delta=1e-6, queries=1000, only="gaussian", target="table")
    ours = math.sqrt(opened.estimate.count("visits.cost > 3").noise_parameter)
    found: list[dict[str, object]] = [
        {"measured": "noise of 1000 counts of events, holdfast", "value": ours, "unit": "events"}
    ]
    try:
        found.append({"measured": "the same, OpenDP", "value": _opendp(), "unit": "events"})
    except ModuleNotFoundError:
        found.append({"measured": "the same, OpenDP", "value": "not installed"})
    if os.environ.get("HOLDFAST_SMARTNOISE"):
        script = Path(__file__).resolve().parent.parent / "evidence" / "unit_counts_smartnoise.py"
        command = [os.environ["HOLDFAST_SMARTNOISE"], str(script), "600"]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        found.append({"measured": "the same, SmartNoise SQL, of 600", "value": told["sd"], "unit": "events"})
    return found


def _opendp() -> float:
    """The least scale of OpenDP's Gaussian noise for 1000 counts together, each moved by 20, in its zCDP accounting."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)

    def private(scale: float) -> bool:
        # One count of 1/sqrt(1000) of the noise loses in zCDP what 1000 counts do.
        each = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale / math.sqrt(1000)))
        return bool(each.map(20).epsilon(1e-6) <= 1.0)

    low, high = 20.0, 1e6
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if private(middle) else (middle, high)
    return high
