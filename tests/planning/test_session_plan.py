"""What is planned when a session is opened: the least width under both budgets, in one line."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import Moment, Totals
from holdfast.planning import session_plan as session_plan_room
from holdfast.planning.budget import budget
from holdfast.planning.plain_answer import cost_in_all
from holdfast.planning.promise import LEFT_OUT
from holdfast.planning.session_plan import session_plan
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import Filter
from holdfast.privacy.rounding import miss
from holdfast.validity.places import Places
from holdfast.validity.rare_events import rare_width

SCHEMA = hf.Schema(x=hf.Integer(0, 9))


def table(n: int) -> hf.Table:
    return hf.open({"x": np.arange(n) % 10}, SCHEMA)


def test_the_budgets_pay_for_every_place() -> None:
    """The twin has no limit on its table, and plans for more than this one allows."""
    small = table(1_000)
    small.limit(rho=0.001)
    session = small.session(rho=1.0, queries=30)
    places, budget = session._terms.places, session._terms.table
    assert places is not None
    assert 0.9e6 < cost_in_all(places, budget) <= small.ledger.limit().limit
    free = table(1_000).session(rho=1.0, queries=30)._terms.places
    assert (
        free is not None
        and free.width < places.width
        and cost_in_all(free, budget) > small.ledger.limit().limit
    )


@pytest.mark.parametrize(
    ("how", "planned"),
    [
        ({"epsilon": 1.0, "delta": 1e-6}, True),
        ({"rho": 0.1, "only": "gaussian"}, True),
        ({"epsilon": 1.0}, True),
        ({"rho": 0.1, "target": "table"}, False),
    ],
)
def test_what_the_theorem_cannot_cover_has_no_places(how: dict[str, float], planned: bool) -> None:
    session = table(5_000).session(**how, queries=20)
    assert (session._terms.places is not None) is planned
    assert ("20 answers, each within" in session.plan) is planned
    if planned:
        assert session.fraction("x < 5").noise > 0


def test_more_budget_or_fewer_queries_are_never_wider() -> None:
    widths = [table(1_000).session(rho=rho, queries=50)._terms.places.width for rho in (1e-3, 1e-2, 1e-1)]
    assert widths == sorted(widths, reverse=True)
    widths = [table(1_000).session(rho=0.1, queries=k)._terms.places.width for k in (1, 10, 100)]
    assert widths == sorted(widths)


def planned(rows: int, queries: int, *, rare: bool = False, entries: int = 0) -> Places:
    """What would be planned on so many rows, without the rows."""
    own = budget(epsilon=1.0, delta=1e-6)
    terms = Terms(
        schema=SCHEMA, rows=rows, rows_per_unit=1, session=own.filter, table=Filter.zcdp(9e9), queries=queries,
        confidence=0.95, target="population",
    )  # fmt: skip
    made = session_plan(terms, Moment(Totals(), Totals(entries=entries)), rare=rare)
    assert made is not None
    return made


def test_answers_are_read_as_rare_events_where_that_costs_little_at_one_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At most 2.5%, by the plan alone; else by name: a thousand answers of a million rows stay within .0097."""
    read, flat = planned(10**6, 10**5), planned(10**5, 1000)
    assert read.rare and not flat.rare
    assert planned(10**5, 1000, rare=True).rare and planned(10**5, 1000, rare=True, entries=1).rare
    monkeypatch.setattr(session_plan_room, "_AS_RARE", 0.0)
    plain = planned(10**6, 10**5)
    assert not plain.rare and plain.width < read.width <= 1.025 * plain.width
    assert rare_width(read, miss(0.95) * LEFT_OUT, 0.01) < 0.9 * plain.width
    monkeypatch.setattr(session_plan_room, "_AS_RARE", 1.05)
    assert planned(10**6, 1000).width > 0.0099, "at 5% the plain path would leave the 3% of the best"


def test_a_plan_says_what_it_costs_and_never_more_than_there_is() -> None:
    """Nobody gave a budget; one that is spent whole; one that is not."""
    free = table(10_000).session(within=0.1, queries=100)
    assert f"together; rho {float(free.limit):.3g} in all;" in free.plan and "of your" not in free.plan
    assert "; epsilon 0.0695 in all;" in table(10_000).session(within=0.2, queries=100, delta=1e-6).plan
    assert "; all of your rho 0.001;" in table(10_000).session(rho=0.001, queries=1000).plan
    assert "; epsilon 0.64 of your 1;" in table(10_000).session(epsilon=1, delta=1e-6, queries=100).plan
