"""Units that are set aside: a fact of the table, in its ledger; what runs on them ends nothing for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.part import PartSource
from holdfast.ledger import ASIDE, UNCOVERED, MemoryLedger
from holdfast.session import price

pytestmark = pytest.mark.usefixtures("replayed_noise")
ROWS = 20_000
SCHEMA = hf.Schema(x=hf.Integer(0, 99), t=hf.Boolean())
DATA = {"x": np.sort(np.random.default_rng(5).integers(0, 100, ROWS)), "t": np.arange(ROWS) % 2 == 0}
UNCOVERED_RELEASES: dict[str, Any] = {
    "laplace": lambda s: s.fraction("x < 30", rho=1e-3, mechanism="laplace"),
    "subsample": lambda s: s.fraction("x < 31", within=0.9, mechanism="subsampled-laplace"),
    "plain quantile": lambda s: s.quantile("x", rho=1e-3, mechanism="exponential"),
    "sparse vector": lambda s: s.sparse_vector(0.5, 1, rho=1e-3, version="best").above("x < 20"),
    "weights": lambda s: s.multiplicative_weights(["t"], queries=5, within=0.4, version="best").fraction("t"),
}


def opened(**how: Any) -> hf.Table:
    return hf.open(DATA, SCHEMA, **{"set_aside": 0.1, "ledger": MemoryLedger()} | how)


def test_the_table_is_the_rest_and_both_parts_together_are_all() -> None:
    table = opened()
    assert (table.rows, table.aside.rows) == (18_000, 2_000)
    session = table.session(rho=1e6, target="table", queries=9)
    assert session.count("x >= 0").value == 18_000, "what is public is about the rest"
    answer = session.fraction("x < 50", rho=1e3)
    assert answer.rows_read == 18_000 and abs(answer.value - 0.5) < 0.02


@pytest.mark.parametrize("name", UNCOVERED_RELEASES)
def test_what_is_not_covered_runs_there_and_ends_nothing(name: str) -> None:
    table = opened()
    session = table.session(rho=1.0, queries=20)
    with pytest.raises(hf.BudgetError, match=r"table\.aside\.session"):
        UNCOVERED_RELEASES[name](session)
    apart = table.aside.session(rho=50.0)
    UNCOVERED_RELEASES[name](apart)
    totals = table.ledger.totals()
    assert totals.information == 0 and totals.units > 0, "charged to the one budget, not to the meter"
    assert session.fraction("x < 50").width < 0.03


def test_a_twin_that_counts_it_on_the_meter_ends_the_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "tells_of", lambda terms, told: told)
    table = opened()
    UNCOVERED_RELEASES["sparse vector"](table.aside.session(rho=1.0))
    assert table.ledger.totals().information == UNCOVERED


def test_intervals_of_both_parts_hold_for_the_population() -> None:
    table = opened()
    apart, session = table.aside.session(rho=1.0), table.session(rho=1.0)
    for level in (10, 40, 70):
        there = apart.fraction(f"x < {level}", rho=1e-3, mechanism="laplace")
        here = session.fraction(f"x < {level}", rho=1e-5)
        assert there.low <= level / 100 <= there.high and here.low <= level / 100 <= here.high
        assert here.width < there.width
    assert apart.sparse_vector(0.5, 1, rho=1e-3).compare("x < 9").within is None, "no theorem counts it there"


def test_one_limit_is_over_both_parts() -> None:
    table = opened()
    table.limit(rho=0.01)
    table.aside.session(rho=1.0).fraction("x < 9", rho=0.008, mechanism="laplace")
    with pytest.raises(hf.BudgetError):
        table.session(rho=1.0).fraction("x < 9", rho=0.005)


def test_it_cannot_change_and_an_opening_without_it_follows() -> None:
    table = opened()
    again = hf.open(DATA, SCHEMA, ledger=table.ledger)
    assert again.rows == 18_000 and again.aside.rows == 2_000
    chosen = [np.flatnonzero(t._source._chosen(0, ROWS)) for t in (table, again)]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(*chosen)
    assert hf.open(DATA, SCHEMA, ledger=table.ledger, set_aside=0.1).rows == 18_000
    with pytest.raises(hf.InputError, match=r"as when this table was first opened, got 0\.2"):
        hf.open(DATA, SCHEMA, ledger=table.ledger, set_aside=0.2)
    with pytest.raises(hf.LedgerError, match="of which some were set aside"):
        hf.open({name: column[:-1] for name, column in DATA.items()}, SCHEMA, ledger=table.ledger)
    with pytest.raises(hf.InputError, match="which the ledger uses"):
        table.session(rho=1.0, name=ASIDE)


def test_rows_that_have_sessions_already_are_not_divided_any_more() -> None:
    whole = opened(set_aside=None)
    early = hf.open(DATA, SCHEMA, ledger=MemoryLedger())
    hf.open(DATA, SCHEMA, ledger=early.ledger, set_aside=0.1)
    with pytest.raises(hf.LedgerError, match="since it was opened"):
        early.session(rho=1.0)
    whole.session(rho=1.0)
    with pytest.raises(hf.InputError, match="after sessions were opened"):
        hf.open(DATA, SCHEMA, ledger=whole.ledger, set_aside=0.1)
    with pytest.raises(hf.InputError, match="units that are set aside, got one without"):
        whole.aside


@pytest.mark.parametrize("share", [0, 1, -0.1, 1e-9, "a tenth", None, True])
def test_a_share_that_is_none_is_refused_before_anything_is_kept(share: Any) -> None:
    ledger = MemoryLedger()
    if share is None:
        assert hf.open(DATA, SCHEMA, ledger=ledger, set_aside=None).rows == ROWS
        return
    with pytest.raises(hf.InputError, match="set_aside"):
        hf.open(DATA, SCHEMA, ledger=ledger, set_aside=share)
    assert not list(ledger.accounts())


def test_a_saved_table_keeps_its_parts(tmp_path: Path) -> None:
    table = opened()
    before = table.aside.session(rho=1e6, name="apart").count("x < 50", rho=1e4, mechanism="laplace")
    saved = table.save(tmp_path / "rows.hf")
    assert (saved.rows, saved.aside.rows) == (18_000, 2_000)
    with pytest.raises(hf.InputError, match="save the table"):
        saved.aside.save(tmp_path / "alone.hf")
    saved.close()
    again = hf.open(tmp_path / "rows.hf")
    assert isinstance(again._source, PartSource) and again.ledger.totals().entries == 1
    after = again.aside.session(rho=1e6).count("x < 50", rho=1e4, mechanism="laplace")
    assert abs(after.value - before.value) < 3, "the same units, in the same part"
    again.close()


def test_what_means_nothing_there_is_refused() -> None:
    aside = opened().aside
    for how in ({"target": "table"}, {"within": 0.1, "queries": 3}, {"intervals": "rare", "queries": 3}):
        with pytest.raises(hf.InputError, match="mean nothing"):
            aside.session(rho=1.0, **how)


def test_both_parts_know_the_public_tables() -> None:
    named = hf.Lookup({"x": np.arange(100), "half": np.arange(100) // 50}, "x")
    table = opened(lookups={"halves": named})
    for part, rows in ((table, 18_000), (table.aside, 2_000)):
        answer = part.session(rho=1e6).count("halves.half = 1", rho=1e3)
        assert answer.rows_read == rows and abs(answer.value / rows - 0.5) < 0.1


def test_units_are_set_aside_with_all_their_rows() -> None:
    people = {"person": np.arange(600), "age": np.arange(600) % 90}
    visits = {"person": np.repeat(np.arange(600), 3), "cost": np.tile([1, 2, 3], 600)}
    table = hf.open(
        {"people": people, "visits": visits},
        {
            "people": hf.Schema(age=hf.Integer(0, 99)),
            "visits": hf.Schema(cost=hf.Integer(0, 9)),
        },
        unit="person",
        rows_per_unit={"visits": 5},
        set_aside=0.25,
        ledger=MemoryLedger(),
    )
    assert (table.rows, table.aside.rows) == (450, 150)
    for part, count in ((table, 450), (table.aside, 150)):
        blocks = list(part._source.scan(["age", "visits"]))
        assert sum(len(block["age"]) for block in blocks) == count
        assert sum(int(block["visits"].sum()) for block in blocks) == 3 * count
        assert len(part._source.draw(["age"], 5000)["age"]) == 5000
    answer = table.session(rho=1e3, target="table").count("age < 60", rho=1e2)
    assert 0 < answer.value <= 450
