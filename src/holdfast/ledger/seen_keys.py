"""Which keys a history has had, in sixteen bytes each."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_RECENT = 1 << 16


class SeenKeys:
    """Tells when a key comes a second time: at once, or when the keys of some time are put with the older ones.

    Two keys count as one if the first 128 bits of their BLAKE2b agree.
    Cost: sixteen bytes a key, in sorted runs that double, for a moment twice as many; and the keys of the last while as
    they are.
    """

    def __init__(self) -> None:
        self._recent: dict[bytes, int] = {}
        self._runs: list[NDArray[np.bytes_]] = []

    def add(self, key: str, place: int) -> int | None:
        """One more; the place of a key that was there before, if one is known."""
        mark = blake2b(key.encode(errors="backslashreplace"), digest_size=16).digest()
        if mark in self._recent:
            return place
        self._recent[mark] = place
        return self.settle() if len(self._recent) >= _RECENT else None

    def settle(self) -> int | None:
        """Put the latest with the older ones; the first place of one that was there before."""
        marks = np.frombuffer(b"".join(self._recent), dtype="S16")
        places = np.fromiter(self._recent.values(), dtype=np.int64, count=len(self._recent))
        repeated = [places[_among(marks, run)] for run in self._runs]
        self._recent = {}
        self._runs.append(np.sort(marks))
        while len(self._runs) > 1 and len(self._runs[-2]) <= len(self._runs[-1]):
            self._runs.append(_together(self._runs.pop(), self._runs.pop()))
        return min((int(found.min()) for found in repeated if len(found)), default=None)


def _together(one: NDArray[np.bytes_], other: NDArray[np.bytes_]) -> NDArray[np.bytes_]:
    both = np.concatenate((one, other))
    both.sort()  # in place, or there would be a third copy of all keys
    return both


def _among(marks: NDArray[np.bytes_], run: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    if not len(run):
        return np.zeros(len(marks), dtype=bool)
    at = np.minimum(np.searchsorted(run, marks), len(run) - 1)
    return np.asarray(run[at] == marks)
