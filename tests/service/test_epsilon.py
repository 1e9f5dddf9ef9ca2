"""Row 11 of docs/threats.md: what leaves over HTTP is as private as the budget says that it was."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.audit import Audit, epsilon_lower_bound
from holdfast.ledger import Charge, SqliteLedger
from holdfast.mechanisms.laplace import add_laplace
from holdfast.session import release
from service.site import Site, site

ROWS, COPIES, RUNS = 50, 40, 1600
NAMES = [f"c{i}" for i in range(COPIES)]
SCHEMA = hf.Schema.from_mapping(
    {name: hf.Integer(0, 2) for name in NAMES} | {"k": hf.Integer(0, 10**6), "flag": hf.Boolean()}
)
BUDGET = {"epsilon": 1e6}


def table(person: int) -> hf.Table:
    """One person among fifty, with the same value in all columns, which are there to be asked in one request."""
    columns = {name: np.array([person] + [1] * (ROWS - 1)) for name in NAMES}
    columns |= {"k": np.zeros(ROWS, np.int64), "flag": np.array([person == 2] + [True, False] * 24 + [True])}
    return hf.open(columns, SCHEMA)


def spent(here: Site, key: str) -> float:
    """What the analyst is told to have spent."""
    amount: float = here.call("GET", f"/datasets/{key}/budget").json()["spent"]["amount"]
    return amount


def answers(here: Site, key: str, runs: int, aggregate: str, mechanism: str) -> list[float]:
    """So many answers to one question, which is spelled anew for each request."""
    told: list[float] = []
    for i in range(1, 1 + runs // COPIES):
        asked = ", ".join(aggregate.format(name) for name in NAMES)
        question = {"kind": "sql", "text": f"SELECT {asked} FROM t WHERE k < {i}", "epsilon": 1.0}
        reply = here.ask(question | {"mechanism": mechanism}, table=key)
        assert reply.status_code == 200, reply.text
        told += [answer["value"] for answer in reply.json()["answers"]]
    return told


def audited(here: Site, aggregate: str = "sum({})", mechanism: str = "laplace") -> tuple[Audit, float]:
    """A lower bound on the epsilon of one answer over HTTP, and what the gateway says that one costs."""
    before = spent(here, "first")
    audit = epsilon_lower_bound(
        None, "first", "second", runs=RUNS, confidence=0.999,
        many=lambda key, runs: answers(here, key, runs, aggregate, mechanism),
    )  # fmt: skip
    return audit, (spent(here, "first") - before) / RUNS


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A gateway on a disk of memory where there is one: it is asked more than a thousand questions."""
    if Path("/dev/shm").is_dir():
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    tables = {"first": table(0), "second": table(2)}
    with site(tables, budget=BUDGET, share=BUDGET, declared={"target": "table"}) as made:
        yield made


def test_an_answer_is_as_private_as_it_was_charged(here: Site) -> None:
    audit, claimed = audited(here)
    assert claimed == pytest.approx(1.0, abs=1e-3)
    assert 0.1 < audit.epsilon_lower <= claimed, audit


def halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the noise."""
    monkeypatch.setattr(release, "add_laplace", lambda values, scale: add_laplace(values, scale / 2))


def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three charges of four are forgotten."""
    reserve = SqliteLedger.reserve

    def careless(
        self: SqliteLedger, session: str, key: str, plan: str, event: str, cost: Charge, *more: Any
    ) -> Any:
        return reserve(
            self, session, key, plan, event, Charge(cost.session // 4, cost.table // 4, cost.queries), *more
        )

    monkeypatch.setattr(SqliteLedger, "reserve", careless)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "half the noise": halved,
    "charges forgotten": forgotten,
}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_gateway_that_is_wrong_about_it_is_caught(
    here: Site, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The broken twins; a wrong sensitivity is among those of tests/laws/test_charged_event.py."""
    MUTANTS[name](monkeypatch)
    audit, claimed = audited(here)
    assert audit.violates(claimed), (audit, claimed)
