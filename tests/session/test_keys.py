"""Keys that nobody declared: found once, charged once, public from then on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import (
    BudgetError,
    InputError,
    LedgerError,
    MechanismError,
    QueryError,
    UndiscoveredError,
)
from holdfast.ledger import LEDGER_FILE, UNCOVERED, MemoryLedger
from holdfast.ledger.audit import audit
from holdfast.session import keys as room

SCHEMA = hf.Schema(dest=hf.Text(8), delay=hf.Integer(0, 9), side=hf.Category("l", "r"))
ROWS = 6000
DEST = ["JFK"] * 3000 + ["LAX"] * 2000 + ["ORD"] * 900 + [f"one {i}" for i in range(60)] + [None] * 40
DATA: dict[str, Any] = {
    "dest": np.array(DEST, dtype=object),
    "delay": np.arange(ROWS) % 10,
    "side": np.array(["l", "r"])[np.arange(ROWS) % 2],
}
SHOWN = ("JFK", "LAX", "ORD")


def table(rows_per_unit: int = 1, **more: Any) -> hf.Table:
    return hf.open(
        {name: column.copy() for name, column in DATA.items()}, SCHEMA, rows_per_unit=rows_per_unit, **more
    )


def opened(**terms: Any) -> hf.Session:
    return table().session(**{"epsilon": 2.0, "delta": 1e-5, "target": "table", "queries": 20} | terms)


def test_keys_are_found_once_and_reused_free_of_charge() -> None:
    session = opened()
    found = session.keys("dest")
    assert tuple(found) == SHOWN and found[0] == "JFK" and len(found) == 3
    assert float(session.spent) == pytest.approx(found.rho)
    assert session.keys("dest") == found
    assert float(session.spent) == pytest.approx(found.rho)
    counts = session.histogram("dest", rho=0.01)
    assert counts.labels == SHOWN
    assert np.all((counts.low <= [3000, 2000, 900]) & (counts.high >= [3000, 2000, 900]))
    by_sql = session.sql_one("SELECT dest, avg(delay) FROM t GROUP BY dest", rho=0.01)
    assert by_sql.labels == SHOWN
    assert session.quantile("delay", by="dest", rho=0.01).labels == SHOWN
    spent = float(session.spent)
    assert session.sql_one("SELECT dest, avg(delay) FROM t GROUP BY dest", rho=0.01).repeated
    assert float(session.spent) == spent


def test_by_discovers_first() -> None:
    session = opened()
    with pytest.raises(UndiscoveredError, match=r"session\.keys"):
        session.estimate.count(by="dest", rho=0.01)
    assert session.spent == 0
    assert session.count(by="dest", rho=0.01).labels == SHOWN
    assert float(session.spent) == pytest.approx(0.01 + session.keys("dest").rho)
    assert session.estimate.count(by="dest", rho=0.02).rho == pytest.approx(0.02, rel=1e-3)


def test_the_filter_counts_both_numbers() -> None:
    session = opened()
    found = session.keys("dest")
    totals = session._ledger.totals(session.name)
    assert totals.delta == session._ledger.totals().delta > 0
    assert totals.delta / 1e18 == pytest.approx(found.delta, rel=1e-9) and found.delta <= 5e-6
    assert audit(session._ledger.history()).totals.delta == totals.delta


def test_no_more_delta_than_is_kept() -> None:
    schema = hf.Schema(a=hf.Text(8), b=hf.Text(8))
    both = hf.open({"a": DATA["dest"].copy(), "b": DATA["dest"].copy()}, schema)
    session = both.session(epsilon=1.0, delta=1e-5, keys_delta=4e-6, target="table")
    with pytest.raises(BudgetError, match="delta"):
        session.keys("a", delta=5e-6)
    assert session.spent == 0
    assert session.keys("a", delta=3e-6).delta <= 3e-6
    with pytest.raises(BudgetError, match="keys_delta"):
        session.keys("b", delta=2e-6)
    assert len(session.keys("b", delta=1e-6)) == 3


def test_a_table_s_limit_counts_delta_of_all_sessions() -> None:
    whole = table()
    whole.limit(epsilon=1.0, delta=1e-6, keys_delta=3e-7)
    first, second = (whole.session(epsilon=0.4, delta=1e-6, target="table") for _ in range(2))
    first.keys("dest", delta=2e-7)
    with pytest.raises(BudgetError, match="the table"):
        second.keys("dest", delta=2e-7)
    second.keys("dest", delta=1e-7)


def test_a_twin_that_does_not_count_delta_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.ledger import memory

    monkeypatch.setattr(memory, "refuse_delta", lambda account, after, cost: None)
    with pytest.raises(AssertionError), pytest.raises(BudgetError):
        opened(keys_delta=1e-7).keys("dest", delta=1e-6)
        raise AssertionError("it was not refused")


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 1.0, "delta": None},
        {"rho": 0.1, "epsilon": None, "delta": None},
        {"keys_delta": 0.0},
    ],
)
def test_without_a_delta_there_are_no_keys_and_the_refusal_says_what_works(terms: dict[str, Any]) -> None:
    session = opened(**terms)
    for ask in (lambda: session.keys("dest"), lambda: session.count(by="dest")):
        with pytest.raises(MechanismError, match="epsilon= and delta="):
            ask()
    assert session.spent == 0 and list(session._ledger.entries()) == []


def test_bad_input_is_refused_before_a_charge() -> None:
    session = opened()
    for column, message in (("side", "declared"), (3, "name"), (None, "name")):
        with pytest.raises(InputError, match=message):
            session.keys(column)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="no column"):
        session.keys("nothing")
    for how in ({"rho": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"rho": "much"}):
        with pytest.raises(InputError):
            session.keys("dest", **how)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="edges"):
        session.histogram("dest", edges=["a", "b"])
    with pytest.raises(QueryError, match="no order"):
        session.quantile("dest")
    with pytest.raises(QueryError, match="text column"):
        session.statistic(lambda rows: rows["dest"], ["dest"])
    for keys_delta in (1e-5, 1.0, -1.0):
        with pytest.raises(InputError):
            opened(keys_delta=keys_delta)
    assert session.spent == 0


def test_where_no_key_is_large_enough_nothing_is_grouped() -> None:
    session = opened()
    assert len(session.keys("dest", rho=1e-8)) == 0
    with pytest.raises(UndiscoveredError, match="no key was found"):
        session.count(by="dest")


def test_other_terms_for_a_discovery_that_stands_are_refused() -> None:
    session = opened()
    session.keys("dest", rho=0.01)
    with pytest.raises(InputError, match="other terms"):
        session.keys("dest", rho=0.02)


def test_a_crash_after_the_charge_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = table().save(tmp_path / "flights.hf")
    session = store.session(epsilon=2.0, delta=1e-5, target="table", queries=20, name="ann")

    def crash(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(room, "shown_keys", crash)
        with pytest.raises(KeyboardInterrupt):
            session.keys("dest")
    spent = float(session.spent)
    assert spent > 0
    store.close()
    again = hf.open(tmp_path / "flights.hf").session(name="ann")
    assert again.count(by="dest", rho=0.01).labels == SHOWN
    assert float(again.spent) == pytest.approx(spent + 0.01)
    third = hf.open(tmp_path / "flights.hf").session(name="ann")
    assert third.schema["dest"] == hf.Text(8, SHOWN)
    assert third.estimate.count(by="dest", rho=0.02).rho == pytest.approx(0.02, rel=1e-3)
    other = hf.open(tmp_path / "flights.hf").session(epsilon=1.0, delta=1e-6, target="table", name="bob")
    assert other.estimate.count(by="dest", rho=0.01).rho == pytest.approx(0.01, rel=1e-3)
    assert float(other.spent) == 0


def test_texts_stand_nowhere_until_they_are_found(tmp_path: Path) -> None:
    store = table().save(tmp_path / "flights.hf")
    session = store.session(epsilon=2.0, delta=1e-5, target="table", queries=20)
    session.count("dest = 'JFK'", rho=0.01)
    session.keys("dest")
    assert "one 7" not in repr(session) + str(session.report()) + repr(store)
    store.close()
    written = (tmp_path / "flights.hf" / LEDGER_FILE).read_bytes() + (
        tmp_path / "flights.hf" / "manifest.json"
    ).read_bytes()
    assert b"LAX" in written and b"one 7" not in written


def test_for_the_population_by_logistic_noise_on_the_meter() -> None:
    rows = 200_000
    data = {
        "dest": np.array(["A", "B", "c"], dtype=object)[np.searchsorted([0.6, 0.999], np.arange(rows) / rows)]
    }
    whole = hf.open(data, hf.Schema(dest=hf.Text(2)), allow_uncovered=True)
    session = whole.session(epsilon=1.0, delta=1e-6, queries=20)
    found = session.keys("dest")
    assert tuple(found) == ("A", "B") and found.mechanism == "logistic"
    assert 0 < whole.ledger.totals().information < UNCOVERED
    after = session.fraction("dest = 'A'")
    assert after.low <= 0.6 <= after.high and after.high - after.low < 0.1
    table_wise = whole.session(epsilon=1.0, delta=1e-6, target="table", queries=20)
    assert (
        table_wise.keys("dest") == found and float(table_wise.spent) == 0
    )  # public, and on the meter already
    table_wise.keys("dest", rho=0.01)
    assert whole.ledger.totals().information == UNCOVERED


def test_rows_of_one_owner_raise_the_threshold() -> None:
    alone, owned = opened(), table(5).session(epsilon=2.0, delta=1e-5, target="table", queries=20)
    assert owned.keys("dest").threshold > 4 * alone.keys("dest").threshold
    assert json.loads(next(iter(owned._ledger.entries())).event)["rows"] == 5


def test_a_retired_ledger_refuses(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    session = table(ledger=ledger).session(epsilon=2.0, delta=1e-5, target="table")
    ledger.retire()
    with pytest.raises(LedgerError):
        session.keys("dest")


def test_what_one_session_discovered_is_free_for_all_on_the_ledger(tmp_path: Path) -> None:
    saved = table().save(tmp_path / "flights.hf")
    terms: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "target": "table"}
    before = saved.session(**terms)  # opened before anything was discovered
    finder = saved.session(**terms)
    found = finder.keys("dest")
    table_spent = float(saved.spent)
    after = saved.session(**terms)
    assert after.keys("dest") == before.keys("dest") == found
    assert before.histogram("dest", rho=0.01).labels == after.histogram("dest", rho=0.01).labels == SHOWN
    assert before.estimate.count(by="dest", rho=0.01).rho == pytest.approx(0.01)
    assert float(before.spent) == float(after.spent) == pytest.approx(0.01)
    assert float(saved.spent) == pytest.approx(table_spent + 0.02)
    saved.close()
    again = hf.open(tmp_path / "flights.hf")
    assert (
        again.session(rho=0.1, target="table").keys("dest") == found
    )  # a session without any delta of its own
    own = again.session(**terms).keys("dest", rho=0.05)
    assert own.rho == pytest.approx(0.05, rel=1e-6)  # who names terms pays for them


def test_a_discovery_that_was_paid_and_not_told_is_nobody_else_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the charge and the outcome: nothing was told, so another session has to pay for its own."""
    here = table()
    terms: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "target": "table"}
    crashed, other = here.session(**terms), here.session(**terms)

    def crash(*given: Any) -> Any:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(room, "_texts", crash)
        with pytest.raises(RuntimeError):
            crashed.keys("dest")
    assert float(crashed.spent) > 0 and float(other.spent) == 0
    assert tuple(other.keys("dest")) == SHOWN and float(other.spent) > 0
    assert tuple(crashed.keys("dest")) == SHOWN


def test_units_keep_their_events_when_keys_are_discovered() -> None:
    people = {"person": np.arange(600), "dest": np.array(["JFK", "LAX"] * 300), "age": np.arange(600) % 90}
    visits = {"person": np.arange(600), "cost": np.arange(600) % 10}
    schemas = {
        "people": hf.Schema(dest=hf.Text(8), age=hf.Integer(0, 99)),
        "visits": hf.Schema(cost=hf.Integer(0, 9)),
    }
    here = hf.open(
        {"people": people, "visits": visits},
        schemas,
        unit="person",
        rows_per_unit={"visits": 2},
        ledger=MemoryLedger(),
    )
    session = here.session(epsilon=50.0, delta=1e-5, target="table")
    assert session.count(by="dest", rho=1.0).labels == ("JFK", "LAX")
    assert abs(session.sum("visits.cost", rho=10.0).value - 2700) < 200
