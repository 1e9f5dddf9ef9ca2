"""Whatever is given in place of an argument, the refusal is ours, in words, and nothing is charged."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.learn import squared
from holdfast.ledger import MemoryLedger
from holdfast.session.session import Session

ROWS = 400
SCHEMA = hf.Schema(
    age=hf.Integer(0, 99),
    share=hf.Real(0, 1),
    sick=hf.Boolean(),
    group=hf.Category("x", "y"),
    town=hf.Text(9),
)
DATA = {
    "age": np.arange(ROWS) % 100,
    "share": np.linspace(0, 1, ROWS),
    "sick": np.arange(ROWS) % 3 == 0,
    "group": np.array(["x", "y"] * (ROWS // 2)),
    "town": np.array(["ulm", "bonn"] * (ROWS // 2)),
}
WRONG: dict[str, Any] = {
    "an empty list": [],
    "a nested list": [["age"]],
    "a list of objects": [object()],
    "a dict": {},
    "a dict of objects": {"age": object()},
    "an object": object(),
    "bytes": b"age",
    "NaN": math.nan,
    "a complex number": 1j,
    "a set": {"age"},
    "a class": int,
    "a matrix": np.zeros((2, 2)),
    "a text with NUL": "x\x00y",
    "a text of surrogates": "\ud800",
    "a huge number": 10**400,
    "a negative number": -7,
    "None": None,
}
ACCURACY = {"within": None, "rho": 0.01, "epsilon": None, "mechanism": None, "rows": None}
BUDGET = {"rho": 0.01, "epsilon": None}
"""Where a call gives one of several ways, the others are tried in its place."""

CALLS: dict[str, dict[str, Any]] = {
    "fraction": {"where": "age > 3", "given": "sick", "by": "group", "edges": None} | ACCURACY,
    "regression": {"column": "age", "features": ["share"], "where": "sick"} | ACCURACY,
    "top": {"column": "age", "k": 2, "edges": [0, 50, 99], "where": "sick"} | ACCURACY,
    "ratio": {"column": "age", "divisor": "age + 1", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "variance": {"column": "age", "where": "sick", "sample": True, "by": "group", "edges": None} | ACCURACY,
    "std": {"column": "age", "where": "sick", "sample": False, "by": "group", "edges": None} | ACCURACY,
    "covariance": {
        "column": "age", "other": "share", "where": "sick", "sample": True, "by": "group", "edges": None,
    } | ACCURACY,
    "correlation": {"column": "age", "other": "share", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "independence": {
        "column": "age", "other": "group", "where": "sick", "edges": {"age": [0, 50, 99]},
    } | ACCURACY,
    "count": {"where": "age > 3", "by": "age", "edges": [0, 50, 99], "cumulative": True} | ACCURACY,
    "sum": {"column": "age", "where": "sick", "by": "group", "edges": None, "cumulative": False} | ACCURACY,
    "mean": {"column": "age", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "distinct": {"column": "age", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "median": {"column": "age", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "min": {"column": "age", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "max": {"column": "age", "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "histogram": {"column": "age", "edges": [0, 50, 99], "where": "sick"} | ACCURACY,
    "quantile": {"column": "age", "rank": 0.5, "where": "sick", "by": "group", "edges": None} | ACCURACY,
    "statistic": {"function": lambda rows: rows["age"] / 100, "columns": ["age"]} | ACCURACY,
    "difference": {"where": "sick", "other": "age > 3", "of": "share", "expect": None} | ACCURACY,
    "keys": {"column": "town", "rho": 0.01, "delta": 1e-7},
    "sql": {"text": "SELECT avg(age) FROM t"} | ACCURACY,
    "sql_one": {"text": "SELECT avg(age) FROM t"} | ACCURACY,
    "sample": {"where": "sick", "key": None},
    "select": {"candidates": ["sick", "age > 3"], "scores": None, "sensitivity": None, "mechanism": None} | BUDGET,
    "sparse_vector": {
        "threshold": 0.3, "hits": 2, "delta": 0.0, "version": "best", "questions": None, "name": "watch",
    } | BUDGET,
    "multiplicative_weights": {
        "columns": ["sick", "group"], "queries": 10, "within": None, "delta": None, "edges": None, "nulls": None,
        "version": "best", "stop": None, "name": "weights", "device": "numpy", "start": None, "uniform": 0.1,
        "memory": None,
    } | {"rho": 5.0, "epsilon": None},
    "minimize": {
        "loss": squared(SCHEMA, ["share"], "age"), "within": None, "mechanism": None, "iterations": 3,
        "rows": None, "runs": 1,
    } | BUDGET,
    "synthesize": {
        "columns": ["sick", "group"], "queries": ["sick"], "method": "mwem", "rounds": 1, "edges": None,
        "nulls": None, "name": "made",
    } | BUDGET,
}  # fmt: skip
HOUSE = {"pay", "promise", "opened", "left", "report", "put", "close", "looking_up"}
"""Doors for mechanisms that run beside the rows, and what takes nothing."""
NEVER_NONE = {
    "column", "divisor", "features", "k", "sample", "rank", "function", "columns", "text", "candidates",
    "threshold", "hits", "version", "name", "queries", "loss", "method", "runs", "device", "delta",
}  # fmt: skip
"""Elsewhere None means that nothing was given."""
OF_SMALL_DATABASES = {
    "synthesize": {"within", "size", "search", "candidates", "bins", "memory", "progress", "device"}
}
"""Keywords of the other methods; see tests/synthesis."""
NOT_ESTIMATED = {
    "select": {"sensitivity"},
    "sparse_vector": {"name"},
    "multiplicative_weights": {"device", "start", "uniform", "memory"},
}
WITH_DELTA = {"rho": None, "epsilon": 50.0, "delta": 1e-4}
"""Keys are discovered by sessions that have a delta for it."""
HARMLESS = {
    *((method, "edges", "a dict") for method, given in CALLS.items() if "by" in given),  # no edges
    ("sample", "key", "a text with NUL"),  # a key is any text
    ("sample", "key", "a text of surrogates"),
    ("sparse_vector", "version", "None"),  # the session's own
    ("multiplicative_weights", "version", "None"),  # the one that fits the session
    ("multiplicative_weights", "delta", "None"),
    ("multiplicative_weights", "edges", "a dict"),  # no edges
    ("multiplicative_weights", "nulls", "an empty list"),  # no NULLs
    ("independence", "edges", "a dict"),
    ("synthesize", "edges", "a dict"),
    ("synthesize", "nulls", "an empty list"),
    ("synthesize", "method", "None"),  # what fits the workload
    ("keys", "delta", "None"),  # what the session keeps for it
    ("statistic", "function", "a class"),  # it is called, and fails on the rows
}
"""What looks wrong and is not."""


def opened() -> hf.Table:
    return hf.open(DATA, SCHEMA, ledger=MemoryLedger())


def session_of(**options: Any) -> Session:
    return opened().session(**{"rho": 100.0, "queries": 1000, "target": "table"} | options)


def session_for(method: str) -> Session:
    return session_of(**(WITH_DELTA if method == "keys" else {}))


def with_only(given: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The arguments with one of them replaced; of several ways to say how exact, it is the only one."""
    ways = {"within", "rho", "epsilon"}
    return {key: part for key, part in given.items() if not (name in ways and key in ways)} | {name: value}


