"""A gateway's door to units that are set aside: accounts of their own, under the one cap of the table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gateway import people, prepared

import holdfast as hf
from holdfast.ledger import Commit, Outcome, Reserve, verify_export
from holdfast.service import gateway as gateway_module
from holdfast.service import tables as tables_module
from holdfast.service.catalog import Catalog
from holdfast.service.gateway import Gateway
from holdfast.service.public_times import PublicTimesLedger
from holdfast.service.replies import Reply
from service.apart import (
    ASIDE,
    BOTH,
    CAP,
    COUNT,
    LAPLACE,
    ROWS,
    SCHEMA,
    SHARE,
    admit,
    divided,
    registered,
    spent,
    told,
)
from service.at_once import DATABASES
from service.process import database_of
from service.site import site, write_csv

# What is asked, and what it costs


@pytest.mark.parametrize("database", DATABASES)
def test_each_part_answers_about_its_own_units(database: str) -> None:
    url = database_of(database).get("HOLDFAST_DATABASE")
    with divided(*BOTH, database=url) as here:
        shown = [here.call("GET", f"/datasets/{part}").json() for part in BOTH]
        assert [(each["id"], each["rows"], each["aside"]) for each in shown] == [
            ("ages", ROWS - ASIDE, ASIDE), ("ages.aside", ASIDE, 0)
        ]  # fmt: skip
        assert [each["id"] for each in here.call("GET", "/datasets").json()] == ["ages"]
        answers = [told(here.ask(COUNT, table=part)) for part in BOTH]
        assert [answer["rows_read"] for answer in answers] == [ROWS - ASIDE, ASIDE]
        every = np.random.default_rng(3).integers(0, 100, ROWS)
        assert sum(answer["value"] for answer in answers) == pytest.approx(int((every < 50).sum()), abs=2)
        sql = {"kind": "sql", "text": "SELECT count(*) FROM ages WHERE age < 50", "rho": 500.0}
        again = here.ask(sql, table="ages.aside").json()
        assert again["repeated"] == [True], "FROM calls a part by the name of its table"
        assert [spent(here, part) for part in BOTH] == pytest.approx([500.0, 500.0])


def test_a_gateway_that_answers_from_the_rest_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: what is set aside is opened as the rest is."""
    monkeypatch.setattr(tables_module.Table, "aside", property(lambda table: table))
    with pytest.raises(AssertionError):
        test_each_part_answers_about_its_own_units("sqlite")


@pytest.mark.parametrize("apart", [True, False])
def test_what_is_told_of_units_aside_ends_nothing_for_the_rest(apart: bool) -> None:
    """The broken twin has no units aside, and its owner allows what ends the theorem."""
    more = {"queries": 20} | ({} if apart else {"set_aside": None, "allow_uncovered": True})
    with divided("ages", more=more) as here:
        if apart:
            admit(here, "ages.aside")
        before = here.call("GET", "/datasets/ages/meter").json()
        if apart:
            refused = here.ask(LAPLACE, table="ages").json()
            assert refused["code"] == "budget" and "table.aside.session" in refused["detail"]
        assert told(here.ask(LAPLACE, table="ages.aside" if apart else "ages"))["ends_theorem"] is not apart
        assert (here.call("GET", "/datasets/ages/meter").json() == before) is apart
        if apart:
            assert here.call("GET", "/datasets/ages.aside/meter").json()["meter"] is None


class Uncounted(PublicTimesLedger):
    """A ledger that does not charge the table for what is told of units aside."""

    def commit_all(self, commits: Sequence[Commit]) -> list[Outcome]:
        return super().commit_all([_free(each) if isinstance(each, Reserve) else each for each in commits])

    def reserve(self, session: str, *given: Any, **more: Any) -> Any:
        key, plan, event, charge, *holds = given
        freed = _free(Reserve(session, key, plan, event, charge)).charge
        return super().reserve(session, key, plan, event, freed, *holds, **more)


def _free(asked: Reserve) -> Reserve:
    return replace(asked, charge=replace(asked.charge, table=0)) if asked.session.endswith("aside") else asked


