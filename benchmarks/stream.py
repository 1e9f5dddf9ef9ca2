"""Counters at a horizon of 1e6: arrivals a second, and the noise of the two methods.

The noise is stated (standard deviation of the worst total at rho = 1/2) and measured on fresh counters.
"""

from __future__ import annotations

import math
import time

import numpy as np

from holdfast.stream import Counter, PanPrivateDensity, UnboundedCounter
from holdfast.stream.factorisation import norm_squared

HORIZON = 1_000_000
SINGLE = 200_000
RHO = 0.5


def rows() -> list[dict[str, object]]:
    """Speeds first, then the noise of both methods at T = 2^16 and T = 1e6."""
    return [*_speeds(), *_noises()]


def _speeds() -> list[dict[str, object]]:
    ones = np.ones(HORIZON, dtype=np.int64)
    found = []
    for method in ("sqrt", "tree"):
        start = time.perf_counter()
        Counter(HORIZON, rho=RHO, method=method).extend(ones)
        found.append(_speed(f"{method}, all {HORIZON} arrivals and totals at once", HORIZON, start))
        counter = Counter(HORIZON, rho=RHO, method=method)
        start = time.perf_counter()
        for _ in range(SINGLE):
            counter.add(1)
            counter.total()
        found.append(_speed(f"{method}, an arrival and a total at a time", SINGLE, start))
    unbounded = UnboundedCounter(rho=RHO)
    start = time.perf_counter()
    for _ in range(SINGLE):
        unbounded.add(1)
    found.append(_speed("unbounded, an arrival at a time", SINGLE, start))
    density = PanPrivateDensity(10_000, epsilon=0.5)
    start = time.perf_counter()
    for i in range(SINGLE):
        density.see(i % 10_000)
    found.append(_speed("pan-private density, an appearance at a time", SINGLE, start))
    return found


def _speed(what: str, arrivals: int, start: float) -> dict[str, object]:
    spent = time.perf_counter() - start
    return {"what": what, "value": round(arrivals / spent), "unit": "a second"}


def _noises() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for horizon in (2**16, HORIZON):
        worst_time = (1 << (horizon.bit_length() - 1)) - 1
        tree = math.sqrt(worst_time.bit_count() * horizon.bit_length() / (2 * RHO))
        root = norm_squared(horizon) / math.sqrt(2 * RHO)
        found.append({"what": f"tree, T = {horizon}, worst total", "value": round(tree, 2), "unit": "sd"})
        found.append({"what": f"sqrt, T = {horizon}, worst total", "value": round(root, 2), "unit": "sd"})
        found.append({"what": f"ratio, T = {horizon}", "value": round(tree / root, 2), "unit": "times"})
    measured = {method: _measured(method, 2**12 - 1, 300) for method in ("tree", "sqrt")}
    ratio = measured["tree"] / measured["sqrt"]
    found.append({"what": "ratio measured at T = 4095, 300 runs", "value": round(ratio, 2), "unit": "times"})
    return found


def _measured(method: str, horizon: int, runs: int) -> float:
    zeros = np.zeros(horizon, dtype=np.int64)
    lasts = [int(Counter(horizon, rho=RHO / 100, method=method).extend(zeros)[-1]) for _ in range(runs)]
    return math.sqrt(float(np.mean(np.square(lasts))))


if __name__ == "__main__":
    for row in rows():
        print(f"{row['what']:<52} {row['value']:>12} {row['unit']}")
