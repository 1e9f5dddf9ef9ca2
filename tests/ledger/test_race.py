"""64 threads in two processes want the last unit: one gets it, in every round."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.homes import HOMES
from ledger.racing import rounds

ROUNDS = 25
"""`make evidence` plays 200."""


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_the_last_unit_has_one_winner(kind: str, tmp_path: Path) -> None:
    home = HOMES[kind](tmp_path)
    home.open().close()
    assert rounds(home.address, tmp_path / "race", ROUNDS) == []


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_the_race_catches_a_ledger_without_its_lock(kind: str, tmp_path: Path) -> None:
    """BEGIN DEFERRED on SQLite, no FOR UPDATE on PostgreSQL."""
    home = HOMES[kind](tmp_path)
    home.open().close()
    assert rounds(home.address, tmp_path / "race", 400, mutant="no lock") != []
