"""The whole `session.fraction` call by votes, at the same accuracy, on tables of 1e5 to 1e9 rows.

The call parses, plans, charges, draws, evaluates, releases and stores. *New text*: never seen before. *Known
text*: parsed and planned before (by `estimate`), answered for the first time. *Bare*: as many row ids, NumPy
`take`, the condition by hand, and a count; no privacy. It is written twice: over one array for each column,
and over the store's records, where a row's columns lie side by side. A question about two columns or more
reads records, so *known - bare* is the difference to those. All take turns; each turn has a median of forty
calls (the best of five for Polars' scan of whole columns) and the best turn counts, so that a busy machine
slows all alike. The ledger is in memory, so that no disk is measured; SQLite with full sync has a row of its
own. The very first call has no page mapped.

*Fewest rows*: sessions for the population, opened for 4000 answers within .03, asked known texts. Their plan flips
votes as rarely as it may; beside it the same plan with a quarter of all votes flipped. *Older* is what the plan
before the leave-out theorem read (a quarter flipped, Theorems 9 and 11).
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import stores
from holdfast.data.manifest import PACKED_FILE, column_file
from holdfast.data.packed import record
from holdfast.data.store import StoreSource
from holdfast.ledger import Ledger, MemoryLedger, SqliteLedger
from holdfast.noise.subset import with_replacement
from holdfast.session.session import Session
from holdfast.session.table import Table
from holdfast.validity import fewest_votes

WITHIN = 0.03876
QUERIES = 10_000
"""Together with WITHIN: some 14,000 rows are read."""
WIDTH, MANY = 0.03, 4_000
"""A session for the population in which few rows are read."""

SIZES = (10**5, 10**6, 10**7, 10**8)
LARGEST = 10**9
ROUNDS, CALLS = 9, 40
Times = dict[tuple[str, int, str], float]


def rows(quick: bool = False, data: Path = Path("build/bench")) -> list[dict[str, object]]:
    """Microseconds by question and size; then the goals."""
    sizes, largest, rounds = ((10**5, 2 * 10**5), 4 * 10**5, 1) if quick else (SIZES, LARGEST, ROUNDS)
    tables = [("three clauses", n, stores.store(data, n, stores.PERSON)) for n in sizes]
    tables += [("one clause", n, stores.store(data, n, stores.AGE)) for n in (*sizes, largest)]
    first, times = _latencies(tables, rounds)
    found = [_row(question, source, first, times) for question, _, source in tables]
    for question, n, source in (tables[len(sizes) - 1], tables[-1]):
        found += _fewest(question, n, source, rounds, 0.1 if quick else WIDTH)
    for mode in ("new", "known"):
        ratio = times["one clause", largest, mode] / times["one clause", sizes[-2], mode]
        found.append(goal(f"{mode} text at n = {largest:.0e} against {sizes[-2]:.0e}", ratio, 4, "x"))
    at = tables[len(sizes) - 1]
    for mode, layout in product(("known", "new"), ("records", "columns")):
        over = times[at[0], at[1], mode] - times[at[0], at[1], f"bare, {layout}"]
        what = f"overhead above the bare count over {layout}, {mode} text, n = {at[1]:.0e}"
        found.append(goal(what, over, 150, "us"))
    found.append(goal(f"session.sample, n = {at[1]:.0e}", _samples(at[2], quick), 20_000, "/s", most=False))
    disk = _on_disk(at[2], quick)
    found.append({"measured": f"new text, SQLite ledger, n = {at[1]:.0e}", "value": disk, "unit": "us"})
    return found


def session(source: StoreSource, ledger: Ledger | None = None) -> Session:
    """A session whose budget and promise do not end during a benchmark."""
    table = Table(source, MemoryLedger() if ledger is None else ledger)
    return table.session(rho=1e6, queries=QUERIES, target="table")


def ask(asked: Session, text: str) -> Any:
    return asked.fraction(text, within=WITHIN, mechanism="votes")


def _latencies(tables: list[tuple[str, int, StoreSource]], rounds: int) -> tuple[Times, Times]:
    """Microseconds of the very first calls, and the best turn's."""
    first: Times = {}
    times: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for turn in range(-1, rounds):
        for question, n, source in tables:
            asked = session(source)
            for mode, call, count in _tasks(asked, source, question):
                # The first round maps pages and fills caches; only its first call is kept.
                spent = [_timed(call) for _ in range(count)]
                if turn < 0:
                    first[question, n, mode] = spent[0]
                else:
                    times[question, n, mode].append(median(spent) if count == CALLS else min(spent))
            gc.collect()
    return first, {key: min(turns) for key, turns in times.items()}


