"""The ledger of a holdout or a board, as any ledger: verified, exported, moved, acknowledged; its secrets stay."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from services import postgres

import holdfast as hf
from holdfast.cli import main
from holdfast.errors import BudgetError, HoldfastError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.holdout.fingerprint import fingerprint
from holdfast.holdout.labels import Labels
from holdfast.holdout.looks import Looks
from holdfast.ledger import (
    LEDGER_FILE,
    LOOKS,
    MemoryLedger,
    SqliteLedger,
    acknowledge,
    export,
    move_ledger,
    open_ledger,
    verify,
    verify_export,
)
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdout.looker import LABELS


def opened(ledger: Any, queries: int | None = None, mode: str | None = None) -> ReusableHoldout:
    return ReusableHoldout(LABELS, queries=queries, mode=mode, ledger=ledger)


TAMPERED = {
    "an answer": "UPDATE answers SET answer = '{}' WHERE entry = (SELECT max(entry) FROM answers)",
    "whose answer": "UPDATE answers SET entry = (SELECT max(place) FROM entries) WHERE secret = 0",
    "a secret": "UPDATE answers SET answer = replace(answer, 'labels', 'others') WHERE secret = 1",
    "an answer that is gone": "DELETE FROM answers WHERE place = (SELECT max(place) FROM answers)",
    "a team": "UPDATE entries SET session = 'team red' WHERE session = 'team '",
    "a charge": "UPDATE entries SET table_units = 0 WHERE session = 'team '",
    "the plan": "UPDATE accounts SET terms = replace(terms, '\"queries\": 1000', '\"queries\": 9000')",
    "the cap": "UPDATE limits SET units = 9000",
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_ledger_that_was_changed_stays_closed(tmp_path: Path, change: str) -> None:
    with opened(tmp_path, 1000, "guess-and-check") as holdout:
        holdout.score(LABELS, guess=0.0)
        with pytest.raises(ZeroDivisionError):
            holdout.score(lambda ids: LABELS[ids] if len(ids) < 3 else 1 // 0, guess=1.0)
    path = tmp_path / LEDGER_FILE
    assert CliRunner().invoke(main, ["ledger", "verify", str(path)]).exit_code == 0
    with closing(sqlite3.connect(path)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        assert db.execute(change).rowcount >= 1
        db.commit()
    with pytest.raises(LedgerError, match="was changed"):
        opened(tmp_path)
    assert CliRunner().invoke(main, ["ledger", "verify", str(path)]).exit_code == 1


class TellsAll(MemoryLedger):
    """The broken twin: what is secret is kept as any answer."""

    def record(
        self,
        entry: int,
        answer: str,
        *,
        secret: bool = False,
        after: int | None = None,
        told: int | None = None,
    ) -> str:
        return super().record(entry, answer, after=after)


def secrets_exported(ledger: MemoryLedger, mode: str) -> list[str]:
    """What of the labels' digest and of secret states is in the export of a board."""
    board = Leaderboard(LABELS, queries=20, mode=mode, ledger=ledger)
    first = board.submit("red", LABELS)
    states = [board._holdout.looks.transcript().state]
    board.submit("red", np.where(np.arange(3000) < 2000, LABELS, 1 - LABELS))
    states.append(board._holdout.looks.transcript().state)
    lines = list(export(ledger))
    assert verify_export(lines).totals.units == (6 if mode == "gaussian" else 2)  # each with two comparisons
    text = "\n".join(lines)
    if mode == "gaussian":
        assert json.dumps(first.value) in text
    hidden = [fingerprint(Labels(LABELS).values), *(json.dumps(state)[1:-1] for state in states if state)]
    return [
        secret for secret in hidden if f'"{json.dumps(secret)[1:-1]}\\"' in text or f'"{secret}\\"' in text
    ]


@pytest.mark.parametrize("mode", ["gaussian", "thresholdout", "ladder", "ladder-unproven"])
def test_an_export_has_no_digest_of_the_labels_and_no_secret_state(mode: str) -> None:
    assert secrets_exported(MemoryLedger(), mode) == []
    assert len(secrets_exported(TellsAll(), mode)) >= (1 if mode == "gaussian" else 2)


