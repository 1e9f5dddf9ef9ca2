"""Finished jobs, kept so that an interrupted run can go on."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from pathlib import Path

from evidence.cells import Job

_ROOMS = ("audit/overfitting", "validity", "mechanisms", "noise")


class Cache:
    """One JSON file for each job, in a folder named after the code that made it."""

    def __init__(self, folder: Path, source: Path) -> None:
        self._folder = folder / fingerprint(source)
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, job: Job) -> list[list[float]] | None:
        """The games of a job, or None if it was not finished."""
        path = self._folder / f"{job.key}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def put(self, job: Job, games: list[list[float]]) -> None:
        """Keep the games; a crash leaves the old state or the new one."""
        path = self._folder / f"{job.key}.json"
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(games))
        draft.replace(path)


def fingerprint(source: Path) -> str:
    """A digest of the code that decides the games; comments and docstrings do not count."""
    digest = hashlib.sha256()
    for room in _ROOMS:
        for path in sorted((source / room).glob("*.py")):
            tree = ast.parse(path.read_text())
            for node in ast.walk(tree):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    node.value = ast.Constant(None)
            digest.update(path.name.encode() + ast.dump(tree).encode())
    return digest.hexdigest()[:16]
