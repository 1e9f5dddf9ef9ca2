"""Rows 4, 17, 19 and 28 of docs/threats.md: repeats are free and equal, amounts are sane, caps hold."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from holdfast.ledger import SqliteLedger
from holdfast.planning.budget import budget
from holdfast.privacy.filter import UNITS
from holdfast.session import session as session_module
from service.site import Site, site

FRACTION: dict[str, object] = {"kind": "fraction", "where": "age > 40 AND income < 500", "rho": 1e-4}
SPELLINGS = [
    "age > 40 AND income < 500",
    "income < 500 and age > 40",
    "(age>40)   AND(income<500)",
    "40 < age AND NOT income >= 500",
    "age >= 41 AND income < 5e2",
    "NOT (age <= 40 OR income >= 500.0)",
]


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as made:
        yield made


def averaging(here: Site, times: int) -> tuple[int, int]:
    """How many values an analyst learns who asks one question over and over, and how many charges are made."""
    entries, values = here.totals().entries, set()
    for i in range(times):
        key = (None, "same", f"key {i}")[i % 3]
        where = SPELLINGS[0] if key == "same" else SPELLINGS[i % len(SPELLINGS)]
        reply = here.ask(FRACTION | {"where": where}, key=key)
        assert reply.status_code == 200
        values.add(reply.json()["answers"][0]["value"])
    return len(values), here.totals().entries - entries


def test_a_thousand_repeats_tell_one_value_and_cost_one_charge(here: Site) -> None:
    assert averaging(here, 1000) == (1, 1)


def test_a_looser_question_gets_the_better_answer_that_stands(here: Site) -> None:
    exact = {"kind": "fraction", "where": "age > 40", "within": 0.05}
    first = here.ask(exact).json()
    before = here.totals()
    for key in (None, "a", "a", "b"):
        told = here.ask(exact | {"within": 0.2}, key=key).json()
        assert told["repeated"] == [True]
        assert told["answers"] == [answer | {"within": 0.2} for answer in first["answers"]]
    assert here.totals() == before
    assert here.estimate(exact | {"within": 0.2}).json()["known"]


def test_the_number_of_rows_is_told_without_a_charge(here: Site) -> None:
    before = here.totals()
    for question in ({"kind": "count"}, {"kind": "sql", "text": "SELECT count(*), count(*) FROM t"}):
        plans = here.estimate(question).json()
        assert plans["cost"] == 0 and not plans["confirm"] and plans["affordable"]
        answers = here.ask(question).json()["answers"]
        assert {(one["low"], one["value"], one["high"]) for one in answers} == {(answers[0]["value"],) * 3}
    assert here.totals() == before
    both = here.ask({"kind": "sql", "text": "SELECT count(*), avg(age) FROM t", "rho": 1e-4}).json()[
        "answers"
    ]
    assert [one["mechanism"] for one in both] == ["public", "gaussian"]
    assert here.totals().entries == before.entries + 1


def test_a_session_that_remembers_no_question_is_caught(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: every question is new."""
    numbers = count()
    monkeypatch.setattr(session_module, "question_key", lambda *_: f"question {next(numbers)}")
    values, charges = averaging(here, 30)
    assert values > 1 and charges > 1


def test_one_key_gets_the_same_bytes_for_every_kind(here: Site) -> None:
    for question in (
        FRACTION,
        {"kind": "sample", "where": "age > 40"},
        {"kind": "select", "candidates": ["age > 40", "age > 80"], "epsilon": 0.01},
        {"kind": "above", "threshold": 0.5, "hits": 3, "rho": 0.01, "where": "age > 40"},
    ):
        replies = [here.ask(question, key=f"a {question['kind']}") for _ in range(20)]
        assert {reply.status_code for reply in replies} == {200}, replies[0].text
        assert len({reply.content for reply in replies}) == 1
    assert here.ask({"kind": "sample", "where": "age > 41"}, key="a sample").json()["code"] == "idempotency"


def test_the_same_key_of_two_analysts_is_two_keys(here: Site) -> None:
    other = here.started.somebody("bob")
    mine, theirs = (
        here.ask(FRACTION, key="k"),
        here.ask(FRACTION | {"where": "age > 2"}, key="k", token=other),
    )
    assert (mine.status_code, theirs.status_code) == (200, 200)
    assert mine.json()["answers"][0]["question"] != theirs.json()["answers"][0]["question"]


ODD = [
    "NaN",
    "Infinity",
    "-Infinity",
    "-1",
    "0",
    "-0.0",
    "5e-324",
    "1e-310",
    "1e308",
    "1e999",
    '"x"',
    "[]",
    "true",
]
PLACES = [
    ("fraction", '{"kind":"fraction","where":"age > 40","%s":%s}', ("within", "rho", "epsilon", "rows")),
    ("select", '{"kind":"select","candidates":["age > 40"],"%s":%s}', ("rho", "epsilon")),
    ("sparse", '{"kind":"sparse-vector","threshold":0.5,"hits":1,"%s":%s}', ("rho", "epsilon", "questions")),
    ("watch", '{"kind":"sparse-vector","rho":0.01,"hits":1,"%s":%s}', ("threshold",)),
    (
        "weights",
        '{"kind":"multiplicative-weights","columns":["smoker"],"queries":9,"%s":%s}',
        ("within", "rho"),
    ),
    ("quantile", '{"kind":"quantile","column":"age","rho":0.01,"%s":%s}', ("rank",)),
]


