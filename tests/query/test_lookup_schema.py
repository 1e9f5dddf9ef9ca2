"""Names of public tables beside declared columns, of rows, of units and of events."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from data.hospital import BOUNDS, ORDER, SCHEMAS, hospital

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.query.lookup_schema import Joined, LookupSchema
from holdfast.query.schema import Category, Integer, Schema
from holdfast.session.session import Session

BASE = Schema(carrier=Category("AA", "DL"), name=Integer(0, 3))
PUBLIC = Joined("carriers", (("carrier", "code"),), (("code", Category("AA")), ("name", Integer(0, 9))), "x")
OTHER = Joined("firms", (("carrier", "code"),), (("code", Category("AA")), ("fleet", Integer(0, 9))), "y")


def test_a_word_alone_means_a_column_that_nothing_else_is_called() -> None:
    schema = LookupSchema(BASE, [PUBLIC, OTHER])
    assert schema.spelling("name") == "name"  # the rows' own
    assert schema.spelling("carriers.name") == "carriers.name"
    assert schema.spelling("fleet") == "firms.fleet"
    assert schema.spelling("code") is None  # of two tables
    assert schema.spelling("carriers.fleet") is None


def test_schemas_are_equal_where_their_tables_are() -> None:
    schema = LookupSchema(BASE, [PUBLIC])
    assert schema == LookupSchema(BASE, [PUBLIC]) == copy.copy(schema)
    assert schema != LookupSchema(BASE, [OTHER])
    assert schema != Schema.from_mapping(dict(schema)) and Schema.from_mapping(dict(schema)) != schema
    assert schema.to_json()["lookups"] == [["carriers", "x"]]


WARDS = {"ward": ["surgery", "heart"], "beds": [10, 5], "region": ["a", "b"]}
REGIONS = {"region": ["north", "south"], "capital": ["Northam", "Southam"]}


@pytest.fixture(scope="module")
def session() -> Session:
    lookups = {"wards": hf.Lookup(WARDS, "ward"), "regions": hf.Lookup(REGIONS, "region")}
    table = hf.open(
        hospital(400),
        SCHEMAS,
        unit="person",
        rows_per_unit=BOUNDS,
        order=ORDER,
        lookups=lookups,
        ledger=MemoryLedger(),
    )
    return table.session(rho=9e9, target="table")


@pytest.mark.parametrize(
    ("looked_up", "declared"),
    [
        (
            "SELECT count(*) FROM people WHERE capital = 'Northam'",
            "SELECT count(*) FROM people WHERE region = 'north'",
        ),
        (
            "SELECT count(*) FROM visits JOIN wards USING (ward)",
            "SELECT count(*) FROM visits WHERE ward IN ('surgery', 'heart')",
        ),
        (
            "SELECT sum(cost) FROM visits JOIN people USING (person) JOIN regions USING (region) WHERE wards.beds > 6",
            "SELECT sum(cost) FROM visits WHERE ward = 'surgery' AND people.region IN ('north', 'south')",
        ),
        (
            "SELECT count(*) FROM people WHERE exists(visits, wards.beds > 6)",
            "SELECT count(*) FROM people WHERE exists(visits, ward = 'surgery')",
        ),
        (
            "SELECT count(*) FROM people WHERE max(wards.beds) = 5",
            "SELECT count(*) FROM people WHERE exists(visits, ward = 'heart') AND NOT exists(visits, ward = 'surgery')",
        ),
        (
            "SELECT sum(sum(wards.beds)) FROM people",
            "SELECT sum(10 * count(visits, ward = 'surgery') + 5 * count(visits, ward = 'heart')) FROM people",
        ),
    ],
)
def test_units_and_events_look_up_what_they_could_have_said(
    looked_up: str, declared: str, session: Session
) -> None:
    (found,), (expected,) = session.sql(looked_up, rho=1e8), session.sql(declared, rho=1e8)
    assert not found.repeated
    assert found.value == pytest.approx(expected.value, rel=1e-3) and found.value > 0


def test_events_and_units_by_groups_that_are_looked_up(session: Session) -> None:
    by_capital = session.count("visits.urgent", by="capital", rho=1e8)
    by_region = session.count("visits.urgent", by="people.region", rho=1e8)
    assert by_capital.labels == ("Northam", "Southam")
    np.testing.assert_allclose(by_capital.value, by_region.value, atol=1)
    beds = session.histogram("wards.beds", rho=1e8)
    wards = session.histogram("visits.ward", rho=1e8)
    assert beds.value[[5, 0]].tolist() == pytest.approx(wards.value[:2].tolist(), abs=1)


def test_votes_look_up_too(session: Session) -> None:
    answer = session.fraction("regions.capital = 'Northam'", within=0.2, mechanism="votes")
    truth = session.fraction("region = 'north'", rho=1e8).value
    assert answer.mechanism == "votes" and answer.low <= truth <= answer.high


@pytest.mark.parametrize(
    ("lookups", "words"),
    [
        ({"visits": hf.Lookup(WARDS, "ward")}, "different names"),
        ({"cost": hf.Lookup(WARDS, "ward")}, "different names"),
        ({"w": hf.Lookup({"ward": ["heart"], "age": [3]}, ["ward", "age"])}, "of one table"),
        ({"w": hf.Lookup({"person": ["p1"], "x": [3]}, "person")}, "of one table"),
    ],
)
def test_keys_that_are_not_of_one_table_are_refused(lookups: dict[str, hf.Lookup], words: str) -> None:
    with pytest.raises(hf.InputError, match=words):
        hf.open(hospital(20), SCHEMAS, unit="person", rows_per_unit=BOUNDS, lookups=lookups)


def test_a_column_of_two_tables_needs_the_name_of_one() -> None:
    schemas = {**SCHEMAS, "drugs": hf.Schema(dose=hf.Integer(0, 50), day=hf.Integer(0, 364))}
    tables = hospital(20)
    tables["drugs"]["day"] = tables["drugs"]["dose"]
    days = {"day": [1, 2], "week": [1, 1]}
    common = {"unit": "person", "rows_per_unit": BOUNDS, "ledger": MemoryLedger()}
    with pytest.raises(hf.InputError, match="in visits and drugs"):
        hf.open(tables, schemas, lookups={"days": hf.Lookup(days, "day")}, **common)
    table = hf.open(tables, schemas, lookups={"days": hf.Lookup(days, {"drugs.day": "day"})}, **common)
    session = table.session(rho=9e9, target="table")
    expected = session.count("drugs.day = 1 OR drugs.day = 2", rho=1e8).value
    assert session.count("days.week = 1", rho=1e8).value == pytest.approx(expected, abs=1)