def test_the_command_line_verifies_and_exports_a_holdout_and_a_board(tmp_path: Path) -> None:
    runner = CliRunner()
    for name, labels in (("holdout", LABELS), ("board", 1 - LABELS)):
        place = tmp_path / name
        place.mkdir()
        if name == "holdout":
            with ReusableHoldout(labels, queries=5, mode="thresholdout", ledger=place) as holdout:
                holdout.score(labels, guess=1.0)
        else:
            board = Leaderboard(labels, queries=5, per_team=2, ledger=place)
            board.submit("red", labels)
            board.close()
        told = runner.invoke(main, ["ledger", "verify", str(place)])
        looks = 1 if name == "holdout" else 3
        assert (told.exit_code, f"{looks} looks in all" in told.output) == (0, True)
        written = runner.invoke(main, ["ledger", "export", str(place)]).output
        (tmp_path / f"{name}.ndjson").write_text(written)
        assert "noisy_threshold" not in written
        assert runner.invoke(main, ["ledger", "verify", str(tmp_path / f"{name}.ndjson")]).exit_code == 0
        changed = written.replace(f'"session_units": {looks}', '"session_units": 0')
        assert changed != written
        (tmp_path / f"{name}.ndjson").write_text(changed)
        assert runner.invoke(main, ["ledger", "verify", str(tmp_path / f"{name}.ndjson")]).exit_code == 1


@pytest.mark.parametrize("mode", ["gaussian", "guess-and-check", "thresholdout", "ladder"])
def test_a_board_goes_on_where_its_ledger_was_moved_to(mode: str, tmp_path: Path) -> None:
    path, target = tmp_path / "looks.sqlite", f"{postgres().url}#{tmp_path}"
    board = Leaderboard(LABELS, queries=20, per_team=5, mode=mode, ledger=path)
    first = board.submit("red", LABELS, key="once")
    board.submit("red", 1 - LABELS)
    board.submit("blue", LABELS)
    seen, standings, left = board._holdout.looks.transcript(), board.standings(), board.left
    told = CliRunner().invoke(main, ["ledger", "move", str(path), target])
    assert told.exit_code == 0
    with pytest.raises(LedgerError, match="moved"):
        board.submit("red", LABELS)
    board.close()
    moved = Leaderboard(LABELS, queries=20, per_team=5, mode=mode, ledger=target)
    found = moved._holdout.looks.transcript()
    assert (found.looks, found.failures, found.state) == (seen.looks, seen.failures, seen.state)
    assert (moved.standings(), moved.left, moved.looks_left("red")) == (standings, left, min(3, left.looks))
    assert moved.submit("red", LABELS, key="once").value == first.value
    moved.submit("red", LABELS)
    assert moved.ledger.totals().units == (12 if mode == "gaussian" else 4)
    verify(moved.ledger)
    moved.close()


def lost_looks(folder: Path, mode: str) -> None:
    """Three looks of ten were taken, and the ledger is a backup of the first; it is acknowledged."""
    with opened(folder, 10, mode) as holdout:
        holdout.score(LABELS, guess=1.0)
    shutil.copy(folder / LEDGER_FILE, folder / "backup")
    with opened(folder) as holdout:
        holdout.score(LABELS, guess=1.0)
        holdout.score(LABELS, guess=1.0)
    shutil.copy(folder / "backup", folder / LEDGER_FILE)
    with pytest.raises(LedgerError, match="older copy"):
        opened(folder)
    acknowledge(folder)


@pytest.mark.parametrize("mode", ["votes", "gaussian", "discretised"])
def test_an_acknowledged_backup_goes_on_with_the_lost_looks_spent(mode: str, tmp_path: Path) -> None:
    lost_looks(tmp_path, mode)
    with opened(tmp_path) as holdout:
        assert (holdout.looks_used, holdout.looks_left) == (
            4,
            6,
        )  # one in the copy, three that the anchor saw
        for _ in range(6):
            answer = holdout.score(LABELS)
            # What was lost may have told most, so what the meter plans for is not enough.
            assert (answer.low < 1 - 2 * holdout.width) == (mode != "discretised")
        with pytest.raises(BudgetError, match="fresh holdout"):
            holdout.score(LABELS)
        verify(holdout.ledger)


@pytest.mark.parametrize("mode", ["guess-and-check", "thresholdout"])
def test_what_goes_on_from_lost_answers_is_refused(mode: str, tmp_path: Path) -> None:
    lost_looks(tmp_path, mode)
    with pytest.raises(LedgerError, match="lost"):
        opened(tmp_path)


