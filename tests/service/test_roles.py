"""Rows 21 and 22 of docs/threats.md: who may do what, on every route; and no route takes code."""

from __future__ import annotations

import ast
import hmac
import inspect
import json
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from gateway import LABELS

from holdfast.service import auth
from holdfast.service.catalog import Catalog, Person
from holdfast.service.gateway import Gateway
from service.site import Reply, Site, site

EVERYBODY = frozenset({"owner", "analyst", "auditor"})
OWNER, READERS, ASKERS = (
    frozenset({"owner"}),
    frozenset({"owner", "auditor"}),
    frozenset({"owner", "analyst"}),
)
GUESS = {"predictions": [0] * LABELS}
QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}


@dataclass(frozen=True)
class Entry:
    """A route: an example of its path and body, and whose tokens it takes. `table` routes are for members only."""

    path: str
    takes: frozenset[str]
    body: object = None
    table: bool = False


ROUTES = {
    "GET /v1/health": Entry("/health", EVERYBODY | {"nobody"}),
    "GET /v1/ready": Entry("/ready", EVERYBODY | {"nobody"}),
    "GET /v1/me": Entry("/me", EVERYBODY),
    "GET /v1/datasets": Entry("/datasets", EVERYBODY),
    "POST /v1/datasets": Entry("/datasets", OWNER, {"id": "x", "path": "nowhere", "budget": {"rho": 1}}),
    "GET /v1/datasets/{dataset}": Entry("/datasets/people", EVERYBODY, table=True),
    "GET /v1/datasets/{dataset}/analysts": Entry("/datasets/people/analysts", READERS),
    "PUT /v1/datasets/{dataset}/analysts/{person}": Entry(
        "/datasets/people/analysts/nobody", OWNER, {"rho": 1}
    ),
    "DELETE /v1/datasets/{dataset}/analysts/{person}": Entry("/datasets/people/analysts/nobody", OWNER),
    "DELETE /v1/datasets/{dataset}/members/{person}": Entry("/datasets/people/members/nobody", OWNER),
    "DELETE /v1/datasets/{dataset}": Entry("/datasets/unknown", OWNER),
    "PUT /v1/datasets/{dataset}/budget": Entry("/datasets/people/budget", OWNER, {"rho": 1e9}),
    "POST /v1/datasets/{dataset}/estimate": Entry("/datasets/people/estimate", ASKERS, QUESTION, table=True),
    "POST /v1/datasets/{dataset}/ask": Entry("/datasets/people/ask", ASKERS, QUESTION, table=True),
    "GET /v1/datasets/{dataset}/answers": Entry("/datasets/people/answers", ASKERS, table=True),
    "GET /v1/datasets/{dataset}/budget": Entry("/datasets/people/budget", EVERYBODY, table=True),
    "GET /v1/datasets/{dataset}/meter": Entry("/datasets/people/meter", ASKERS, table=True),
    "GET /v1/datasets/{dataset}/ledger": Entry("/datasets/people/ledger", READERS),
    "GET /v1/people": Entry("/people", OWNER),
    "POST /v1/people": Entry("/people", OWNER, {"name": " "}),
    "GET /v1/people/{person}/tokens": Entry("/people/somebody/tokens", OWNER),
    "POST /v1/people/{person}/tokens": Entry("/people/somebody/tokens", OWNER, {}),
    "DELETE /v1/people/{person}/tokens": Entry("/people/somebody/tokens", OWNER),
    "GET /v1/people/{person}/identity": Entry("/people/somebody/identity", OWNER),
    "PUT /v1/people/{person}/identity": Entry("/people/somebody/identity", OWNER, {"identity": "a@x.org"}),
    "DELETE /v1/people/{person}/identity": Entry("/people/somebody/identity", OWNER),
    "DELETE /v1/people/{person}": Entry("/people/somebody", OWNER),
    "GET /v1/deeds": Entry("/deeds", READERS),
    "DELETE /v1/tokens/{token}": Entry("/tokens/000000000000", OWNER),
    "GET /v1/leaderboards": Entry("/leaderboards", EVERYBODY),
    "POST /v1/leaderboards": Entry("/leaderboards", OWNER, {"id": "x", "labels": "nowhere", "queries": 1}),
    "GET /v1/leaderboards/{board}": Entry("/leaderboards/digits", EVERYBODY),
    "DELETE /v1/leaderboards/{board}": Entry("/leaderboards/unknown", OWNER),
    "POST /v1/leaderboards/{board}/submissions": Entry("/leaderboards/digits/submissions", ASKERS, GUESS),
    "GET /v1/holdouts": Entry("/holdouts", EVERYBODY),
    "POST /v1/holdouts": Entry("/holdouts", OWNER, {"id": "x", "labels": "nowhere", "queries": 1}),
    "GET /v1/holdouts/{board}": Entry("/holdouts/held", EVERYBODY),
    "DELETE /v1/holdouts/{board}": Entry("/holdouts/unknown", OWNER),
    "POST /v1/holdouts/{board}/scores": Entry("/holdouts/held/scores", ASKERS, GUESS),
    "GET /v1/metrics": Entry("/metrics", OWNER),
}
HIDDEN = {"DELETE /v1/tokens/{token}"}
"""Routes that do not tell whoever may not use them whether there is such a thing."""


