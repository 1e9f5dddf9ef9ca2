"""Every form of the page, sent by a real browser as it was shown.

The forms are found by walking from page to page as each role, so that a new one is sent too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from browser import Visit, chromium, visit
from fastapi.routing import APIRoute
from gateway import Running, labels, people, running
from playwright.sync_api import Browser, ElementHandle, Page, Response

import holdfast as hf
from holdfast.planning.question import Fraction
from holdfast.service.page import (
    answer_pages,
    board_pages,
    entrance,
    live_attack,
    overview,
    owner,
    routes,
    taking_in,
    visits,
)
from holdfast.service.page.kinds import KINDS

ROLES = ("owner", "analyst", "auditor", "nobody")
ROUTES = [
    route
    for part in (routes, entrance, answer_pages, board_pages, owner, taking_in, overview, live_attack)
    for route in part.router.routes
    if isinstance(route, APIRoute)
]
NO_FORM = {"/tables/{key}/estimate", "/register/suggest"}
"""What a script posts while somebody types, and a second button of a form."""
NO_PAGE = {
    "/demo/run", "/demo/whole", "/tables/{key}/answers.json", "/tables/{key}/ledger.ndjson", "/kinds.css",
    "/deeds.ndjson", "/metrics.txt", "/sign-in/provider", "/sign-in/return", "/tables/{key}/answers/{mark}/answer.csv",
    "/tables/{key}/answers/{mark}/answer.arrow",
}  # fmt: skip
"""Files, and what the demo's form leads to."""
FORMS = """() => [...document.forms].map(form => ({
    action: form.getAttribute("action"), method: form.method.toUpperCase(),
    hidden: [...form.querySelectorAll("input[type=hidden]")].map(field => [field.name, field.value]),
    radios: [...form.querySelectorAll("input[type=radio]")].map(field => field.value),
    texts: form.querySelectorAll("input:not([type]), textarea").length,
}))"""
GETS = {"/demo/whole", "/tables/people/compare"}
"""Where forms lead that only ask for a page."""
OPEN = "() => document.querySelectorAll('details').forEach(details => { details.open = true; })"
LINKS = (
    "() => [...document.querySelectorAll('a[href^=\"/\"]:not([download])')].map(a => a.getAttribute('href'))"
)


@dataclass(frozen=True)
class Form:
    """A form where it was found: `hidden` and `action` tell it from others, `radio` is what is chosen in it."""

    page: str
    action: str
    hidden: tuple[tuple[str, str], ...]
    radio: str | None
    texts: int

    def on(self, page: Page) -> ElementHandle:
        """The form itself, on its page or on one that shows it again."""
        known = "".join(f":has(input[name={name}][value='{value}'])" for name, value in self.hidden)
        ours = "" if known else ":not(:has(input[type=hidden][name=person]))"
        found = page.query_selector(f"form[action='{self.action}']{known}{ours}")
        assert found is not None, f"{self} is no longer there"
        return found


def _route(path: str, method: str) -> str:
    """The route of the page that answers a path."""
    mine = [route for route in ROUTES if method in (route.methods or ())]
    return next(route.path for route in mine if route.path_regex.fullmatch(path.split("?")[0]))


@dataclass(frozen=True)
class Walk:
    """What a role meets: the pages that it can reach by links, and their forms."""

    pages: list[str]
    forms: list[Form]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    """A gateway on which somebody has each kind of share, an answer, a board, a holdout, and a table with a
    text."""
    words = hf.open({"word": ["kelp", "limpet"] * 2_000}, hf.Schema(word=hf.Text(10)))
    with running({"people": people(), "words": words}, declared={"target": "table"}) as started:
        started.register_board("churn")
        started.register_board("held", "holdout")
        started.somebody("bea", {"epsilon": 0.5, "delta": 1e-6, "queries": 500})
        started.somebody("cem", {"rho": 0.25})
        started.gateway.ask(started.person(started.analyst), "people", Fraction(where="age > 3", within=0.2))
        yield started


@pytest.fixture(scope="module")
def walks(browser: Browser, here: Running) -> dict[str, Walk]:
    return {role: _walk(browser, here, role) for role in ROLES}


def _walk(browser: Browser, here: Running, role: str) -> Walk:
    """Follow every link, and note a form of each route once for each of its radio buttons."""
    seen, waiting, forms = list[str](), ["/sign-in", "/demo"], dict[Any, Form]()
    with visit(browser, here.url) as visitor:
        _enter(visitor, here, role)
        while waiting:
            path = waiting.pop(0)
            if path in seen:
                continue
            seen.append(path)
            reply = visitor.page.goto(here.url + path)
            assert reply is not None and reply.status < 400, (role, path)
            waiting += [link.split("#")[0] or path for link in visitor.page.evaluate(LINKS)]
            for found in visitor.page.evaluate(FORMS):
                own = {name: value for name, value in found["hidden"] if name not in ("form_token", "call")}
                for radio in found["radios"] or [None]:
                    form = Form(path, found["action"], tuple(own.items()), radio, found["texts"])
                    forms.setdefault((_route(form.action, found["method"]), form.hidden, radio), form)
        assert visitor.complaints == []
    return Walk(seen, list(forms.values()))


