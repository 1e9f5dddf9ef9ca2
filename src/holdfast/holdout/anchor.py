"""A small file beside a state file, which notices that an older copy was put back."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.errors import LedgerError
from holdfast.ledger.anchor import flocked


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a state file has come: looks charged, answers settled, and the heads of their two chains."""

    looks: int = 0
    head: str = ""
    answers: int = 0
    answers_head: str = ""


class Anchor:
    """Remembers the last mark of a state file.

    Guarantee: it is advanced after each charge and each answer was committed, before the answer is returned,
    and never goes back; so a state file without the anchor's looks and answers is a copy from the past.
    A crash between commit and anchor leaves the anchor behind: nothing was returned then, and the next to
    open or charge the state brings it up first. Keep it on another disk than the state to notice a restored
    backup of both.
    """

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mark | None:
        """The last mark, or None while there is no anchor."""
        try:
            saved = json.loads(self.path.read_text())
            return Mark(
                int(saved["looks"]), str(saved["head"]), int(saved["answers"]), str(saved["answers_head"])
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError):
            raise LedgerError(
                f"expected an anchor in {self.path.name}, got something else; "
                "the looks it counted are unknown, so the holdout stays closed"
            ) from None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else moves the anchor meanwhile."""
        with locked(self.path.with_suffix(".anchor-lock")):
            yield

    def advance(self, mark: Mark) -> None:
        """Move forward to a mark; looks and answers each stay where they are further. Call it while `held`.

        On disk when it returns, its name in the folder included.
        """
        standing = self.read()
        if standing is not None:
            looks, answers = max(mark, standing, key=_looks), max(mark, standing, key=_answers)
            mark = Mark(looks.looks, looks.head, answers.answers, answers.answers_head)
            if mark == standing:
                return
        fresh = self.path.with_suffix(".anchor-new")
        with open(fresh, "w") as file:
            json.dump(asdict(mark), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _looks(mark: Mark) -> int:
    return mark.looks


def _answers(mark: Mark) -> int:
    return mark.answers


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """An exclusive lock between processes and threads; the system lets go of it when a process dies."""
    with open(path, "a") as file, flocked(file.fileno()):
        yield
