"""The page without a browser: who may see and send what, and where its words come from (rows 15, 24, 25, 29, 30)."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from gateway import LABELS, labels

import holdfast as hf
from holdfast.errors import DataError
from holdfast.service import auth, create_app, envelope
from holdfast.service.gateway import Gateway
from holdfast.service.page import (
    answer_pages,
    board_pages,
    entrance,
    forms,
    live_attack,
    look,
    overview,
    owner,
    routes,
    taking_in,
    visits,
)
from holdfast.service.page import shell as page_shell
from holdfast.service.problem import Problem
from service.site import Site, site, write_csv

VENDOR = page_shell.FILES / "vendor"
ROUTES = [
    route
    for part in (routes, entrance, answer_pages, board_pages, owner, taking_in, overview, live_attack)
    for route in part.router.routes
    if isinstance(route, APIRoute)
]
POSTS = [route for route in ROUTES if "POST" in (route.methods or ())]
HOSTILE = '"><img src=x onerror=alert(1)>{{7*7}}<script>alert(2)</script>'
QUESTION = {"kind": "fraction", "where": "age > 40", "exact": "within", "amount": "0.1"}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    """A gateway with a table and a board."""
    with site() as started:
        started.started.register_board("churn")
        yield started


class Window:
    """A browser without scripts: it keeps its cookie and sends the forms of the pages that it was shown."""

    def __init__(self, client: TestClient, token: str | None = None) -> None:
        self.client = client
        self.client.cookies.clear()
        self.origin = {"Origin": "http://testserver"}
        if token is not None:
            assert self.send("/sign-in", token=token).status_code == 303

    def see(self, path: str) -> str:
        """The text of a page that is there."""
        reply = self.client.get(path, headers={"Accept": "text/html"}, follow_redirects=False)
        assert reply.status_code == 200, (path, reply.status_code, reply.text[-500:])
        return str(reply.text)

    def status(self, path: str) -> int:
        """How a page is refused."""
        return int(self.client.get(path, follow_redirects=False).status_code)

    def send(self, path: str, /, *, files: Any = None, headers: Any = None, **fields: str) -> Any:
        """Send a form as a browser does, from this host unless told."""
        return self.client.post(
            path, data=fields, files=files, headers=self.origin if headers is None else headers,
            follow_redirects=False,
        )  # fmt: skip

    def own(self, path: str = "/tables") -> dict[str, str]:
        """The hidden fields of a page."""
        return dict(re.findall(r'<input type="hidden"[^>]* name="(\w+)" value="(\w+)"', self.see(path)))


# Visits


def test_a_visit_is_a_cookie_that_no_script_and_no_other_site_can_use(here: Site) -> None:
    window = Window(here.client)
    reply = window.send("/sign-in", token=here.started.analyst)
    cookie = reply.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=strict", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    secret = window.client.cookies[visits.COOKIE]
    rows = here.started.gateway.catalog._db.rows("SELECT digest FROM visits")
    assert (auth.digest(secret),) in rows
    assert secret not in str(rows)
    assert window.see("/tables")


def test_cookies_are_secure_where_the_operator_says_so() -> None:
    with site(secure_cookies=True) as started:
        window, token = Window(started.client), started.started.analyst
        assert window.send("/sign-in", token=token).status_code == 403, (
            "a form of a page that came in the clear"
        )
        window.origin = {"Origin": "https://testserver"}
        cookie = window.send("/sign-in", token=token).headers["set-cookie"]
        assert "Secure" in cookie.split("; ")


def test_a_wrong_token_opens_nothing(here: Site) -> None:
    window = Window(here.client)
    for token in ("", "hf_", here.started.analyst[:-1] + "x", "hf_" + 12 * "0" + "_" + 64 * "0"):
        assert window.send("/sign-in", token=token).status_code == 401
    assert window.status("/tables") == 303


def test_a_visit_ends_when_one_signs_out_when_its_token_is_revoked_and_after_twelve_hours(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    cookie = window.client.cookies[visits.COOKIE]
    assert window.send("/sign-out", **window.own()).status_code == 303
    window.client.cookies.set(visits.COOKIE, cookie)
    assert window.status("/tables") == 303

    token = here.started.somebody("brief")
    window = Window(here.client, token)
    key = auth.token_id(token)
    assert key is not None
    window.see("/tables")
    here.started.gateway.catalog.revoke(key)
    assert window.status("/tables") == 303

    secret = visits.sign_in(here.started.gateway, here.started.analyst)
    assert secret is not None
    visitor, digest = here.started.gateway.catalog.visitor, auth.digest(secret)
    assert visitor(digest, time.time() + visits.SECONDS - 60) is not None
    assert visitor(digest, time.time() + visits.SECONDS + 60) is None


def test_the_cookie_is_for_the_page_alone(here: Site) -> None:
    """The API takes tokens only, so that no form of another site can reach it."""
    window = Window(here.client, here.started.owner)
    assert window.status("/v1/me") == 401


def test_a_piece_of_a_page_leads_to_the_door_when_the_visit_has_ended(here: Site) -> None:
    reply = Window(here.client).send(
        "/tables/people/estimate", headers={"Origin": "http://testserver", "HX-Request": "true"}
    )
    assert (reply.status_code, reply.headers["hx-redirect"]) == (401, "/sign-in")


def test_who_is_too_quick_is_told_to_wait() -> None:
    with site(requests_per_second=0.001, burst=2) as started:
        window = Window(started.client, started.started.analyst)
        assert [window.status("/tables") for _ in range(3)] == [200, 200, 429]


# Forms


def test_every_post_wants_a_form_of_our_own() -> None:
    """Whoever adds a POST to the page finds this test."""
    for route in POSTS:
        calls = {dependency.call for dependency in route.dependant.dependencies}
        assert visits.posted in calls or route.path == "/sign-in", route.path


def _foreign(here: Site, token: str | None) -> list[int]:
    """A POST to every address of the page from elsewhere: by origin, and by a form of another visit."""
    window = Window(here.client, here.started.owner)
    own, found = window.own(), []
    for route in POSTS:
        path = route.path.replace("{key}", "people").replace("{token}", "none")
        for origin in ("http://evil.example", "null", "http://testserver.evil.example", None):
            headers = {"X": "y"} if origin is None else {"Origin": origin}
            found.append(
                window.send(path, headers=headers, **own | {"token": here.started.owner}).status_code
            )
        if path != "/sign-in":
            found.append(window.send(path, **({} if token is None else {"form_token": token})).status_code)
    return found


def test_a_post_from_another_site_is_refused(here: Site) -> None:
    for token in (None, "", 64 * "0"):
        assert set(_foreign(here, token)) == {403}


def test_without_the_checks_the_same_posts_would_pass(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "refuse_foreign", lambda request: None)
    monkeypatch.setattr(entrance, "refuse_foreign", lambda request: None)
    monkeypatch.setattr(visits, "is_own", lambda form, visitor: True)
    assert 403 not in _foreign(here, "")


def test_one_form_is_charged_once_however_often_it_is_sent(here: Site) -> None:
    """The control is the same question from a page that was opened again: that is another call."""
    window = Window(here.client, here.started.analyst)
    own, sample = window.own("/tables/people"), {"kind": "sample", "where": "age > 50"}
    before = here.totals()
    replies = [window.send("/tables/people/ask", **own, **sample) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {200}
    assert len({re.findall(r'class="told">(\w+)', reply.text)[0] for reply in replies}) == 1
    once = here.totals()
    assert once.entries == before.entries + 1
    window.send("/tables/people/ask", **window.own("/tables/people"), **sample)
    assert here.totals().entries == once.entries + 1


def test_what_was_paid_for_and_not_answered_is_resumed_by_the_form_that_is_shown(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is a form that forgets its call: it pays twice."""
    window = Window(here.client, here.started.analyst)
    own, sample = window.own("/tables/people"), {"kind": "sample", "where": "age > 33"}
    rows, before = here.started.gateway.tables.table("people")._source, here.totals().entries

    def gone(*_: object) -> object:
        raise DataError("the rows are away")

    with monkeypatch.context() as broken:
        broken.setattr(type(rows), "draw", gone)
        broken.setattr(type(rows), "gather", gone)
        failed = window.send("/tables/people/ask", **own, **sample)
    assert failed.status_code == 503
    assert here.totals().entries == before + 1
    shown = re.findall(r'name="call" value="(\w+)"', failed.text)[0]
    again = window.send("/tables/people/ask", **own | {"call": shown}, **sample)
    assert again.status_code == 200
    assert here.totals().entries == before + 1
    assert re.findall(r'name="call" value="(\w+)"', again.text) != [shown]
    window.send("/tables/people/ask", **own | {"call": "another"}, **sample)
    assert here.totals().entries == before + 2


