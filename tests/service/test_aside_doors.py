"""Units that are set aside, by every door: stores, servers, the client, the page and the machine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gateway import people, prepared, running
from services import postgres

import holdfast as hf
from holdfast.cli import main
from holdfast.service import tables as tables_module
from holdfast.service.gateway import Gateway
from service.apart import ASIDE, BOTH, CAP, COUNT, ROWS, SHARE, divided, told
from service.site import site, write_csv
from service.test_page import Window


@pytest.mark.parametrize("followed", [True, False])
def test_a_store_is_asked_as_its_ledger_says(monkeypatch: pytest.MonkeyPatch, followed: bool) -> None:
    """The broken twin does not look what the ledger says of them, and tells how many all are."""
    if not followed:
        monkeypatch.setattr(tables_module, "kept_aside", lambda ledger, rows: None)
    with running({}) as started:
        place, owner = started.settings.roots[0] / "people.hf", started.person(started.owner)
        people(1000).save(place).close()
        hf.open(place, set_aside=0.1).close()
        terms = {"confidence": 0.95, "queries": None, "target": "population"}
        started.gateway.register(owner, "people", "people.hf", None, name="people", budget=CAP, **terms)
        token = started.somebody("asker", SHARE)
        table = hf.connect(started.url, token).table("people")
        assert (table.rows == 900) is followed is (started.gateway.tables.all()[0].rows == 900)
        session = table.session()
        assert session.fraction("age < 50", rho=1e-3).rows_read == 900
        with pytest.raises(hf.BudgetError, match=r"table\.aside\.session"):
            session.fraction("age < 50", rho=1e-6, mechanism="laplace")
        if not followed:
            with pytest.raises(hf.InputError, match="got one without"):
                table.aside
            return
        assert table.aside.rows == 100 and table.aside.id == "people.aside"
        with pytest.raises(hf.InputError, match="expected a budget"):
            table.aside.session()
        started.gateway.admit(owner, "people.aside", started.person(token).id, SHARE)
        apart = table.aside.session()
        answer = apart.fraction("age < 50", rho=1e-3, mechanism="laplace")
        assert answer.rows_read == 100 and not answer.ends_theorem and apart.history == [answer]
        assert apart.fraction("age < 50", rho=1e-3, mechanism="laplace").repeated
        before = table.spent
        there = hf.open(place).aside.session(rho=1.0).fraction("age < 60", rho=1e-3, mechanism="laplace")
        assert there.rows_read == 100 and table.spent > before, "one budget, wherever it is asked"
        with pytest.raises(hf.InputError, match="got one without"):
            table.aside.aside
        apart.close()
        assert apart.closed and not session.closed


@pytest.mark.parametrize("watched", [True, False])
def test_a_store_that_is_divided_after_its_registration_is_counted_anew(
    monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    """While nobody was admitted. The broken twin tells what the catalog knew."""
    with prepared({}) as started:
        place, owner = started.settings.roots[0] / "people.hf", started.person(started.owner)
        people(1000).save(place).close()
        terms = {"confidence": 0.95, "queries": None, "target": "population"}
        started.gateway.register(owner, "people", "people.hf", None, name="people", budget=CAP, **terms)
        hf.open(place, set_aside=0.1).close()
        with pytest.raises(hf.LedgerError, match="set aside since"):
            started.gateway.admit(owner, "people", started.person(started.analyst).id, SHARE)
        if not watched:
            monkeypatch.setattr(tables_module.Tables, "_counted", lambda tables, dataset, ledger: dataset)
        with closing(Gateway(started.settings)) as later:
            assert (later.tables.dataset("people").rows == 900) is watched
            assert (later.tables.all()[0].aside == 100) is watched


def test_a_table_of_postgresql_is_divided_and_refused_when_it_was_written_to() -> None:
    postgres().execute("CREATE TABLE divided AS SELECT i % 100 AS age FROM generate_series(1, 2000) AS s(i)")
    more = {"path": postgres().url, "relation": "divided"}
    with divided(*BOTH, more=more, postgres_tables=True) as here:
        answers = [told(here.ask(COUNT, table=part)) for part in BOTH]
        assert [answer["rows_read"] for answer in answers] == [ROWS - ASIDE, ASIDE]
        assert sum(answer["value"] for answer in answers) == pytest.approx(1000, abs=1)
        postgres().execute("UPDATE divided SET age = 99 WHERE age = 98")
        with closing(Gateway(here.started.settings)) as later:
            ann = here.started.person(here.started.analyst)
            asked = {"rho": 1e-3, "mechanism": "laplace"}
            with pytest.raises(hf.DataError, match="in the order in which units were set aside"):
                later.tables.session("ages.aside", ann).fraction("age < 3", **asked)


def test_answers_about_units_aside_take_none_of_those_that_were_promised() -> None:
    with divided(*BOTH, more={"queries": 20}) as here:
        here.ask(COUNT, table="ages.aside")
        here.ask({"kind": "fraction", "where": "age < 50", "rho": 1e-3}, table="ages")
        told = here.call("GET", "/metrics", token=here.started.owner).text
        assert 'holdfast_answers{dataset="ages"} 1' in told and "ages.aside" not in told
        assert 'holdfast_ledger_entries{dataset="ages"} 2' in told


def test_the_page_asks_both_parts() -> None:
    with divided("ages") as here:
        window = Window(here.client, here.started.owner)
        ann = here.started.person(here.started.analyst).id
        text = window.see("/register")
        assert 'name="set_aside"' in text
        text = window.see("/tables/ages.aside/analysts")
        assert "for both parts together" in text and "Set the cap" not in text and "Retire" not in text
        own = window.own("/tables/ages.aside/analysts")
        sent = window.send("/tables/ages.aside/analysts", **own, person=ann, rho="100", queries="")
        assert sent.status_code == 303, sent.text
        assert "who ask what is set aside" in window.see("/tables/ages/analysts")
        assert "ann, aside" in window.see("/overview")
        assert "ann" in window.see("/tables/ages.aside/analysts")
        window = Window(here.client, here.started.analyst)
        assert "1,800 rows and 200 set aside" in window.see("/tables")
        text = window.see("/tables/ages")
        assert "1,800 rows and 200 set aside" in text and 'href="/tables/ages.aside"' in text
        text = window.see("/tables/ages.aside")
        assert 'action="/tables/ages.aside/ask"' in text and 'href="/tables/ages">The table' in text
        form = {
            "kind": "fraction",
            "where": "age < 50",
            "exact": "rho",
            "amount": "0.001",
            "mechanism": "laplace",
        }
        refused = window.send("/tables/ages/ask", **window.own("/tables/ages"), **form)
        assert refused.status_code == 402
        asked = window.send("/tables/ages.aside/ask", **window.own("/tables/ages.aside"), **form)
        assert asked.status_code == 200 and "200 rows" in asked.text
        history = window.see("/tables/ages.aside/history")
        assert "fraction where" in history
        assert "fraction where" not in window.see("/tables/ages/history")
        (mark,) = {part.split('"')[0] for part in history.split("/answers/")[1:]}
        assert window.see(f"/tables/ages.aside/answers/{mark}") and window.status(
            f"/tables/ages/answers/{mark}"
        ) == 404  # fmt: skip
        closed = window.send("/tables/ages.aside/close", **window.own("/tables/ages.aside/history"))
        assert closed.status_code == 303
        assert "Your session is closed" in window.see("/tables/ages.aside/history")
        assert "Your session is closed" not in window.see("/tables/ages/history")


def test_a_table_is_registered_and_admitted_to_at_the_machine(tmp_path: Path) -> None:
    with site({}) as here:
        settings = here.started.settings
        write_csv(settings.roots[0] / "ages.csv", {"age": list(range(ROWS))})
        (tmp_path / "ages.toml").write_text('[columns.age]\ntype = "integer"\nlo = 0\nhi = 99\n')
        place = ["gateway", "--folder", str(settings.folder), "--anchors", str(settings.anchors)]

        def run(*command: str) -> Any:
            return CliRunner().invoke(main, [*place, *command])

        terms = ["--schema", str(tmp_path / "ages.toml"), "--rho", "2000"]
        for share, words in (("2", "set_aside"), ("1e-9", "both parts")):
            refused = run("register", "ages", "ages.csv", *terms, "--set-aside", share)
            assert refused.exit_code == 1 and words in refused.output
        done = run("register", "ages", "ages.csv", *terms, "--set-aside", "0.1")
        assert done.output == "ages has 1,800 rows and 200 set aside\n", done.output
        for part in BOTH:
            done = run("admit", part, "ann", "--rho", "1000", "--queries", "5")
            assert done.output == f"ann may ask {part}\n", done.output
        assert run("admit", "ages.aside", "ann", "--rho", "3000").exit_code == 1
        assert told(here.ask(COUNT, table="ages.aside"))["rows_read"] == ASIDE
        assert run("withdraw", "ages.aside", "ann").exit_code == 0
        assert [here.ask(COUNT, table=part).status_code for part in BOTH] == [200, 404]
