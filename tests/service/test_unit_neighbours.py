"""Rows 12 and 36 of docs/threats.md: one person with a million rows against the same person with none.

Whatever is shown of a table of units is the same for both: `rows`, `rows_read`, plans, errors, what a store writes and
how large, every byte of the gateway but for the noise of answers, and when a reply comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.data import unit_store
from holdfast.data.store import mapped
from holdfast.data.unit_store import UnitWriter
from holdfast.ledger import MemoryLedger
from service.clockwatch import advantage, two_hospitals, watch
from service.hospital import BOUND, SCHEMAS, SLOW, hospital, no_bound
from service.site import PLENTY, Site, shape, site

MANY = 10**6
AMOUNT = {"rho": 1e-3, "confirm": True}
QUESTIONS: list[dict[str, Any]] = [
    {"kind": "count", "where": "visits.cost > 10"},
    {"kind": "mean", "column": "visits.cost", "where": "ward = 'heart'"},
    {"kind": "histogram", "column": "visits.ward"},
    {"kind": "fraction", "where": "count(visits) >= 3"},
    {"kind": "count"},
    {"kind": "sql", "text": "SELECT count(*) FROM visits"},
    {"kind": "count", "where": "nothere.cost > 3"},
    {"kind": "count", "where": "visits.cost > 10", "within": 1e-9},
    {"kind": "sql", "text": "SELECT cost FROM visits"},
]
_RANDOM = re.compile(r"\b[0-9a-f]{8,}\b|\b[0-9a-f-]{36}\b|\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)?|csrf\S+")
Shown = dict[str, Any]


def of_the_table(table: hf.Table) -> Shown:
    """What an analyst on the owner's machine sees, and what lies in the folder."""
    session = table.session(epsilon=5.0, delta=1e-6, target="table")
    answer = session.count("visits.cost > 10", rho=0.1)
    with pytest.raises(hf.HoldfastError) as error:
        session.count("nothere.cost > 3", rho=0.1)
    place = table._home
    assert place is not None
    manifest = json.loads((place / "manifest.json").read_bytes())
    for digest in ("checksum", "checksums", "fingerprint"):
        manifest[digest] = len(manifest[digest])
    return {
        "rows": (table.rows, session.count().value),
        "rows_read": answer.rows_read,
        "words": (repr(table), repr(table.schema), str(error.value), answer.explanation),
        "plan": str(session.estimate.count("visits.cost > 10", rho=0.1)),
        "manifest": manifest,
        "sizes": {path.name: path.stat().st_size for path in place.iterdir() if path.suffix != ".sqlite"},
    }


def of_the_gateway(here: Site) -> Shown:
    """Every reply to an analyst, an owner and an auditor, without what is random in it: noise, names and dates."""
    owner, analyst = here.started.owner, here.started.person(here.started.analyst).id
    body = {"id": "t", "path": "h.hf", "schema": None, "budget": PLENTY, "target": "table"}
    replies = {"register": here.call("POST", "/datasets", body, token=owner)}
    replies["admit"] = here.call("PUT", f"/datasets/t/analysts/{analyst}", PLENTY, token=owner)
    for place, question in enumerate(QUESTIONS):
        replies[f"estimate {place}"] = here.estimate(AMOUNT | question, table="t")
        replies[f"ask {place}"] = here.ask(AMOUNT | question, table="t", key=str(place))
    scopes = {"analyst": here.started.analyst, "owner": owner, "auditor": here.started.auditor}
    for scope, token in scopes.items():
        for path in (
            "/datasets",
            "/datasets/t",
            "/datasets/t/answers",
            "/datasets/t/budget",
            "/datasets/t/ledger",
        ):
            replies[f"{path} {scope}"] = here.call("GET", path, token=token)
    found: Shown = {}
    for name, reply in replies.items():
        lines = name.startswith("/datasets/t/ledger") and reply.status_code == 200
        told = [json.loads(line) for line in (reply.text.splitlines() if lines else [reply.text or "null"])]
        noisy = name.startswith("ask") or "answers" in name or "ledger" in name
        plain = json.dumps(shape(_unpacked(told)) if noisy else told, sort_keys=True)
        found[name] = (reply.status_code, _RANDOM.sub("...", plain))
        if name.startswith("ask") and reply.status_code == 200:
            found[f"{name}: rows read"] = [each["rows_read"] for each in _answers(told)]
    return found


