"""What a draw of noise costs, one at a time and a million at once, beside opendp, PyDP and plain NumPy.

NumPy's floats are not private; they are the floor. Each pair of systems is timed in turns and the best turn
counts, so that a busy machine slows all alike. PyDP (package python-dp) is left out where it is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np

from holdfast.noise.gaussian import gaussian, gaussian_vector
from holdfast.noise.laplace import laplace, laplace_vector

VECTOR = 1_000_000
OPENDP_VECTOR = 20_000  # some 10 microseconds an element
TURNS = 7
Task = tuple[str, int, Callable[[], object]]


def rows() -> list[dict[str, object]]:
    """One row per system and task: microseconds a draw, and how many times holdfast's time that is."""
    found: list[dict[str, object]] = []
    for scale in (10, 1_000_000):
        found += _side_by_side(f"one Laplace draw, scale {scale}", _scalars("laplace", scale))
        found += _side_by_side(f"one Gaussian draw, scale {scale}", _scalars("gaussian", scale))
        found += _side_by_side(f"Laplace vector, scale {scale}", _vectors("laplace", scale))
        found += _side_by_side(f"Gaussian vector, scale {scale}", _vectors("gaussian", scale))
    return found + _side_by_side("one Gaussian draw, a new scale each time", _new_parameters())


def _scalars(law: str, scale: int) -> Iterator[Task]:
    rng = np.random.default_rng(1)
    parameter = Fraction(scale) if law == "laplace" else Fraction(scale**2)
    ours = laplace if law == "laplace" else gaussian
    numpy = rng.laplace if law == "laplace" else rng.normal
    yield "holdfast", 20_000, lambda: ours(parameter)
    yield "numpy", 20_000, lambda: numpy(0.0, scale)
    measurement = _opendp(law, scale, vector=False)
    yield "opendp", 500, lambda: measurement(0)
    if find_spec("pydp"):
        mechanism = _pydp(law, scale)
        yield "pydp", 20_000, lambda: mechanism.add_noise(0)


def _vectors(law: str, scale: int) -> Iterator[Task]:
    rng = np.random.default_rng(1)
    parameter = Fraction(scale) if law == "laplace" else Fraction(scale**2)
    ours = laplace_vector if law == "laplace" else gaussian_vector
    numpy = rng.laplace if law == "laplace" else rng.normal
    yield "holdfast", -VECTOR, lambda: ours(parameter, VECTOR)
    yield "numpy", -VECTOR, lambda: numpy(0.0, scale, VECTOR)
    measurement = _opendp(law, scale, vector=True)
    zeros = [0] * OPENDP_VECTOR
    yield "opendp", -OPENDP_VECTOR, lambda: measurement(zeros)


def _new_parameters() -> Iterator[Task]:
    ours, theirs = count(1_000), count(1_000)
    yield "holdfast", 50, lambda: gaussian(Fraction(next(ours), 7))
    yield "opendp", 50, lambda: _opendp("gaussian", next(theirs) / 7, vector=False)(0)


def _side_by_side(task: str, systems: Iterator[Task]) -> list[dict[str, object]]:
    """Times every system `TURNS` times in turn. A negative count means one call that makes so many draws."""
    entered = list(systems)
    best = {name: float("inf") for name, _, _ in entered}
    for name, draws, call in entered * (TURNS + 1):
        calls = draws if draws > 0 else 1
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        best[name] = min(best[name], (time.perf_counter() - begun) / abs(draws) * 1e6)
    return [
        {
            "task": task,
            "system": name,
            "us_per_draw": round(us, 4),
            "times_holdfast": round(us / best["holdfast"], 2),
        }
        for name, us in best.items()
    ]


def _opendp(law: str, scale: float, *, vector: bool) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atom = dp.atom_domain(T="i32")
    make = dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian
    if not vector:
        return make(atom, dp.absolute_distance(T="i32"), scale=float(scale))
    distance = dp.l1_distance(T="i32") if law == "laplace" else dp.l2_distance(T="f64")
    return make(dp.vector_domain(atom), distance, scale=float(scale))


def _pydp(law: str, scale: int) -> Any:
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    if law == "laplace":
        return LaplaceMechanism(1 / scale, 1.0)
    return GaussianMechanism(1.0, 1e-6, 1.0)  # its scale follows from epsilon and delta; its time hardly does


if __name__ == "__main__":
    for row in rows():
        print(f"{row['task']:42} {row['system']:9} {row['us_per_draw']:>12} us {row['times_holdfast']:>10} x")
