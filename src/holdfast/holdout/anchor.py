"""A small file beside a state file, which notices that an older copy was put back."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import LedgerError


class Anchor:
    """Remembers how many looks were charged and the head of their chain.

    Guarantee: it is advanced after each charge was committed and never goes back, so a state file with fewer
    looks than its anchor, or with others, is a copy from the past. A crash between the two leaves the anchor
    behind, which is harmless. Keep it on another disk than the state to notice a restored backup of both.
    """

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[int, str] | None:
        """(looks, head), or None while there is no anchor."""
        try:
            saved = json.loads(self.path.read_text())
            return int(saved["looks"]), str(saved["head"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError):
            raise LedgerError(
                f"expected an anchor in {self.path.name}, got something else; "
                "the looks it counted are unknown, so the holdout stays closed"
            ) from None

    def advance(self, looks: int, head: str) -> None:
        """Move forward to so many looks; a later anchor stands."""
        with locked(self.path.with_suffix(".anchor-lock")):
            standing = self.read()
            if standing is not None and standing[0] >= looks:
                return
            fresh = self.path.with_suffix(".anchor-new")
            with open(fresh, "w") as file:
                json.dump({"looks": looks, "head": head}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """An exclusive lock between processes and threads; the system lets go of it when a process dies."""
    import fcntl

    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
