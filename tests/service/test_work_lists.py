"""What is asked of one table at the same time is taken in one list: what becomes of each is what would have become of
it alone, and nobody's failure is another's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from gateway import SHARE, people

from holdfast.desk import steps as desk_steps
from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Precondition, Record, Surveyed, chained, verify
from holdfast.ledger.reader import Reader
from holdfast.ledger.writer import Writer
from holdfast.service import work as service_work
from holdfast.service.fast_route import question_of
from holdfast.service.problem import REFUSALS, problem_of
from holdfast.service.work import REPLIES, _all_taken
from holdfast.session import session as session_module
from service.site import Site, site

Asked = tuple[str, str, float, str | None]
"""By whom, where, for how much, under which key."""
SOME: list[Asked] = [
    ("ann", "age > 40", 1e-4, None),
    ("ann", "age > 40", 1e-4, None),
    ("bob", "age > 40", 1e-4, None),
    ("ann", "age > ", 1e-4, None),
    ("bob", "age > 1", 1e-4, None),
    ("ann", "40 < age", 1e-4, "again"),
    ("ann", "age > 2", 1e-4, "again"),
    ("bob", "age > 3", 1e-4, "bob"),
    ("bob", "age > 4", 1e-4, None),
    ("ann", "age > 5", 1e5, None),
    ("bob", "age > 1", 1e-4, "bob too"),
    ("cat", "age > 6", 4e-4, None),
    ("cat", "age > 7", 4e-4, None),
    ("cat", "age > 8", 4e-4, None),
    ("ann", "nobody > 8", 1e-4, None),
    ("ann", "age > 9", 1e-4, "ninth"),
    ("ann", "age > 9", 1e-4, "ninth"),
    ("bob", "age > 41 OR age = 41", 1e-4, None),
]
"""Repeats in other words, one key for two questions, what cannot be read, and more than bob's answers, cat's budget
and anybody's share allow."""


@contextmanager
def three() -> Iterator[tuple[Site, dict[str, Any]]]:
    """A table with ann, bob who has three answers, and cat who can pay for two of her questions."""
    with site({"people": people(1_000)}, declared={"queries": 40, "target": "table"}) as here:
        tokens = {"ann": here.started.analyst}
        for name, share in {"bob": SHARE | {"queries": 3}, "cat": {"rho": 1e-3}}.items():
            tokens[name] = here.started.somebody(name, share)
        yield here, {name: here.started.person(token) for name, token in tokens.items()}


def asking(here: Site, persons: dict[str, Any], one: Asked) -> Any:
    """Its steps, up to the ledger; or why there are none."""
    name, where, rho, key = one
    text = json.dumps({"kind": "fraction", "where": where, "rho": rho, "confirm": True})
    try:
        steps = here.started.gateway.asking(persons[name], "people", question_of(text.encode()), key)
        step = desk_steps.advance(steps, None)
        while step == REPLIES:
            step = desk_steps.advance(steps, None)
    except Exception as error:
        return error
    return step if isinstance(step, desk_steps.Done) else (steps, step, True)


def in_a_list(here: Site, persons: dict[str, Any], asked: list[Asked]) -> list[Any]:
    """What becomes of all of it, taken together; replies are kept afterwards."""
    ready = [asking(here, persons, one) for one in asked]
    taking = [one for one in ready if isinstance(one, tuple)]
    taken = iter(_all_taken(taking, here.ledger()))
    told = [next(taken) if isinstance(one, tuple) else one for one in ready]
    for place, one in enumerate(told):
        if one == REPLIES:
            told[place] = desk_steps.advance(ready[place][0], None)
    return [code(one) for one in told]


def in_two_lists(here: Site, persons: dict[str, Any], asked: list[Asked]) -> list[Any]:
    """The same where answers are recorded at public times: all that are ready then, in a list of their own."""
    ready = [asking(here, persons, one) for one in asked]
    places = [place for place, one in enumerate(ready) if isinstance(one, tuple)]
    told: list[Any] = list(ready)
    taking = [(*ready[place][:2], False) for place in places]
    while taking:
        for place, one in zip(places, _all_taken(taking, here.ledger()), strict=True):
            told[place] = desk_steps.advance(ready[place][0], None) if one == REPLIES else one
        places = [place for place in places if isinstance(told[place], Record)]
        if places:
            assert {entry.answer for entry in here.ledger().entries()} == {None}, "not before its time"
        taking = [(ready[place][0], told[place], False) for place in places]
    return [code(one) for one in told]


