"""Whole sessions: parse, plan, charge, draw, measure, release. What leaves is audited against what was charged.

One row, of very few, is replaced by its opposite: on the other side of the condition, at the other end of the range,
in the other group. Hardly anything is left around it, so that it shows as far as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from holdfast.audit.case import DELTA, Case, one_by_one
from holdfast.data.open import open_source
from holdfast.ledger import MemoryLedger
from holdfast.privacy.conversion import gdp_epsilon, zcdp_to_approx
from holdfast.privacy.filter import DELTA_UNITS
from holdfast.query.schema import Boolean, Category, Integer, Schema, Text
from holdfast.session import Session
from holdfast.session.table import Table

SCHEMA = Schema(a=Boolean(), x=Integer(-1, 1), g=Category("a", "b"))
TEXTS = Schema(a=Boolean(), x=Integer(-1, 1), g=Text(1))
Row = tuple[bool, int, str]
LOW: Row = (False, -1, "a")
MIDDLE: Row = (False, 0, "a")
HIGH: Row = (True, 1, "b")
_RUNS = 1_500


def sessions() -> list[Case]:
    """The questions of a session, by every mechanism."""
    pure, gaussian = {"epsilon": 100.0}, {"rho": 100.0, "only": "gaussian"}
    within: dict[str, Any] = {"within": 0.9}
    return [
        case("fraction, laplace", lambda s: s.fraction("a", epsilon=2.0).value, pure),
        case(
            "fraction, votes",
            lambda s: s.fraction("a", mechanism="votes", **within).value,
            pure,
            rest=(LOW,) * 4,
            runs=4_000,
        ),
        case(
            "fraction, subsampled-laplace",
            lambda s: s.fraction("a", mechanism="subsampled-laplace", **within).value,
            pure,
            rest=(LOW,) * 2,
        ),
        case("fraction by groups", lambda s: s.fraction("a OR NOT a", by="g", epsilon=2.0).value, pure),
        case("count, laplace", lambda s: s.count("a", epsilon=2.0).value, pure),
        case(
            "count, gaussian",
            lambda s: s.count("a", rho=0.5).value,
            {"rho": 100.0},
            rest=(LOW,) * 3,
            runs=3_000,
        ),
        case(
            "sum, gaussian only", lambda s: s.sum("x", rho=0.25).value, gaussian, rest=(LOW,) * 7, runs=3_000
        ),
        case("count, two rows of one person", lambda s: s.count("a", epsilon=2.0).value, pure, owned=2),
        case("difference", lambda s: s.difference("a", "NOT a", epsilon=2.0).value, pure),
        case("sum", lambda s: s.sum("x", epsilon=2.0).value, pure),
        case("mean", lambda s: interval(s.mean("x", epsilon=2.0)), pure),
        case("mean by groups", lambda s: interval(s.mean("x", by="g", epsilon=2.5)), pure),
        case("share", lambda s: interval(s.fraction("a", given="x <> 0", epsilon=2.0)), pure),
        case(
            "regression", lambda s: interval(s.regression("x", ["x * x"], epsilon=6.0)), pure, rest=(MIDDLE,)
        ),
        case("top", lambda s: _largest(s.top("g", 1, epsilon=2.0)), pure),
        case("std", lambda s: interval(s.std("x", epsilon=3.0)), pure, rest=(MIDDLE,)),
        case("covariance", lambda s: interval(s.covariance("x", "x * x", epsilon=6.0)), pure, runs=1_000),
        case("ratio", lambda s: interval(s.ratio("x", "x + 2", epsilon=2.0)), pure),
        case("variance", lambda s: interval(s.variance("x", epsilon=3.0)), pure, rest=(MIDDLE,)),
        case("correlation", lambda s: interval(s.correlation("x", "x * x", epsilon=6.0)), pure, runs=1_000),
        case(
            "difference of means", lambda s: interval(s.difference("a", "NOT a", of="x", epsilon=3.0)), pure
        ),
        case("histogram", lambda s: s.histogram("g", epsilon=2.0).value, pure),
        case("median, quantile", lambda s: interval(s.median("x", epsilon=3.0)), pure, rest=(LOW, MIDDLE)),
        case(
            "quantile, smoothed",
            lambda s: interval(s.quantile("x", epsilon=3.0, mechanism="smoothed")),
            pure,
            rest=(LOW, MIDDLE),
        ),
        case(
            "quantile by groups",
            lambda s: interval(s.quantile("x", by="g", epsilon=3.0)),
            pure,
            rest=(LOW, MIDDLE),
        ),
        case(
            "several quantiles",
            lambda s: interval(s.quantile("x", [0.3, 0.6], rho=1.0)),
            {"rho": 100.0},
            rest=(LOW, MIDDLE),
            runs=3_000,
        ),
        case(
            "running count",
            lambda s: s.count(by="x", cumulative=True, rho=1.0).value,
            {"rho": 100.0},
            rest=(LOW, MIDDLE),
            runs=3_000,
        ),
        case(
            "independence",
            lambda s: interval(s.independence("a", "g", rho=1.0)),
            {"rho": 100.0},
            rest=(LOW, HIGH),
            runs=3_000,
        ),
        case("min, low quantile", lambda s: interval(s.min("x", epsilon=3.0)), pure, rest=(HIGH,)),
        case("max, high quantile", lambda s: interval(s.max("x", epsilon=3.0)), pure, rest=(LOW,)),
        case("distinct", lambda s: s.distinct("x", epsilon=2.0).value, pure, rest=(LOW,)),
        case("statistic", lambda s: s.statistic(_own, ["a"], epsilon=2.0).value, pure),
        case("sql one", lambda s: s.sql_one("SELECT count(*) FROM t WHERE a", epsilon=2.0).value, pure),
        case("sample", lambda s: s.sample("a"), pure),
        case(
            "logistic count",
            lambda s: s.count("a", epsilon=2.0, mechanism="logistic").value,
            pure,
        ),
        case("two adaptive answers", _adaptive, pure, queries=2),
        case(
            "keys",
            lambda s: len(s.keys("g", rho=0.5, delta=0.02)),
            {"rho": 100.0, "delta": 0.5},
            rest=(LOW,) * 5,
            schema=TEXTS,
        ),
    ]


def case(
    name: str,
    ask: Callable[[Session], Any],
    budget: dict[str, Any],
    *,
    rest: tuple[Row, ...] = (),
    owned: int = 1,
    queries: int = 1,
    runs: int = _RUNS,
    schema: Schema = SCHEMA,
) -> Case:
    """An audit of what `ask` is told, with a fresh ledger and session for every run.

    The claim is what the first run was charged: epsilon, or the epsilon at `DELTA` where the budget is not pure.
    """
    terms = {"target": "table", "queries": queries, "confidence": 0.5} | budget
    first, second = (*rest, *(LOW,) * owned), (*rest, *(HIGH,) * owned)
    asked = _opened(first, owned, terms, schema)
    ask(asked)
    epsilon, delta = claim(asked)
    many = one_by_one(lambda values: hashable(ask(_opened(values, owned, terms, schema))))
    return Case(f"session: {name}", many, first, second, epsilon, delta, runs)


def interval(answer: Any) -> list[Any]:
    """All that an answer tells."""
    return [answer.value, answer.low, answer.high]


def _opened(rows: tuple[Row, ...], owned: int, terms: dict[str, Any], schema: Schema) -> Session:
    return Table(_source(rows, schema), MemoryLedger(), owned).session(**terms)


@lru_cache
def _source(rows: tuple[Row, ...], schema: Schema) -> Any:
    return open_source(
        {name: np.array(column) for name, column in zip(schema, zip(*rows, strict=True), strict=True)}, schema
    )


def claim(session: Session) -> tuple[float, float]:
    """What was charged, as (epsilon, delta)."""
    spent = float(session.spent)
    if session.currency == "pure":
        return spent, 0.0
    epsilon = zcdp_to_approx(spent, DELTA) if session.currency == "zcdp" else gdp_epsilon(spent**0.5, DELTA)
    return epsilon, DELTA + session._ledger.totals(session.name).delta / DELTA_UNITS


def hashable(told: Any) -> Any:
    flat = np.ravel(np.asarray(told, dtype=float)).tolist()
    return flat[0] if len(flat) == 1 else tuple(flat)


def _largest(answer: Any) -> list[Any]:
    """Which group is shown, and its number."""
    return [answer.labels[0] == "a", answer.value[0]]


def _own(rows: Mapping[str, Any]) -> Any:
    return rows["a"]


def _adaptive(session: Session) -> list[float]:
    """The second question depends on the first answer."""
    first = session.count("a", epsilon=1.0).value
    return [first, session.count("g = 'b'" if first > 0 else "NOT a", epsilon=1.0).value]
