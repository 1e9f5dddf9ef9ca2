"""Whole sessions: parse, plan, charge, draw, measure, release. What is audited is the number that leaves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from holdfast.audit.case import DELTA, Case, one_by_one
from holdfast.privacy.conversion import zcdp_to_approx
from holdfast.query.schema import Boolean, Schema
from holdfast.session import Session
from holdfast.session import open as open_table

_RUNS = 2_000
_QUERIES = 8
_LOW, _HIGH = (False, False, False, False), (False, False, False, True)


def sessions() -> list[Case]:
    """A table of four rows of which one is replaced; a fresh table, ledger and session for every run."""
    approximate = zcdp_to_approx(0.5, DELTA)

    def case(name: str, ask: Callable[[Session], Any], epsilon: float, delta: float = 0.0) -> Case:
        many = one_by_one(partial(_asked, ask, delta > 0.0))
        return Case(f"session: {name}", many, _LOW, _HIGH, epsilon, delta, _RUNS)

    return [
        case("fraction, laplace", _fraction, 1.0),
        case("count, gaussian", _count, approximate, DELTA),
        case("histogram", _histogram, 1.0),
        case("two adaptive answers", _adaptive, 1.0),
    ]


def _asked(ask: Callable[[Session], Any], concentrated: bool, values: tuple[bool, ...]) -> Any:
    table = open_table({"a": np.array(values)}, Schema(a=Boolean()))
    if concentrated:
        return ask(table.session(rho=0.5, target="table", queries=_QUERIES))
    return ask(table.session(epsilon=1.0, target="table", queries=_QUERIES))


def _fraction(session: Session) -> float:
    return float(session.fraction("a", epsilon=1.0).value)


def _count(session: Session) -> float:
    return float(session.count("a", rho=0.5).value)


def _histogram(session: Session) -> tuple[float, ...]:
    return tuple(np.asarray(session.histogram("a", epsilon=1.0).value, dtype=float).tolist())


def _adaptive(session: Session) -> tuple[float, float]:
    """The second question depends on the first answer."""
    first = float(session.count("a", epsilon=0.5).value)
    return first, float(session.count("a" if first > 0 else "NOT a", epsilon=0.5).value)
