"""`holdfast holdout`: what it prints and the exit codes that CI relies on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from holdfast.errors import DataError, HoldfastError, InputError, MechanismError
from holdfast.holdout.command import NOT_CLEARED, REFUSED, demo_leaderboard, holdout
from holdfast.holdout.file_column import read_column

LABELS = np.random.default_rng(1).integers(0, 2, 3000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "labels.npy", LABELS)
    right = np.random.default_rng(2).random(3000) < 0.9
    np.save(tmp_path / "model.npy", np.where(right, LABELS, 1 - LABELS))
    return tmp_path


def run(folder: Path, *arguments: str, labels: str = "labels.npy", ledger: str = "looks.sqlite") -> Any:
    command, *rest = arguments
    full = [command, str(folder / labels), *rest, "--ledger", str(folder / ledger)]
    return CliRunner().invoke(holdout, full)


def test_init_score_status_and_the_end(folder: Path) -> None:
    opened = run(folder, "init", "--queries", "3")
    assert opened.exit_code == 0
    assert "3 looks at 3,000 rows" in opened.output
    scored = run(folder, "score", str(folder / "model.npy"), "--json")
    assert scored.exit_code == 0
    told = json.loads(scored.output)
    assert told["low"] <= 0.9 <= told["high"]
    assert told["looks_left"] == 2
    status = json.loads(run(folder, "status", "--json").output)
    assert (status["looks_used"], status["looks_left"]) == (1, 2)
    for _ in range(2):
        assert run(folder, "score", str(folder / "model.npy")).exit_code == 0
    refused = run(folder, "score", str(folder / "model.npy"))
    assert refused.exit_code == REFUSED
    assert "fresh holdout" in refused.output
    assert run(folder, "status").exit_code == REFUSED


def test_people_with_several_rows_count_once(folder: Path) -> None:
    """Fifty people are 3000 rows; the ledger knows whose they are."""
    rows = "".join(f"{label},p{row % 50}\n" for row, label in enumerate(LABELS))
    (folder / "people.csv").write_text("label,person\n" + rows)
    how = ("--units", "person", "--rows-per-unit", "60")
    opened = run(folder, "init", "--queries", "3", *how, labels="people.csv")
    assert opened.exit_code == 0 and "3 looks at 50 rows" in opened.output
    model = str(folder / "model.npy")
    scored = run(folder, "score", model, *how, labels="people.csv")
    assert scored.exit_code == 0 and "the mean of units' means" in scored.output
    rows_alone = run(folder, "score", model, "--column", "label", labels="people.csv")
    assert rows_alone.exit_code == 1 and "other labels or units" in str(rows_alone.exception)
    for wrong in (
        ("--units", "person"),
        ("--units", "nobody", "--rows-per-unit", "4"),
        ("--rows-per-unit", "4"),
    ):
        assert run(folder, "status", *wrong, labels="people.csv").exit_code == 1
    unnamed = run(folder, "status", *how)
    assert unnamed.exit_code == 1 and "columns need names" in str(unnamed.exception)


def test_a_bar_decides_the_exit_code(folder: Path) -> None:
    run(folder, "init", "--queries", "10", "--metric", "error")
    model = str(folder / "model.npy")
    assert run(folder, "score", model, "--at-most", "0.5").exit_code == 0
    assert run(folder, "score", model, "--at-most", "0.1").exit_code == NOT_CLEARED
    assert run(folder, "score", model, "--metric", "accuracy", "--at-least", "0.5").exit_code == 0
    assert run(folder, "score", model, "--metric", "accuracy", "--at-least", "0.9").exit_code == NOT_CLEARED
    assert run(folder, "score", model, "--train-score", "0.1").exit_code == 0
    assert run(folder, "score", model, "--train-score", "0.9").exit_code == NOT_CLEARED


def test_a_key_makes_a_retry_free(folder: Path) -> None:
    run(folder, "init", "--queries", "2")
    model = str(folder / "model.npy")
    first, again = (run(folder, "score", model, "--key", "abc123", "--json") for _ in range(2))
    assert json.loads(first.output) == json.loads(again.output)
    assert json.loads(again.output)["looks_left"] == 1


def test_renamed_labels_are_the_same_holdout(folder: Path) -> None:
    run(folder, "init", "--queries", "2")
    run(folder, "score", str(folder / "model.npy"))
    (folder / "labels.npy").rename(folder / "moved.npy")
    assert json.loads(run(folder, "status", "--json", labels="moved.npy").output)["looks_used"] == 1


def test_the_default_place_is_the_users_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "s"))
    monkeypatch.delenv("HOLDFAST_ANCHORS")
    result = CliRunner().invoke(holdout, ["init", str(folder / "labels.npy"), "--queries", "2"])
    assert result.exit_code == 0
    assert list((folder / "s/holdfast/holdouts").glob("*.sqlite"))
    assert list((folder / "s/holdfast/anchors").glob("*.anchor"))


def test_errors_are_ours_and_wrong_usage_is_clicks(folder: Path) -> None:
    unopened = run(folder, "status")
    assert isinstance(unopened.exception, InputError)
    assert run(folder, "init").exit_code == 2
    missing = run(folder, "score", str(folder / "none.npy"))
    assert isinstance(missing.exception, HoldfastError)


def test_init_is_private_unless_told_and_says_which(folder: Path) -> None:
    opened = run(folder, "init", "--queries", "20")
    assert "private: rho" in opened.output
    status = json.loads(run(folder, "status", "--json").output)
    assert (status["private"], status["mode"]) == (True, "gaussian")
    assert (status["looks_left"], status["looks_at_most"], status["failures_left"]) == (20, 20, None)
    np.save(folder / "other.npy", 1 - LABELS)
    refused = run(
        folder,
        "init",
        "--queries",
        "5",
        "--mode",
        "guess-and-check",
        "--private",
        labels="other.npy",
        ledger="other.sqlite",
    )
    assert isinstance(refused.exception, MechanismError)
    either = run(
        folder, "init", "--queries", "5", "--mode", "discretised", labels="other.npy", ledger="other.sqlite"
    )
    assert "by discretised" in either.output
    assert "not private" in either.output
    scored = run(folder, "score", str(folder / "model.npy"), labels="other.npy", ledger="other.sqlite")
    assert "not private" in scored.output
    assert "inf" not in scored.output


def test_failures_that_are_left_are_shown(folder: Path) -> None:
    run(folder, "init", "--queries", "100", "--mode", "guess-and-check")
    status = json.loads(run(folder, "status", "--json").output)
    assert 20 < status["looks_left"] < status["looks_at_most"] == 100
    assert status["failures_left"] == 20
    assert "while no more than 20 guesses fail" in run(folder, "status").output


def test_serving_what_is_not_private_takes_the_owners_word(folder: Path) -> None:
    run(folder, "init", "--queries", "5", "--mode", "guess-and-check")
    refused = run(folder, "serve")
    assert isinstance(refused.exception, MechanismError)
    assert "not private" in str(refused.exception)
    told = CliRunner().invoke(holdout, ["serve", "--help"]).output
    assert "--not-private" in told
    assert "differentially private" in told


def test_columns_are_read_from_every_kind_of_file(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.csv").write_text("id,y\n1,0\n2,1\n")
    (tmp_path / "b.csv").write_text("y\ncat\ndog\n")
    (tmp_path / "c.txt").write_text("0.5 0.25\n1")
    pq.write_table(pa.table({"id": [1, 2], "y": [0, 1]}), tmp_path / "d.parquet")
    assert read_column(tmp_path / "a.csv", "y").tolist() == [0, 1]
    assert read_column(tmp_path / "b.csv").tolist() == ["cat", "dog"]
    assert read_column(tmp_path / "c.txt").tolist() == [0.5, 0.25, 1.0]
    assert read_column(tmp_path / "d.parquet", "y").tolist() == [0, 1]
    with pytest.raises(InputError, match="--column"):
        read_column(tmp_path / "a.csv")
    with pytest.raises(InputError, match="--column"):
        read_column(tmp_path / "a.csv", usual="label")
    assert read_column(tmp_path / "a.csv", usual="y").tolist() == [0, 1]
    assert read_column(tmp_path / "a.csv", "id", usual="y").tolist() == [1, 2]
    np.save(tmp_path / "e.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="no plain array"):
        read_column(tmp_path / "e.npy")
    (tmp_path / "f.xlsx").write_text("")
    with pytest.raises(InputError):
        read_column(tmp_path / "f.xlsx")
    (tmp_path / "g.csv").write_text("id,y\n1\n")
    with pytest.raises(DataError, match="rows without"):
        read_column(tmp_path / "g.csv", "y")


def test_the_demo_runs_from_the_command_line(tmp_path: Path) -> None:
    picture = tmp_path / "board.png"
    result = CliRunner().invoke(
        demo_leaderboard, ["--rows", "300", "--submissions", "120", "--picture", str(picture)]
    )
    assert result.exit_code == 0, result.output
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "log-loss oracle" in result.output
