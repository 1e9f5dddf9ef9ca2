"""What the page makes of declarations."""

from __future__ import annotations

from data.hospital import BOUNDS, SCHEMAS, hospital

from holdfast.data.unit_open import declared_units
from holdfast.service.page.look import of_events


def test_columns_of_events_are_listed_beside_those_of_units() -> None:
    schema = declared_units(hospital(), SCHEMAS, "person", BOUNDS).schema
    assert [name for name, _ in of_events(schema)] == [
        "visits.cost",
        "visits.ward",
        "visits.day",
        "visits.urgent",
        "visits.drug",
        "drugs.dose",
    ]
    assert of_events(SCHEMAS["people"]) == []