def _unpacked(told: Any) -> Any:
    """Answers and plans in a ledger are JSON inside JSON."""
    if isinstance(told, list):
        return [_unpacked(each) for each in told]
    if isinstance(told, dict):
        return {name: _unpacked(each) for name, each in told.items()}
    return json.loads(told) if isinstance(told, str) and told.startswith("{") else told


def _answers(told: Any) -> list[Any]:
    """All answers in a reply."""
    if isinstance(told, list):
        return [answer for each in told for answer in _answers(each)]
    if not isinstance(told, dict):
        return []
    return [told] if "rows_read" in told else _answers(list(told.values()))


def shown(rows: int) -> Shown:
    """All that anybody but the owner's own tools is shown of a hospital in which one person has so many visits."""
    given: dict[str, Any] = {"unit": "person", "rows_per_unit": {"visits": BOUND}, "ledger": MemoryLedger()}
    with site({}) as here:
        place = here.started.settings.roots[0] / "h.hf"
        table = hf.open(hospital(rows), SCHEMAS, **given).save(place)
        found = of_the_table(table)
        read = [sum(len(block["visits.cost"]) for block in table._source.scan(["visits.cost"]))]
        table.close()
        return found | of_the_gateway(here) | {"events read": read}


def differences(rows: int) -> set[str]:
    """What tells a person with no rows from the same person with so many. Reading may differ by the bound alone."""
    none, many = shown(0), shown(rows)
    assert none.keys() == many.keys() and len(none) > 40
    reading = [found.pop("events read")[0] for found in (none, many)]
    told = {name for name in none if none[name] != many[name]}
    return told | ({"events read"} if not 0 <= reading[1] - reading[0] <= BOUND else set())


def test_one_person_with_a_million_rows_is_seen_nowhere() -> None:
    assert differences(MANY) == set()


def _long_files(patch: pytest.MonkeyPatch) -> None:
    def as_it_is(path: Path, dtype: np.dtype[Any], rows: int, name: str) -> Any:
        return mapped(path, dtype, path.stat().st_size // dtype.itemsize, name)

    patch.setattr(unit_store, "records_of", lambda schema, packed: {})
    patch.setattr(UnitWriter, "_finish", lambda self: None)
    patch.setattr(unit_store, "mapped", as_it_is)


def _rows_are_events(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hf.Table, "rows", property(lambda self: int(self._source.events("visits").offsets[-1])))


TWINS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "files as long as there are events": (_long_files, "sizes"),
    "n is the number of events": (_rows_are_events, "rows"),
    "no bound": (no_bound, "events read"),
}


@pytest.mark.parametrize("twin", TWINS)
def test_the_twins_are_caught(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks, where = TWINS[twin]
    breaks(monkeypatch)
    assert where in differences(100)


def test_times_tell_nothing_even_where_replies_leave_at_once() -> None:
    """120 requests leave an AUC of 0.5 with a standard deviation of 0.053; `evidence/unit_times.py` sends 2000."""
    with two_hospitals(MANY) as started:
        area, otherwise = advantage(watch(started, 120, asked=SLOW))
    assert not otherwise
    assert area < 0.75


def test_a_bound_that_is_not_kept_is_told_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: all rows of the one person are read."""
    no_bound(monkeypatch)
    with two_hospitals(MANY) as started:
        area, _ = advantage(watch(started, 60, asked=SLOW), patience=5)
    assert area > 0.8
