"""Rows drawn ahead are fresh: each is handed out once, whatever threads, failures and forks do."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.statistics import FALSE_ALARM, uniform

from holdfast.data import pool as module
from holdfast.data.duckdb import DuckSource
from holdfast.data.open import open_source
from holdfast.data.pool import Pool, pool_rows
from holdfast.data.source import Block, distinct
from holdfast.errors import DataError, InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.subset import with_replacement
from holdfast.query.schema import Category, Integer, Real, Schema

ROWS = 1000


class Well:
    """Fills with serial numbers: a number that is seen twice was handed out twice."""

    def __init__(self) -> None:
        self._serial = itertools.count()
        self._lock = threading.Lock()
        self.broken = False
        self.fillings = 0
        self.filled = threading.Semaphore(0)
        self.drawn: list[int] = []

    def __call__(self, count: int) -> Block:
        with self._lock:
            self.fillings += 1
            if self.broken:
                raise DataError("expected a server, got none; ask again")
            serials = list(itertools.islice(self._serial, count))
            self.drawn += serials
        self.filled.release()
        return {"id": np.array(serials), "half": np.array(serials) / 2}


def ids(pool: Pool, count: int) -> list[int]:
    block = pool.take(["half", "id"], count)
    assert list(block) == ["half", "id"]
    assert len(block["id"]) == len(block["half"]) == count
    np.testing.assert_array_equal(block["half"] * 2, block["id"])
    return [int(i) for i in block["id"]]


def check_order() -> None:
    """One thread sees the fillings one after the other, row by row."""
    well = Well()
    pool = Pool(well, ROWS)
    seen = [i for count in (1, 7, 499, 500, 333, 1000, 1000, 0, 12) for i in ids(pool, count)]
    assert np.array_equal(seen, np.arange(len(seen)))


def check_threads() -> None:
    """Sixteen threads, and more rows than any one filling has."""
    well = Well()
    pool = Pool(well, ROWS)
    start = threading.Barrier(16)

    def work(turn: int) -> list[int]:
        start.wait()
        return [i for step in range(30) for i in ids(pool, (turn * 7 + step * 11) % 90 + 1)]

    with ThreadPoolExecutor(16) as threads:
        seen = [i for part in threads.map(work, range(16)) for i in part]
    assert len(seen) == len(set(seen)) == sum((t * 7 + s * 11) % 90 + 1 for t in range(16) for s in range(30))
    assert set(seen) <= set(well.drawn)


def check_failure() -> None:
    """A filling that fails is told when rows run out, never papered over, and the next call may succeed."""
    well = Well()
    pool = Pool(well, ROWS)
    seen = ids(pool, 400)
    well.broken = True
    seen += ids(pool, 150)  # now a filling fails behind the scenes
    seen += ids(pool, 300)
    for count in (151, 1, 900):
        with pytest.raises(DataError, match="expected a server"):
            ids(pool, count)
    well.broken = False
    for _ in range(20):
        seen += ids(pool, 150)
    assert len(seen) == len(set(seen))


def check_fork() -> None:
    """A forked child uses none of the rows that its parent holds."""
    finished = subprocess.run([sys.executable, "-c", FORK, *twin_in_child], env=environment(), timeout=60)
    assert finished.returncode == 0


twin_in_child: list[str] = []
FORK = """
import os, sys, warnings
import numpy as np
from holdfast.data.pool import Pool
warnings.simplefilter("ignore")
if sys.argv[1:]:
    Pool._own = lambda self: self._supply
pool = Pool(lambda count: {"id": np.frombuffer(os.urandom(8 * count), np.int64)}, 1000)
pool.take(["id"], 100)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, pool.take(["id"], 300)["id"].tobytes())
    os._exit(0)
