"""Rows have one budget: under whichever names, and however many owners register them at the same moment."""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from gateway import BUDGET, people, prepared, running
from services import postgres

import holdfast as hf
from holdfast.errors import BudgetError, LedgerError
from holdfast.privacy.filter import UNITS
from holdfast.service import Settings
from holdfast.service import tables as tables_module
from holdfast.service.catalog import Catalog, Taken
from holdfast.service.gateway import Gateway
from holdfast.service.tables import Tables
from service.at_once import DATABASES, Pair, Request, code_of, two_gateways
from service.site import Site, site
from service.test_page import Window

MANY = 32
SCHEMA = {"columns": [{"name": "age", "type": "integer", "lo": 0, "hi": 99}]}


@pytest.fixture(scope="module", params=DATABASES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with two_gateways(request.param, {}, postgres_tables=True) as made:
        wrong = Request(
            "/datasets", _declared("none", "none.csv")[0] | {"budget": {"rho": 1.0}}, made.started.owner
        )
        assert set(map(code_of, made.to_each(wrong))) == {"invalid"}
        yield made


def _registered(pair: Pair, bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """Register all of them at once, each with a budget of its own, by two owners; the one that came through."""
    owners = [pair.started.owner, pair.started.somebody(f"owner {bodies[0]['id']}", {}, scope="owner")]
    asked = [body | {"budget": {"rho": 1.0 + number}} for number, body in enumerate(bodies)]
    ledgers = _ledgers(pair)
    replies = pair.at_once(
        [Request("/datasets", body, owners[number // 2 % 2]) for number, body in enumerate(asked)]
    )
    assert Counter(map(code_of, replies)) == {"201": 1, "taken": MANY - 1}
    winner = next(body for body, reply in zip(asked, replies, strict=True) if reply[0] == 201)
    with closing(Gateway(pair.started.settings)) as fresh:
        for gateway in (pair.started.gateway, fresh):
            limit = gateway.tables.ledger(winner["id"]).limit()
            assert limit is not None and limit.limit == winner["budget"]["rho"] * UNITS
            assert gateway.tables.dataset(winner["id"]).budget == winner["budget"]
    assert _ledgers(pair) - ledgers <= {winner["id"]}, "nobody else has made a ledger"
    return winner


def _ledgers(pair: Pair) -> set[str]:
    """The names of the ledgers that the gateways keep."""
    settings: Settings = pair.started.settings
    if settings.database is None:
        return {path.stem for path in (settings.folder / "ledgers").glob("*.sqlite")}
    with psycopg.connect(settings.database) as connection:
        known = connection.execute("SELECT to_regclass('holdfast.ledgers') IS NOT NULL").fetchone()
        rows = connection.execute("SELECT name FROM holdfast.ledgers").fetchall() if known == (True,) else []
        return {str(name) for (name,) in rows}


def _declared(key: str, *paths: str) -> list[dict[str, Any]]:
    """Many declarations under ids of their own, the paths in turn."""
    return [
        {"id": f"{key}{number}", "path": paths[number % len(paths)], "schema": SCHEMA}
        for number in range(MANY)
    ]


def test_a_file_registered_many_times_at_once_is_one_table(pair: Pair) -> None:
    data = pair.started.settings.roots[0]
    (data / "once.csv").write_text("age\n40\n50\n")
    (data / "link.csv").symlink_to(data / "once.csv")
    os.link(data / "once.csv", data / "hard.csv")
    _registered(pair, _declared("file", "once.csv", "./once.csv", "link.csv", "hard.csv"))


def test_a_folder_registered_many_times_at_once_is_one_table(pair: Pair) -> None:
    data = pair.started.settings.roots[0]
    (data / "parts").mkdir()
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(pa.table({"age": [40, 50]}), data / "parts" / name)
    (data / "other-parts").symlink_to(data / "parts")
    _registered(pair, _declared("folder", "parts", "parts/", "other-parts"))
    late = {"id": "part", "path": "parts/a.parquet", "schema": SCHEMA, "budget": {"rho": 1.0}}
    assert code_of(pair.at_once([Request("/datasets", late, pair.started.owner)])[0]) == "taken"


def test_a_store_registered_many_times_at_once_is_one_table(pair: Pair) -> None:
    data = pair.started.settings.roots[0]
    people(1_000).save(data / "once.hf")
    (data / "link.hf").symlink_to(data / "once.hf")
    bodies = _declared("store", "once.hf", "link.hf", "once.hf/")
    _registered(pair, [{name: part for name, part in body.items() if name != "schema"} for body in bodies])


def test_one_id_registered_many_times_at_once_is_one_table(pair: Pair) -> None:
    data = pair.started.settings.roots[0]
    for number in range(MANY):
        (data / f"own{number}.csv").write_text("age\n40\n50\n")
    bodies = _declared("id", *(f"own{number}.csv" for number in range(MANY)))
    winner = _registered(pair, [body | {"id": "one-id"} for body in bodies])
    other = next(body | {"budget": {"rho": 1.0}} for body in bodies if body["path"] != winner["path"])
    reply = pair.at_once([Request("/datasets", other, pair.started.owner)])[0]
    assert code_of(reply) == "201", "the rows of those that were refused are free"


def test_a_table_of_a_server_registered_many_times_at_once_is_one_table(pair: Pair) -> None:
    name = f"once_{Path(pair.started.settings.folder).name.replace('-', '_').lower()}"
    postgres().execute(f"CREATE TABLE {name} AS SELECT i AS age FROM generate_series(1, 50) AS s(i)")
    url = postgres().url
    names = ((url, name), (f"{url}&application_name=x", name), (url, f"public.{name}"), (url, f'"{name}"'))
    bodies = _declared("relation", "")
    for number, body in enumerate(bodies):
        body["path"], body["relation"] = names[number % len(names)]
    _registered(pair, bodies)


@pytest.fixture
def here() -> Iterator[Site]:
    with site({}) as made:
        (made.started.settings.roots[0] / "rows.csv").write_text("age\n40\n50\n")
        yield made


def _register(here: Site, key: str, path: str = "rows.csv", rho: float = 1.0) -> str:
    body = {"id": key, "path": path, "schema": SCHEMA, "budget": {"rho": rho}}
    reply = here.call("POST", "/datasets", body, token=here.started.owner)
    return "registered" if reply.status_code == 201 else str(reply.json()["code"])


def both_at_once(here: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What two are told of whom neither has kept anything when the other has looked."""
    looked, told, real = threading.Barrier(2), [], tables_module.look

    def look(*how: Any) -> Any:
        looked.wait()
        return real(*how)

    monkeypatch.setattr(tables_module, "look", look)
    threads = [
        threading.Thread(target=lambda key=key: told.append(_register(here, key)))  # type: ignore[misc]
        for key in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(told)


def test_of_two_that_have_both_looked_one_is_refused(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert both_at_once(here, monkeypatch) == ["registered", "taken"]


def test_marks_that_are_looked_at_and_not_kept_are_caught(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: the rows are compared before the transaction, and not in it."""
    real = Catalog.add_dataset
    monkeypatch.setattr(
        Catalog, "add_dataset", lambda self, key, record, marks, by: real(self, key, record, (), by=by)
    )
    assert both_at_once(here, monkeypatch) == ["registered", "registered"]


def test_a_path_alone_does_not_tell_rows_apart(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    data = here.started.settings.roots[0]
    os.link(data / "rows.csv", data / "hard.csv")
    shutil.copy(data / "rows.csv", data / "copy.csv")
    assert [_register(here, key, f"{key}.csv") for key in ("rows", "hard", "copy")] == [
        "registered", "taken", "registered",
    ]  # fmt: skip
    monkeypatch.setattr(tables_module, "marks", lambda place, relation=None: frozenset({place}))
    assert _register(here, "hard", "hard.csv") == "registered", "the broken twin"


def test_files_are_known_when_disks_were_numbered_anew(here: Site) -> None:
    data, catalog = here.started.settings.roots[0], here.started.gateway.catalog
    assert _register(here, "rows") == "registered"
    with catalog._db.write():
        catalog._db.rows("UPDATE marks SET mark = 'of another number ' || mark WHERE mark LIKE 'file %'")
    os.link(data / "rows.csv", data / "hard.csv")
    assert _register(here, "hard", "hard.csv") == "taken"


@pytest.mark.parametrize("kind", DATABASES)
def test_a_registration_that_was_killed_is_finished_at_the_next_start(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_gateways(kind, {}) as pair:
        gateway, owner = pair.started.gateway, pair.started.person(pair.started.owner)
        people(1_000).save(pair.started.settings.roots[0] / "rows.hf")
        terms: Any = {"name": "rows", "budget": {"rho": 2.0}, "confidence": 0.95, "queries": None}
        terms |= {"target": "table"}

        def killed(self: Tables, dataset: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Tables, "_finished", killed)
            with pytest.raises(KeyboardInterrupt):
                gateway.register(owner, "rows", "rows.hf", None, **terms)
        with pytest.raises(Taken, match="'rows'"):
            gateway.register(owner, "more", "rows.hf", None, **terms)
        after = Gateway(pair.started.settings)
        after.check()
        limit = after.tables.ledger("rows").limit()
        assert limit is not None and limit.limit == 2 * UNITS
        assert gateway.tables.dataset("rows").ledger == after.tables.dataset("rows").ledger is not None
        after.close()


def test_a_registration_that_fails_is_taken_back(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise LedgerError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "_new_ledger", broken)
        assert _register(here, "first") == "taken"
        assert here.call("GET", "/datasets", token=here.started.owner).json() == []
    assert _register(here, "second") == "registered"


def test_a_registration_that_was_killed_and_cannot_be_finished_stops_no_start(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    def broken(*_: object) -> None:
        raise LedgerError("the disk is full")

    gateway, owner = here.started.gateway, here.started.person(here.started.owner)
    people(1_000).save(here.started.settings.roots[0] / "rows.hf")
    terms: Any = {
        "name": "rows",
        "budget": {"rho": 2.0},
        "confidence": 0.95,
        "queries": None,
        "target": "table",
    }
    with monkeypatch.context() as patch:
        patch.setattr(Tables, "_finished", ended)
        with pytest.raises(KeyboardInterrupt):
            gateway.register(owner, "rows", "rows.hf", None, **terms)
    with monkeypatch.context() as patch:
        patch.setattr(Tables, "_new_ledger", broken)
        gateway.check()
    assert gateway.datasets(owner) == []
    assert gateway.register(owner, "again", "rows.hf", None, **terms).ledger is not None


def test_a_store_of_units_is_served_and_says_nothing_of_its_events(tmp_path: Path) -> None:
    """Row 12 of docs/threats.md, on what a gateway shows: two hospitals that differ in one person's visits."""
    from data.hospital import BOUNDS, SCHEMAS, hospital
    from gateway import running

    import holdfast as hf
    from holdfast.client import connect

    shown = []
    for many in (1, 5000):
        tables = hospital(300)
        for place, values in enumerate(tables["visits"].values()):
            values.extend([["p200"], [1.0], ["heart"], [3], [True], ["ether"]][place] * many)
        with running(declared={"target": "table"}) as started:
            opened = hf.open(
                tables, SCHEMAS, unit="person", rows_per_unit=BOUNDS, ledger=hf.ledger.MemoryLedger()
            )
            opened.save(started.settings.roots[0] / "hospital.hf").close()
            owner = started.person(started.owner)
            promised = {"budget": {"epsilon": 30.0, "delta": 1e-6}, "confidence": 0.95, "queries": None}
            started.gateway.register(
                owner, "hospital", "hospital.hf", None, name="hospital", target="table", **promised
            )
            token = started.somebody("asker")
            table = connect(started.url, token).table("hospital")
            session = table.session()
            answer = session.count("visits.urgent", rho=0.01)
            with pytest.raises(hf.HoldfastError) as refused:
                session.count("nothere.cost > 3", rho=0.01)
            shown.append((table.rows, table.schema, answer.rows_read, answer.explanation, str(refused.value)))
            assert session.sql("SELECT count(*) FROM people")[0].value == 300
    assert shown[0] == shown[1]


@pytest.mark.parametrize("allowed", [False, True])
def test_nobody_ends_the_theorem_for_the_others_unless_the_owner_allows_it(allowed: bool) -> None:
    with prepared(declared={"allow_uncovered": allowed}) as started:
        tables = started.gateway.tables
        ann, ben = (started.person(token) for token in (started.analyst, started.somebody("ben")))
        mine, _ = (tables.admitted("people", person)[0] for person in (ann, ben))
        assert tables.dataset("people").public()["allow_uncovered"] is allowed
        if allowed:
            assert mine.fraction("age > 40", rho=1e-6, mechanism="laplace").ends_theorem
        else:
            with pytest.raises(BudgetError, match="would end it for them"):
                mine.fraction("age > 40", rho=1e-6, mechanism="laplace")
            assert float(mine.spent) == 0


@pytest.mark.parametrize("given", [BUDGET, {"epsilon": 4.0}])
@pytest.mark.parametrize("shared", [True, False])
def test_an_analysts_meter_is_theirs_whatever_others_ask(
    monkeypatch: pytest.MonkeyPatch, shared: bool, given: dict[str, float]
) -> None:
    """The broken twin gives nobody a part of the meter. Page, client and report show the same line."""
    if not shared:
        monkeypatch.setattr(
            tables_module, "_promised", lambda dataset, share, standing: {"queries": share.get("queries")}
        )
    with running({"people": people(5_000)}, budget=given, share=given, declared={"queries": 20}) as started:
        tokens = [started.somebody(name, {**given, "queries": 10}) for name in ("cleo", "ben")]
        cleo, ben = (hf.connect(started.url, token).table("people").session() for token in tokens)
        before = ben.meter
        assert before is not None and before.answers == 10
        with pytest.raises(BudgetError):
            for age in range(99):
                cleo.fraction(f"age > {age}", **({"rho": 1e-4} if "delta" in given else {"epsilon": 0.03}))
        after, left = ben.meter, cleo.meter
        assert after is not None and left is not None and left.answers < 10
        assert (after == before) is shared and (after.width <= before.width) is shared
        shown = Window(TestClient(started.app), tokens[1]).see("/tables/people")
        assert str(after) in shown and f"{after}." in str(ben.report())


def test_who_has_too_little_for_a_plan_has_no_part_of_the_meter_and_is_still_answered() -> None:
    with running({"people": people(50)}, declared={"queries": 20}) as started:
        token = started.somebody("cleo", {"epsilon": 0.01, "delta": 1e-6, "queries": 10})
        session = hf.connect(started.url, token).table("people").session()
        assert "could be" in session.plan or "takes" in session.plan
        assert session.meter is not None and session.meter.answers == 0


SMALL = {"epsilon": 1.0, "delta": 1e-6, "queries": 300}


def test_a_share_that_is_counted_in_mu_squared_is_opened_again_and_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By another gateway, too; and a share that cannot be opened is not kept, so that who had one goes on with it."""
    given = {"epsilon": 3.0, "delta": 1e-6}
    tables = {"people": people(1_000)}
    with prepared(tables, budget=given, share=SMALL, declared={"queries": 300}) as started:
        gateway, owner, ann = started.gateway, *map(started.person, (started.owner, started.analyst))
        session, share = gateway.tables.admitted("people", ann)
        assert session.currency == "gdp" and share == SMALL
        session.fraction("age > 40")
        with closing(Gateway(gateway.settings)) as second:
            assert second.tables.admitted("people", ann)[0].spent == session.spent
        larger = SMALL | {"epsilon": 2.0}
        with monkeypatch.context() as broken:
            broken.setattr(Tables, "session", lambda *what, **how: (_ for _ in ()).throw(LedgerError("no")))
            with pytest.raises(LedgerError):
                gateway.admit(owner, "people", ann.id, larger)
        assert gateway.catalog.member("people", ann.id) == SMALL
        gateway.admit(owner, "people", ann.id, larger)
        raised, share = gateway.tables.admitted("people", ann)
        assert share == larger and raised.limit.epsilon == pytest.approx(2.0, rel=1e-6)
