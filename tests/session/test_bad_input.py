"""Bad input gets a clear error before anything is charged, with nothing from the data in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from services import postgres

import holdfast as hf
from holdfast.weights import answerer as multiplicative_weights

NAN = math.nan


@pytest.mark.parametrize(
    "budget",
    [
        {},
        {"epsilon": NAN},
        {"epsilon": -1.0},
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"epsilon": "much"},
        {"epsilon": True},
        {"epsilon": 1e-300},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": -1e-6},
        {"epsilon": 1.0, "delta": NAN},
        {"epsilon": 1.0, "rho": 1.0},
        {"rho": NAN},
        {"rho": -0.5},
        {"epsilon": 1.0, "only": "laplace"},
        {"epsilon": 1.0, "only": "gaussian"},
        {"epsilon": 1.0, "confidence": 1.0},
        {"epsilon": 1.0, "confidence": 0.0},
        {"epsilon": 1.0, "confidence": NAN},
        {"epsilon": 1.0, "queries": 0},
        {"epsilon": 1.0, "queries": 2.5},
        {"epsilon": 1.0, "name": ""},
        {"epsilon": 1.0, "name": " "},
        {"epsilon": 1.0, "name": 7},
        {"epsilon": 1.0, "name": "a\0b"},
        {"epsilon": 1.0, "name": "two\nlines"},
    ],
)
def test_bad_budgets(table: hf.Table, budget: dict[str, Any]) -> None:
    with pytest.raises(hf.InputError):
        table.session(target="table", **budget)


ASKS: dict[str, Callable[[Any], Any]] = {
    "no accuracy": lambda s: s.fraction("age > 1"),
    "two accuracies": lambda s: s.fraction("age > 1", within=0.1, rho=0.1),
    "nan within": lambda s: s.fraction("age > 1", within=NAN),
    "negative within": lambda s: s.fraction("age > 1", within=-0.1),
    "zero rho": lambda s: s.fraction("age > 1", rho=0),
    "huge rho": lambda s: s.fraction("age > 1", rho=1e300),
    "tiny within": lambda s: s.fraction("age > 1", within=1e-12),
    "unknown option": lambda s: s.fraction("age > 1", accuracy=0.1),
    "unknown mechanism": lambda s: s.fraction("age > 1", within=0.1, mechanism="magic"),
    "missing column": lambda s: s.fraction("agee > 1", within=0.1),
    "missing by": lambda s: s.fraction("age > 1", by="agee", within=0.1),
    "missing mean": lambda s: s.mean("agee", within=0.1),
    "mixed types": lambda s: s.fraction("age = 'forty'", within=0.1),
    "unknown label": lambda s: s.fraction("smoker = 'sometimes'", within=0.1),
    "no text": lambda s: s.fraction(None, within=0.1) if False else s.fraction(7, within=0.1),
    "empty text": lambda s: s.fraction("", within=0.1),
    "injection": lambda s: s.fraction("age > 1; DROP TABLE t", within=0.1),
    "10 MB": lambda s: s.fraction("age > 1 OR " * 1_000_000 + "age > 1", within=0.1),
    "deep": lambda s: s.fraction("(" * 5000 + "age > 1" + ")" * 5000, within=0.1),
    "sum of labels": lambda s: s.sum("smoker", within=0.1),
    "sum of dates": lambda s: s.sum("visit", within=0.1),
    "median of labels": lambda s: s.quantile("smoker", within=0.1),
    "rank 0": lambda s: s.quantile("age", 0.0, within=0.1),
    "rank nan": lambda s: s.quantile("age", NAN, within=0.1),
    "edges the wrong way": lambda s: s.histogram("age", [50, 40], within=100),
    "edges nan": lambda s: s.histogram("income", [0.0, NAN], within=100),
    "edges outside": lambda s: s.histogram("age", [0, 500], within=100),
    "edges of labels": lambda s: s.histogram("smoker", ["a", "b"], within=100),
    "edges without by": lambda s: s.count("age > 1", edges=[1, 2], within=100),
    "too many edges": lambda s: s.histogram("income", list(range(100_000)), within=100),
    "sql join": lambda s: s.sql("SELECT count(*) FROM a JOIN b ON a.x = b.x", within=1),
    "sql nothing": lambda s: s.sql("", within=1),
}


@pytest.mark.parametrize("name", sorted(ASKS))
@pytest.mark.parametrize("estimate", [False, True])
def test_bad_questions_are_refused_before_anything_is_charged(
    table: hf.Table, name: str, estimate: bool
) -> None:
    session = table.session(target="table", rho=0.5)
    with pytest.raises(hf.HoldfastError) as refused:
        ASKS[name](session.estimate if estimate else session)
        raise hf.BudgetError("an estimate of something huge is allowed") if estimate else AssertionError
    assert len(str(refused.value)) < 2000
    assert session.spent == 0
    assert table.spent == 0


NAMED: dict[str, Callable[[hf.Session, str], Any]] = {
    "sparse vector": lambda s, name: s.sparse_vector(0.5, 1, rho=0.01, name=name),
    "weights": lambda s, name: s.multiplicative_weights(["smoker"], queries=10, rho=0.1, name=name),
}


@pytest.mark.parametrize("what", sorted(NAMED))
@pytest.mark.parametrize("name", ["", " ", "a\0b", "two\nlines", "right\u202eleft", "\ud800"], ids=ascii)
def test_a_name_that_is_not_printable_is_refused_before_anything_is_charged(
    table: hf.Table, what: str, name: str
) -> None:
    session = table.session(rho=1.0, target="table")
    with pytest.raises(hf.InputError, match="printable"):
        NAMED[what](session, name)
    assert float(session.spent) == 0
    NAMED[what](session, "Zoë Ωmega 数")
    assert float(session.spent) > 0


def test_a_name_that_slips_through_is_kept_by_one_database_and_not_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin takes any name."""
    monkeypatch.setattr(multiplicative_weights, "printable", lambda what, name: name)
    schema, rows = hf.Schema(smoker=hf.Category("no", "yes")), {"smoker": ["yes", "no"] * 500}
    kept, lost = tmp_path / "ledger.sqlite", f"{postgres().url}#{tmp_path}"
    NAMED["weights"](hf.open(rows, schema, ledger=kept).session(rho=1, target="table"), "a\0b")
    with pytest.raises(hf.LedgerError):
        NAMED["weights"](hf.open(rows, schema, ledger=lost).session(rho=1, target="table"), "a\0b")


