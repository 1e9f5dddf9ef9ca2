"""WCAG 2.2 AA by axe-core, on every page that a role can reach, by day and by night, wide and on a phone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Visit, chromium, visit
from gateway import Running, labels, people, running
from playwright.sync_api import Browser

from holdfast.planning.question import Fraction
from holdfast.service.replies import answer_mark
from service.test_page_forms import NO_PAGE, ROUTES, _route

VENDOR = Path(__file__).parent / "vendor"
AXE = VENDOR / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = f"async () => (await axe.run({{runOnly: {TAGS}}})).violations.map(one => [one.id, one.nodes.map(n => n.html)])"
OPEN = """() => {
    document.querySelectorAll('details').forEach(details => { details.open = true; });
    return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
WRITTEN = """() => {
    const plain = CanvasRenderingContext2D.prototype.fillText;
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
        const width = this.measureText(text).width, there = this.getTransform().transformPoint({x, y});
        const start = {right: -width, center: -width / 2}[this.textAlign] ?? 0, turned = this.getTransform().b !== 0;
        const left = turned ? 0 : there.x + start, right = turned ? 0 : left + width;
        window.written.push([text, left, right, this.canvas.width]);
        return plain.call(this, text, x, y, ...more);
    };
}"""
"""Notes what is written on canvases: each text, where it starts and ends, and how wide the canvas is."""
CLIPPED = """() => {
    const found = [];
    for (const card of document.querySelectorAll('.card, .problem'))
        for (const one of card.querySelectorAll('*')) {
            const box = one.getBoundingClientRect(), words = one.innerText ?? '';
            if (one.closest('svg, canvas, .unseen, select, .chart') || !box.width) continue;
            const apart = one.closest('.scroll');
            if (!apart && box.right > card.getBoundingClientRect().right + 1) found.push(['sticks out', one.outerHTML]);
            if (!apart && one.scrollWidth > one.clientWidth + 1 && one.matches('pre, p, td, dd, button'))
                found.push(['is cut', one.outerHTML]);
            const letters = parseFloat(getComputedStyle(one).fontSize), parts = words.trim().split(/\\s+/);
            if (box.width < 1.5 * letters && parts.some(word => word.length > 4))
                found.push(['letter by letter', words]);
        }
    return found;
}"""
"""What sticks out of its card, is cut, or is so narrow that words stand letter by letter."""
PAGES = {
    "owner": [
        "/tables", "/tables/people/analysts", "/tables/people/ledger", "/people", "/people/me", "/register",
        "/overview", "/boards",
    ],
    "analyst": [
        "/tables/people", "/tables/people/history", "/boards/churn", "/holdouts", "/holdouts/held", "/nowhere",
        "/tables/people/compare", "/tables/people/answers/last"],
    "nobody": ["/sign-in", "/demo"],
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    """A gateway whose every page has something on it."""
    with running({"people": people(2_000)}, declared={"target": "table"}) as started:
        started.register_board("churn")
        started.register_board("held", "holdout")
        started.gateway.submit(started.person(started.analyst), "churn", labels("churn").tolist(), None)
        for asked in ({"where": "age > 40"}, {"where": "age > 50", "by": "smoker"}):
            started.gateway.ask(started.person(started.analyst), "people", Fraction(**asked, within=0.2))
        yield started


def _place(here: Running, path: str) -> str:
    """An address of PAGES, with what is known only now."""
    (last, *_), _ = here.gateway.last_released(here.person(here.analyst), "people", 1)
    return path.replace("/me", f"/{here.person(here.owner).id}").replace("/last", f"/{answer_mark(last)}")


def violations(visitor: Visit) -> list[Any]:
    """What axe-core finds on the page that is shown."""
    visitor.page.evaluate(OPEN)
    visitor.page.evaluate(AXE.read_text())
    found: list[Any] = visitor.page.evaluate(RUN)
    return found


@pytest.mark.parametrize("look", ["light", "dark"])
def test_every_page_is_accessible(browser: Browser, here: Running, look: Any) -> None:
    """By night on a phone, by day on a desk."""
    size = {"width": 360, "height": 740} if look == "dark" else {"width": 1280, "height": 900}
    for role, paths in PAGES.items():
        with visit(browser, here.url, color_scheme=look, viewport=size, reduced_motion="reduce") as visitor:
            if role != "nobody":
                visitor.enter(here.owner if role == "owner" else here.analyst)
            for path in paths:
                shown = visitor.go(_place(here, path)).locator("h1").inner_text()
                assert (path == "/nowhere") == (shown == "That did not work"), path
                assert violations(visitor) == [], (role, path, look)
                assert visitor.page.evaluate(CLIPPED) == [], (role, path, look)
            if role == "analyst":
                page = visitor.go("/tables/people")
                page.focus("#where")
                page.keyboard.type("sm")
                page.keyboard.press("ArrowDown")
                assert page.locator("#where-offers [aria-selected=true]").count() == 1
                assert violations(visitor) == [], ("completions", look)
                page.fill("#where", "age > 40")
                page.fill("#amount", "0.2")
                page.click(".go")
                page.wait_for_selector(".answer .told")
                assert violations(visitor) == [], ("an answer", look)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_pages_of_a_table_in_two_parts_are_accessible(browser: Browser, look: Any) -> None:
    size = {"width": 360, "height": 740} if look == "dark" else {"width": 1280, "height": 900}
    pages = {
        "owner": [
            "/tables",
            "/overview",
            "/register",
            "/tables/people/analysts",
            "/tables/people.aside/analysts",
        ],
        "analyst": ["/tables/people", "/tables/people.aside", "/tables/people.aside/history"],
    }
    with running({"people": people(2_000, set_aside=0.1)}) as started:
        owner, analyst = (started.person(token) for token in (started.owner, started.analyst))
        started.gateway.admit(owner, "people.aside", analyst.id, {"epsilon": 1.0, "delta": 1e-6})
        for role, paths in pages.items():
            with visit(browser, started.url, color_scheme=look, viewport=size) as visitor:
                visitor.enter(started.owner if role == "owner" else started.analyst)
                for path in paths:
                    assert visitor.go(path).locator("h1").inner_text() != "That did not work", path
                    assert violations(visitor) == [], (path, look)
                    assert visitor.page.evaluate(CLIPPED) == [], (path, look)


def test_no_page_is_left_out() -> None:
    """Whoever adds a page adds a line."""
    every = {route.path for route in ROUTES if "GET" in (route.methods or ())} - NO_PAGE - {"/"}
    assert every == {_route(path, "GET") for paths in PAGES.values() for path in paths if path != "/nowhere"}


def test_axes_have_titles_and_no_label_is_clipped(browser: Browser, here: Running) -> None:
    """After two small answers the labels are the longest: nearly 100% with many digits."""
    with visit(browser, here.url, viewport={"width": 360, "height": 740}) as visitor:
        visitor.enter(here.analyst)
        visitor.page.add_init_script(f"({WRITTEN})()")
        visitor.go("/tables/people/history").wait_for_selector("[data-burn] canvas")
        written = visitor.page.evaluate("window.written")
        texts = [text for text, *_ in written]
        assert {"charge", "left of your budget"} <= set(texts)
        assert max(len(text) for text in texts if text.endswith("%")) >= len("99.99%")
        assert [text for text, start, end, width in written if start < 0 or end > width] == []


def test_a_field_without_a_label_and_faint_words_are_found(browser: Browser, here: Running) -> None:
    """The broken twins."""
    with visit(browser, here.url) as visitor:
        visitor.go("/sign-in").evaluate(
            "document.querySelector('label[for=token]').remove();"
            "document.querySelector('#token').removeAttribute('placeholder');"
            "document.querySelector('.lead').setAttribute('style', 'color: #ddd')"
        )
        visitor.page.evaluate("document.querySelector('.lead').style.color = '#ddd'")
        assert {name for name, _ in violations(visitor)} == {"label", "color-contrast"}


def test_axe_is_the_one_of_the_manifest() -> None:
    known = {entry["file"]: entry["sha256"] for entry in json.loads((VENDOR / "vendor.json").read_text())}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}
    assert {name: found[name] for name in known} == known
    assert found.keys() - known.keys() == {"vendor.json"}
