"""Looks in a ledger: crashes, races, old copies, tampering, moves, and secrets that stay."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from services import postgres

import holdfast as hf
from holdfast.cli import main
from holdfast.errors import BudgetError, HoldfastError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.holdout import looks as looks_module
from holdfast.holdout.fingerprint import fingerprint
from holdfast.holdout.labels import Labels
from holdfast.holdout.looks import Looks
from holdfast.holdout.rungs import Rungs
from holdfast.ledger import (
    LEDGER_FILE,
    LOOKS,
    Account,
    MemoryLedger,
    SqliteLedger,
    acknowledge,
    export,
    move_ledger,
    open_ledger,
    verify,
    verify_export,
)
from holdfast.ledger.anchor import Anchor
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits

LOOKER = Path(__file__).with_name("looker.py")
LABELS = np.random.default_rng(11).integers(0, 2, 3000)
GUESSING = ("guess-and-check", "thresholdout")


def start(
    ledger: Path, queries: int, looks: int, failpoint: str = "", mode: str = "votes"
) -> subprocess.Popen[str]:
    command = [sys.executable, str(LOOKER), str(ledger), str(queries), str(looks)]
    return subprocess.Popen(
        command + ([failpoint] if failpoint else []), stdout=subprocess.PIPE, text=True,
        env={**os.environ, "LOOKER_MODE": mode},
    )  # fmt: skip


def opened(ledger: Any, queries: int | None = None, mode: str | None = None, **more: Any) -> ReusableHoldout:
    return ReusableHoldout(LABELS, queries=queries, mode=mode, ledger=ledger, **more)


def answers(process: subprocess.Popen[str]) -> int:
    return len([line for line in process.communicate(timeout=60)[0].splitlines() if line != "refused"])


@pytest.mark.parametrize("failpoint", ["after-charge", "before-settle"])
@pytest.mark.parametrize("mode", ["votes", "guess-and-check"])
def test_a_crash_loses_an_answer_never_a_charge(tmp_path: Path, failpoint: str, mode: str) -> None:
    process = start(tmp_path, 10, 3, failpoint, mode)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -9
    assert out == ""
    with opened(tmp_path) as holdout:
        assert holdout.looks_used == 1
        assert holdout.history() == []
        holdout.score(LABELS, guess=1.0)
        assert holdout.looks_used == 2


def test_racing_processes_get_exactly_the_looks_there_are(tmp_path: Path) -> None:
    with opened(tmp_path, 25, "votes"):
        pass
    racers = [start(tmp_path, 25, 10) for _ in range(4)]
    assert sum(map(answers, racers)) == 25
    with opened(tmp_path) as holdout:
        assert (holdout.looks_used, holdout.looks_left, len(holdout.history())) == (25, 0, 25)


def together(threads: int, work: Any) -> None:
    started = [Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


@pytest.mark.parametrize("mode", ["votes", "ladder", *GUESSING])
def test_racing_threads_of_many_teams_never_pass_a_cap(mode: str) -> None:
    """Five looks for each of four teams would be twenty; there are seven for all."""
    board = Leaderboard(LABELS, queries=7, per_team=5, mode=mode)
    won: list[str] = []

    def submit(number: int) -> None:
        with suppress(BudgetError):
            for _ in range(2):
                board.submit(f"team {number % 4}", LABELS)
                won.append(f"team {number % 4}")

    together(16, submit)
    assert len(won) == 7 == verify(board.ledger).totals.units
    assert max(won.count(team) for team in won) <= 5


def test_a_team_is_an_account_and_the_holdout_is_the_cap(tmp_path: Path) -> None:
    board = Leaderboard(LABELS, queries=9, per_team=3, ledger=tmp_path)
    for team in ("red", "red", "blue"):
        board.submit(team, LABELS)
    accounts = {account.name: account for account in board.ledger.accounts()}
    assert accounts["team red"] == Account("team red", LOOKS, 3)
    assert board.ledger.totals("team red").units == 2
    assert board.ledger.limit() == Account("all looks", LOOKS, 9)
    terms = json.loads(accounts["the holdout"].terms)
    assert (terms["kind"], terms["queries"]) == ("holdout", 9)
    assert terms["rho"] == pytest.approx(9 * terms["design"]["rho"])
    found = verify(board.ledger)
    assert "3 looks in all" in str(found)
    board.close()


def test_two_boards_with_other_caps_for_a_team_keep_each_their_own(tmp_path: Path) -> None:
    few, many = (
        Leaderboard(LABELS, queries=20, per_team=cap, mode="gaussian", ledger=tmp_path) for cap in (2, 4)
    )
    for board in (many, few, many, many):
        board.submit("red", LABELS)
    for board in (few, many):
        with pytest.raises(BudgetError, match="other teams"):
            board.submit("red", LABELS)
    few.submit("blue", LABELS)
    assert (few.looks_left("red"), few.looks_left("blue"), many.looks_left("blue")) == (0, 1, 3)
    few.close()
    many.close()


def test_looks_survive_a_restart_and_a_new_name(tmp_path: Path) -> None:
    with opened(tmp_path / "looks.sqlite", 5) as holdout:
        holdout.score(LABELS)
    (tmp_path / "looks.sqlite").rename(tmp_path / "renamed.db")
    with opened(tmp_path / "renamed.db") as holdout:
        assert holdout.looks_used == 1
        holdout.score(LABELS)


def test_a_ledger_renamed_while_open_never_answers_twice(tmp_path: Path) -> None:
    """SQLite's log stays behind under the old name, so the two would not see each other's looks."""
    path, renamed = tmp_path / "looks.sqlite", tmp_path / "renamed.db"
    with opened(path, 5, "votes") as first:
        first.score(LABELS)
        path.rename(renamed)
        answered = answers(start(renamed, 5, 5))
        with suppress(BudgetError, LedgerError):
            for _ in range(5):
                first.score(LABELS)
                answered += 1
    assert 1 <= answered <= 4


def test_a_restored_backup_is_noticed(tmp_path: Path) -> None:
    folder, anchors = tmp_path / "looks", tmp_path / "anchors"
    folder.mkdir()
    opened(folder, 5, anchors=anchors).close()
    shutil.copytree(folder, tmp_path / "backup")
    with opened(folder, anchors=anchors) as holdout:
        holdout.score(LABELS)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    with pytest.raises(LedgerError, match="older copy"):
        opened(folder, anchors=anchors)


def forgotten(folder: Path) -> ReusableHoldout:
    """A holdout whose ledger was removed, opened again."""
    with opened(folder, 5) as holdout:
        holdout.score(LABELS)
    for path in folder.glob("*"):
        path.unlink()
    return opened(folder, 5)


def test_a_deleted_ledger_is_not_a_fresh_holdout(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="missing"):
        forgotten(tmp_path)
    with pytest.raises(LedgerError, match="missing"):
        opened(tmp_path, 5)


def test_without_the_note_a_deleted_ledger_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin."""
    monkeypatch.setattr(looks_module, "_refuse_another", lambda *_: None)
    with forgotten(tmp_path) as fresh:
        assert fresh.looks_left == 5


