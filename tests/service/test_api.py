"""The names that callers give: printable, or refused before anything is charged, whatever database keeps them."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gateway import labels, people

from service.process import database_of
from service.site import Site, site

UNPRINTABLE = ("a\0b", "\0", "two\nlines", "\x1b[2J", "right\u202eleft", "\u2028", "\x7f", "\ud800")
SHARE = {"rho": 1.0}
VECTOR = {"name": "watch", "threshold": 0.5, "hits": 1, "rho": 1e-4}
WEIGHTS = {"name": "weights", "columns": ["smoker"], "queries": 10, "rho": 0.01}
ASK = "/datasets/people/ask"
GOOD: dict[str, tuple[str, str, dict[str, Any]]] = {
    "person": ("owner", "/people", {"name": "bea", "scope": "analyst", "team": "kelp"}),
    "token": ("owner", "/people/PERSON/tokens", {"label": "laptop"}),
    "table": ("owner", "/datasets", {"id": "more", "name": "More", "path": "more.hf", "budget": SHARE}),
    "board": ("owner", "/leaderboards", {"id": "b", "name": "B", "labels": "b.npy", "queries": 9}),
    "holdout": ("owner", "/holdouts", {"id": "h", "name": "H", "labels": "h.npy", "queries": 9}),
    "sparse-vector": ("analyst", ASK, {"kind": "sparse-vector"} | VECTOR),
    "above": ("analyst", ASK, {"kind": "above", "where": "age > 9"} | VECTOR | {"name": "another"}),
    "weights": ("analyst", ASK, {"kind": "multiplicative-weights"} | WEIGHTS),
    "weigh": ("analyst", ASK, {"kind": "weigh", "where": "smoker = 'yes'"} | WEIGHTS | {"name": "more"}),
    "fraction": ("analyst", ASK, {"kind": "fraction", "where": "age > 9", "by": "smoker", "rho": 1e-4}),
    "select": ("analyst", ASK, {"kind": "select", "candidates": ["age > 9"], "rho": 1e-4}),
    "sql": ("analyst", ASK, {"kind": "sql", "text": "SELECT count(*) FROM t", "rho": 1e-4}),
}
"""A good call for everything that has a name, and for some that have other texts."""
NAMES = ("name", "team", "label")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def here(request: pytest.FixtureRequest) -> Iterator[Site]:
    url = database_of(request.param).get("HOLDFAST_DATABASE")
    with site(database=url) as made:
        root = made.started.settings.roots[0]
        people(500).save(root / "more.hf")
        for key in "bh":
            np.save(root / f"{key}.npy", labels(key))
        yield made


def _send(here: Site, what: str, body: object, key: bytes = b"key") -> Any:
    """One call, written in ASCII: JSON can say what no encoding can."""
    role, path, _ = GOOD[what]
    place = path.replace("PERSON", here.started.person(here.started.analyst).id)
    token = getattr(here.started, role).encode()
    head = [(b"authorization", b"Bearer " + token), (b"content-type", b"application/json")]
    fresh = key if key != b"key" else f"key {next(_keys)}".encode()
    return here.client.post(
        f"/v1{place}", content=json.dumps(body), headers=[*head, (b"idempotency-key", fresh)]
    )


_keys = itertools.count()


def _texts(body: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts of a body are."""
    parts = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, part in parts:
        yield from [(*place, key)] if isinstance(part, str) else _texts(part, (*place, key))


def _with(body: Any, place: tuple[Any, ...], text: str) -> Any:
    changed = copy.deepcopy(body)
    part = changed
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = text
    return changed


def _remembered(here: Site) -> tuple[Any, ...]:
    """Everything that a refused call must leave as it was."""
    catalog, ledger = here.started.gateway.catalog, here.ledger()
    everybody = catalog.people()
    return (
        ledger.totals(), everybody, [catalog.tokens(person.id) for person in everybody],
        dict(catalog.datasets()), dict(catalog.boards()),
    )  # fmt: skip


@pytest.mark.parametrize("what", GOOD)
def test_a_name_that_is_not_printable_is_refused_before_anything_is_charged(here: Site, what: str) -> None:
    """Names in every field that has one; a NUL also in every other text."""
    body, before = GOOD[what][2], _remembered(here)
    for place in _texts(body):
        for text in UNPRINTABLE if place[-1] in NAMES else ("a\0b",):
            reply = _send(here, what, _with(body, place, text))
            assert reply.status_code == 422, (place, text, reply.text)
            assert place[-1] not in NAMES or text not in reply.json()["detail"]
    assert _remembered(here) == before


@pytest.mark.parametrize("what", GOOD)
def test_the_same_call_with_a_good_name_is_answered(here: Site, what: str) -> None:
    """The control. Letters of every script are printable."""
    body = GOOD[what][2]
    for name in set(NAMES) & set(body):
        body = body | {name: "Zoë Ωmega 数"}
    reply = _send(here, what, body)
    assert reply.status_code in (200, 201), reply.text


def test_a_key_that_is_not_printable_is_refused(here: Site) -> None:
    """What travels in a header; the client library and servers refuse some of these already."""
    before = here.totals()
    for key in (b"a\x7fb", b"\xa0", b"a\0b", b""):
        assert _send(here, "sql", GOOD["sql"][2], key).status_code == 422, key
    assert here.totals() == before


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        ("POST", "/people", '{"name": "eve", "name": "dan"}'),
        ("POST", "/people", '{"name": "eve", "scope": "analyst", "scope": "owner"}'),
        ("PUT", "/datasets/people/budget", '{"epsilon": 1, "delta": 1e-6, "epsilon": 99}'),
        ("POST", "/leaderboards/twice/submissions", '{"predictions": [0], "predictions": [1]}'),
        ("POST", "/people", '{"name": "nul\\u0000"}'),
        ("POST", "/people", '{"name": "bell\\u0007"}'),
        ("POST", "/people", '{"name": "right-to-left \\u202e"}'),
    ],
)
def test_a_name_twice_or_unreadable_is_refused_and_nothing_happens(method: str, path: str, text: str) -> None:
    with site({"people": people(1_000)}) as here:
        here.started.register_board("twice")
        before = len(list(here.started.gateway.catalog.deeds.all()))
        sent = {"Authorization": f"Bearer {here.started.owner}", "Content-Type": "application/json"}
        reply = here.client.request(method, f"/v1{path}", content=text, headers=sent)
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid"), reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        assert len(list(here.started.gateway.catalog.deeds.all())) == before
