"""The state file: crashes, races, renaming, old copies and tampering."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout import state as state_module
from holdfast.holdout.anchor import Anchor, Mark
from holdfast.holdout.metric import METRICS
from holdfast.holdout.state import SUFFIX, Overspent, State
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits

LOOKER = Path(__file__).with_name("looker.py")
LABELS = np.random.default_rng(11).integers(0, 2, 3000)


def start(
    folder: Path, queries: int, looks: int, failpoint: str = "", mode: str = "votes"
) -> subprocess.Popen[str]:
    command = [sys.executable, str(LOOKER), str(folder), str(queries), str(looks)]
    return subprocess.Popen(
        command + ([failpoint] if failpoint else []), stdout=subprocess.PIPE, text=True,
        env={**os.environ, "LOOKER_MODE": mode},
    )  # fmt: skip


def open_again(folder: Path, queries: int | None = None, mode: str | None = None) -> ReusableHoldout:
    return ReusableHoldout(LABELS, queries=queries, mode=mode, state=folder)


def state_file(folder: Path) -> Path:
    (found,) = folder.glob(f"*{SUFFIX}")
    return found


@pytest.mark.parametrize("failpoint", ["after-charge", "before-settle"])
@pytest.mark.parametrize("mode", ["votes", "guess-and-check"])
def test_a_crash_loses_an_answer_never_a_charge(tmp_path: Path, failpoint: str, mode: str) -> None:
    process = start(tmp_path, 10, 3, failpoint, mode)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -9
    assert out == ""
    with open_again(tmp_path) as holdout:
        assert holdout.looks_used == 1
        assert holdout.history() == []
        holdout.score(LABELS, guess=1.0)
        assert holdout.looks_used == 2


def test_racing_processes_get_exactly_the_looks_there_are(tmp_path: Path) -> None:
    with open_again(tmp_path, 25, "votes"):
        pass
    racers = [start(tmp_path, 25, 10) for _ in range(4)]
    lines = [line for racer in racers for line in racer.communicate(timeout=60)[0].splitlines()]
    assert len([line for line in lines if line != "refused"]) == 25
    with open_again(tmp_path) as holdout:
        assert (holdout.looks_used, holdout.looks_left, len(holdout.history())) == (25, 0, 25)


def race(state: State, most: int) -> int:
    """How many of 16 threads, two looks each, got one."""
    won: list[int] = []

    def run() -> None:
        for _ in range(2):
            try:
                won.append(state.charge("", "accuracy", 1, most=most, team_most=None).id)
            except Overspent:
                return

    threads = [Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(won)


def test_racing_threads_never_pass_the_cap() -> None:
    with closing(State(None)) as state:
        assert race(state, 5) == 5


def test_a_charge_without_its_lock_would_be_caught(tmp_path: Path) -> None:
    """The broken twin: two connections that check first and write later both win the last look."""

    class Unlocked(State):
        @contextmanager
        def _transaction(self) -> Iterator[None]:
            yield

    path = tmp_path / "unlocked.holdout"
    State(path).close()
    first, second = Unlocked(path), Unlocked(path)
    last = second._last

    def interleaved() -> tuple[int, str]:
        seen = last()
        first.charge("", "accuracy", 1, most=1, team_most=None)
        return seen

    second._last = interleaved  # type: ignore[method-assign]
    second.charge("", "accuracy", 1, most=1, team_most=None)
    looks = first._rows("SELECT count(*) FROM looks")[0][0]
    first.close()
    second.close()
    assert looks == 2
    with pytest.raises(LedgerError, match="changed by hand"):
        State(path)


def test_looks_survive_a_restart_and_a_new_name(tmp_path: Path) -> None:
    with open_again(tmp_path, 5) as holdout:
        holdout.score(LABELS)
    state_file(tmp_path).rename(tmp_path / "renamed-by-somebody.db")
    with open_again(tmp_path) as holdout:
        assert holdout.looks_used == 1
        holdout.score(LABELS)
    assert not list(tmp_path.glob(f"*{SUFFIX}"))


def old_copy(folder: Path) -> Path:
    """A holdout with three looks whose state file is put back to what it was after one."""
    with open_again(folder, 5) as holdout:
        holdout.score(LABELS)
    copy = shutil.copy(state_file(folder), folder.parent / "copy")
    with open_again(folder) as holdout:
        holdout.score(LABELS)
        holdout.score(LABELS)
    shutil.copy(copy, state_file(folder))
    return state_file(folder)


def test_an_old_copy_is_noticed(tmp_path: Path) -> None:
    old_copy(tmp_path / "state")
    with pytest.raises(
        LedgerError, match="older copy: its anchor counted 3 looks and 3 answers, the file has 1 and 1"
    ):
        open_again(tmp_path / "state")


def test_without_its_anchor_an_old_copy_would_pass(tmp_path: Path) -> None:
    """The broken twin."""
    path = old_copy(tmp_path / "state")
    with closing(State(path)) as state:
        assert state.used() == 1


def test_an_old_copy_that_was_used_again_is_noticed(tmp_path: Path) -> None:
    """Same number of looks as the anchor, but not the same looks."""
    path = old_copy(tmp_path / "state")
    with closing(State(path)) as state:
        for _ in range(2):
            state.charge("mallory", "accuracy", 1, most=5, team_most=None)
    with pytest.raises(LedgerError, match="older copy"):
        open_again(tmp_path / "state")


def test_a_deleted_state_is_not_a_fresh_holdout(tmp_path: Path) -> None:
    with open_again(tmp_path, 5) as holdout:
        holdout.score(LABELS)
    state_file(tmp_path).unlink()
    with pytest.raises(LedgerError, match="missing"):
        open_again(tmp_path, 5)


def test_a_restored_folder_is_noticed_by_an_anchor_elsewhere(tmp_path: Path) -> None:
    folder, anchors = tmp_path / "state", tmp_path / "anchors"
    ReusableHoldout(LABELS, queries=5, state=folder, anchors=anchors).close()
    shutil.copytree(folder, tmp_path / "backup")
    with ReusableHoldout(LABELS, state=folder, anchors=anchors) as holdout:
        holdout.score(LABELS)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    with pytest.raises(LedgerError, match="older copy"):
        ReusableHoldout(LABELS, state=folder, anchors=anchors)


def test_two_copies_in_one_folder_are_refused(tmp_path: Path) -> None:
    open_again(tmp_path, 5).close()
    shutil.copy(state_file(tmp_path), tmp_path / "second.holdout")
    with pytest.raises(LedgerError, match="2 state files"):
        open_again(tmp_path)


def test_an_anchor_that_lags_after_a_crash_is_harmless(tmp_path: Path) -> None:
    with open_again(tmp_path, 5) as holdout:
        holdout.score(LABELS)
        holdout.state._anchor = None
        holdout.score(LABELS)
    with open_again(tmp_path) as holdout:
        assert holdout.looks_used == 2


def test_looks_cannot_be_changed_or_deleted(tmp_path: Path) -> None:
    with open_again(tmp_path, 5) as holdout:
        holdout.score(LABELS)
    with closing(sqlite3.connect(state_file(tmp_path))) as db:
        for statement in ("UPDATE looks SET looks = 1", "DELETE FROM looks", "DELETE FROM answers"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(statement)
        db.execute("DROP TRIGGER looks_stay")
        db.execute("UPDATE looks SET team = 'other'")
        db.commit()
    with pytest.raises(LedgerError, match="changed by hand at look 1"):
        open_again(tmp_path)


def test_a_broken_or_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.holdout"
    path.write_bytes(b"SQLite format 3\x00 but not really")
    with pytest.raises(LedgerError, match="cannot be opened"):
        State(path)
    newer = tmp_path / "newer.holdout"
    with closing(sqlite3.connect(newer)) as db:
        db.execute(f"PRAGMA user_version={state_module.VERSION + 1}")
    with pytest.raises(LedgerError, match="newer Holdfast"):
        State(newer)
    (tmp_path / "a.anchor").write_text("{}")
    with pytest.raises(LedgerError, match="anchor"):
        Anchor(tmp_path / "a.anchor").read()


def noisy_threshold(holdout: ReusableHoldout) -> int:
    return int(json.loads(holdout.state.fact("secret") or "")["secret"]["noisy_threshold"])


def test_the_secret_threshold_survives_a_restart(tmp_path: Path) -> None:
    """A fresh draw of the noisy threshold after each restart would be a free look."""
    terms = {"mode": "thresholdout", "queries": 20, "state": tmp_path}
    with replayed(ReplayedBits(3)), ReusableHoldout(LABELS, **terms) as holdout:  # type: ignore[arg-type]
        before = noisy_threshold(holdout)
        assert holdout.check(1.0, LABELS).fine
    for seed in range(3):
        with replayed(ReplayedBits(seed)), ReusableHoldout(LABELS, state=tmp_path) as holdout:
            assert noisy_threshold(holdout) == before


def test_a_threshold_drawn_again_would_be_caught() -> None:
    """The broken twin: holdouts that forget their state have other thresholds."""
    drawn = set()
    for seed in range(3):
        with replayed(ReplayedBits(seed)):
            drawn.add(noisy_threshold(ReusableHoldout(LABELS, mode="thresholdout", queries=20)))
    assert len(drawn) == 3


def test_failures_survive_a_restart(tmp_path: Path) -> None:
    with open_again(tmp_path, 1000, "guess-and-check") as holdout:
        plan = holdout.design
    with pytest.raises(BudgetError, match="guesses failed"):
        for number in range(200):
            with open_again(tmp_path) as holdout:
                holdout.score(LABELS, guess=float(number % 2) / 2)
    assert plan.failures <= number < 200


def rolled_back_answers(folder: Path) -> list[float]:
    """Answers under one key to somebody who puts the state of between charge and settlement back each time."""
    backup = folder.parent / "between"

    def said(ids: np.ndarray) -> np.ndarray:
        if len(ids) > 2 and not backup.exists():  # not when it is tried before the charge
            shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("*.anchor*", "*.lock", "*.opening"))
        return np.where(ids % 2, LABELS[ids], 1 - LABELS[ids])  # near 1/2, where nothing is clipped

    got = []
    open_again(folder, 5, "votes").close()
    for _ in range(9):
        with open_again(folder) as holdout:
            got.append(holdout.score(said, key="once").value)
            assert holdout.looks_used == 1
        for name in folder.glob(f"*{SUFFIX}*"):
            name.unlink()
        shutil.copytree(backup, folder, dirs_exist_ok=True)
    return got


def test_a_rollback_between_charge_and_answer_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="1 looks and 1 answers, the file has 1 and 0"):
        rolled_back_answers(tmp_path / "state")


def test_an_anchor_of_charges_only_would_miss_that_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: nine answers with fresh noise for one look."""
    advance = Anchor.advance
    monkeypatch.setattr(Anchor, "advance", lambda self, mark: advance(self, Mark(mark.looks, mark.head)))
    assert len(set(rolled_back_answers(tmp_path / "state"))) > 1


