"""Strangers wait, those who are known do not; and nobody chooses by a header who they are."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.service.problem import Problem
from holdfast.service.settings import Settings, checked
from holdfast.service.strangers import Proxies, Strangers
from service.process import served, token_of
from service.proxy import proxied
from service.site import Site, site

SLOW = {"strangers_per_second": 0.001, "strangers_burst": 5}


def scope(peer: str, headers: Mapping[str, str] | None = None, path: str = "/v1/me") -> dict[str, Any]:
    sent = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    return {"client": (peer, 1), "headers": sent, "path": path, "scheme": "http", "state": {}}


def test_a_stranger_waits_and_nobody_who_is_known() -> None:
    with site(**SLOW) as here:
        assert here.call("GET", "/me").status_code == 200
        wrong = f"hf_{'0' * 12}_{'0' * 64}"
        statuses = [here.call("GET", "/me", token=wrong).status_code for _ in range(8)]
        assert statuses == [401] * 5 + [429] * 3, "the known one had given theirs back"
        reply = here.call("GET", "/me", token=wrong)
        assert reply.json()["code"] == "rate" and int(reply.headers["retry-after"]) > 0
        assert reply.headers["content-type"] == "application/problem+json"
        assert here.client.get("/sign-in").status_code == 429, "whatever they come for"
        assert {here.client.get(path).status_code for path in ("/v1/health", "/v1/ready")} <= {200, 503}
        before = here.totals()
        assert here.ask({"kind": "fraction", "where": "age > 1", "rho": 1e-4}, token=wrong).status_code == 429
        assert here.totals() == before
        assert {here.call("GET", "/me").status_code for _ in range(20)} == {200}


def test_who_was_known_and_is_no_longer_is_a_stranger() -> None:
    with site(**SLOW) as here:
        bob = here.started.somebody("bob")
        assert here.call("GET", "/me", token=bob).status_code == 200
        assert (
            here.call("DELETE", f"/tokens/{bob.split('_')[1]}", token=here.started.owner).status_code == 204
        )
        assert [here.call("GET", "/me", token=bob).status_code for _ in range(8)] == [401] * 6 + [429] * 2


def test_requests_are_counted_by_address_and_ipv6_by_network() -> None:
    strangers = Strangers(0.001, 2)

    def passes(peer: str) -> bool:
        with suppress(Problem):
            strangers.refuse_haste(scope(peer))
            return True
        return False

    assert [passes("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert passes("10.0.0.2")
    assert [passes(f"2001:db8::{part}") for part in ("1", "2", "3")] == [True, True, False]
    assert passes("2001:db8:0:1::1")
    assert {Strangers(0.0, 1).refuse_haste(scope("10.0.0.1")) for _ in range(9)} == {None}, "0 is no limit"


def seen(declared: tuple[str, ...], peer: str, **headers: str) -> tuple[str, str]:
    """Who a gateway takes the sender for, and by which scheme."""
    asked = scope(peer, {name.replace("_", "-"): value for name, value in headers.items()})
    Proxies(declared).look_through(asked)
    return asked["client"][0], asked["scheme"]


FOR = "X_Forwarded_For"
OURS = "10.0.0.1"
LIES = {
    "an undeclared peer": ((OURS,), "10.0.0.2", {FOR: "8.8.8.8"}, "10.0.0.2"),
    "nothing declared": ((), "127.0.0.1", {FOR: "8.8.8.8"}, "127.0.0.1"),
    "a sender's words before the proxy's": ((OURS,), OURS, {FOR: "8.8.8.8, 9.9.9.9"}, "9.9.9.9"),
    "a chain of ours": (("10.0.0.0/8",), OURS, {FOR: "8.8.8.8, 9.9.9.9, 10.0.0.7"}, "9.9.9.9"),
    "another header": ((OURS,), OURS, {"X_Real_Ip": "8.8.8.8", "Forwarded": "for=8.8.8.8"}, OURS),
}


@pytest.mark.parametrize("what", sorted(LIES))
def test_only_a_declared_proxy_says_who_asks(what: str) -> None:
    declared, peer, headers, expected = LIES[what]
    assert seen(declared, peer, **headers)[0] == expected


def test_a_gateway_that_believes_anybody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: each peer is taken for a proxy."""
    monkeypatch.setattr(Proxies, "among", lambda self, address: address != "8.8.8.8")
    caught = {what for what, (known, peer, sent, who) in LIES.items() if seen(known, peer, **sent)[0] != who}
    assert caught >= {"an undeclared peer", "nothing declared"}


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "8.8.8.8, someone"},
        {"X-Forwarded-For": ""},
        {"X-Forwarded-For": "8.8.8.8:80"},
        {"X-Forwarded-Proto": "gopher"},
        {"X-Forwarded-Proto": "https, http"},
    ],
)
def test_what_a_declared_proxy_cannot_mean_is_refused_and_nothing_charged(headers: dict[str, str]) -> None:
    asked = scope("10.0.0.1", headers)
    with pytest.raises(Problem) as refused:
        Proxies(["10.0.0.1"]).look_through(asked)
    assert refused.value.code == "invalid" and "from the proxy" in refused.value.detail


