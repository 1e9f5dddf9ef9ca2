"""Samplers and ready draws, kept per law, so that a parameter in use costs a look-up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.noise._replay import given
from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.histogram import Histogram
from holdfast.noise.law import Law
from holdfast.process import current

_LAWS = 128
_WORTH_A_LARGE_TABLE = 1 << 11
_MOST_READY = 1 << 12
_FEW = 16


class KeptDraws:
    """The samplers of one law, and draws of it made ahead for callers who want a few at a time.

    A small table, built in a third of a millisecond, serves a law that is asked rarely; a large one, built in
    up to ten, a law in use. Both have the same law exactly.
    Guarantee: a draw made ahead is handed out once, in the process that made it, and depends on nothing but
    the parameter. In a forked child the draws of the parent are dropped unread.
    """

    __slots__ = ("_drawn", "_large", "_lock", "_process", "_ready", "_small", "law", "used")

    def __init__(self, law: Law) -> None:
        self.law = law
        self._small: Histogram | None = None
        self._large: Histogram | None = None
        self._drawn = 0
        self.used = False
        self.forget()

    def forget(self) -> None:
        """Drop the draws made ahead."""
        self._lock = threading.Lock()
        self._ready: list[int] = []
        # Last: another thread that sees this process's sign must find none of the parent's draws.
        self._process = current()

    def one(self, bits: Bits | None = None) -> int:
        """One draw. Cost: below a microsecond once the law is warm, from the system's bits."""
        bits = given() if bits is None else bits
        if bits is not None:
            return int(self.many(1, bits)[0])
        if self._process != current():
            self.forget()
        while True:
            try:
                return self._ready.pop()  # a single bytecode on a list: no two threads get the same draw
            except IndexError:
                self._refill()

    def many(self, count: int, bits: Bits | None) -> NDArray[np.int64]:
        """`count` draws. With explicit bits the table depends on the count alone, so replays repeat."""
        bits = given() if bits is None else bits
        if bits is not None:
            return self._sampler(count).draw(count, bits)
        if count <= _FEW:
            return np.array([self.one() for _ in range(count)], dtype=np.int64)
        return self._fresh(count)

    def _fresh(self, count: int) -> NDArray[np.int64]:
        self._drawn += count
        return self._sampler(self._drawn).draw(count, system_bits())

    def _refill(self) -> None:
        with self._lock:
            if not self._ready:
                # One at first, then as many as were ever drawn: most parameters are used once.
                self._ready.extend(self._fresh(min(_MOST_READY, 1 + self._drawn)).tolist())

    def _sampler(self, count: int) -> Histogram:
        if count < _WORTH_A_LARGE_TABLE:
            if self._small is None:
                self._small = Histogram(self.law, width=32, guide=8, blocks=64)
            return self._small
        if self._large is None:
            self._large = Histogram(self.law)
        return self._large


class DrawCache:
    """The draws kept of the laws of one family that were used last, found by the family's parameter.

    `law` makes the law of a parameter or raises InputError; it is asked once for each parameter kept.
    """

    __slots__ = ("_kept", "_law", "_lock")

    def __init__(self, law: Callable[[Fraction | int], Law]) -> None:
        self._law = law
        self._kept: dict[tuple[int, int], KeptDraws] = {}
        self._lock = threading.Lock()
        # A bound method of self keeps self alive for ever, which is what a family in a module wants.
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Drop every draw made ahead; the tables hold no secret and stay."""
        self._lock = threading.Lock()
        for kept in self._kept.values():
            kept.forget()

    def of(self, parameter: Fraction | int) -> KeptDraws:
        """What is kept of this parameter. Cost: half a microsecond if it is kept."""
        # The pair is the key because hashing a Fraction costs a modular inverse.
        if type(parameter) is Fraction or type(parameter) is int:
            found = self._kept.get((parameter.numerator, parameter.denominator))
            if found is not None:
                found.used = True
                return found
        return self._add(parameter)

    def _add(self, parameter: Fraction | int) -> KeptDraws:
        law = self._law(parameter)
        exact = Fraction(parameter)
        with self._lock:
            kept = self._kept.setdefault((exact.numerator, exact.denominator), KeptDraws(law))
            while len(self._kept) > _LAWS:
                # The clock rule: whoever was used since the last round gets another.
                oldest = next(iter(self._kept))
                spared = self._kept.pop(oldest)
                if spared.used:
                    spared.used = False
                    self._kept[oldest] = spared
        return kept
