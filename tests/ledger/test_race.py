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


@pytest.mark.parametrize(
    ("kind", "mutant"), [("sqlite", "no lock"), ("sqlite", "trusts memory"), ("postgres", "trusts memory")]
)
def test_the_race_catches_a_broken_twin(kind: str, mutant: str, tmp_path: Path) -> None:
    """BEGIN DEFERRED on SQLite; totals that are remembered though others have written since.

    PostgreSQL without its lock is no broken twin: two writers take the same place in the chain, which is unique,
    and the second starts anew.
    """
    home = HOMES[kind](tmp_path)
    home.open().close()
    assert rounds(home.address, tmp_path / "race", 400, mutant) != []