def routes(app: FastAPI) -> set[str]:
    """Every route of the API, by method and pattern."""
    return {
        f"{method} {route.path}"
        for route in walk(app.routes)
        if route.path.startswith("/v1")
        for method in (route.methods or set()) - {"HEAD"}
    }


def walk(routes: Iterable[object]) -> Iterator[APIRoute]:
    """All routes, out of routers within routers."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        yield from walk(getattr(getattr(route, "original_router", None), "routes", []))


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as made:
        made.started.register_board("digits")
        made.started.register_board("held", "holdout")
        gateway, owner = made.started.gateway, made.started.person(made.started.owner)
        gateway.admit(owner, "people", owner.id, {"epsilon": 1.0, "delta": 1e-6})
        yield made


def send(here: Site, route: str, token: str | None, headers: dict[str, str] | None = None) -> Reply:
    """A route's example, with a token or none."""
    entry, method = ROUTES[route], route.split()[0]
    sent = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return here.client.request(method, f"/v1{entry.path}", json=entry.body, headers=sent | (headers or {}))


def test_every_route_is_in_the_table(here: Site) -> None:
    assert routes(here.started.app) == set(ROUTES)


def test_a_new_route_is_noticed(here: Site) -> None:
    """The broken twin: somebody adds a route and forgets this table."""
    app = FastAPI()

    @app.get("/v1/new")
    def new() -> None: ...

    assert routes(app) == {"GET /v1/new"}
    assert not routes(app) <= set(ROUTES)


def open_to(here: Site, tokens: dict[str, str | None]) -> dict[str, set[str]]:
    """For each route, whose tokens it takes: neither 401 nor 403 nor (where that hides something) 404."""
    taken = {}
    for route in ROUTES:
        replies = {who: send(here, route, token) for who, token in tokens.items()}
        refused = {401, 403} | ({404} if route in HIDDEN or ROUTES[route].table else set())
        # A missing thing is told to whoever may know: the owner's example of such a route has none.
        taken[route] = {
            who
            for who, reply in replies.items()
            if reply.status_code not in refused or (who == "owner" and reply.status_code == 404)
        }
        assert all(reply.status_code < 500 for reply in replies.values()), route
    return taken


def matrix_is_kept(here: Site) -> bool:
    """Whether every route takes exactly the tokens that the table says, and no others."""
    stranger = here.started.somebody(f"stranger {secrets.token_hex(4)}", {})
    tokens = {
        "owner": here.started.owner, "analyst": here.started.analyst, "auditor": here.started.auditor,
        "nobody": None, "stranger": stranger,
    }  # fmt: skip
    taken = open_to(here, tokens)
    for route, entry in ROUTES.items():
        wanted = set(entry.takes)
        if "analyst" in wanted and not entry.table:
            wanted.add("stranger")
        if taken[route] != wanted:
            return False
    return True


def test_every_route_takes_its_roles_and_no_others(here: Site) -> None:
    assert matrix_is_kept(here)


