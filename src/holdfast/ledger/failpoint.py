"""Places where a test may kill the process.

HOLDFAST_FAILPOINT="after commit" dies there, by SIGKILL, when it is first reached; "after commit:3" the third
time. Unset, nothing happens.
"""

from __future__ import annotations

import os
import signal

PLACES = (
    "before reserve",
    "inside the transaction",
    "after commit",
    "after anchor",
    "after reserve",
    "after draw",
    "after record",
)
"""All of them, in the order of an answer's way; the second to fourth are passed by reserve and by record."""

_name, _left = "", 0


def arm(text: str) -> None:
    """Die at the place that is named."""
    global _name, _left
    _name, _, times = text.partition(":")
    _left = int(times or 1)


def reached(name: str) -> None:
    """The process is at this place."""
    global _left
    if _name == name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("HOLDFAST_FAILPOINT", ""))
