"""Sessions on people with several rows: all rows of one person, in every table, are replaced by their opposite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from holdfast.audit.case import Case, one_by_one
from holdfast.audit.session_cases import claim, hashable, interval
from holdfast.data.lookup import Lookup, with_lookups
from holdfast.data.unit_open import declared_units, open_units
from holdfast.learn.own_loss import OwnLoss
from holdfast.learn.parameter_set import Ball
from holdfast.ledger import MemoryLedger
from holdfast.query.schema import Boolean, Category, Integer, Schema, Text
from holdfast.session import Session
from holdfast.session.table import Table

Person = tuple[bool, tuple[tuple[int, str], ...]]
NOBODY: Person = (False, ())
LOW: Person = (False, ((-1, "a"),) * 4)
HIGH: Person = (True, ((1, "b"),) * 9)
"""More rows than are kept: what is left out may not show."""
_SCHEMAS = {
    "people": Schema(a=Boolean()),
    "visits": Schema(x=Integer(-1, 1), g=Category("a", "b"), t=Text(1)),
}
_LOOKUPS = {"groups": Lookup({"g": ["a", "b"], "weight": [-4, 4]}, "g")}
_MOST = 3
_RUNS = 1_500


def units() -> list[Case]:
    """Questions about events, and about what they say of a person."""
    pure = {"epsilon": 100.0}
    return [
        case(
            "count of events",
            lambda s: s.count("visits.x > 0", epsilon=2.0).value,
            pure,
            NOBODY,
            (NOBODY,) * 9,
        ),
        case("sum over events", lambda s: s.sum("visits.x", epsilon=2.0).value, pure, LOW),
        case("mean over events", lambda s: interval(s.mean("visits.x", epsilon=2.0)), pure, LOW),
        case("fraction of events", lambda s: interval(s.fraction("visits.x > 0", epsilon=2.0)), pure, LOW),
        case("histogram of events", lambda s: s.histogram("visits.g", epsilon=2.0).value, pure, LOW),
        case(
            "quantile of events",
            lambda s: interval(s.quantile("visits.x", epsilon=3.0)),
            pure,
            LOW,
            (LOW, NOBODY),
        ),
        case(
            "keys of events",
            lambda s: len(s.keys("visits.t", rho=0.5, delta=0.02)),
            {"rho": 100.0, "delta": 0.5},
            LOW,
            (LOW,) * 5,
        ),
        case("count of units", lambda s: s.count("count(visits, x > 0) >= 2", epsilon=2.0).value, pure, LOW),
        case(
            "sum of what events look up",
            lambda s: s.sum("groups.weight", epsilon=2.0).value,
            pure,
            LOW,
        ),
        case(
            "count of events, votes",
            lambda s: s.count("visits.x > 0", within=14.0, mechanism="votes").value,
            pure,
            NOBODY,
            (NOBODY,) * 4,
        ),
        case("mean of means", lambda s: interval(s.mean("avg(visits.x)", epsilon=2.0)), pure, LOW),
        case(
            "fraction of units by", lambda s: s.fraction("a OR NOT a", by=_WORD, epsilon=2.0).value, pure, LOW
        ),
        case("histogram of units", lambda s: s.histogram("last(visits.g)", epsilon=2.0).value, pure, LOW),
        case(
            "quantile of units",
            lambda s: s.quantile("sum(visits.x)", epsilon=6.0).value,
            pure,
            LOW,
            (LOW, HIGH, NOBODY),
        ),
        case(
            "count of units by their text",
            lambda s: s.count("min(visits.t) = 'b'", epsilon=2.0).value,
            pure,
            LOW,
        ),
        case(
            "statistic of units", lambda s: s.statistic(_own, ["max(visits.x)"], epsilon=2.0).value, pure, LOW
        ),
        case(
            "variance over events",
            lambda s: interval(s.variance("visits.x", epsilon=3.0)),
            pure,
            NOBODY,
            (NOBODY,),
        ),
        case("sample of units", lambda s: s.sample(_WORD), pure, LOW),
        case("select of units", _chosen, pure, LOW),
        case("sparse vector of units", _watched, pure, LOW),
        case("multiplicative weights of units", _weighed, pure, LOW, (LOW,) * 77 + (HIGH,) * 22, 160),
        case("minimize of units", _least, {"rho": 100.0}, LOW),
        case("synthesize of units", _synthetic, pure, LOW),
    ]


_WORD = "count(visits, x > 0) >= 2"
"""What LOW and HIGH differ in, by their events."""


def _own(rows: Mapping[str, Any]) -> Any:
    return (rows["max(visits.x)"] + 1) / 2


def _chosen(session: Session) -> int:
    """One candidate falls by a unit, four others rise by it."""
    return session.select(range(5), [f"NOT {_WORD}"] + [_WORD] * 4, epsilon=2.0).index


def _watched(session: Session) -> list[bool]:
    vector = session.sparse_vector(0.9, 1, epsilon=2.5)
    return [not vector.halted and vector.above(where) for where in [_WORD] * 4 + [f"NOT {_WORD}"] * 2]


def _weighed(session: Session) -> list[float]:
    weights = session.multiplicative_weights(["exists(visits, x > 0)"], queries=1, within=0.5)
    return [weights.fraction("NOT exists(visits, x > 0)").value, weights.updates]


def _least(session: Session) -> list[float]:
    line = OwnLoss(
        session.schema,
        ["max(visits.x)"],
        value=lambda theta, rows: (rows * theta)[:, 0],
        gradient=lambda theta, rows: rows,
        region=Ball(1, 4.0),
        lipschitz=1.0,
        smooth=1.0,
    )
    found = session.minimize(line, iterations=1, rho=0.5, mechanism="gaussian")
    return [float(x) for x in found.theta]


def _synthetic(session: Session) -> Any:
    columns, conditions = ["exists(visits, x > 0)"], ["exists(visits, x > 0)", "NOT exists(visits, x > 0)"]
    return session.synthesize(columns, conditions, epsilon=2.0).weights.marginals([(0,)])[0,]


def case(
    name: str,
    ask: Callable[[Session], Any],
    budget: dict[str, Any],
    first: Person,
    rest: tuple[Person, ...] = (),
    runs: int = _RUNS,
) -> Case:
    """An audit of what `ask` is told when one person is as `first` or as HIGH; see `session_cases.case`."""
    terms = budget | {"target": "table", "queries": 1, "confidence": 0.5}
    low, high = (*rest, first), (*rest, HIGH)
    asked = _opened(low, terms)
    ask(asked)
    epsilon, delta = claim(asked)
    many = one_by_one(lambda people: hashable(ask(_opened(people, terms))))
    return Case(f"session: {name}", many, low, high, epsilon, delta, runs)


def _opened(people: tuple[Person, ...], terms: dict[str, Any]) -> Session:
    return Table(_source(people), MemoryLedger()).session(**terms)


@lru_cache
def _source(people: tuple[Person, ...]) -> Any:
    visits = [(place, *visit) for place, person in enumerate(people) for visit in person[1]]
    tables = {
        "people": {"person": list(range(len(people))), "a": [person[0] for person in people]},
        "visits": {
            n: [visit[i] for visit in visits] for n, i in (("person", 0), ("x", 1), ("g", 2), ("t", 2))
        },
    }
    units = open_units(
        declared_units(tables, _SCHEMAS, "person", {"visits": _MOST}, {"visits": "x"}), bytes(16)
    )
    return with_lookups(units, _LOOKUPS)
