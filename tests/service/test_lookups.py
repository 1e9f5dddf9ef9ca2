"""Public tables at a gateway: registered by an owner, joined over HTTP, and silent about the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.hospital import BOUNDS, SCHEMAS, hospital
from gateway import running

import holdfast as hf
from holdfast.client import connect
from holdfast.data import deferred
from holdfast.ledger import MemoryLedger
from service.test_page import Window

from .site import Site, site

JOIN = "SELECT count(*) FROM flights JOIN carriers USING (carrier) WHERE carriers.planes > 900"
SCHEMA = {
    "columns": [
        {"name": "carrier", "type": "category", "labels": ["AA", "DL", "ZZ"]},
        {"name": "delay", "type": "integer", "lo": 0, "hi": 100},
    ]
}
CARRIERS = "carrier,name,planes\nAA,American,950\nDL,Delta,880\n"
LOOKUPS = {"carriers": {"path": "carriers.csv", "key": "carrier"}}


def flights(folder: Path, name: str = "flights.csv", seed: int = 1) -> None:
    random = np.random.default_rng(seed)
    carriers, delays = random.choice(["AA", "DL", "ZZ"], 2000), random.integers(0, 101, 2000)
    lines = [f"{carrier},{delay}" for carrier, delay in zip(carriers, delays, strict=True)]
    (folder / name).write_text("carrier,delay\n" + "\n".join(lines) + "\n")
    (folder / "carriers.csv").write_text(CARRIERS)


def body(lookups: Any = LOOKUPS, **more: Any) -> dict[str, Any]:
    declared = {"id": "flights", "path": "flights.csv", "schema": SCHEMA, "target": "table"}
    return {**declared, "budget": {"epsilon": 30.0, "delta": 1e-6}, "lookups": lookups, **more}


@pytest.fixture
def here() -> Iterator[Site]:
    with site(declared={"target": "table"}) as found:
        flights(found.started.settings.roots[0])
        yield found


def registered(here: Site, **more: Any) -> None:
    reply = here.call("POST", "/datasets", body(**more), token=here.started.owner)
    assert reply.status_code in (200, 201), reply.text
    share = {"epsilon": 30.0, "delta": 1e-6}
    person = here.started.person(here.started.analyst).id
    reply = here.call("PUT", f"/datasets/flights/analysts/{person}", share, token=here.started.owner)
    assert reply.status_code < 300, reply.text


def test_a_join_is_asked_over_http(here: Site) -> None:
    registered(here)
    told = here.call("GET", "/datasets/flights").json()
    (public,) = told["public_tables"]
    assert (public["name"], public["keys"], public["beside"]) == ("carriers", [["carrier", "carrier"]], None)
    assert "carriers.csv" not in str(told) and "lookups" not in told
    reply = here.ask({"kind": "sql", "text": JOIN, "rho": 0.5}, table="flights")
    assert reply.status_code == 200, reply.text
    table = hf.open(
        str(here.started.settings.roots[0] / "flights.csv"),
        hf.Schema.from_json(SCHEMA),
        ledger=MemoryLedger(),
        lookups={"carriers": hf.Lookup(str(here.started.settings.roots[0] / "carriers.csv"), "carrier")},
    )
    exact = table.session(epsilon=1e6, delta=1e-6, target="table").sql_one(JOIN, rho=1e5).value
    (answer,) = reply.json()["answers"]
    assert abs(answer["value"] - exact) < 30
    by = here.ask(
        {"kind": "mean", "column": "delay", "by": "carriers.name", "rho": 0.5}, table="flights"
    ).json()
    assert by["answers"][0]["labels"] == ["American", "Delta"]


def test_what_is_wrong_is_said_to_the_owner_before_anything_is_kept(here: Site) -> None:
    folder = here.started.settings.roots[0]
    (folder / "twice.csv").write_text(CARRIERS + "AA,Again,3\n")
    (folder.parent / "outside.csv").write_text(CARRIERS)
    for lookups, said in (
        ({"carriers": {"path": "nothing.csv", "key": "carrier"}}, "below the gateway's data folders"),
        ({"carriers": {"path": "../outside.csv", "key": "carrier"}}, "below the gateway's data folders"),
        ({"carriers": {"path": "postgresql://host/db", "key": "carrier"}}, "public table as a file"),
        ({"carriers": {"path": "carriers.csv", "key": "nothere"}}, "nothere"),
        ({"carriers": {"path": "carriers.csv", "key": {"delay": "carrier", "carrier": "carrier"}}}, "once"),
        ({"carriers": {"path": "carriers.csv", "key": []}}, "key"),
        ({"carriers": {"path": "carriers.csv"}}, "key"),
        ({"delay": {"path": "carriers.csv", "key": "carrier"}}, "different names"),
        ({"two words": {"path": "carriers.csv", "key": "carrier"}}, "plain words"),
        ({"carriers": {"path": "twice.csv", "key": "carrier"}}, ""),
    ):
        reply = here.call("POST", "/datasets", body(lookups), token=here.started.owner)
        assert reply.status_code in (422, 503), (lookups, reply.text)
        assert said in reply.text and "American" not in reply.text, reply.text
    assert here.call("GET", "/datasets/flights", token=here.started.owner).status_code == 404
    reply = here.call("POST", "/datasets", body())
    assert reply.status_code == 403


def changed(here: Site) -> tuple[int, int]:
    """What is replied, and charged, when the public table is another one at the next start."""
    registered(here)
    (here.started.settings.roots[0] / "carriers.csv").write_text(CARRIERS.replace("950", "850"))
    here.started.gateway.tables.close()
    reply = here.ask({"kind": "sql", "text": JOIN, "rho": 0.5}, table="flights")
    assert "American" not in reply.text and "850" not in reply.text
    return reply.status_code, here.totals("flights").entries


def test_another_public_table_in_its_place_answers_nothing(here: Site) -> None:
    assert changed(here)[0] == 503


def test_a_gateway_that_takes_any_table_for_the_registered_one_is_caught(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred.DeferredSource, "_looking_up", lambda self, source: with_any(self, source))
    assert changed(here)[0] == 200


def with_any(deferred_source: Any, source: Any) -> Any:
    return deferred._beside(source, deferred_source._lookups)


def test_errors_and_descriptions_do_not_depend_on_the_rows(here: Site) -> None:
    """Two tables whose rows find other things in the public one: the same words, the same bytes."""
    shown = []
    for name in ("flights", "others"):
        flights(here.started.settings.roots[0], f"{name}.csv", seed=len(name))
        if name == "others":
            (here.started.settings.roots[0] / "others.csv").write_text("carrier,delay\n" + "ZZ,1\n" * 2000)
        declared = body(id=name, path=f"{name}.csv", name="the same")
        assert here.call("POST", "/datasets", declared, token=here.started.owner).status_code < 300
        person = here.started.person(here.started.analyst).id
        share = {"epsilon": 30.0, "delta": 1e-6}
        here.call("PUT", f"/datasets/{name}/analysts/{person}", share, token=here.started.owner)
        told = here.call("GET", f"/datasets/{name}").json()
        told.pop("id")
        texts = [str(told)]
        for question in (
            {"kind": "sql", "text": "SELECT avg(planes) FROM t LEFT JOIN carriers USING (carrier)"},
            {"kind": "sql", "text": "SELECT count(*) FROM t JOIN carriers ON delay = carriers.planes"},
            {"kind": "sql", "text": "SELECT count(*) FROM t JOIN airports USING (carrier)"},
            {"kind": "mean", "column": "carriers.nothere"},
            {"kind": "fraction", "where": "carriers.name = 'American'", "by": "carriers.planes"},
        ):
            reply = here.estimate({**question, "rho": 0.01}, table=name)
            texts.append(f"{reply.status_code} {reply.text}")
        reply = here.ask({"kind": "mean", "column": "carriers.planes", "rho": 0.01}, table=name)
        texts.append(f"{reply.status_code} {reply.text if reply.status_code != 200 else ''}")
        shown.append([text.replace("flights", "TABLE").replace("others", "TABLE") for text in texts])
    for one, other in zip(*shown, strict=True):
        assert one == other
    assert [text[:3] for text in shown[0][1:]] == ["200", "422", "422", "422", "200", "200"], shown[0][-1]


def test_a_client_joins_and_units_have_public_tables_too(tmp_path: Path) -> None:
    with running(declared={"target": "table"}) as started:
        folder = started.settings.roots[0]
        opened = hf.open(hospital(300), SCHEMAS, unit="person", rows_per_unit=BOUNDS, ledger=MemoryLedger())
        opened.save(folder / "hospital.hf").close()
        (folder / "wards.csv").write_text("ward,beds\nsurgery,4\nheart,9\n")
        owner = started.person(started.owner)
        started.gateway.register(
            owner, "hospital", "hospital.hf", None, name="hospital", target="table", confidence=0.95, queries=None,
            budget={"epsilon": 30.0, "delta": 1e-6},
            lookups={"wards": {"path": "wards.csv", "key": {"visits.ward": "ward"}}},
        )  # fmt: skip
        table = connect(started.url, started.somebody("asker")).table("hospital")
        session = table.session()
        assert session.count("exists(visits, wards.beds > 6)", rho=0.1).value > 0
        assert session.mean("wards.beds", rho=0.1).value > 4
        (answer,) = session.sql(
            "SELECT count(*) FROM visits JOIN wards USING (ward) WHERE wards.beds > 6", rho=0.1
        )
        assert answer.value > 0
        # A share that was remembered, and a table that is opened: the reply comes from a thread, not from the loop.
        assert started.gateway.tables.ready("hospital", started.person(started.analyst)) is None


def test_the_page_registers_them(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    own = window.own("/register")
    columns = '[columns.carrier]\ntype = "category"\nlabels = ["AA", "DL", "ZZ"]\n'
    given = {"id": "flights", "path": "flights.csv", "schema": columns, "epsilon": "1", "delta": "1e-6"}
    wrong = window.send("/register", **own, **given, lookups="carriers = [")
    assert wrong.status_code == 422 and "public tables as TOML" in wrong.text
    toml = '[carriers]\npath = "carriers.csv"\nkey = "carrier"\n'
    reply = window.send("/register", **own, **given, lookups=toml)
    assert reply.status_code == 303, reply.text
    assert "carriers.planes" in window.see("/tables/flights")
