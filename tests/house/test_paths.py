"""The paths of docs/house.md are the ones that are taken: every hop, in its order, and no row before the charge."""

from __future__ import annotations

import functools
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from gateway import running

import holdfast as hf
from holdfast.cli import main
from holdfast.desk import Desk
from holdfast.holdout import ReusableHoldout

PAGE = Path(__file__).resolve().parents[2] / "docs" / "house.md"
SOURCES = f"{Path(hf.__file__).parent}/"
HOP = re.compile(r"\d+\. `([\w/]+\.py: [\w.]+)` (.+)")
COMMITS, READS = "**commits the charge**", "**reads rows**"
READING = re.compile(r"data/\w+\.py: \w+\.(scan|gather|draw|totals)|holdout/labels\.py: Labels\.take")
"""What reaches rows: the methods of every source, and the labels of a holdout."""


@dataclass(frozen=True)
class Hop:
    """A function, as `room/file.py: name`, and what it does there."""

    function: str
    words: str


def paths_in(page: str) -> dict[str, list[Hop]]:
    """The lists of the section, by the words before their first comma."""
    section = page.partition("\n## The paths\n")[2].partition("\n## ")[0]
    found: dict[str, list[Hop]] = {}
    title = ""
    for line in section.splitlines():
        hop = HOP.fullmatch(line)
        if hop is not None:
            found.setdefault(title, []).append(Hop(*hop.groups()))
        elif line:
            title = line.partition(",")[0]
    return found


PATHS = paths_in(PAGE.read_text())


