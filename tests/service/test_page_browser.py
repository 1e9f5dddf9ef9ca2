"""The page in a real browser: a visitor asks, an owner admits, an attacker climbs; by mouse, by key, on a phone."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium, visit
from gateway import Running, labels, people, running
from playwright.sync_api import Browser, Page

from holdfast.service.page import live_attack, shell

HOSTILE = '"><img src=x onerror=alert(1)>{{7*7}}<script>alert(2)</script>'
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    """A gateway with a board on which two teams are tied and one is behind."""
    with running({"people": people(), "spare": people()}, quantum=0.01) as started:
        started.register_board("churn", within=0.15, queries=30)
        truth, draw = labels("churn"), np.random.default_rng(3)
        for team, accuracy in (("kelp", 0.95), (HOSTILE, 0.94), ("limpet", 0.4)):
            who = started.person(started.somebody(team, {}))
            said = np.where(draw.random(len(truth)) < accuracy, truth, 1 - truth)
            started.gateway.submit(who, "churn", [int(part) for part in said], None)
        yield started


def _entries(here: Running, table: str = "people") -> int:
    return here.gateway.tables.ledger(table).totals().entries


def _left(page: Page) -> float:
    return float(page.inner_text("#left").split("%")[0])


def test_a_visitor_asks_and_sees_the_parts_and_the_cost(browser: Browser, here: Running) -> None:
    with visit(browser, here.url) as visitor:
        page = visitor.enter(here.analyst)
        page.click("text=people")
        before, entries = _left(page), _entries(here)
        page.fill("#where", "age > 40")
        page.fill("#amount", "0.06")
        page.wait_for_selector("#estimate .prices")
        assert "ρ" in page.inner_text("#estimate")
        assert "± 0.06" in page.inner_text("#estimate") or "± 0.05" in page.inner_text("#estimate")
        # A double click is two submits of one form: one charge.
        page.dblclick(".go")
        page.wait_for_selector(".answer .told")
        assert page.locator(".interval .part").count() >= 2
        assert [page.locator(f".legend .{part}").count() for part in ("noise", "sampling", "population")] == [
            1,
            1,
            1,
        ]
        assert "It cost" in page.inner_text("#paid")
        page.wait_for_selector("#estimate .free")
        assert _left(page) < before
        assert _entries(here) == entries + 1

        page.click("label[for=kind-mean]")
        assert not page.is_visible("#rank")
        assert page.is_visible("#column")
        page.fill("#column", "income")
        page.fill("#by", "smoker")
        page.fill("#amount", "300")
        page.click(".go")
        page.wait_for_selector(".groups tbody tr >> nth=1")
        assert _entries(here) == entries + 2

        page.fill("#where", "agee > 3")
        page.click(".go")
        page.wait_for_selector("#answer .problem pre")
        assert "^" in page.inner_text("#answer .problem pre")
        assert _entries(here) == entries + 2

        page.click("text=Budget and history")
        page.wait_for_selector("[data-burn] canvas")
        assert "mean(income) where age >= 41 by smoker" in page.inner_text(".history")
        with page.expect_download() as download:
            page.click("text=Download all")
        assert b"mean(income)" in Path(download.value.path()).read_bytes()
        assert visitor.complaints == []


def test_what_costs_much_is_confirmed_first(browser: Browser, here: Running) -> None:
    with visit(browser, here.url) as visitor:
        page = visitor.enter(here.somebody("spender"))
        page.goto(f"{here.url}/tables/spare")
        entries = _entries(here, "spare")
        page.fill("#where", "age > 40")
        page.select_option("[name=exact]", "rho")
        page.fill("#amount", "0.6")
        page.click(".go")
        page.wait_for_selector("#answer .confirm")
        assert _entries(here, "spare") == entries
        page.click("#answer .confirm button")
        page.wait_for_selector(".answer .told")
        assert _entries(here, "spare") == entries + 1
        assert visitor.complaints == []


def test_all_of_it_works_without_scripts(browser: Browser, here: Running) -> None:
    with visit(browser, here.url, java_script_enabled=False) as visitor:
        page = visitor.enter(here.somebody("plain"))
        page.click("text=people")
        page.fill("#where", "age > 30")
        page.fill("#amount", "0.06")
        page.click(".go")
        assert page.inner_text(".answer .told")
        assert page.input_value("#where") == "age > 30"
        entries = _entries(here)
        page.click(".go")
        assert "cost nothing" in page.inner_text("#paid")
        assert _entries(here) == entries


def test_all_of_it_works_by_keyboard(browser: Browser, here: Running) -> None:
    with visit(browser, here.url) as visitor:
        page = visitor.go("/sign-in")
        keys = page.keyboard
        keys.type(here.somebody("keys"))
        keys.press("Enter")
        page.wait_for_url("**/tables")
        keys.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        keys.press("Enter")
        keys.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "people"
        keys.press("Enter")
        page.wait_for_url("**/tables/people")
        page.focus("#kind-fraction")
        outline = "getComputedStyle(document.querySelector('#kind-fraction + label')).outlineStyle"
        keys.press("ArrowRight")
        assert page.is_checked("#kind-count")
        keys.press("ArrowLeft")
        assert page.evaluate(outline) == "solid"
        keys.press("Tab")
        assert page.evaluate("document.activeElement.id") == "where"
        keys.type("age > 20")
        for _ in range(5):
            keys.press("Tab")
        assert page.evaluate("document.activeElement.id") == "amount"
        keys.press("ControlOrMeta+a")
        keys.type("0.07")
        keys.press("Enter")
        page.wait_for_selector(".answer .told")
        assert page.get_attribute("#answer", "aria-live") == "polite"
        unnamed = (
            "[...document.querySelectorAll('input:not([type=hidden]),select,textarea')]"
            ".filter(field => !field.labels?.length && !field.getAttribute('aria-label')).length"
        )
        assert page.evaluate(unnamed) == 0
        assert visitor.complaints == []


def test_columns_keys_and_words_are_completed_by_keyboard(browser: Browser, here: Running) -> None:
    with visit(browser, here.url) as visitor:
        page = visitor.enter(here.analyst)
        visitor.go("/tables/people")
        keys = page.keyboard

        def offered(field: str) -> list[str]:
            return page.locator(f"#{field}-offers:not([hidden]) [role=option]").all_inner_texts()

        page.click("label[for=kind-sql]")
        page.focus("#text")
        keys.type("SELECT avg(inc")
        assert offered("text") == ["income"]
        keys.press("Enter")  # nothing was chosen: a new line, as everywhere
        assert page.input_value("#text") == "SELECT avg(inc\n" and offered("text") == []
        keys.press("Backspace")
        keys.press("ArrowDown")
        assert page.get_attribute("#text", "aria-activedescendant") == "text-offers-0"
        keys.press("Enter")
        keys.type(") FROM t WHERE smoker = 'y")
        assert offered("text") == ["yes'"]
        keys.press("ArrowDown")
        keys.press("Tab")
        assert page.input_value("#text") == "SELECT avg(income) FROM t WHERE smoker = 'yes'"
        assert page.evaluate("document.activeElement.id") == "text" and offered("text") == []
        keys.type(" GRO")
        assert offered("text") == ["GROUP BY"]
        keys.press("Escape")
        assert offered("text") == []
        page.click("label[for=kind-fraction]")
        page.focus("#where")
        keys.type("sm")
        page.click("#where-offers li")
        keys.type(" IN ('")
        assert page.input_value("#where") == "smoker IN ('" and offered("where") == ["no'", "yes'"]
        keys.type("no', '")
        assert offered("where") == ["no'", "yes'"]
        keys.press("Tab")  # nothing was chosen: on to the next field
        assert page.evaluate("document.activeElement.id") != "where" and offered("where") == []
        assert visitor.complaints == []


def test_a_board_shows_ties_and_takes_a_file(browser: Browser, here: Running, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("prediction\n" + "\n".join(map(str, labels("churn"))))
    with visit(browser, here.url) as visitor:
        page = visitor.enter(here.analyst)
        page.goto(f"{here.url}/boards/churn")
        tie = page.locator("tbody.tie").first
        assert sorted(tie.locator(".team").all_inner_texts()) == [HOSTILE, "kelp"]
        assert page.locator("tbody.alone .team").all_inner_texts() == ["limpet"]
        left = int(page.inner_text("aside .big").split()[0])
        page.set_input_files("#predictions", file)
        page.click("aside button")
        page.wait_for_selector("text=Your submission")
        assert int(page.inner_text("aside .big").split()[0]) == left - 1
        assert page.locator("tbody.tie .team").count() == 3
        assert visitor.complaints == []


def test_an_owner_adds_an_analyst_who_then_signs_in(browser: Browser, here: Running) -> None:
    with visit(browser, here.url) as visitor:
        page = visitor.enter(here.owner)
        page.click("nav >> text=People")
        page.fill("#name", HOSTILE + "!")
        page.click("aside button")
        page.wait_for_selector("h1 >> text=onerror")
        page.click("aside button")
        token = page.inner_text("#new-token")
        page.goto(f"{here.url}/tables/people/analysts")
        page.select_option("#person", label=f"{HOSTILE}! (analyst)")
        page.fill("#epsilon", "0.5")
        page.click("aside button")
        page.wait_for_selector(".people >> text=onerror")
        page.goto(f"{here.url}/tables/people/ledger")
        page.click("text=Verify the chain")
        page.wait_for_selector("pre.good >> text=sound")
        page.click("text=Sign out")
        visitor.enter(token)
        assert "100%" in page.inner_text(".cards")
        assert page.title() == "Tables · Holdfast"
        assert visitor.complaints == []


def test_the_demo_runs_and_reveals(browser: Browser, here: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_attack, "SECONDS", 0.02)
    with visit(browser, here.url) as visitor:
        page = visitor.go("/demo")
        page.click("#start")
        page.locator("#progress", has_text="of 2,000 submissions").wait_for()
        assert page.is_disabled("#reveal")
        assert page.inner_text("#ordinary-fresh") == ""
        page.wait_for_selector("#reveal:not([disabled])")
        page.click("#reveal")
        shown = {name: float(page.inner_text(f"#{name}-best")) for name in ("ordinary", "guarded")}
        fresh = float(page.inner_text("#ordinary-fresh").split(": ")[1])
        assert shown["ordinary"] > fresh + 0.15
        assert abs(shown["guarded"] - 0.5) < 0.15
        assert "honest model" in page.inner_text("#verdict")
        assert visitor.complaints == []


PAGES = [
    "/tables",
    "/tables/people",
    "/tables/people/history",
    "/boards",
    "/boards/churn",
    "/holdouts",
    "/demo",
]
OWN = ["/people", "/overview", "/register", "/tables/people/analysts", "/tables/people/ledger"]


def test_a_phone_in_the_dark(browser: Browser, here: Running) -> None:
    """Nothing is wider than 360 pixels, and the colours are others than by day."""
    with visit(browser, here.url, color_scheme="dark", reduced_motion="reduce", **PHONE) as visitor:
        page = visitor.go("/sign-in")
        assert visitor.overflow() <= 0
        visitor.enter(here.owner)
        for path in [*PAGES, *OWN, "/nowhere"]:
            visitor.go(path)
            assert visitor.overflow() <= 0, path
        assert visitor.complaints == []
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        night = page.evaluate(ground)
        page.emulate_media(color_scheme="light")
        assert page.evaluate(ground) != night
        page.evaluate("document.querySelector('main').style.minWidth = '400px'")
        assert visitor.overflow() > 0


def test_hostile_names_do_nothing_and_the_policy_stops_what_would(
    browser: Browser, here: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control leaves out the escaping: then the name is an image and a script, and the policy objects."""
    with visit(browser, here.url) as visitor:
        page = visitor.enter(here.owner)
        visitor.go("/boards/churn")
        assert page.locator("main img").count() == 0
        assert page.locator("main script").count() == 0
        assert HOSTILE in page.inner_text(".standings")
        assert visitor.complaints == []
        unescaped = shell._environment().overlay(autoescape=False)
        monkeypatch.setattr(shell, "_environment", lambda: unescaped)
        visitor.go("/boards/churn")
        assert page.locator("main img").count() > 0
        assert any("Content Security Policy" in said for said in visitor.complaints)
        assert "a dialog" not in visitor.complaints