def outcome(call: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What comes of a call: "refused" in our words, "answered", or an error that is not ours."""
    try:
        call(*given, **named)
    except hf.HoldfastError as error:
        return "refused" if 10 < len(str(error)) < 1000 else f"refused with {len(str(error))} letters"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


def tried(method: str) -> Iterator[tuple[str, str]]:
    for name in CALLS[method]:
        for kind in WRONG:
            required = name in NEVER_NONE or (name == "where" and method in ("fraction", "sample"))
            if (method, name, kind) not in HARMLESS and (kind != "None" or required):
                yield name, kind


def test_every_method_and_each_of_its_parameters_is_tried() -> None:
    methods = {name for name, _ in inspect.getmembers(Session, callable) if not name.startswith("_")}
    assert methods == CALLS.keys() | HOUSE
    for method, given in CALLS.items():
        parameters = inspect.signature(getattr(Session, method)).parameters
        assert set(parameters) - {"self"} == given.keys() | OF_SMALL_DATABASES.get(method, set())
        assert outcome(getattr(session_for(method), method), **given) == "answered"


def unrefused(questions: Any, method: str, given: dict[str, Any]) -> dict[tuple[str, str], str]:
    """What comes of each wrong kind that is not refused."""
    outcomes = {
        (name, kind): outcome(getattr(questions, method), **with_only(given, name, WRONG[kind]))
        for name, kind in tried(method)
        if name in given
    }
    return {case: said for case, said in outcomes.items() if said != "refused"}


@pytest.mark.parametrize("kind", WRONG)
def test_public_tables_of_a_wrong_kind_are_refused(kind: str) -> None:
    session = session_of()
    assert outcome(session.looking_up, lookups=WRONG[kind]) == "refused"
    assert outcome(session.looking_up, lookups={"groups": WRONG[kind]}) == "refused"
    assert session._ledger.totals().entries == 0


@pytest.mark.parametrize("method", CALLS)
def test_a_wrong_kind_is_refused_in_words_and_nothing_is_charged(method: str) -> None:
    session = session_for(method)
    assert unrefused(session, method, CALLS[method]) == {}
    assert session._ledger.totals().entries == 0


@pytest.mark.parametrize("method", sorted(CALLS.keys() - {"synthesize", "keys"}))
def test_an_estimate_refuses_the_same(method: str) -> None:
    given = {k: v for k, v in CALLS[method].items() if k not in NOT_ESTIMATED.get(method, {"key"})}
    assert unrefused(session_of().estimate, method, given) == {}


@pytest.mark.parametrize("method", CALLS)
def test_a_call_that_does_not_fit_is_refused_in_words(method: str) -> None:
    session = session_for(method)
    given = CALLS[method]
    first = next(iter(given.values()))
    ask = getattr(session, method)
    assert outcome(ask, first, **given) == "refused"  # the first one twice
    assert outcome(ask, **given, wihtin=0.1) == "refused"
    assert outcome(ask, *range(20)) == "refused"
    if method != "synthesize":  # which does the right thing without a word, and pays for it
        assert outcome(ask) == ("answered" if method == "count" else "refused")
    assert session._ledger.totals().entries == 0


def test_a_misspelt_word_gets_advice() -> None:
    session = session_of()
    with pytest.raises(hf.InputError, match="did you mean within"):
        session.fraction("sick", wihtin=0.1)
    with pytest.raises(hf.InputError, match="did you mean rounds"):
        session.synthesize(["sick"], ["sick"], rho=0.1, round=3)
    with pytest.raises(hf.InputError, match="did you mean queries"):
        opened().session(rho=1.0, query=3)
    with pytest.raises(hf.InputError, match="multiple values for argument 'where'"):
        session.fraction("sick", where="age > 3", within=0.1)


def test_an_error_from_inside_is_not_taken_for_a_misfit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin would call every TypeError a misfit, and hide faults of ours."""

    def faulty(*_: Any) -> Any:
        raise TypeError("a fault of ours")

    monkeypatch.setattr("holdfast.session.session.refuse_overspending", faulty)
    with pytest.raises(TypeError, match="a fault of ours"):
        session_of().fraction("sick", within=0.1)


TABLE_OPTIONS: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "rho": 1.0, "confidence": 0.9, "queries": 10, "only": "gaussian",
    "target": "table", "within": 0.1, "intervals": "uniform", "name": "ann",
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE_OPTIONS)
def test_a_table_refuses_wrong_kinds_of_sessions_and_limits(name: str) -> None:
    table = opened()
    for kind, value in WRONG.items():
        given = {name: value} if name in ("epsilon", "rho") else {"rho": 1.0, name: value}
        if kind != "None":
            assert (kind, outcome(table.session, **given)) == (kind, "refused")
            if name in ("epsilon", "delta", "rho"):
                given = {"epsilon": 1.0} | given if name == "delta" else {name: value}
                assert (kind, outcome(table.limit, **given)) == (kind, "refused")
    assert list(table.ledger.accounts()) == []


