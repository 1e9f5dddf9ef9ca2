"""Every way in which a session lets something out, on tables so small that all neighbours can be tried.

A new question, mechanism, version or method needs a line here; tests/laws/test_charged_event.py notices if it has none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import holdfast as hf
from holdfast import learn, synthesis
from holdfast.data.lookup import with_lookups
from holdfast.data.open import open_source
from holdfast.learn import clipped_descent, gram_regression
from holdfast.ledger import MemoryLedger
from holdfast.session.session import Session
from holdfast.session.table import Table

SCHEMA = hf.Schema(
    x=hf.Integer(-2, 3), y=hf.Real(-1.0, 2.0, step=0.5), g=hf.Category("a", "b", "c"), t=hf.Boolean()
)
WITH_TEXTS = hf.Schema.from_mapping({**SCHEMA, "g": hf.Text(1)})
"""The groups as texts that nobody declared."""
Row = tuple[Any, ...]
KINDS: tuple[Row, ...] = (
    (-2, -1.0, "a", False),
    (3, 2.0, "b", True),
    (3, 2.0, "a", False),
    (0, 0.2, "c", True),
    (None, None, None, None),
)
"""The rows that may be: both ends of every range, alone and with another group, the middle, and NULL."""
BASE: tuple[Row, ...] = (KINDS[0], KINDS[0], KINDS[1], KINDS[2], KINDS[3], KINDS[0])
CURRENCIES: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1e6},
    "zcdp": {"rho": 1e6},
    "gdp": {"rho": 1e6, "only": "gaussian"},
    "validity": {},
}
"""Budgets that nothing here exhausts; a session planned for validity has its own."""


@dataclass(frozen=True)
class Release:
    """`ask` puts something to a session and returns all that it was told.

    `answers` are patterns of what a sparse vector is made to say. A charge may be up to `slack` times what the
    worst of the neighbours tried shows; where that is more than a little, `because` says why. Rows that are `alike` are
    shown alike: equal rows stand for each other, which equal units beyond their bound do not.
    """

    name: str
    ask: Callable[[Session], Any]
    currency: str
    session: dict[str, Any]
    base: tuple[Row, ...] = BASE
    kinds: tuple[Row, ...] = KINDS
    rows_per_unit: int = 1
    answers: tuple[tuple[bool, ...], ...] = ((),)
    slack: float = 1.001
    because: str = ""
    schema: hf.Schema = SCHEMA
    lookups: Any = None
    alike: bool = True

    def neighbours(self) -> Iterator[tuple[Row, ...]]:
        """All tables in which one person's rows are others; rows of one kind stand for each other."""
        places = [self.base.index(kind) for kind in dict.fromkeys(self.base)]
        owned = [(place,) for place in places]
        if self.rows_per_unit == 2:
            owned = [(0, 1), (0, places[-1])]
        for mine in owned:
            for kinds in itertools.product(self.kinds, repeat=len(mine)):
                rows = list(self.base)
                for place, kind in zip(mine, kinds, strict=True):
                    rows[place] = kind
                if tuple(rows) != self.base:
                    yield tuple(rows)

    def opened(self, rows: Sequence[Row]) -> Session:
        """A fresh session on a table of its own."""
        columns = {name: np.array([row[i] for row in rows], dtype=object) for i, name in enumerate(SCHEMA)}
        source = with_lookups(open_source(columns, self.schema), self.lookups)
        table = Table(source, MemoryLedger(), self.rows_per_unit)
        return table.session(**CURRENCIES[self.currency], **self.session)


TABLE = {"target": "table", "queries": 20, "confidence": 0.5}
ALIKE = KINDS[:1] * 6
MANY = (BASE * 7)[:40]
HALVES = KINDS[:1] * 20 + KINDS[1:2] * 20
MIDDLE = ((-2, 0.0, "a", False), *(((0, 0.0, "a", False),) * 4), (3, 0.0, "a", False))
GROUPS = ((-2, 0.0, "a", False), *(((1, 0.0, "a", False),) * 30), *(((1, 0.0, "b", False),) * 30))
Ask = Callable[..., Any]


