"""Every asker (a session in process, a gateway's session, a client of that gateway) keeps the same laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from gateway import BUDGET, SHARE, Running, people, running

import holdfast as hf
from holdfast.service.catalog import Person
from holdfast.session.answer import Answer
from holdfast.session.asking import Asking
from holdfast.session.estimate import Estimate
from holdfast.session.history import Release, history_of
from holdfast.session.session import Session

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
Law = Callable[[Asking, Asking], None]
"""What holds for an asker, beside a session in process to compare with. Both have been asked nothing yet."""

ASKED: dict[str, Call] = {
    "fraction": ("fraction", ("age > 40 and smoker = 'yes'",), {"within": 0.1}),
    "count": ("count", ("income > 100",), {"within": 500}),
    "difference": ("difference", ("age > 40", "age > 42 and smoker = 'yes'"), {"within": 0.3, "expect": 0.4}),
    "by": ("count", (), {"by": "age", "edges": [0, 50, 99], "rho": 1e-3}),
    "sum": ("sum", ("income",), {"rho": 1e-3}),
    "mean": ("mean", ("age + 1", "smoker = 'yes'"), {"epsilon": 0.3}),
    "histogram": ("histogram", ("smoker",), {"within": 500}),
    "quantile": ("quantile", ("income", 0.25), {"within": 0.2}),
    "sql": ("sql_one", ("SELECT avg(age) FROM t WHERE smoker = 'yes'",), {"within": 30}),
}
REFUSED: dict[str, Call] = {
    "unknown column": ("fraction", ("agee > 40",), {"within": 0.05}),
    "no text": ("fraction", (40,), {}),
    "none": ("fraction", (None,), {}),
    "open quote": ("count", ("smoker = 'ye",), {}),
    "misspelt": ("fraction", ("age > 40",), {"wihtin": 0.05}),
    "misspelt budget": ("select", (["age > 3"],), {"epsilno": 0.1}),
    "misspelt term": ("sparse_vector", (0.5, 1), {"eps": 0.1}),
    "too many": ("sample", ("age > 3", "age > 4"), {}),
    "one condition": ("difference", ("age > 40",), {}),
    "no condition": ("difference", ("age > 40", None), {}),
    "no share": ("difference", ("age > 40", "age > 41"), {"expect": 1.5}),
    "no difference": ("difference", ("age > 40", "40 < age"), {"within": 0.1}),
    "two accuracies": ("mean", ("age",), {"within": 0.05, "rho": 1.0}),
    "negative": ("sum", ("age",), {"within": -1}),
    "words for a number": ("sum", ("age",), {"rho": "much"}),
    "edges alone": ("count", (), {"edges": [0, 50, 99]}),
    "no order": ("quantile", ("smoker",), {}),
    "no rank": ("quantile", ("age", 1.5), {}),
    "dates": ("sum", ("born",), {"rho": 0.01}),
    "unknown mechanism": ("fraction", ("age > 40",), {"within": 0.05, "mechanism": "nonsense"}),
    "two aggregates": ("sql_one", ("SELECT count(*), avg(age) FROM t",), {}),
    "two tables": ("sql", ("SELECT count(*) FROM a, b",), {}),
    "too much": ("fraction", ("age > 40",), {"rho": 50.0}),
    "vote": ("sample", ("agee > 40",), {}),
    "no key": ("sample", ("age > 40",), {"key": 3}),
    "no list": ("select", ("age > 3",), {"epsilon": 0.1}),
    "nothing to choose": ("select", ([],), {"epsilon": 0.1}),
    "no budget for a choice": ("select", (["age > 40"],), {}),
    "numbers": ("select", ([1, 2],), {"epsilon": 0.1}),
    "too many scores": ("select", (["a"], ["age > 40", "age > 50"]), {"epsilon": 0.1}),
    "choice by a stranger": ("select", (["age > 40"],), {"epsilon": 0.1, "mechanism": "dice"}),
    "no threshold": ("sparse_vector", (1.5, 1), {"rho": 0.01}),
    "no version": ("sparse_vector", (0.5, 1), {"rho": 0.01, "version": "newest"}),
    "no columns": ("multiplicative_weights", (["pets"],), {"queries": 5, "rho": 0.1}),
}


def refusal(asker: Any, call: Call) -> tuple[Any, ...]:
    """The kind, the words and the numbers of a refusal."""
    method, given, how = call
    try:
        getattr(asker, method)(*given, **how)
    except hf.HoldfastError as error:
        names = ("position", "requested", "remaining", "within")
        return type(error), str(error), *(getattr(error, name, None) for name in names)
    return ("answered",)


def a_question_is_answered_as_in_process(asker: Asking, beside: Asking) -> None:
    """The same kind of answer, for the price that was named."""
    for method, given, how in ASKED.values():
        price, before = getattr(asker.estimate, method)(*given, **how), asker.spent
        answer, other = (getattr(one, method)(*given, **how) for one in (asker, beside))
        assert isinstance(answer, Answer) and type(answer.value) is type(other.value)
        names = ("rho", "epsilon", "mechanism", "question", "confidence", "target", "within", "repeated")
        for name in names:
            assert getattr(answer, name) == getattr(other, name), name
        assert asker.spent - before == pytest.approx(price.cost, abs=2e-9)


def an_estimate_is_free_and_the_same(asker: Asking, beside: Asking) -> None:
    for method, given, how in ASKED.values():
        ours, theirs = (getattr(one.estimate, method)(*given, **how) for one in (asker, beside))
        assert (ours.cost, ours.width, ours.explain()) == (theirs.cost, theirs.width, theirs.explain())
    choice = ["age > 3", "age > 60"]
    assert asker.estimate.select(choice, rho=1e-3) == beside.estimate.select(choice, rho=1e-3)
    assert asker.estimate.sample("age > 3") == beside.estimate.sample("age > 3")
    assert asker.spent == 0 and asker.history == []


def a_repeated_question_is_free(asker: Asking, beside: Asking) -> None:
    """And one that asks for less."""
    for method, given, how in ASKED.values():
        first = getattr(asker, method)(*given, **how)
        before = asker.spent
        again = getattr(asker, method)(*given, **how)
        assert again.repeated and not first.repeated and again.to_json() == first.to_json()
        assert asker.spent == before
    less = asker.fraction(*ASKED["fraction"][1], within=0.2)
    assert less.repeated and asker.spent == before


def a_mistake_is_refused_in_the_same_words(asker: Asking, beside: Asking) -> None:
    for name, call in REFUSED.items():
        ours, theirs = refusal(asker, call), refusal(beside, call)
        assert ours == theirs != ("answered",), name
        assert "misspelt" not in name or "did you mean" in ours[1], name
    assert asker.spent == 0, "nothing is charged for what is refused"


def a_key_is_paid_once(asker: Asking, beside: Asking) -> None:
    price = asker.estimate.sample("age > 50").cost
    assert len({asker.sample("age > 50", key="k") for _ in range(12)}) == 1
    assert asker.spent == pytest.approx(price, abs=2e-9)
    asker.sample("age > 50")
    assert asker.spent == pytest.approx(2 * price, abs=2e-9)


def a_choice_is_made_once(asker: Asking, beside: Asking) -> None:
    conditions = ["age > 95", "age > 2", "age > 97"]
    chosen = asker.select([95, 2, 97], conditions, epsilon=1.0)
    spent = asker.spent
    assert chosen.candidate == 2 and spent > 0
    assert asker.select([95, 2, 97], conditions, epsilon=1.0) == chosen
    other = beside.select([95, 2, 97], conditions, epsilon=1.0)
    assert (chosen, asker.spent) == (other, beside.spent)


def a_sparse_vector_halts(asker: Asking, beside: Asking) -> None:
    watch, other = (one.sparse_vector(0.5, 1, rho=0.5, name="w") for one in (asker, beside))
    spent = asker.spent
    assert not watch.above("age > 98") and watch.above("age > 1")
    assert (watch.halted, watch.hits_left, watch.asked) == (True, 0, 2)
    assert watch.half_width(10) == other.half_width(10)
    with pytest.raises(hf.BudgetError, match="halt"):
        watch.above("age > 1")
    assert asker.sparse_vector(0.5, 1, rho=0.5, name="w").halted
    assert asker.spent == spent == beside.spent > 0


def weights_answer_many(asker: Asking, beside: Asking) -> None:
    weights = asker.multiplicative_weights(["smoker"], queries=20, within=0.3)
    first = weights.fraction("smoker = 'yes'")
    assert abs(first.value - 0.3) < 0.3 and first.mechanism == "multiplicative-weights"
    assert weights.asked <= 1 and 0 <= weights.updates <= weights.asked and weights.updates_left > 0


def an_account_adds_up(asker: Asking, beside: Asking) -> None:
    answers = [asker.fraction(f"age > {age}", within=0.1) for age in (20, 40, 60)]
    assert [answer.to_json() for answer in asker.history] == [answer.to_json() for answer in answers]
    assert asker.spent == pytest.approx(sum(answer.rho for answer in answers), abs=1e-8)
    assert asker.spent + asker.remaining == pytest.approx(asker.limit)
    for name in ("currency", "confidence", "queries", "schema", "limit", "plan", "meter"):
        assert getattr(asker, name) == getattr(beside, name), name
    assert f"{len(answers)}" in str(asker.report())


def what_was_released_is_in_the_history(asker: Asking, beside: Asking) -> None:
    told = asker.fraction("age > 40", within=0.1)
    voted = asker.sample("age > 3", key="first")
    chosen = asker.select(["age > 90", "age > 10"], epsilon=0.2)
    asker.sparse_vector(0.5, 1, rho=0.01, name="watch").above("age > 3")
    first, *others = asker.history
    assert first.to_json() == told.to_json()
    assert [other.kind for other in others[:3]] == ["sample", "select", "sparse vector"]
    assert [other.told for other in others[:3]] == [voted, chosen.index, None]  # a threshold is secret
    assert told.rho + sum(other.cost for other in others) == pytest.approx(asker.spent, abs=1e-8)
    assert all(other.question in str(asker.report()) for other in others)


def a_closed_session_answers_nothing_new(asker: Asking, beside: Asking) -> None:
    told, spent = asker.fraction("age > 40", within=0.1), asker.spent
    assert not asker.closed
    for session in (asker, asker, beside):
        session.close()
    assert asker.closed and asker.remaining == 0 and asker.plan == beside.plan and asker.meter is None
    for call in (ASKED["sum"], ("sample", ("age > 3",), {}), ("sparse_vector", (0.5, 1), {"rho": 0.01})):
        kind, words, *_ = refusal(asker, call)
        assert kind is hf.BudgetError and words.endswith(refusal(beside, call)[1].partition("which")[2])
    assert asker.fraction("age > 40", within=0.1).to_json() == told.to_json() and asker.spent == spent


LAWS: tuple[Law, ...] = (
    a_question_is_answered_as_in_process, an_estimate_is_free_and_the_same, a_repeated_question_is_free,
    a_mistake_is_refused_in_the_same_words, a_key_is_paid_once, a_choice_is_made_once, a_sparse_vector_halts,
    weights_answer_many, an_account_adds_up, what_was_released_is_in_the_history,
    a_closed_session_answers_nothing_new,
)  # fmt: skip


class Askers:
    """New askers, each with a share of its own of the same rows."""

    def __init__(self, started: Running, table: hf.Table) -> None:
        self._started, self._table, self._number = started, table, count()

    def in_process(self) -> Session:
        return self._table.session(
            **SHARE, confidence=0.95, target="table", name=f"local {next(self._number)}"
        )

    def gateway(self) -> Session:
        person = self._started.person(self._started.somebody(f"person {next(self._number)}"))
        return self._started.gateway.tables.session("people", person)

    def client(self) -> Asking:
        token = self._started.somebody(f"person {next(self._number)}")
        return hf.connect(self._started.url, token, table="people", confirm=True)


@pytest.fixture(scope="module")
def askers() -> Iterator[Askers]:
    table = people(5000)
    budget = {**BUDGET, "epsilon": 300.0}
    with running({"people": table}, budget=budget, declared={"target": "table"}) as started:
        yield Askers(started, table)


class AskersAside(Askers):
    """The same of units that are set aside, for a population: no interval is as near as most laws ask for."""

    LAWS = (
        a_mistake_is_refused_in_the_same_words,
        a_key_is_paid_once,
        a_choice_is_made_once,
        a_sparse_vector_halts,
    )

    def in_process(self) -> Session:
        return self._table.aside.session(**SHARE, confidence=0.95, name=f"aside {next(self._number)}")

    def gateway(self) -> Session:
        return self._started.gateway.tables.session("people.aside", self._admitted()[0])

    def client(self) -> Asking:
        token = self._admitted()[1]
        return hf.connect(self._started.url, token, confirm=True).table("people").aside.session()

    def _admitted(self) -> tuple[Person, str]:
        token = self._started.somebody(f"person {next(self._number)}", {})
        person, owner = self._started.person(token), self._started.person(self._started.owner)
        self._started.gateway.admit(owner, "people.aside", person.id, SHARE)
        return person, token


@pytest.fixture(scope="module")
def askers_aside() -> Iterator[AskersAside]:
    table = people(5000, set_aside=0.5)
    with running({"people": table}, budget={**BUDGET, "epsilon": 300.0}) as started:
        yield AskersAside(started, table)


@pytest.mark.parametrize("law", AskersAside.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("which", ["gateway", "client"])
def test_every_asker_of_units_set_aside_keeps_the_law(
    which: str, law: Law, askers_aside: AskersAside
) -> None:
    law(getattr(askers_aside, which)(), askers_aside.in_process())


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("which", ["in_process", "gateway", "client"])
def test_every_asker_keeps_the_law(which: str, law: Law, askers: Askers) -> None:
    law(getattr(askers, which)(), askers.in_process())


class Twin:
    """A session that breaks a law."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class ChargesOtherwise(Twin):
    def fraction(self, where: str, **how: Any) -> Answer:
        return replace(self._session.fraction(where, **how), rho=0.5)


