"""The division of a table: a permutation that a key chooses, and parts that hold no unit of the other."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.duckdb import stream_source
from holdfast.data.open import open_source
from holdfast.data.part import Division, PartSource
from holdfast.data.source import Source
from holdfast.query.measurement import Measurement
from holdfast.query.parse import parse_predicate

KEY = b"the ledger's key"
ROWS = 3_000
SCHEMA = hf.Schema(number=hf.Integer(0, ROWS - 1))
NUMBERS = {"number": np.arange(ROWS)}


@pytest.mark.parametrize("rows", [2, 3, 5, 64, 1000, 4097])
def test_it_is_a_permutation_and_another_key_is_another(rows: int) -> None:
    places = Division(KEY, rows, 1).places(np.arange(rows))
    assert sorted(places) == list(range(rows))
    if rows > 60:
        other = Division(b"another key 1234", rows, 1).places(np.arange(rows))
        assert np.mean(places == other) < 0.1
        assert abs(np.corrcoef(places, np.arange(rows))[0, 1]) < 0.5


def test_every_unit_is_set_aside_equally_often() -> None:
    """Of 12 units 3 are set aside, under 4000 keys: each unit and each pair as often as the others."""
    times, pairs = np.zeros(12), np.zeros((12, 12))
    for number in range(4000):
        chosen = Division(number.to_bytes(16, "big"), 12, 3).set_aside.astype(int)
        times[chosen] += 1
        pairs[np.ix_(chosen, chosen)] += 1
    assert np.abs(times - 1000).max() < 7 * np.sqrt(4000 * 0.25 * 0.75)
    apart = pairs[~np.eye(12, dtype=bool)]
    chance = 3 / 12 * 2 / 11
    assert np.abs(apart - 4000 * chance).max() < 7 * np.sqrt(4000 * chance * (1 - chance))


def sources(tmp_path: object) -> dict[str, Source]:
    import pyarrow

    frame = open_source(NUMBERS, SCHEMA)
    table = hf.open(NUMBERS, SCHEMA).save(f"{tmp_path}/rows.hf")
    return {
        "frame": frame,
        "store": table._source,
        "duckdb": stream_source(pyarrow.table(NUMBERS), SCHEMA),
    }


def parts(whole: Source) -> tuple[PartSource, PartSource]:
    division = Division(KEY, whole.rows, 300)
    return PartSource(whole, division, aside=False), PartSource(whole, division, aside=True)


@pytest.mark.parametrize("name", ["frame", "store", "duckdb"])
def test_parts_share_no_unit_whatever_way_they_are_read(name: str, tmp_path: object) -> None:
    rest, aside = parts(sources(tmp_path)[name])
    assert (rest.rows, aside.rows) == (2_700, 300)
    scanned = [{*np.concatenate([b["number"] for b in part.scan(["number"])])} for part in (rest, aside)]
    assert scanned[0] | scanned[1] == {*range(ROWS)} and not scanned[0] & scanned[1]
    for part, held in zip((rest, aside), scanned, strict=True):
        assert {*part.gather(["number"], np.arange(part.rows))["number"]} == held
        drawn = part.draw(["number"], 30_000)["number"]
        assert {*drawn} <= held and len({*drawn}) > 0.95 * part.rows
        below = Measurement(SCHEMA, parse_predicate("number < 1000", SCHEMA))
        assert part.totals(below)[0] == sum(number < 1000 for number in held)
    rest.close()


def test_a_twin_whose_pool_draws_from_everything_is_caught(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest, aside = parts(sources(tmp_path)["duckdb"])
    held = {*np.concatenate([block["number"] for block in aside.scan(["number"])])}
    monkeypatch.setattr(PartSource, "draw", lambda self, *how: self.whole.draw(*how))
    assert {*rest.draw(["number"], 3_000)["number"]} & held


def test_the_choice_does_not_follow_what_units_hold() -> None:
    """Places are the same for other rows; the twin goes by the values, and a replaced row moves others."""
    other = {"number": NUMBERS["number"][::-1].copy()}
    places = [
        {*np.flatnonzero(parts(open_source(data, SCHEMA))[0]._chosen(0, ROWS))} for data in (NUMBERS, other)
    ]
    assert places[0] == places[1]

    def by_value(data: dict[str, np.ndarray]) -> set[int]:
        return {*np.argsort(data["number"], kind="stable")[:2_700]}

    assert by_value(NUMBERS) != by_value(other)
