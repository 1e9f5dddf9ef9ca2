"""Events of drawn units, one after the other or in as many places for each as it may have: the same is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.hospital import BOUNDS, SECRET, hospital
from data.test_unit_build import declared
from holdfast.data import unit_events
from holdfast.data.packed import LENGTH
from holdfast.data.unit_open import open_units
from holdfast.data.unit_source import UnitSource
from holdfast.data.unit_store import save_units
from holdfast.query import aggregate
from holdfast.query.unit_schema import Slots

NAMES = (
    "count(visits)",
    "exists(visits)",
    "count(visits, cost > 100 AND urgent)",
    "exists(visits, drug LIKE 'x%' AND people.age > 30)",
    "sum(visits.day)",
    "sum(cost, ward = 'heart')",
    "avg(visits.cost)",
    "max(visits.cost)",
    "min(day, urgent)",
    "first(visits.ward)",
    "last(visits.ward)",
    "count(drugs, dose > 20)",
    "age",
)


@pytest.fixture(scope="module", params=["memory", "store"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> UnitSource:
    found = open_units(declared(hospital()), SECRET)
    if request.param == "store":
        return save_units(found, tmp_path_factory.mktemp("units") / "h.hf")
    return found


def differing(source: UnitSource) -> set[str]:
    """What a draw finds otherwise in slots than in a walk over all units."""
    ids = np.concatenate([np.arange(source.rows)[::-1], np.full(5, source.rows - 1)])
    blocks = list(source.scan(NAMES))
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in NAMES}
    found = source.gather(NAMES, ids)
    return {name for name in NAMES if not np.array_equal(found[name], whole[name][ids], equal_nan=True)}


def test_slots_and_a_walk_say_the_same(source: UnitSource, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differing(source) == set()
    lengths, block = source.events("visits").of(["cost"], np.arange(source.rows), slots=True)
    assert isinstance(lengths, Slots) and len(block["cost"]) == BOUNDS["visits"] * source.rows
    monkeypatch.setattr(unit_events, "MOST_SLOTS", 0)
    lengths, block = source.events("visits").of(["cost"], np.arange(source.rows), slots=True)
    assert not isinstance(lengths, Slots) and len(block["cost"]) == lengths.sum()
    assert differing(source) == set()


def test_a_question_that_counts_the_events_of_others_is_caught(
    source: UnitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin takes every place for an event of its unit."""
    monkeypatch.setattr(aggregate, "counted", lambda chosen, lengths: chosen)
    assert {"count(visits, cost > 100 AND urgent)", "sum(visits.day)", "last(visits.ward)"} <= differing(
        source
    )


def test_what_is_read_does_not_depend_on_how_many_events_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 12 of docs/threats.md: a draw copies as much for a person without events as for one with all of theirs."""
    copied: list[tuple[Any, ...]] = []
    whole = unit_events.take_runs
    monkeypatch.setattr(
        unit_events,
        "take_runs",
        lambda codes, starts, many: copied.append((len(starts), many)) or whole(codes, starts, many),
    )
    source = open_units(declared(hospital()), SECRET)
    lengths = np.diff(source.events("visits").offsets)
    for ids in (np.full(7, np.argmin(lengths)), np.full(7, np.argmax(lengths))):
        source.gather(["count(visits, urgent)"], ids)
    assert lengths.min() < lengths.max() and copied == [(7, 4), (7, 4)]


def test_records_and_places_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store has both; the twin, whose records hold the events of the unit before, is caught."""
    store = save_units(open_units(declared(hospital()), SECRET), tmp_path / "h.hf")
    taken: list[str] = []
    whole = unit_events.take_rows
    monkeypatch.setattr(
        unit_events, "take_rows", lambda columns, *rest: taken.extend(columns) or whole(columns, *rest)
    )
    assert differing(store) == set() and LENGTH in taken
    monkeypatch.setattr(
        unit_events,
        "take_rows",
        lambda columns, ids, *rest: whole(columns, ids - 1 if LENGTH in columns else ids, *rest),
    )
    assert differing(store) == {"count(drugs, dose > 20)"}  # the only table all of whose columns fit a record


def test_places_that_are_none_are_never_read_beyond_the_end(tmp_path: Path) -> None:
    store = save_units(open_units(declared(hospital()), SECRET), tmp_path / "h.hf")
    rows = store.events("visits").columns
    assert isinstance(rows, unit_events.MappedColumns)
    far = rows.runs(["cost"], np.array([-(10**9), 10**15]), 4)["cost"]
    assert len(far) == 8
