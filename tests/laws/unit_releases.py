"""Everything that a session lets out about units and their events, on hospitals so small that all neighbours can be
tried: one person's rows, in all tables, replaced by any others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from laws.releases import CURRENCIES, TABLE, Release, Row

import holdfast as hf
from holdfast import learn
from holdfast.data.lookup import with_lookups
from holdfast.data.unit_open import declared_units, open_units
from holdfast.data.unit_source import UnitSource
from holdfast.learn import clipped_descent, gram_regression
from holdfast.ledger import MemoryLedger
from holdfast.session.session import Session
from holdfast.session.table import Table

SCHEMAS = {
    "people": hf.Schema(age=hf.Integer(0, 9)),
    "visits": hf.Schema(x=hf.Integer(-2, 3), g=hf.Category("a", "b", "c"), t=hf.Text(2)),
    "drugs": hf.Schema(dose=hf.Integer(0, 1)),
}
BOUNDS = {"visits": 2, "drugs": 2}
LOOKUPS = {
    "groups": hf.Lookup({"g": ["a", "b"], "h": ["u", "v"], "weight": [-3, 4]}, "g"),
    "ages": hf.Lookup({"age": [0, 9], "old": [False, True]}, "age"),
}
UNITS: tuple[Row, ...] = (
    (0, (), ()),
    (9, ((3, "a"),) * 3, (1, 1, 1)),
    (9, ((3, "b"), (3, "b")), (1,)),
    (0, ((-2, "a"), (-2, "a")), (0, 0)),
    (5, ((-2, "a"), (3, "b")), ()),
    (None, ((None, None),), (None,)),
    (0, ((-2, "a"), (0, "b"), (3, "c"), (1, "c")), (0, 1, 1)),
)
"""Age, visits, doses: nobody's, too many, both ends of every range, in one group and in several, NULL, and one of
whose rows it is left to chance which are kept."""
BASE = (UNITS[0], UNITS[6], UNITS[3], UNITS[2], UNITS[6], UNITS[1])
NOBODY = UNITS[:1] * 4 + UNITS[6:7]
MIDDLE = (UNITS[3], *((0, ((0, "a"), (0, "a")), ()) for _ in range(4)), UNITS[2])


@lru_cache(maxsize=4096)
def source_of(units: tuple[Row, ...], secret: bytes = bytes(range(16))) -> UnitSource:
    """The same rows are kept in every opening: the secret is the ledger's, and belongs to no neighbour."""
    people = {"person": list(range(len(units))), "age": [unit[0] for unit in units]}
    visits = [(person, *visit) for person, unit in enumerate(units) for visit in unit[1]]
    drugs = [(person, dose) for person, unit in enumerate(units) for dose in unit[2]]
    tables = {
        "people": people,
        "visits": {n: [row[i] for row in visits] for n, i in (("person", 0), ("x", 1), ("g", 2), ("t", 2))},
        "drugs": {n: [row[i] for row in drugs] for i, n in enumerate(("person", "dose"))},
    }
    units = open_units(declared_units(tables, SCHEMAS, "person", BOUNDS, {"visits": "x"}), secret)
    found = with_lookups(units, LOOKUPS)
    assert isinstance(found, UnitSource)
    return found


@dataclass(frozen=True)
class UnitRelease(Release):
    """A `Release` whose rows are units."""

    base: tuple[Row, ...] = BASE
    kinds: tuple[Row, ...] = UNITS
    alike: bool = False

    def opened(self, rows: Sequence[Row]) -> Session:
        table = Table(source_of(tuple(rows)), MemoryLedger())
        return table.session(**CURRENCIES[self.currency], **self.session)