def test_rows_are_not_opened_with_wrong_kinds() -> None:
    for kind, value in WRONG.items():
        for given in (
            {"data": value},
            {"data": DATA, "schema": value},
            {"data": DATA, "schema": SCHEMA, "rows_per_unit": value},
            {"data": DATA, "schema": SCHEMA, "ledger": value},
            {"data": DATA, "schema": SCHEMA, "in_memory": value},
            {"data": DATA, "schema": SCHEMA, "allow_uncovered": value},
            {"data": DATA, "schema": SCHEMA, "table": value},
            {"data": "postgresql://nobody@127.0.0.1:1/x", "schema": SCHEMA, "table": value},
        ):
            if value is not None or list(given)[-1] in ("data", "schema"):
                given = {"schema": SCHEMA} | given
                assert (kind, outcome(hf.open, **given)) == (kind, "refused")
    assert outcome(hf.open) == "refused"
    assert outcome(hf.open, DATA, SCHEMA, tabel="x") == "refused"
    assert outcome(hf.open, DATA, SCHEMA, 1, 2) == "refused"
    for kind, value in WRONG.items():
        assert (kind, outcome(hf.open(DATA, SCHEMA).save, value)) == (kind, "refused")


def test_declarations_of_wrong_kinds_are_refused() -> None:
    for kind, value in WRONG.items():
        label = 1.5 if isinstance(value, int) else value  # a whole number may be a label
        said = {
            "Integer lo": outcome(hf.Integer, value, 10**400),
            "Integer hi": outcome(hf.Integer, 0, value),
            "Real lo": outcome(hf.Real, value, -1e9),
            "Real hi": outcome(hf.Real, 0, value),
            "Real step": outcome(hf.Real, 0, 1, step=0 if value is None else value),
            "Date lo": outcome(hf.Date, value, "2020-01-01"),
            "Date hi": outcome(hf.Date, "2020-01-01", value),
            "Category": outcome(hf.Category, "a", label),
            "Schema": outcome(hf.Schema, age=value),
            "from_mapping": outcome(hf.Schema.from_mapping, value),
            "from_json": outcome(hf.Schema.from_json, value),
            "from_toml": outcome(hf.Schema.from_toml, value),
        }
        assert (kind, set(said.values())) == (kind, {"refused"}), said
    for call, given, named in (
        (hf.Integer, (), {}),
        (hf.Integer, (0,), {}),
        (hf.Integer, (0, 1, 2), {}),
        (hf.Integer, (), {"lo": 0, "high": 1}),
        (hf.Real, (0,), {}),
        (hf.Boolean, (1,), {}),
        (hf.Date, ("2020-01-01",), {}),
        (hf.Category, (), {"labels": "x"}),
        (hf.Schema, (3,), {}),
    ):
        with pytest.raises(hf.SchemaError, match="expected"):
            call(*given, **named)  # type: ignore[operator]