def test_a_form_that_was_changed_and_sent_again_is_another_question(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    own = window.own("/tables/people")
    first = window.send("/tables/people/ask", **own, **QUESTION)
    second = window.send("/tables/people/ask", **own, **QUESTION | {"where": "age > 60"})
    assert "age &gt;= 41" in first.text
    assert "age &gt;= 61" in second.text


def test_a_call_that_no_page_has_made_is_refused_before_anything_is_charged(here: Site) -> None:
    window, before = Window(here.client, here.started.analyst), here.totals()
    own = window.own("/tables/people") | {"call": "a\0b"}
    assert window.send("/tables/people/ask", **own, **QUESTION).status_code == 422
    assert here.totals() == before


def test_confirming_one_question_does_not_confirm_another() -> None:
    with site(share={"epsilon": 1.0, "delta": 1e-6}, confirm=0.01) as started:
        window = Window(started.client, started.started.analyst)
        own = window.own("/tables/people")
        much = QUESTION | {"exact": "rho", "amount": "0.005"}
        asked = window.send("/tables/people/ask", **own, **much)
        assert asked.status_code == 409
        mark = re.findall(r'name="confirm" value="(\w+)"', asked.text)[0]
        other = window.send("/tables/people/ask", **own, **much | {"where": "age > 9"}, confirm=mark)
        assert other.status_code == 409
        assert started.totals().entries == 0
        assert window.send("/tables/people/ask", **own, **much, confirm=mark).status_code == 200
        assert started.totals().entries == 1


def test_replies_to_what_is_charged_leave_at_public_times(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[float] = []

    class Release:
        def __init__(self, quantum: float) -> None:
            held.append(quantum)

        async def wait(self) -> None:
            pass

    monkeypatch.setattr(envelope, "Release", Release)
    with site(quantum=0.01) as started:
        window = Window(started.client, started.started.analyst)
        own = window.own("/tables/people")
        for path, held_back in (("/tables/people/ask", 0.01), ("/boards/none/submissions", 0.01),
                                ("/tables/people/estimate", 0.0)):  # fmt: skip
            held.clear()
            window.send(path, **own, **QUESTION)
            assert held == [held_back]


# What is asked, and what is shown


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ({"kind": "count", "amount": "500"}, {"kind": "count", "within": 500.0}),
        ({"kind": "mean", "column": "age", "by": "smoker", "exact": "rho", "amount": "0.1", "text": "x"},
         {"kind": "mean", "column": "age", "by": "smoker", "rho": 0.1}),
        ({"kind": "histogram", "column": "age", "edges": "20, 40", "by": "smoker", "amount": "9"},
         {"kind": "histogram", "column": "age", "edges": [20.0, 40.0], "within": 9.0}),
        ({"kind": "quantile", "column": "age", "rank": "0.9", "amount": "0.1"},
         {"kind": "quantile", "column": "age", "rank": 0.9, "within": 0.1}),
        ({"kind": "sql", "text": "SELECT avg(age) FROM t", "where": "age > 3", "amount": "5"},
         {"kind": "sql", "text": "SELECT avg(age) FROM t", "within": 5.0}),
        ({"kind": "count", "by": "floor(age / 10, 2), smoker", "edges": "age = 20, 40; income = 100", "amount": "5",
          "cumulative": "yes"},
         {"kind": "count", "by": ["floor(age / 10, 2)", "smoker"], "cumulative": True, "within": 5.0,
          "edges": {"age": [20.0, 40.0], "income": [100.0]}}),
        ({"kind": "difference", "where": "age > 3", "against": "age < 3", "other": "x", "amount": "0.1"},
         {"kind": "difference", "where": "age > 3", "other": "age < 3", "within": 0.1}),
        ({"kind": "regression", "column": "age", "features": "income\n\n income * 2 ", "notion": "rho", "spend": "2"},
         {"kind": "regression", "column": "age", "features": ["income", "income * 2"], "rho": 2.0}),
        ({"kind": "quantile", "column": "age", "rank": "0.25, 0.75", "amount": "0.1", "rows": "50"},
         {"kind": "quantile", "column": "age", "rank": [0.25, 0.75], "within": 0.1, "rows": 50}),
        ({"kind": "sample", "where": "age > 3", "amount": "5"}, {"kind": "sample", "where": "age > 3"}),
    ],
    ids=["count", "mean", "histogram", "quantile", "sql", "keys", "difference", "regression", "ranks", "sample"],
)  # fmt: skip
def test_a_form_is_the_question_of_its_kind(typed: dict[str, str], sent: dict[str, object]) -> None:
    from starlette.datastructures import FormData

    asked = forms.question(FormData({"exact": "within"} | typed))
    assert asked.to_json() == type(asked)(**sent).to_json()