@dataclass(frozen=True)
class Question:
    """What a session answers by a plan: how it is put, and a width that every mechanism for it can keep.

    `base` is a table on which one row can do its worst: for a vote, whose loss is greatest next to 0, one without
    hits; for a quantile one whose ranks have rows on both sides, in bins of their own.
    """

    put: Ask
    within: float
    base: tuple[Row, ...] = BASE
    kinds: tuple[Row, ...] = KINDS
    slack: float = 1.1
    because: str = "what rounding, subsampling and votes leave"
    parts: int = 1
    """What mu squared may be charged more for several parts, of which each has its square: as one, or each as the most.

    The others are tried at budgets where their losses add up as they are, and a move that is too small is not squared.
    """


_RANKS = {
    "slack": 1.35,
    "because": "a row that leaves a group moves scores by 9/10 of what is charged, at rank 1/10",
}
_TWO_PARTS = {"slack": 4.0, "because": "by votes: no row is the worst for the sum and for the count"}
_SEVERAL = {
    "slack": 1.6,
    "because": "no row here is at the worst of all ranges at once; tests/query/test_joint.py has those that are",
}
_LINES = {
    "slack": 1.6,
    "because": "the rows that are tried are not the longest in both lines; tests/query/test_running.py has those",
}
QUESTIONS: dict[str, Question] = {
    "fraction": Question(lambda s, **how: s.fraction("x > 0", **how), 0.9, ALIKE),
    "fraction by": Question(lambda s, **how: s.fraction("x > 0 OR x < 0", by="g", **how), 0.9),
    "difference": Question(lambda s, **how: s.difference("x > 0", "x < 0", **how), 1.8, ALIKE),
    "count": Question(lambda s, **how: s.count("t", **how), 5.4, ALIKE),
    "count by": Question(lambda s, **how: s.count("x IS NOT NULL", by="g", **how), 5.4),
    "sum": Question(lambda s, **how: s.sum("x", **how), 27.0, ALIKE),
    "sum by": Question(lambda s, **how: s.sum("x", by="g", **how), 27.0),
    "sum of an expression": Question(lambda s, **how: s.sum("2 * x - 1", "g <> 'c'", **how), 55.0, ALIKE),
    "mean": Question(lambda s, **how: s.mean("x", **how), 4.5, MANY, **_TWO_PARTS),
    "mean of a real": Question(lambda s, **how: s.mean("y", **how), 2.9, MANY, **_TWO_PARTS),
    "mean by": Question(lambda s, **how: s.mean("x", by="g", **how), 4.5, MANY, parts=2),
    "share": Question(lambda s, **how: s.fraction("x > 0", given="x <> 0", **how), 0.9, MANY, **_TWO_PARTS),
    "share by": Question(lambda s, **how: s.fraction("x > 0", given="x <> 0", by="g", **how), 0.9, MANY),
    "share of what is known": Question(lambda s, **how: s.mean("t", **how), 0.9, MANY, **_TWO_PARTS),
    "ratio": Question(lambda s, **how: s.ratio("x", "y", **how), 0.9, MANY, **_SEVERAL),
    "ratio by": Question(lambda s, **how: s.ratio("x", "y", by="g", **how), 0.9, MANY, **_SEVERAL),
    "variance": Question(lambda s, **how: s.variance("x", **how), 6.0, MANY, **_SEVERAL, parts=2),
    "variance by": Question(
        lambda s, **how: s.variance("y", by="g", sample=True, **how), 2.0, MANY, **_SEVERAL, parts=2
    ),
    "std": Question(lambda s, **how: s.std("y", **how), 1.4, MANY, **_SEVERAL),
    "covariance": Question(lambda s, **how: s.covariance("x", "y", **how), 7.4, MANY, **_SEVERAL),
    "correlation": Question(lambda s, **how: s.correlation("x", "y", **how), 1.9, MANY, **_SEVERAL, parts=2),
    "contrast": Question(
        lambda s, **how: s.difference("g = 'a'", "g = 'b'", of="x", **how), 9.9, MANY, **_SEVERAL, parts=2
    ),
    "regression": Question(lambda s, **how: s.regression("y", ["x"], **how), 1.9, MANY, **_SEVERAL, parts=2),
    "slope": Question(
        lambda s, **how: s.sql_one("SELECT regr_slope(y, x) FROM t", **how), 1.9, MANY, **_SEVERAL, parts=2
    ),
    "intercept": Question(
        lambda s, **how: s.sql_one("SELECT regr_intercept(y, x) FROM t", **how),
        1.9,
        MANY,
        **_SEVERAL,
        parts=2,
    ),
    "r2 by groups": Question(
        lambda s, **how: s.sql_one("SELECT g, regr_r2(y, x) FROM t GROUP BY g", **how),
        1.9,
        MANY,
        **_SEVERAL,
        parts=3,
    ),
    "histogram of the top": Question(lambda s, **how: s.top("g", 2, **how), 5.4),
    "contrast of shares": Question(
        lambda s, **how: s.difference("x < 3", "x > -2", of="t", **how), 1.9, MANY, **_SEVERAL, parts=3
    ),
    "histogram": Question(lambda s, **how: s.histogram("g", **how), 5.4),
    "histogram by edges": Question(lambda s, **how: s.histogram("x", [-2, 0, 3], **how), 5.4),
    "quantile": Question(
        lambda s, **how: s.median("x", edges=[-2, -1, 0, 1, 2, 3], **how), 0.9, MIDDLE, MIDDLE, parts=12
    ),
    "quantile by": Question(
        lambda s, **how: s.quantile("x", 0.1, by="g", edges=[-2, -1, 0, 1, 2, 3], **how),
        0.9,
        GROUPS,
        ((-2, 0.0, "b", False), (3, 0.0, "a", False), (3, 0.0, "c", False)),
        **_RANKS,
        parts=3,
    ),
    "quantiles": Question(
        lambda s, **how: s.quantile("x", [0.2, 0.5], edges=[-2, -1, 0, 1, 2, 3], **how), 0.9, BASE
    ),
    "quantiles by": Question(
        lambda s, **how: s.quantile("x", [0.5], by="g", edges=[-2, 0, 3], **how), 0.9, GROUPS, KINDS, **_LINES
    ),
    "count that runs": Question(lambda s, **how: s.count(by="x", cumulative=True, **how), 5.4),
    "sum that runs by": Question(
        lambda s, **how: s.sum("x", by=["g", "x"], edges={"x": [-2, 0, 3]}, cumulative=True, **how),
        27.0,
        **_LINES,
    ),
    "independence": Question(lambda s, **how: s.independence("g", "t", **how), 0.9),
    "distinct": Question(lambda s, **how: s.distinct("x", **how), 3.0, ALIKE),
    "distinct by": Question(lambda s, **how: s.distinct("x", by="g", **how), 3.0, KINDS[:1] * 3 + KINDS[1:2]),
    "statistic": Question(lambda s, **how: s.statistic(_half, ["x", "g"], **how), 0.9, MANY, **_TWO_PARTS),
    "sql": Question(lambda s, **how: s.sql_one("SELECT count(*) FROM t WHERE t", **how), 5.4, ALIKE),
    "sql with several": Question(
        lambda s, **how: s.sql("SELECT g, sum(x), median(x), avg(x) FROM t GROUP BY g", **how),
        4.5,
        MANY,
        slack=2.0,
        because="no row is the worst for a median and for sums",
    ),
}