@pytest.mark.parametrize("given", ["place", "object"])
def test_a_ledger_counts_the_looks_at_one_set_of_labels(tmp_path: Path, given: str) -> None:
    path = tmp_path / "looks.sqlite"
    ledger: Any = path if given == "place" else MemoryLedger()
    with opened(ledger, 5) as holdout:
        holdout.score(LABELS)
    for other in (1 - LABELS, LABELS[::-1], LABELS[1:], LABELS.astype(str)):
        with pytest.raises(LedgerError, match="other labels"):
            ReusableHoldout(other, queries=5, ledger=ledger)
    with opened(ledger) as holdout:
        assert holdout.looks_used == 1


def test_labels_that_are_not_compared_would_share_a_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin."""
    monkeypatch.setattr(looks_module, "fingerprint", lambda labels: "the same for all")
    ledger = MemoryLedger()
    opened(ledger, 5)
    ReusableHoldout(1 - LABELS, queries=5, ledger=ledger)


def test_the_metric_of_the_first_opening_is_remembered(tmp_path: Path) -> None:
    opened(tmp_path, 9, metric="error").close()
    with opened(tmp_path) as holdout:
        assert holdout.metric.name == "error"
    with opened(tmp_path, metric="brier") as holdout:
        assert holdout.metric.name == "brier"


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


def noisy_threshold(holdout: ReusableHoldout) -> int:
    return int(json.loads(str(holdout.looks.transcript().state))["secret"]["noisy_threshold"])


def test_the_secret_threshold_survives_a_restart(tmp_path: Path) -> None:
    """A fresh draw of the noisy threshold after each restart would be a free look."""
    with replayed(ReplayedBits(3)), opened(tmp_path, 20, "thresholdout") as holdout:
        before = noisy_threshold(holdout)
        assert holdout.check(1.0, LABELS).fine
    for seed in range(3):
        with replayed(ReplayedBits(seed)), opened(tmp_path) as holdout:
            assert noisy_threshold(holdout) == before


def test_a_threshold_drawn_again_would_be_caught() -> None:
    """The broken twin: holdouts that forget their state have other thresholds."""
    drawn = set()
    for seed in range(3):
        with replayed(ReplayedBits(seed)):
            drawn.add(noisy_threshold(opened(None, 20, "thresholdout")))
    assert len(drawn) == 3


def test_failures_survive_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path, 1000, "guess-and-check") as holdout:
        plan = holdout.design
    with pytest.raises(BudgetError, match="guesses failed"):
        for number in range(200):
            with opened(tmp_path) as holdout:
                holdout.score(LABELS, guess=float(number % 2) / 2)
    assert plan.failures <= number < 200


def rolled_back_answers(folder: Path) -> list[float]:
    """Answers under one key to somebody who puts the ledger of between charge and answer back each time."""
    backup = folder.parent / "between"

    def said(ids: np.ndarray) -> np.ndarray:
        if len(ids) > 2 and not backup.exists():  # not when it is tried before the charge
            shutil.copytree(folder, backup)
        return np.where(ids % 2, LABELS[ids], 1 - LABELS[ids])  # near 1/2, where nothing is clipped

    got = []
    folder.mkdir()
    opened(folder, 5, "votes").close()
    for _ in range(9):
        with opened(folder) as holdout:
            got.append(holdout.score(said, key="once").value)
            assert holdout.looks_used == 1
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
    return got


def test_a_rollback_between_charge_and_answer_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="older copy"):
        rolled_back_answers(tmp_path / "looks")


def test_an_anchor_that_stays_behind_would_miss_that_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: nine answers with fresh noise for one look."""
    monkeypatch.setattr(Anchor, "advance", lambda self, mark: None)
    assert len(set(rolled_back_answers(tmp_path / "looks"))) > 1


