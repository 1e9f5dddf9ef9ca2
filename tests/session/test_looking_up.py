"""Questions that bring public tables of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.query.statistic import Statistic
from holdfast.session import looking_up

RNG = np.random.default_rng(5)
ROWS = {
    "carrier": RNG.choice(["AA", "DL", "ZZ"], 4000),
    "dest": RNG.choice(["Ulm", "Bonn"], 4000),
    "delay": RNG.integers(0, 61, 4000),
}
SCHEMA = hf.Schema(carrier=hf.Category("AA", "DL", "ZZ"), dest=hf.Text(8), delay=hf.Integer(0, 60))
NAMES = hf.Lookup({"carrier": ["AA", "DL"], "name": ["American", "Delta"]}, "carrier")
SIZES = hf.Lookup({"carrier": ["AA", "DL"], "planes": [9, 4]}, "carrier")
OTHER_SIZES = hf.Lookup({"carrier": ["AA", "DL"], "planes": [4, 9]}, "carrier")
TOWNS = hf.Lookup({"dest": ["Ulm", "Bonn"], "river": ["Donau", "Rhein"]}, "dest")
LARGE: dict[str, Any] = {"rho": 1e6, "target": "table"}
PEOPLE = {"person": list(range(200)), "age": [person % 80 for person in range(200)]}
VISITS = {
    "person": [n % 200 for n in range(1000)],
    "ward": ["heart" if n % 3 else "lungs" for n in range(1000)],
}
WARDS = hf.Lookup({"ward": ["heart", "lungs"], "beds": [9, 4]}, "ward")


def opened(**how: Any) -> hf.Table:
    return hf.open(ROWS, SCHEMA, **({"ledger": MemoryLedger(), "lookups": {"names": NAMES}} | how))


def hospital(**how: Any) -> hf.Table:
    schemas = {
        "people": hf.Schema(age=hf.Integer(0, 99)),
        "visits": hf.Schema(ward=hf.Category("heart", "lungs")),
    }
    return hf.open(
        {"people": PEOPLE, "visits": VISITS}, schemas, unit="person", rows_per_unit={"visits": 9},
        ledger=MemoryLedger(), **how,
    )  # fmt: skip


def test_it_is_answered_and_priced_as_at_the_opening() -> None:
    session = opened().session(**LARGE)
    beside = opened(lookups={"names": NAMES, "sizes": SIZES}).session(**LARGE)
    mine = session.looking_up({"sizes": SIZES})
    asked = (
        "SELECT names.name, avg(delay) FROM t JOIN names USING (carrier) JOIN sizes s USING (carrier) "
        "WHERE s.planes > 5 GROUP BY 1"
    )
    assert (
        mine.estimate.sql(asked, rho=10.0)[0].explain() == beside.estimate.sql(asked, rho=10.0)[0].explain()
    )
    (answer,) = mine.sql(asked, rho=10.0)
    true = ROWS["delay"][ROWS["carrier"] == "AA"].mean()
    assert abs(answer.value[0] - true) < 0.5
    assert answer.rho == beside.sql(asked, rho=10.0)[0].rho
    assert session.spent == pytest.approx(10.0) == beside.spent
    assert [each.to_json() for each in session.history] == [answer.to_json()]
    assert [*mine.schema.spelling("planes").split(".")] == ["sizes", "planes"]  # type: ignore[union-attr]
    assert "sizes.planes" not in session.schema
    with pytest.raises(hf.QueryError, match="planes"):
        session.mean("planes", rho=1.0)


def both_sizes() -> tuple[float, bool]:
    """What is answered by one table, asked after another of the same name, and whether that was repeated."""
    session = opened().session(**LARGE)
    session.looking_up({"sizes": SIZES}).count("planes > 5", rho=10.0)
    other = session.looking_up({"sizes": OTHER_SIZES}).count("planes > 5", rho=10.0)
    return other.value, other.repeated


def test_another_table_of_the_same_name_is_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    value, repeated = both_sizes()
    assert not repeated and abs(value - np.sum(ROWS["carrier"] == "DL")) < 10
    monkeypatch.setattr(looking_up, "_with_contents", lambda statistic, brought, terms: statistic)
    assert both_sizes()[1], "the twin, whose questions do not know which table they bring"


def test_what_was_told_stands_for_the_same_question(tmp_path: Path) -> None:
    table = opened().save(tmp_path / "flights.hf")
    session = table.session(**LARGE, name="mine")
    first = session.looking_up({"sizes": SIZES}).mean("planes", by="names.name", rho=10.0)
    plain = session.mean("delay", rho=10.0)
    table.close()
    again = hf.open(tmp_path / "flights.hf", lookups={"names": NAMES}).session(name="mine")
    mine = again.looking_up({"towns": TOWNS, "sizes": SIZES})
    assert mine.mean("planes", by="names.name", rho=10.0).to_json() == first.to_json()
    assert mine.mean("delay", rho=10.0).to_json() == plain.to_json(), (
        "it brings nothing, and is the session's own"
    )
    assert again.spent == pytest.approx(20.0)


def test_texts_and_groups_of_a_table_that_is_brought() -> None:
    told = opened().session(**LARGE).looking_up({"towns": TOWNS}).count(by="towns.river", rho=10.0)
    assert told.labels == ("Donau", "Rhein")
    assert abs(told.value[0] - np.sum(ROWS["dest"] == "Ulm")) < 10


def test_units_and_their_events_look_up_what_is_brought() -> None:
    for how in ({}, {"set_aside": 0.25}):
        table = hospital(**how)
        session = table.session(**LARGE)
        mine = session.looking_up({"wards": WARDS})
        assert mine.count("wards.beds > 5", rho=1e3).value / table.rows == pytest.approx(10 / 3, abs=0.3)
        assert mine.mean("sum(wards.beds)", rho=1e3).value == pytest.approx(5 * (9 * 2 / 3 + 4 / 3), abs=1.5)
        (joined,) = mine.sql(
            "SELECT beds, count(*) FROM visits v JOIN wards USING (ward) GROUP BY beds", rho=1e3
        )
        assert joined.value.sum() / table.rows == pytest.approx(5, abs=0.5)
    keys: list[str] = []
    for lookup in (WARDS, hf.Lookup({"ward": ["heart", "lungs"], "beds": [4, 9]}, "ward")):
        (found,) = _read(session.looking_up({"wards": lookup}), "sum(wards.beds) > 9")
        keys.append(found.key)
    (plain,) = _read(session.looking_up({"wards": WARDS}), "count(visits) > 1")
    (own,) = _read(session, "count(visits) > 1")
    assert keys[0] != keys[1] and plain == own


def _read(asker: Any, where: str) -> list[Statistic]:
    from holdfast.planning.question import Fraction

    found: list[Statistic] = asker._read(Fraction(where=where, rho=1.0)).statistics
    return found


@pytest.mark.parametrize(
    ("lookups", "words"),
    [
        ({"names": NAMES}, "another name"),
        ({}, "got none"),
        (SIZES, "got none"),
        ({"sizes": ROWS}, "dict of Lookups"),
        ({"delay": SIZES}, "different names"),
        ({"sizes": hf.Lookup({"carrier": ["AA", "AA"], "planes": [1, 2]}, "carrier")}, "each key once"),
        ({"sizes": hf.Lookup({"code": ["AA"], "planes": [1]}, "code")}, "declared columns"),
    ],
)
def test_tables_that_do_not_fit_are_refused_before_a_charge(lookups: Any, words: str) -> None:
    session = opened().session(**LARGE)
    with pytest.raises(hf.HoldfastError, match=words):
        session.looking_up(lookups)
    assert session.spent == 0
    with session, pytest.raises(hf.HoldfastError):
        session.close()
        session.looking_up({"sizes": SIZES}).count("planes > 5", rho=1.0)
