"""A session over HTTP is the session in process: the same methods, answers, plans, budgets and errors."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gateway import SHARE, Running

import holdfast as hf
from holdfast.client import RemoteSession
from holdfast.client.session import RemoteEstimate
from holdfast.client.wire import Wire
from holdfast.session.estimate import Estimate
from holdfast.session.session import Session

BESIDE_THE_ROWS = {"pay", "promise", "opened", "left", "looking_up"}
"""Doors for mechanisms and tables that are beside the rows; a gateway does not open them to analysts."""
OF_THIS_MACHINE = {"device", "start", "uniform"}
"""Arguments that say where in process to compute, and from what object there; so does the memory of weights."""

QUESTIONS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "fraction": ("fraction", ("age > 40 and smoker = 'yes'",), {"within": 0.05}),
    "fraction by": ("fraction", ("age > 40",), {"by": "smoker", "within": 0.1}),
    "count": ("count", ("income > 100",), {"within": 1000}),
    "count by age": ("count", ("smoker = 'no'",), {"by": "age", "edges": (0, 50, 99), "within": 2000}),
    "sum": ("sum", ("income",), {"rho": 1e-4}),
    "mean": ("mean", ("age + 1", "smoker = 'yes'"), {"within": 20, "mechanism": "gaussian"}),
    "mean by": ("mean", ("income",), {"by": "smoker", "within": 200}),
    "mean of few": ("mean", ("income", "age < 2"), {"within": 200}),
    "histogram": ("histogram", ("smoker",), {"within": 2000}),
    "dates": (
        "histogram",
        ("born", [datetime.date(1950, 1, 1), datetime.date(1980, 1, 1), datetime.date(2010, 12, 31)]),
        {"within": np.float64(2000)},
    ),
    "array of edges": ("histogram", ("age", np.array([0, 30, 60, 99])), {"where": "age > 3", "within": 2000}),
    "quantile": ("quantile", ("income", Fraction(1, 3), "age > 50"), {"within": 0.2}),
    "quantile of dates": ("quantile", ("born",), {"within": 0.3}),
    "sql": ("sql_one", ("SELECT avg(age) FROM people WHERE smoker = 'yes'",), {"within": 30}),
    "few rows": ("fraction", ("age < 10",), {"within": 0.1, "rows": 5000}),
}

MISTAKES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "unknown column": ("fraction", ("agee > 40",), {"within": 0.05}),
    "no condition": ("fraction", (40,), {}),
    "open quote": ("count", ("smoker = 'ye",), {}),
    "two accuracies": ("fraction", ("age > 40",), {"within": 0.05, "rho": 1.0}),
    "unknown word": ("fraction", ("age > 40",), {"wihtin": 0.05}),
    "edges alone": ("count", (), {"edges": [0, 50, 99]}),
    "no order": ("quantile", ("smoker",), {}),
    "not for this": ("fraction", ("age > 40",), {"within": 0.05, "mechanism": "nonsense"}),
    "too much": ("fraction", ("age > 40",), {"rho": 50.0}),
    "two tables": ("sql", ("SELECT count(*) FROM a, b",), {}),
    "vote": ("sample", ("agee > 40",), {}),
    "no budget for a choice": ("select", (["age > 40"],), {}),
    "too many scores": ("select", (["a"], ["age > 40", "age > 50"]), {"epsilon": 0.1}),
}


@pytest.fixture(scope="module")
def local(house: Running) -> Iterator[Session]:
    """The same analyst's session in process, on the same store and ledger."""
    folder = house.settings.roots[0] / "people.hf"
    table = hf.open(folder)
    share: dict[str, Any] = {**SHARE, "name": house.person(house.analyst).id}
    yield table.session(**share, confidence=0.95, target="table")
    table.close()


def public(kind: type) -> dict[str, Any]:
    return {name: part for name, part in inspect.getmembers(kind) if not name.startswith("_")}


def differences(ours: type, theirs: type) -> set[str]:
    """The public methods and properties of `ours` that `theirs` lacks, or takes other arguments for."""
    here, there = public(ours), public(theirs)
    found = {name for name in here if name not in there}
    for name in here.keys() - found:
        if callable(here[name]):
            mine, yours = (
                [(p.name, p.kind, p.default) for p in inspect.signature(part).parameters.values()]
                for part in (here[name], there[name])
            )
            apart = OF_THIS_MACHINE | {"memory"} if name == "multiplicative_weights" else OF_THIS_MACHINE
            apart = set() if name == "synthesize" else apart  # refused, whatever it is given
            found |= set() if [p for p in mine if p[0] not in apart] == yours else {name}
    return found