@pytest.mark.parametrize("mode", GUESSING)
def test_whether_a_guess_stood_is_a_fact_and_no_sentence(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "holdfast.holdout.reusable.replace", lambda answer, **_: replace(answer, explanation="in other words")
    )
    guarded = opened(MemoryLedger(), 20, mode)
    for train_score, fine in ((1.0, True), (0.0, False)):
        assert guarded.check(train_score, LABELS, key=str(fine)).fine is fine
        again = guarded.check(train_score, LABELS, key=str(fine))
        assert (again.fine, again.answer.repeated, again.answer.explanation) == (fine, True, "in other words")


def test_whether_a_ladder_moved_is_a_fact_and_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Rungs._read
    monkeypatch.setattr(
        Rungs, "_read", lambda self, *part: replace(read(self, *part), explanation="in other words")
    )
    board = Leaderboard(LABELS, queries=9, mode="ladder")
    for team, said in (("strong", LABELS), ("weak", 1 - LABELS)):
        board.submit(team, said)
    assert [line.team for line in board.standings()] == ["strong"]


class NoTurns(MemoryLedger):
    """Holders who lost their turn without noticing, as with a connection to PostgreSQL."""

    def turn(self) -> Any:
        return contextlib.nullcontext()


class NoOrder(NoTurns):
    """The broken twin: an answer is recorded although another was given since."""

    def record(self, entry: int, answer: str, *, secret: bool = False, after: int | None = None) -> str:
        return super().record(entry, answer, secret=secret)


