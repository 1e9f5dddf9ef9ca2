"""A condition that comes with an opening is read before the opening is charged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gateway import people, prepared, running

import holdfast as hf
from holdfast.planning.meaning import by_condition
from holdfast.planning.question import Above, Fraction, Question, Select, Weigh
from holdfast.privacy.filter import UNITS
from holdfast.query import parse
from holdfast.service import answering
from holdfast.session import above_threshold
from service.site import site

ABOVE, WEIGH = (
    {"threshold": 0.5, "hits": 1, "epsilon": 0.1, "confirm": True},
    {"columns": ["smoker"], "queries": 5, "rho": 0.05, "confirm": True},
)


WRONG = [
    Above(**ABOVE, where="age >"),
    Above(**ABOVE, where="pets > 1"),
    Weigh(**WEIGH, where="smoker ="),
    Weigh(**WEIGH, where="age > 5"),  # a column that the weights do not have
]


def charges_of_wrong_conditions() -> int:
    """How many charges are left by openings that come with a condition which cannot be read."""
    with prepared({"people": people(5000)}) as started:
        for number, wrong in enumerate(WRONG):
            named = replace(wrong, name=f"number {number}")
            with pytest.raises(hf.HoldfastError):
                started.gateway.ask(started.person(started.analyst), "people", named)
        return started.gateway.tables.ledger("people").totals().entries


def test_a_condition_is_read_before_the_opening_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert charges_of_wrong_conditions() == 0
    monkeypatch.setattr(answering, "parse_predicate", lambda *read: None)
    monkeypatch.setattr(answering, "region", lambda *read: None)
    assert charges_of_wrong_conditions() == len(WRONG)


def cost(asked: Question, session: hf.Session) -> float:
    return answering.answering(asked, session, "people").plans()[0].cost


def test_an_estimate_reads_the_condition_too() -> None:
    session = people(5000).session(rho=50.0)
    for wrong in WRONG:
        with pytest.raises(hf.HoldfastError):
            answering.answering(wrong, session, "people")
    assert cost(Above(**ABOVE, where="age > 5"), session) > 0
    assert cost(Weigh(**WEIGH, where="smoker = 'yes'"), session) > 0


ONCE: dict[Question, list[str]] = {
    Fraction(where="age > 3", rho=0.01): ["age > 3"],
    Select(candidates=("age > 4", "smoker = 'yes'"), rho=0.01): ["age > 4", "smoker = 'yes'"],
    Above(**ABOVE, where="age > 5"): ["age > 5"],
    Weigh(**WEIGH | {"columns": ("smoker",)}, where="smoker = 'no'"): ["smoker = 'no'"],
}


def parsed(monkeypatch: pytest.MonkeyPatch) -> dict[Question, list[str]]:
    """What is parsed for each question on its way from the gateway's door to its answer."""
    found: dict[Question, list[str]] = {}
    parsing = parse._remembered
    by_condition.cache_clear()  # questions that others have asked here are known
    with prepared({"people": people(5000)}) as started, monkeypatch.context() as patch:
        for asked in ONCE:
            texts: list[str] = []

            def noted(text: str, *more: Any, texts: list[str] = texts) -> Any:
                texts.append(text)
                return parsing(text, *more)

            patch.setattr(parse, "_remembered", noted)
            started.gateway.ask(started.person(started.analyst), "people", asked)
            found[asked] = texts
    return found


def test_a_question_is_parsed_once_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed(monkeypatch) == ONCE
    again = lambda where, schema: parse.parse_predicate(str(where), schema)  # noqa: E731  (the twin)
    monkeypatch.setattr(above_threshold, "condition_of", again)
    assert parsed(monkeypatch) != ONCE


def test_keys_are_discovered_over_the_gateway_once_for_everybody() -> None:
    """Threat 13 over HTTP: a key that one row alone has is not among them, and by= works from then on for nothing."""
    texts = np.array(["JFK"] * 3000 + ["LAX"] * 2000 + [f"one {place}" for place in range(40)], dtype=object)
    flights = hf.open(
        {"dest": texts, "delay": np.arange(5040) % 9}, hf.Schema(dest=hf.Text(8), delay=hf.Integer(0, 9))
    )
    by = {"kind": "count", "by": "dest", "rho": 1e-3}
    with site({"people": flights}, declared={"target": "table"}) as here:
        another = here.started.somebody("bob")
        refused = here.ask(by)
        assert refused.status_code == 422 and "session.keys" in refused.json()["detail"]
        planned = here.estimate({"kind": "keys", "column": "dest"}).json()["plans"][0]
        before = here.totals()
        assert before.entries == 0
        told = here.ask({"kind": "keys", "column": "dest"}).json()
        assert told["labels"] == ["JFK", "LAX"]
        after = here.totals()
        assert after.units / UNITS == pytest.approx(planned["cost"]) and after.delta > 0
        assert here.ask({"kind": "keys", "column": "dest"}, token=another).json() == told
        assert here.totals() == after
        for token in (None, another):
            assert here.ask(by, token=token).json()["answers"][0]["labels"] == ["JFK", "LAX"]
        for body in ({"column": "delay"}, {"column": "nowhere"}, {"column": "dest", "rho": 1e8}):
            assert here.ask({"kind": "keys"} | body).status_code in (402, 403, 409, 422)


def test_a_plain_group_by_would_show_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without the threshold the texts of single rows leave."""
    from holdfast.session import keys as room

    texts = np.array(["JFK"] * 500 + [f"one {place}" for place in range(5)], dtype=object)
    flights = hf.open({"dest": texts}, hf.Schema(dest=hf.Text(8)))
    monkeypatch.setattr(room, "shown_keys", lambda weights, event: np.flatnonzero(weights))
    with site({"people": flights}, declared={"target": "table"}) as here:
        assert len(here.ask({"kind": "keys", "column": "dest"}).json()["labels"]) == 6


def test_a_client_discovers_keys_as_in_process() -> None:
    texts = np.array(["JFK", "LAX"], dtype=object)[np.arange(4000) % 2]
    flights = hf.open(
        {"dest": texts, "delay": np.arange(4000) % 9}, hf.Schema(dest=hf.Text(8), delay=hf.Integer(0, 9))
    )
    with running({"people": flights}, declared={"target": "table"}) as started:
        remote = hf.connect(started.url, started.analyst).table("people").session()
        price = remote.estimate.keys("dest")
        assert remote.histogram("dest", rho=1e-3).labels == ("JFK", "LAX")  # by= discovers first
        assert float(remote.spent) == pytest.approx(price.cost + 1e-3, rel=1e-3)
        found = remote.keys("dest")
        assert tuple(found) == ("JFK", "LAX") and remote.estimate.keys("dest").cost == 0
