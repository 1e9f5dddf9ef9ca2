"""A charge opens the rows, and its outcome closes them; there is no other way in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.open import open_source
from holdfast.desk import Desk, Paid, run
from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Account, Charge, MemoryLedger, Precondition, Reserve, Stale
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.privacy.event import Nothing, PureMechanism, to_json
from holdfast.query.measurement import Measurement
from holdfast.query.parse import parse_predicate

SCHEMA = hf.Schema(x=hf.Integer(0, 9))
EVENT, NOTHING = (json.dumps(to_json(event)) for event in (PureMechanism(1), Nothing()))
COUNTED = Measurement(SCHEMA, parse_predicate("x > 5", SCHEMA))
READS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda rows: next(iter(rows.scan(["x"]))),
    "gather": lambda rows: rows.gather(["x"], np.array([0])),
    "draw": lambda rows: rows.draw(["x"], 3),
    "one": lambda rows: rows.one(["x"]),
    "totals": lambda rows: rows.totals(COUNTED),
}


@pytest.fixture
def desk() -> Desk:
    ledger = MemoryLedger()
    ledger.open(Account("mine", "pure", 10))
    return Desk(open_source({"x": np.arange(10)}, SCHEMA), ledger, "mine")


def pay(desk: Desk, key: str | None = None, event: str = EVENT, units: int = 1) -> Paid:
    return desk.paid(key, '{"question": "a test"}', event, Charge(units, units, 0), Precondition())


@pytest.mark.parametrize("way", READS)
def test_what_was_paid_reaches_rows_until_its_outcome_is_told(desk: Desk, way: str) -> None:
    paid = pay(desk, "k")
    assert READS[way](paid) is not None
    READS[way](paid)  # as often as the release needs
    assert paid.record("1") == "1"
    for told in (paid, desk.find("k")):
        assert told is not None and told.outcome == "1"
        with pytest.raises(LedgerError, match="told"):
            READS[way](told)


@pytest.mark.parametrize("way", READS)
def test_a_secret_state_keeps_the_rows_in_reach(desk: Desk, way: str) -> None:
    paid = pay(desk, "k")
    paid.record("1", secret=True)
    for going_on in (paid, desk.find("k")):
        assert going_on is not None and READS[way](going_on) is not None


@pytest.mark.parametrize("way", READS)
def test_a_charge_of_nothing_reaches_nothing(desk: Desk, way: str) -> None:
    with pytest.raises(LedgerError, match="nothing"):
        READS[way](pay(desk, event=NOTHING, units=0))


def test_a_charge_without_an_outcome_is_found_again_and_goes_on(desk: Desk) -> None:
    assert desk.find("k") is None
    pay(desk, "k")
    again = desk.find("k")
    assert again is not None and again.outcome is None and again.entry.event == EVENT
    assert READS["totals"](again) == [4]
    first, second = desk.find("k"), desk.find("k")
    assert first is not None and second is not None
    assert [first.record("1"), second.record("2")] == ["1", "1"]
    with pytest.raises(Stale):
        pay(desk, "k")


def test_a_step_commits_before_it_gives_anything(desk: Desk) -> None:
    steps = desk.pay("k", "{}", EVENT, Charge(1, 1, 0), Precondition())
    commit = next(steps)
    assert isinstance(commit, Reserve) and commit.event == EVENT
    assert desk.find("k") is None  # whoever takes the steps has not put it yet
    entry = commit.put(desk._ledger)
    with pytest.raises(StopIteration) as done:
        steps.send(entry)
    assert READS["totals"](done.value.value) == [4]


def test_who_cannot_pay_gets_nothing(desk: Desk) -> None:
    with pytest.raises(BudgetError):
        pay(desk, units=11)
    with pytest.raises(BudgetError):
        run(desk.pay("k", "{}", EVENT, Charge(11, 11, 0), Precondition()), desk._ledger)
    assert desk.find("k") is None


def test_rows_that_were_paid_for_real_noise_are_out_of_reach_while_it_is_replayed(desk: Desk) -> None:
    paid = pay(desk)
    with replayed(ReplayedBits(1)):
        for way in READS.values():
            with pytest.raises(LedgerError, match="real noise"):
                way(paid)
        with pytest.raises(LedgerError, match="real noise"):
            paid.record("1")
        assert READS["totals"](pay(desk)) == [4]
    assert paid.record("1") == "1"