def _tasks(
    asked: Session, source: StoreSource, question: str
) -> Iterator[tuple[str, Callable[[], object], int]]:
    texts = stores.new_texts[question]
    yield "new", lambda: ask(asked, next(texts)), CALLS
    known = list(islice(texts, CALLS))
    for text in known:
        asked.estimate.fraction(text, within=WITHIN, mechanism="votes")
    left = iter(known)
    yield "known", lambda: ask(asked, next(left)), CALLS
    count = asked.estimate.fraction("age > 40", within=WITHIN, mechanism="votes").rows_read
    codes = mapped(source)
    yield "bare, columns", lambda: bare(codes, count), CALLS
    if source.packed:
        records = mapped_records(source)
        yield "bare, records", lambda: bare_records(records, count), CALLS
    if scan := _polars(codes, question):
        yield "polars", scan, 5


def _fewest(
    question: str, n: int, source: StoreSource, rounds: int, within: float
) -> list[dict[str, object]]:
    """Rows and microseconds of an answer: flipped as the plan says, and one in four; in turns, the best of them."""
    planned = Table(source, MemoryLedger()).session(within=within, queries=MANY)
    with patch("holdfast.planning.width_plan.sensible_flips", lambda rows: (Fraction(1, 4),)):
        quarter = Table(source, MemoryLedger()).session(within=within, queries=MANY)
    found = []
    times: dict[Session, list[float]] = {planned: [], quarter: []}
    for _, (asked, turns) in product(range(rounds), times.items()):
        texts = list(islice(stores.new_texts[question], CALLS))
        for text in texts:
            asked.estimate.fraction(text)
        turns.append(median([_timed(partial(asked.fraction, text)) for text in texts]))
    for asked, turns in times.items():
        plan = asked.estimate.fraction("age > 40")
        found.append(
            {
                f"{MANY:,} answers within {within:g}": f"flipped: {plan.recipe.flip}",
                "n": n,
                "rows read": plan.rows_read,
                "rows, older plan": fewest_votes(n, MANY, 0.05, within),
                "known us": round(min(turns)),
                "zCDP rho of all": f"{float(asked.limit):.1g}",
            }
        )
    return found


def mapped(source: StoreSource) -> list[np.ndarray]:
    """The columns as they lie in the store, in a mapping of their own."""
    paths = [source.path / column_file(index) for index in range(len(tuple(source.schema)))]
    return [_map(path, source.schema[name].dtype) for path, name in zip(paths, source.schema, strict=True)]


def mapped_records(source: StoreSource) -> np.ndarray:
    """The records as they lie in the store, in a mapping of their own."""
    return _map(source.path / PACKED_FILE, record(source.packed, source.schema))


@cache
def _map(path: Path, dtype: np.dtype[Any]) -> np.ndarray:
    """Mapped once, so that the first round alone pays for its pages."""
    return np.memmap(path, dtype, mode="r").view(np.ndarray)


def bare(codes: list[np.ndarray], count: int) -> int:
    """Draw, gather, compare, count: what any sampler has to do."""
    ids = with_replacement(len(codes[0]), count)
    drawn = [np.take(column, ids, mode="clip") for column in codes]
    chosen = drawn[0] > 40
    if len(drawn) == 3:
        chosen &= drawn[1] < 25_000
        chosen &= drawn[2] == 1
    return int(np.count_nonzero(chosen))


