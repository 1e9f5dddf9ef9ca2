"""Every bound under its name, and the width it certifies."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.check import between, one_of, positive, probability, whole
from holdfast.errors import InputError
from holdfast.privacy.rounding import miss
from holdfast.validity.catalogue import BOUNDS, Bound
from holdfast.validity.search import last_within, most

_BOUNDS = {theorem.name: theorem for theorem in BOUNDS}

_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "standard_deviation": positive,
    "grid": whole,
    "votes": whole,
    "flip": lambda name, value: probability(name, value, 0.5),
    "rounds": whole,
    "epochs": whole,
    "cells": whole,
    "failures": lambda name, value: whole(name, value, 0),
    **dict.fromkeys(("rho", "epsilon", "delta", "sample_error"), partial(between, low=0.0)),
}


def bounds() -> list[Bound]:
    """Every bound that `width` and `most_queries` know, published ones first."""
    return list(_BOUNDS.values())


def bound(name: str) -> Bound:
    """The bound of that name; InputError lists the names otherwise."""
    return _BOUNDS[one_of("bound", name, _BOUNDS)]


def width(name: str, *, rows: int, queries: int, confidence: float, **parameters: Any) -> float:
    """The half-width that the named theorem certifies for `queries` answers from `rows` rows; inf for
    nothing.

    Guarantee: as the bound says, usually Pr[all |answer - population value| <= width] >= confidence.
    Requires: what `bounds()` says under `assumes`. Free parameters are tuned from these public numbers.
    """
    theorem, n, k = bound(name), whole("rows", rows), whole("queries", queries)
    beta, checked = miss(confidence), _checked(theorem, parameters)
    return _certified(theorem, n, k, beta, checked)


def most_queries(name: str, *, rows: int, within: float, confidence: float, **parameters: Any) -> int:
    """How many adaptive queries the named theorem certifies to a half-width of `within`; 0 for none.

    Beyond 2^53 (queries fixed beforehand) the number keeps 53 leading bits, rounded down; where a width is itself a
    search (`Bound.slow`) it is right up to a part in 500, and certified.
    Cost: a gallop and a bisection over `width`, which never falls as the number of queries grows.
    """
    theorem, n = bound(name), whole("rows", rows)
    goal, beta, checked = positive("within", within), miss(confidence), _checked(theorem, parameters)
    return most_within(theorem, n, goal, beta, checked)


def most_within(theorem: Bound, rows: int, goal: float, beta: float, parameters: dict[str, Any]) -> int:
    """How many queries a theorem certifies to `goal`."""
    if theorem.slow:
        return last_within(lambda k: _certified(theorem, rows, k, beta, parameters), goal)
    return most(lambda k: _certified(theorem, rows, k, beta, parameters) <= goal)


def _certified(theorem: Bound, rows: int, queries: int, beta: float, parameters: dict[str, Any]) -> float:
    value = theorem.compute(rows, queries, beta, **parameters)
    return value if value < 1.0 else math.inf


def _checked(theorem: Bound, parameters: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(parameters) - set(theorem.parameters))
    if unknown:
        known = ", ".join(theorem.parameters) or "none"
        raise InputError(
            f"expected parameters of {theorem.name!r}, got {', '.join(unknown)}; they are: {known}"
        )
    return {name: _CHECKS[name](name, value) for name, value in parameters.items() if value is not None}
