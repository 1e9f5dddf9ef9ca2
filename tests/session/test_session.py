"""Charge, then draw: a crash may lose an answer, never privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM, gaussian_log_law, laplace_log_law, scaled
from session.numbers import open_rows

import holdfast as hf
from holdfast.desk import Steps
from holdfast.ledger import Ledger, MemoryLedger, Stale, Survey
from holdfast.privacy.filter import UNITS, Filter
from holdfast.session import session as session_module
from holdfast.session.answer import Answer
from holdfast.session.session import Session
from holdfast.session.table import Table


class Crash(Exception):
    """Stands for a power cut."""


class Watched:
    """A source that notes what the ledger held when the rows were first touched, and may crash there."""

    def __init__(self, source: Any, ledger: Ledger, crash: bool = False) -> None:
        self._source, self._ledger, self.crash = source, ledger, crash
        self.charged_at_read: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def totals(self, measurement: Any) -> Any:
        self._note()
        return self._source.totals(measurement)

    def gather(self, columns: Any, ids: Any) -> Any:
        self._note()
        return self._source.gather(columns, ids)

    def draw(self, columns: Any, count: int) -> Any:
        self._note()
        return self._source.draw(columns, count)

    def scan(self, columns: Any) -> Iterator[Any]:
        raise AssertionError("not through a counted door")

    def _note(self) -> None:
        self.charged_at_read.append(self._ledger.totals().entries)
        if self.crash:
            raise Crash


@pytest.fixture
def watched(table: hf.Table) -> Callable[..., tuple[Table, Watched]]:
    def make(crash: bool = False) -> tuple[Table, Watched]:
        ledger = MemoryLedger()
        source = Watched(table._source, ledger, crash)
        return Table(source, ledger), source  # type: ignore[arg-type]

    return make


def charged_first(table: Table, source: Watched, ask: Callable[[Session], Any]) -> bool:
    ask(table.session(target="table", rho=1.0))
    return source.charged_at_read == [1]


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "votes", "subsampled-laplace"])
def test_the_charge_is_committed_before_a_row_is_read(watched: Any, mechanism: str) -> None:
    assert charged_first(*watched(), lambda s: s.fraction("age > 40", within=0.1, mechanism=mechanism))
    assert charged_first(*watched(), lambda s: s.sample("age > 40"))


def test_a_session_that_reads_first_is_caught(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: draw, then charge."""

    def read_first(self: Session, statistic: Any, request: Any) -> Steps[Answer]:
        surveyed = yield Survey(self.name, "key")
        planned, holding = self._agreed(statistic, request, surveyed.moment, None)
        answer = session_module.release(planned, self._desk.for_the_owner(), self._terms)  # type: ignore[arg-type]
        yield from self._desk.pay("key", planned.text, planned.event_text, planned.charge, holding)
        return answer

    monkeypatch.setattr(Session, "_steps", read_first)
    assert not charged_first(*watched(), lambda s: s.fraction("age > 40", within=0.1))


def test_a_lost_answer_is_paid_for_and_can_be_resumed_once(watched: Any) -> None:
    table, source = watched(crash=True)
    session = table.session(target="table", rho=1.0)
    with pytest.raises(Crash):
        session.fraction("age > 40", within=0.1)
    paid = session.spent
    assert paid > 0
    assert session.history == []
    source.crash = False
    answer = session.fraction("age > 40", within=0.1)
    assert not answer.repeated
    assert session.spent == paid
    again = session.fraction("age > 40", within=0.1)
    assert again.repeated
    assert again == answer
    assert len(source.charged_at_read) == 2


def test_a_resumed_answer_uses_the_noise_that_was_paid_for(watched: Any) -> None:
    """The anytime schedule would plan another noise by now; the recorded one is used."""
    table, source = watched(crash=True)
    session = table.session(target="table", rho=1.0)
    with pytest.raises(Crash):
        session.count("age > 40", within=100)
    source.crash = False
    for age in range(20):
        session.count(f"age > {age}", within=500)
    plan = session.estimate.count("age > 40", within=100)
    resumed = session.count("age > 40", within=100)
    entry = next(iter(table._ledger.entries(session.name)))
    assert f"{plan.noise_parameter}" not in entry.plan
    assert entry.answer is not None
    assert resumed.rho == pytest.approx(entry.charge.session * 1e-9, rel=1e-3)
    assert resumed.rho < plan.rho


def test_an_estimate_reads_nothing_and_charges_nothing(watched: Any) -> None:
    table, source = watched(crash=True)
    session = table.session(target="table", rho=1.0)
    plans = [
        session.estimate.fraction("age > 40", within=0.1),
        session.estimate.quantile("income", 0.5, rho=0.1),
        session.estimate.sql_one("SELECT avg(income) FROM t GROUP BY smoker", rho=0.1),
    ]
    assert source.charged_at_read == []
    assert session.spent == 0
    source.crash = False
    for plan, ask in zip(
        plans,
        (
            lambda: session.fraction("age > 40", within=0.1),
            lambda: session.quantile("income", 0.5, rho=0.1),
            lambda: session.sql_one("SELECT avg(income) FROM t GROUP BY smoker", rho=0.1),
        ),
        strict=True,
    ):
        before = float(session.spent)
        answer = ask()
        assert float(session.spent) - before == pytest.approx(plan.cost)
        assert answer.rho == plan.rho


def test_answers_vary_and_noise_is_fresh(table: hf.Table) -> None:
    values = {table.session(target="table", rho=1.0).count("age > 40", rho=1e-4).value for _ in range(30)}
    assert len(values) > 20


LAWS = {"laplace": (laplace_log_law, lambda scale: scale), "gaussian": (gaussian_log_law, np.sqrt)}
"""Of a mechanism: the law of its noise, and the scale that its parameter says."""


