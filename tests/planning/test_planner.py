"""Widths that nobody can certify are refused after a few looks; what cannot be drawn, before it is charged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from session.numbers import charged_and_refused, open_rows

import holdfast as hf
from holdfast.ledger import MemoryLedger, Stale
from holdfast.mechanisms.values import round_up
from holdfast.planning import planner, recipe_search
from holdfast.planning.question import Fraction as FractionQuestion
from holdfast.privacy.filter import UNITS
from holdfast.session.session import Session
from holdfast.weights import versions as weights_terms

WIDTHS = [1e-9, 1e-7, 1e-6, 5e-6, 2.7e-5, 1e-4, 1e-3, 0.5, 0.999]

FRACTION = FractionQuestion(where="x < 5")


class TooManyLooksError(Exception): ...


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that looks too often is stopped, so that a loop without an end fails instead of hanging."""
    for module, name in (
        (weights_terms, "run_reach"),
        (weights_terms, "gaussian_reach"),
        (planner, "plan_by"),
    ):
        real, looks = getattr(module, name), itertools.count()

        def looked(*asked: object, real=real, looks=looks) -> object:  # type: ignore[no-untyped-def]
            if next(looks) > 20_000:
                raise TooManyLooksError
            return real(*asked)

        monkeypatch.setattr(module, name, looked)


def planned(rows: int, within: float, answer: str) -> bool:
    """Whether terms were found, which keep their width; False if it was refused."""
    try:
        terms = weights_terms.best(rows, 3, 10**6, within, 0.05, answer)
    except hf.InputError:
        return False
    unit = rows * weights_terms.GRID
    reach = weights_terms.run_reach(terms.run_epsilon, terms.updates, 10**6, 0.05)
    assert terms.threshold + reach <= within * unit and terms.answer_noise > 0
    assert terms.answer_reach <= terms.least_gap / 2 * unit
    return True


@pytest.mark.parametrize("answer", ["gaussian", "laplace"])
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_every_width_is_planned_or_refused(rows: int, answer: str) -> None:
    found = [planned(rows, within, answer) for within in WIDTHS]
    assert (
        found == sorted(found) and found[-1]
    )  # what is narrower than a plan is refused, and nothing wider is
    assert rows > 2 or not found[0]


def step_by_step(reach: int, updates: int, questions: int, failure: float) -> Fraction:
    """The broken twin, which never ends when rounding alone reaches farther."""
    epsilon = Fraction(1)
    while weights_terms.run_reach(epsilon, updates, questions, failure) > reach:
        epsilon = round_up(epsilon * Fraction(1001, 1000))
    return epsilon


def test_small_steps_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_terms, "_run_epsilon", step_by_step)
    with pytest.raises(TooManyLooksError):
        planned(2, 2.7e-5, "laplace")


def test_a_budget_that_certifies_nothing_is_refused_at_once() -> None:
    with pytest.raises(hf.InputError, match="no error below 1"):
        weights_terms.best_within(2, 3, 10**6, 0.05, rho=1e-9)
    assert weights_terms.best_within(2, 3, 10**6, 0.05, rho=1e9).within < 1


def scanned(holds: Callable[[int], bool], most: int) -> int | None:
    """The broken twin tries one width after the other."""
    return next((times for times in range(1, most + 1) if holds(times)), None)


def looks(monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """How many plans were made for an impossible width, and what is said of it."""
    made, real = [], planner.plan_by
    monkeypatch.setattr(planner, "plan_by", lambda *asked: (made.append(asked), real(*asked))[1])
    estimate = hf.open({"x": np.arange(1000) % 100}, hf.Schema(x=hf.Integer(0, 99))).session(rho=1.0).estimate
    with pytest.raises(hf.InputError) as refused:
        estimate.fraction("x < 5", within=1e-9)
    nearest = re.search(r"about within=(\S+) can be", str(refused.value))
    assert nearest is not None
    assert estimate.fraction("x < 5", within=float(nearest[1]) * 1.01).width > 0
    return len(made), nearest[1]


def test_an_impossible_width_is_refused_after_a_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    times, nearest = looks(monkeypatch)
    assert times <= 20
    monkeypatch.setattr(planner, "fewest", scanned)
    assert looks(monkeypatch)[0] > 50
    assert looks(monkeypatch)[1] == nearest


def test_a_total_on_the_edge_of_a_level_is_answered() -> None:
    """At n = 10^6 the level 0.001024 is no float; landing on it once looped for ever."""
    session = open_rows(np.zeros(10**6, dtype=int)).session(rho=1.0, queries=10)
    assert session.fraction("x = 1", rho=0.00102400001).rho <= 0.00102400001
    assert session.fraction("x = 2", rho=0.001024).rho <= 0.001024


ROWS = 500


TABLE = {"ms": np.arange(ROWS) * 10**8, "x": np.arange(ROWS) % 7}


SCHEMA = hf.Schema(ms=hf.Integer(0, 2 * 10**12), x=hf.Integer(0, 6))


QUESTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda s, **how: s.sum("ms", **how),
    "mean": lambda s, **how: s.mean("ms", **how),
    "fraction": lambda s, **how: s.fraction("x > 3", **how),
    "histogram": lambda s, **how: s.histogram("x", **how),
    "quantile": lambda s, **how: s.quantile("ms", 0.5, **how),
}


AMOUNTS = [{name: amount} for name in ("within", "epsilon", "rho") for amount in (1e-30, 1e-9, 1e-4, 1e18)]