def alone(here: Site, persons: dict[str, Any], asked: list[Asked]) -> list[Any]:
    """The same, one after the other."""
    found = []
    for one in asked:
        ready = asking(here, persons, one)
        taken = _all_taken([ready], here.ledger())[0] if isinstance(ready, tuple) else ready
        found.append(code(desk_steps.advance(ready[0], None) if taken == REPLIES else taken))
    return found


def code(outcome: Any) -> Any:
    """The answer's value, or why there is none."""
    if isinstance(outcome, REFUSALS):
        return problem_of(outcome).code
    if isinstance(outcome, Exception):
        return type(outcome).__name__
    assert isinstance(outcome, desk_steps.Done)
    return json.loads(outcome.result)["answers"][0]["value"]


def charged(here: Site, persons: dict[str, Any]) -> dict[str, Any]:
    """What everybody was charged, after the chain was walked; each answer that stands is one charge."""
    ledger = here.ledger()
    assert verify(ledger).answered == ledger.totals().entries
    assert sum(ledger.totals(person.id).units for person in persons.values()) == ledger.totals().units
    return {name: ledger.totals(person.id) for name, person in persons.items()}


def both(asked: list[Asked]) -> tuple[list[Any], dict[str, Any], list[Any], dict[str, Any]]:
    with three() as (here, persons):
        listed = in_a_list(here, persons, asked), charged(here, persons)
    with three() as (here, persons):
        return *listed, alone(here, persons, asked), charged(here, persons)


def kinds(told: list[Any]) -> list[Any]:
    return [one if isinstance(one, str) else "answered" for one in told]


def test_a_list_comes_to_what_each_comes_to_alone() -> None:
    listed, list_charges, single, charges = both(SOME)
    assert kinds(listed) == kinds(single)
    assert list_charges == charges
    assert [charges[name].entries for name in ("ann", "bob", "cat")] == [2, 3, 2]
    assert kinds(single).count("answered") == 12 and len(set(kinds(single))) > 3
    for told in (listed, single):  # whoever asks the same gets the same
        assert told[0] == told[1] == told[5] and told[15] == told[16] and told[4] == told[10]


def test_answers_that_wait_for_their_time_are_one_for_each_question() -> None:
    """A question that is asked again before its answer is recorded is computed twice, and told once."""
    *_, single, charges = both(SOME)
    with three() as (here, persons):
        listed = in_two_lists(here, persons, SOME)
        assert kinds(listed) == kinds(single) and charged(here, persons) == charges
        assert listed[0] == listed[1] == listed[5] and listed[15] == listed[16] and listed[4] == listed[10]
        assert in_a_list(here, persons, SOME[:3]) == listed[:3]


def test_ten_lists_of_many_at_once_charge_nobody_more_or_less_than_their_share() -> None:
    asked = [
        (("ann", "bob", "cat")[i % 3], f"age > {i % 60}", (1e-4, 1e-4, 4e-4)[i % 3], None) for i in range(64)
    ]
    with three() as (here, persons):
        for _ in range(10):
            told = in_a_list(here, persons, asked)
        charges = charged(here, persons)
        again = in_a_list(here, persons, asked)
        assert again == told and charged(here, persons) == charges, "what was told is told again, for nothing"
    assert charges["bob"].answers == 3 and charges["cat"].entries == 2
    assert charges["ann"].entries == 20, "ann asked twenty different questions"


