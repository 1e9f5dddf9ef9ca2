"""Who enters without a token: people of the catalog only, by a declared proxy's header or by a provider's word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from gateway import Running, prepared

from holdfast.service.catalog import Person
from holdfast.service.identities import Identities
from holdfast.service.page import visits
from holdfast.service.problem import Problem
from holdfast.service.strangers import Proxies

WHO = "X-Forwarded-Email"
PROXY, STRANGER = "10.1.2.3", "192.0.2.7"


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    """A gateway behind a proxy, whose analyst is ann@x.org."""
    with prepared(proxies=("10.1.0.0/16",), identity_header=WHO, join=("Y.org",)) as made:
        known(made, "ann", "ann@x.org")
        yield made


def known(started: Running, name: str, identity: str | None) -> Person:
    person = next(one for one in started.gateway.catalog.people() if one.name == name)
    started.gateway.set_identity(started.person(started.owner), person.id, identity)
    return person


def browser(started: Running, peer: str) -> TestClient:
    return TestClient(started.app, client=(peer, 50_000), follow_redirects=False)


def enters(started: Running, told: str | list[str], peer: str = PROXY) -> tuple[int, str]:
    """The status of the door for somebody with these headers, and who sees the tables afterwards."""
    client = browser(started, peer)
    headers = [(WHO, text) for text in ([told] if isinstance(told, str) else told)]
    status = client.get("/sign-in", headers=headers).status_code
    secret = client.cookies.get(visits.COOKIE)
    if secret is None:
        return status, ""
    seen = started.gateway.catalog.visitor(visits.auth.digest(secret), started.gateway.catalog.now())
    assert seen is not None
    return status, seen.name


def test_a_declared_proxy_says_who_somebody_is(started: Running) -> None:
    assert enters(started, "ann@x.org") == (200, "ann")
    assert enters(started, "ANN@X.ORG") == (200, "ann")
    assert enters(started, "eve@x.org") == (403, "")
    assert enters(started, "\x7f") == (403, "")


def test_nobody_else_does(started: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin believes whoever says so."""
    assert enters(started, "ann@x.org", STRANGER) == (200, ""), "the door with its form for a token"
    monkeypatch.setattr(Proxies, "among", lambda self, address: True)
    assert enters(started, "ann@x.org", STRANGER) == (200, "ann")


def test_a_header_that_somebody_sent_through_a_careless_proxy_is_refused(started: Running) -> None:
    assert enters(started, ["ann@x.org", "eve@x.org"]) == (422, "")
    assert enters(started, ["ann@x.org", "ann@x.org"]) == (422, "")


def test_the_api_goes_by_tokens_alone(started: Running) -> None:
    client = browser(started, PROXY)
    assert client.get("/v1/me", headers={WHO: "ann@x.org"}).status_code == 401


