"""Private choice among 1e3, 1e5 and 1e6 candidates, beside opendp, diffprivlib and plain NumPy.

NumPy's Gumbel noise in floats is not private; it is the floor. opendp takes a list, which is made beforehand.
All systems take turns and the best turn counts, so that a busy machine slows all alike. diffprivlib is left
out where it cannot be imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from holdfast.mechanisms.noisy_max import report_noisy_max
from holdfast.mechanisms.selection import exponential, permute_and_flip

SIZES = (1_000, 100_000, 1_000_000)
TURNS = 7
EPSILON = 1.0


def rows() -> list[dict[str, object]]:
    """One row per system and size: milliseconds a choice, and how many times NumPy's time that is."""
    found: list[dict[str, object]] = []
    for size in SIZES:
        best: dict[str, float] = {}
        tasks = list(_tasks(size))
        for _ in range(TURNS):
            for name, task in tasks:
                repeat = max(1, 20_000 // size) if "diffprivlib" not in name else 1
                start = time.perf_counter()
                for _ in range(repeat):
                    task()
                spent = (time.perf_counter() - start) / repeat
                best[name] = min(best.get(name, spent), spent)
        floor = best["numpy, Gumbel (unsafe)"]
        found += [
            {
                "candidates": size,
                "system": name,
                "milliseconds": round(1e3 * spent, 3),
                "times numpy": round(spent / floor, 2),
            }
            for name, spent in best.items()
        ]
    return found


def _tasks(size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 1000, size)
    reals = counts / 1000
    yield "holdfast exponential", lambda: exponential(counts, epsilon=EPSILON)
    yield "holdfast permute-and-flip", lambda: permute_and_flip(counts, epsilon=EPSILON)
    yield "holdfast noisy max", lambda: report_noisy_max(counts, epsilon=EPSILON)
    yield (
        "holdfast exponential, floats",
        lambda: exponential(reals, sensitivity=0.001, epsilon=EPSILON),
    )
    yield "numpy, Gumbel (unsafe)", lambda: np.argmax(counts * (EPSILON / 2) + rng.gumbel(size=size))
    listed = counts.tolist()
    for name, measurement in _opendp():
        yield name, lambda m=measurement: m(listed)
    yield from _diffprivlib(listed)


def _opendp() -> Iterator[tuple[str, Callable[[list[int]], object]]]:
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    yield "opendp permute-and-flip", dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 / EPSILON)
    yield (
        "opendp exponential",
        dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=2 / EPSILON),
    )


def _diffprivlib(listed: list[int]) -> Iterator[tuple[str, Callable[[], object]]]:
    try:
        mechanisms: Any = import_module("diffprivlib.mechanisms")
    except ImportError:
        return
    for name in ("Exponential", "PermuteAndFlip"):
        kind = getattr(mechanisms, name)
        yield (
            f"diffprivlib {name}",
            lambda kind=kind: kind(epsilon=EPSILON, sensitivity=1, utility=listed).randomise(),
        )


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row['candidates']:>9}  {row['system']:<30} {row['milliseconds']:>10} ms  "
            f"{row['times numpy']:>6} x numpy"
        )