def test_of_two_copies_with_one_anchor_only_one_answers(tmp_path: Path) -> None:
    """Both are open and charged when the first settles."""
    anchors = tmp_path / "anchors"
    first = ReusableHoldout(LABELS, queries=5, state=tmp_path / "a", anchors=anchors)
    first.state.charge("", METRICS["accuracy"].terms, 1, most=5, team_most=None, key="once")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    second = ReusableHoldout(LABELS, state=tmp_path / "b", anchors=anchors)
    first.score(LABELS, key="once")
    with pytest.raises(LedgerError, match="older copy"):
        second.score(LABELS, key="once")
    with pytest.raises(LedgerError, match="older copy"):
        second.state.settle(1, "{}")
    first.close()
    second.close()


def test_an_answer_whose_anchor_was_lost_in_a_crash_is_anchored_before_it_is_returned(tmp_path: Path) -> None:
    with open_again(tmp_path, 5) as holdout:
        holdout.state._anchor = None
        holdout.score(LABELS, key="once")
    (path,) = tmp_path.glob("*.anchor")
    assert Anchor(path).read() == Mark()
    with open_again(tmp_path) as holdout:
        assert Anchor(path).read() == holdout.state._mark() != Mark()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("UPDATE answers SET answer = '{}' WHERE id = 1", "answer 1"),
        ("UPDATE answers SET look = 1 + 2 - look", "answer 1"),
        ("UPDATE answers SET total = 9 WHERE id = 2", "answer 2"),
        ("DELETE FROM answers WHERE id = 1", "answer 2"),
        ("UPDATE facts SET value = '0' WHERE name = 'secret'", "its secret state"),
        ("DELETE FROM facts WHERE name = 'secret'", "its secret state"),
    ],
)
def test_answers_and_their_secrets_cannot_be_changed(tmp_path: Path, change: str, where: str) -> None:
    with open_again(tmp_path, 1000, "guess-and-check") as holdout:
        holdout.score(LABELS, guess=0.0)
        holdout.score(LABELS, guess=1.0)
    with closing(sqlite3.connect(state_file(tmp_path))) as db:
        for trigger in ("answers_stay", "answers_last"):
            db.execute(f"DROP TRIGGER {trigger}")
        if "look = 1" in change:  # two steps, because a look has one answer
            db.execute("UPDATE answers SET look = -1 WHERE id = 1")
            db.execute("UPDATE answers SET look = 1 WHERE id = 2")
            change = "UPDATE answers SET look = 2 WHERE id = 1"
        db.execute(change)
        db.commit()
    with pytest.raises(LedgerError, match=f"changed by hand at {where}"):
        open_again(tmp_path)


