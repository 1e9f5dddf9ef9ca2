"""Mechanisms of other libraries, where they are installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.case import DELTA, Case, Many, one_by_one
from holdfast.privacy.conversion import zcdp_to_approx


def peers() -> list[Case]:
    """Empty where nothing is installed."""
    return [*_opendp(), *_diffprivlib()]


def _opendp() -> list[Case]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    epsilon = zcdp_to_approx(0.5, DELTA)
    integers = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    squares = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    cases = [
        ("laplace, integers", dp.m.make_laplace(*integers, scale=1.0), 0, 1, 1.0, 0.0),
        ("laplace, floats", dp.m.make_laplace(*floats, scale=1.0), 0.0, 1.0, 1.0, 0.0),
        ("gaussian, integers", dp.m.make_gaussian(*squares, scale=1.0), 0, 1, epsilon, DELTA),
    ]
    return [
        Case(
            f"opendp: {name}",
            _invoked(measurement),
            first,
            second,
            epsilon,
            delta,
            runs=40_000,
            origin="opendp",
        )
        for name, measurement, first, second, epsilon, delta in cases
    ]


def _invoked(measurement: Any) -> Many:
    """One call on a vector of equal values: each coordinate is a run of its own."""

    def many(value: float, runs: int) -> NDArray[Any]:
        return np.array(measurement([value] * runs))

    return many


def _diffprivlib() -> list[Case]:
    try:
        mechanisms: Any = import_module("diffprivlib.mechanisms")
    except ImportError:
        return []
    made = {
        "laplace": mechanisms.Laplace(epsilon=1.0, sensitivity=1.0),
        "geometric": mechanisms.Geometric(epsilon=1.0, sensitivity=1),
        "staircase": mechanisms.Staircase(epsilon=1.0, sensitivity=1.0),
        "snapping": mechanisms.Snapping(epsilon=1.0, sensitivity=1.0, lower=-1e3, upper=1e3),
    }
    return [
        Case(
            f"diffprivlib: {name}",
            one_by_one(mechanism.randomise),
            0 if name == "geometric" else 0.0,
            1 if name == "geometric" else 1.0,
            mechanism.effective_epsilon() if name == "snapping" else 1.0,
            runs=40_000,
            origin="diffprivlib",
        )
        for name, mechanism in made.items()
    ]