class EstimatesByAsking(Twin):
    @property
    def estimate(self) -> Estimate:
        self._session.sample("age > 3")
        return self._session.estimate


class AsksAnew(Twin):
    def fraction(self, where: str, **how: Any) -> Answer:
        how["within"] *= 0.9 ** len(self.history)
        return self._session.fraction(where, **how)


class DropsWhatItDoesNotKnow(Twin):
    def fraction(self, where: str, wihtin: float = 0.1, **how: Any) -> Answer:
        return self._session.fraction(where, **how)


class SaysItOtherwise(Twin):
    def quantile(self, *given: Any, **how: Any) -> Answer:
        try:
            return self._session.quantile(*given, **how)
        except hf.QueryError as error:
            raise hf.InputError(str(error)) from None


class ForgetsKeys(Twin):
    def sample(self, where: str, *, key: str | None = None) -> bool:
        return self._session.sample(where)


class ChoosesAnew(Twin):
    def select(self, candidates: Any, scores: Any, *, epsilon: float) -> Any:
        return self._session.select(candidates, scores, epsilon=epsilon - float(self.spent) / 1e6)


class OpensAnew(Twin):
    def sparse_vector(self, *terms: Any, name: str, **how: Any) -> Any:
        return self._session.sparse_vector(*terms, name=f"{name}{float(self.spent)}", **how)


