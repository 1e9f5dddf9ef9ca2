"""Signing in by a provider that runs here, and every lie about it: each is refused, and taken by the twin that does not
look (row 37 of docs/threats.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from holdfast.errors import InputError
from holdfast.service import openid
from holdfast.service.page.entrance import ENTRANCE
from holdfast.service.settings import Settings, checked
from service.provider import Provider, by_other_key, by_public_key, provided, settings_for, unsigned
from service.site import Site, site


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with provided() as started:
        yield started


@pytest.fixture(scope="module")
def here(provider: Provider) -> Iterator[Site]:
    """A gateway that knows ann@x.org as ann."""
    with site(**settings_for(provider)) as started:
        ann = started.started.person(started.started.analyst).id
        body = {"identity": "Ann@X.org"}
        reply = started.call("PUT", f"/people/{ann}/identity", body, token=started.started.owner)
        assert reply.status_code == 204
        yield started


@pytest.fixture(autouse=True)
def _honest(provider: Provider, here: Site) -> None:
    provider.user = {"sub": "1", "email": "ann@x.org", "email_verified": True}
    provider.twist, provider.sign, provider.lax, provider.named = _nothing, Provider.signed, False, ""
    here.client.cookies.clear()


def _nothing(said: dict[str, Any]) -> None:
    pass


def begun(here: Site) -> dict[str, str]:
    """What the provider sends back with the browser after it was sent there."""
    sent = here.client.get("/sign-in/provider", follow_redirects=False)
    assert sent.status_code == 303, sent.text
    back = httpx.get(sent.headers["location"], timeout=60).headers["location"]
    assert back.startswith("http://localhost/sign-in/return?")
    return dict(parse_qsl(urlsplit(back).query))


def back(here: Site, sent: dict[str, str]) -> Any:
    return here.client.get("/sign-in/return", params=sent, follow_redirects=False)


def entered(here: Site) -> int:
    """The status of a whole sign-in; it leaves a visit if and only if it is 200."""
    status = int(back(here, begun(here)).status_code)
    assert (here.client.get("/tables", follow_redirects=False).status_code == 200) == (status == 200)
    return status


def test_somebody_whom_the_catalog_knows_enters_and_leaves(here: Site, provider: Provider) -> None:
    reply = back(here, begun(here))
    assert (
        reply.status_code == 200 and "Welcome, ann" in reply.text and 'content="0; url=/tables"' in reply.text
    )
    assert "SameSite=strict" in reply.headers["set-cookie"]
    assert ENTRANCE not in here.client.cookies
    assert "people" in here.client.get("/tables").text
    labels = [token["label"] for token in _tokens(here)]
    assert "single sign-on" in labels, "an owner sees it, and can end it"
    here.call("DELETE", f"/people/{_ann(here)}/tokens", token=here.started.owner)
    assert here.client.get("/tables", follow_redirects=False).status_code == 303
    # The test's own token ended with them.
    here.client.cookies.clear()


def test_the_browser_that_was_sent_has_parts_of_a_secret_that_tell_nothing_of_each_other(here: Site) -> None:
    sent = here.client.get("/sign-in/provider", follow_redirects=False)
    asked = dict(parse_qsl(urlsplit(sent.headers["location"]).query))
    secret = here.client.cookies[ENTRANCE]
    cookie = sent.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/sign-in", "Max-Age=600"} <= set(cookie.split("; "))
    assert (
        asked["code_challenge_method"] == "S256"
        and asked["redirect_uri"] == "http://localhost/sign-in/return"
    )
    shown = (asked["state"], asked["nonce"], asked["code_challenge"])
    assert len({*shown, secret}) == 4 and secret not in sent.headers["location"]


def _tokens(here: Site) -> Any:
    return here.call("GET", f"/people/{_ann(here)}/tokens", token=here.started.owner).json()


def _ann(here: Site) -> str:
    people = here.call("GET", "/people", token=here.started.owner).json()
    return next(str(person["id"]) for person in people if person["name"] == "ann")


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "issuer": lambda said: said.update(iss="https://elsewhere.example.org"),
    "audience": lambda said: said.update(aud="another client", azp="holdfast"),
    "party": lambda said: said.update(aud=["holdfast", "another client"], azp="another client"),
    "expiry": lambda said: said.update(exp=time.time() - 120),
    "age": lambda said: said.update(iat=time.time() - 3600),
    "nonce": lambda said: said.update(nonce="another sign-in's"),
}


@pytest.mark.parametrize("what", sorted(LIES))
def test_a_token_that_says_something_else_is_refused(
    here: Site, provider: Provider, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin does not look at that, and lets it in."""
    provider.twist = lambda said: LIES[what](said) and None
    assert entered(here) == 403
    monkeypatch.delitem(openid.CHECKS, what)
    assert entered(here) == 200


def test_every_check_has_its_lie() -> None:
    assert LIES.keys() == openid.CHECKS.keys()


@pytest.mark.parametrize("end", [None, "9" * 12, float("nan"), True], ids=str)
def test_an_end_that_is_no_time_is_no_end(here: Site, provider: Provider, end: Any) -> None:
    provider.twist = lambda said: said.update(exp=end)
    assert entered(here) in (403, 503)