def raw(here: Site, method: str, path: str, body: str, token: str) -> tuple[int, str]:
    """Send a body that no JSON library would write."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    reply = here.client.request(method, f"/v1{path}", content=body, headers=headers)
    return reply.status_code, reply.json()["code"]


def test_odd_amounts_are_refused_and_nothing_is_reserved(here: Site) -> None:
    before, me = here.totals(), here.started
    for _, text, names in PLACES:
        for name in names:
            for odd in ODD:
                for end in ("ask", "estimate"):
                    body = text % (name, odd)
                    assert raw(here, "POST", f"/datasets/people/{end}", body, me.analyst) == (
                        422,
                        "invalid",
                    ), body
    assert here.totals() == before
    assert here.ask(FRACTION).status_code == 200, "the control: a sane amount passes the same door"
    assert here.totals() != before


def test_odd_budgets_are_refused_and_change_nothing(here: Site) -> None:
    me, person = here.started, here.started.person(here.started.analyst).id
    before = here.call("GET", "/datasets/people/budget").content
    for name in ("rho", "epsilon", "delta"):
        for odd in ODD:
            body = '{"epsilon":1,"delta":%s}' % odd if name == "delta" else '{"%s":%s}' % (name, odd)  # noqa: UP031
            status = raw(here, "PUT", f"/datasets/people/analysts/{person}", body, me.owner)
            assert status == (422, "invalid"), body
            table = '{"id":"new","path":"people.hf","budget":%s}' % body  # noqa: UP031
            assert raw(here, "POST", "/datasets", table, me.owner) == (422, "invalid"), body
    assert here.call("GET", "/datasets/people/budget").content == before


CAP = {"epsilon": 4.0, "delta": 1e-6}
COST = 0.02


def units(amount: dict[str, float]) -> int:
    """What a budget is in the ledger."""
    return budget(epsilon=amount["epsilon"], delta=amount["delta"]).filter.limit_units


def spree(here: Site, people: int, questions: int) -> tuple[list[str], int]:
    """Everybody, each with all of the table's budget as a share, asks at once; what became of each question, and
    what the table has spent."""
    tokens = [here.started.somebody(f"analyst {i}", CAP) for i in range(people)]

    def asking(place: int) -> list[str]:
        codes = []
        for i in range(questions):
            where = f"age > 40 AND income < {100 + place * questions + i}"
            question = {"kind": "fraction", "where": where, "rho": COST, "confirm": True}
            reply = here.ask(question, token=tokens[place])
            codes.append("answered" if reply.status_code == 200 else reply.json()["code"])
        return codes

    with ThreadPoolExecutor(8) as pool:
        codes = [code for part in pool.map(asking, range(people)) for code in part]
    return codes, here.totals().units


def test_fifty_analysts_together_cannot_pass_the_cap() -> None:
    limit = units(CAP)
    with site(budget=CAP, share=CAP) as here:
        codes, spent = spree(here, 50, 2)
        assert spent <= limit
        assert codes.count("answered") == limit // int(COST * UNITS) < len(codes)
        assert set(codes) == {"answered", "budget"}
        assert sum(here.ledger().totals(one.name).units for one in here.ledger().accounts()) == spent


def test_shares_without_a_cap_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: one budget for each user and none for the table, as in other gateways."""
    monkeypatch.setattr(SqliteLedger, "set_limit", lambda self, account: None)
    with site(budget=CAP, share=CAP) as here:
        codes, spent = spree(here, 50, 2)
        assert set(codes) == {"answered"} and spent > units(CAP)


def test_one_analyst_cannot_burn_the_budget_of_the_others() -> None:
    share = {"epsilon": 1.0, "delta": 1e-6}
    with site(share=share) as here:
        other = here.started.somebody("bob", share)
        left = here.call("GET", "/datasets/people/budget", token=other).json()["remaining"]
        large = {
            "kind": "fraction",
            "where": "age > 40",
            "rho": 0.9 * units(share) / UNITS,
        }
        before = here.totals()
        for _ in range(20):
            assert here.ask(large).json()["code"] == "confirm"
        assert here.totals() == before, "a careless question is asked back, and nothing is reserved"
        burnt = [here.ask(large | {"where": f"age > {i}", "confirm": True}) for i in range(20)]
        assert [reply.status_code for reply in burnt] == [200] + [402] * 19
        assert here.ledger().totals(here.started.person(here.started.analyst).id).units <= units(share)
        assert here.call("GET", "/datasets/people/budget", token=other).json()["remaining"] == left
        assert here.ask(FRACTION, token=other).status_code == 200


def test_a_gateway_that_asks_nothing_back_is_caught() -> None:
    """The broken twin: with `confirm` at the whole budget the first careless question is answered."""
    share = {"epsilon": 1.0, "delta": 1e-6}
    with site(share=share, confirm=1.0) as here:
        large = {
            "kind": "fraction",
            "where": "age > 40",
            "rho": 0.9 * units(share) / UNITS,
        }
        assert here.ask(large).status_code == 200
