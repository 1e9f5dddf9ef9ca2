"""The one door through which randomness enters Holdfast.

`SystemBits` is what production uses; `ReplayedBits` repeats itself on purpose, for tests. Samplers take
`bits: Bits | None = None`, where None means the process-wide system source.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.errors import InputError
from holdfast.noise import words as _words
from holdfast.noise._replay import given
from holdfast.noise.words import UInt
from holdfast.process import current

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

_BLOCK = bytes(1 << 16)
_BYTES_PER_KEY = 1 << 24
_READY = 512


class Bits(Protocol):
    """A source of independent uniform bits."""

    def below(self, n: int) -> int:
        """A uniform integer of 0..n-1, for any positive n."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` uniform 64-bit words, in a fresh array which the caller may overwrite."""
        ...

    def chunks(self, count: int, width: int) -> UInt:
        """`count` uniform `width`-bit integers, 1 <= width <= 64, in a fresh array."""
        ...

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        """`count` uniform integers of 0..n-1, for 1 <= n <= 2**63."""
        ...


class SystemBits:
    """Operating-system entropy, stretched by AES-256 in counter mode. Safe under threads and forks.

    Guarantee: no two processes share a stream. A stream belongs to one process (`holdfast.process`); in any
    other it is dropped unread and replaced by one with a fresh key. Every 16 MiB the key is replaced by
    fresh entropy, so a stolen key opens no output older than that.
    Requires: AES-256 is a pseudorandom permutation (distinguishing advantage below 2**-88 per key beyond
    that), and os.urandom is sound.
    Cost: about 1 ns a word in bulk.
    """

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream = _Stream()

    def below(self, n: int) -> int:
        return _words.below(self._own().word, integer("n", n, most=None))

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._own().words(integer("count", count, 0))

    def chunks(self, count: int, width: int) -> UInt:
        width = integer("width", width, most=64)
        return _words.chunks(self._own().words, integer("count", count, 0), width)

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        n = integer("n", n, most=1 << 63)
        return _words.integers_below(self._own().words, n, integer("count", count, 0))

    def _own(self) -> _Stream:
        stream = self._stream
        if stream.process != current():
            stream = self._stream = _Stream()
        return stream


class _Stream:
    """One key stream of one process. Its lock is its own, so a fork never inherits a held one."""

    __slots__ = ("_encryptor", "_left", "_lock", "_ready", "process")

    def __init__(self) -> None:
        self.process = current()
        self._lock = threading.Lock()
        self._left = 0
        self._ready: list[int] = []

    def word(self) -> int:
        while True:
            try:
                return self._ready.pop()
            except IndexError:
                self._ready.extend(self.words(_READY).tolist())

    def words(self, count: int) -> NDArray[np.uint64]:
        out = np.empty(count, dtype=np.uint64)
        view = out.data.cast("B")
        with self._lock:
            for start in range(0, 8 * count, len(_BLOCK)):
                part = view[start : start + len(_BLOCK)]
                if self._left < len(part):
                    self._encryptor = _keystream(_fresh_key())
                    self._left = _BYTES_PER_KEY
                self._encryptor.update_into(memoryview(_BLOCK)[: len(part)], part)
                self._left -= len(part)
        return out


class ReplayedBits:
    """A source that repeats itself: from a seed, or from a list of choices. For tests only.

    With `choices`, every integer that a sampler asks for is the next one of the list. Refuses to be made
    where the environment says HOLDFAST_ENV=production, because predictable noise is no noise.
    """

    __slots__ = ("_choices", "_encryptor")

    def __init__(self, seed: int | None = None, *, choices: Iterable[int] | None = None) -> None:
        if os.environ.get("HOLDFAST_ENV") == "production":
            raise InputError(
                "expected real randomness, got ReplayedBits while HOLDFAST_ENV=production; leave bits out"
            )
        if (seed is None) == (choices is None):
            raise InputError("expected either seed or choices, got both or neither; give exactly one")
        self._choices: Iterator[int] | None = None if choices is None else iter(choices)
        if seed is not None:
            text = str(integer("seed", seed, 0, most=None)).encode()
            self._encryptor = _keystream(hashlib.sha256(b"holdfast replay " + text).digest())

    def below(self, n: int) -> int:
        n = integer("n", n, most=None)
        if self._choices is not None:
            return self._next(n)
        return _words.below(lambda: int(self.words(1)[0]), n)

    def words(self, count: int) -> NDArray[np.uint64]:
        count = integer("count", count, 0)
        if self._choices is not None:
            return np.array([self._next(1 << 64) for _ in range(count)], dtype=np.uint64)
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype=np.uint64).copy()

    def chunks(self, count: int, width: int) -> UInt:
        width = integer("width", width, most=64)
        if self._choices is not None:
            values = [self._next(1 << width) for _ in range(integer("count", count, 0))]
            return np.array(values, dtype=_words.container(width))
        return _words.chunks(self.words, integer("count", count, 0), width)

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        n = integer("n", n, most=1 << 63)
        if self._choices is not None:
            return np.array([self._next(n) for _ in range(integer("count", count, 0))], dtype=np.int64)
        return _words.integers_below(self.words, n, integer("count", count, 0))

    def _next(self, n: int) -> int:
        assert self._choices is not None
        value = next(self._choices, None)
        if value is None:
            raise InputError("expected more choices, got the end of the list; give ReplayedBits a longer one")
        if not 0 <= value < n:
            raise InputError(
                f"expected a choice in 0..{n - 1}, got {value}; the list does not fit the sampler"
            )
        return value


_system = SystemBits()


def system_bits() -> Bits:
    """The process-wide source of the operating system's randomness; in a test, what it replays instead."""
    replayed = given()
    return _system if replayed is None else replayed


def source(bits: Bits | None) -> Bits:
    """The given source, or the system's where none is given."""
    return system_bits() if bits is None else bits


def _fresh_key() -> bytes:
    return os.urandom(32)


def _keystream(key: bytes) -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Every key is used for one stream only, so the counter may start at zero.
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
