"""The predictions of each team's best submission, kept so that the next ones can be compared with them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.predictions import Predictions


class KeptPredictions:
    """By team: the number of its best submission, and that one's predictions. No labels.

    Retention: one array a team, replaced by a better submission and removed by `forget`; in a folder that only its
    owner can read, or without one in the memory of this process. What is missing costs a comparison, no guarantee.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: dict[str, tuple[int, NDArray[Any]]] = {}

    def keep(self, team: str, submission: int, predictions: Predictions) -> None:
        """Keep an array in the place of the team's last; a function of row numbers is not kept."""
        if callable(predictions):
            return
        array = np.asarray(predictions)
        array = array.astype(np.str_) if array.dtype == np.object_ else array
        if self._folder is None:
            self._memory[team] = submission, array.copy()
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")  # only its owner can read it
        with os.fdopen(handle, "wb") as file:
            np.savez(file, submission=submission, predictions=array)
        os.replace(name, self._file(team))

    def find(self, team: str, submission: int) -> NDArray[Any] | None:
        """The predictions of this submission, if it is the one that is kept."""
        if self._folder is None:
            known, array = self._memory.get(team, (None, None))
            return array if known == submission else None
        try:
            with np.load(self._file(team), allow_pickle=False) as file:
                return file["predictions"] if int(file["submission"]) == submission else None
        except (OSError, ValueError, KeyError):
            return None

    def forget(self) -> None:
        """Remove all of them."""
        self._memory.clear()
        if self._folder is not None and self._folder.is_dir():
            for file in self._folder.glob("*.npz"):
                file.unlink()

    def _file(self, team: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{hashlib.sha256(team.encode()).hexdigest()[:32]}.npz"