@pytest.mark.parametrize("sign", [unsigned, by_public_key, by_other_key])
def test_a_token_that_the_provider_did_not_sign_is_refused(
    here: Site, provider: Provider, sign: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin reads what a token says without its signature."""
    provider.sign = sign
    assert entered(here) == 403
    monkeypatch.setattr(openid.Provider, "_claims", lambda self, client, token: _unverified(token))
    assert entered(here) == 200


def _unverified(token: str) -> dict[str, Any]:
    import base64
    import json

    text = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))


def test_none_of_the_algorithms_is_none_or_shared(here: Site, provider: Provider) -> None:
    assert not any(name == "none" or name.startswith("HS") for name in openid.ALGORITHMS)


def test_an_answer_counts_once_whatever_the_provider_says_of_its_code(
    here: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replayed state, with its cookie put back. The first twin's provider takes codes twice; the second forgets."""
    sent = begun(here)
    secret = here.client.cookies[ENTRANCE]

    def again() -> int:
        here.client.cookies.clear()
        here.client.cookies.set(ENTRANCE, secret, path="/sign-in")
        return int(back(here, sent).status_code)

    assert again() == 200
    assert again() == 403, "a replayed code: the provider refuses it"
    provider.lax = True
    nonce = openid.part("nonce", secret)
    provider.codes[sent["code"]] = {"redirect_uri": "http://localhost/sign-in/return", "nonce": nonce}
    assert again() == 403, "a replayed state"
    monkeypatch.setattr(here.started.gateway.catalog.identities, "first_use", lambda digest, now: True)
    assert again() == 200


def test_an_answer_made_for_another_browser_is_refused(
    here: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker has their own answer opened in somebody's browser, who would go on as the attacker. The twin compares
    nothing, before a provider that forgets PKCE."""
    theirs = begun(here)
    here.client.cookies.clear()
    begun(here)
    assert back(here, theirs).status_code == 403
    asked = len(provider.asked)
    here.client.cookies.clear()
    assert back(here, theirs).status_code == 403, "no cookie at all"
    assert len(provider.asked) == asked, "nobody was asked for it"
    begun(here)
    provider.lax = True
    monkeypatch.setattr(openid.hmac, "compare_digest", lambda one, other: True)
    assert back(here, theirs).status_code == 200


def test_a_code_of_another_sign_in_does_not_count(here: Site, provider: Provider) -> None:
    """Stolen from an answer of somebody else's, and put into one's own: PKCE, and by a lax provider the nonce."""
    theirs = begun(here)
    here.client.cookies.clear()
    mine = begun(here)
    assert back(here, mine | {"code": theirs["code"]}).status_code == 403
    provider.lax = True
    theirs = begun(here)
    here.client.cookies.clear()
    mine = begun(here)
    assert back(here, mine | {"code": theirs["code"]}).status_code == 403
    assert back(here, mine).status_code == 403, "the cookie went with the refusal"


def test_an_email_counts_if_the_provider_looked_at_it_and_letters_are_what_they_are(
    here: Site, provider: Provider
) -> None:
    for verified in (False, None, "true", 1):
        provider.user = {"sub": "1", "email": "ann@x.org", "email_verified": verified}
        assert entered(here) == 403
    provider.user = {"sub": "1", "email": "ANN@x.ORG", "email_verified": True}
    assert entered(here) == 200
    here.client.cookies.clear()
    for other in ("bob@x.org", "ann@x.org ", "ann@x.org\x00", "ａnn@x.org", "", None, ["ann@x.org"]):
        provider.user = {"sub": "1", "email": other, "email_verified": True}
        assert (entered(here) == 200) == (other == "ann@x.org "), other
        here.client.cookies.clear()


def test_a_key_that_the_provider_changed_is_found(
    here: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entered(here) == 200
    here.client.cookies.clear()
    monkeypatch.setattr(provider, "key", RSAKey.generate_key(2048, {"kid": "two", "use": "sig"}))
    monkeypatch.setattr(openid, "_AGAIN_SECONDS", 1e9)  # a minute, on a machine that may be slow
    assert entered(here) == 403, "looked for once a minute at most"
    monkeypatch.setattr(openid, "_AGAIN_SECONDS", 0.0)
    assert entered(here) == 200


def test_a_provider_that_is_not_there_delays_nobody_else_and_is_told_in_words(
    here: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = here.started.gateway.sign_on.provider
    assert found is not None
    monkeypatch.setattr(found, "_looked", -1e9)
    monkeypatch.setattr(found, "issuer", "http://127.0.0.1:9")
    reply = here.client.get("/sign-in/provider", follow_redirects=False)
    assert reply.status_code == 503 and "use a token" in reply.text
    monkeypatch.setattr(found, "issuer", provider.issuer)
    provider.named = "https://elsewhere.example.org"
    assert here.client.get("/sign-in/provider", follow_redirects=False).status_code == 403
    provider.named = ""
    for _ in range(openid._AT_ONCE):
        assert found._room.acquire(blocking=False)
    assert here.client.get("/sign-in/provider", follow_redirects=False).status_code == 503
    for _ in range(openid._AT_ONCE):
        found._room.release()
    assert entered(here) == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"oidc_issuer": "https://id.example.org"},
        {"oidc_issuer": "http://id.example.org", "oidc_client": "h", "public_url": "https://ask.example.org"},
        {"oidc_issuer": "https://id.example.org", "oidc_client": "h", "public_url": "http://ask.example.org"},
        {"identity": "phone"},
        {"identity_header": "X-Who"},
        {"identity_header": "X Who", "proxies": ("10.0.0.0/8",)},
        {"identity": "subject", "join": ("example.org",)},
    ],
    ids=str,
)
def test_settings_that_are_half_or_unsafe_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        checked(Settings(**wrong))


def test_a_gateway_without_a_provider_has_no_such_door() -> None:
    with site() as plain:
        assert plain.client.get("/sign-in/provider", follow_redirects=False).status_code == 404
        assert "/sign-in/provider" not in plain.client.get("/sign-in").text
        assert jwt  # the provider of the tests needs it