def test_a_visit_ends_where_the_proxy_names_somebody_else(
    started: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people at one browser. The twin goes on with the first one's visit."""
    client = browser(started, PROXY)
    assert client.get("/sign-in", headers={WHO: "ann@x.org"}).status_code == 200
    assert client.get("/tables", headers={WHO: "ann@x.org"}).status_code == 200
    for other in ("eve@x.org", "bob@y.org", "\x7f"):
        assert client.get("/tables", headers={WHO: other}).status_code == 303
    monkeypatch.setattr(type(started.gateway.sign_on), "is_other", lambda self, person, told: False)
    assert client.get("/tables", headers={WHO: "eve@x.org"}).status_code == 200


def test_only_a_declared_domain_joins_and_sees_nothing_yet(started: Running) -> None:
    before = len(started.gateway.catalog.people())
    for told in ("@y.org", "y.org", "z@x.y.org", "z@evily.org", "z@y.org.evil.org", "z@y.org@x.org"):
        assert enters(started, told) == (403, "")
    assert len(started.gateway.catalog.people()) == before
    assert enters(started, "zoe@y.ORG") == (200, "zoe@y.org")
    assert enters(started, "zoe@y.org") == (200, "zoe@y.org"), "and is the same the next time"
    zoe = next(one for one in started.gateway.catalog.people() if one.name == "zoe@y.org")
    assert zoe.scope == "analyst" and started.gateway.datasets(zoe) == []


def test_a_name_that_is_taken_is_nobodys_entrance(started: Running) -> None:
    """The owner had called an auditor so: who joins by that e-mail does not become that auditor."""
    started.somebody("max@y.org", {}, scope="auditor")
    assert enters(started, "max@y.org") == (403, "")


def test_who_may_not_sign_in_does_not_enter_by_another_door(started: Running) -> None:
    started.somebody("gone", {})
    started.somebody("prometheus", {}, scope="metrics")
    gone, machine = known(started, "gone", "gone@x.org"), known(started, "prometheus", "machine@x.org")
    assert enters(started, "gone@x.org") == (200, "gone")
    started.gateway.disable(started.person(started.owner), gone.id)
    assert enters(started, "gone@x.org") == (403, "")
    assert machine.scope == "metrics" and enters(started, "machine@x.org") == (403, "")


def test_another_identity_ends_the_visits(started: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    started.somebody("una", {})
    una = known(started, "una", "una@x.org")
    client = browser(started, PROXY)
    client.get("/sign-in", headers={WHO: "una@x.org"})
    assert client.get("/tables").status_code == 200
    known(started, "una", None)
    assert client.get("/tables").status_code == 303
    assert enters(started, "una@x.org") == (403, "")
    assert started.gateway.identity(una, una.id) is None


def test_an_identity_is_one_persons(started: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set or added with somebody new. The twin takes it from whom it was."""
    started.somebody("vic", {})
    owner, ann = started.person(started.owner), started.gateway.catalog.identities.person("ann@x.org")
    people = len(started.gateway.catalog.people())
    with pytest.raises(Exception, match="somebody else"):
        known(started, "vic", "ANN@x.org")
    with pytest.raises(Exception, match="somebody else"):
        started.gateway.add_person(owner, "wim", "analyst", None, "ann@x.org")
    assert started.gateway.catalog.identities.person("ann@x.org") == ann
    assert len(started.gateway.catalog.people()) == people, "nothing is left half done"

    def takes(self: Identities, person: str, identity: str | None) -> bool:
        self._database.rows("DELETE FROM identities WHERE identity = ?", identity)
        self._database.rows("INSERT INTO identities VALUES (?, ?)", identity, person)
        return True

    monkeypatch.setattr(Identities, "put", takes)
    vic = known(started, "vic", "ANN@x.org")
    assert started.gateway.catalog.identities.person("ann@x.org") == vic.id != ann


def test_unicode_makes_no_letter_of_another(started: Running) -> None:
    """The kelvin sign is k in Unicode's lower case, and no k in an e-mail."""
    started.somebody("kim", {})
    known(started, "kim", "kim@x.org")
    assert "\u212a".lower() == "k"
    with pytest.raises(Problem):
        started.gateway.sign_on.known("\u212aim@x.org")
    assert started.gateway.sign_on.known("KIM@x.org").name == "kim"


def test_only_owners_say_who_signs_in_as_whom_and_each_change_is_a_deed(started: Running) -> None:
    somebody = started.person(started.somebody("xan", {}))
    for token in (started.analyst, started.auditor):
        with pytest.raises(Problem):
            started.gateway.set_identity(started.person(token), somebody.id, "x@x.org")
        with pytest.raises(Problem):
            started.gateway.identity(started.person(token), somebody.id)
    known(started, "xan", "x@x.org")
    last: Any = list(started.gateway.catalog.deeds.all())[-1]
    assert last.kind == "identity set" and last.fields["identity"] == "x@x.org"
    assert started.gateway.identity(somebody, somebody.id) == "x@x.org"


def test_subjects_are_compared_letter_by_letter() -> None:
    with prepared(proxies=("10.1.0.0/16",), identity_header=WHO, identity="subject") as started:
        known(started, "ann", "A1b@x")
        assert enters(started, "A1b@x") == (200, "ann")
        assert enters(started, "a1b@x") == (403, "")
