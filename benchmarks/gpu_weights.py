"""Weights on 2^30 cells of a GPU: what part of the memory's bandwidth each step reaches.

Self-contained: `python benchmarks/gpu_weights.py [--cells 30] [--library torch|cupy|numpy] [--dtype float32]`. The
bandwidth is measured first, as the best device-to-device copy (bytes read and written). Bytes are what a step must
move at least: a dense update reads and writes every weight, a masked update reads the mask as well, a dot product
reads weights and mask, and a slice touches its own cells only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "src")]


def rows(
    quick: bool = True, cells: int | None = None, library: str = "auto", dtype: str = "float32"
) -> list[dict[str, Any]]:
    """Dense update, masked update, dot product and a slice, each with its part of the bandwidth.

    Without arguments, as `python -m benchmarks` calls it: a small universe on whatever is at hand.
    """
    name = _library() if library == "auto" else library
    bits = cells or (30 if name != "numpy" and not quick else 22)
    return _Device(name, dtype).measure(bits)


class _Device:
    """One array library, with a timer that waits for the device."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype
        self.bytes = 4 if dtype == "float32" else 8
        if name == "torch":
            import torch

            self.xp: Any = torch
            self.device = "cuda" if torch.cuda.is_available() else "cpu"
            self.label = torch.cuda.get_device_name(0) if self.device == "cuda" else "torch on the CPU"
            self.kind = getattr(torch, dtype)
        elif name == "cupy":
            import cupy

            self.xp = cupy
            self.label = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
            self.kind = getattr(cupy, dtype)
        else:
            import numpy

            self.xp, self.label, self.kind = numpy, "NumPy", getattr(numpy, dtype)

    def ones(self, count: int, kind: Any = None) -> Any:
        if self.name == "torch":
            return self.xp.ones(count, dtype=kind or self.kind, device=self.device)
        return self.xp.ones(count, dtype=kind or self.kind)

    def wait(self) -> None:
        if self.name == "torch" and self.device == "cuda":
            self.xp.cuda.synchronize()
        elif self.name == "cupy":
            self.xp.cuda.Device().synchronize()

    def seconds(self, act: Callable[[], Any], times: int = 10) -> float:
        """The median of several timed calls after three warm-ups; each waits for the device."""
        for _ in range(3):
            act()
        self.wait()
        spent = []
        for _ in range(times):
            start = time.perf_counter()
            act()
            self.wait()
            spent.append(time.perf_counter() - start)
        return sorted(spent)[len(spent) // 2]

    def measure(self, bits: int) -> list[dict[str, Any]]:
        size = 1 << bits
        weights = self.ones(size)
        copy = self._copying(weights, self.ones(size))
        bandwidth = 2 * size * self.bytes / copy
        found = [self._row(f"copy of 2^{bits} weights", 2 * size * self.bytes, copy, bandwidth)]

        def dense() -> None:
            weights.__imul__(1.0000001)

        found.append(self._row("dense update", 2 * size * self.bytes, self.seconds(dense), bandwidth))
        found.append(
            self._row("sum of all weights", size * self.bytes, self.seconds(lambda: weights.sum()), bandwidth)
        )
        dot = self._dot(weights, self.ones(size))
        found.append(self._row("dot product with a mask of floats", 2 * size * self.bytes, dot, bandwidth))
        flags = self.ones(size, self.xp.bool if self.name == "torch" else self.xp.bool_)
        flags[::3] = False
        self._masked(weights, flags, size, bandwidth, found)
        del flags
        self._slices(weights, bits, bandwidth, found)
        return found

    def _masked(
        self, weights: Any, flags: Any, size: int, bandwidth: float, found: list[dict[str, Any]]
    ) -> None:
        """weights *= 1 + (e^eta - 1) mask, by the library's own kernels and, on CuPy, by one fused kernel."""
        step = 1e-7
        moved = (2 * self.bytes + 1) * size
        if self.name == "torch":
            act: Callable[[], Any] = lambda: weights.addcmul_(weights, flags.to(self.kind), value=step)  # noqa: E731
            found.append(self._row("masked update, plain", moved, self.seconds(act), bandwidth))
            fused = self._compiled()
            if fused is not None:
                found.append(
                    self._row(
                        "masked update, compiled",
                        moved,
                        self.seconds(lambda: fused(weights, flags, step)),
                        bandwidth,
                    )
                )
        elif self.name == "cupy":
            kernel = self.xp.ElementwiseKernel("bool m, T s", "T w", "w = m ? w * (1 + s) : w", "tilt")
            act = lambda: kernel(flags, self.kind(step), weights)  # noqa: E731
            found.append(self._row("masked update, one kernel", moved, self.seconds(act), bandwidth))
        else:
            act = lambda: self.xp.multiply(weights, 1 + step, out=weights, where=flags)  # noqa: E731
            found.append(self._row("masked update", moved, self.seconds(act, 3), bandwidth))

    def _compiled(self) -> Any:
        """torch.compile's fused update, where a compiler is at hand."""
        if self.device != "cuda":
            return None

        def tilt(weights: Any, flags: Any, step: float) -> Any:
            return weights.mul_(self.xp.where(flags, 1.0 + step, 1.0))

        try:
            made = self.xp.compile(tilt)
            made(self.ones(1024), self.ones(1024, self.xp.bool), 1e-7)
        except Exception as problem:  # the benchmark goes on without it
            print(f"torch.compile is not usable here: {type(problem).__name__}")
            return None
        return made

    def _slices(self, weights: Any, bits: int, bandwidth: float, found: list[dict[str, Any]]) -> None:
        """Conjunctions as views: two leading columns fixed, and two in the middle."""
        cube = weights.reshape(64, 64, -1)
        lead = cube[3, 8:12]
        size = 4 * (1 << bits) // 4096

        def tilt(view: Any) -> None:
            view.sum()
            view.__imul__(1.0000001)

        found.append(
            self._row(
                "answer and update, leading columns fixed",
                3 * size * self.bytes,
                self.seconds(lambda: tilt(lead)),
                bandwidth,
            )
        )
        middle = weights.reshape(1 << (bits // 2), 4, 4, -1)[:, 1, 2]
        size = (1 << bits) // 16
        found.append(
            self._row(
                "answer and update, middle columns fixed",
                3 * size * self.bytes,
                self.seconds(lambda: tilt(middle)),
                bandwidth,
            )
        )

    def _row(self, what: str, moved: int, spent: float, bandwidth: float) -> dict[str, Any]:
        return {
            "step": what,
            "on": f"{self.label}, {self.dtype}",
            "ms": round(spent * 1e3, 3),
            "GB/s": round(moved / spent / 1e9, 1),
            "of the measured bandwidth": f"{moved / spent / bandwidth:.0%}",
        }

    def _copying(self, weights: Any, other: Any) -> float:
        def act() -> None:
            other[...] = weights

        return self.seconds(act)

    def _dot(self, weights: Any, mask: Any) -> float:
        mask[::2] = 0.0
        return self.seconds(lambda: self.xp.dot(weights, mask))


def agrees(library: str) -> str:
    """Holdfast's own weights on the library against NumPy: the largest difference of a probability."""
    import numpy as np

    try:
        # No text is parsed here: the machine with the GPU need not have sqlglot.
        from holdfast.query.predicate import among, conjunction, disjunction
        from holdfast.query.region import factors, region
        from holdfast.query.schema import Integer, Schema
        from holdfast.query.universe import universe
        from holdfast.weights.array_module import array_module
        from holdfast.weights.distribution import Weights
    except ImportError as problem:
        return f"not compared: {problem}"
    schema = Schema(a=Integer(0, 31), b=Integer(0, 31), c=Integer(0, 15))
    made = universe(schema, ["a", "b", "c"], nulls=[])

    def between(column: str, low: int, high: int) -> Any:
        return among(column, ((low, high),), schema[column])

    queries = [
        region(made, between("a", 0, 6)),
        region(made, conjunction(between("b", 3, 3), between("c", 9, 15))),
        region(made, disjunction(between("a", 5, 9), between("c", 2, 12))),
        factors(made, {"b": [i / 31 for i in range(32)]}),
    ]
    first, second = Weights(made), Weights(made, array_module(library))
    for i in range(200):
        for weights in (first, second):
            weights.tilt(queries[i % len(queries)], 0.3 if i % 3 else -0.4)
    gap = float(np.abs(first.probabilities()[0] - second.probabilities()[0]).max())
    answers = max(abs(first.fraction(one) - second.fraction(one)) for one in queries)
    return f"200 updates on {library} and NumPy: cells differ by at most {gap:.1e}, answers by {answers:.1e}"


def _library() -> str:
    for name in ("torch", "cupy"):
        try:
            __import__(name)
        except ImportError:
            continue
        return name
    return "numpy"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="weights on a GPU against its memory bandwidth")
    parser.add_argument("--cells", type=int, default=None, help="log2 of the number of cells")
    parser.add_argument("--library", default="auto", choices=("auto", "torch", "cupy", "numpy"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--json", type=Path, default=None, help="where to write the rows as well")
    options = parser.parse_args()
    table = rows(False, options.cells, options.library, options.dtype)
    for row in table:
        part = row["of the measured bandwidth"]
        print(f"{row['step']:<44} {row['ms']:>10} ms {row['GB/s']:>9} GB/s {part:>6}  {row['on']}")
    print(agrees(_library() if options.library == "auto" else options.library))
    if options.json is not None:
        options.json.write_text(json.dumps(table, indent=1), encoding="utf-8")
