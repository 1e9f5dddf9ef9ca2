"""Sessions whose answers are read as rare events: what is decided before an answer, and what is read off it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger, verify
from holdfast.planning.plan import recipe_from_text
from holdfast.planning.recipe_information import units_told
from holdfast.session import session as session_room
from holdfast.validity.told import rare_told

SCHEMA = hf.Schema(x=hf.Integer(0, 99), y=hf.Integer(0, 1))
N = 20_000


def opened(n: int = N, seed: int = 1) -> hf.Table:
    draw = np.random.default_rng(seed)
    columns = {"x": draw.integers(0, 100, n), "y": draw.integers(0, 2, n)}
    return hf.open(columns, SCHEMA, ledger=MemoryLedger())


def rare(table: hf.Table, **terms: Any) -> hf.Session:
    return table.session(**{"epsilon": 1, "delta": 1e-6, "queries": 60, "intervals": "rare"} | terms)


def test_all_answers_near_one_in_a_hundred_are_narrow_and_hold() -> None:
    table = opened()
    session = rare(table)
    flat = opened().session(epsilon=1, delta=1e-6, queries=60)._terms.places
    assert flat is not None and "near 1%" in session.plan
    for value in range(60):
        answer = session.fraction(f"x = {value}")
        assert answer.low <= 0.01 <= answer.high
        assert answer.width < 0.4 * flat.width
    with pytest.raises(hf.BudgetError, match="60 queries"):
        session.fraction("y = 1")
    assert verify(table.ledger).totals == table.ledger.totals()


def test_what_is_told_is_read_off_each_answer_to_the_unit() -> None:
    table = opened()
    session = rare(table)
    told = 0
    for where in ("x = 7", "y = 1", "x < 95", "x = 8"):
        answer = session.fraction(where)
        entry = list(table.ledger.entries())[-1]
        sigma = float(recipe_from_text(entry.plan, N)[0].noise) ** 0.5 / N
        told += units_told(rare_told(N, sigma, answer.value + (0.5 - answer.value) * 2.0**-40), N)
        assert table.ledger.totals().information == told
        assert entry.charge.information == units_told(rare_told(N, sigma, 0.5), N)
    assert answer.width < 0.5 * session.fraction("y = 0").width


def test_how_an_answer_is_read_is_fixed_when_it_is_charged() -> None:
    """A lost answer is made again as a rare event, with the rows to leave out that were paid for."""
    table = opened()
    session = rare(table, name="again")

    def killed(*given: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(session_room, "told_by_answer", killed)
        session.fraction("x = 7")
    (lost,) = table.ledger.entries()
    promise = recipe_from_text(lost.plan, N)[1]
    assert promise.rare and promise.left_out is not None
    assert promise.left_out.sizes == session._terms.places.left_out(1).sizes  # type: ignore[union-attr]
    assert table.ledger.totals().information == lost.charge.information
    again = table.session(name="again")
    assert again._terms.places == session._terms.places, "a plan that is reopened is the same"
    answer = again.fraction("x = 7")
    assert answer.width < 0.05 and table.ledger.totals().information < 0.3 * lost.charge.information


def test_the_smaller_of_two_charges_is_never_taken() -> None:
    """An answer of one half tells more as a rare event than by the flat charge, and is counted so; a mean, a vector and
    an answer within a width are flat, whatever comes out."""
    table = opened()
    session = rare(table)
    session.fraction("y = 1")
    (entry,) = table.ledger.entries()
    recipe = recipe_from_text(entry.plan, N)[0]
    assert table.ledger.totals().information > units_told(N**2 / float(recipe.noise), N)
    for ask in (
        lambda: session.mean("x"),
        lambda: session.count(by="y"),
        lambda: session.fraction("x = 9", within=0.05),
        lambda: session.difference("x = 9", "x = 10"),
    ):
        ask()
        entry = list(table.ledger.entries())[-1]
        assert not recipe_from_text(entry.plan, N)[1].rare
        assert (entry.spared == 0) is (json.loads(entry.plan)["recipe"][-1] is None)


def test_counts_and_sums_are_read_on_their_own_scale() -> None:
    session = rare(opened())
    for answer, truth in (
        (session.count("x = 3"), N / 100),
        (session.sum("x", "x < 2"), N / 100),
        (session.fraction("NOT x = 3"), 0.99),
    ):
        assert answer.low <= truth <= answer.high
    assert session.count("x = 4 AND x = 5 OR x = 99 AND y = 2 OR x = 4").low >= 0


def test_a_later_session_has_its_share_of_every_rung() -> None:
    table = opened()
    rare(table).fraction("x = 1")
    later = rare(table)
    places = later._terms.places
    assert places is not None and places.mixed and places.rare
    answer = later.fraction("x = 2")
    assert answer.low <= 0.01 <= answer.high and answer.width < 0.05


@pytest.mark.parametrize(
    "terms",
    [{"queries": None}, {"target": "table"}, {"within": 0.1}, {"delta": None}, {"intervals": "seldom"}],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(hf.InputError):
        rare(opened(500), **terms)


def test_rare_questions_chosen_by_earlier_answers_are_covered() -> None:
    """Columns of chance, each about 2%; the analyst asks for the one that looks most frequent, and for all that look so
    together. A tenth of the width would miss."""
    missed = tenths = 0
    for game in range(20):
        draw = np.random.default_rng(game)
        columns = {f"c{i}": draw.random(400) < 0.02 for i in range(25)}
        table = hf.open(columns, hf.Schema(**{name: hf.Boolean() for name in columns}), ledger=MemoryLedger())
        session = table.session(rho=20.0, queries=26, intervals="rare")
        seen = {name: session.fraction(name).value for name in columns}
        best = sorted(seen, key=seen.__getitem__)[-12:]
        answer, truth = session.fraction(" OR ".join(best)), 1 - 0.98**12
        missed += not answer.low <= truth <= answer.high
        tenths += abs(answer.value - truth) > answer.width / 10
    assert missed <= 1 and tenths >= 5