def test_a_lying_proxy_gets_a_problem_from_the_whole_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proxies, "among", lambda self, address: address == "testclient")
    with site() as here:
        question, before = {"kind": "fraction", "where": "age > 1", "rho": 1e-4}, here.totals()
        reply = _asked(here, question, {"X-Forwarded-For": "nobody"})
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
        assert reply.headers["content-type"] == "application/problem+json"
        assert here.totals() == before
        assert _asked(here, question, {"X-Forwarded-For": "9.9.9.9"}).status_code == 200, "the control"


def _asked(here: Site, question: object, headers: Mapping[str, str]) -> Any:
    return here.call("POST", "/datasets/people/ask", question, headers=headers)


def test_proxies_that_are_no_addresses_are_refused() -> None:
    assert checked(Settings(proxies=("10.0.0.0/8", "::1"))).proxies
    for wrong in ("proxy.example.org", "10.0.0.1/8", "*"):
        with pytest.raises(InputError, match="expected proxies as addresses"):
            checked(Settings(proxies=(wrong,)))


def test_through_a_real_proxy_each_sender_has_their_own_bucket(tmp_path: Path) -> None:
    """HAProxy appends who it sees; what a sender wrote before that moves nobody to another bucket."""
    limits = {"HOLDFAST_STRANGERS_PER_SECOND": "0.001", "HOLDFAST_STRANGERS_BURST": "5"}
    flags = ("--proxy", "127.0.0.1", "--anchors", str(tmp_path / "anchors"))
    with (
        served(tmp_path / "server", *flags, **limits) as server,
        proxied(tmp_path, [(server.address, server.port)]) as door,
    ):
        owner = token_of(server)

        def statuses(port: int, source: str, token: str = "", tries: int = 7) -> list[int]:
            return [_status(port, source, token, f"8.8.8.{place}") for place in range(tries)]

        assert statuses(door, "127.0.0.5") == [401] * 5 + [429] * 2
        assert statuses(door, "127.0.0.6") == [401] * 5 + [429] * 2, "a bucket of their own"
        assert statuses(server.port, "127.0.0.9") == [401] * 5 + [429] * 2, (
            "no proxy, no matter what they say"
        )
        assert statuses(server.port, "127.0.0.1") == [401] * 7, "the control: a declared one is believed"
        assert set(statuses(door, "127.0.0.7", owner)) == {200}


def _status(port: int, source: str, token: str, forged: str) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
    with closing(line):
        line.request("GET", "/v1/me", headers={"Authorization": f"Bearer {token}", "X-Forwarded-For": forged})
        return line.getresponse().status
