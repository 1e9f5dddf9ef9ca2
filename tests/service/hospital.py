"""People with visits, one of whom has as many as wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.data import unit_store
from holdfast.data.unit_cap import Cap
from holdfast.data.unit_events import OwnedRows

PEOPLE, BOUND = 300, 20
SCHEMAS = {
    "people": hf.Schema(age=hf.Integer(0, 120)),
    "visits": hf.Schema(cost=hf.Integer(0, 999), ward=hf.Category("surgery", "heart")),
}
SLOW = " + ".join(f"abs({times} * visits.cost - people.age)" for times in range(1, 13)) + " > {}"
"""A condition that takes long to work out for each row."""


def hospital(rows: int, people: int = PEOPLE) -> dict[str, Any]:
    """People with some visits each, and one of them with so many."""
    draw = np.random.default_rng(3)
    who = draw.integers(1, people, 1500)
    visits = {
        "person": who,
        "cost": draw.integers(0, 1000, 1500),
        "ward": draw.choice(["surgery", "heart"], 1500),
    }
    theirs = {"person": np.zeros(rows, int), "cost": np.arange(rows) % 1000, "ward": np.full(rows, "heart")}
    own = {"person": np.arange(people), "age": draw.integers(0, 100, people)}
    return {"people": own, "visits": {n: np.concatenate([visits[n], theirs[n]]) for n in visits}}


def no_bound(patch: pytest.MonkeyPatch) -> None:
    """A broken twin: all rows of a person are kept."""
    patch.setattr(Cap, "_first", lambda self, order, owner, doubtful: np.ones(len(owner), dtype=np.bool_))
    patch.setattr(OwnedRows, "_refuse_too_many", lambda self, lengths: None)
    patch.setattr(unit_store, "records_of", lambda schema, packed: {})  # they have room for the bound alone