@pytest.mark.parametrize(
    "break_it",
    [
        lambda patch: patch.setattr(Precondition, "check", lambda *_: None),
        lambda patch: patch.setattr(chained, "_REFUSALS", ()),
        lambda patch: patch.setattr(
            service_work, "_said", lambda steps, ledger, real=service_work._said: real(steps, ledger)[::-1]
        ),
        lambda patch: patch.setattr(
            session_module, "question_key", lambda *how, real=session_module.question_key: real(*how) + str(id(how))
        ),
    ],
    ids=["plans that hold for ever", "a refusal breaks the list", "outcomes of others", "no question is known"],
)  # fmt: skip
def test_broken_lists_are_noticed(break_it: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    listed, charges = both(SOME)[:2]
    with monkeypatch.context() as patch:
        break_it(patch)
        with three() as (here, persons):
            commits = list[int]()
            real = Writer.sign
            patch.setattr(Writer, "sign", lambda self: (commits.append(1), real(self))[1])
            try:
                found = kinds(in_a_list(here, persons, SOME)), charged(here, persons)
            except Exception:
                return
            assert found != (kinds(listed), charges) or len(commits) > 4


def test_a_good_list_has_few_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    commits, real = list[int](), Writer.sign
    with three() as (here, persons):
        monkeypatch.setattr(Writer, "sign", lambda self: (commits.append(1), real(self))[1])
        in_a_list(here, persons, SOME)
    assert len(commits) <= 4, "charges, answers, and those that came again"


def _of_the_population(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], int]:
    """(the answers of one list for the population, by a plan that reads them as rare events; the commits they took)"""
    commits, real = list[int](), Writer.sign
    declared = {"queries": 4000, "target": "population"}
    with site({"people": people(1_000)}, declared=declared) as here:
        gateway, ann = here.started.gateway, here.started.person(here.started.analyst)
        assert gateway.tables.session("people", ann).plan  # opened before the commits are counted
        monkeypatch.setattr(Writer, "sign", lambda self: (commits.append(1), real(self))[1])
        texts = [json.dumps({"kind": "fraction", "where": f"age > {i}", "confirm": True}) for i in range(20)]
        ready = [gateway.asking(ann, "people", question_of(text.encode())) for text in texts]
        taken = _all_taken([(steps, desk_steps.advance(steps, None), True) for steps in ready], here.ledger())
        assert verify(here.ledger()).answered == 20
    return [json.loads(one.result)["answers"][0] for one in taken if isinstance(one, desk_steps.Done)], len(
        commits
    )


def test_answers_about_the_population_are_charged_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each plan holds while no more was told than it was made for, so that it counts those before it in the list."""
    told, commits = _of_the_population(monkeypatch)
    assert len(told) == 20 and all(one["low"] <= one["value"] <= one["high"] for one in told)
    assert commits <= 4, "the first; those that come again; their answers"


def test_a_list_that_tells_nobody_of_those_before_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_work._Ahead, "told", lambda self, surveyed, session: surveyed)
    told, commits = _of_the_population(monkeypatch)
    assert len(told) == 20 and commits > 20


def test_what_is_refused_by_charges_that_are_yet_to_come_is_asked_again() -> None:
    """Somebody before it in the list may be refused; a refusal counts only by what is committed."""
    with three() as (here, persons):
        ready = asking(here, persons, ("cat", "age > 1", 4e-4, None))
        steps, survey = ready[0], desk_steps.advance(ready[0], None)
        moment = here.ledger().survey_all([survey])[0].moment
        spent = replace(moment, session=replace(moment.session, units=10**9, entries=1))
        again = desk_steps.advance(steps, Surveyed(False, spent, expected=True))
        assert again == survey
        with pytest.raises(BudgetError):
            desk_steps.advance(steps, Surveyed(False, spent))


def test_one_that_breaks_after_its_charge_breaks_no_other_and_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = session_module.release

    def breaks(planned: Any, *how: Any) -> Any:
        if "3" in planned.question:  # age > 2
            raise RuntimeError("a mistake")
        return real(planned, *how)

    asked: list[Asked] = [("ann", f"age > {i}", 1e-4, None) for i in range(6)]
    with three() as (here, persons):
        with monkeypatch.context() as patch:
            patch.setattr(session_module, "release", breaks)
            told = in_a_list(here, persons, asked)
        assert [type(one) for one in told] == [float, float, str, float, float, float]
        totals = here.totals()
        assert totals.entries == 6, "what broke was paid for"
        resumed = in_a_list(here, persons, asked)
        assert [one for place, one in enumerate(resumed) if place != 2] == [
            one for place, one in enumerate(told) if place != 2
        ]
        assert isinstance(resumed[2], float) and here.totals() == totals, "and it is not paid for again"


def test_a_ledger_that_cannot_be_read_takes_back_no_commit_of_the_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One question is surveyed while another is recorded: only the first hears of the failure."""
    real = Reader.asked

    def fails(self: Reader, questions: Any) -> Any:
        if here.totals().entries:
            raise LedgerError("the disk is away")
        return real(self, questions)

    with three() as (here, persons):
        asked: list[Asked] = [("ann", "age > 1", 1e-4, None), ("ann", "age > 1", 1e-4, None)]
        monkeypatch.setattr(Reader, "asked", fails)
        told = in_a_list(here, persons, asked)
        assert isinstance(told[0], float) and told[1] == "unavailable"
        monkeypatch.undo()
        assert in_a_list(here, persons, asked) == [told[0]] * 2 and here.totals().entries == 1
