"""What a draw of 10 000 rows costs where rows are not in memory: each fetched for itself, or from the pool.

"by itself": ids are drawn and their rows fetched for one question (Parquet and Spark: a pass; PostgreSQL: random
places, and the pass it replaces). "slice" is what a question waits for while the pool has rows; "amortised" adds its
share of a filling, which happens in the background.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.stores import PERSON
from holdfast.data.files import parquet_source
from holdfast.data.frame import FrameSource
from holdfast.data.pool import Pool
from holdfast.data.postgres import PostgresSource
from holdfast.data.source import Source
from holdfast.data.spark import SparkSource
from holdfast.noise.bits import system_bits
from holdfast.noise.subset import with_replacement

DRAW = 10_000
COLUMNS = tuple(PERSON)


def rows(quick: bool, data: Path) -> list[dict[str, object]]:
    """One row per kind of source; servers that this machine lacks are named."""
    count = 10**5 if quick else 10**7
    data.mkdir(parents=True, exist_ok=True)
    sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))  # where real servers are started
    found = [_memory(count)]
    for kind, make in (("Parquet", _parquet), ("PostgreSQL", _postgres), ("Spark", _spark)):
        try:
            source = make(count, data)
        except (RuntimeError, ModuleNotFoundError) as missing:
            found.append({"source": kind, "not run": str(missing)})
            continue
        try:
            found += _measured(kind, source)
        finally:
            source.close()
    return found


def _memory(count: int) -> dict[str, object]:
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, PERSON[name].codes, count, dtype=PERSON[name].dtype) for name in PERSON}
    source = FrameSource(PERSON, codes)
    took = [_seconds(lambda: source.draw(COLUMNS, DRAW)) for _ in range(101)]
    return {"source": "arrays in memory", "n": count, "by itself ms": _ms(median(took))}


def _measured(kind: str, source: Any) -> list[dict[str, object]]:
    runs = 5
    ids = [with_replacement(source.rows, DRAW) for _ in range(runs)]
    passes = median(_seconds(lambda i=i: source.gather(COLUMNS, i)) for i in ids)
    alone = median(_seconds(lambda: source.draw(COLUMNS, DRAW, system_bits())) for _ in range(runs))
    pool: Pool = source._pool
    questions = 2 * pool._rows // DRAW
    waits: list[float] = []
    filled = median(_seconds(lambda: source.draw(COLUMNS, pool._rows, system_bits())) for _ in range(2))
    source.draw(COLUMNS, 1)
    while len(waits) < min(questions, 100):
        waits.append(_seconds(lambda: source.draw(COLUMNS, DRAW)))
    sliced = median(waits)
    row: dict[str, object] = {
        "source": kind,
        "n": source.rows,
        "by itself ms": _ms(alone),
        "pool rows": pool._rows,
        "filling ms": _ms(filled),
        "slice ms": _ms(sliced),
        "amortised ms": _ms(sliced + filled * DRAW / pool._rows),
        "gain": round(alone / (sliced + filled * DRAW / pool._rows), 1),
    }
    if kind == "PostgreSQL":
        row["a pass instead ms"] = _ms(passes)
    return [row]


def _parquet(count: int, data: Path) -> Source:
    import duckdb

    path = data / f"people-{count}.parquet"
    if not path.exists():
        columns = "(random() * 120)::INTEGER AS age, (random() * 50000)::INTEGER AS income"
        duckdb.sql(
            f"COPY (SELECT {columns}, CASE WHEN random() < 0.5 THEN 'no' ELSE 'yes' END AS smoker "
            f"FROM range({count})) TO '{path}'"
        )
    return parquet_source([path], PERSON)


def _postgres(count: int, data: Path) -> Source:
    from services import PostgresServer, postgres

    server: PostgresServer = postgres()
    server.execute(
        "DROP TABLE IF EXISTS people; CREATE TABLE people AS SELECT (random() * 120)::int AS age, "
        "(random() * 50000)::int AS income, CASE WHEN random() < 0.5 THEN 'no' ELSE 'yes' END AS smoker "
        f"FROM generate_series(1, {count})"
    )
    return PostgresSource(server.url, "people", PERSON)


def _spark(count: int, data: Path) -> Source:
    from services import spark

    frame = (
        spark(compiled=True)
        .range(count)
        .selectExpr(
            "CAST(id % 120 AS INT) AS age",
            "CAST(id % 50000 AS INT) AS income",
            "IF(id % 2 = 0, 'no', 'yes') AS smoker",
        )
    )
    return SparkSource(frame, PERSON)


def _seconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def _ms(seconds: float) -> float:
    return float(f"{seconds * 1e3:.3g}")
