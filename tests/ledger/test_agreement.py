"""The same operations give the same results, errors and totals in every ledger."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.ledger import (
    ALWAYS,
    Account,
    Charge,
    Entry,
    Ledger,
    MemoryLedger,
    Precondition,
    SqliteLedger,
    verify,
)
from ledger.homes import HOMES, Home, SqliteHome

names = st.sampled_from(["a", "b", "it's", "ψ"])
keys = st.sampled_from(["1", "2", "3"])
units = st.integers(0, 12)
holds = st.builds(
    Precondition,
    session_answers=st.none() | units,
    table_answers=st.none() | units,
    table_units=st.none() | st.integers(0, 30),
    currency=st.sampled_from([None, "zcdp"]),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("limit"), st.sampled_from(["zcdp", "pure"]), st.integers(0, 30)),
        st.tuples(st.just("open"), names, st.sampled_from(["zcdp", "pure"]), units),
        st.tuples(st.just("end"), names),
        st.tuples(st.just("reserve"), names, keys, st.builds(Charge, units, units, st.integers(0, 2)), holds),
        st.tuples(
            st.just("record"), names, keys, st.text(st.characters(exclude_characters="\0"), max_size=5)
        ),
    ),
    max_size=25,
)


def outcome(ledger: Ledger, operation: Any) -> object:
    """What an operation gives; an error counts by its kind and words."""
    try:
        match operation:
            case ("limit", currency, limit):
                ledger.set_limit(Account("the table", currency, limit))
            case ("open", name, currency, limit):
                return ledger.open(Account(name, currency, limit))
            case ("end", name):
                ledger.end(name)
                return sorted(ledger.ended())
            case ("reserve", name, key, charge, holding):
                entry = ledger.reserve(name, key, "plan", "event", charge, holding)
                return (entry.session, entry.key, entry.charge, entry.answer)
            case ("record", name, key, answer):
                found = ledger.find(name, key)
                return None if found is None else ledger.record(found.id, answer, secret=len(answer) > 2)
    except HoldfastError as error:
        return type(error), str(error)
    return None


def seen(ledger: Ledger) -> object:
    """All that a ledger tells."""
    entries = [(e.session, e.key, e.charge, e.answer, e.secret) for e in ledger.entries()]
    totals = [ledger.totals(name) for name in (None, "a", "b", "it's", "ψ")]
    facts = [(fact.place, fact.kind) for fact in ledger.history()]
    return entries, totals, facts, ledger.limit(), sorted(ledger.accounts(), key=lambda account: account.name)


FOLDERS = itertools.count()


def agrees(make: Callable[[Path], Home], folder: Path, asked: list[Any]) -> bool:
    place = folder / str(next(FOLDERS))
    place.mkdir()
    memory, other = MemoryLedger(), make(place).open()
    try:
        same = all(outcome(memory, operation) == outcome(other, operation) for operation in asked)
        return same and seen(memory) == seen(other) and verify(memory).totals == verify(other).totals
    finally:
        other.close()


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_every_ledger_agrees_with_the_one_in_memory(kind: str, tmp_path: Path) -> None:
    # A server takes longer to make a ledger.
    @settings(max_examples=12 if kind == "postgres" else 40, suppress_health_check=list(HealthCheck))
    @given(operations)
    def check(asked: list[Any]) -> None:
        assert agrees(HOMES[kind], tmp_path, asked)

    check()


class Careless(SqliteLedger):
    """The broken twin: charges whether or not the plan still holds."""

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: Precondition = ALWAYS
    ) -> Entry:
        return super().reserve(session, key, plan, event, charge)


class CarelessHome(SqliteHome):
    Ledger = Careless


def test_a_careless_ledger_does_not_agree(tmp_path: Path) -> None:
    asked = [("open", "a", "zcdp", 9), ("reserve", "a", "1", Charge(1, 1), Precondition(session_answers=0))]
    assert agrees(SqliteHome, tmp_path, asked)
    assert not agrees(CarelessHome, tmp_path, asked)
