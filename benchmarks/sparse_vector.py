"""A question to the sparse vector, beside a loop written by hand on opendp and on plain NumPy.

No library has a sparse vector; the loops draw one Laplace noise a question and compare. NumPy's floats are
not private; they are the floor. All take turns and the best turn counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from holdfast.mechanisms.sparse_vector import SparseVector

TURNS = 7
THRESHOLD, HITS, EPSILON = 1_000_000, 10, 1.0


def rows() -> list[dict[str, object]]:
    """One row per system: microseconds a question."""
    best: dict[str, float] = {}
    tasks = list(_tasks())
    for _ in range(TURNS):
        for name, count, ask in tasks:
            start = time.perf_counter()
            for value in range(count):
                ask(value)
            spent = (time.perf_counter() - start) / count
            best[name] = min(best.get(name, spent), spent)
    ours = best["holdfast, counts"]
    return [
        {"system": name, "microseconds": round(1e6 * spent, 2), "times holdfast": round(spent / ours, 1)}
        for name, spent in best.items()
    ]


def _tasks() -> Iterator[tuple[str, int, Callable[[int], bool]]]:
    counts = SparseVector(THRESHOLD, epsilon=EPSILON, hits=HITS)
    yield "holdfast, counts", 20_000, counts.above
    shares = SparseVector(0.9, sensitivity=1e-6, epsilon=EPSILON, hits=HITS)
    yield "holdfast, floats", 20_000, lambda value: shares.above(value * 1e-9)
    gaussian = SparseVector(
        THRESHOLD, epsilon=EPSILON, delta=1e-6, hits=HITS, version="gaussian", questions=10**9
    )
    yield "holdfast, gaussian", 20_000, gaussian.above
    scale = float(counts.allocation.question)
    rng = np.random.default_rng(1)
    yield "numpy loop (unsafe)", 20_000, lambda value: value + rng.laplace(0, scale) >= THRESHOLD
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    noisy = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)
    yield "opendp loop", 1_000, lambda value: noisy(value) >= THRESHOLD


if __name__ == "__main__":
    for row in rows():
        print(f"{row['system']:<22} {row['microseconds']:>9} us a question  {row['times holdfast']:>6} x")
