"""Sessions planned by the leave-out theorem: every default is walked to its end, and nobody widens it unseen."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger, verify
from holdfast.planning import planner, recipe_information
from holdfast.planning import promise as promise_room
from holdfast.planning import session_plan as plan_room
from holdfast.planning.plan import recipe_from_text
from holdfast.validity.leave_out import recorded_grid

SCHEMA = hf.Schema(x=hf.Integer(0, 99), y=hf.Integer(0, 1), g=hf.Category(*"abcd"))


def rows(n: int, seed: int = 1) -> dict[str, object]:
    draw = np.random.default_rng(seed)
    return {"x": draw.integers(0, 100, n), "y": draw.integers(0, 2, n), "g": draw.choice(list("abcd"), n)}


@pytest.fixture
def table() -> hf.Table:
    return hf.open(rows(20_000), SCHEMA, ledger=MemoryLedger())


def half(answer: hf.Answer) -> float:
    return answer.noise + answer.sampling + answer.population


def test_every_planned_answer_is_given_as_wide_as_planned_and_one_more_is_refused() -> None:
    """The README's own session, to its end; it was refused after 606 answers, at ten times this width."""
    table = hf.open(rows(100_000), SCHEMA)
    session = table.session(epsilon=1, delta=1e-6, queries=1000)
    places = session._terms.places
    assert places is not None and not places.mixed
    assert places.width < 0.0310 and "1,000 answers, each within 0.03" in session.plan
    widest = 0.0
    for place in range(1000):
        answer = session.fraction(f"x BETWEEN {place % 50} AND {50 + place // 25} AND y = {place % 2}")
        assert not answer.repeated and answer.target == "population"
        widest = max(widest, half(answer))
    assert places.width * 0.99 < widest <= places.width
    assert session.spent.epsilon is not None and session.spent.epsilon < 0.6
    with pytest.raises(hf.BudgetError, match="1,000 queries"):
        session.fraction("x = 7")
    assert session.fraction("x BETWEEN 0 AND 50 AND y = 0").repeated