def test_every_method_is_there_with_its_signature() -> None:
    assert differences(Session, RemoteSession) == BESIDE_THE_ROWS
    assert differences(Estimate, RemoteEstimate) == set()


def test_a_forgotten_argument_would_be_noticed() -> None:
    class Forgetful(RemoteSession):
        def sample(self, where: str) -> bool:  # type: ignore[override]
            return True

    assert "sample" in differences(Session, Forgetful)


def test_the_number_of_rows_costs_nothing_over_http(remote: RemoteSession, local: Session) -> None:
    spent = local.spent
    assert remote.count() == local.count() and remote.count().width == 0
    assert remote.estimate.count().cost == 0
    counted, _ = remote.sql("SELECT count(*), sum(age) FROM t", rho=1e-5)
    assert counted.value == local.count().value and counted.rho == 0
    assert local.spent - spent == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize("asked", QUESTIONS)
def test_an_answer_over_http_is_the_answer_in_process(
    asked: str, remote: RemoteSession, local: Session
) -> None:
    """What one got, the other finds in the ledger: the question arrived as it was put."""
    method, given, how = QUESTIONS[asked]
    answer = getattr(remote, method)(*given, **how)
    again = getattr(local, method)(*given, **how)
    assert again.repeated and not answer.repeated
    assert again.to_json() == answer.to_json()
    assert type(answer.value) is type(again.value)
    assert getattr(remote, method)(*given, **how).repeated


def test_a_width_that_was_not_kept_is_told_over_http(remote: RemoteSession) -> None:
    few = remote.mean("income", "age < 1", within=300)
    assert few.within == 300 and few.met is False and "not within 300" in str(few)
    by = remote.mean("income", by="smoker", within=300)
    assert by.met.tolist() == [bool(width <= 300) for width in by.width]
    told = remote.estimate.mean("income", by="smoker", within=300)
    assert f"in groups of at least {told.qualifying:,} of the" in told.explain()


@pytest.mark.parametrize(("lost", "where"), [("where", "age > 4"), ("edges", "age > 5")])
def test_a_question_that_changes_on_the_way_is_noticed(
    lost: str, where: str, monkeypatch: pytest.MonkeyPatch, remote: RemoteSession, local: Session
) -> None:
    """The broken twin: a client that drops an argument gets an answer to another question."""
    honest = Wire.charge

    def forgetful(self: Wire, path: str, body: dict[str, Any], key: str | None = None) -> Any:
        return honest(self, path, {name: part for name, part in body.items() if name != lost}, key)

    monkeypatch.setattr(Wire, "charge", forgetful)
    remote.histogram("age", [0, 31, 99], where, within=3000)
    assert not local.histogram("age", [0, 31, 99], where, within=3000).repeated


@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_plan_over_http_is_the_plan_in_process(asked: str, remote: RemoteSession, local: Session) -> None:
    method, given, how = QUESTIONS[asked]
    before = remote.spent
    plan, other = (
        getattr(remote.estimate, method)(*given, **how),
        getattr(local.estimate, method)(*given, **how),
    )
    names = ("cost", "width", "noise", "sampling", "population", "rows_read", "mechanism", "rho", "target")
    for name in (*names, "question", "epsilon", "confidence", "within", "qualifying"):
        assert getattr(plan, name) == getattr(other, name), name
    assert plan.explain() == other.explain() == str(plan)
    assert remote.spent == before


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_the_same_error(mistake: str, remote: RemoteSession, local: Session) -> None:
    method, given, how = MISTAKES[mistake]
    with pytest.raises(hf.HoldfastError) as here:
        getattr(local, method)(*given, **how)
    with pytest.raises(hf.HoldfastError) as there:
        getattr(remote, method)(*given, **how)
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)
    for name in ("text", "position", "requested", "remaining", "within"):
        assert getattr(there.value, name, None) == getattr(here.value, name, None), name


def test_several_aggregates_are_a_list(remote: RemoteSession, local: Session) -> None:
    text = "SELECT count(*), avg(income) FROM people GROUP BY smoker"
    answers = remote.sql(text, rho=1e-4)
    assert [answer.to_json() for answer in answers] == [each.to_json() for each in local.sql(text, rho=1e-4)]
    assert [plan.cost for plan in remote.estimate.sql(text, rho=1e-4)] == [
        plan.cost for plan in local.estimate.sql(text, rho=1e-4)
    ]


def test_budget_and_history_agree(remote: RemoteSession, local: Session) -> None:
    remote.fraction("age > 77", within=0.1)
    for name in ("spent", "remaining", "limit"):
        ours, theirs = getattr(remote, name), getattr(local, name)
        assert ours == theirs and vars(ours) == vars(theirs)
    assert remote.spent > 0
    for name in ("currency", "confidence", "queries", "schema", "name"):
        assert getattr(remote, name) == getattr(local, name), name
    assert [a.to_json() for a in remote.history] == [a.to_json() for a in local.history]
    assert str(remote.report()) == str(local.report())
    assert remote.report()._repr_html_() == local.report()._repr_html_()


