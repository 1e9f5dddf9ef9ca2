"""A refusal names the nearest that can be had, to a hundredth, and for how many answers; it is then answered."""

from __future__ import annotations

import re

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.planning import affordable, planner

SCHEMA = hf.Schema(x=hf.Integer(0, 999))


def opened(**how: float) -> hf.Session:
    rows = {"x": np.random.default_rng(6).integers(0, 1000, 5_000)}
    return hf.open(rows, SCHEMA, ledger=MemoryLedger()).session(**how)


def advised(error: pytest.ExceptionInfo[hf.HoldfastError]) -> tuple[float, int]:
    found = re.search(r"within=(\S+) (?:can be|is still affordable), for ([\d,]+) answer", str(error.value))
    assert found is not None, str(error.value)
    return float(found[1]), int(found[2].replace(",", ""))


def test_what_cannot_be_certified_names_the_best_width_and_how_often_it_can_be_had() -> None:
    session = opened(rho=1.0, queries=30)
    for place in range(4):
        session.fraction(f"x < {place + 1}")
    with pytest.raises(hf.InputError) as refused:
        session.fraction("x < 500", within=0.01)
    nearest, many = advised(refused)
    with pytest.raises(hf.InputError):
        session.estimate.fraction("x < 500", within=nearest / 1.02)
    for place in range(many):
        session.fraction(f"x < {500 + place}", within=nearest * 1.006)


def test_a_wider_answer_can_be_had_more_often_and_as_often_as_it_says() -> None:
    session = opened(rho=1.0, queries=60)
    made = session.estimate.fraction("x < 500", within=0.07)
    moment, terms = session._moment(), session._terms
    totals = planner.workload(made.statistic, terms.schema, terms.rows)
    request = planner.Request(within=0.07)
    many = affordable.answers_like(
        made, lambda later: planner.plan_by("gaussian", totals, request, later, terms), moment, terms
    )
    assert 5 < many < 60
    for place in range(many):
        session.fraction(f"x < {place + 1}", within=0.07)


def test_what_is_too_dear_names_the_best_that_is_affordable() -> None:
    session = opened(rho=1e-5, queries=8)
    session.fraction("x < 100", rho=8e-6)
    with pytest.raises(hf.BudgetError) as refused:
        session.fraction("x < 500", rho=5e-6)
    nearest, many = advised(refused)
    assert refused.value.within == pytest.approx(nearest, rel=1e-3) and many >= 1
    assert session.estimate.fraction("x < 500", rho=1.99e-6).width >= refused.value.within * 0.99
    session.fraction("x < 500", within=nearest * 1.001)


def test_advice_that_is_not_the_best_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin halves the budget only: the best of the halves is some percent wider than what can be had."""

    def best(session: hf.Session) -> float:
        with pytest.raises(hf.BudgetError) as refused:
            session.fraction("x < 500", rho=10.0)
        assert refused.value.within is not None
        return refused.value.within

    narrow = best(opened(rho=5.0, queries=8))
    estimate = opened(rho=5.0, queries=8).estimate
    fine = [estimate.fraction("x < 500", rho=4.9 / 2**power).width for power in np.linspace(8, 20, 60)]
    assert narrow <= min(fine) * 1.01
    monkeypatch.setattr(affordable, "least", lambda *search: (float("inf"), 0.0))
    monkeypatch.setattr(affordable, "_HALVED", 3)
    assert best(opened(rho=5.0, queries=8)) > min(fine) * 1.01
