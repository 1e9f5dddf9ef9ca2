"""A session that is opened for a width: the least that keeps it, by both mechanisms, or a refusal with the nearest."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.errors import InputError, MechanismError
from holdfast.ledger import Moment, Totals
from holdfast.planning.budget import budget
from holdfast.planning.plain_answer import cost_in_all
from holdfast.planning.session_plan import Room
from holdfast.planning.terms import Terms
from holdfast.planning.width_plan import validity_budget, width_plan
from holdfast.privacy.filter import Filter
from holdfast.validity.falling import falling_noise
from holdfast.validity.places import by_gaussian

UNTOUCHED = Moment(Totals(), Totals())


def terms(rows: int, queries: int, rho: float = 100.0) -> Terms:
    return Terms(
        schema=hf.Schema(x=hf.Integer(0, 1)), rows=rows, rows_per_unit=1, session=budget(rho=rho).filter,
        table=Filter.zcdp(9e9), queries=queries, confidence=0.95, target="population",
    )  # fmt: skip


@pytest.mark.parametrize("only", ["gaussian", "votes"])
@pytest.mark.parametrize(("rows", "queries", "within"), [(20_000, 30, 0.08), (500_000, 2000, 0.05)])
def test_the_width_is_kept_with_about_the_least_that_keeps_it(
    rows: int, queries: int, within: float, only: str
) -> None:
    made = width_plan(terms(rows, queries), UNTOUCHED, within, only, Room())
    assert made.mechanism == only and within * 0.95 < made.width <= within
    assert sum(epoch.answers for epoch in made.epochs) == queries
    less = falling_noise(rows, queries, 0.05 * 0.95, most_information=made.told_by_itself / 1.15)
    assert less is None or by_gaussian(less).width > within * 0.96, "so much less would not do"
    own = validity_budget(made, None)
    assert own.filter.limit_units == cost_in_all(made, Filter.zcdp(1))


def test_votes_are_taken_where_they_read_few_rows() -> None:
    sampled = width_plan(terms(500_000, 2000), UNTOUCHED, 0.05, None, Room())
    assert sampled.mechanism == "votes" and max(epoch.noise for epoch in sampled.epochs) < 500_000 / 32
    assert width_plan(terms(500_000, 2000), UNTOUCHED, 0.017, None, Room()).mechanism == "gaussian"


def test_what_cannot_be_had_is_refused_with_the_nearest() -> None:
    with pytest.raises(MechanismError, match=r"2,000 queries on 500,000 rows; 0\.01\d+ can be"):
        width_plan(terms(500_000, 2000), UNTOUCHED, 0.01, None, Room())
    with pytest.raises(MechanismError, match="nothing below 1"):
        width_plan(terms(3, 2000), UNTOUCHED, 0.5, None, Room())
    with pytest.raises(MechanismError, match="by votes"):
        width_plan(terms(100, 5), UNTOUCHED, 0.45, "votes", Room())
    with pytest.raises(InputError, match=r"expected a budget of at least \S+ \(zcdp\) for 2,000 answers"):
        width_plan(terms(500_000, 2000, rho=1e-8), UNTOUCHED, 0.05, None, Room())


def test_no_answer_reads_more_rows_than_the_caller_allows() -> None:
    asked = terms(100_000, 1000)
    assert width_plan(asked, UNTOUCHED, 0.05, None, Room()).mechanism == "gaussian"  # reads them all
    capped = width_plan(asked, UNTOUCHED, 0.05, None, Room(), 20_000)
    assert capped.mechanism == "votes" and max(epoch.noise for epoch in capped.epochs) <= 20_000
    with pytest.raises(MechanismError, match="that read at most 500 rows"):
        width_plan(asked, UNTOUCHED, 0.05, None, Room(), 500)
    table = hf.open({"x": [0, 1] * 50}, hf.Schema(x=hf.Integer(0, 1)))
    with pytest.raises(InputError, match="expected rows= with a plan"):
        table.session(epsilon=1.0, delta=1e-6, rows=10, target="table")
    assert list(table.ledger.accounts()) == []
