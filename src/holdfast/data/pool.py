"""Rows drawn ahead of the questions, for sources where one row costs as much as a pass over all of them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.data.source import Block, NoRows, checked_columns, new_fingerprint
from holdfast.errors import DataError, HoldfastError
from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.subset import with_replacement
from holdfast.process import current
from holdfast.query.dictionary import Words
from holdfast.query.schema import Schema

POOL_BYTES = 2**26
_MOST_ROWS, _LEAST_ROWS = 2**22, 2**16


class Pool:
    """Fresh rows in memory, cut off slice by slice.

    `fill(count)` draws `count` rows uniformly with replacement, in random order, with fresh randomness at
    every call and without looking at any question; several threads may call it at once. `rows` is how many it
    is asked for at a time. While less than half of that is left, the next filling runs in the background.

    Guarantee: a row that `fill` returned once is handed out at most once, whatever threads, failures and
    forks do; so every `take` is a fresh sample with replacement. What is handed out depends on the counts
    that were asked for and on nothing in the rows.
    Cost: a slice costs about 10 microseconds; the filling, divided by its rows, is paid behind the scenes.
    """

    def __init__(self, fill: Callable[[int], Block], rows: int) -> None:
        self._fill = fill
        self._rows = rows
        self._supply = _Supply()

    def take(self, columns: Sequence[str], count: int) -> Block:
        """`count` fresh rows, with the named columns.

        Raises DataError when the rows at hand do not suffice and filling fails; the next call tries again.
        """
        if count > self._rows:
            self._own().check_open()
            block = _checked(self._fill(count), count)
            return {name: block[name] for name in columns}
        supply = self._own()
        pieces: list[Block] = []
        with supply.changed:
            missing = count
            while True:
                supply.check_open()
                for piece in supply.cut(missing):
                    pieces.append(piece)
                    missing -= _length(piece)
                if missing == 0 and pieces:
                    break
                # What was cut for a draw that fails is lost: no row is ever put back.
                refill = self._begin(supply)
                supply.changed.wait_for(lambda refill=refill: refill.done)  # type: ignore[misc]
                if refill.failure is not None:
                    raise DataError(refill.failure)
            if 2 * supply.level < self._rows:
                self._begin(supply)
        if len(pieces) == 1:
            return {name: pieces[0][name] for name in columns}
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in columns}

    def close(self) -> None:
        """Drop all rows; a filling under way is dropped when it ends. Closing twice is allowed."""
        supply = self._own()
        with supply.changed:
            supply.close()

    def _own(self) -> _Supply:
        """This process's rows. A forked child starts empty: its parent will use the rows it inherited."""
        supply = self._supply
        if supply.process != current():
            supply = self._supply = _Supply(closed=supply.closed)
        return supply

    def _begin(self, supply: _Supply) -> _Refill:
        """The filling under way, or a new one. The caller holds the lock."""
        if supply.refill is None or supply.refill.done:
            refill = supply.refill = _Refill()
            # Not a daemon: Python would kill it at exit in the middle of an engine's code.
            worker = threading.Thread(target=self._work, args=(supply, refill), name="holdfast-pool")
            try:
                worker.start()
            except RuntimeError:
                refill.end("expected to start a thread that draws rows, got none; too many are running")
        return supply.refill

    def _work(self, supply: _Supply, refill: _Refill) -> None:
        block: Block = {}
        failure = None
        try:
            block = _checked(self._fill(self._rows), self._rows)
        except HoldfastError as error:
            failure = str(error)
        except BaseException as error:  # its message might quote a row, so only its kind is told
            failure = f"expected to draw rows ahead, got {type(error).__name__}; ask again"
        with supply.changed:
            if failure is None and not supply.closed:
                supply.add(block)
            refill.end(failure)
            supply.changed.notify_all()


class PooledSource(ABC):
    """What is alike in sources where one row costs as much as a pass: their draws come from a pool.

    See `Source`. Whoever inherits calls `_begin` when the number of rows is known.
    """

    _pool: Pool

    def __init__(self, schema: Schema) -> None:
        self.schema, self.fingerprint = schema, new_fingerprint()
        self.words: Mapping[str, Words] = {}

    def _begin(self, most: int = _MOST_ROWS) -> None:
        if self.rows == 0:
            raise NoRows
        names = tuple(self.schema)
        self._pool = Pool(
            lambda count: self._drawn(names, count, system_bits()), pool_rows(self.schema, self.rows, most)
        )

    @property
    @abstractmethod
    def rows(self) -> int: ...

    @abstractmethod
    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block: ...

    @abstractmethod
    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]: ...

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return self._blocks(checked_columns(columns, self.schema))

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        names = checked_columns(columns, self.schema)
        count = integer("count", count, 0)
        return self._pool.take(names, count) if bits is None else self._drawn(names, count, bits)

    def _drawn(self, names: tuple[str, ...], count: int, bits: Bits) -> Block:
        return self.gather(names, with_replacement(self.rows, count, bits))


class _Refill:
    """One filling: under way, done, or failed with a message."""

    __slots__ = ("done", "failure")

    def __init__(self) -> None:
        self.done = False
        self.failure: str | None = None

    def end(self, failure: str | None) -> None:
        self.done, self.failure = True, failure


class _Supply:
    """The unused rows of one process, and the lock that guards them."""

    __slots__ = ("_blocks", "changed", "closed", "level", "process", "refill")

    def __init__(self, *, closed: bool = False) -> None:
        self.process = current()
        self.closed = closed
        self.changed = threading.Condition()
        self.level = 0
        self.refill: _Refill | None = None
        self._blocks: deque[Block] = deque()

    def add(self, block: Block) -> None:
        self._blocks.append(block)
        self.level += _length(block)

    def cut(self, count: int) -> list[Block]:
        """At most `count` rows from the front; they are gone from here. One piece per block that is met."""
        pieces = []
        while self._blocks:
            block = self._blocks[0]
            length = min(_length(block), count)
            pieces.append({name: codes[:length] for name, codes in block.items()})
            self.level -= length
            count -= length
            if length == _length(block):
                self._blocks.popleft()
            else:
                self._blocks[0] = {name: codes[length:] for name, codes in block.items()}
            if count == 0:
                break
        return pieces

    def check_open(self) -> None:
        if self.closed:
            raise DataError("expected an open source, got a closed one; open the data again")

    def close(self) -> None:
        self.closed = True
        self._blocks.clear()
        self.level = 0
        self.changed.notify_all()


def pool_rows(schema: Schema, rows: int, most: int = _MOST_ROWS) -> int:
    """How many rows a pool over a table of `rows` rows draws at a time.

    A pass costs about the same however many rows it draws, so a large table gets a large pool: as many rows
    as it has itself, within 64 MiB of codes and `most`.
    """
    width = sum(schema[name].dtype.itemsize for name in schema)
    return max(1, min(max(rows, _LEAST_ROWS), most, POOL_BYTES // width))


def _length(block: Block) -> int:
    return len(next(iter(block.values())))


def _checked(block: Block, count: int) -> Block:
    """A filling of another length would have lost or gained rows somewhere."""
    if any(len(codes) != count for codes in block.values()):
        raise DataError("expected as many rows as were drawn, got another number; open the data again")
    return block