Ask = Callable[[Session], Any]
_BUDGETS: dict[str, dict[str, Any]] = {"pure": {"epsilon": 60.0}, "zcdp": {"rho": 60.0}, "gdp": {"rho": 0.1}}
_EVENTS: dict[str, Callable[..., Any]] = {
    "count of events": lambda s, **how: s.count("visits.x > 0", **how),
    "fraction of events": lambda s, **how: s.fraction("visits.x > 0", **how),
    "sum over events": lambda s, **how: s.sum("visits.x", **how),
    "mean over events": lambda s, **how: s.mean("visits.x", "age > 0", **how),
    "count of events by": lambda s, **how: s.count("x IS NOT NULL", by="visits.g", **how),
    "mean over events by": lambda s, **how: s.mean("visits.x", by="visits.g", **how),
    "sum over events by the unit's": lambda s, **how: s.sum("visits.x", by="age", edges=[0, 5, 9], **how),
    "histogram of events": lambda s, **how: s.histogram("visits.g", **how),
    "quantile of events": lambda s, **how: s.quantile("visits.x", edges=[-2, -1, 0, 1, 2, 3], **how),
    "quantile of events, smoothed": lambda s, **how: s.quantile(
        "visits.x", edges=[-2, -1, 0, 1, 2, 3], mechanism="smoothed", **how
    ),
    "quantile of events by": lambda s, **how: s.quantile("visits.x", by="visits.g", edges=[-2, 0, 3], **how),
    "quantiles of events by": lambda s, **how: s.quantile(
        "visits.x", [0.5, 0.9], by="visits.g", edges=[-2, 0, 3], **how
    ),
    "sum over events that runs": lambda s, **how: s.sum("visits.x", by="visits.x", cumulative=True, **how),
    "independence of events": lambda s, **how: s.independence("visits.g", "visits.x > 0", **how),
    "distinct values of events": lambda s, **how: s.distinct("visits.x", **how),
    "distinct values of events by": lambda s, **how: s.distinct("visits.x", by="visits.g", **how),
    "distinct texts of events": lambda s, **how: s.distinct("visits.t", **how),
    "sum of what events look up": lambda s, **how: s.sum("groups.weight", by="ages.old", **how),
    "count of events with texts": lambda s, **how: s.count("visits.t = 'a' OR t LIKE 'b%'", **how),
    "share of events": lambda s, **how: s.fraction("visits.x > 0", given="visits.x <> 0", **how),
    "ratio over events": lambda s, **how: s.ratio("visits.x", "visits.x + 3", by="visits.g", **how),
    "variance over events": lambda s, **how: s.variance("visits.x", **how),
    "contrast over events": lambda s, **how: s.difference(
        "visits.g = 'a'", "visits.g = 'b'", of="visits.x", **how
    ),
    "correlation over events": lambda s, **how: s.correlation("visits.x", "visits.x + age", **how),
    "deviation over events": lambda s, **how: s.std("visits.x", **how),
    "covariance over events": lambda s, **how: s.covariance("visits.x", "age", **how),
    "regression over events": lambda s, **how: s.regression("visits.x", ["age"], **how),
    "histogram of events by edges": lambda s, **how: s.histogram("visits.x", [-2, 0, 3], **how),
    "top of events": lambda s, **how: s.top("visits.g", 2, **how),
    "sql over events": lambda s, **how: s.sql_one(
        "SELECT count(*) FROM visits JOIN people USING (person)", **how
    ),
}
_UNITS: dict[str, Callable[..., Any]] = {
    "fraction of units": lambda s, **how: s.fraction("count(visits, x > 0) >= 2", **how),
    "count of units": lambda s, **how: s.count("exists(visits, g = 'b') AND max(visits.x) > 0", **how),
    "sum over units": lambda s, **how: s.sum("sum(visits.x)", **how),
    "mean of means": lambda s, **how: s.mean("avg(visits.x)", **how),
    "sum of what a unit's events look up": lambda s, **how: s.sum("sum(groups.weight)", "ages.old", **how),
    "count of units by their texts": lambda s, **how: s.count("count(visits, t = 'c') >= 1", **how),
    "fraction of units by": lambda s, **how: s.fraction("count(visits) > 1", by="last(visits.g)", **how),
    "difference of units": lambda s, **how: s.difference("exists(visits)", "exists(drugs)", **how),
    "share of units": lambda s, **how: s.fraction("exists(drugs)", given="exists(visits)", **how),
    "mean of units by": lambda s, **how: s.mean("last(visits.x)", by="exists(drugs)", **how),
    "variance of units": lambda s, **how: s.variance("sum(visits.x)", **how),
    "quantile of units": lambda s, **how: s.quantile("count(visits)", edges=[0, 1, 2], **how),
    "statistic of units": lambda s, **how: s.statistic(_own, ["max(visits.x)", "count(drugs)"], **how),
    "count of units by what they pick": lambda s, **how: s.count(
        "first(visits.t) = 'a' OR min(visits.t) LIKE 'b%' OR last(visits.g) = 'c'", **how
    ),
    "sql of units": lambda s, **how: s.sql_one(
        "SELECT sum((SELECT x FROM visits WHERE visits.person = people.person ORDER BY x DESC LIMIT 1)) FROM people "
        "WHERE EXISTS (SELECT 1 FROM drugs WHERE drugs.person = people.person)",
        **how,
    ),
    "histogram of units": lambda s, **how: s.histogram("last(visits.g)", **how),
    "sum of two tables": lambda s, **how: s.sum("sum(visits.x) + 2 * count(drugs, dose > 0)", **how),
}


def _own(rows: dict[str, Any]) -> Any:
    """Somebody's own function of what the events say of a unit, into [0,1]."""
    return np.where(rows["max(visits.x)"] > 0, 1.0, 0.0) - 0.25 * (rows["count(drugs)"] == 2)


_MIDDLE = {"base": MIDDLE, "slack": 8.0, "because": "a row that changes its group moves few of the ranks"}
_WIDE = {"slack": 4.1, "because": "no unit is the worst for the sum and for the count, or for all groups"}