@pytest.mark.usefixtures("replayed_noise")
@pytest.mark.parametrize(
    ("mechanism", "budget"), [("laplace", {"epsilon": 0.5}), ("gaussian", {"rho": 0.02})]
)
def test_noise_has_the_planned_scale(
    make_table: Callable[..., hf.Table], data: dict[str, Any], mechanism: str, budget: dict[str, float]
) -> None:
    """Accepted at a false-alarm rate of 1e-9, at which a tenth less and a tenth more are rejected."""
    table, truth = make_table(), np.bincount(data["age"], minlength=100)
    asked = [
        table.session(target="table", **budget, queries=1, name=f"number {i}").count(by="age").value
        for i in range(150)
    ]
    noise = np.rint(np.array(asked) - truth).astype(np.int64).ravel()
    assert (np.array(asked) == (noise.reshape(150, 100) + truth)).all()
    assert np.array(asked).min() > 0  # nothing was clamped
    planned = table.session(target="table", **budget, queries=1).estimate.count(by="age")
    assert planned.mechanism == mechanism
    log_law, scale_of = LAWS[mechanism]
    scale = float(scale_of(float(planned.noise_parameter)))
    assert scaled(noise, log_law, scale) > FALSE_ALARM
    for factor in (0.9, 1.1):
        assert scaled(noise, log_law, factor * scale) < FALSE_ALARM
    assert abs(noise.mean()) < 6 * noise.std() / np.sqrt(noise.size)


def test_a_standing_charge_is_not_reused_for_another_event() -> None:
    session = open_rows(np.arange(100)).session(epsilon=100.0)
    session.pay("test", "one", hf.privacy.events.PureMechanism(1), key="k")
    with pytest.raises(hf.InputError, match="other terms"):
        session.pay("test", "another", hf.privacy.events.PureMechanism(50), key="k")


def test_charges_with_intervals_stay_within_the_promise() -> None:
    session = open_rows(np.arange(100)).session(epsilon=10.0, queries=1)
    session.pay("test", "one", hf.privacy.events.PureMechanism(1), queries=1)
    with pytest.raises(hf.BudgetError, match="1 queries"):
        session.pay("test", "two", hf.privacy.events.PureMechanism(1), queries=1)
    session.pay("test", "without an interval", hf.privacy.events.PureMechanism(1))
    assert session.spent == pytest.approx(2.0)


@pytest.mark.parametrize("target", ["table", "population"])
def test_a_charge_planned_for_some_places_is_made_again_when_others_took_them(target: str) -> None:
    """Without queries= the places up to `last` are what was planned for; with it, those that were promised."""
    event = hf.privacy.events.PureMechanism(1)
    anytime, promised = (
        hf.open({"x": np.arange(100)}, hf.Schema(x=hf.Integer(0, 99)), ledger=MemoryLedger()).session(
            epsilon=10.0, queries=queries, target=target
        )
        for queries in (None, 2)
    )
    for session in (anytime, promised):
        session.pay("test", "one", event, queries=1, last=1)
    with pytest.raises(Stale):
        anytime.pay("test", "two", event, queries=1, last=1)
    promised.pay("test", "two", event, queries=1, last=1)
    with pytest.raises(Stale):
        promised.pay("test", "three", event, queries=1, last=3)
    assert (anytime.spent, promised.spent) == (1.0, 2.0)


def test_what_a_session_cannot_count_is_refused_uncharged() -> None:
    """A delta of one unit is one too many."""
    counted = open_rows(np.arange(100)).session(rho=10.0)
    least = hf.privacy.events.ConcentratedMechanism(1, Fraction(1, 10**30))
    assert Filter.zcdp(1, 1e-6).delta_cost(least) == 1
    with pytest.raises(hf.MechanismError, match="delta of its own"):
        counted.pay("test", "one", least)
    assert counted.spent == 0


def test_nothing_is_left_of_what_is_spent_to_the_last_unit() -> None:
    session = open_rows(np.arange(100)).session(epsilon=1.0)
    session.pay("test", "all but one unit", hf.privacy.events.PureMechanism(1 - Fraction(1, UNITS)))
    assert session.left(session._moment()) == 1 / UNITS
    session.pay("test", "the last", hf.privacy.events.PureMechanism(Fraction(1, UNITS)))
    assert session.remaining == session.left(session._moment()) == 0


def test_a_sample_takes_no_place_of_the_promise(table: hf.Table) -> None:
    session = table.session(rho=1.0, queries=1)
    session.sample("age > 49")
    totals = session._ledger.totals(session.name)
    assert (totals.entries, totals.answers) == (1, 0)


def test_a_sample_reads_what_its_condition_names_and_at_least_one_column(table: hf.Table) -> None:
    session = table.session(rho=1.0)
    named = {"true": ("age",), "insured": ("insured",), "insured and age > 3": ("age", "insured")}
    assert {where: session._priced_vote(where)[0] for where in named} == named


def test_a_repeated_call_draws_nothing_again(table: hf.Table) -> None:
    session = table.session(rho=1.0, target="table")
    told = [session.sample("age > 49", key=f"call {i}") for i in range(200)]
    spent = float(session.spent)
    assert [session.sample("age > 49", key=f"call {i}") for i in range(200)] == told
    assert float(session.spent) == spent
    assert len(set(told)) == 2  # different calls are different draws
    assert session.sample("age > 49", key="call 0") is told[0]


def test_a_sample_of_another_condition_is_another_draw(table: hf.Table) -> None:
    session = table.session(rho=1.0, target="table")
    for where in ("age > 49", "age > 98"):
        session.sample(where, key="KEY")
    assert session._ledger.totals(session.name).entries == 2
