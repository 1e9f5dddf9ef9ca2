"""A door for tests: while it is open, the system's bits are bits that repeat themselves.

Nothing that comes out of it is private. Every charge to a session's ledger and every `Answer` that is made meanwhile
says "replayed"; what is used alone (mechanisms, counters, local reports) is charged to nobody and says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.noise.bits import Bits

_given: ContextVar[Bits | None] = ContextVar("replayed bits", default=None)


@contextmanager
def replayed(bits: Bits) -> Iterator[None]:
    """Draw from these bits instead of the system's, in this thread, until the end of the block.

    Refused where the environment says HOLDFAST_ENV=production.
    """
    if os.environ.get("HOLDFAST_ENV") == "production":
        raise InputError(
            "expected real randomness, got replayed bits while HOLDFAST_ENV=production; leave them out"
        )
    before = _given.set(bits)
    try:
        yield
    finally:
        _given.reset(before)


def given() -> Bits | None:
    """What to draw from instead of the system's bits; None but in tests."""
    return _given.get()


def replaying() -> bool:
    """Whether noise that is drawn now repeats itself."""
    return _given.get() is not None
