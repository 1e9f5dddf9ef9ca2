"""An idempotency key belongs to one question, and is taken before anything is charged for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gateway import people

from holdfast.desk.steps import Done, Next, advance
from holdfast.errors import LedgerError
from holdfast.ledger import Commit, Ledger, Reserve, Survey
from holdfast.ledger.chained import ChainedLedger
from holdfast.service.catalog import Catalog
from holdfast.service.fast_route import question_of
from holdfast.service.problem import Problem
from service.at_once import DATABASES, Pair, Request, code_of, two_gateways
from service.site import Site, site

MANY = 32
KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "fraction": lambda n: {"kind": "fraction", "where": f"age > {n}", "rho": 1e-4},
    "mean": lambda n: {"kind": "mean", "column": "income", "where": f"age > {n}", "rho": 1e-4},
    "sample": lambda n: {"kind": "sample", "where": f"age > {n}"},
}
"""Answered in steps in the event loop, in steps in a thread, and at once in a thread with a fresh draw each time."""


@pytest.fixture(scope="module", params=DATABASES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with two_gateways(request.param, {"people": people(2_000)}) as made:
        made.to_each(_question(made, KINDS["fraction"](0), None))  # opens the session in both
        yield made


def _question(pair: Pair, body: object, key: str | None) -> Request:
    return Request("/datasets/people/ask", body, pair.started.analyst, key)


def _charges(pair: Pair) -> int:
    return pair.started.gateway.tables.ledger("people").totals().entries


@pytest.mark.parametrize("kind", KINDS)
def test_many_questions_at_once_under_one_key_are_one_charge(pair: Pair, kind: str) -> None:
    before, questions = _charges(pair), [KINDS[kind](10 + number) for number in range(MANY)]
    replies = pair.at_once([_question(pair, question, f"{kind} all differ") for question in questions])
    assert Counter(map(code_of, replies)) == {"200": 1, "idempotency": MANY - 1}
    assert _charges(pair) == before + 1
    winner = next(n for n, reply in enumerate(replies) if reply[0] == 200)
    assert pair.at_once([_question(pair, questions[winner], f"{kind} all differ")]) == [replies[winner]]
    assert _charges(pair) == before + 1, "a repeat is free"


@pytest.mark.parametrize("kind", KINDS)
def test_one_question_many_times_at_once_under_one_key_has_one_reply(pair: Pair, kind: str) -> None:
    before, same = _charges(pair), [KINDS[kind](50)] * (MANY - 8)
    other = [KINDS[kind](60)] * 8
    replies = pair.at_once([_question(pair, question, f"{kind} some differ") for question in same + other])
    answered = [reply for reply in replies if reply[0] == 200]
    assert len(answered) in (len(same), len(other))
    assert len({text for _, text in answered}) == 1
    assert Counter(map(code_of, replies))["idempotency"] == MANY - len(answered)
    assert _charges(pair) == before + 1


def _next_commit(steps: Any, ledger: Ledger) -> Commit | Done[str]:
    """What a question does next that anybody else could notice."""
    step = advance(steps, None)
    while isinstance(step, Next | Survey):
        step = advance(steps, None if isinstance(step, Next) else step.put(ledger))
    return step


def second_is_refused(here: Site) -> bool:
    """Whether a question is refused whose key another one has, which waits to be charged."""
    gateway, analyst = here.started.gateway, here.started.person(here.started.analyst)
    first, second = (
        gateway.asking(analyst, "people", question_of(json.dumps(KINDS["fraction"](n)).encode()), "k")
        for n in (1, 2)
    )
    assert isinstance(_next_commit(first, here.ledger()), Reserve)
    try:
        return not isinstance(_next_commit(second, here.ledger()), Reserve)
    except Problem as refusal:
        return refusal.code == "idempotency"


def test_a_key_is_taken_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    with site({"people": people(2_000)}) as here:
        assert second_is_refused(here)
    monkeypatch.setattr(Catalog, "claim", lambda self, person, place, key, digest: (digest, ""))
    with site({"people": people(2_000)}) as here:
        assert not second_is_refused(here), "the broken twin: a key that is looked at and not taken"


def test_a_key_whose_question_broke_before_the_charge_waits_for_that_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: object, commits: object) -> None:
        raise LedgerError("the disk is full")

    with site({"people": people(2_000)}) as here:
        assert here.ask(KINDS["fraction"](0)).status_code == 200
        before = here.totals()
        with monkeypatch.context() as patch:
            patch.setattr(ChainedLedger, "commit_all", broken)
            assert here.ask(KINDS["fraction"](1), key="k").json()["code"] == "unavailable"
        assert here.ask(KINDS["fraction"](2), key="k").json()["code"] == "idempotency"
        assert here.totals() == before
        first = here.ask(KINDS["fraction"](1), key="k")
        assert (first.status_code, here.totals().entries) == (200, before.entries + 1)
        assert here.ask(KINDS["fraction"](1), key="k").content == first.content


def test_a_key_that_was_forgotten_meanwhile_takes_no_reply_from_another_question() -> None:
    """Its question was charged: it is answered, and what the key has now stays."""
    with site({"people": people(2_000)}) as here:
        catalog = here.started.gateway.catalog
        assert catalog.claim("ann", "table people", "k", "one") == ("one", "")
        with catalog._replies.write():
            catalog._replies.rows("DELETE FROM replies")
        assert catalog.claim("ann", "table people", "k", "other") == ("other", "")
        assert catalog.keep_reply("ann", "table people", "k", "one", "its own") == "its own"
        assert catalog.keep_reply("ann", "table people", "k", "other", "first") == "first"
        assert catalog.keep_reply("ann", "table people", "k", "other", "second") == "first"
        assert catalog.claim("ann", "table people", "k", "one") == ("other", "first")