def units() -> Iterator[UnitRelease]:
    """Every kind of question about events and about units, in the currencies that count it."""
    for name, put in (_EVENTS | _UNITS).items():
        for currency, how in _BUDGETS.items():
            summed = any(word in name for word in ("quantiles", "runs", "independence"))
            if currency == ("pure" if summed else "gdp" if "quantile" in name else ""):
                continue
            middle = _MIDDLE if "quantile" in name else _WIDE
            yield _release(f"{name}, {currency}", currency, put, how, **middle)
    votes = {"mechanism": "votes"}
    for name, within in (("count of events", 9.5), ("sum over events", 48.0), ("fraction of units", 0.95)):
        put = (_EVENTS | _UNITS)[name]
        more = {"base": NOBODY, "slack": 2.0, "because": "nobody here is at the very end of the range"}
        yield _release(f"{name}, votes", "pure", put, votes | {"within": within}, **more)
    for name, (ask, currency, more) in _OTHERS.items():
        yield UnitRelease(f"{name}, of units", ask, currency, TABLE, **more)
    for name, (target, ask) in _DISCOVERIES.items():
        session = TABLE | {"target": target, "delta": 0.5, "keys_delta": 0.25}
        yield UnitRelease(f"keys of events, {name}", ask, "zcdp", session, MANY, **_KEYS)


def _release(
    name: str, currency: str, put: Callable[..., Any], how: dict[str, Any], **more: Any
) -> UnitRelease:
    return UnitRelease(name, lambda session: put(session, **how), currency, TABLE | {"queries": 1}, **more)


def _watched(session: Session) -> list[bool]:
    watch = session.sparse_vector(0.5, hits=1, epsilon=2.0)
    return [watch.above(where) for where in ("count(visits) < 1", "NOT exists(drugs)") if not watch.halted]


def _weighed(session: Session) -> list[Any]:
    weights = session.multiplicative_weights(["count(visits)"], queries=4, within=0.3)
    return [weights.fraction(where) for where in ("count(visits) = 0", "count(visits) >= 2")]


def _modelled(session: Session) -> list[Any]:
    made = session.synthesize(
        ["age", "count(visits)", "exists(drugs)"], method="marginals", rounds=1, rho=60.0
    )
    told = made.weights.marginals([(0,), (0, 1)])
    return [told[0,].tolist(), told[0, 1].tolist(), made.explanation, str(made.measured)]


def _made(session: Session) -> list[Any]:
    made = session.synthesize(["count(visits)", "exists(drugs)"], ["count(visits) > 1"], rounds=1, rho=0.5)
    return [made.weights.probabilities()[0].tolist()]


def _minimized(session: Session, **how: Any) -> list[Any]:
    loss = learn.squared(session.schema, ["sum(visits.x)"], "age", radius=1.0)
    return [session.minimize(loss, iterations=1, **how).theta.tolist()]


def _fitted(session: Session) -> Any:
    found = clipped_descent.fit(session, ["count(visits)", "age"], "exists(drugs)", 2, rho=0.5, steps=2)
    return [found.coefficients.tolist(), found.intercepts.tolist(), found.excess]


def _regressed(session: Session) -> Any:
    return gram_regression.regress(session, ["sum(visits.x)"], "age", rho=0.5).coefficients.tolist()


def _learned(session: Session) -> Any:
    classes = learn.FiniteClass(learn.Thresholds([0.0, 1.0]))
    found = classes.learn_in(session, ["count(visits)"], "exists(drugs)", epsilon=2.0)
    return [found.index, found.error]


MANY = (UNITS[2], UNITS[3], UNITS[4]) * 8 + (UNITS[6], (0, ((1, "c"), (3, "c")), ())) * 6
"""Keys that several units have, so that all neighbours have the same (see `releases.discoveries`)."""
_KEYS = {
    "slack": 3.0,
    "because": "two units with one key each are farther apart than any two of two keys here",
}
_DISCOVERIES: dict[str, tuple[str, Ask]] = {
    "gaussian": ("table", lambda s: s.keys("t", rho=0.5, delta=0.1)),
    "logistic": ("population", lambda s: s.keys("visits.t", rho=0.25, delta=0.1)),
    "by": ("table", lambda s: s.count("x > -9", by="visits.t", rho=60.0)),
}
_LOOSE = {
    "slack": 5.0,
    "because": "as of rows: these units are not the worst that the declared ranges allow",
}
_OTHERS: dict[str, tuple[Ask, str, dict[str, Any]]] = {
    "sample": (lambda s: [s.sample("exists(visits)")], "pure", _LOOSE | {"base": NOBODY}),
    "select": (lambda s: s.select(["count(visits) > 1", "exists(drugs)"], epsilon=2.0).index, "zcdp", _LOOSE),
    "sparse vector": (_watched, "pure", _LOOSE | {"base": NOBODY}),
    "weights": (_weighed, "pure", _LOOSE),
    "mwem": (_made, "zcdp", _LOOSE),
    "marginals": (_modelled, "zcdp", _LOOSE),
    "minimize": (lambda s: _minimized(s, rho=0.5), "zcdp", _LOOSE),
    "minimize, votes": (lambda s: _minimized(s, within=1e3, mechanism="votes"), "pure", _LOOSE),
    "fit": (_fitted, "zcdp", _LOOSE),
    "regress": (_regressed, "gdp", _LOOSE),
    "learn": (_learned, "pure", _LOOSE),
}