def test_a_null_only_column_is_answered_like_any_other(table: hf.Table) -> None:
    empty = hf.open({"x": np.full(1000, np.nan)}, hf.Schema(x=hf.Real(0, 1)))
    session = empty.session(target="table", epsilon=100.0)
    assert session.fraction("x > 0.5", within=0.05).low == 0.0
    assert session.mean("x", within=0.3).high == pytest.approx(1.0)
    assert session.fraction("x IS NULL", within=0.05).high == 1.0
    assert session.quantile("x", within=0.5).high <= 1.0


def test_strings_with_quotes(table: hf.Table) -> None:
    schema = hf.Schema(word=hf.Category("it's", 'say "hi"', "; DROP"))
    words = hf.open({"word": np.array(["it's"] * 500 + ['say "hi"'] * 500)}, schema)
    session = words.session(target="table", epsilon=100.0, confidence=0.999999)
    assert (
        session.fraction("word = 'it''s'", within=0.1).low
        < 0.5
        < session.fraction("word = 'it''s'", within=0.1).high
    )
    assert session.histogram("word", epsilon=5.0).labels == ("it's", 'say "hi"', "; DROP")


def test_tables_that_cannot_be_opened(tmp_path: Path) -> None:
    schema = hf.Schema(x=hf.Integer(0, 9))
    for data in ({}, {"x": []}, {"y": [1]}, 7, tmp_path / "nothing.csv", tmp_path / "nothing.hf", None):
        with pytest.raises(hf.HoldfastError):
            hf.open(data, schema)
    with pytest.raises(hf.HoldfastError):
        hf.open({"x": np.arange(5)})
    with pytest.raises(hf.InputError):
        hf.open({"x": np.arange(5)}, schema, rows_per_unit=0)
    with pytest.raises(hf.SchemaError):
        hf.Schema(x=hf.Integer(9, 0))


def test_errors_name_no_value_of_the_data() -> None:
    secret = 987_654_321_123
    table = hf.open(
        {"x": np.full(100, secret), "y": np.full(100, secret)}, hf.Schema(x=hf.Integer(0, 10**13))
    )
    session = table.session(target="table", rho=0.5)
    for ask in ASKS.values():
        with pytest.raises(Exception) as refused:
            ask(session)
        assert str(secret) not in str(refused.value)