@pytest.mark.parametrize("counted", [True, False])
def test_both_parts_are_charged_to_the_one_cap(monkeypatch: pytest.MonkeyPatch, counted: bool) -> None:
    if not counted:
        monkeypatch.setattr(tables_module, "PublicTimesLedger", Uncounted)
    with divided(more={"budget": {"rho": 3.0}}) as here:
        for part in BOTH:
            assert admit(here, part, {"rho": 4.0}).status_code == 422, "a share above the table's cap"
            assert admit(here, part, {"rho": 2.0}).status_code == 204
        asked = {"kind": "count", "where": "age < 50", "rho": 2.0, "confirm": True}
        assert here.ask(asked, table="ages.aside").status_code == 200
        reply = here.ask(asked, table="ages")
        assert (reply.status_code == 402) is counted
        if counted:
            assert here.totals("ages").units == pytest.approx(2e9)
            assert here.ask(asked | {"rho": 1.0}, table="ages").status_code == 200, "the rest of the cap"
            shown = here.call("GET", "/datasets/ages.aside/budget").json()
            assert shown["table"]["spent"]["amount"] == pytest.approx(3.0)
            assert shown["remaining"]["amount"] == 0


def test_a_share_of_a_part_is_planned_and_kept_for_itself() -> None:
    with divided("ages") as here:
        assert admit(here, "ages.aside", SHARE | {"queries": 2}).status_code == 204
        assert here.call("GET", "/datasets/ages.aside/meter").json()["queries"] == 2
        for number in (20, 30):
            assert here.ask(LAPLACE | {"where": f"age < {number}"}, table="ages.aside").status_code == 200
        full = here.ask(LAPLACE, table="ages.aside")
        assert full.status_code == 402 and "promised for 2 queries" in full.json()["detail"]
        assert told(here.ask({"kind": "fraction", "where": "age < 50", "rho": 1e-3}, table="ages"))
        assert admit(here, "ages.aside", {"rho": 1e-4}).status_code == 422, "less than was spent"
        assert admit(here, "ages.aside", SHARE | {"queries": 3}).status_code == 422, "more than was planned"
        analysts = here.call("GET", "/datasets/ages.aside/analysts", token=here.started.owner).json()
        assert [(each["name"], each["answers"], each["closed"]) for each in analysts] == [("ann", 2, False)]


def test_sparse_vectors_and_quantiles_of_old_are_asked_of_units_aside() -> None:
    with divided(*BOTH) as here:
        vector = {"kind": "above", "name": "w", "threshold": 0.4, "hits": 1, "rho": 0.5, "where": "age < 5"}
        asked = vector | {"version": "best"}
        assert here.ask(asked, table="ages").status_code == 402
        reply = here.ask(asked, table="ages.aside")
        assert reply.status_code == 200 and reply.json()["above"] is False, reply.text
        asked = {"kind": "quantile", "column": "age", "rank": 0.5, "rho": 1.0, "mechanism": "exponential"}
        assert here.ask(asked, table="ages").status_code == 402
        assert abs(told(here.ask(asked, table="ages.aside"))["value"] - 50) < 20


# Retries, closing, withdrawing


class Confused(Reply):
    """Keys are remembered for a table, whichever part of it was asked."""

    def __init__(self, catalog: Catalog, asker: Any, place: str, what: str, call: str | None) -> None:
        super().__init__(catalog, asker, place.removesuffix(".aside"), what, call)


@pytest.mark.parametrize("apart", [True, False])
def test_a_call_is_repeated_in_its_own_part(monkeypatch: pytest.MonkeyPatch, apart: bool) -> None:
    if not apart:
        monkeypatch.setattr(gateway_module, "Reply", Confused)
    with divided(*BOTH) as here:
        first, other = (here.ask(COUNT, table=part, key="one") for part in BOTH)
        assert (first.text != other.text) is apart
        again = here.ask(COUNT, table="ages.aside", key="one")
        assert again.text == other.text
        assert spent(here, "ages.aside") == pytest.approx(500.0 if apart else 0.0)
        taken = here.ask(LAPLACE, table="ages.aside", key="one")
        assert taken.json()["code"] == "idempotency"