def test_a_gateway_that_forgets_scopes_is_caught(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: everybody is an owner."""
    who = Gateway.who

    def promoted(self: Gateway, token: str) -> Person | None:
        person = who(self, token)
        return None if person is None else Person(person.id, person.name, "owner", person.team)

    monkeypatch.setattr(Gateway, "who", promoted)
    assert not matrix_is_kept(here)


def test_a_gateway_that_forgets_members_is_caught(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: every analyst is a member of every table."""
    monkeypatch.setattr(Catalog, "member", lambda *_: {"epsilon": 1.0, "delta": 1e-6})
    assert not matrix_is_kept(here)


def bad_credentials(here: Site) -> dict[str, dict[str, str]]:
    """Headers which are nobody's."""
    gateway, owner = here.started.gateway, here.started.person(here.started.owner)
    good = here.started.owner
    revoked, expired = (gateway.issue(owner, owner.id, "", days) for days in (None, 1e-9))
    revoked_id = auth.token_id(revoked)
    assert revoked_id is not None
    gateway.revoke(owner, revoked_id)
    time.sleep(1e-3)
    other = good[:-1] + ("0" if good[-1] != "0" else "1")
    tokens = {
        "empty": "", "malformed": "hf_", "cut": good[:-1], "longer": good + "0", "upper case": good.upper(),
        "wrong secret": other, "unknown": f"hf_{secrets.token_hex(6)}_{secrets.token_hex(32)}",
        "revoked": revoked, "expired": expired, "sql": "hf_' OR 1=1 --_" + "0" * 64, "twice": f"{good} {good}",
        "no secret": good.rsplit("_", 1)[0], "digest": f"{good.rsplit('_', 1)[0]}_{auth.digest(good[-64:])}",
    }  # fmt: skip
    headers = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
    return headers | {
        "missing": {},
        "basic": {"Authorization": f"Basic {good}"},
        "bare": {"Authorization": good},
        "another header": {"X-Token": good, "X-User": owner.id, "Remote-User": "owner"},
        "a cookie": {"Cookie": f"token={good}; Authorization={good}"},
    }


def taken_by(here: Site) -> set[tuple[str, str]]:
    """Routes that take a credential which is nobody's."""
    headers, found = bad_credentials(here), set()
    for route, entry in ROUTES.items():
        if "nobody" in entry.takes:
            continue
        for name, sent in headers.items():
            reply = send(here, route, None, sent)
            if reply.status_code != 401 or reply.json()["code"] != "unauthorized":
                found.add((route, name))
    return found


def test_no_route_takes_a_credential_that_is_nobodys(here: Site) -> None:
    before = here.totals()
    assert not taken_by(here)
    assert here.totals() == before


def test_a_gateway_that_forgets_expiry_is_caught(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: a token is a token for ever."""

    def careless(catalog: Catalog, text: str) -> Person | None:
        key = auth.token_id(text)
        known = None if key is None else catalog.token(key)
        same = known is not None and known[0].digest == auth.digest(text[-64:])
        return known[1] if known is not None and same else None

    monkeypatch.setattr(auth, "who", careless)
    assert {name for _, name in taken_by(here)} == {"revoked", "expired"}


def test_the_tokens_themselves_are_not_kept(here: Site) -> None:
    files = [path for path in here.started.settings.folder.rglob("*") if path.is_file()]
    secret, key = here.started.analyst[-64:], here.started.analyst[3:15]
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    assert [path for path in files if key.encode() in path.read_bytes()], (
        "the control: the public part is found"
    )


OPEN_PAGES = {
    "/sign-in",
    "/sign-in/provider",
    "/sign-in/return",
    "/sign-out",
    "/demo",
    "/demo/whole",
    "/demo/run",
    "/kinds.css",
}
"""Pages for whoever comes: they show nothing of a table or a person."""


def test_no_other_page_is_shown_to_nobody(here: Site) -> None:
    pages = [route for route in walk(here.started.app.routes) if not route.path.startswith("/v1")]
    for route in pages:
        for method in sorted(route.methods or ()) if route.path not in OPEN_PAGES else ():
            reply = here.client.request(
                method,
                route.path.format(key="people", token="x", person="x", mark=24 * "0"),
                follow_redirects=False,
            )
            assert reply.status_code in (303, 401, 403), f"{method} {route.path}"
    assert pages and here.client.get("/sign-in").status_code == 200, "the control"


def test_secrets_are_compared_in_constant_time(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is sent, one comparison of whole digests is made; and no `==` stands between secrets."""
    calls = []
    compare = hmac.compare_digest

    def counted(first: str, second: str) -> bool:
        calls.append((len(first), len(second)))
        return compare(first, second)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for headers in bad_credentials(here).values():
        here.client.get("/v1/me", headers=headers)
    here.call("GET", "/me")
    assert len(calls) > 10 and set(calls) == {(64, 64)}
    assert not secrets_compared(inspect.getsource(auth.who))
    assert secrets_compared("def who():\n    return token.digest == digest(secret)"), "the broken twin"


def secrets_compared(source: str) -> bool:
    """Whether a digest or a secret is compared by an operator."""
    return any(
        isinstance(node, ast.Compare) and ("digest" in ast.unparse(node) or "secret" in ast.unparse(node))
        for node in ast.walk(ast.parse(source))
    )


def test_another_analysts_things_are_not_seen(here: Site) -> None:
    """Answers, tokens and revocations are one's own; what is not yours reads as what is not there."""
    bob = here.started.somebody("bob")
    ann, bob_id = here.started.person(here.started.analyst).id, here.started.person(bob).id
    assert here.ask(QUESTION | {"where": "age > 77"}).status_code == 200
    assert here.call("GET", "/datasets/people/answers", token=bob).json() == []
    assert here.call("GET", f"/people/{ann}/tokens", token=bob).status_code == 403
    assert here.call("GET", f"/people/{bob_id}/tokens", token=bob).status_code == 200
    mine = here.call("DELETE", f"/tokens/{auth.token_id(here.started.analyst)}", token=bob)
    none = here.call("DELETE", "/tokens/000000000000", token=bob)
    assert (mine.status_code, mine.content) == (none.status_code, none.content)
    stranger = here.started.somebody("eve", {})
    hidden, absent = (
        here.call("GET", f"/datasets/{key}/budget", token=stranger) for key in ("people", "nothing")
    )
    assert (
        (hidden.status_code, hidden.content) == (absent.status_code, absent.content) == (404, absent.content)
    )


CODE = ["pickle", "marshal", "function", "code", "python", "lambda", "module", "callable", "script"]


def test_no_route_takes_code(here: Site) -> None:
    """Bodies are JSON of declared fields alone; none of them is code, and what is more is refused."""
    document = here.client.get("/openapi.json").json()
    names = {
        name
        for model, part in document["components"]["schemas"].items()
        if model != "ProblemBody"
        for name in part.get("properties", {})
    }
    assert not [name for name in names if any(word in name.lower() for word in CODE)]
    content = {
        kind
        for path in document["paths"].values()
        for operation in path.values()
        for kind in operation.get("requestBody", {}).get("content", {})
    }
    assert content == {"application/json"}
    smuggled = QUESTION | {"function": "__import__('os').system('true')"}
    assert here.ask(smuggled).json()["code"] == "invalid"
    statistic = {"kind": "statistic", "function": "lambda rows: rows", "columns": ["age"]}
    assert here.ask(statistic).json()["code"] == "invalid"
    assert here.ask(json.loads(json.dumps(QUESTION))).status_code == 200, "the control"


def test_labels_are_read_without_unpickling(here: Site) -> None:
    """An array of objects is a pickle; it is refused, and not loaded."""
    place = here.started.settings.roots[0] / "objects.npy"
    np.save(place, np.array([Bomb()], dtype=object), allow_pickle=True)
    body = {"id": "bomb", "labels": place.name, "queries": 10}
    assert here.call("POST", "/leaderboards", body, token=here.started.owner).status_code == 422
    assert not Bomb.exploded
    np.load(place, allow_pickle=True)
    assert Bomb.exploded, "the broken twin: a loader that trusts the file runs its code"


class Bomb:
    """Its unpickling leaves a trace."""

    exploded = False

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return explode, ()


def explode() -> None:
    Bomb.exploded = True


def test_one_ends_ones_own_session_and_an_owner_anybodys(here: Site) -> None:
    """Nobody else's, who is closed stays so, and the owner sees it."""
    gateway, owner = here.started.gateway, here.started.person(here.started.owner)
    ann, ben = (here.started.somebody(name) for name in ("una", "ulf"))
    path = {token: f"/datasets/people/analysts/{here.started.person(token).id}" for token in (ann, ben)}
    assert here.call("DELETE", path[ben], token=ann).status_code == 403
    for asker, whose in ((ann, ann), (ann, ann), (here.started.owner, ben)):
        assert here.call("DELETE", path[whose], token=asker).json() == {"closed": True}
    for token in (ann, ben):
        asked = here.call("POST", "/datasets/people/ask", QUESTION, token=token)
        assert asked.status_code == 402 and "which was closed" in asked.json()["detail"]
        again = here.call("PUT", path[token], {"epsilon": 2.0, "delta": 1e-6}, token=here.started.owner)
        assert again.status_code == 422 and "admit another person" in again.json()["detail"]
    shown = {analyst["name"]: analyst["closed"] for analyst in gateway.analysts(owner, "people")}
    assert shown["una"] and shown["ulf"] and not all(shown.values())
