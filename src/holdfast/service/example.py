"""A synthetic table and a leaderboard, to see a gateway by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holdfast.noise.bits import system_bits
from holdfast.query.schema import Boolean, Category, Integer, Real, Schema
from holdfast.service.boards import Board
from holdfast.session import open as open_table

if TYPE_CHECKING:
    from holdfast.service.gateway import Gateway

ROWS = 1_000_000
_SCHEMA = Schema(
    age=Integer(18, 99), income=Real(0, 200_000), smoker=Category("no", "yes"), insured=Boolean()
)


def register_example(gateway: Gateway, rows: int = ROWS) -> None:
    """Register the table `people` and the board `digits`, unless they are there; the owner may ask at once."""
    owner = next(person for person in gateway.catalog.people() if person.scope == "owner")
    data = gateway.settings.roots[0]
    if gateway.catalog.dataset("people") is None:
        open_table(_people(rows), _SCHEMA).save(data / "people.hf", overwrite=True)
        budget = {"epsilon": 4.0, "delta": 1e-7}
        gateway.register(
            owner, "people", "people.hf", None, name="People (synthetic)", budget=budget, confidence=0.95,
            queries=None, target="population", allow_uncovered=True,
        )  # fmt: skip
        gateway.admit(owner, "people", owner.id, {"epsilon": 2.0, "delta": 1e-7})
    if gateway.catalog.board("digits") is None:
        np.save(data / "digits.npy", (_uniform(20_000) * 10).astype(np.int64))
        gateway.register_board(owner, Board(
            id="digits", name="Digits (synthetic)", kind="leaderboard", labels="digits.npy", column=None,
            rows=0, metric="accuracy", queries=1000, per_team=100, within=0.14, confidence=0.95, mode=None,
            private=True,
        ))  # fmt: skip


def _people(rows: int) -> dict[str, object]:
    """Made-up people, whose smoking depends on age and income."""
    age = (18 + 82 * _uniform(rows) ** 1.3).astype(np.int64)
    income = 20_000 + 60_000 * _uniform(rows) + 1_000 * np.minimum(age, 60) * _uniform(rows)
    smoker = np.where(_uniform(rows) < 0.35 - 0.002 * age - 0.000001 * income, "yes", "no")
    return {"age": age, "income": income, "smoker": smoker, "insured": _uniform(rows) < 0.85}


def _uniform(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return system_bits().words(count) / 2.0**64
