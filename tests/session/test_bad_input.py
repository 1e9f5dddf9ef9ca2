"""Bad input gets a clear error before anything is charged, with nothing from the data in it."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gateway import running
from services import postgres

import holdfast as hf
from holdfast import dbapi
from holdfast.ledger import MemoryLedger, verify
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
    "a sample by a budget": lambda s: s.fraction("age > 1", rho=0.01, rows=10),
    "a sampled quantile": lambda s: s.quantile("age", within=0.2, rows=10),
    "sampled groups": lambda s: s.count(by="smoker", within=100, rows=10),
    "a sampled variance": lambda s: s.variance("age", rho=0.01, rows=10),
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


# Plans


def small(n: int) -> hf.Table:
    return hf.open({"x": np.arange(n) % 10}, hf.Schema(x=hf.Integer(0, 99)), ledger=MemoryLedger())


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 10])
def test_a_plan_for_a_handful_of_rows_is_an_answer_or_a_clear_refusal(n: int) -> None:
    table = small(n)
    session = table.session(epsilon=1.0, delta=1e-6, queries=3)
    assert (
        session.plan.startswith(f"Nothing that tells something can be planned for 3 answers on {n} rows")
        or n == 1
    )
    with pytest.raises(hf.InputError, match="no width can be certified"):
        session.fraction("x < 3")
    with pytest.raises(hf.MechanismError, match="cannot be certified for 3 queries"):
        table.session(within=0.5, queries=3)
    assert session.meter is None or session.meter.answers == 0
    assert table.ledger.totals().entries == 0
    assert 0 <= table.session(rho=10.0, target="table").fraction("x < 3", rho=1.0).value <= 1


@pytest.mark.parametrize("queries", [1, 10**12])
def test_one_question_or_far_too_many(queries: int) -> None:
    table = small(2000)
    session = table.session(epsilon=1.0, delta=1e-6, queries=queries)
    if queries == 1:
        assert "1 answer, each within 0.029" in session.plan
        assert session.fraction("x < 3").width < 0.04
        with pytest.raises(hf.BudgetError, match="1 queries"):
            session.fraction("x < 4")
    else:
        nearest = re.search(
            r"; ([\d,]+) answers could be within ([\d.]+): open a session for fewer", session.plan
        )
        assert nearest is not None
        for refused in (
            lambda: session.fraction("x < 3"),
            lambda: table.session(within=0.3, queries=queries),
        ):
            with pytest.raises((hf.InputError, hf.MechanismError)):
                refused()
        assert table.ledger.totals().entries == 0
        fewer = table.session(epsilon=1.0, delta=1e-6, queries=int(nearest[1].replace(",", "")))
        assert fewer.fraction("x < 3").population < float(nearest[2]) * 1.02


@pytest.mark.parametrize("confidence", [0.5, 1 - 1e-12])
def test_hardly_confident_and_nearly_certain(confidence: float) -> None:
    session = small(2000).session(epsilon=1.0, delta=1e-6, queries=20, confidence=confidence)
    answer, left = session.fraction("x < 3"), session.meter
    assert left is not None and left.answers == 19 and answer.low <= 0.3 <= answer.high
    assert (left.width < 0.08) == (confidence == 0.5) and left.width < 0.25


def test_a_budget_too_small_for_one_answer() -> None:
    session = small(2000).session(rho=1e-9, queries=5)
    with pytest.raises(hf.InputError, match="less than a billionth; ask for fewer"):
        session.fraction("x < 3")
    with pytest.raises(hf.BudgetError, match="nothing more can be asked"):
        session.fraction("x < 3", within=0.2)
    assert session._ledger.totals().entries == 0


def test_a_width_that_nothing_certifies() -> None:
    table = small(2000)
    with pytest.raises(hf.MechanismError, match=r"within=1e-09 cannot be certified .*; 0\.\d+ can be"):
        table.session(within=1e-9, queries=5)
    with pytest.raises(hf.InputError, match=r"about within=0\.0\d+ can be, for \d+ answer"):
        table.session(rho=1.0, queries=5).fraction("x < 3", within=1e-9)
    assert table.ledger.totals().entries == 0


def test_a_plan_reopened_on_other_terms(tmp_path: Path) -> None:
    with closing(small(2000).save(tmp_path / "store")) as table:
        first = table.session(rho=0.1, queries=20, name="a", share=0.5)
        first.fraction("x < 3")
        again = table.session(name="a")
        assert again._terms == first._terms and again.fraction("x < 3").repeated
        for other in ({"queries": 21}, {"confidence": 0.9}, {"target": "table"}, {"within": 0.2}):
            with pytest.raises(hf.LedgerError, match="same terms"):
                table.session(name="a", **other)
        assert table.ledger.totals().entries == 1


_ASKING = """
import sys, holdfast as hf
session = hf.open(sys.argv[1]).session(name="a", queries=20, rho=0.1)
for t in range(int(sys.argv[2]), 40, 2):
    try:
        answer = session.fraction(f"x < {t + 1}")
        print(answer.noise + answer.sampling + answer.population <= session._terms.places.width, flush=True)
    except hf.BudgetError:
        print("refused", flush=True)
