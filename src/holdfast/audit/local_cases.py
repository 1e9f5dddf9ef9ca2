"""The oracles of local privacy: one report for each run, on the values 0 and 1."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.case import Case
from holdfast.local import (
    CountMeanSketch,
    HadamardResponse,
    HadamardSketch,
    KaryResponse,
    LocalHashing,
    OneBitMean,
    OptimisedUnary,
    RandomizedResponse,
    Rappor,
    SubsetSelection,
    SymmetricUnary,
)
from holdfast.local.affine import TOP, top_bits

_SEED = 1
"""Of the public hash functions: any that tells 0 and 1 apart."""


def local() -> list[Case]:
    """Every oracle at epsilon 1; RAPPOR has the epsilon of its parameters."""
    rappor = Rappor(width=4, hashes=1, cohorts=2, seed=_SEED)
    oracles: dict[str, Any] = {
        "local: coin": RandomizedResponse(0.75),
        "local: k-ary response": KaryResponse(4, 1.0),
        "local: symmetric unary": SymmetricUnary(4, 1.0),
        "local: optimised unary": OptimisedUnary(4, 1.0),
        "local: hadamard response": HadamardResponse(4, 1.0),
        "local: subset selection": SubsetSelection(6, 1.0),
        "local: one-bit mean": OneBitMean(1.0, 1.0),
        "local: count-mean sketch": CountMeanSketch(1.0, width=4, hashes=2, seed=_SEED),
        "local: hadamard sketch": HadamardSketch(1.0, width=4, hashes=2, seed=_SEED),
    }
    hashing = LocalHashing(4, 1.0)
    return [
        *(Case(name, partial(_reports, oracle), 0, 1, oracle.epsilon) for name, oracle in oracles.items()),
        Case("local: hashing", partial(_hashed, hashing), 0, 1, hashing.epsilon),
        Case("local: rappor, one report", partial(_reports, rappor), 0, 1, rappor.epsilon_once),
        Case("local: rappor, kept bits", partial(_kept, rappor), 0, 1, rappor.epsilon),
    ]


def _reports(oracle: Any, value: int, runs: int) -> NDArray[np.int64]:
    return _columns(oracle.randomize(np.full(runs, value)))


def _kept(oracle: Rappor, value: int, runs: int) -> NDArray[np.int64]:
    return _columns(oracle.permanent(np.full(runs, value)))


def _hashed(oracle: LocalHashing, value: int, runs: int) -> NDArray[np.bool_]:
    """What a report says about 0 and about 1; its random function alone says nothing."""
    reports = oracle.randomize(np.full(runs, value))
    buckets = oracle.buckets or round(np.exp(oracle.epsilon)) + 1
    return np.stack(
        [
            (top_bits(reports["a"], reports["b"], np.full(runs, item)) * buckets >> TOP) == reports["y"]
            for item in (0, 1)
        ],
        axis=1,
    )


def _columns(reports: NDArray[Any]) -> NDArray[np.int64]:
    """Reports as rows of integers, whatever their fields."""
    if reports.dtype.names is None:
        return reports.reshape(len(reports), -1).astype(np.int64)
    fields = [reports[name].reshape(len(reports), -1).astype(np.int64) for name in reports.dtype.names]
    return np.concatenate(fields, axis=1)