os.wait()
child = np.frombuffer(os.read(read, 2400), np.int64)
parent = pool.take(["id"], 300)["id"]
sys.exit(len(np.intersect1d(child, parent)) > 0 or len(child) != 300)
"""


def environment() -> dict[str, str]:
    folder = Path(module.__file__).parents[2]
    return {**os.environ, "PYTHONPATH": str(folder)}


CHECKS: list[Callable[[], None]] = [check_order, check_threads, check_failure, check_fork]


@pytest.mark.parametrize("check", CHECKS)
def test_rows_are_used_once(check: Callable[[], None]) -> None:
    check()


class NeverCutsOff(module._Supply):
    """Hands out rows and keeps them."""

    def cut(self, count: int) -> list[Block]:
        before = list(self._blocks)
        pieces = super().cut(count)
        self._blocks.clear()
        self._blocks.extend(before)
        self.level = sum(map(module._length, before))
        return pieces


class RunsInCircles(module._Supply):
    """Puts rows that were used at the end."""

    def cut(self, count: int) -> list[Block]:
        pieces = super().cut(count)
        for piece in pieces:
            self.add(piece)
        return pieces


class NoLock:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def notify_all(self) -> None: ...

    def wait_for(self, ready: Callable[[], bool]) -> None:
        while not ready():
            time.sleep(0.001)


class Unlocked(module._Supply):
    """Looks first and cuts later."""

    __slots__ = ()

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.changed = NoLock()  # type: ignore[assignment]

    def cut(self, count: int) -> list[Block]:
        before = list(self._blocks)
        time.sleep(0.0005)
        pieces = super().cut(count)
        if before and pieces:
            length = min(module._length(pieces[0]), module._length(before[0]))
            pieces[0] = {name: codes[:length] for name, codes in before[0].items()}
        return pieces


@pytest.mark.parametrize("twin", [NeverCutsOff, RunsInCircles, Unlocked])
def test_a_pool_that_reuses_rows_is_caught(twin: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_Supply", twin)
    monkeypatch.setattr(threading, "excepthook", lambda failure: None)
    caught = False
    for check in (check_order, check_threads, check_failure):
        try:
            check()
        except (AssertionError, pytest.fail.Exception, IndexError, ValueError):
            caught = True
            break  # a broken pool may also wait for ever; once caught it has told enough
    assert caught


def test_a_pool_that_survives_a_fork_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "twin_in_child", ["twin"])
    with pytest.raises(AssertionError):
        check_fork()


def test_refilled_before_it_runs_dry() -> None:
    well = Well()
    pool = Pool(well, ROWS)
    ids(pool, 499)
    assert well.fillings == 1
    ids(pool, 2)
    for _ in range(2):
        assert well.filled.acquire(timeout=60)
    assert well.fillings == 2


def test_more_rows_than_the_pool_holds_are_drawn_directly() -> None:
    well = Well()
    pool = Pool(well, ROWS)
    first, second = ids(pool, 3), ids(pool, 2500)
    assert not set(first) & set(second)


def test_a_failure_of_another_kind_is_told_without_its_message() -> None:
    def fill(count: int) -> Block:
        raise ValueError("secret value 4711")

    pool = Pool(fill, ROWS)
    for _ in range(2):
        with pytest.raises(DataError, match="ValueError") as caught:
            pool.take(["id"], 5)
        assert "4711" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_short_filling_is_refused() -> None:
    pool = Pool(lambda count: {"id": np.arange(count - 1)}, ROWS)
    for count in (5, 5000):
        with pytest.raises(DataError, match="another number"):
            pool.take(["id"], count)


def test_closed() -> None:
    pool = Pool(Well(), ROWS)
    ids(pool, 10)
    pool.close()
    pool.close()
    for count in (10, 5000):
        with pytest.raises(DataError, match="closed"):
            pool.take(["id"], count)


def test_closing_wakes_those_who_wait() -> None:
    begun, release = threading.Event(), threading.Event()

    def fill(count: int) -> Block:
        begun.set()
        assert release.wait(60)
        return {"id": np.arange(count)}

    pool = Pool(fill, ROWS)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.take, ["id"], 5)
        assert begun.wait(60)
        pool.close()
        release.set()
        with pytest.raises(DataError, match="closed"):
            waiting.result(60)


def test_size() -> None:
    narrow, wide = Schema(a=Integer(0, 9)), Schema.from_mapping({f"c{i}": Real(0, 1) for i in range(1000)})
    assert pool_rows(narrow, 10) == 2**16
    assert pool_rows(narrow, 10**6) == 10**6
    assert pool_rows(narrow, 10**10) == 2**22
    assert pool_rows(narrow, 10**10, most=500) == 500
    assert pool_rows(wide, 10**10) == 2**26 // 8000


SCHEMA = Schema(id=Integer(0, 10**6), kind=Category("a", "b"))


def parquet(folder: Path, rows: int, files: int = 1) -> DuckSource:
    for file, part in enumerate(np.array_split(np.arange(rows), files)):
        kinds = pa.array(["a" if i % 2 else "b" for i in part])
        pq.write_table(pa.table({"id": part, "kind": kinds}), folder / f"{file}.parquet", row_group_size=777)
    source = open_source(folder, SCHEMA, in_memory=False)
    assert isinstance(source, DuckSource)
    return source


@pytest.mark.parametrize(("rows", "files"), [(1, 1), (2, 2), (1000, 3), (4321, 1)])
def test_a_pass_keeps_order_and_repeats(tmp_path: Path, rows: int, files: int) -> None:
    source = parquet(tmp_path, rows, files)
    for count in (0, 1, 17, 3000):
        drawn = source.draw(["kind", "id"], count, ReplayedBits(5))
        expected = with_replacement(rows, count, ReplayedBits(5))
        np.testing.assert_array_equal(drawn["id"], expected)
        np.testing.assert_array_equal(drawn["kind"], (expected + 1) % 2)
    source.close()


@pytest.mark.parametrize(
    ("rows", "count"), [(1, 5), (7, 0), (7, 100), (10**6, 1000), (2**62, 1000), (2**60, 3)]
)
def test_distinct_ids(rows: int, count: int) -> None:
    ids = np.random.default_rng(count).integers(0, rows, count)
    wanted, places = distinct(ids, rows)
    np.testing.assert_array_equal(wanted, np.unique(ids))
    np.testing.assert_array_equal(wanted[places], ids)


def uniformity(draw: Callable[[int], np.ndarray[Any, Any]], rows: int) -> float:
    """The smaller p-value: of single draws, and of pairs of neighbours."""
    first, second = draw(200 * rows), draw(200 * rows)
    pairs = (first[:-1] % 9) * 9 + first[1:] % 9
    cells = [
        sum(1 for i in range(rows) if i % 9 == a) * sum(1 for i in range(rows) if i % 9 == b)
        for a, b in itertools.product(range(9), repeat=2)
    ]
    assert rows % 9 == 0
    assert len(set(cells)) == 1
    both = np.concatenate([first, second])
    return min(uniform(np.bincount(both, minlength=rows)), uniform(np.bincount(pairs[::2], minlength=81)))


def test_draws_are_uniform_and_independent(tmp_path: Path) -> None:
    rows = 693  # far from a power of two
    source = parquet(tmp_path, rows, 2)

    def pooled(count: int) -> np.ndarray[Any, Any]:
        parts = [source.draw(["id"], 3000)["id"] for _ in range(-(-count // 3000))]
        return np.concatenate(parts)[:count].astype(np.int64)

    def sorted_slices(count: int) -> np.ndarray[Any, Any]:
        return np.sort(pooled(count))

    def without_the_last(count: int) -> np.ndarray[Any, Any]:
        return pooled(count) % (rows - 9)

    assert uniformity(pooled, rows) > FALSE_ALARM
    assert uniformity(sorted_slices, rows) < FALSE_ALARM
    assert uniformity(without_the_last, rows) < FALSE_ALARM
    source.close()


def test_a_truncated_file_is_told_and_a_restored_one_read_again(tmp_path: Path) -> None:
    source = parquet(tmp_path, 5000)
    file = tmp_path / "0.parquet"
    whole, status = file.read_bytes(), file.stat()
    source.draw(["id"], 10)
    with file.open("r+b") as opened:
        opened.truncate(len(whole) // 2)
    left = pool_rows(SCHEMA, 5000) - 10
    assert len(source.draw(["id"], left)["id"]) == left  # drawn before; nobody has seen them
    with pytest.raises(DataError, match="changed"):
        source.draw(["id"], 10)
    with file.open("r+b") as opened:
        opened.write(whole)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert len(source.draw(["id"], 10)["id"]) == 10
    source.close()


def test_bad_requests(tmp_path: Path) -> None:
    source = parquet(tmp_path, 10)
    for count in (-1, 1.5, True, None, "3"):
        with pytest.raises(InputError):
            source.draw(["id"], count)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        source.draw(["nothing"], 5)
    with pytest.raises(InputError):
        source.draw([], 5)
    source.close()
