"""The meter tells what will be had, and a share of it is widened by nobody."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger, Moment, Totals, memory
from holdfast.planning import planner
from holdfast.planning.meter import Meter, meter
from holdfast.planning.plain_answer import told_before
from holdfast.planning.recipe_information import told_by
from holdfast.planning.session_plan import Room, session_plan

SCHEMA = hf.Schema(x=hf.Integer(0, 999), y=hf.Integer(0, 1))
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def opened(n: int = 20_000) -> hf.Table:
    draw = np.random.default_rng(5)
    return hf.open(
        {"x": draw.integers(0, 1000, n), "y": draw.integers(0, 2, n)}, SCHEMA, ledger=MemoryLedger()
    )


def half(answer: hf.Answer) -> float:
    return answer.noise + answer.sampling + answer.population


def test_as_many_answers_as_it_says_are_had_within_its_width() -> None:
    session = opened().session(**BUDGET, queries=60)
    first = session.meter
    assert first is not None and first.answers == 60 and f"each within {first.width:.3g}" in session.plan
    for place in range(60):
        before = session.meter
        assert before is not None and before.answers == 60 - place
        assert half(session.fraction(f"x < {place + 1}")) <= before.width * (1 + 1e-9)
    last = session.meter
    assert last is not None and last.answers == 0
    assert str(last).startswith("no answer left") and "of 1" in str(session.report())
    assert f"{first.answers} answers left within" in str(first) and "epsilon 0 of 1" in str(first)


def test_what_was_spent_otherwise_leaves_fewer_answers() -> None:
    """Exact answers use up the budget of the places, and what they tell widens those that are left."""
    session = opened().session(rho=2e-5, queries=40)
    before = session.meter
    session.fraction("x < 500", rho=1.2e-5)
    after = session.meter
    assert before is not None and after is not None
    assert 0 < after.answers < before.answers - 1 and after.width > before.width
    for place in range(after.answers):
        assert half(session.fraction(f"x < {place + 1}")) <= after.width * (1 + 1e-9)
    with pytest.raises(hf.BudgetError):
        session.fraction("x < 900")


def test_a_quantile_says_what_the_answers_after_it_will_be_within() -> None:
    """It tells more than its place. The twin is the plan of the session alone, which says what numbers are within."""
    session = opened(100_000).session(**BUDGET, queries=20)
    planned = session._terms.places
    assert planned is not None and session.plan.endswith("a quantile counts as 16")
    for rank in (0.3, 0.5):
        said = session.estimate.quantile("x", rank).explain()
        promised = re.search(r"as much as 16 of .* after it (\d+) answers can be had within ([\d.]+)", said)
        assert promised is not None
        assert "as much as 16 of the numbers" in session.quantile("x", rank).explain()
        left = session.meter
        assert left is not None and left.answers == int(promised[1])
        assert left.width == pytest.approx(float(promised[2]), rel=0.005)
    widest = max(half(session.fraction(f"x < {place + 1}")) for place in range(18))
    assert 1.3 * planned.width < widest <= left.width * (1 + 1e-9)


def test_rare_events_keep_the_plan_and_the_meter_at_one_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin rounds what was told beyond what the plan itself counts: the last answers are wider than planned."""

    def widest() -> tuple[float, float, bool]:
        session = opened().session(**BUDGET, queries=40, intervals="rare")
        found, kept = [], True
        for place in range(40):
            left = session.meter
            asked = f"x BETWEEN {place} AND {place + 499}"
            found.append(session.estimate.fraction(asked).width)
            answer = session.fraction(asked)
            assert max(answer.high - answer.value, answer.value - answer.low) <= found[-1]
            kept &= left is not None and found[-1] <= left.width * (1 + 1e-9)
        assert session._terms.places is not None
        return max(found), session._terms.places.width, kept

    asked, planned, kept = widest()
    assert 0.99 * planned < asked <= planned and kept
    monkeypatch.setattr(planner, "told_until", lambda moment, terms: 0)
    asked, planned, kept = widest()
    assert asked > 1.001 * planned and not kept