@pytest.mark.parametrize("both", [True, False])
def test_who_is_withdrawn_from_a_table_asks_no_part_of_it(
    monkeypatch: pytest.MonkeyPatch, both: bool
) -> None:
    """The broken twin withdraws from the rest alone."""
    if not both:
        monkeypatch.setattr(tables_module, "with_parts", lambda key: (key,))
    with divided(*BOTH) as here:
        ann = here.started.person(here.started.analyst).id
        here.ask(COUNT, table="ages.aside")
        gone = here.call("DELETE", f"/datasets/ages/members/{ann}", token=here.started.owner)
        assert gone.status_code == 204
        assert here.ask(COUNT, table="ages").status_code == 404
        assert (here.ask(COUNT, table="ages.aside").status_code == 404) is both
        assert (f"{ann} aside" in here.ledger("ages").ended()) is both
        assert (admit(here, "ages.aside").status_code == 422) is both, "closed for good"


def test_a_part_is_closed_and_withdrawn_by_itself() -> None:
    with divided(*BOTH) as here:
        ann = here.started.person(here.started.analyst).id
        assert here.call("DELETE", f"/datasets/ages.aside/analysts/{ann}").json() == {"closed": True}
        closed = [here.call("GET", f"/datasets/{part}/meter").json()["closed"] for part in BOTH]
        assert closed == [False, True]
        assert here.ask(COUNT, table="ages.aside").status_code == 402
        assert here.ask(COUNT, table="ages").status_code == 200
        owner = here.started.owner
        assert here.call("DELETE", f"/datasets/ages.aside/members/{ann}", token=owner).status_code == 204
        assert here.call("GET", "/datasets/ages.aside/budget").json().keys() == {"table"}
        assert here.call("GET", "/datasets/ages/budget").json()["answers"] == 1
        kinds = [(deed.kind, deed.fields.get("table")) for deed in here.started.gateway.catalog.deeds.all()]
        assert kinds[-1] == ("withdrawn", "ages.aside")


def test_the_ledger_of_both_is_exported_and_verified() -> None:
    with divided(*BOTH) as here:
        for part in BOTH:
            here.ask(COUNT, table=part)
        owner = here.started.person(here.started.owner)
        lines = list(here.started.gateway.export(owner, "ages"))
        assert verify_export(lines).answered == 2
        assert here.started.gateway.verify(owner, "ages") == here.started.gateway.verify(owner, "ages.aside")
        shown = here.started.gateway.entries(owner, "ages")
        assert [entry["name"] for entry in shown] == ["ann, aside", "ann"]
        for method, path, body in (("DELETE", "", None), ("PUT", "/budget", CAP), ("GET", "/ledger", None)):
            reply = here.call(method, f"/datasets/ages.aside{path}", body, token=here.started.owner)
            assert reply.status_code == 422, "a part has no cap, no ledger and no end of its own"
        with pytest.raises(hf.InputError, match="give 'ages'"):
            here.started.gateway.retire(owner, "ages.aside")
        with pytest.raises(hf.InputError, match="give 'ages'"):
            here.started.gateway.set_cap(owner, "ages.aside", CAP)
        here.started.gateway.retire(owner, "ages")
        assert [here.ask(COUNT, table=part).status_code for part in BOTH] == [404, 404]
        assert here.started.gateway.tables.dataset("ages.aside").retired


# Who sees what, and what is refused


