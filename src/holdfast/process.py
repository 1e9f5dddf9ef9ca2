"""Which process this is. A fork copies memory: noise, counts and locks that were one are two from then on."""

from __future__ import annotations

import os
from typing import NoReturn

from holdfast.errors import HoldfastError

_forks = 0


def current() -> tuple[int, int]:
    """The process that runs now: its id, and how many forks lie between it and the first one.

    Guarantee: no process has the value of its parent. The id alone would miss a grandchild that was given its
    grandparent's id, the count alone a fork that skips Python's hooks.
    """
    return os.getpid(), _forks


class Home:
    """The process in which `what` was opened: something with noise or a count that must not go on in a copy.

    Guarantee: `check` raises `error` in every process but that one, before anything is read, drawn or counted;
    it takes no lock, so that one which a thread held at the fork stops nobody. What holds a Home cannot be
    pickled or copied deeply either.
    Cost: one question to the operating system (getpid), a fraction of a microsecond.
    """

    __slots__ = ("_error", "_hint", "_process", "_what")

    def __init__(self, what: str, hint: str, error: type[HoldfastError]) -> None:
        self._what, self._hint, self._error = what, hint, error
        self._process = current()

    def check(self) -> None:
        """Refuse in any other process."""
        if self._process != (os.getpid(), _forks):
            raise self._error(
                f"expected {self._what} that was opened in this process, got its parent's; {self._hint}"
            )

    def __reduce__(self) -> NoReturn:
        raise self._error(f"expected {self._what} to stay in its process, got a copy of it; {self._hint}")


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)