def test_votes_and_choices(remote: RemoteSession, local: Session) -> None:
    price = remote.estimate.sample("age > 3")
    assert price == local.estimate.sample("age > 3")
    before = remote.spent
    assert remote.sample("age > 3") in (True, False)
    assert remote.spent - before == pytest.approx(price.cost, abs=1e-9)
    said = {remote.sample("age > 3", key="first") for _ in range(8)}
    assert len(said) == 1
    assert remote.spent - before == pytest.approx(2 * price.cost, abs=1e-9)
    conditions = ["age > 90", "age > 10", "age > 95"]
    assert remote.estimate.select(conditions, epsilon=0.5) == local.estimate.select(conditions, epsilon=0.5)
    chosen = remote.select(conditions, epsilon=0.5)
    assert chosen == local.select(conditions, epsilon=0.5)
    assert chosen.candidate == "age > 10"
    assert remote.select([90, 10, 95], conditions, epsilon=0.5).candidate == 10


def test_a_sparse_vector(remote: RemoteSession, local: Session) -> None:
    terms: dict[str, Any] = {"threshold": 0.5, "hits": 2, "rho": 0.01}
    assert remote.estimate.sparse_vector(**terms) == local.estimate.sparse_vector(**terms)
    watch = remote.sparse_vector(**terms)
    spent = remote.spent
    assert not watch.above("age > 90")
    assert watch.above("age > 10") and watch.above("age > 10", call="c")
    assert (watch.halted, watch.hits_left, watch.asked) == (True, 0, 3)
    assert watch.above("age > 10", call="c")
    with pytest.raises(hf.BudgetError, match="halt"):
        watch.above("age > 10")
    mine = local.sparse_vector(**terms)
    assert (mine.halted, mine.hits_left, mine.asked) == (True, 0, 3)
    assert watch.half_width(10) == mine.half_width(10)
    assert repr(watch) == repr(mine)
    assert remote.sparse_vector(**terms).halted
    assert remote.spent == spent


def test_weights(remote: RemoteSession, local: Session) -> None:
    terms: dict[str, Any] = {"queries": 50, "within": 0.3, "edges": {"age": [0, 50, 99]}}
    columns = ["smoker", "age"]
    price = remote.estimate.multiplicative_weights(columns, **terms)
    assert price == local.estimate.multiplicative_weights(columns, **terms)
    weights = remote.multiplicative_weights(columns, **terms)
    answer = weights.fraction("smoker = 'yes'")
    assert answer.mechanism == "multiplicative-weights"
    mine = local.multiplicative_weights(columns, **terms)
    assert weights.asked == 1
    assert (weights.within, weights.queries) == (mine.within, mine.queries)
    assert repr(weights) == repr(mine)
    assert (weights.asked, weights.updates, weights.updates_left) == (
        mine.asked,
        mine.updates,
        mine.updates_left,
    )
    with pytest.raises(hf.InputError, match="device"):
        remote.multiplicative_weights(columns, device="cupy", **terms)


def test_no_code_travels(remote: RemoteSession) -> None:
    calls: list[Callable[[], object]] = [
        lambda: remote.statistic(np.zeros_like, ["age"], within=0.1),
        lambda: remote.estimate.statistic(np.zeros_like, ["age"], within=0.1),
        lambda: remote.minimize("logistic"),
        lambda: remote.estimate.minimize("logistic"),
        lambda: remote.synthesize(["age"], ["age > 3"]),
        lambda: remote.select(["a", "b"], [1.0, 2.0], sensitivity=1.0, epsilon=0.1),
    ]
    for call in calls:
        with pytest.raises(hf.MechanismError):
            call()


def test_much_of_what_is_left_must_be_confirmed(house: Running) -> None:
    token = house.somebody("bea", {"epsilon": 1.0, "delta": 1e-6})
    with hf.connect(house.url, token) as connection:
        session = connection.session()
        with pytest.raises(hf.BudgetError, match=r"confirm=True.*Nothing was charged") as refused:
            session.fraction("age > 40", rho=float(session.remaining) / 2)
        assert refused.value.requested == pytest.approx(float(session.limit) / 2, rel=1e-6)
        assert float(session.spent) == 0.0
    agreed = hf.connect(house.url, token, table="people", confirm=True)
    agreed.fraction("age > 40", rho=float(agreed.remaining) / 2)
    assert agreed.spent == pytest.approx(float(agreed.limit) / 2, rel=1e-6)
