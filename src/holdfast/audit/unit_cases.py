"""Sessions on people with several rows: all rows of one person, in every table, are replaced by their opposite."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from holdfast.audit.case import Case, one_by_one
from holdfast.audit.session_cases import claim, hashable, interval
from holdfast.data.lookup import Lookup, with_lookups
from holdfast.data.unit_open import declared_units, open_units
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
    ]


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
    units = open_units(declared_units(tables, _SCHEMAS, "person", {"visits": _MOST}), bytes(16))
    return with_lookups(units, _LOOKUPS)