def bare_records(records: np.ndarray, count: int) -> int:
    """The same where a row is one record."""
    drawn = np.take(records, with_replacement(len(records), count), mode="clip")
    chosen = drawn["age"] > 40
    chosen &= drawn["income"] < 25_000
    chosen &= drawn["smoker"] == 1
    return int(np.count_nonzero(chosen))


def _polars(codes: list[np.ndarray], question: str) -> Callable[[], object] | None:
    try:
        pl: Any = import_module("polars")
    except ModuleNotFoundError:
        return None
    frame = pl.DataFrame(dict(zip(stores.PERSON, codes, strict=False)))
    chosen = pl.col("age") > 40
    if question == "three clauses":
        chosen = chosen & (pl.col("income") < 25_000) & (pl.col("smoker") == 1)
    return lambda: frame.select(chosen.sum())


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def _row(question: str, source: StoreSource, first: Times, times: Times) -> dict[str, object]:
    n = source.rows
    read = session(source).estimate.fraction("age > 40", within=WITHIN, mechanism="votes").rows_read
    row: dict[str, object] = {"question": question, "n": n, "rows read": read}
    for mode in ("new", "known", "bare, records", "bare, columns"):
        row[f"{mode} us"] = round(times[question, n, mode]) if (question, n, mode) in times else None
    row["known - bare"] = row["known us"] - (row["bare, records us"] or row["bare, columns us"])  # type: ignore[operator]
    row["very first call"] = round(first[question, n, "new"])
    row["polars us"] = (
        round(times[question, n, "polars"]) if (question, n, "polars") in times else "not installed"
    )
    return row


def goal(what: str, value: float, bound: float, unit: str, *, most: bool = True) -> dict[str, object]:
    """A row that says whether a goal was met."""
    met = value <= bound if most else value >= bound
    shown = f"{'<=' if most else '>='} {bound:,}"
    return {"measured": what, "value": value, "unit": unit, "goal": shown, "met": met}


def _samples(source: StoreSource, quick: bool) -> float:
    """Answers a second, charge included, over a hundred texts."""
    asked, texts = session(source), list(islice(stores.new_texts["three clauses"], 100))
    asked.sample(texts[0])
    rates = []
    for _ in range(1 if quick else 9):
        start = time.perf_counter()
        for text in texts * 20:
            asked.sample(text)
        rates.append(2_000 / (time.perf_counter() - start))
    return max(rates)


def _on_disk(source: StoreSource, quick: bool) -> float:
    """Microseconds a call when every charge and every answer is on disk before it goes on."""
    with tempfile.TemporaryDirectory(dir=source.path.parent) as folder:
        ledger = SqliteLedger(Path(folder) / "ledger.sqlite")
        asked, texts = session(source, ledger), stores.new_texts["three clauses"]
        spent = [_timed(lambda: ask(asked, next(texts))) for _ in range(5 if quick else 200)]
        ledger.close()
    return median(spent)


def plot(found: list[dict[str, Any]], folder: Path) -> list[str]:
    """Latency against n, for the question with one clause."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    lines = [row for row in found if row.get("question") == "one clause"]
    figure, axes = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    shown = {"new": "holdfast, new text", "known": "holdfast, known text"}
    shown["bare, columns"] = "bare gather and count"
    for mode, label in {**shown, "polars": "Polars, full scan"}.items():
        points = [
            (row["n"], row[f"{mode} us"] / 1e3) for row in lines if not isinstance(row[f"{mode} us"], str)
        ]
        if points:
            axes.loglog(*zip(*points, strict=True), "o-", label=label)
    axes.set(xlabel="rows in the table", ylabel="milliseconds an answer")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(folder / "benchmarks-latency.png", dpi=120)
    pyplot.close(figure)
    return ["benchmarks-latency.png"]