def test_the_meter_of_rare_events_counts_what_others_were_told() -> None:
    """The twin takes the half-width of a flat reading, or the plan's: too little where others were told much."""
    table = opened()
    session, other = table.session(**BUDGET, queries=60, intervals="rare"), table.session(rho=1.0)
    places = session._terms.places
    assert places is not None
    for place in range(4):
        other.fraction(f"x < {place + 1}", rho=1e-2)
    left, answer = session.meter, session.estimate.fraction("x < 500")
    told = told_by(table.ledger.totals().information, table.rows)
    flat = places.half_width(places.epochs[0], places.left_out(1), told, 0.05 * 0.95 / 60)
    assert left is not None and 1.02 * max(flat, places.width) < answer.width <= left.width * (1 + 1e-9)


def test_without_a_number_of_answers_it_says_what_could_be_had() -> None:
    table = opened()
    session = table.session(**BUDGET)
    left = session.meter
    assert left is not None and left.answers == 1024
    like = table.session(**BUDGET, queries=1024).meter
    assert like is not None and left.width == pytest.approx(like.width, rel=0.03)
    poor = table.session(rho=1e-9).meter
    assert poor is not None and poor.answers < 1024


def test_where_nothing_is_counted_there_is_none() -> None:
    table = opened(500)
    alone = table.session(epsilon=1.0, queries=5)
    assert alone.meter is not None and "epsilon 0 of 1" in str(alone.meter), "pure answers are on it too"
    alone.close()
    assert table.session(**BUDGET, queries=5, target="table").meter is None
    session = table.session(**BUDGET, queries=5)
    assert session.meter is not None
    session.fraction("x < 500", rho=1e-3, mechanism="laplace")
    assert session.meter is None and "answers left" not in str(session.report())


def test_a_meter_that_forgets_what_others_were_told_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin counts the session's own answers alone: what is asked next is wider than it said."""
    table = opened()
    session, other = table.session(**BUDGET, queries=20), table.session(rho=1.0, queries=50)
    for place in range(40):
        other.fraction(f"x < {place + 1}", rho=1e-3)

    def keeps(left: Meter | None) -> bool:
        assert left is not None
        return session.estimate.fraction("y = 1").width <= left.width * (1 + 1e-9)

    assert keeps(session.meter)
    honest = session._moment()
    alone = replace(honest, table=replace(honest.table, information=honest.session.information))
    assert not keeps(meter(session._terms, session._budget, alone))


# Shares


def spend(session: hf.Session, exact: float) -> int:
    """Ask as exactly as may be until it is refused."""
    asked = 0
    while asked < 300:
        try:
            session.fraction(f"x BETWEEN {asked} AND {asked + 300}", rho=exact)
        except hf.BudgetError:
            exact /= 2
            if exact < 2e-5:
                break
        asked += 1
    return asked


def shared() -> tuple[hf.Session, hf.Session]:
    table = opened()
    first = table.session(rho=1.0, queries=20, share=0.5, name="ann")
    return first, table.session(rho=1.0, queries=20, share=0.5, name="bob")


def test_whoever_spends_all_of_a_share_widens_nobodys_plan() -> None:
    """One analyst asks all that the share allows, as exactly as may be; the other's widths stay within their plan."""
    ann, bob = shared()
    assert spend(ann, 1e-4) > 3
    promised = bob.meter
    planned = bob._terms.places
    assert promised is not None and planned is not None
    for place in range(20):
        assert half(bob.fraction(f"x < {place + 1}")) <= planned.width
    told = ann._ledger.totals("ann").information
    assert 0.9 * ann._terms.information < told <= ann._terms.information
    with pytest.raises(hf.BudgetError, match="shared out"):
        ann._ledger.open(replace(next(ann._ledger.accounts()), name="cyd"))