class Trace:
    """The functions of the package, as they are entered and left for the first time, in whatever thread."""

    def __init__(self) -> None:
        self.entered: dict[str, int] = {}
        self.left: dict[str, int] = {}
        self._on, self._clock = False, count(1)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Threads that are started from now on are heard as well, as soon as something is `taken`."""
        before, before_in_threads = sys.getprofile(), threading.getprofile()
        sys.setprofile(self._hear)
        threading.setprofile(self._hear)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before_in_threads)  # type: ignore[arg-type]

    def taken(self, path: Callable[[], object]) -> None:
        """Take the path."""
        self._on = True
        try:
            path()
        finally:
            self._on = False

    def _hear(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self._on and event in ("call", "return") and code.co_filename.startswith(SOURCES):
            times = self.entered if event == "call" else self.left
            times.setdefault(
                f"{code.co_filename.removeprefix(SOURCES)}: {code.co_qualname}", next(self._clock)
            )

    def strays_from(self, path: list[Hop]) -> list[str]:
        """Hops that are not entered at all, or before the one that stands before them."""
        found, last = [], 0
        for hop in path:
            time = self.entered.get(hop.function, 0)
            if time <= last:
                found.append(hop.function)
            last = max(last, time)
        return found

    def too_early(self, commit: str) -> list[str]:
        """What reads rows before `commit` has ended."""
        end = self.left.get(commit, sys.maxsize)
        return [name for name, time in self.entered.items() if READING.fullmatch(name) and time < end]


def table(rows: int) -> hf.Table:
    draw = np.random.default_rng(rows)
    columns = {"age": draw.integers(0, 100, rows), "smoker": draw.random(rows) < 0.3}
    return hf.open(columns, hf.Schema(age=hf.Integer(0, 99), smoker=hf.Boolean()))


def question(trace: Trace, rows: int = 4000) -> None:
    session = table(rows).session(rho=1.0)
    trace.taken(lambda: session.mean("age", "smoker", rho=0.1))


def http_ask(trace: Trace) -> None:
    with running({"people": table(5000)}) as started:

        def ask(within: float) -> None:
            reply = httpx.post(
                f"{started.url}/v1/datasets/people/ask",
                json={"kind": "fraction", "where": "age > 3", "within": within},
                headers={"Authorization": f"Bearer {started.analyst}"},
                timeout=60,
            )
            assert reply.status_code == 200, reply.text

        ask(0.2)
        trace.taken(lambda: ask(0.1))


def look(trace: Trace) -> None:
    labels = np.random.default_rng(1).integers(0, 2, 5000)
    holdout = ReusableHoldout(labels, queries=20, mode="gaussian")
    trace.taken(lambda: holdout.score(1 - labels))


def weights_question(trace: Trace) -> None:
    session = table(6000).session(rho=50.0, target="table")
    trace.taken(
        lambda: session.multiplicative_weights(["smoker"], queries=100, within=0.2).fraction("smoker")
    )


def ingest(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as place:
        data, schema, store = (Path(place) / name for name in ("people.csv", "people.toml", "people.hf"))
        data.write_text("age,smoker\n" + "".join(f"{age},{age % 2 == 0}\n" for age in range(50)))
        schema.write_text(hf.Schema(age=hf.Integer(0, 99), smoker=hf.Boolean()).to_toml())
        command = ["ingest", str(data), str(store), "--schema", str(schema)]
        trace.taken(lambda: CliRunner().invoke(main, command, catch_exceptions=False))


TAKEN: dict[str, Callable[[Trace], None]] = {
    "A question": question,
    "An HTTP ask": http_ask,
    "A holdout's look": look,
    "A weights question": weights_question,
    "An ingest": ingest,
}
FREE = {"An ingest"}
"""What tells nobody anything, and charges nothing."""


@functools.cache
def traced(name: str) -> Trace:
    trace = Trace()
    with trace.listening():
        TAKEN[name](trace)
    return trace


def test_every_path_of_the_page_is_taken() -> None:
    assert set(PATHS) == set(TAKEN)
    assert all(5 <= len(path) <= 10 for path in PATHS.values())


@pytest.mark.parametrize("name", TAKEN)
def test_a_path_goes_as_the_page_says(name: str) -> None:
    assert traced(name).strays_from(PATHS[name]) == []


@pytest.mark.parametrize("name", [name for name in TAKEN if name not in FREE])
def test_no_row_is_read_before_the_charge_is_committed(name: str) -> None:
    path = PATHS[name]
    (commit,) = (place for place, hop in enumerate(path) if COMMITS in hop.words)
    reads = [place for place, hop in enumerate(path) if READS in hop.words]
    assert reads and commit < min(reads)
    trace = traced(name)
    assert any(READING.fullmatch(function) for function in trace.entered)
    assert trace.too_early(path[commit].function) == []


def test_an_ingest_reads_and_charges_nothing() -> None:
    assert not any(COMMITS in hop.words for name in FREE for hop in PATHS[name])
    for name in FREE:
        assert not any(re.search(r"\breserve$", function) for function in traced(name).entered)


@pytest.mark.parametrize("name", TAKEN)
def test_two_hops_in_the_wrong_order_are_caught(name: str) -> None:
    """The broken twin of every list: each pair of neighbours changes places."""
    path = PATHS[name]
    for place in range(len(path) - 1):
        swapped = [*path[:place], path[place + 1], path[place], *path[place + 2 :]]
        assert traced(name).strays_from(swapped) == [path[place].function]


@pytest.mark.parametrize("name", TAKEN)
def test_a_function_that_is_not_there_is_caught(name: str) -> None:
    path = PATHS[name]
    for gone in ("session/session.py: Session.nowhere", "nowhere.py: nothing"):
        for place in range(len(path) + 1):
            assert traced(name).strays_from([*path[:place], Hop(gone, ""), *path[place:]]) == [gone]


def test_a_desk_that_reads_before_it_is_paid_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the rows are fetched already while the ledger is asked."""
    pay = Desk.pay

    def hasty(desk: Desk, *arguments: object) -> object:
        list(desk._source.scan(["age"]))
        return pay(desk, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Desk, "pay", hasty)
    trace = Trace()
    with trace.listening():
        question(trace, rows=7000)
    assert trace.strays_from(PATHS["A question"]) == []
    assert trace.too_early("ledger/memory.py: MemoryLedger.reserve") == ["data/frame.py: FrameSource.scan"]
