"""A plan is kept by whoever opens it again, and other terms are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger, export, verify
from holdfast.planning.budget import budget
from holdfast.session import table as table_module


def small(rows: int) -> hf.Table:
    return hf.open({"x": np.arange(rows) % 10}, hf.Schema(x=hf.Integer(0, 99)), ledger=MemoryLedger())


OTHER_TERMS: list[dict[str, Any]] = [
    {"queries": 4}, {"confidence": 0.9}, {"target": "table"}, {"within": 0.3}, {"rows": 10}, {"share": 0.5},
    {"intervals": "rare"}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "only": "gaussian"},
    {"only": "gaussian"},
]  # fmt: skip


def test_a_plan_is_kept_by_whoever_opens_it_and_by_a_second_process(tmp_path: Path) -> None:
    """Its places are taken together; the last one by whoever comes first, and nothing beyond by anybody."""
    store = tmp_path / "rows.hf"
    own = small(1_000).save(store).session(epsilon=1.0, delta=1e-6, queries=3, name="plan")
    width = own.fraction("x < 1").width
    for other in OTHER_TERMS:
        with pytest.raises(hf.LedgerError, match=r"session 'plan' exists and .*choose another name"):
            hf.open(store).session(**{"name": "plan"} | other)
    there = (
        "import sys, holdfast as hf\n"
        "session = hf.open(sys.argv[1]).session(name='plan')\n"
        "print(session.plan)\n"
        "print(session.fraction('x < 2').width)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", there, str(store)], capture_output=True, text=True, check=True, timeout=120
    )
    plan, told = ran.stdout.splitlines()
    assert plan.split(";")[0] == own.plan.split(";")[0] and float(told) <= width * 1.01
    assert own.fraction("x < 3").width <= width * 1.01
    spent = own.spent
    with pytest.raises(hf.BudgetError):
        own.fraction("x < 4")
    beyond = subprocess.run(
        [sys.executable, "-c", there.replace("x < 2", "x < 7"), str(store)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "BudgetError" in beyond.stderr and own.spent == spent
    assert own.fraction("x < 2").width == float(told), "what the other process was told stands here too"


def test_the_one_mechanism_of_a_session_is_kept() -> None:
    table = small(1_000)
    table.session(rho=1.0, queries=3, only="gaussian", name="exact")
    table.session(within=0.2, queries=3, name="wide", only="gaussian")
    assert table.session(name="exact", only="gaussian").currency == "gdp"
    assert table.session(name="wide", only="gaussian").currency == "zcdp"
    with pytest.raises(hf.LedgerError, match=r"was opened with only='gaussian', got 'votes'"):
        table.session(name="wide", only="votes")


@pytest.mark.parametrize("compared", [True, False])
def test_the_part_of_the_meter_of_a_share_is_kept(monkeypatch: pytest.MonkeyPatch, compared: bool) -> None:
    """The broken twin keeps the standing one without a word, as it was before."""
    table = small(10_000)
    first = table.session(rho=1.0, queries=5, name="half", share=0.5)
    assert table.session(name="half", share=0.5).plan == table.session(name="half").plan == first.plan
    if not compared:
        monkeypatch.setattr(table_module, "refuse_other_terms", lambda *given: None)
        assert table.session(name="half", share=0.25).plan == first.plan
        return
    with pytest.raises(hf.LedgerError, match=r"was opened with share=0\.5, got 0\.25; .*leaving share= out"):
        table.session(name="half", share=0.25)
    assert len(accounts_of(table, "half")) == 1


def test_a_share_from_before_its_part_was_kept_is_opened_as_ever() -> None:
    table = small(10_000)
    table.session(rho=1.0, queries=5, name="half", share=0.5)
    (standing,) = table.ledger.accounts()
    terms = {name: part for name, part in json.loads(standing.terms).items() if name != "share"}
    old = MemoryLedger()
    old.open(replace(standing, terms=json.dumps(terms)))
    before = hf.open({"x": np.arange(10_000) % 10}, hf.Schema(x=hf.Integer(0, 99)), ledger=old)
    for given in ({}, {"share": 0.5}, {"share": 0.3}):
        assert before.session(name="half", **given).plan


def accounts_of(table: hf.Table, name: str) -> list[dict[str, Any]]:
    """What the chain says of a session's account, oldest first."""
    facts = [json.loads(line) for line in export(table.ledger)]
    return [fact for fact in facts if fact["kind"] == "account" and fact["name"] == name]


@pytest.mark.parametrize(
    "larger", [{"epsilon": 3.0}, {"epsilon": 1.0, "delta": 1e-4}, {"rho": 0.2, "delta": None}]
)
def test_a_larger_budget_raises_the_limit_and_leaves_the_plan(tmp_path: Path, larger: dict[str, Any]) -> None:
    """A fact in the chain, which the ledger keeps, and says to whoever opens it next."""
    table = small(1_000).save(tmp_path / "rows.hf")
    first = table.session(epsilon=1.0, delta=1e-6, queries=3, name="plan")
    first.fraction("x < 1", rho=float(first.limit) * 0.9)
    with pytest.raises(hf.BudgetError):
        first.fraction("x < 2", rho=float(first.limit) * 0.5)
    given = {"delta": 1e-6} | larger
    again = table.session(name="plan", **given)
    assert first.limit < again.limit == float(budget(**given).amount(again._budget.filter.limit_units))
    assert again._terms.places == first._terms.places
    assert again.meter and first.meter and again.meter.answers >= first.meter.answers
    again.fraction("x < 2", rho=float(first.limit) * 0.5)
    assert first.limit < again.spent == first.spent <= again.limit
    before, after = accounts_of(table, "plan")
    assert {name for name in after if after[name] != before[name]} == {"units", "place", "head"}
    verify(table.ledger)
    table.close()
    assert hf.open(tmp_path / "rows.hf").session(name="plan").limit == again.limit


def test_a_smaller_budget_is_kept_too_but_not_one_below_what_was_charged(tmp_path: Path) -> None:
    table = small(1_000).save(tmp_path / "rows.hf")
    first = table.session(epsilon=1.0, delta=1e-6, queries=3, name="plan")
    first.fraction("x < 1")
    with pytest.raises(hf.BudgetError, match="charged more than this limit; open it with a larger budget"):
        table.session(name="plan", rho=float(first.spent) / 2)
    smaller = table.session(name="plan", rho=float(first.spent) * 1.5)
    assert "more than your" in smaller.plan and smaller.meter and smaller.meter.answers == 0
    assert [each["units"] for each in accounts_of(table, "plan")] == [
        round(float(own.limit) * 1e9) for own in (first, smaller)
    ]


def test_a_twin_that_goes_on_with_the_old_limit_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "budget", lambda **how: budget(epsilon=1.0, delta=1e-6))
    with pytest.raises(AssertionError):
        test_a_larger_budget_raises_the_limit_and_leaves_the_plan(tmp_path, {"epsilon": 3.0})