def test_the_meter_of_a_share_holds_whatever_others_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin counts what others were told so far, as for a session without a share: then they ask."""
    ann, bob = shared()
    promised = bob.meter
    honest = bob._terms
    monkeypatch.setattr(bob, "_terms", replace(honest, information=UNCOVERED))
    hopeful = bob.meter
    monkeypatch.setattr(bob, "_terms", honest)
    assert promised is not None and hopeful is not None and promised.answers == hopeful.answers == 20
    spend(ann, 1e-4)
    asked = [half(bob.fraction(f"x < {place + 1}")) for place in range(20)]
    assert 1.05 * hopeful.width < max(asked) <= promised.width * (1 + 1e-9)


def test_a_share_that_tells_more_than_its_maximum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: neither planner nor ledger looks at the maximum."""
    ann, bob = shared()
    planned = bob._terms.places
    assert planned is not None
    monkeypatch.setattr(memory, "check_told", lambda *told: None)
    ann._terms = replace(ann._terms, information=UNCOVERED)
    for place in range(60):
        ann._desk.paid(f"{place}", '{"kind": "x"}', "{}", _telling(ann, place), ann._anytime)
    assert bob.estimate.fraction("y = 1").width > planned.width


def _telling(session: hf.Session, place: int) -> hf.ledger.Charge:
    return hf.ledger.Charge(1, 1, 0, session._terms.table_information // 10)


def test_a_share_counts_what_others_may_tell_and_an_answer_what_they_told() -> None:
    ann, bob = shared()
    table_alone = opened().session(rho=1.0, queries=20)
    alone, planned = table_alone._terms.places, bob._terms.places
    assert alone is not None and planned is not None and planned.width > 1.05 * alone.width
    quiet = bob.estimate.fraction("y = 1").width
    spend(ann, 1e-4)
    assert quiet < bob.estimate.fraction("y = 1").width <= planned.width


def test_a_refusal_of_a_share_names_the_best_that_is_left() -> None:
    ann, _ = shared()
    with pytest.raises(hf.BudgetError, match="left of its share of the meter; within=") as refused:
        ann.fraction("x < 500", rho=0.5)
    assert refused.value.within is not None
    assert ann.fraction("x < 500", within=refused.value.within * 1.001).width <= refused.value.within * 1.01


def test_who_comes_after_the_shares_has_what_they_leave() -> None:
    table = opened()
    table.session(rho=1.0, queries=20, share=1)
    with pytest.raises(hf.BudgetError, match="shared out"):
        table.session(rho=1.0, queries=20, share=0.5)
    guest = table.session(rho=1.0, queries=20)
    with pytest.raises(hf.BudgetError, match="shares of others"):
        guest.fraction("y = 1", rho=1e-4)
    assert table.ledger.totals().entries == 0
    for wrong in (0.0, 1.5, float("nan")):
        with pytest.raises(hf.InputError, match="share"):
            table.session(rho=1.0, queries=20, share=wrong)
    for how in ({"rho": 1.0}, {"epsilon": 1.0}, {"rho": 1.0, "queries": 5, "target": "table"}):
        with pytest.raises((hf.InputError, hf.BudgetError), match="share"):
            opened().session(**how, share=0.5)


def test_a_plan_that_counts_no_others_is_noticed() -> None:
    """The broken twin of a share's plan: as if others told nothing. Its width would not hold beside theirs."""
    table = opened()
    ann = table.session(rho=1.0, queries=20, share=0.5)
    terms, places = ann._terms, ann._terms.places
    assert places is not None

    def holds(made: object) -> bool:
        assert made is not None
        others = terms.table_information - terms.information
        told = (others + told_before(made, 20)) / 1e9 * table.rows
        epoch = made.epochs[-1]
        return made.half_width(epoch, made.left_out(20), told, 0.05 * 0.95 / 20) <= made.width

    assert holds(places)
    assert not holds(session_plan(terms, Moment(Totals(), Totals()), None, Room()))