ASKED = [*AMOUNTS, *({"within": 1e30, "mechanism": m} for m in ("gaussian", "laplace", "subsampled-laplace"))]


def opened(**terms: Any) -> Session:
    return hf.open(TABLE, SCHEMA, ledger=MemoryLedger()).session(**({"rho": 9e9} | terms))


def all_sound(name: str, target: str) -> bool:
    return not any(
        charged_and_refused(opened(target=target), lambda s, how=how: QUESTIONS[name](s, **how))
        for how in ASKED
    )


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_a_question_is_refused_before_its_charge_or_answered(name: str, target: str) -> None:
    assert all_sound(name, target)


def test_noise_that_cannot_be_drawn_was_once_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "refuse_undrawable", lambda *recipe: None)
    assert not all_sound("sum", "table")
    monkeypatch.setattr(
        recipe_search, "_MOST_NOISE", dict.fromkeys(recipe_search._MOST_NOISE, Fraction(10**50))
    )
    assert not all_sound("fraction", "table")  # within= is met by the largest noise that can be drawn


def test_a_wide_answer_has_the_largest_noise_that_can_be_drawn() -> None:
    far = hf.open({"far": np.arange(500)}, hf.Schema(far=hf.Integer(0, 10**15)))
    for mechanism in ("gaussian", "laplace"):
        session = far.session(rho=1.0, target="table", confidence=1 - 1e-9)
        answer = session.sum("far", within=4.9e17, mechanism=mechanism)
        assert session.estimate.sum("far", within=4.9e17, mechanism=mechanism).width < 4.9e17 / 4
        assert 0 == answer.low <= answer.value <= answer.high


def test_a_paid_answer_that_cannot_be_drawn_says_so_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = opened()
    with monkeypatch.context() as before:
        before.setattr(planner, "refuse_undrawable", lambda *recipe: None)
        with pytest.raises(hf.InputError, match="scale"):
            session.sum("ms", epsilon=1e-4)
    spent = session.spent
    with pytest.raises(hf.InputError, match="cannot be drawn"):
        session.sum("ms", epsilon=1e-4)
    assert session.spent == spent


def test_a_width_that_every_answer_has_is_refused_in_words_for_its_kind() -> None:
    session = hf.open({"x": np.arange(100) % 10}, hf.Schema(x=hf.Integer(0, 9))).session(rho=1, queries=9)
    for ask, words in (
        (lambda: session.quantile("x", within=1.0), "within 1 of every rank"),
        (
            lambda: session.fraction("x < 5", within=1.0),
            "no two values of this fraction are more than 1 apart",
        ),
    ):
        with pytest.raises(hf.InputError, match=words):
            ask()
    assert session.spent == 0


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "subsampled-laplace"])
def test_a_column_of_one_value_is_refused(mechanism: str) -> None:
    session = hf.open({"one": np.zeros(9, dtype=int)}, hf.Schema(one=hf.Integer(0, 0))).session(rho=1.0)
    with pytest.raises(hf.InputError, match="nothing to ask"):
        session.sum("one", within=3000.0, mechanism=mechanism)
    assert session.spent == 0


@pytest.mark.parametrize("rho", [1e-8, 0.00123456789123, 0.5, 7.3])
@pytest.mark.parametrize("currency", ["zcdp", "pure"])
def test_a_level_is_never_exceeded_by_its_units(currency: str, rho: float) -> None:
    """They are the most whole units whose loss is at most rho: one more is too much."""
    terms: Any = SimpleNamespace(table=SimpleNamespace(currency=currency))
    units = planner.units_of_rho(rho, terms)
    with mp.workdps(40):

        def loss(units: int) -> Any:
            amount = mp.mpf(units) / UNITS
            return amount if currency == "zcdp" else amount * mp.tanh(amount / 2)

        assert loss(units) <= mp.mpf(rho) < loss(units + 1)


def planned_ahead(session: Session, expected: int) -> tuple[Any, Any]:
    """The plan of a question, and for how long it holds, if so many answers of the session were about to be charged."""
    moment = session._moment()
    asked = session._read(FRACTION)
    made = planner.plan(asked.statistics[0], asked.request, moment, session._terms)
    for _ in range(expected):
        moment = moment.after(made.charge)
    made = planner.plan(asked.statistics[0], asked.request, moment, session._terms)
    return made, planner.holds(made, moment, session._terms)


def test_a_plan_for_a_later_epoch_is_no_plan_for_an_earlier_place() -> None:
    """Which m is left out goes by the place (Theorem 91). A plan in a list expects the charges before it: if one is not
    made after all, it is stale. The twin forgets where its epoch begins, and takes a place of the earlier one."""
    session = open_rows(np.arange(100_000) % 100).session(rho=0.5, queries=200)
    places = session._terms.places
    assert places is not None and len(places.epochs) > 1
    first = places.epochs[0].answers
    assert places.left_out(first) != places.left_out(first + 1)
    for expected in (0, 1, first - 1, first):
        made, holding = planned_ahead(session, expected)
        assert made.promise.left_out == places.left_out(expected + 1)
        stale = made.promise.left_out != places.left_out(1)
        assert holding.after(session._moment(), made.charge) is not stale
        assert replace(holding, least_answers=None).after(session._moment(), made.charge)
        if stale:
            with pytest.raises(Stale):
                session._ledger.reserve(session.name, "k", "{}", "{}", made.charge, holding)
    assert session._ledger.totals().entries == 0
