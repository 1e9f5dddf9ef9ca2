"""Charge, then draw: a crash may lose an answer, never privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.desk import Steps
from holdfast.ledger import Ledger, MemoryLedger
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
        planned, holding = self._agreed(statistic, request, None)
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
        session.estimate.sql("SELECT avg(income) FROM t GROUP BY smoker", rho=0.1),
    ]
    assert source.charged_at_read == []
    assert session.spent == 0
    source.crash = False
    for plan, ask in zip(
        plans,
        (
            lambda: session.fraction("age > 40", within=0.1),
            lambda: session.quantile("income", 0.5, rho=0.1),
            lambda: session.sql("SELECT avg(income) FROM t GROUP BY smoker", rho=0.1),
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


@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"rho": 0.02}])
def test_noise_has_the_planned_scale(table: hf.Table, data: dict[str, Any], budget: dict[str, float]) -> None:
    truth = int(np.sum(data["age"] > 40))
    values = []
    for _ in range(1500):
        session = table.session(target="table", **budget, queries=1)
        values.append(session.count("age > 40").value - truth)
    planned = table.session(target="table", **budget, queries=1).estimate.count("age > 40")
    expected = float(planned.noise_parameter) * (2 if planned.mechanism == "laplace" else 1)
    if planned.mechanism == "laplace":
        expected = 2 * float(planned.noise_parameter) ** 2
    # Sample variance of 1500 draws: relative standard error below 6% (Laplace) and 4% (Gaussian).
    assert np.mean(np.square(values)) == pytest.approx(expected, rel=0.4)
    assert abs(np.mean(values)) < 6 * np.sqrt(expected / 1500)