def _enter(visitor: Visit, here: Running, role: str) -> None:
    """Be somebody of this role, by a token that no form has ended yet. No script of a page before goes on."""
    visitor.page.goto("about:blank")
    if role == "nobody":
        return
    secret = visits.sign_in(here.gateway, _token(here, role))
    assert secret is not None
    visitor.carry(visits.COOKIE, secret)


def _token(here: Running, role: str) -> str:
    """A new token of somebody of this role: those that the gateway began with are ended by forms."""
    names = {person.name: person for person in here.gateway.catalog.people()}
    somebody = names[{"owner": "owner", "analyst": "ann", "auditor": "audrey"}[role]]
    return here.gateway.issue(names["owner"], somebody.id, "a visit", None)


FOR_GOOD = ("/withdraw", "/disable", "/retire", "/close")
"""Forms after which others of the same site have nothing to be sent to; tests/service/test_deeds.py and
tests/service/test_page_controls.py press them."""
_numbers = itertools.count()


def _valid(here: Running, form: Form, name: str) -> str | Path:
    """Something good for a required field that is shown empty. Whoever adds such a field adds a line."""
    new, root = f"new{next(_numbers)}", here.settings.roots[0]
    if name == "path":
        people(2_000).save(root / f"{new}.hf")
    if name in ("labels", "predictions"):
        np.save(root / f"{new}.npy", labels(new))
        (root / f"{new}.csv").write_text("\n".join(map(str, labels("churn"))))
    if name == "file":
        (root.parent / f"{new}.csv").write_text("age\n" + "\n".join(map(str, range(100))))
    columns = {"histogram": "smoker", "top": "smoker", "keys": "word"}
    widths = {
        "sum": "100000",
        "variance": "2000",
        "covariance": "20000",
        "multiplicative-weights": "0.4",
        "weigh": "0.4",
    }
    made: dict[str, Callable[[], str | Path]] = {
        "token": lambda: _token(here, "analyst"), "id": lambda: new, "name": lambda: f"somebody {new}",
        "path": lambda: f"{new}.hf", "labels": lambda: f"{new}.npy", "predictions": lambda: root / f"{new}.csv",
        "file": lambda: root.parent / f"{new}.csv",
        "epsilon": lambda: "0.5", "delta": lambda: "1e-6", "rho": lambda: "0.25",
        "where": lambda: f"age > {next(_numbers) % 90}", "text": lambda: "SELECT count(*) FROM t WHERE age > 7",
        "column": lambda: columns.get(form.radio or "", "age"),
        "other": lambda: "smoker" if form.radio == "independence" else "income",
        "against": lambda: "age < 9",
        "divisor": lambda: "income", "features": lambda: "income", "candidates": lambda: "age > 9\nage > 20",
        "columns": lambda: "smoker, age", "k": lambda: "2", "spend": lambda: "0.01",
        "amount": lambda: widths.get(form.radio or "", "20"),
    }  # fmt: skip
    return made[name]()


def _choose(form: Form, shown: ElementHandle) -> None:
    if form.radio is not None:
        button = shown.query_selector(f"input[type=radio][value='{form.radio}']")
        assert button is not None
        button.evaluate("button => button.click()")


def _fill(here: Running, form: Form, shown: ElementHandle) -> None:
    """Only what is required and was shown empty."""
    _choose(form, shown)
    for field in shown.query_selector_all("input, textarea, select"):
        name, empty = field.evaluate(
            "field => [field.name, field.required && !field.value && field.type !== 'radio']"
        )
        if not empty:
            continue
        good = _valid(here, form, name)
        field.set_input_files(good) if isinstance(good, Path) else field.fill(good)


def _sent(visitor: Visit, form: Form) -> list[int]:
    """Press the form's button; how it and what followed from it were answered."""
    page, replies, loaded = visitor.page, list[Response](), list[Page]()

    def is_last(reply: Response) -> bool:
        asked = reply.request
        if asked.resource_type not in ("document", "xhr", "fetch", "eventsource"):
            return False
        replies.append(reply)
        ours = asked.resource_type in ("document", "eventsource") or urlsplit(reply.url).path == form.action
        return ours and not 300 <= reply.status < 400

    def note(shown: Page) -> None:
        loaded.append(shown)

    button = form.on(page).query_selector("button:not([type=button], [formaction])")
    assert button is not None
    page.on("load", note)
    with page.expect_event("response", is_last) as last:
        button.click()
    while last.value.request.is_navigation_request() and not loaded:
        page.wait_for_timeout(5)
    page.remove_listener("load", note)
    return [reply.status for reply in replies]


