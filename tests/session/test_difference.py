"""Differences in a session: narrow where conditions agree, charged by what was told, the same after a crash."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger, verify
from holdfast.ledger.entry import Totals
from holdfast.planning import recipe_information
from holdfast.planning.plain_answer import told_each
from holdfast.planning.recipe_information import units_told
from holdfast.session import session as session_room
from holdfast.validity.told import difference_told

SCHEMA = hf.Schema(a=hf.Boolean(), b=hf.Boolean())
N = 20_000


def opened(disagree: float, seed: int = 1, n: int = N) -> tuple[hf.Table, float]:
    """A table whose conditions disagree on that share of the rows, and the difference in it."""
    draw = np.random.default_rng(seed)
    a = draw.random(n) < 0.4
    b = a ^ (draw.random(n) < disagree)
    return hf.open({"a": a, "b": b}, SCHEMA, ledger=MemoryLedger()), float(a.mean() - b.mean())


def test_it_is_narrow_where_the_conditions_agree() -> None:
    widths = {}
    for disagree in (0.03, 0.3):
        table, truth = opened(disagree)
        session = table.session(epsilon=1, delta=1e-6, queries=100)
        plain = 2 * session._terms.places.width  # type: ignore[union-attr]
        answer = session.difference("a", "b", expect=0.03)
        assert answer.low <= truth <= answer.high and answer.target == "population"
        assert answer.disagreement == pytest.approx(disagree, abs=0.05)
        assert "disagree" in answer.explain()
        assert hf.Answer.from_json(answer.to_json()) == answer
        widths[disagree] = answer.width
    assert widths[0.03] < 0.5 * plain and widths[0.03] < widths[0.3]


def test_what_is_told_is_read_off_the_disagreement() -> None:
    """Reserved for the worst before, and what the theorem says of this answer after: to the unit."""
    table, _ = opened(0.03)
    session = table.session(epsilon=1, delta=1e-6, queries=100)
    answer = session.difference("a", "b", rho=1e-3)
    (entry,) = table.ledger.entries()
    variance = float(json.loads(entry.plan)["recipe"][1])
    sigma = variance**0.5 / N
    told = units_told(difference_told(N, answer.disagreement, 2 * sigma, sigma, 0.05), N)
    assert table.ledger.totals().information == told == entry.charge.information - entry.spared
    assert told < 0.1 * entry.charge.information
    assert verify(table.ledger).totals == table.ledger.totals()


def test_without_a_guess_it_tells_no_more_than_its_place_was_planned_for() -> None:
    """Even where the conditions always disagree, so that the plan's other answers stay as wide as it says."""
    table, _ = opened(1.0)
    session = table.session(epsilon=1, delta=1e-6, queries=100)
    places = session._terms.places
    assert places is not None
    session.difference("a", "b")
    assert table.ledger.totals().information <= 1.1 * units_told(places.told_before(2), N)


def test_others_that_are_planned_before_the_answer_count_on_the_worst() -> None:
    """A charge is committed and its answer is not: what comes between is promised after the reserved bound."""
    table, _ = opened(0.03)
    session, beside = (table.session(rho=0.1, queries=100) for _ in range(2))
    bounds = []

    def slow(*given: Any) -> Any:
        bounds.append(json.loads(beside.estimate.fraction("a", within=0.2).text)["promise"][-1])
        return recipe_information.told_by_answer(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_room, "told_by_answer", slow)
        session.difference("a", "b", rho=1e-3)
    after = json.loads(beside.estimate.fraction("a", within=0.2).text)["promise"][-1]
    (entry,) = table.ledger.entries()
    assert after < 0.1 * entry.charge.information <= bounds[0]


def test_a_guess_that_is_too_low_says_how_much_it_may_tell() -> None:
    """The twin is a right guess, which stays within its place: what comes after it is as planned."""
    widths = {}
    for where, other in (("a", "NOT a"), ("a", "b")):
        session = opened(0.03)[0].session(rho=0.1, queries=40)
        planned = session._terms.places
        said = session.estimate.difference(where, other, expect=0.05).explain()
        most = re.search(r"at most as much as ([\d.]+) of the numbers that were planned", said)
        before = session._ledger.totals().information
        session.difference(where, other, expect=0.05)
        told = session._ledger.totals().information - before
        assert planned is not None and most is not None
        each = told_each(planned, planned.epochs[0])
        assert told <= float(most[1]) * each * 1.05
        widths[other] = told / each
    assert widths["NOT a"] > 10 and widths["b"] < 2, "conditions that always disagree, and that seldom do"


def test_an_answer_that_was_lost_is_made_once_more_on_the_same_terms() -> None:
    """The charge stands, with its bound; the guess and the noise are those that were paid for."""
    table, truth = opened(0.03)
    session = table.session(rho=0.1, queries=100, name="again")

    def killed(*given: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(session_room, "told_by_answer", killed)
        session.difference("a", "b", expect=0.02, rho=1e-3)
    (lost,) = table.ledger.entries()
    assert lost.answer is None and table.ledger.totals().information == lost.charge.information
    answer = table.session(rho=0.1, name="again").difference("a", "b", expect=0.02, rho=1e-3)
    (entry,) = table.ledger.entries()
    assert entry.charge == lost.charge and entry.spared > 0 and answer.low <= truth <= answer.high
    assert table.ledger.totals() == Totals(1, 1, entry.charge.table, entry.charge.information - entry.spared)


def test_for_the_table_it_is_the_plain_difference() -> None:
    table, truth = opened(0.03)
    answer = table.session(rho=0.1, target="table", queries=10).difference("a", "b")
    assert answer.disagreement is None and answer.target == "table"
    assert answer.low <= truth <= answer.high
    assert answer.rho == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("currency", [{"epsilon": 1.0}, {"rho": 0.1, "only": "gaussian"}])
def test_every_currency_has_an_answer(currency: dict[str, Any]) -> None:
    table, truth = opened(0.03)
    answer = table.session(**currency, queries=10).difference("a", "b")
    assert answer.low <= truth <= answer.high


def test_differences_chosen_by_earlier_answers_are_covered() -> None:
    """A population without any difference; the analyst asks for the one that the table shows most. A twelfth of the
    interval would miss."""
    missed = twelfths = 0
    for game in range(30):
        draw = np.random.default_rng(game)
        columns = {f"c{i}": draw.random(400) < 0.5 for i in range(12)}
        table = hf.open(columns, hf.Schema(**{name: hf.Boolean() for name in columns}), ledger=MemoryLedger())
        session = table.session(rho=5.0, queries=13)
        seen = {name: session.fraction(name).value for name in columns}
        best, worst = max(seen, key=seen.__getitem__), min(seen, key=seen.__getitem__)
        answer = session.difference(best, worst, expect=0.5)
        missed += not answer.low <= 0 <= answer.high
        twelfths += abs(answer.value) > answer.width / 12
    assert missed <= 2 and twelfths >= 6