def hits_after_a_lost_turn(ledger: MemoryLedger) -> tuple[int, int]:
    """(disagreements told, disagreements counted) where one look comes in between another's reading and its record."""
    terms: dict[str, Any] = {"queries": 20, "mode": "thresholdout", "hits": 5, "ledger": ledger}
    first, second = ReusableHoldout(LABELS, **terms), ReusableHoldout(LABELS, **terms)
    told: list[bool] = []

    def said(ids: np.ndarray) -> np.ndarray:
        if len(ids) > 2 and not told:
            told.append(second.check(0.0, LABELS).fine)
        return LABELS[ids]

    told.append(first.check(0.0, said).fine)
    return told.count(False), 5 - int(json.loads(str(first.looks.transcript().state))["secret"]["left"])


def test_a_look_that_lost_its_turn_is_taken_again() -> None:
    assert hits_after_a_lost_turn(NoTurns()) == (2, 2)


def test_answers_recorded_out_of_turn_would_lose_a_disagreement() -> None:
    assert hits_after_a_lost_turn(NoOrder()) == (2, 1)


def test_a_look_that_cannot_be_certified_any_more_is_not_answered_out_of_turn() -> None:
    """What came in between used up the last disagreement."""
    ledger = NoTurns()
    terms: dict[str, Any] = {"queries": 20, "mode": "thresholdout", "hits": 1, "ledger": ledger}
    first, second = ReusableHoldout(LABELS, **terms), ReusableHoldout(LABELS, **terms)

    def said(ids: np.ndarray) -> np.ndarray:
        if len(ids) > 2 and not second.history():
            second.check(0.0, LABELS)
        return LABELS[ids]

    with pytest.raises(BudgetError, match="disagreed 1 times"):
        first.check(0.0, said)
    assert len(first.history()) == 1


class TellsAll(MemoryLedger):
    """The broken twin: what is secret is kept as any answer."""

    def record(self, entry: int, answer: str, *, secret: bool = False, after: int | None = None) -> str:
        return super().record(entry, answer, after=after)


def secrets_exported(ledger: MemoryLedger, mode: str) -> list[str]:
    """What of the labels' digest and of secret states is in the export of a board."""
    board = Leaderboard(LABELS, queries=20, mode=mode, ledger=ledger)
    first = board.submit("red", LABELS)
    states = [board._holdout.looks.transcript().state]
    board.submit("red", np.where(np.arange(3000) < 2000, LABELS, 1 - LABELS))
    states.append(board._holdout.looks.transcript().state)
    lines = list(export(ledger))
    assert verify_export(lines).totals.units == 2
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
        assert (told.exit_code, "1 looks in all" in told.output) == (0, True)
        written = runner.invoke(main, ["ledger", "export", str(place)]).output
        (tmp_path / f"{name}.ndjson").write_text(written)
        assert "noisy_threshold" not in written
        assert runner.invoke(main, ["ledger", "verify", str(tmp_path / f"{name}.ndjson")]).exit_code == 0
        changed = written.replace('"session_units": 1', '"session_units": 0')
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
    assert moved.ledger.totals().units == 4
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
            holdout.score(LABELS)
        with pytest.raises(BudgetError, match="fresh holdout"):
            holdout.score(LABELS)
        verify(holdout.ledger)


@pytest.mark.parametrize("mode", GUESSING)
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