SUMMED = ("quantiles", "quantiles by", "count that runs", "sum that runs by", "independence")
"""Those that are read off sums with Gaussian noise, which pure sessions refuse."""


def _half(rows: dict[str, Any]) -> Any:
    """Somebody's own function of a row, into [0,1]."""
    return np.where(rows["x"] > 0, 1.0, 0.0) - 0.25 * (rows["g"] == 2)


MECHANISMS = ("laplace", "logistic", "gaussian", "votes", "subsampled-laplace", "exponential", "smoothed")
_BUDGETS = {"pure": {"epsilon": 60.0}, "zcdp": {"rho": 60.0}, "gdp": {"rho": 0.1}}


def answered() -> Iterator[tuple[str, str | None, str, Release]]:
    """Every question, by every mechanism, in every currency; who refuses must not have charged."""
    for (name, question), currency in itertools.product(QUESTIONS.items(), ("pure", "zcdp", "gdp")):
        for mechanism in (None, *MECHANISMS):
            planned = mechanism in ("votes", "subsampled-laplace")
            how: dict[str, Any] = {"within": question.within} if planned else dict(_BUDGETS[currency])
            how |= {} if mechanism is None else {"mechanism": mechanism}
            yield (
                name,
                mechanism,
                currency,
                _put(f"{name}, {mechanism or 'as planned'}", currency, question, how),
            )


