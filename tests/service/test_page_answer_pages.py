"""One answer by its link, as a file, and beside another; for whoever was given it, and nobody else."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator

import pyarrow
import pytest
from browser import chromium, visit
from gateway import people, running

from holdfast.service.page import look
from holdfast.service.replies import answer_mark
from holdfast.session import Answer
from service.site import Site, site
from service.test_page import Window

GROUPED = {"kind": "fraction", "where": "age > 40", "by": "smoker", "within": 0.1}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site(declared={"target": "table"}) as started:
        yield started


def _told(here: Site, question: dict[str, object], token: str | None = None) -> Answer:
    reply = here.ask(question, token=token)
    assert reply.status_code == 200, reply.text
    return Answer.from_json(json.dumps(reply.json()["answers"][0]))


def test_an_answer_is_reached_by_its_link_and_downloaded(here: Site) -> None:
    answer = _told(here, GROUPED)
    window, link = Window(here.client, here.started.analyst), f"/tables/people/answers/{answer_mark(answer)}"
    assert link in window.see("/tables/people/history")
    assert "age &gt;= 41" in window.see(link)
    rows = list(csv.DictReader(io.StringIO(window.see(f"{link}/answer.csv"))))
    assert [row["group"] for row in rows] == list(answer.labels or ())
    assert [float(row["value"]) for row in rows] == pytest.approx(list(answer.value))
    assert {row["question"] for row in rows} == {answer.question}
    table = pyarrow.ipc.open_file(here.client.get(f"{link}/answer.arrow").content).read_all()
    assert table.column("low").to_pylist() == pytest.approx(list(answer.low))
    assert table.schema.metadata[b"question"].decode() == answer.question


def test_nobody_else_finds_it(here: Site) -> None:
    """The control is the one whose it is; another analyst, the owner and an unknown name find nothing."""
    link = f"/tables/people/answers/{answer_mark(_told(here, GROUPED))}"
    paths = [link, f"{link}/answer.csv", f"{link}/answer.arrow", f"/tables/people/compare?first={link[-24:]}"]
    for token, found in ((here.started.analyst, 200), (here.started.somebody("eve"), 404)):
        window = Window(here.client, token)
        assert {window.status(path) for path in paths} == {found}
    owner, unknown = Window(here.client, here.started.owner), "/tables/people/answers/" + 24 * "0"
    assert owner.status(link) >= 400
    assert Window(here.client, here.started.analyst).status(unknown) == 404


def test_an_arranged_answer_has_a_link_too(here: Site) -> None:
    top = _told(here, {"kind": "top", "column": "smoker", "k": 1, "within": 900})
    assert len(top) == 1
    assert (
        Window(here.client, here.started.analyst).status(f"/tables/people/answers/{answer_mark(top)}") == 200
    )


def test_what_a_spreadsheet_would_compute_is_text() -> None:
    from holdfast.service.page.answer_pages import _cell

    assert [_cell(cell) for cell in ("=1+1", "@x", "no", -3.0)] == ["'=1+1", "'@x", "no", -3.0]


def test_the_last_two_answers_are_proposed_for_a_comparison(here: Site) -> None:
    last = [answer_mark(_told(here, GROUPED | {"where": f"age > {number}"})) for number in (1, 2)]
    shown = Window(here.client, here.started.analyst).see("/tables/people/compare")
    one, other = shown.split('<select id="first"')[1].split('<select id="second"')
    assert " selected" not in one and re.findall('value="([0-9a-f]+)" selected', other) == last[:1]
    assert re.findall('value="([0-9a-f]+)"', one)[0] == last[1], "a browser shows the first"


def test_two_answers_are_apart_where_their_intervals_are(here: Site) -> None:
    few, many = (
        _told(here, {"kind": "fraction", "where": f"age > {age}", "within": 0.05}) for age in (90, 10)
    )
    ((one, other, apart),) = look.side_by_side(few, many)
    assert apart and one.dot < other.dot
    assert [part[2] for part in look.side_by_side(few, few)] == [False]
    window = Window(here.client, here.started.analyst)
    shown = window.see(f"/tables/people/compare?first={answer_mark(few)}&second={answer_mark(many)}")
    assert "<td>yes</td>" in shown
    assert look.side_by_side(few, _told(here, GROUPED)) == []


def test_the_meter_is_a_gauge_beside_the_budget() -> None:
    with site(declared={"queries": 50}) as planned:
        window = Window(planned.client, planned.started.analyst)
        shown = window.see("/tables/people")
        assert re.search(r"<p class=\"big\">50 <small>left, each within ± [\d.]+ of the population", shown)
        assert "50 answers of 50 left" in shown
        own = window.own("/tables/people")
        window.send("/tables/people/ask", **own, kind="fraction", where="age > 40", exact="within")
        assert "49 answers of 50 left" in window.see("/tables/people")


def test_an_answer_is_marked_as_old_while_the_form_asks_something_else() -> None:
    with (
        running({"people": people(2_000)}, declared={"target": "table"}) as started,
        chromium() as browser,
        visit(browser, started.url) as visitor,
    ):
        page = visitor.enter(started.analyst)
        page.goto(f"{started.url}/tables/people")
        page.fill("#where", "age > 40")
        page.fill("#amount", "0.2")
        assert not page.is_visible("#stale")
        page.click(".go")
        page.wait_for_selector(".answer .told")
        assert not page.is_visible("#stale")
        page.fill("#where", "age > 41")
        page.wait_for_selector("#stale")
        page.fill("#where", "age > 40")
        page.wait_for_selector("#stale", state="hidden")
        page.fill("#where", "age > 50")
        page.wait_for_selector("#stale")
        page.click(".go")
        page.wait_for_selector("#stale", state="hidden")
        assert visitor.complaints == []
