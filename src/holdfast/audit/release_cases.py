"""What a session releases beside the answers to questions: choices, comparisons, weights, descents, synthetic data."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np

from holdfast.audit.case import Case
from holdfast.audit.session_cases import HIGH, LOW, SCHEMA, case
from holdfast.learn.clipped_descent import fit
from holdfast.learn.finite_class import FiniteClass
from holdfast.learn.gram_regression import regress
from holdfast.learn.own_loss import OwnLoss
from holdfast.learn.parameter_set import Ball
from holdfast.learn.thresholds import Thresholds
from holdfast.planning.keywords import Descent, Many, Synthesis, Threshold
from holdfast.session import Session
from holdfast.synthesis import quality

_FEW = 160
_CONDITIONS = ("a", "NOT a")


def releases() -> list[Case]:
    """One for each mechanism and version."""
    pure, zcdp = {"epsilon": 1e6}, {"rho": 1e6}
    return [
        case("select, exponential", lambda s: _chosen(s, "exponential"), pure),
        case("select, permute-and-flip", lambda s: _chosen(s, "permute-and-flip"), pure),
        case("sparse vector, best", lambda s: _watched(s, epsilon=2.5), pure, runs=4_000),
        case("sparse vector, logistic", lambda s: _watched(s, epsilon=2.5, version="logistic"), pure),
        case("sparse vector, lecture", lambda s: _watched(s, epsilon=1.8, version="lecture"), pure),
        case(
            "multiplicative weights, best",
            lambda s: _weighed(s, within=0.5),
            pure,
            rest=(LOW,) * 77 + (HIGH,) * 22,
            queries=1,
            runs=_FEW,
        ),
        case(
            "multiplicative weights, logistic",
            lambda s: _weighed(s, rho=2.0),
            zcdp | {"target": "population"},
            rest=(LOW,) * 60 + (HIGH,) * 19,
            queries=1,
            runs=_FEW,
        ),
        case(
            "multiplicative weights, textbook",
            lambda s: _weighed(s, epsilon=200.0, version="textbook"),
            pure,
            rest=(LOW,) * 214 + (HIGH,) * 185,
            queries=1,
        ),
        case("minimize, gaussian", lambda s: _least(s, iterations=1, rho=0.5, mechanism="gaussian"), zcdp),
        case("minimize, votes", lambda s: _least(s, iterations=1, epsilon=2.0), pure),
        case("minimize, best of runs", lambda s: _least(s, iterations=1, epsilon=4.0, runs=2), pure),
        case("learn", _learned, pure, queries=2),
        case("fit", _fitted, {"rho": 100.0, "only": "gaussian"}, rest=(LOW,) * 3),
        case("regress", _regressed, {"rho": 100.0, "only": "gaussian"}, rest=(LOW,) * 3),
        case("synthesize, mwem", lambda s: _synthetic(s, epsilon=2.0), pure),
        case("synthesize, marginals", _marginals, zcdp, rest=(LOW,) * 9, runs=_FEW),
        *(
            case(f"synthesize, small database, {search}", partial(_small, search), pure)
            for search in ("exact", "greedy", "candidates")
        ),
        case("quality", _quality, zcdp),
    ]


def _chosen(session: Session, mechanism: str) -> int:
    """One candidate falls by a row, four others rise by it."""
    conditions = ["NOT a"] + ["a"] * 4
    return session.select(range(5), conditions, epsilon=2.0, mechanism=mechanism).index


def _watched(session: Session, **terms: Unpack[Threshold]) -> list[bool]:
    """Six answers, False after the halt: four questions that one row raises, and two that it lowers."""
    vector = session.sparse_vector(0.9, 1, **terms)
    return [not vector.halted and vector.above(where) for where in ["a"] * 4 + ["NOT a"] * 2]


def _weighed(session: Session, **terms: Unpack[Many]) -> list[float]:
    """One question whose error is about at the threshold: the weights' answer, or a noisy one."""
    weights = session.multiplicative_weights(["a"], queries=1, **terms)
    return [weights.fraction("NOT a").value, weights.updates]


_LINE = OwnLoss(
    SCHEMA,
    ["x"],
    value=lambda theta, rows: (rows * theta)[:, 0],
    gradient=lambda theta, rows: rows,
    region=Ball(1, 4.0),
    lipschitz=1.0,
    smooth=1.0,
)
"""A line through each row, up or down."""


def _least(session: Session, **how: Unpack[Descent]) -> list[float]:
    return [float(x) for x in session.minimize(_LINE, **how).theta]


def _fitted(session: Session) -> list[float]:
    found = fit(session, ["x"], "a", 2, rho=0.5, steps=1)
    return [float(found.coefficients[0, 0]), float(found.intercepts[0])]


def _regressed(session: Session) -> list[float]:
    return [float(one) for one in regress(session, ["x"], "a", rho=0.5).coefficients]


def _learned(session: Session) -> list[float]:
    found = FiniteClass(Thresholds([-1.0])).learn_in(session, ["x"], "a", epsilon=2.0)
    return [found.index, found.error]


def _synthetic(session: Session, **how: Unpack[Synthesis]) -> Any:
    return session.synthesize(["a"], _CONDITIONS, **how).weights.marginals([(0,)])[0,]


def _marginals(session: Session) -> list[float]:
    """One pair out of three, chosen, and what was measured of it."""
    made = session.synthesize(["a", "x", "g"], method="marginals", rho=2.0, rounds=1)
    return [
        made.weights.universe.columns.index(made.measured[-1].columns[-1]),
        *np.ravel(made.measured[0].values),
    ]


def _small(search: str, session: Session) -> Any:
    size, epsilon = (2, 2.5) if search == "greedy" else (1, 2.0)
    return _synthetic(
        session, method="small-database", search=search, candidates=9, epsilon=epsilon, size=size
    )


def _quality(session: Session) -> list[float]:
    """Of the same synthetic table every time, so that nothing but the report is told; both are charged."""
    synthetic = session.synthesize(["a"], _CONDITIONS, method="small-database", epsilon=1e-3, size=1)
    found = quality(session, synthetic, ["a"], rho=0.5)
    return [*synthetic.weights.marginals([(0,)])[0,], found.max_error, found.mean_error]