def test_an_acknowledged_board_goes_on_with_a_larger_cap_for_its_teams(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"queries": 20, "mode": "gaussian", "ledger": tmp_path}
    board = Leaderboard(LABELS, per_team=2, **terms)
    board.submit("red", LABELS)
    board.close()
    shutil.copy(tmp_path / LEDGER_FILE, tmp_path / "backup")
    board = Leaderboard(LABELS, per_team=2, **terms)
    board.submit("blue", LABELS)
    board.close()
    shutil.copy(tmp_path / "backup", tmp_path / LEDGER_FILE)
    acknowledge(tmp_path)
    board = Leaderboard(LABELS, per_team=2, **terms)
    with pytest.raises(BudgetError, match="other teams"):
        board.submit("red", LABELS)
    board.close()
    board = Leaderboard(LABELS, per_team=3, **terms)
    board.submit("red", LABELS)
    assert (board.looks_left("red"), board.looks_left()) == (0, 16)
    verify(board.ledger)
    board.close()


@pytest.mark.parametrize("capped", [True, False])
def test_looks_and_privacy_are_never_counted_together(capped: bool) -> None:
    table = hf.open({"x": np.arange(100)}, hf.Schema(x=hf.Integer(0, 99)), ledger=MemoryLedger())
    if capped:
        table.limit(rho=1.0)
    session = table.session(rho=0.5, target="table")
    session.count("x > 3", rho=0.1)
    with pytest.raises(LedgerError):
        opened(table.ledger, 5)
    session.count("x > 4", rho=0.1)
    assert float(table.spent) == pytest.approx(0.2)
    counted = opened(None, 5).ledger
    with pytest.raises(LedgerError, match="looks"):
        hf.open({"x": np.arange(100)}, hf.Schema(x=hf.Integer(0, 99)), ledger=counted).session(rho=0.1)
    assert verify(counted).currency == LOOKS


def test_a_table_whose_ledger_was_given_to_a_holdout_is_told(tmp_path: Path) -> None:
    """Before anything was charged, whoever comes first has the ledger."""
    ledger = MemoryLedger()
    table = hf.open({"x": np.arange(100)}, hf.Schema(x=hf.Integer(0, 99)), ledger=ledger)
    session = table.session(rho=0.5, target="table")
    with opened(ledger, 5, "gaussian") as holdout, pytest.raises(HoldfastError, match="looks"):
        holdout.score(LABELS)
        session.count("x > 3", rho=0.1)
    assert verify(ledger).totals.units == 1


def test_looks_under_replayed_noise_say_so() -> None:
    with replayed(ReplayedBits(1)):
        guarded = opened(None, 5, "thresholdout")
        guarded.score(LABELS, guess=1.0)
    assert verify(guarded.ledger).replayed == 2  # the opening, with its threshold, and the look
    with pytest.raises(BudgetError), opened(None, 1, "gaussian") as real:
        real.score(LABELS)
        assert verify(real.ledger).replayed == 0
        real.score(LABELS)


def test_a_ledger_of_ones_own_is_left_open_where_the_opening_fails() -> None:
    with opened(MemoryLedger(), 5) as holdout, pytest.raises(LedgerError, match="other terms"):
        opened(holdout.ledger, 6)
    assert isinstance(Looks(Labels(LABELS), None).ledger, MemoryLedger)


def test_moving_keeps_the_order_of_the_answers(tmp_path: Path) -> None:
    """A look that crashed and was resumed later has the last state, wherever it was charged."""
    (tmp_path / "there").mkdir()
    holdout = opened(tmp_path, 20, "thresholdout")
    with pytest.raises(ZeroDivisionError):
        holdout.check(1.0, lambda ids: LABELS[ids] if len(ids) < 3 else 1 // 0, key="resumed")
    for _ in range(3):
        holdout.check(1.0, LABELS)
    holdout.check(1.0, LABELS, key="resumed")
    before = holdout.looks.transcript().state
    source, target = SqliteLedger(tmp_path / LEDGER_FILE), open_ledger(tmp_path / "there")
    move_ledger(source, target)
    for ledger in (source, target):
        ledger.close()
    holdout.close()
    with opened(tmp_path / "there") as moved:
        assert moved.looks.transcript().state == before