class WeighsNothing(Twin):
    def multiplicative_weights(self, *terms: Any, **how: Any) -> Any:
        weights = self._session.multiplicative_weights(*terms, **how)
        weights.fraction = lambda where: self._session.fraction(where, within=0.3)
        return weights


class HidesTheLast(Twin):
    @property
    def history(self) -> list[Answer]:
        return self._session.history[:-1]


class TellsAnswersOnly(Twin):
    @property
    def history(self) -> list[Answer | Release]:
        return [each for each in self._session.history if isinstance(each, Answer)]


class TellsSecrets(Twin):
    @property
    def history(self) -> list[Answer | Release]:
        return list(
            history_of(
                (replace(each, secret=False) for each in self._session._ledger.entries(self.name)), "zcdp"
            )
        )


class StaysOpen(Twin):
    def close(self) -> None: ...


TWINS: tuple[tuple[type[Twin], Law], ...] = (
    (ChargesOtherwise, a_question_is_answered_as_in_process), (EstimatesByAsking, an_estimate_is_free_and_the_same),
    (AsksAnew, a_repeated_question_is_free), (DropsWhatItDoesNotKnow, a_mistake_is_refused_in_the_same_words),
    (SaysItOtherwise, a_mistake_is_refused_in_the_same_words), (ForgetsKeys, a_key_is_paid_once),
    (ChoosesAnew, a_choice_is_made_once), (OpensAnew, a_sparse_vector_halts), (WeighsNothing, weights_answer_many),
    (HidesTheLast, an_account_adds_up), (TellsAnswersOnly, what_was_released_is_in_the_history),
    (TellsSecrets, what_was_released_is_in_the_history), (StaysOpen, a_closed_session_answers_nothing_new),
)  # fmt: skip


@pytest.mark.parametrize(("twin", "law"), TWINS, ids=lambda part: part.__name__)
def test_an_asker_that_breaks_a_law_is_caught(twin: type[Twin], law: Law, askers: Askers) -> None:
    broken: Any = twin(askers.in_process())
    with pytest.raises(AssertionError):
        law(broken, askers.in_process())


def test_every_law_has_a_twin() -> None:
    assert {law for _, law in TWINS} == set(LAWS)