def _put(name: str, currency: str, question: Question, how: dict[str, Any], **more: Any) -> Release:
    return Release(
        f"{name}, {currency}",
        lambda session: question.put(session, **how),
        currency,
        TABLE | {"queries": 3 if "several" in name else 1},
        question.base,
        question.kinds,
        slack=question.slack if currency != "gdp" else question.slack**2 * question.parts,
        because=question.because,
        **more,
    )


def _sampled(session: Session) -> list[bool]:
    return [session.sample("x > 0"), session.sample("x > 0"), session.sample("t", key="again")]


def _numbers(session: Session) -> Any:
    """Scores from elsewhere: halves of counts, of which one row moves each by a half."""
    held = np.zeros(3)
    for block in session._desk.for_the_owner().scan(["g"]):
        held += [np.count_nonzero(block["g"] == code) / 2 for code in range(3)]
    return held


def _watched(session: Session, **terms: Any) -> list[bool]:
    """Questions of which one row moves some down and some up, as far as the sparse vector goes on."""
    watch = session.sparse_vector(0.5, **terms)
    told = []
    for where in ("x < 0", "x < 0 OR g = 'c'", "x < -1", "NOT t", "x > 0", "t"):
        told += [] if watch.halted else [watch.above(where)]
    return told


def _weighed(session: Session, **terms: Any) -> list[Any]:
    """Questions to weights, of which some become updates; the second one is answered already.

    A row that goes from a to b brings all of them nearer to the weights but the last, which it takes further away.
    """
    weights = session.multiplicative_weights(["g", "t"], queries=12, **terms)
    asked = [weights.fraction(where) for where in ("g = 'a'", "g = 'a'", "g = 'a' AND NOT t")]
    asked += [weights.product({"g": [1.0, 0.0, tenths / 10]}) for tenths in range(5)]
    return [*asked, weights.product({"g": [0.0, 1.0, 0.0]})]


def _signs(rows: Any) -> Any:
    return np.sign(np.nan_to_num(rows))


LOSSES: dict[str, Any] = {
    "squared": learn.squared(SCHEMA, ["x"], "y", radius=1.0),
    "logistic": learn.logistic(SCHEMA, ["x", "y"], "t", radius=2.0, penalty=0.1),
    "hinge": learn.hinge(SCHEMA, ["x"], "t", radius=2.0),
    "line": learn.OwnLoss(
        SCHEMA,
        ["x"],
        value=lambda theta, rows: (_signs(rows) * theta)[:, 0],
        gradient=lambda theta, rows: _signs(rows),
        region=learn.Ball(1, 4.0),
        lipschitz=1.0,
        smooth=0.2,
    ),
}
"""The last one is a straight line through each row, up or down: no row can do worse, at any parameter."""


def _minimized(session: Session, loss: str, iterations: int = 2, **how: Any) -> list[Any]:
    found = session.minimize(LOSSES[loss], iterations=iterations, **how)
    return [found.theta.tolist(), found.plan.event]


CONDITIONS = ["g = 'a'", "t", "g = 'b' AND t", "NOT t"]


def _made(session: Session, **how: Any) -> list[Any]:
    made = session.synthesize(["g", "t"], CONDITIONS, **how)
    return [made.weights.probabilities()[0].tolist(), made.explanation]


def _modelled(session: Session, columns: Any = None, **how: Any) -> list[Any]:
    made = session.synthesize(columns or ["g", "t", "x"], method="marginals", **how)
    told = made.weights.marginals([(0,), (0, 1)])
    return [told[0,].tolist(), told[0, 1].tolist(), made.explanation, str(made.measured)]


def _quality(session: Session) -> Any:
    synthetic = synthesis.small_database(session, ["g", "t"], CONDITIONS, epsilon=1.0, size=1)
    return str(synthesis.quality(session, synthetic, ["g = 'a'", "g = 'b'"], rho=0.5))


def _learned(session: Session) -> Any:
    found = learn.FiniteClass(learn.Thresholds([0.0, 1.0])).learn_in(session, ["x"], "t", epsilon=2.0)
    return [found.index, found.error]


def _fitted(session: Session, **how: Any) -> Any:
    found = clipped_descent.fit(session, ["x", "y"], "t", 2, rho=0.5, steps=2, **how)
    return [found.coefficients.tolist(), found.intercepts.tolist(), found.excess]