@pytest.mark.parametrize("known", [True, False])
def test_a_stranger_is_not_told_whether_there_is_a_part(monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    """The broken twin lets everybody see every table."""
    if not known:
        monkeypatch.setattr(Gateway, "_sees", lambda guard, asker, key: True)
    with divided(more={"set_aside": None}) as here:
        codes = {
            here.call("GET", f"/datasets/{path}{end}").status_code
            for path in ("ages", "ages.aside", "none", "none.aside")
            for end in ("", "/budget", "/meter")
        }
        assert (codes == {404}) is known
        assert here.ask(COUNT, table="ages.aside").status_code == 404
        assert here.ask(COUNT, table="ages.asid").status_code == 422


def test_who_may_ask_a_part_alone_sees_the_table() -> None:
    with divided("ages.aside") as here:
        assert [each["id"] for each in here.call("GET", "/datasets").json()] == ["ages"]
        assert here.call("GET", "/datasets/ages/budget").json().keys() == {"table"}
        assert here.ask(COUNT, table="ages").status_code == 404
        assert here.ask(COUNT, table="ages.aside").status_code == 200


def test_a_table_without_parts_has_no_door() -> None:
    with divided("ages", more={"set_aside": None}) as here:
        assert here.call("GET", "/datasets/ages").json()["aside"] == 0
        reply = here.call("GET", "/datasets/ages.aside")
        assert reply.status_code == 422 and "got one without" in reply.json()["detail"]
        assert here.ask(COUNT, table="ages.aside").status_code == 404
        reply = admit(here, "ages.aside")
        assert reply.status_code == 422 and "got one without" in reply.json()["detail"]
        assert here.started.gateway.catalog.members("ages.aside") == {}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"set_aside": 1e-9}, "both parts have units"),
        ({"set_aside": 1.5}, "set_aside: Input should be less"),
        ({"target": "table"}, "about a population"),
        ({"path": "saved.hf", "schema": None}, "whose own ledger says it"),
    ],
)
def test_what_cannot_be_set_aside_is_refused_before_anything_is_kept(
    more: dict[str, Any], words: str
) -> None:
    with site({}) as here:
        people(1000).save(here.started.settings.roots[0] / "saved.hf").close()
        reply = registered(here, **more)
        assert reply.status_code == 422 and words in reply.json()["detail"], reply.text
        assert here.started.gateway.tables.all() == []
        assert not list((here.started.settings.folder / "ledgers").glob("*"))
        assert registered(here).status_code == 201
        again = registered(here, id="again", set_aside=0.5)
        assert again.json()["code"] == "taken", "the same rows are divided once"


def test_nobody_asks_what_is_aside_of_a_table_that_is_its_own_population() -> None:
    with prepared({}) as started:
        place = started.settings.roots[0] / "people.hf"
        people(1000).save(place).close()
        hf.open(place, set_aside=0.1).close()
        owner = started.person(started.owner)
        terms = {"confidence": 0.95, "queries": None, "target": "table"}
        started.gateway.register(owner, "people", "people.hf", None, name="people", budget=CAP, **terms)
        with pytest.raises(hf.InputError, match="got one that is all there is"):
            started.gateway.admit(owner, "people.aside", started.person(started.analyst).id, SHARE)
        assert started.gateway.catalog.members("people.aside") == {}


def test_a_session_is_not_opened_again_on_the_other_part() -> None:
    with divided(*BOTH) as here:
        ann, table = here.started.person(here.started.analyst).id, here.started.gateway.tables.table("ages")
        for part, name in ((table, f"{ann} aside"), (table.aside, ann)):
            with pytest.raises(hf.LedgerError, match="open it on the same terms"):
                part.session(name=name)


@pytest.mark.parametrize("resumed", [True, False])
def test_an_interrupted_registration_is_divided_as_it_was_meant(
    monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    """The process dies after units were set aside, before the catalog knows. The broken twin forgets the share, and
    nothing is set aside where it died before."""

    def dies(*given: Any) -> None:
        raise KeyboardInterrupt

    with site({}) as here:
        settings = here.started.settings
        with monkeypatch.context() as patched:
            patched.setattr(Catalog, "take_back", lambda *given: None)
            patched.setattr(Catalog, "set_ledger" if resumed else "take_back", dies)
            patched.setattr(tables_module, "keep_aside", tables_module.keep_aside if resumed else dies)
            with pytest.raises(KeyboardInterrupt):
                owner = here.started.person(here.started.owner)
                write_csv(settings.roots[0] / "ages.csv", {"age": list(range(ROWS))})
                declared = {"name": "ages", "budget": CAP, "confidence": 0.95, "queries": None}
                here.started.gateway.register(
                    owner, "ages", "ages.csv", hf.Schema.from_json(SCHEMA), set_aside=0.1, target="population",
                    **declared,
                )  # fmt: skip
        if not resumed:
            monkeypatch.setattr(tables_module, "keep_aside", lambda *given: None)
        with closing(Gateway(settings)) as later:
            later.check()
            assert (later.tables.dataset("ages").aside == ASIDE) is resumed
