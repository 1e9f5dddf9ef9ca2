"""How often somebody may come: requests a second, after a burst."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock

_REMEMBERED = 10_000


class Rate:
    """A bucket for each name: `burst` requests at once, then `per_second`. Cost: O(1)."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second, self._burst, self._lock = per_second, float(burst), Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str, now: float | None = None) -> float:
        """0 and a request is taken from the bucket, or the seconds until there is one."""
        if self._per_second <= 0:
            return 0.0
        moment = time.monotonic() if now is None else now
        with self._lock:
            level, since = self._buckets.pop(name, (self._burst, moment))
            level = min(self._burst, level + (moment - since) * self._per_second)
            short = 1.0 - level
            self._buckets[name] = (level if short > 0 else level - 1.0, moment)
            while len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        return max(0.0, short) / self._per_second

    def give_back(self, name: str) -> None:
        """Put a request back that should not have been taken."""
        with self._lock:
            if name in self._buckets:
                level, since = self._buckets[name]
                self._buckets[name] = (min(self._burst, level + 1.0), since)