def _regressed(session: Session) -> Any:
    found = gram_regression.regress(session, ["x"], "y", rho=0.5)
    return found.coefficients.tolist()


_HITS = ((), (True,), (False,) * 4 + (True, True), (False, False, True, False, True))
_SPARSE = {"answers": _HITS, "base": ALIKE}
_ROOM = {"slack": 1.05, "because": "four questions below do not quite pin the threshold"}
_RUNS = {
    "slack": 3.0,
    "because": "where each hit has a threshold of its own, it comes late in one of them only",
}
_WEIGHTS = {
    "answers": ((), (True,), (False,) * 7 + (True,), (True, False, True, True)),
    "base": HALVES,
    "slack": 3.0,
    "because": "a run is paid whole, and seven questions below do not quite pin its threshold",
}
_STEEP = {"slack": 10.0, "because": "these rows are shorter than the longest that the declared bounds allow"}
_VOTED = {"slack": 1.1, "because": "the zCDP of a vote is charged by its range, which is a little more"}
_RUN = {
    "slack": 1.7,
    "because": "the results of the runs do not lie at both ends of the region on every path",
}
_SHAPES = {
    "slack": 2.5,
    "because": "no two of these rows are at right angles, as the worst second moments are",
}
_CHOSEN = {
    "slack": 1.6,
    "because": "on so few rows the errors are small beside 1/rate, where the smoothed ones move less than charged",
}
_SEARCHED = {"slack": 2.0, "because": "no condition moves all candidates the worst way"}
Other = tuple[Ask, tuple[str, ...], dict[str, Any]]
LOOKUPS = {"kinds": hf.Lookup({"g": ["a", "b"], "h": ["u", "v"], "weight": [-3, 4]}, "g")}
"""A public table beside the rows: two of the three groups weigh something."""
OTHERS: dict[str, Other] = {
    "sample": (_sampled, ("pure", "zcdp"), {"base": ALIKE} | _VOTED),
    "select, exponential": (
        lambda s: s.select(["x > 0", "x < 0", "t"], epsilon=2.0, mechanism="exponential").index,
        ("pure", "zcdp"),
        {},
    ),
    "select, permute-and-flip": (
        lambda s: s.select(["x > 0", "x < 0", "t"], epsilon=2.0, mechanism="permute-and-flip").index,
        ("pure", "zcdp"),
        {"slack": 1.1, "because": "the loss is attained in the limit of many candidates"},
    ),
    "select, scores": (
        lambda s: (
            s.select(["a", "b", "c"], _numbers(s), sensitivity=0.5, rho=0.5, mechanism="exponential").index
        ),
        ("zcdp",),
        {},
    ),
    "sparse vector, best": (lambda s: _watched(s, hits=1, epsilon=2.0), ("pure", "zcdp"), _SPARSE | _ROOM),
    "sparse vector, best, two hits": (
        lambda s: _watched(s, hits=2, epsilon=4.0),
        ("pure", "zcdp"),
        _SPARSE | _RUNS,
    ),
    "sparse vector, logistic": (
        lambda s: _watched(s, hits=1, epsilon=2.0, version="logistic"),
        ("pure", "zcdp"),
        _SPARSE | {"slack": 1.4, "because": "logistic noise reaches its ratio far out only"},
    ),
    "sparse vector, logistic, two hits": (
        lambda s: _watched(s, hits=2, epsilon=4.0, version="logistic"),
        ("pure", "zcdp"),
        _SPARSE | _RUNS,
    ),
    "sparse vector, best, rho": (lambda s: _watched(s, hits=2, rho=4.0), ("zcdp",), _SPARSE | _RUNS),
    "sparse vector, best, delta": (
        lambda s: _watched(s, hits=2, epsilon=4.0, delta=0.01),
        ("zcdp",),
        _SPARSE | _RUNS | {"answers": _HITS[2:3]},
    ),
    "sparse vector, lecture": (
        lambda s: _watched(s, hits=2, epsilon=4.0, version="lecture"),
        ("pure", "zcdp"),
        _SPARSE | _RUNS,
    ),
    "sparse vector, lecture, delta": (
        lambda s: _watched(s, hits=2, epsilon=4.0, delta=0.01, version="lecture"),
        ("zcdp",),
        _SPARSE | _RUNS,
    ),
    "weights, best": (lambda s: _weighed(s, within=0.2), ("pure", "zcdp"), _WEIGHTS),
    "weights, factors": (lambda s: _weighed(s, within=0.2, memory=2**26), ("pure", "zcdp"), _WEIGHTS),
    "weights, logistic": (
        lambda s: _weighed(s, rho=1.0),
        ("zcdp",),
        _WEIGHTS
        | {
            "session": {"queries": 20, "confidence": 0.5},
            "base": KINDS[:1] * 400,
            "slack": 4.0,
            "because": "the next run is paid whole before its first question, which asks the last one again",
            "answers": ((), (True,), (False,) * 15 + (True,), (True, False, True)),
        },
    ),
    "weights, lecture": (
        lambda s: _weighed(s, epsilon=400.0, delta=0.01, version="lecture"),
        ("zcdp",),
        _WEIGHTS,
    ),
    "weights, textbook": (lambda s: _weighed(s, epsilon=2000.0, version="textbook"), ("pure",), _WEIGHTS),
    "minimize, gaussian": (
        lambda s: _minimized(s, "squared", rho=0.5, mechanism="gaussian"),
        ("zcdp", "gdp"),
        _STEEP,
    ),
    "minimize, votes": (
        lambda s: _minimized(s, "logistic", within=1e3, mechanism="votes"),
        ("pure", "zcdp"),
        _STEEP,
    ),
    "minimize, hinge": (lambda s: _minimized(s, "hinge", rho=0.5), ("zcdp",), {}),
    "minimize, line": (lambda s: _minimized(s, "line", rho=0.5), ("zcdp", "gdp"), {}),
    "minimize, best of runs": (
        lambda s: _minimized(s, "line", 1, rho=0.5, runs=3),
        ("zcdp",),
        {"answers": ((),) * 3} | _RUN,
    ),
    "minimize, best of runs by votes": (
        lambda s: _minimized(s, "line", 1, epsilon=30.0, runs=3),
        ("pure",),
        {"base": ALIKE} | _RUN,
    ),
    "mwem": (lambda s: _made(s, rounds=2, rho=0.5), ("zcdp",), {}),
    "mwem, laplace": (lambda s: _made(s, rounds=2, epsilon=2.0), ("pure", "zcdp"), {}),
    "marginals": (lambda s: _modelled(s, rounds=1, rho=60.0), ("zcdp",), _CHOSEN),
    "marginals, all of them": (lambda s: _modelled(s, ["g", "t"], rho=0.3), ("zcdp", "gdp"), {"base": MANY}),
    "marginals, laplace": (lambda s: _modelled(s, rounds=1, epsilon=60.0), ("pure",), _CHOSEN),
    "small database, exact": (
        lambda s: _made(s, method="small-database", epsilon=2.0, size=2),
        ("pure", "zcdp"),
        {},
    ),
    "small database, greedy": (
        lambda s: _made(s, method="small-database", epsilon=2.0, size=3, search="greedy"),
        ("pure", "zcdp"),
        _SEARCHED,
    ),
    "small database, candidates": (
        lambda s: _made(s, method="small-database", epsilon=2.0, size=2, search="candidates", candidates=12),
        ("pure",),
        _SEARCHED,
    ),
    "extremes": (
        lambda s: [s.min("x", epsilon=2.0), s.max("x", epsilon=2.0)],
        ("pure", "zcdp"),
        {
            "base": MIDDLE,
            "slack": math.inf,
            "because": "a handful of rows has hardly a score to move at such ranks",
        },
    ),
    "distinct texts": (
        lambda s: s.distinct("g", rho=60.0),
        ("zcdp",),
        {"schema": WITH_TEXTS, "base": ALIKE},
    ),
    "quality": (_quality, ("zcdp",), {}),
    "learn": (_learned, ("pure", "zcdp"), {}),
    "fit": (_fitted, ("zcdp", "gdp"), _SHAPES),
    "fit, without intercept": (lambda s: _fitted(s, intercept=False), ("gdp",), _SHAPES),
    "fit, balanced": (lambda s: _fitted(s, class_weights="balanced"), ("zcdp",), _SHAPES),
    "regress": (_regressed, ("zcdp", "gdp"), _SHAPES),
    "sum of what is looked up": (
        lambda s: s.sum("kinds.weight + x", rho=60.0),
        ("zcdp",),
        {"lookups": LOOKUPS, "base": ALIKE},
    ),
    "sum of what a question brings": (
        lambda s: s.looking_up(LOOKUPS).sum("kinds.weight + x", rho=60.0),
        ("zcdp",),
        {"base": ALIKE},
    ),
    "histogram of what is looked up": (
        lambda s: s.histogram("kinds.h", rho=60.0),
        ("zcdp",),
        {"lookups": LOOKUPS},
    ),
}


