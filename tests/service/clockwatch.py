"""An attacker with a stop-watch: which of two tables does this reply come from?"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import numpy as np
from gateway import Running, running

import holdfast as hf
from holdfast.ledger import MemoryLedger
from service.hospital import BOUND, SCHEMAS, hospital
from service.site import shape

BUDGET = {"rho": 1e9}
SCHEMA = hf.Schema(word=hf.Category("no", "yes"), place=hf.Integer(0, 10**9))


def table(person: bool, owned: int) -> dict[str, Any]:
    """Rows of which one person owns half: all alike, or each with a long word of its own, which is slow to read."""
    import pyarrow as pa

    words = np.full(2 * owned, "no", dtype="U2").astype(object)
    if person:
        words[:owned] = [f"{i:0200d}" for i in range(owned)]
    return {"word": pa.array(words, pa.string()), "place": np.zeros(2 * owned, dtype=np.int64)}


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """A file in which runs are short to write and quick to read, and noise is neither."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=True)


@dataclass(frozen=True)
class Seen:
    """One request as the attacker sees it."""

    table: str
    seconds: float
    outside: tuple[object, ...]
    """Status, headers and the shape of the body."""


@contextmanager
def two_tables(quantum: float, owned: int) -> Iterator[Running]:
    """A gateway over two neighbours, as Parquet files; it holds replies back by `quantum` seconds, or not."""
    # As tables that do not fit into memory: the file is read for every question.
    opening = import_module("holdfast.data.open")
    with patch.object(opening, "MEMORY_BYTES", 0), running({}, quantum=quantum) as started:
        owner, analyst = started.person(started.owner), started.person(started.analyst)
        for key, person in (("first", False), ("second", True)):
            place = started.settings.roots[0] / f"{key}.parquet"
            write_parquet(place, table(person, owned))
            started.gateway.register(
                owner, key, place.name, SCHEMA, rows_per_unit=owned, name=key, budget=BUDGET, confidence=0.95,
                queries=None, target="table",
            )  # fmt: skip
            started.gateway.admit(owner, key, analyst.id, BUDGET)
        yield started


@contextmanager
def two_hospitals(owned: int) -> Iterator[Running]:
    """A gateway that replies at once, over two stores of units: somebody in them has no visits, or so many.

    There are enough people that the files have room for these."""
    with running({}, quantum=0.0) as started:
        owner, analyst = started.person(started.owner), started.person(started.analyst)
        for key, rows in (("first", 0), ("second", owned)):
            place = started.settings.roots[0] / f"{key}.hf"
            given: dict[str, Any] = {"unit": "person", "rows_per_unit": {"visits": BOUND}}
            hf.open(hospital(rows, 60_000), SCHEMAS, ledger=MemoryLedger(), **given).save(place).close()
            started.gateway.register(
                owner, key, place.name, None, rows_per_unit=1, name=key, budget=BUDGET, confidence=0.95,
                queries=None, target="table",
            )  # fmt: skip
            started.gateway.admit(owner, key, analyst.id, BUDGET)
        yield started


def watch(
    started: Running,
    requests: int,
    *,
    lines: int = 1,
    together: bool = False,
    asked: str = "word = 'yes' OR place > {}",
) -> list[Seen]:
    """Ask the tables in an order of chance, each time something new that reads every row.

    On several lines at once; `together` asks the same table on all of them, which makes it as busy as can be.
    """
    each = requests // lines
    with ThreadPoolExecutor(lines) as pool:
        parts = pool.map(lambda line: _watch(started, each, 0 if together else line, asked), range(lines))
        return [one for part in parts for one in part]


def _watch(started: Running, requests: int, seed: int, asked: str) -> list[Seen]:
    address, seen = urlsplit(started.url), []
    order = np.random.default_rng(seed).permutation(np.arange(requests) % 2)
    line = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=60)
    headers = {"Authorization": f"Bearer {started.analyst}", "Content-Type": "application/json"}
    for key in ["first", "second", *(("first", "second")[turn] for turn in order)]:
        where = asked.format(next(_NEW))
        body = json.dumps({"kind": "count", "where": where, "rho": 1e-3, "mechanism": "gaussian"})
        start = time.perf_counter()
        line.request("POST", f"/v1/datasets/{key}/ask", body, headers)
        reply = line.getresponse()
        text = reply.read()
        seconds = time.perf_counter() - start
        names = tuple(name for name, _ in reply.getheaders())
        seen.append(
            Seen(key, seconds, (reply.status, names, str(shape(json.loads(text)["answers"][0]["labels"]))))
        )
    line.close()
    return seen[2:]  # the first answer of a table opens its file


_NEW = count(1)


def auc(first: Sequence[float], second: Sequence[float]) -> float:
    """How well a number tells two samples apart: 0.5 not at all, 1 always; whichever is larger."""
    from scipy.stats import rankdata

    ranks = rankdata([*first, *second])
    mine = float(np.sum(ranks[: len(first)])) - len(first) * (len(first) + 1) / 2
    area = mine / (len(first) * len(second))
    return max(area, 1 - area)


def advantage(seen: Sequence[Seen], patience: int = 1) -> tuple[float, bool]:
    """The attacker's AUC by arrival times, and whether anything else differs between the tables.

    A patient attacker puts several questions to a table and takes the quickest reply: a busy machine only delays.
    """
    times = {key: [one.seconds for one in seen if one.table == key] for key in ("first", "second")}
    outside = {key: {one.outside for one in seen if one.table == key} for key in ("first", "second")}
    quickest = (
        [min(part[i : i + patience]) for i in range(0, len(part), patience)]
        for part in (times["first"], times["second"])
    )
    return auc(*quickest), outside["first"] != outside["second"]