"""


def test_two_processes_on_one_plan_have_its_places_once(tmp_path: Path) -> None:
    table = small(2000).save(tmp_path / "store")
    table.session(name="a", queries=20, rho=0.1)
    table.close()
    both = [
        subprocess.Popen(
            [sys.executable, "-c", _ASKING, str(tmp_path / "store"), str(first)], stdout=subprocess.PIPE
        )
        for first in (0, 1)
    ]
    told = [line for process in both for line in process.communicate()[0].decode().split()]
    assert told.count("True") == 20 and "False" not in told
    assert set(told) == {"True", "refused"}
    reopened = hf.open(tmp_path / "store")
    assert reopened.ledger.totals("a").answers == 20
    verify(reopened.ledger)
    reopened.close()


def _nested(depth: int) -> str:
    return "(" * depth + "age > 3" + ")" * depth


BAD_LANGUAGE: dict[str, tuple[Callable[[hf.Session], Any], str]] = {
    "a product of groups beyond the stated size": (
        lambda s: s.count(by=["age", "visit", "smoker"]),
        "at most 65,536 groups",
    ),
    "the same in SQL": (
        lambda s: s.sql("SELECT age, visit, smoker, count(*) FROM t GROUP BY age, visit, smoker"),
        "at most 65,536 groups",
    ),
    "groups without edges": (
        lambda s: s.sql("SELECT income, count(*) FROM t GROUP BY income"),
        "has no groups",
    ),
    "the same in Python": (lambda s: s.count(by="income"), "edges= for the real column"),
    "the same beside others": (
        lambda s: s.mean("age", by=["smoker", "income"]),
        "edges= for the real column",
    ),
    "a quantile of a Boolean": (lambda s: s.quantile("insured"), "no order"),
    "the same in SQL of a Boolean": (lambda s: s.sql("SELECT median(insured) FROM t"), "no order"),
    "a correlation of a constant": (lambda s: s.correlation("age", "0 * age"), "same number on all rows"),
    "a correlation where the condition makes it constant": (
        lambda s: s.correlation("age", "income", "age = 3"),
        "same number on all rows",
    ),
    "a singular regression": (lambda s: s.regression("income", ["age", "age"]), "singular"),
    "a division that is always zero": (lambda s: s.ratio("income", "0 * age"), "always 0"),
    "dates out of order": (
        lambda s: s.count(by="visit", edges={"visit": ["2020-06-01", "2020-02-01"]}),
        "increasing order",
    ),
    "LIKE on what is no text": (lambda s: s.count("age LIKE '3%'"), "LIKE"),
    "LIKE on a text that is not declared": (lambda s: s.count("nickname LIKE 'a%'"), "no column 'nickname'"),
    "ORDER BY something not selected": (
        lambda s: s.sql("SELECT smoker, count(*) AS n FROM t GROUP BY smoker ORDER BY avg(age)"),
        "something that is selected",
    ),
    "a statement of 10 MB": (
        lambda s: s.sql("SELECT count(*) FROM t WHERE " + "age > 3 OR " * 10**6),
        "65536 characters",
    ),
    "a nesting past the stated depth": (lambda s: s.count(_nested(17)), "nested 16 deep"),
    "SELECTs past the stated depth": (
        lambda s: s.sql("SELECT count(*) FROM " + "(SELECT * FROM " * 17 + "t" + ")" * 17),
        "deep",
    ),
}


@pytest.mark.parametrize("name", BAD_LANGUAGE)
def test_what_the_schema_shows_to_be_wrong_is_refused_before_the_charge(table: hf.Table, name: str) -> None:
    ask, words = BAD_LANGUAGE[name]
    session = table.session(rho=1.0, queries=20, target="table")
    with pytest.raises(hf.HoldfastError, match=words):
        ask(session)
    assert session.spent == 0 and not session.history


def test_what_only_the_rows_would_show_is_answered_by_everything_that_is_possible() -> None:
    """A column that happens to be constant, features that happen to go together, a divisor that happens to be 0."""
    age = np.arange(2000) % 50
    rows = {"age": age, "same": np.full(2000, 7), "twice": 2 * age, "nothing": np.zeros(2000, int)}
    schema = hf.Schema(
        age=hf.Integer(0, 99), same=hf.Integer(0, 9), twice=hf.Integer(0, 198), nothing=hf.Integer(-1, 1)
    )
    session = hf.open(rows, schema, ledger=MemoryLedger()).session(rho=50.0, queries=20, target="table")
    correlation = session.correlation("age", "same", rho=1.0)
    assert (correlation.low, correlation.high) == (-1, 1) and correlation.too_few
    regression = session.regression("same", ["age", "twice"], rho=1.0)
    assert np.isinf(regression.low[1:]).all() and np.isinf(regression.high[1:]).all()
    ratio = session.ratio("age", "nothing", rho=1.0)
    assert np.isinf([ratio.low, ratio.high]).all()


def test_a_gateway_and_the_database_interface_refuse_the_same(table: hf.Table) -> None:
    """The list above at the other doors, over HTTP and through PEP 249: nothing is charged at any of them."""
    statements: list[str] = []

    class Written:
        """Keeps what is asked in SQL."""

        def sql(self, text: str) -> None:
            statements.append(text)

        def __getattr__(self, name: str) -> Any:
            return lambda *asked, **how: None

    for ask, _ in BAD_LANGUAGE.values():
        ask(Written())  # type: ignore[arg-type]
    assert len(statements) >= 6
    with running({"t": table}, declared={"target": "table"}) as started:
        (remote,) = hf.connect(started.url, started.analyst).tables
        session = remote.session()
        for name, (ask, _) in BAD_LANGUAGE.items():
            with pytest.raises(hf.HoldfastError) as refusal:
                ask(session)
            assert len(str(refusal.value)) < 2000, name
        asked = dbapi.connect(session, table="t", rho=0.01)
        for statement in statements:
            with pytest.raises(dbapi.Error):
                asked.execute(statement)
        assert float(session.spent) == 0
    assert table.spent == 0
