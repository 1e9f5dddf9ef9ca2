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

_RUNS = 4_000
_LOW, _HIGH = (False, False, False, False), (False, False, False, True)


def sessions() -> list[Case]:
    """A table of four rows of which one is replaced; a fresh table, ledger and session for every run."""
    approximate = zcdp_to_approx(0.5, DELTA)

    def case(name: str, ask: Callable[[Session], Any], epsilon: float, delta: float, **budget: Any) -> Case:
        return Case(name, one_by_one(partial(_asked, ask, budget)), _LOW, _HIGH, epsilon, delta, _RUNS)

    return [
        case("session: fraction, laplace", _fraction, 1.0, 0.0, epsilon=1.0),
        case("session: count, gaussian", _count, approximate, DELTA, rho=0.5),
        case("session: histogram", _histogram, 1.0, 0.0, epsilon=1.0),
        case("session: two adaptive answers", _adaptive, 1.0, 0.0, epsilon=1.0),
    ]


def _asked(ask: Callable[[Session], Any], budget: dict[str, Any], values: tuple[bool, ...]) -> Any:
    table = open_table({"a": np.array(values)}, Schema(a=Boolean()))
    return ask(table.session(**budget, target="table", queries=2 if ask is _adaptive else 1))


def _fraction(session: Session) -> float:
    return float(session.fraction("a").value)


def _count(session: Session) -> float:
    return float(session.count("a").value)


def _histogram(session: Session) -> tuple[float, ...]:
    return tuple(map(float, session.histogram("a").value))


def _adaptive(session: Session) -> tuple[float, float]:
    """The second question depends on the first answer."""
    first = float(session.count("a").value)
    return first, float(session.count("a" if first > 0 else "NOT a").value)