def test_a_form_of_another_site_is_refused_by_a_real_browser(browser: Browser, here: Running) -> None:
    """Another origin is another port here. The control is the same form on our own page."""

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<form method=post action={here.url}/sign-out><button>go</button>".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Evil) as server, visit(browser, here.url) as visitor:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = visitor.enter(here.analyst)
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        with page.expect_response("**/sign-out") as reply:
            page.click("button")
        assert reply.value.status == 403
        visitor.go("/tables")
        assert "people" in page.inner_text("main")
        with page.expect_response("**/sign-out") as reply:
            page.click("text=Sign out")
        assert reply.value.status == 303
        server.shutdown()


def test_complaints_are_heard(browser: Browser, here: Running) -> None:
    """The control of every test above: a script that fails and a style that the policy forbids."""
    with visit(browser, here.url) as visitor:
        page = visitor.go("/sign-in")
        page.evaluate("document.body.setAttribute('style', 'color: red')")
        page.evaluate("setTimeout(() => { throw new Error('oh') })")
        for _ in range(100):  # on a busy machine a complaint takes its time
            page.wait_for_timeout(50)
            if any("oh" in said for said in visitor.complaints):
                break
        assert any("Content Security Policy" in said for said in visitor.complaints)
        assert any("oh" in said for said in visitor.complaints)