def others() -> Iterator[Release]:
    """What is not answered by a plan."""
    for name, (ask, currencies, more) in OTHERS.items():
        for currency in currencies:
            yield Release(f"{name}, {currency}", ask, currency, **{"session": TABLE} | more)


def discoveries() -> Iterator[Release]:
    """Keys that several rows have, so that all neighbours have the same; what one row alone has is the matter of delta
    (tests/mechanisms/test_shown_keys.py)."""
    asked: dict[str, tuple[str, Callable[[Session], Any]]] = {
        "gaussian": ("table", lambda s: s.keys("g", rho=0.5, delta=0.1)),
        "logistic": ("population", lambda s: s.keys("g", rho=0.25, delta=0.1)),
        "by": ("table", lambda s: s.count("x > -9", by="g", rho=60.0)),
    }
    for name, (target, ask) in asked.items():
        session = TABLE | {"target": target, "delta": 0.5, "keys_delta": 0.25}
        base = (KINDS[0],) * 8 + (KINDS[1],) * 8 + (KINDS[3],) * 8
        more: dict[str, Any] = {} if name == "gaussian" else {"slack": 1.2, "because": "odds some way off"}
        yield Release(f"keys, {name}, zcdp", ask, "zcdp", session, base, schema=WITH_TEXTS, **more)
        yield Release(
            f"keys, {name}, zcdp, two rows", ask, "zcdp", session, base, schema=WITH_TEXTS, **_PAIRED
        )


