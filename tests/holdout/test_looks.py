"""Looks in a ledger: crashes, races, old copies, terms and labels, states that survive, turns."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.holdout import looks as looks_module
from holdfast.holdout.ladder_board import LadderBoard
from holdfast.ledger import (
    LOOKS,
    Account,
    MemoryLedger,
    verify,
)
from holdfast.ledger.anchor import Anchor
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdout.looker import LABELS

LOOKER = Path(__file__).with_name("looker.py")

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
    assert len(won) == 7
    assert verify(board.ledger).totals.units == (21 if mode == "votes" else 7)  # with two comparisons each
    assert max(won.count(team) for team in won) <= 5


def test_a_team_is_an_account_and_the_holdout_is_the_cap(tmp_path: Path) -> None:
    board = Leaderboard(LABELS, queries=9, per_team=3, ledger=tmp_path)
    for team in ("red", "red", "blue"):
        board.submit(team, LABELS)
    accounts = {account.name: account for account in board.ledger.accounts()}
    assert accounts["team red"] == Account("team red", LOOKS, 9)
    assert board.ledger.totals("team red").units == 6
    assert board.ledger.limit() == Account("all looks", LOOKS, 27)
    terms = json.loads(accounts["the holdout"].terms)
    assert (terms["kind"], terms["queries"]) == ("holdout", 27)
    assert terms["rho"] > terms["design"]["rho"] > 0  # all of them may be comparisons
    found = verify(board.ledger)
    assert "9 looks in all" in str(found)
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
        "holdfast.holdout.guesser.replace", lambda answer, **_: replace(answer, explanation="in other words")
    )
    with replayed(ReplayedBits(3)), opened(MemoryLedger(), 20, mode) as guarded:
        for train_score, fine in ((1.0, True), (0.0, False)):
            assert guarded.check(train_score, LABELS, key=str(fine)).fine is fine
            again = guarded.check(train_score, LABELS, key=str(fine))
            assert (again.fine, again.answer.repeated) == (fine, True)
            assert again.answer.explanation == "in other words"


def test_whether_a_ladder_moved_is_a_fact_and_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    read = LadderBoard._read
    monkeypatch.setattr(
        LadderBoard, "_read", lambda self, *part: replace(read(self, *part), explanation="in other words")
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

    def record(
        self,
        entry: int,
        answer: str,
        *,
        secret: bool = False,
        after: int | None = None,
        told: int | None = None,
    ) -> str:
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