@pytest.mark.parametrize(
    "question",
    [
        QUESTION, QUESTION | {"by": "smoker"}, QUESTION | {"kind": "count", "amount": "2000"},
        QUESTION | {"kind": "mean", "column": "age", "by": "smoker", "amount": "20"},
        QUESTION | {"kind": "sum", "column": "income", "amount": "2000000"},
        QUESTION | {"kind": "histogram", "column": "age", "edges": "20,40,60", "amount": "2000"},
        QUESTION | {"kind": "quantile", "column": "born", "amount": "0.3"},
        QUESTION | {"kind": "sql", "text": "SELECT smoker, avg(age) FROM t GROUP BY smoker", "amount": "20"},
        QUESTION | {"kind": "sample"},
    ],
    ids=["fraction", "by", "count", "mean", "sum", "histogram", "date", "sql", "sample"],
)  # fmt: skip
def test_every_kind_is_estimated_asked_and_shown(here: Site, question: dict[str, str]) -> None:
    window = Window(here.client, here.started.analyst)
    estimate = window.send("/tables/people/estimate", **window.own("/tables/people"), **question)
    assert "costs" in estimate.text or "costs nothing" in estimate.text
    reply = window.send("/tables/people/ask", **window.own("/tables/people"), **question)
    assert reply.status_code == 200
    assert 'class="card answer"' in reply.text
    assert (question["kind"] == "sample") == ("one time in four" in reply.text)
    _refuse_nothing_words(reply.text)