def owned_in_pairs() -> Iterator[Release]:
    """A person owns two rows, and everything is charged for both."""
    for name, question in QUESTIONS.items():
        for currency in ("zcdp",) if name in SUMMED else ("pure", "zcdp"):
            yield replace(_put(f"{name}, two rows", currency, question, _BUDGETS[currency]), **_PAIRED)
    for name in ("fraction", "sum"):
        for mechanism in ("votes", "subsampled-laplace"):
            how = {"within": QUESTIONS[name].within, "mechanism": mechanism}
            yield replace(_put(f"{name}, {mechanism}, two rows", "zcdp", QUESTIONS[name], how), **_PAIRED)
    for release in others():
        # With a delta as without, and slow to plan; for the population rows have different owners.
        if "delta" not in release.name and release.session == TABLE:
            worst = release.answers[2:3] or ((),)
            yield replace(release, name=f"{release.name}, two rows", answers=worst, **_PAIRED)


_PAIRED = {"rows_per_unit": 2, "slack": math.inf, "because": "two rows seldom do their worst together"}


def for_the_population() -> Iterator[Release]:
    """What is released in another way there: a difference is told after its disagreement."""
    for currency in ("zcdp", "gdp"):
        how = _BUDGETS["gdp"]
        yield replace(
            _put("difference after its disagreement", currency, QUESTIONS["difference"], how),
            session={"queries": 20, "confidence": 0.5},
            base=ALIKE * 5,
        )
    for name, times in (("fraction", 1), ("fraction by", 1), ("mean", 2), ("sum", 1)):
        question = QUESTIONS[name]
        yield Release(
            f"{name} in its place, pure",
            lambda session, put=question.put: put(session),
            "pure",
            {"queries": 1, "confidence": 0.5},
            (question.base * 200)[:200],
            question.kinds,
            slack=1.1 * times,
            because="a mean is charged as two answers, and no row is the worst for both",
        )


def planned_for_validity() -> Iterator[Release]:
    """Sessions that are opened for a width."""
    for only in ("gaussian", "votes"):
        for name in ("fraction", "count", "sum", "mean", "statistic"):
            question = QUESTIONS[name]
            yield Release(
                f"{name}, {only}, within",
                lambda session, put=question.put: put(session),
                "validity",
                {"within": 0.12, "queries": 2, "confidence": 0.5, "only": only},
                KINDS[:1] * 400,
                slack=2.5,
                because="a mean is charged as two answers, and no row is the worst for both",
            )