def refused(browser: Browser, here: Running, role: str, forms: list[Form]) -> list[str]:
    """The forms that were refused although only what is required was filled in, each as it was shown."""
    found = []
    with visit(browser, here.url) as visitor:
        for form in forms:
            _enter(visitor, here, role)
            visitor.go(form.page).evaluate(OPEN)
            _fill(here, form, form.on(visitor.page))
            statuses = _sent(visitor, form)
            if max(statuses) >= 400:
                words = visitor.page.query_selector("main .problem")
                found.append(f"{form}: {statuses} {'' if words is None else words.inner_text()}")
        assert visitor.complaints == []
    return found


TYPED = """form => [...form.elements]
    .filter(field => field.name && !["hidden", "password", "file"].includes(field.type))
    .map(field => [field.name, field.type === "radio" || field.type === "checkbox" ? field.checked : field.value])"""


def _type_nonsense(form: Form, shown: ElementHandle) -> None:
    """Something in every field that no name, number or condition can be, and the last of every choice."""
    shown.evaluate("form => { form.noValidate = true; }")
    _choose(form, shown)
    for field in shown.query_selector_all("input, textarea, select"):
        kind, name = field.evaluate("field => [field.type, field.name]")
        if kind in ("text", "textarea") and field.is_visible():
            field.evaluate("field => field.removeAttribute('maxlength')")
            field.fill(f"{name} {'no ' * 150}".strip())
        elif kind == "select-one":
            field.evaluate("field => { field.selectedIndex = field.options.length - 1; }")
        elif kind == "checkbox":
            field.evaluate("field => { field.checked = !field.checked; }")


def forgotten(browser: Browser, here: Running, role: str, forms: list[Form]) -> list[str]:
    """The forms that did not refuse nonsense, or that no longer showed it afterwards; scripts are off."""
    found = []
    with visit(browser, here.url, java_script_enabled=False) as visitor:
        for form in forms:
            _enter(visitor, here, role)
            visitor.go(form.page).evaluate(OPEN)
            _type_nonsense(form, form.on(visitor.page))
            typed = form.on(visitor.page).evaluate(TYPED)
            statuses = _sent(visitor, form)
            shown = form.on(visitor.page).evaluate(TYPED)
            if not 400 <= statuses[-1] < 500 or shown != typed:
                found.append(f"{form}: {statuses} {[one for one in typed if one not in shown]}")
    return found


@pytest.mark.parametrize("role", ROLES)
def test_every_form_takes_what_it_shows(
    browser: Browser, here: Running, walks: dict[str, Walk], role: str
) -> None:
    """No form refuses its own defaults: only what is required and empty is filled in."""
    forms = [form for form in walks[role].forms if not form.action.endswith(FOR_GOOD)]
    assert refused(browser, here, role, forms) == []


@pytest.mark.parametrize("role", ROLES)
def test_no_form_forgets_what_was_typed_when_it_refuses_it(
    browser: Browser, here: Running, walks: dict[str, Walk], role: str
) -> None:
    forms = list({(form.action, form.hidden): form for form in walks[role].forms if form.texts}.values())
    assert forms or role in ("auditor", "nobody")
    assert forgotten(browser, here, role, forms) == []


def test_the_walks_meet_every_page_and_every_form(walks: dict[str, Walk]) -> None:
    """Whoever adds a page or a form that no link leads to finds this test."""
    pages = {_route(path, "GET") for walk in walks.values() for path in walk.pages}
    actions = {form.action for walk in walks.values() for form in walk.forms} - GETS
    every = {way: {route.path for route in ROUTES if way in (route.methods or ())} for way in ("GET", "POST")}
    assert every["GET"] - NO_PAGE == pages
    assert every["POST"] - NO_FORM == {_route(action, "POST") for action in actions}
    kinds = {form.radio for form in walks["analyst"].forms if form.action.endswith("/ask")}
    assert kinds == set(KINDS)


def test_a_form_that_refuses_its_defaults_or_forgets_is_caught(
    browser: Browser, here: Running, walks: dict[str, Walk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twins: whole numbers that are read as decimals, and a page that shows the form empty again."""
    forms = [form for form in walks["owner"].forms if form.action in ("/register", "/boards")]
    for part in (owner, board_pages):
        monkeypatch.setattr(part, "whole", visits.number)
        monkeypatch.setattr(part, "typed_in", lambda form: {})
    assert len(refused(browser, here, "owner", forms)) == 2
    assert len(forgotten(browser, here, "owner", forms)) == 2
