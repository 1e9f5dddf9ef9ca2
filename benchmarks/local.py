"""Local oracles: reports per second, at the clients and at the server, for a million users.

Run: PYTHONPATH=src python benchmarks/local.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import holdfast.local as local

USERS, DOMAIN, EPSILON = 10**6, 128, 1.0


def rows(users: int = USERS) -> list[dict[str, Any]]:
    """One row per oracle. `estimate` covers all 128 items with their limits; a peer's loop comes last."""
    rng = np.random.default_rng(1)
    values = np.minimum(rng.geometric(0.1, users) - 1, DOMAIN - 1)
    items = np.arange(DOMAIN)
    out = []
    for oracle in (
        local.RandomizedResponse(0.55),
        local.OneBitMean(DOMAIN, EPSILON),
        local.KaryResponse(DOMAIN, EPSILON),
        local.HadamardResponse(DOMAIN, EPSILON),
        local.LocalHashing(DOMAIN, EPSILON),
        local.OptimisedUnary(DOMAIN, EPSILON),
        local.SymmetricUnary(DOMAIN, EPSILON),
        local.SubsetSelection(DOMAIN, EPSILON),
        local.Rappor(seed=1),
        local.CountMeanSketch(EPSILON, seed=1),
        local.HadamardSketch(EPSILON, seed=1),
    ):
        single = isinstance(oracle, local.RandomizedResponse | local.OneBitMean)
        given = values < 5 if isinstance(oracle, local.RandomizedResponse) else values
        out.append(
            _row(oracle, given, lambda o, r, one=single: o.estimate(r) if one else o.estimate(r, items=items))
        )
    out.append(_row(local.HeavyHitters(24, 4.0), values, lambda o, r: o.find(r)))
    return out + _peer()


def _row(oracle: Any, values: np.ndarray, estimate: Callable[[Any, Any], Any]) -> dict[str, Any]:
    estimate(oracle, oracle.randomize(values[:20_000]))  # tables are built and modules loaded once
    start = time.perf_counter()
    reports = oracle.randomize(values)
    middle = time.perf_counter()
    estimate(oracle, reports)
    end = time.perf_counter()
    return {
        "oracle": type(oracle).__name__,
        "users": values.size,
        "epsilon": round(oracle.epsilon, 4),
        "bytes per report": reports.nbytes / values.size,
        "randomize/s": round(values.size / (middle - start)),
        "estimate/s": round(values.size / (end - middle)),
    }


def _peer(calls: int = 3000) -> list[dict[str, Any]]:
    """opendp randomizes one value per call and has no estimator."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    response = dp.m.make_randomized_response(categories=list(range(DOMAIN)), prob=0.5)
    start = time.perf_counter()
    for value in range(calls):
        response(value % DOMAIN)
    rate = round(calls / (time.perf_counter() - start))
    return [
        {
            "oracle": "opendp k-ary",
            "users": calls,
            "epsilon": None,
            "bytes per report": None,
            "randomize/s": rate,
            "estimate/s": None,
        }
    ]


if __name__ == "__main__":
    for row in rows():
        print(
            "  ".join(
                f"{name} {'-' if value is None else f'{value:,}' if isinstance(value, int) else value}"
                for name, value in row.items()
            )
        )
