"""Rows 7, 24 and 36 of docs/threats.md: whatever is wrong with tables around one unit, nothing of it is heard."""

from __future__ import annotations

import logging
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.hospital import BOUNDS, SCHEMAS, hospital

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.service import app as app_module
from holdfast.service import logs
from holdfast.service.problem import Problem
from service.site import PLENTY, Site, site

CANARY = secrets.token_hex(4)  # eight characters: as long as the declared texts may be
AMOUNT = {"rho": 1e-3, "confirm": True}
QUESTIONS: list[dict[str, Any]] = [
    {"kind": "count", "where": "visits.urgent"},
    {"kind": "fraction", "where": "exists(visits, drug LIKE 'ca%')"},
    {"kind": "histogram", "column": "visits.ward"},
    {"kind": "mean", "column": "visits.cost", "where": "people.town IS NULL"},
    {"kind": "sql", "text": "SELECT count(*) FROM visits JOIN people USING (person) WHERE town = 'Ulm'"},
    {"kind": "count", "by": "visits.drug"},
    {"kind": "keys", "column": "visits.drug"},
    {"kind": "count", "where": "nothere.cost > 3"},
    {"kind": "count", "where": "exists(nothere)"},
    {"kind": "count", "where": "min(visits.drug) = 'a'"},
    {"kind": "sql", "text": "SELECT drug FROM visits"},
    {"kind": "sql", "text": "SELECT count(*) FROM visits JOIN drugs USING (person)"},
    {"kind": "sql", "text": "SELECT max(person) FROM people"},
]


def bad_hospital() -> dict[str, Any]:
    """The canary as key, town, drug, ward and cost; visits of a stranger and of nobody, one person with many."""
    tables = hospital(60)
    tables["people"]["person"][5] = CANARY
    tables["people"]["town"][5] = CANARY
    who = tables["visits"]["person"]
    who[:40] = [CANARY] * 40
    who[40:45] = [f"{CANARY} of nobody"] * 5
    for name in ("drug", "ward", "cost"):
        tables["visits"][name][:50] = [CANARY] * 50
    tables["visits"]["drug"][3] = CANARY * 130_000
    return tables


def overfull(store: Path) -> None:
    """One unit with more events than its bound."""
    place = store / "events-0000-offsets.bin"
    offsets = np.fromfile(place, "<i8")
    offsets[1:-1] = offsets[-1]
    offsets.tofile(place)


def foreign(store: Path) -> None:
    """A dictionary that is not UTF-8, with the canary in it."""
    for place in store.glob("words-*.bin"):
        place.write_bytes(CANARY.encode() + b"\xff\xfe\x00" + place.read_bytes())


def cut(store: Path) -> None:
    place = store / "events-0000-0000.bin"
    place.write_bytes(place.read_bytes()[:7])


def not_a_store(store: Path) -> None:
    (store / "manifest.json").write_text('{"' + CANARY)


DAMAGE: list[Callable[[Path], None]] = [overfull, foreign, cut, not_a_store, shutil.rmtree]


def heard(caplog: pytest.LogCaptureFixture, capfd: Any) -> tuple[set[str], set[int]]:
    """Where the canary was found after all questions to whole and damaged stores, and the statuses on the way."""
    caplog.set_level(logging.DEBUG)
    caplog.handler.setFormatter(logs.JsonLines())
    said, statuses = b"", set[int]()
    with site({}) as here:
        root = here.started.settings.roots[0]
        for place, damage in enumerate([None, *DAMAGE]):
            key = f"t{place}"
            given: dict[str, Any] = {"unit": "person", "rows_per_unit": BOUNDS, "ledger": MemoryLedger()}
            hf.open(bad_hospital(), SCHEMAS, **given).save(root / f"{key}.hf").close()
            replies = [register(here, key), *(wrong_registrations(here) if damage is None else [])]
            if damage is not None:
                damage(root / f"{key}.hf")
                here.started.gateway.tables.table(key).close()
                replies.append(register(here, f"again{place}", f"{key}.hf"))
            for number, question in enumerate(QUESTIONS):
                replies.append(here.estimate(question | AMOUNT, table=key))
                replies.append(here.ask(question | AMOUNT, table=key, key=f"{place} {number}"))
            for token in (here.started.analyst, here.started.owner, here.started.auditor):
                for part in ("", "/answers", "/budget", "/ledger"):
                    replies.append(here.call("GET", f"/datasets/{key}{part}", token=token))
            for reply in replies:
                said += repr(dict(reply.headers)).encode() + reply.content
                statuses.add(reply.status_code)
        folder = here.started.settings.folder
        files = [path for path in folder.rglob("*") if path.is_file() and ".hf" not in str(path)]
        found = {f"file {path.name}" for path in files if CANARY.encode() in path.read_bytes()}
    shown = capfd.readouterr()
    sinks = {"replies": said.decode(errors="replace"), "log": caplog.text, "out": shown.out, "err": shown.err}
    return found | {name for name, text in sinks.items() if CANARY in text}, statuses


def register(here: Site, key: str, path: str | None = None) -> Any:
    """A store as a table that the analyst may ask, if the gateway takes it."""
    owner, analyst = here.started.owner, here.started.person(here.started.analyst).id
    body = {"id": key, "path": path or f"{key}.hf", "schema": None, "budget": PLENTY, "target": "table"}
    reply = here.call("POST", "/datasets", body, token=owner)
    here.call("PUT", f"/datasets/{key}/analysts/{analyst}", PLENTY, token=owner)
    return reply


def wrong_registrations(here: Site) -> list[Any]:
    """A public table with a key twice, no bound, a file that is not UTF-8, and one that is not there."""
    root = here.started.settings.roots[0]
    (root / "twice.csv").write_text(f"ward,note\nheart,{CANARY}\nheart,{CANARY}\n")
    (root / "broken.csv").write_bytes(b"person,drug\n" + CANARY.encode() + b",\xff\xfe\n")
    given: dict[str, Any] = {"unit": "person", "rows_per_unit": BOUNDS, "ledger": MemoryLedger()}
    hf.open(bad_hospital(), SCHEMAS, **given).save(root / "wrong.hf").close()
    text = {"columns": [{"name": "drug", "type": "text", "max_length": 8}]}
    wrong: list[dict[str, Any]] = [
        {"path": "wrong.hf", "lookups": {"wards": {"path": "twice.csv", "key": "ward"}}},
        {"path": "wrong.hf", "rows_per_unit": 0},
        {"path": "broken.csv", "schema": text},
        {"path": f"{CANARY[::-1]}.hf"},
    ]
    body = {"id": "wrong", "schema": None, "budget": PLENTY, "target": "table"}
    replies = [here.call("POST", "/datasets", body | each, token=here.started.owner) for each in wrong]
    for name in ("twice.csv", "broken.csv"):
        (root / name).unlink()  # what was given holds it; nothing else may
    assert all(reply.status_code in (422, 503) for reply in replies), [reply.text for reply in replies]
    return replies


def test_nothing_that_is_wrong_with_units_is_heard(caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    found, statuses = heard(caplog, capfd)
    assert not found
    assert {200, 201, 422, 503} <= statuses, "all of it happened"


def test_replies_with_texts_of_rows_are_caught(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """The broken twin: a refusal that shows the texts there are, as helpful engines do."""

    def helpful(error: Exception) -> Problem:
        return Problem(
            "unavailable", f"{error}; there is {', '.join(map(str, bad_hospital()['people']['town']))}"
        )

    monkeypatch.setattr(app_module, "problem_of", helpful)
    assert "replies" in heard(caplog, capfd)[0]
