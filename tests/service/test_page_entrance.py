"""The door of the page in a real browser: to a provider on another site and back, and by whom it is opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import chromium, visit
from gateway import prepared, serving
from playwright.sync_api import Browser

from holdfast.service.openid import RETURN
from holdfast.service.page import entrance
from service.provider import provided, settings_for
from service.test_page_axe import violations


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def test_a_browser_goes_to_another_site_and_comes_back_signed_in(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """localhost and 127.0.0.1 are two sites, as a gateway and its provider are. The twin leads on by a redirect: the
    visit's cookie, which only our own pages send, is not sent along it, and one is back before the door."""
    with (
        provided(asks=True) as provider,
        prepared(**settings_for(provider)) as started,
        serving(started.app) as url,
    ):
        here, owner = url.replace("127.0.0.1", "localhost"), started.person(started.owner)
        door = started.gateway.sign_on.provider
        assert door is not None
        door._return = here + RETURN
        with visit(browser, here) as visitor:
            page = visitor.go("/sign-in")
            assert violations(visitor) == []
            page.click("text=Sign in with your organisation")
            page.click("text=Yes, it is me")
            page.wait_for_selector("text=ann@x.org may not enter here")
            started.gateway.set_identity(owner, started.person(started.analyst).id, "ann@x.org")
            page.click("text=Sign in with your organisation")
            page.click("text=Yes, it is me")
            page.wait_for_url("**/tables")
            assert "ann" in page.inner_text("header .who") and "people" in page.inner_text("main")
            page.click("text=Sign out")
            page.wait_for_url("**/sign-in")
            entered = entrance._entered
            monkeypatch.setattr(entrance, "_entered", lambda *how: _redirected(entered(*how)))
            page.click("text=Sign in with your organisation")
            page.click("text=Yes, it is me")
            page.wait_for_selector("#token")
            assert page.url.endswith("/sign-in") and not visitor.complaints


def _redirected(reply: entrance.Response) -> entrance.Response:
    reply.status_code = 303
    reply.headers["location"] = "/tables"
    return reply


def test_owners_say_who_signs_in_as_whom_on_the_page(browser: Browser) -> None:
    with prepared() as started, serving(started.app) as url, visit(browser, url) as visitor:
        visitor.enter(started.owner)
        page = visitor.go("/people")
        page.fill("#name", "bob")
        page.fill("#identity", "Bob@x.org")
        page.click("text=Add >> nth=-1")
        page.wait_for_selector("text=Single sign-on")
        assert page.input_value("#identity") == "bob@x.org"
        bob = started.gateway.catalog.identities.person("bob@x.org")
        assert bob is not None
        page.fill("#identity", "")
        page.click("text=Set")
        page.wait_for_load_state()
        page.wait_for_function("document.querySelector('#identity').value === ''")
        assert started.gateway.catalog.identities.of(bob) is None
        assert violations(visitor) == [] and not visitor.complaints