def test_what_an_opening_paid_for_is_not_said_to_be_known(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    opening = {"name": "once", "threshold": "0.9", "hits": "2", "notion": "epsilon", "spend": "0.5"}
    for kind, said in (("sparse-vector", "It cost"), ("above", "it was paid for when it was opened")):
        question = QUESTION | opening | {"kind": kind, "where": "age > 97"}
        reply = window.send("/tables/people/ask", **window.own("/tables/people"), **question)
        assert said in reply.text and "you had this answer" not in reply.text


def test_an_estimate_says_when_its_width_holds(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    mean = QUESTION | {"kind": "mean", "column": "income", "where": "age > 12", "amount": "300"}
    shown = window.send("/tables/people/estimate", **window.own("/tables/people"), **mean).text
    assert "if every row qualifies" in shown.split("<details>")[0]


def test_a_width_that_was_not_kept_is_shown_with_the_answer_and_in_the_history(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    mean = QUESTION | {"kind": "mean", "column": "income", "where": "age < 1", "amount": "120"}
    answered = window.send("/tables/people/ask", **window.own("/tables/people"), **mean).text
    grouped = mean | {"where": "age < 3", "by": "smoker"}
    groups = window.send("/tables/people/ask", **window.own("/tables/people"), **grouped).text
    assert "not within 120" in answered and "too few rows" in answered
    assert groups.count("not within 120") == 2 and "within 120 in 0 of 2 groups" in groups
    history = window.see("/tables/people/history")
    assert (
        "too few rows" in history and "not within 120" in history and "within 120 in 0 of 2 groups" in history
    )


def test_how_exactly_must_be_said_unless_the_owner_planned_for_it(here: Site) -> None:
    vague = QUESTION | {"amount": ""}
    window = Window(here.client, here.started.analyst)
    shown = window.send("/tables/people/estimate", **window.own("/tables/people"), **vague).text
    assert "say how exactly: a half-width" in shown
    with site(declared={"queries": 50}) as planned:
        window = Window(planned.client, planned.started.analyst)
        assert "costs" in window.send("/tables/people/estimate", **window.own("/tables/people"), **vague).text


def test_a_mistake_is_shown_in_its_place_with_a_caret(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    reply = window.send(
        "/tables/people/ask", **window.own("/tables/people"), **QUESTION | {"where": "agee > 3"}
    )
    assert reply.status_code == 422
    assert "did you mean age?\n  agee &gt; 3\n  ^</pre>" in reply.text
    assert 'id="ask"' in reply.text
    assert "agee &gt; 3</textarea>" in reply.text


def test_numbers_are_shown_with_digits_that_tell_them_apart() -> None:
    assert [look.percent(x) for x in (0, 1e-9, 0.00031, 0.1, 0.5, 0.999999, 1 - 1e-9, 1)] == [
        "0%", "under 0.0001%", "0.031%", "10%", "50%", "99.9999%", "over 99.9999%", "100%",
    ]  # fmt: skip
    assert [look.small(x) for x in (0.0, 1.54, 4.774e-6, 1e-6, 12345.6)] == [
        "0", "1.54", "4.77\u00a0×\u00a010⁻⁶", "10⁻⁶", "12,346",
    ]  # fmt: skip
    assert look.exact(1.53926296) == "1.53926296"
    assert [look.quantity(x) for x in (0.25, 1e4, float("inf"), float("-inf"), float("nan"))] == [
        "0.25", "10,000", "∞", "−∞", "unknown",
    ]  # fmt: skip
    assert look.axis([float("-inf")], [float("inf")]) == look.Axis(-0.06, 1.06)


def test_an_interval_is_drawn_from_its_value_outwards() -> None:
    """Noise inside, population outside, on both sides; they touch, and together they are the interval."""
    drawn = look.pieces(look.Axis(0.0, 100.0), 50.0, 30.0, 90.0, (3.0, 0.0, 1.0))
    assert [(piece.part, piece.left, piece.width) for piece in drawn] == [
        ("noise", 35.0, 15.0), ("population", 30.0, 5.0), ("noise", 50.0, 30.0), ("population", 80.0, 10.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0\n1\n1\n", [0.0, 1.0, 1.0]), ("id,label\n7,0\n8,1\n9,1\n", [0.0, 1.0, 1.0]),
        ("[0, 1, 1]", [0, 1, 1]), ('"cat"\n"dog"\ncat', ["cat", "dog", "cat"]),
    ],
    ids=["lines", "columns", "json", "labels"],
)  # fmt: skip
def test_predictions_are_read_from_files(text: str, said: list[object]) -> None:
    assert forms.predictions(text, 3) == said


@pytest.mark.parametrize("text", ["[1, NaN]", "[1e999]", "[[1]]", "[1", "[null]"], ids=str)
def test_a_list_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(Problem, match="invalid"):
        forms.predictions(text, 1)
    assert forms.predictions("nan\n1e999", 2) == ["nan", "1e999"]


@pytest.mark.parametrize(
    ("said", "private"),
    [
        ({}, True),
        ({"privacy": "private"}, True),
        ({"privacy": "not private"}, True),  # the narrowest plan is private even so
        ({"privacy": "not private", "mode": "guess-and-check"}, False),
    ],
)
def test_a_board_is_private_unless_the_owner_says_otherwise(
    here: Site, said: dict[str, str], private: bool
) -> None:
    key = f"asked-{len(said)}-{len(str(said))}-{private}".lower()
    place = here.started.settings.roots[0] / f"{key}.npy"
    np.save(place, labels(key))
    window = Window(here.client, here.started.owner)
    form = {"id": key, "labels": place.name, "metric": "accuracy", "queries": "5"} | said
    if "mode" in said:  # which the page does not offer
        here.started.register_board(key, queries=5, mode=said["mode"], private=False)
    else:
        assert window.send("/boards", **window.own("/boards"), **form).status_code == 303
    assert here.started.gateway.boards.board(key, "leaderboard").private is private
    shown = window.see(f"/boards/{key}"), window.see("/boards")
    assert ("differentially private" in shown[0], "not private: labels" in shown[0]) == (private, not private)
    assert (" · not private" in shown[1].split(key, 1)[1].split("</li>")[0]) is not private
    file = {"predictions": ("mine.csv", "0\n" * LABELS, "text/csv")}
    scored = window.send(f"/boards/{key}/submissions", files=file, **window.own(f"/boards/{key}"))
    assert scored.status_code == 200
    assert ("Not private." in scored.text) is not private


def test_a_submission_by_file_is_one_look_and_ties_are_grouped(here: Site) -> None:
    window = Window(here.client, here.started.analyst)
    own = window.own("/boards/churn")
    file = {"predictions": ("mine.csv", "\n".join(map(str, labels("churn"))), "text/csv")}
    left = here.started.gateway.boards.leaderboard("churn").looks_left()
    for _ in range(2):
        reply = window.send("/boards/churn/submissions", files=file, **own)
        assert reply.status_code == 200
        assert "Your submission" in reply.text
    assert here.started.gateway.boards.leaderboard("churn").looks_left() == left - 1
    broken = {"predictions": ("mine.csv", "0\n1", "text/csv")}
    assert window.send("/boards/churn/submissions", files=broken, **own).status_code == 422
    second = Window(here.client, here.started.somebody("twin"))
    second.send("/boards/churn/submissions", files=file, **second.own("/boards/churn"))
    shown = second.see("/boards/churn")
    assert '<tbody class="tie">' in shown
    assert 'rowspan="2">1<small>tied</small>' in shown
    assert f"{LABELS:,} labels" in shown


# Who may see what

OWNERS = [
    "/people",
    "/register",
    "/tables/people/analysts",
    "/tables/people/ledger",
    "/tables/people/ledger.ndjson",
]
ALL = ["/tables", "/tables/people", "/tables/people/history", "/boards", "/boards/churn", "/demo"]


def test_each_scope_sees_its_pages_and_no_other(here: Site) -> None:
    window = Window(here.client)
    assert {window.status(path) for path in [*OWNERS, *ALL[:-1]]} == {303}
    window = Window(here.client, here.started.analyst)
    assert {window.status(path) for path in ALL} == {200}
    assert {window.status(path) for path in OWNERS} == {403}
    window = Window(here.client, here.started.auditor)
    assert {path: window.status(path) for path in [*OWNERS, *ALL]} == dict.fromkeys([*OWNERS, *ALL], 200) | {
        "/people": 403, "/register": 403,
    }  # fmt: skip
    window = Window(here.client, here.started.owner)
    assert {window.status(path) for path in [*OWNERS, *ALL]} == {200}
    stranger = Window(here.client, here.started.somebody("stranger", {}))
    assert stranger.status("/tables/people") == 404
    assert "No table is open to you" in stranger.see("/tables")


def test_an_owner_adds_people_tokens_budgets_and_tables(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    own = window.own()
    place = window.send("/people", **own, name=HOSTILE, scope="analyst").headers["location"]
    told = window.send(f"{place}/tokens", **own, label="laptop", days="3").text
    token = re.findall(r'id="new-token">(hf_\w+)<', told)[0]
    assert token not in window.see(place)
    person = here.started.person(token)
    share = {"epsilon": "0.5", "delta": "1e-6"}
    admitted = window.send("/tables/people/analysts", **own, person=person.id, **share)
    assert admitted.status_code == 303
    assert "0.5, δ 10⁻⁶" in window.see("/tables/people/analysts")
    refused = window.send("/tables/people/analysts", **own, person=person.id, epsilon="-1")
    assert refused.status_code == 422

    path = here.started.settings.roots[0] / "more.csv"
    path.write_text("age\n" + "\n".join(str(n % 90) for n in range(500)))
    columns = '[columns.age]\ntype = "integer"\nlo = 0\nhi = 99\n'
    new = {"id": "more", "path": "more.csv", "schema": columns, "epsilon": "1", "delta": "1e-6"}
    assert window.send("/register", **own, **new).headers["location"] == "/tables/more/analysts"
    again = window.send("/register", **own, **new)
    assert again.status_code == 409
    assert "choose another id" in again.text

    visitor = Window(here.client, token)
    visitor.see("/tables/people")
    window = Window(here.client, here.started.owner)
    key = auth.token_id(token)
    window.send(f"{place}/tokens/{key}/revoke", **window.own())
    assert "revoked" in window.see(place)
    assert here.started.gateway.who(token) is None


def _shares(here: Site) -> dict[str, Any]:
    return here.started.gateway.catalog.members("people")


def test_a_share_that_is_changed_keeps_its_answers_unless_they_are_changed_too(here: Site) -> None:
    share = {"epsilon": 1.0, "delta": 1e-6, "queries": 3}
    person = here.started.person(here.started.somebody("counted", share)).id
    window = Window(here.client, here.started.owner)
    own = window.own() | {"person": person, "delta": "1e-6"}
    shown = window.see("/tables/people/analysts")
    assert f'id="queries-{person}" name="queries" inputmode="numeric" value="3"' in shown
    assert "δ 10⁻⁶, 3 answers" in shown
    for sent, queries in (({}, 3), ({"queries": "3"}, 3), ({"queries": "7"}, 7), ({"queries": ""}, None)):
        assert window.send("/tables/people/analysts", **own, epsilon="1.1", **sent).status_code == 303
        assert _shares(here)[person].get("queries") == queries
        assert _shares(here)[person]["epsilon"] == 1.1


def test_a_share_is_refused_on_the_page_as_by_the_api(here: Site) -> None:
    """What was typed stands there again, and the share stays as it was."""
    person = here.started.person(here.started.somebody("steady", {"epsilon": 1.0, "delta": 1e-6})).id
    window, before = Window(here.client, here.started.owner), _shares(here)
    own = window.own()
    for share in (
        {"epsilon": "nan", "delta": "1e-6"}, {"epsilon": "inf", "delta": "1e-6"}, {"rho": "1e30"}, {"rho": "1e-30"},
        {"epsilon": "1e300", "delta": "1e-6"}, {"epsilon": "-1", "delta": "1e-6"}, {"epsilon": "1", "delta": "2"},
        {"epsilon": "1", "delta": "1e-6", "queries": "0"}, {"epsilon": "1", "delta": "1e-6", "queries": "2.5"}, {},
    ):  # fmt: skip
        refused = window.send("/tables/people/analysts", **own, person=person, **share)
        assert refused.status_code == 422, share
        assert (
            f'id="epsilon-{person}" name="epsilon" inputmode="decimal" required value="{share.get("epsilon", "")}"'
            in refused.text
        )
        assert _shares(here) == before
    assert window.send("/tables/people/analysts", **own, person="a\0b", rho="1").status_code == 404
    assert window.send("/tables/people/analysts", **own, rho="1").status_code == 404


def test_the_ledger_is_verified_and_exported(here: Site) -> None:
    window = Window(here.client, here.started.auditor)
    assert "sound" in window.send("/tables/people/verify", **window.own()).text
    lines = window.see("/tables/people/ledger.ndjson").splitlines()
    assert json.loads(lines[-1])["kind"] == "tip"
    analyst = Window(here.client, here.started.analyst)
    assert analyst.send("/tables/people/verify", **analyst.own()).status_code == 403
    shown = here.started.gateway.burn(here.started.person(here.started.analyst), "people", most=3)
    assert len(shown) <= 5
    assert shown[0] == (0, 1.0)
    assert all(first > second for (_, first), (_, second) in pairwise(shown))
    kept = json.loads(analyst.see("/tables/people/answers.json"))
    whole = "".join(here.started.gateway.answers(here.started.person(here.started.analyst), "people"))
    assert kept == json.loads(whole) and kept


# From where the words come


def _seen(window: Window, paths: list[str]) -> dict[str, str]:
    """Pages, less what is drawn afresh for each form."""
    return {path: re.sub(r'(name="call" value=)"\w+"', r"\1", window.see(path)) for path in paths}


def _shows(started: Site, cookies: dict[str, str]) -> dict[str, dict[str, str]]:
    """All pages of all scopes, by a gateway that has just been started in the same folder."""
    with TestClient(create_app(started.started.settings)) as client:
        found = {}
        for scope, cookie in cookies.items():
            window = Window(client)
            client.cookies.set(visits.COOKIE, cookie)
            found[scope] = _seen(window, [path for path in ALL + OWNERS if path not in HIDDEN[scope]])
        return found


HIDDEN = {"owner": ["/boards/churn"], "analyst": ["/boards/churn", *OWNERS]}
NEIGHBOURS = {"age": [n % 100 for n in range(2000)]}


@pytest.fixture
def asked() -> Iterator[tuple[Site, dict[str, str], Path]]:
    """A gateway with answers in its ledger, the cookies of two visits, and where the rows lie."""
    table = hf.open(NEIGHBOURS, hf.Schema(age=hf.Integer(0, 99)))
    with site({"people": table}) as started:
        window = Window(started.client, started.started.analyst)
        for where in ("age > 40", "age > 60"):
            window.send("/tables/people/ask", **window.own("/tables/people"), **QUESTION | {"where": where})
        cookies = {"analyst": window.client.cookies[visits.COOKIE]}
        cookies["owner"] = Window(started.client, started.started.owner).client.cookies[visits.COOKIE]
        yield started, cookies, started.started.settings.roots[0] / "people.hf"


def _swap(place: Path, away: Path) -> None:
    """Put a neighbour (one row replaced by another) where the rows are; the ledger stays."""
    other = dict(NEIGHBOURS, age=[99, *NEIGHBOURS["age"][1:]])
    hf.open(other, hf.Schema(age=hf.Integer(0, 99))).save(away)
    for file in away.iterdir():
        if "ledger" not in file.name:
            shutil.copy2(file, place / file.name)


def _remove(place: Path) -> None:
    for file in place.iterdir():
        if "ledger" not in file.name:
            file.unlink()


def test_pages_are_the_same_for_a_neighbour_and_without_the_rows(
    asked: tuple[Site, dict[str, str], Path], tmp_path: Path
) -> None:
    started, cookies, place = asked
    first = _shows(started, cookies)
    assert "fraction where age" in first["analyst"]["/tables/people/history"]
    _swap(place, tmp_path / "other.hf")
    assert _shows(started, cookies) == first
    _remove(place)
    assert _shows(started, cookies) == first


def test_a_board_is_shown_without_its_labels() -> None:
    """The file that they came from, that is; also after a restart."""
    with site() as started:
        started.started.register_board("alone")
        window = Window(started.client, started.started.analyst)
        before = _seen(window, ["/boards/alone"])
        (started.started.settings.roots[0] / "alone.npy").unlink()
        assert _seen(window, ["/boards/alone"]) == before
        cookie = window.client.cookies[visits.COOKIE]
        with TestClient(create_app(started.started.settings)) as client:
            client.cookies.set(visits.COOKIE, cookie)
            assert client.get("/boards/alone").status_code == 200


def test_a_page_that_looked_at_the_rows_would_be_noticed(
    asked: tuple[Site, dict[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, cookies, place = asked
    honest = Gateway.budget

    def leaky(self: Gateway, asker: Any, key: str) -> dict[str, Any]:
        block = next(iter(self.tables.table(key)._source.scan(["age"])))
        total = int(sum(int(part) for part in block["age"]))
        return honest(self, asker, key) | {
            "answers": total,
            "table": {"spent": {"amount": 0.0}, "answers": total},
        }

    monkeypatch.setattr(Gateway, "budget", leaky)
    first = _shows(started, cookies)
    _swap(place, tmp_path / "other.hf")
    assert _shows(started, cookies) != first


def _refuse_nothing_words(text: str) -> None:
    words = re.sub(r"<[^>]*>", " ", text)
    assert not re.search(r"\b(None|nan|NaN|undefined|Undefined)\b", words), words


class Tags(HTMLParser):
    """The tags of a page that a content policy would have to stop: scripts and styles written into it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        inline = tag == "style" or (tag == "script" and not str(known.get("src")).startswith("/static/"))
        handled = any(name.startswith("on") or name == "style" for name in known)
        if inline or handled or "://" in str(known.get("src")) + str(known.get("href")):
            self.found.append(tag)


def test_no_page_says_none_and_none_has_a_script_or_a_style_of_its_own(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    for path in [*ALL, *OWNERS[:-1], "/sign-in"]:
        text = window.see(path)
        _refuse_nothing_words(text)
        assert Tags(text).found == [], path
    assert "default-src 'self'" in here.client.get("/sign-in").headers["content-security-policy"]
    assert Tags("<p onclick=x><script>x</script><i style=x><img src=http://x>").found == [
        "p",
        "script",
        "i",
        "img",
    ]


def test_hostile_tables_and_columns_are_only_text(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    write_csv(here.started.settings.roots[0] / "odd.csv", {HOSTILE: [HOSTILE] * 50})
    column = {"name": HOSTILE, "type": "category", "labels": [HOSTILE, "other"]}
    new = {"id": "odd", "name": HOSTILE, "path": "odd.csv", "schema": json.dumps({"columns": [column]})}
    assert window.send("/register", **window.own(), **new, rho="1").status_code == 303
    person = here.started.person(here.started.analyst).id
    window.send("/tables/odd/analysts", **window.own(), person=person, rho="0.5")
    window = Window(here.client, here.started.analyst)
    asked = QUESTION | {"kind": "histogram", "column": HOSTILE, "where": "", "exact": "rho", "amount": "0.1"}
    reply = window.send("/tables/odd/ask", **window.own("/tables/odd"), **asked)
    assert reply.status_code == 200
    for text in (
        reply.text,
        window.see("/tables"),
        window.see("/tables/odd"),
        window.see("/tables/odd/history"),
    ):
        assert Tags(text).found == []
        assert "<img src=x" not in text
        assert "&lt;img src=x" in text


def test_hostile_names_are_only_text(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control renders the same page without escaping."""
    here.started.somebody(HOSTILE + "2", {})
    window = Window(here.client, here.started.owner)
    assert "<img src=x" not in window.see("/people")
    assert "&lt;script&gt;alert(2)" in window.see("/people")
    assert "49" not in re.findall(r"<strong>(.*)</strong>", window.see("/people"))[0]
    unescaped = page_shell._environment().overlay(autoescape=False)
    monkeypatch.setattr(page_shell, "_environment", lambda: unescaped)
    assert "<img src=x" in window.see("/people")


# What was not written here


def _differ(folder: Path) -> list[str]:
    """Vendored files that are not what their manifest says, or that it does not know."""
    known = {entry["file"]: entry["sha256"] for entry in json.loads((folder / "vendor.json").read_text())}
    found = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if file.name != "vendor.json"
    }
    return sorted(name for name in known | found if known.get(name) != found.get(name))


def test_vendored_files_are_those_of_the_manifest(tmp_path: Path) -> None:
    assert _differ(VENDOR) == []
    for entry in json.loads((VENDOR / "vendor.json").read_text()):
        assert entry["source"].endswith(f"-{entry['version']}.tgz")
        assert entry["licence"] in ("MIT", "0BSD")
        assert (VENDOR / entry["licence_text"]).read_text().strip()


def test_one_changed_byte_and_one_foreign_file_are_noticed(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(VENDOR, tmp_path / "vendor"))
    script = bytearray((copy / "htmx.min.js").read_bytes())
    script[100] ^= 1
    (copy / "htmx.min.js").write_bytes(script)
    (copy / "more.js").write_text("alert(1)")
    assert _differ(copy) == ["htmx.min.js", "more.js"]


def test_the_demo_is_run_whole_without_scripts_and_by_few_at_a_time(here: Site) -> None:
    text = Window(here.client).see("/demo/whole?attack=hill-climbing")
    shown = {
        name: float(re.findall(rf'id="{name}-best">([\d.]+)<', text)[0]) for name in ("ordinary", "guarded")
    }
    assert shown["ordinary"] > 0.6
    assert shown["guarded"] < shown["ordinary"]
    races = live_attack.Races()
    tickets = [races.start(f"visitor {n}") for n in range(live_attack.MOST)]
    with pytest.raises(Problem, match="rate"):
        races.start("one more")
    newer = races.start("visitor 0")
    assert not races.goes_on("visitor 0", tickets[0])
    races.end("visitor 0", tickets[0])
    assert races.goes_on("visitor 0", newer)