def test_answers_without_their_chain_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin checks the looks only."""
    monkeypatch.setattr(State, "_verify_answers", lambda self: None)
    with open_again(tmp_path, 5) as holdout:
        holdout.score(LABELS)
    with closing(sqlite3.connect(state_file(tmp_path))) as db:
        db.execute("DROP TRIGGER answers_stay")
        db.execute("UPDATE answers SET answer = '{}'")
        db.commit()
    open_again(tmp_path).close()


def test_the_lock_follows_the_fingerprint_not_the_name(tmp_path: Path) -> None:
    with open_again(tmp_path, 5) as first:
        pass
    renamed = state_file(tmp_path).rename(tmp_path / "renamed.db")
    with closing(State(renamed)) as by_name:
        assert by_name._alone != first.state._alone  # the broken twin
    with open_again(tmp_path) as second:
        assert second.state._alone == first.state._alone


def test_a_state_renamed_while_open_never_answers_twice(tmp_path: Path) -> None:
    """SQLite's log stays behind under the old name, so the two would not see each other's looks."""
    with open_again(tmp_path, 5, "votes") as first:
        first.score(LABELS)
        state_file(tmp_path).rename(tmp_path / "renamed.db")
        process = start(tmp_path, 5, 5)
        answered = len(
            [line for line in process.communicate(timeout=60)[0].splitlines() if line != "refused"]
        )
        with suppress(BudgetError, LedgerError):
            for _ in range(5):
                first.score(LABELS)
                answered += 1
    assert 1 <= answered <= 4


def test_an_old_format_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.holdout")) as db:
        db.execute("PRAGMA user_version=1")
    with pytest.raises(LedgerError, match="old format 1"):
        State(tmp_path / "old.holdout")


def test_an_anchor_is_on_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.path.isdir(f"/proc/self/fd/{file}")))
    Anchor(tmp_path / "a.anchor").advance(Mark(1, "x"))
    assert synced == [False, True]
