"""`holdfast board` from files: open, submit, tie, refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from holdfast.cli import main

LABELS = np.random.default_rng(2).integers(0, 2, 3000)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HOLDFAST_ANCHORS", raising=False)
    ids = np.arange(3000)
    lines = "\n".join(f"row{i},{y}" for i, y in zip(ids, LABELS, strict=True))
    (tmp_path / "labels.csv").write_text(f"id,label\n{lines}\n")
    for name, right in (("good", 0.95), ("bad", 0.55)):
        said = np.where(np.random.default_rng(3).random(3000) < right, LABELS, 1 - LABELS)
        order = np.random.default_rng(4).permutation(3000)
        shuffled = "\n".join(f"row{i},{said[i]}" for i in order)
        (tmp_path / f"{name}.csv").write_text(f"id,prediction\n{shuffled}\n")
    return tmp_path


def run(folder: Path, command: str, *more: str) -> Any:
    """As the page has it: the labels are the column that is called so."""
    return CliRunner().invoke(main, ["board", command, str(folder / "labels.csv"), *more])


def test_a_board_from_files(folder: Path) -> None:
    opened = run(folder, "init", "--queries", "3")
    assert "3 submissions, each within" in opened.output
    for team, name in (("red", "bad"), ("blue", "good")):
        told = run(folder, "submit", team, str(folder / f"{name}.csv"), "--ids", "id")
        assert (told.exit_code, "submissions left" in told.output) == (0, True)
    table = run(folder, "show").output
    assert table.index("blue") < table.index("red")
    seen = json.loads(run(folder, "show", "--json").output)
    assert [(line["rank"], line["team"]) for line in seen["standings"]] == [(1, "blue"), (2, "red")]
    assert seen["looks_left"] == 1
    run(folder, "submit", "red", str(folder / "good.csv"), "--ids", "id")
    refused = run(folder, "submit", "red", str(folder / "good.csv"), "--ids", "id")
    assert refused.exit_code == 3
    state = folder / "state" / "holdfast"
    ledgers = list((state / "holdouts").glob("*.sqlite"))
    assert [ledger.stat().st_mode & 0o777 for ledger in ledgers] == [0o600]
    assert list((state / "anchors").iterdir()), "anchors are elsewhere"


def test_a_submission_by_position_would_be_worth_nothing(folder: Path) -> None:
    """The broken twin of `--ids`."""
    run(folder, "init", "--queries", "3")
    told = run(folder, "submit", "red", str(folder / "good.csv"), "--predictions-column", "prediction")
    assert 0.4 < float(told.output.split()[1]) < 0.6


def test_a_team_has_its_own_limit(folder: Path) -> None:
    run(folder, "init", "--queries", "9")
    for code in (0, 3):
        told = run(folder, "submit", "red", str(folder / "bad.csv"), "--ids", "id", "--per-team", "1")
        assert told.exit_code == code
