"""One mechanism, two neighbours, one claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

DELTA = 0.01
"""Where a claim is approximate: large, so that a few thousand runs can tell."""

Many = Callable[[Any, int], Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """What an audit needs.

    `many(input, runs)` runs the mechanism; `first` and `second` are neighbours which are as bad as possible;
    `epsilon` and `delta` are what is claimed. `origin` is "holdfast", the name of a peer, or "control" for a
    mechanism that is broken on purpose and must be caught.
    """

    name: str
    many: Many
    first: Any
    second: Any
    epsilon: float
    delta: float = 0.0
    runs: int = 100_000
    origin: str = "holdfast"


def one_by_one(mechanism: Callable[[Any], Any]) -> Many:
    """`many` for a mechanism that says one thing at a time."""
    return lambda value, runs: [mechanism(value) for _ in range(runs)]
