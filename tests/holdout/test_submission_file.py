"""Files of predictions: below one folder, matched by ids, refused before a look."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.errors import DataError, InputError
from holdfast.holdout import submission_file
from holdfast.holdout.file_column import read_column
from holdfast.holdout.submission_file import SubmissionFolder

IDS = np.array(["r3", "r1", "r2"])


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "id,prediction\nr1,0.1\nr2,0.2\nr3,0.3\n",
        "prediction,id\n0.3,r3\n0.1,r1\n0.2,r2\n",
        "id,target\nr2,0.2\nr3,0.3\nr1,0.1\n",
        "id,model,prediction\nr2,a,0.2\nr3,b,0.3\nr1,c,0.1\n",
    ],
)
def test_rows_are_matched_by_id_whatever_their_order(text: str, tmp_path: Path) -> None:
    written(tmp_path / "sub.csv", text)
    assert SubmissionFolder(tmp_path, IDS).read("sub.csv").tolist() == [0.3, 0.1, 0.2]


def test_matching_by_position_would_be_caught(tmp_path: Path) -> None:
    """The broken twin has no ids."""
    written(tmp_path / "sub.csv", "id,prediction\nr1,0.1\nr2,0.2\nr3,0.3\n")
    by_position = SubmissionFolder(tmp_path).read("sub.csv", column="prediction")
    assert by_position.tolist() != SubmissionFolder(tmp_path, IDS).read("sub.csv").tolist()


@pytest.mark.parametrize(
    "text",
    [
        "id,prediction\nr1,0.1\nr2,0.2\n",
        "id,prediction\nr1,0.1\nr2,0.2\nr3,0.3\nr4,0.4\n",
        "id,prediction\nr1,0.1\nr1,0.2\nr3,0.3\n",
        "id,prediction\nr1,0.1\nr2,0.2\nr9,0.3\n",
        "row,prediction\nr1,0.1\nr2,0.2\nr3,0.3\n",
        "id,a,b\nr1,0,1\nr2,0,1\nr3,0,1\n",
        "id,prediction\n",
        "",
    ],
)
def test_ids_that_do_not_match_are_refused(text: str, tmp_path: Path) -> None:
    written(tmp_path / "sub.csv", text)
    with pytest.raises((InputError, DataError)) as refused:
        SubmissionFolder(tmp_path, IDS).read("sub.csv")
    assert "r9" not in str(refused.value)


def test_nothing_outside_the_folder_is_opened(tmp_path: Path) -> None:
    inside, text = tmp_path / "inside", "id,prediction\nr1,0.1\nr2,0.2\nr3,0.3\n"
    (inside / "deep").mkdir(parents=True)
    secret = written(tmp_path / "secret.csv", text)
    written(inside / "deep" / "fine.csv", text)
    (inside / "link.csv").symlink_to(secret)
    (inside / "folder").symlink_to(tmp_path)
    (inside / "hard.csv").symlink_to(inside / "deep" / "fine.csv")
    files = SubmissionFolder(inside, IDS)
    assert len(files.read("deep/fine.csv")) == 3
    for name in (
        "../secret.csv",
        str(secret),
        "link.csv",
        "folder/secret.csv",
        "deep/../../secret.csv",
        "hard.csv",
        "a\0b",
    ):
        with pytest.raises(InputError, match="declared folder"):
            files.read(name)
    for name in ("none.csv", "deep", ""):
        with pytest.raises((DataError, InputError)):
            files.read(name)
    with pytest.raises(InputError, match="ids"):
        written(inside / "x.txt", "1 2 3")
        files.read("x.txt")


def read_while_it_is_swapped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is read of a file that becomes a link to the labels after it was checked."""
    inside = folder / "inside"
    inside.mkdir()
    secret = written(folder / "labels.csv", "id,prediction\nr1,7\nr2,7\nr3,7\n")
    mine = written(inside / "sub.csv", "id,prediction\nr1,0.1\nr2,0.2\nr3,0.3\n")

    def late(path: Path, *rest: Any, **more: Any) -> Any:
        mine.unlink(missing_ok=True)
        mine.symlink_to(secret)
        return read_column(path, *rest, **more)

    monkeypatch.setattr(submission_file, "read_column", late)
    return SubmissionFolder(inside, IDS).read("sub.csv").tolist()


def test_a_file_that_becomes_a_link_meanwhile_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_while_it_is_swapped(tmp_path, monkeypatch) == [0.3, 0.1, 0.2]


def test_a_file_that_is_opened_again_by_its_name_would_be_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin checks the file, and then opens what has its name."""

    @contextmanager
    def checked(self: SubmissionFolder, name: str) -> Iterator[Path]:
        os.close(self._opened(name))
        yield self.folder / name

    monkeypatch.setattr(SubmissionFolder, "_copied", checked)
    assert read_while_it_is_swapped(tmp_path, monkeypatch) == [7, 7, 7]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError):
        SubmissionFolder(tmp_path, IDS).read("pipe.csv")
    written(tmp_path / "long.csv", "id,prediction\n" + "r1,0.1\n" * 9)
    monkeypatch.setattr(submission_file, "MOST_BYTES", 50)
    with pytest.raises(InputError, match="at most"):
        SubmissionFolder(tmp_path, IDS).read("long.csv")


def test_a_folder_and_ids_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        SubmissionFolder(tmp_path / "none")
    with pytest.raises(InputError, match="twice"):
        SubmissionFolder(tmp_path, np.array(["a", "a"]))
