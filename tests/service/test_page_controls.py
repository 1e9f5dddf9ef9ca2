"""The page does what the API does: every route has its control, every part of a question its field."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute
from gateway import labels

from holdfast.service import api
from holdfast.service.page import (
    answer_pages,
    board_pages,
    controls,
    entrance,
    kinds,
    live_attack,
    overview,
    owner,
    routes,
    taking_in,
)
from service.site import Site, site
from service.test_page import Window

PAGE = [
    route
    for part in (routes, entrance, answer_pages, board_pages, owner, taking_in, overview, live_attack)
    for route in part.router.routes
    if isinstance(route, APIRoute)
]


def _named(found: list[APIRoute]) -> set[str]:
    return {f"{way} {route.path}" for route in found for way in route.methods or ()}


def _uncontrolled(known: dict[str, tuple[str, str]]) -> set[str]:
    """Routes of the API without a control, and controls that are not on the page."""
    offered = _named([route for route in api.router.routes if isinstance(route, APIRoute)])
    return {*offered ^ known.keys(), *({ours for ours, _ in known.values()} - _named(PAGE))}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    """A gateway with a table for itself, a board and a holdout."""
    with site(declared={"target": "table"}) as started:
        started.started.register_board("churn")
        started.started.register_board("held", "holdout")
        yield started


def test_every_route_of_the_api_has_its_control() -> None:
    """The twins: a control forgotten, and one that leads nowhere."""
    assert _uncontrolled(controls.CONTROLS) == set()
    fewer = {api: ours for api, ours in controls.CONTROLS.items() if api != "GET /v1/deeds"}
    assert _uncontrolled(fewer) == {"GET /v1/deeds"}
    assert _uncontrolled(fewer | {"GET /v1/deeds": ("GET /nowhere", "")}) == {"GET /nowhere"}


def test_every_kind_of_question_has_its_form_and_every_part_its_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(kinds.KINDS) == set(kinds.FORMS) == {kind for group in kinds.GROUPS.values() for kind in group}
    # What depends on the rows is bought, never promised: the API refuses within= of it.
    bought = {(kind, "within") for kind in ("ratio", "correlation", "regression", "independence")}
    # A running mean is refused by the API too, and a correlation is the same with n and with n - 1.
    assert set(controls.without_field()) == {*bought, ("mean", "cumulative"), ("correlation", "sample")}
    assert "`independence` | `within`" in controls.table()
    monkeypatch.delitem(kinds.KINDS, "top")
    assert ("top", "k") in set(controls.without_field())


def test_every_field_of_a_body_is_in_its_form(here: Site) -> None:
    """The budget's three amounts are fields of their own; lists of predictions are files."""
    window = Window(here.client, here.started.owner)
    person = here.started.person(here.started.owner).id
    for model, path in controls.BODIES.items():
        shown = path if model is not controls.Budget else "/tables/{key}/analysts"
        place = re.sub("/(tokens|identity)$", "", shown).replace("/scores", "")
        key = person if "people" in place else "held" if "holdouts" in place else "people"
        text = window.see(place.replace("{key}", key))
        inputs = set(re.findall(r'name="(\w+)"', text))
        renamed = {"schema": "schema", "private": "privacy", "budget": "epsilon"}
        wanted = {field.alias or name for name, field in model.model_fields.items()}
        if model in (controls.Share, controls.Budget):
            wanted -= {"rho"}  # this table counts epsilon with delta, and shares do as their table does
        assert {renamed.get(name, name) for name in wanted} <= inputs, (model, path)


def test_every_kind_shows_its_own_fields_and_no_others() -> None:
    sheet = kinds.stylesheet()
    rule = next(line for line in sheet.splitlines() if line.startswith("#ask:has(:is(#kind-ratio)"))
    assert ".f-rank" in rule and ".f-divisor" not in rule and ".f-spend" not in rule
    assert "#kind-sample" in next(line for line in sheet.splitlines() if ".fine" in line)


def test_no_accuracy_is_proposed_where_the_plan_says_it_nor_one_that_nobody_can_have() -> None:
    """A first answer about the population of 20,000 rows can be within 0.0208: two in a hundred was refused."""
    assert kinds.amounts(20_000, planned=True) == {}
    assert kinds.amounts(20_000, planned=False)["fraction"] == 0.03
    assert kinds.amounts(20_000, planned=False)["count"] == 600.0
    assert kinds.amounts(10**6, planned=False)["fraction"] == 0.02
    for planned in (True, False):  # weights have no plan of their own
        needed = kinds.needed(planned=planned)
        assert "amount" in needed["weigh"] and ("amount" in needed["fraction"]) is not planned


def test_a_holdout_is_looked_at_checked_and_compared(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    truth = "\n".join(map(str, labels("held"))).encode()
    wrong = "\n".join(map(str, 1 - labels("held"))).encode()
    files = {"predictions": ("mine.csv", truth)}

    def look(more: dict[str, str], sent: dict[str, tuple[str, bytes]]) -> str:
        reply = window.send("/holdouts/held/scores", files=sent, **window.own("/holdouts/held"), **more)
        assert reply.status_code == 200, reply.text
        return str(reply.text)

    assert "Your look" in look({}, files)
    assert 'class="told">fine' in look({"train_score": "0.99"}, files)
    assert 'class="told">not fine' in look({"train_score": "0.1"}, files)
    compared = look({}, files | {"against": ("theirs.csv", wrong)})
    (value,) = re.findall(r'class="told">([-\d.]+)', compared)
    assert float(value) > 0.5
    half = "\n".join("1" if place % 2 else "0" for place in range(len(labels("held")))).encode()
    mixed = "\n".join(
        str(label if place % 2 else 1 - label) for place, label in enumerate(labels("held"))
    ).encode()
    weighed = look({"most_weight": "1"}, {"predictions": ("m.csv", mixed), "sample_weight": ("w.csv", half)})
    (value,) = re.findall(r'class="told">([-\d.]+)', weighed)
    assert float(value) > 0.7  # a half without weights
    refused = window.send("/holdouts/held/scores", **window.own("/holdouts/held"), guess="x")
    assert refused.status_code == 422 and 'value="x"' in refused.text


def test_the_overview_is_for_owners_and_auditors(here: Site) -> None:
    for token, status in (
        (here.started.owner, 200),
        (here.started.auditor, 200),
        (here.started.analyst, 403),
    ):
        window = Window(here.client, token)
        assert [window.status(path) for path in ("/overview", "/deeds.ndjson")] == [status, status]
    window = Window(here.client, here.started.owner)
    here.ask({"kind": "fraction", "where": "age > 71", "within": 0.1})
    text = window.see("/overview")
    assert "ann" in text and "1 answer<" in text and "fails" not in text
    assert "holdfast" in window.see("/metrics.txt")
    assert Window(here.client, here.started.auditor).status("/metrics.txt") == 403


def test_somebody_closes_their_own_session_and_no_other(here: Site) -> None:
    cem, dee = here.started.somebody("cem"), here.started.somebody("dee")
    window = Window(here.client, cem)
    window.send("/tables/people/close", **window.own("/tables/people/history"))
    assert "Your session is closed" in window.see("/tables/people/history")
    question = {"kind": "fraction", "where": "age > 44", "within": 0.1}
    assert here.ask(question, token=cem).status_code >= 400
    assert here.ask(question, token=dee).status_code == 200