@pytest.mark.parametrize(("n", "k"), [(2_000, 40), (20_000, 100)])
def test_a_place_may_hold_any_statistic_and_tells_and_costs_what_was_planned(n: int, k: int) -> None:
    table = hf.open(rows(n), SCHEMA)
    session = table.session(epsilon=1, delta=1e-6, queries=k)
    places, width = session._terms.places, 0.0
    assert places is not None
    asked = (
        lambda t: session.fraction(f"x < {t}"),
        lambda t: session.count(f"x < {t}"),
        lambda t: session.sum("x", where=f"x < {t}"),
        lambda t: session.mean("x", where=f"x < {t}"),
        lambda t: session.histogram("x", where=f"x < {t}"),
        lambda t: session.mean("x", where=f"x < {t}", by="g"),
        lambda t: session.count(f"x < {t}", by="g"),
    )
    for place in range(k):
        answer = asked[place % len(asked)](100 - place // len(asked))
        width = max(width, half(answer)) if place % len(asked) == 0 else width
    assert width <= places.width * (1 + 1e-9)
    assert float(session.spent) <= float(session.limit)
    assert table.ledger.totals().information < UNCOVERED


def test_by_votes_an_answer_reads_no_more_rows_than_allowed() -> None:
    table = hf.open(rows(2_000_000), SCHEMA)
    session = table.session(epsilon=1, delta=1e-6, queries=500, rows=20_000)
    answer = session.fraction("x < 30")
    assert answer.mechanism == "votes" and answer.rows_read <= 20_000
    assert half(answer) <= session._terms.places.width < 0.02
    assert abs(answer.value - 0.3) < 0.02


def test_a_later_session_that_takes_its_own_m_is_noticed(
    table: hf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was answered, or saw answers, may not choose what is left out. The twin plans as if nobody had been."""

    def is_sound() -> bool:
        promise = table.session(epsilon=1, delta=1e-6, queries=100).estimate.fraction("y = 1").promise
        return promise.left_out == recorded_grid(table.rows)

    table.session(rho=1.0, queries=3).fraction("x < 5", within=0.05)
    assert is_sound()
    honest = plan_room.session_plan
    monkeypatch.setattr(
        plan_room,
        "session_plan",
        lambda terms, moment, most, room, **how: honest(
            terms, replace(moment, table=replace(moment.table, entries=0)), most, room, **how
        ),
    )
    assert not is_sound()


@pytest.mark.parametrize("queries", [1000, None])
def test_a_width_is_kept_with_the_fewest_rows_that_the_budget_allows(queries: int | None) -> None:
    """The rarer a vote is flipped, the fewer are read and the more each costs; a small share takes more of them."""
    table = hf.open(rows(1_000_000), SCHEMA)
    plenty = table.session(epsilon=1, delta=1e-6, queries=queries).estimate.fraction("x < 30", within=0.04)
    assert plenty.mechanism == "votes" and plenty.rows_read < 4_000 and plenty.recipe.flip == Fraction(1, 64)
    little = table.session(rho=2e-5, queries=queries).estimate.fraction("x < 30", within=0.04)
    assert little.recipe.flip is not None and little.recipe.flip > plenty.recipe.flip
    assert little.cost < plenty.cost / 3 and little.rows_read > plenty.rows_read
    assert little.cost <= 2e-5 / 1000


def test_who_comes_later_has_the_mixture_and_pays_for_what_was_told(table: hf.Table) -> None:
    first = table.session(epsilon=1, delta=1e-6, queries=100)
    twin = table.session(epsilon=1, delta=1e-6, queries=100)
    assert twin._terms.places == first._terms.places, "both were fixed before the first answer"
    for limit in range(1, 60):
        first.fraction(f"x < {limit}")
    later = table.session(epsilon=1, delta=1e-6, queries=100)
    places = later._terms.places
    assert places is not None and places.mixed and places.width > 1.05 * first._terms.places.width
    promise = later.estimate.fraction("y = 1").promise
    assert promise.left_out == recorded_grid(table.rows)
    assert promise.information >= table.ledger.totals().information


def test_what_others_are_told_widens_what_was_planned(table: hf.Table) -> None:
    session = table.session(epsilon=1, delta=1e-6, queries=20)
    before = session.estimate.fraction("y = 1")
    other = table.session(rho=1.0, queries=500)
    for limit in range(90):
        other.fraction(f"x < {limit}", rho=2e-4)
    after = session.estimate.fraction("y = 1")
    assert after.recipe == before.recipe and after.promise.left_out == before.promise.left_out
    assert after.promise.information > before.promise.information
    assert after.width > 1.2 * before.width


def test_what_no_theorem_covers_ends_it_and_says_so(table: hf.Table) -> None:
    session = table.session(rho=1.0, queries=50)
    covered = session.fraction("x < 50", within=0.05)
    session.fraction("x < 51", rho=1e-4, mechanism="laplace")
    assert table.ledger.totals().information == UNCOVERED
    after = session.estimate.fraction("x < 52", rho=covered.rho)
    assert after.promise.left_out is None and after.promise.most_rho > 0
    assert after.width > half(covered)
    assert table.session(rho=1.0, queries=5)._terms.places is None


def test_a_selection_tells_and_does_not_end_it(table: hf.Table) -> None:
    session = table.session(rho=1.0, queries=50)
    session.select([f"x < {t}" for t in (10, 50, 90)], rho=1e-4)
    assert 0 < table.ledger.totals().information < UNCOVERED
    assert session.estimate.fraction("x < 52").promise.left_out is not None


def test_a_plan_is_kept_and_comes_back(tmp_path: Path) -> None:
    saved = hf.open(rows(5_000), SCHEMA).save(tmp_path / "rows.hf")
    session = saved.session(epsilon=1, delta=1e-6, queries=40, name="mine")
    session.fraction("x < 20")
    places = session._terms.places
    saved.close()
    again = hf.open(tmp_path / "rows.hf")
    assert again.session(name="mine")._terms.places == places, "fixed before the first answer, so it may stay"
    assert again.session(epsilon=1, delta=1e-6, queries=40)._terms.places.mixed
    with pytest.raises(hf.LedgerError):
        again.session(epsilon=1, delta=1e-6, queries=41, name="mine")
    again.close()


def test_what_was_told_is_in_the_chain(tmp_path: Path) -> None:
    table = hf.open(rows(5_000), SCHEMA, ledger=tmp_path / "kept.ledger")
    session = table.session(rho=1.0, queries=40)
    session.fraction("x < 20")
    session.fraction("x < 30")
    told = table.ledger.totals().information
    assert told == sum(entry.charge.information for entry in table.ledger.entries()) > 0
    assert verify(table.ledger) is not None
    table.close()
    forged = sqlite3.connect(tmp_path / "kept.ledger")
    forged.execute("DROP TRIGGER IF EXISTS entries_stay")
    for (name,) in forged.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        forged.execute(f"DROP TRIGGER {name}")
    forged.execute("UPDATE entries SET information = 0, table_information = 0")
    forged.commit()
    forged.close()
    with pytest.raises(hf.LedgerError):
        verify(hf.open(rows(5_000), SCHEMA, ledger=tmp_path / "kept.ledger").ledger)


def test_people_with_several_rows_are_not_covered() -> None:
    table = hf.open(rows(2_000), SCHEMA, rows_per_unit=3)
    session = table.session(rho=1.0, queries=10)
    assert session._terms.places is None
    session.fraction("x < 20", within=0.3)
    assert table.ledger.totals().information == UNCOVERED


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_a_handful_of_rows_is_refused_before_a_charge(n: int) -> None:
    table = hf.open(rows(n), SCHEMA)
    session = table.session(epsilon=1, delta=1e-6, queries=3)
    with pytest.raises(hf.InputError, match="cannot be certified"):
        session.fraction("x < 50")
    assert session.spent == 0 and table.ledger.totals().entries == 0


@pytest.mark.parametrize(("k", "confidence"), [(1, 0.5), (1, 1 - 1e-12), (10**12, 0.95), (10**6, 0.95)])
def test_a_plan_of_any_size_keeps_both_budgets(k: int, confidence: float) -> None:
    table = hf.open(rows(1_000), SCHEMA)
    table.limit(epsilon=0.5, delta=1e-6)
    session = table.session(epsilon=1, delta=1e-6, queries=k, confidence=confidence)
    places = session._terms.places
    assert places is not None
    cost = sum(
        epoch.answers * planner.finish(*_scalar(session, epoch.noise), session._terms).charge.table
        for epoch in places.epochs
    )
    assert cost <= table.ledger.limit().limit


def _scalar(session: hf.Session, noise: object) -> tuple[object, ...]:
    made = session.estimate.fraction("x < 5", rho=1e-6)
    totals = planner.workload(made.statistic, session.schema, session._terms.rows)
    return totals, replace(made.recipe, noise=noise), made.promise


def test_the_answers_told_before_are_those_that_the_ledger_counts(
    table: hf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin charges half of what it tells, and the entries say so: 4 R^2/sigma^2 for each, by hand."""

    def is_sound(session: hf.Session) -> bool:
        session.fraction("x < 10", rho=1e-4)
        session.count("x < 11", by="g", rho=1e-4)
        entries = list(table.ledger.entries(session.name))
        variances = [float(json.loads(entry.plan)["recipe"][1].split("/")[0]) for entry in entries]
        divisors = [float(([*json.loads(entry.plan)["recipe"][1].split("/"), "1"])[1]) for entry in entries]
        told = [
            radius * 4 * table.rows / (variance / divisor)
            for radius, variance, divisor in zip((0.25, 0.75), variances, divisors, strict=True)
        ]
        return all(
            entry.charge.information / 1e9 >= by_hand for entry, by_hand in zip(entries, told, strict=True)
        )

    assert is_sound(table.session(rho=1.0, queries=20))
    honest = recipe_information.gaussian_told
    monkeypatch.setattr(recipe_information, "gaussian_told", lambda *how: honest(*how) / 2)
    assert not is_sound(table.session(rho=1.0, queries=20))


def test_what_was_told_before_counts_however_precise_an_answer_is() -> None:
    """An answer that tells more than can be counted once hid what others were told before it."""
    table = hf.open(rows(300), SCHEMA, allow_uncovered=True)
    session, other = table.session(rho=1e9, queries=50), table.session(rho=1e9, queries=50)
    before = session.fraction("x < 50", rho=1e8)
    other.histogram("x", rho=1e6)
    after = session.estimate.fraction("x < 51", rho=1e8)
    assert table.ledger.totals().information == UNCOVERED
    assert after.promise.left_out is None and after.width > 3 * half(before)


def test_a_plan_does_not_outlive_a_person_with_more_rows(tmp_path: Path) -> None:
    saved = hf.open(rows(2_000), SCHEMA).save(tmp_path / "rows.hf")
    saved.session(rho=1.0, queries=10, name="mine").fraction("x < 9")
    saved.close()
    again = hf.open(tmp_path / "rows.hf", rows_per_unit=50)
    with pytest.raises(hf.LedgerError, match="same terms"):
        again.session(name="mine")
    again.close()


@pytest.mark.parametrize("touched", [False, True])
def test_a_vote_that_was_paid_for_is_resumed_as_it_was_planned(touched: bool) -> None:
    table = hf.open(rows(200_000), SCHEMA)
    if touched:
        table.session(rho=1.0).fraction("x < 3", within=0.05)
    session = table.session(epsilon=1, delta=1e-6, queries=20, rows=5_000)
    planned = session.estimate.fraction("x < 7")
    assert planned.mechanism == "votes"
    recipe, promise, _ = recipe_from_text(planned.text, table.rows)
    assert (recipe, promise) == (planned.recipe, replace(planned.promise, most_rho=1e300))
    assert session.mean("x").mechanism == "votes"
    assert session.mean("x", within=60.0) is not None


def test_the_bound_of_a_plan_is_never_below_what_was_told() -> None:
    for told in (0, 1, 7, 10**9, 3403956250551, 10**17):
        assert told <= promise_room.rounded(told) <= told * 1.0101 + 1
