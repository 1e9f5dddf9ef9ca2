"""A table has one budget: where it is saved, overwritten, limited in another currency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from session.numbers import open_rows

import holdfast as hf
from holdfast.session import ledger_place


def test_saving_leaves_one_budget(tmp_path: Path) -> None:
    table = open_rows(np.arange(1000))
    table.limit(rho=1.0)
    session = table.session(rho=1.0, target="table")
    session.count("x < 5", rho=0.4)
    saved = table.save(tmp_path / "a.hf")
    with pytest.raises(hf.LedgerError, match="saved"):
        session.count("x < 6", rho=0.1)
    for holder in (table, saved, hf.open(tmp_path / "a.hf")):
        assert holder.spent == pytest.approx(0.4, rel=1e-5)
    table.session(rho=1.0, target="table").count("x < 7", rho=0.5)
    with pytest.raises(hf.BudgetError):
        saved.session(rho=1.0, target="table").count("x < 8", rho=0.5)


def test_a_store_is_never_there_without_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_rows(np.arange(1000))
    table.limit(rho=1.0)
    session = table.session(rho=1.0, target="table")
    session.count("x < 5", rho=0.4)

    def power_cut(*ledgers: object) -> None:
        raise OSError("power cut")

    monkeypatch.setattr(ledger_place, "copy_ledger", power_cut)
    with pytest.raises((OSError, hf.HoldfastError)):
        table.save(tmp_path / "a.hf")
    assert not (tmp_path / "a.hf").exists()
    session.count("x < 6", rho=0.1)  # and the table in memory goes on


def test_overwriting_does_not_forget(tmp_path: Path) -> None:
    first = open_rows(np.arange(1000)).save(tmp_path / "a.hf")
    first.session(rho=1.0, target="table").count("x < 5", rho=0.4)
    with pytest.raises(hf.LedgerError, match="forget"):
        open_rows(np.arange(1000)).save(tmp_path / "a.hf", overwrite=True)
    again = first.save(tmp_path / "a.hf", overwrite=True)
    assert again.spent == pytest.approx(0.4, rel=1e-5)


def test_a_limit_in_another_currency_stops_every_path() -> None:
    table = open_rows(np.arange(1000))
    sessions = [table.session(epsilon=50.0, target="table"), table.session(rho=50.0, target="table")]
    table.limit(epsilon=1.0)
    for session, budget in zip(sessions, ({"epsilon": 0.1}, {"rho": 0.1}), strict=True):
        for ask in (
            lambda s, b=budget: s.count("x < 5", **b),
            lambda s, b=budget: s.select(["x < 5", "x < 6"], **b),
            lambda s: s.sample("x < 5"),
        ):
            with pytest.raises(hf.LedgerError, match="counted"):
                ask(session)
    assert table.spent == 0


def test_a_schema_may_be_a_dict_of_columns_also_for_each_of_several_tables(tmp_path: Path) -> None:
    columns = {"age": hf.Integer(0, 99), "smoker": hf.Category("no", "yes")}
    rows = {"age": np.arange(100), "smoker": np.repeat(["no", "yes"], 50)}
    assert hf.open(rows, columns).schema == hf.Schema(**columns)
    (tmp_path / "visits.toml").write_text(hf.Schema(cost=hf.Real(0, 9)).to_toml())
    tables = {
        "people": {"person": np.arange(100), **rows},
        "visits": {"person": np.arange(50), "cost": np.ones(50)},
    }
    schemas = {"people": columns, "visits": str(tmp_path / "visits.toml")}
    opened = hf.open(tables, schemas, unit="person", rows_per_unit={"visits": 3})
    assert opened.rows == 100
    with pytest.raises(hf.SchemaError, match="as column 'smoker', got str"):
        hf.open(rows, columns | {"smoker": "yes or no"})
    with pytest.raises(hf.SchemaError, match="at least one column"):
        hf.open(rows, {})
