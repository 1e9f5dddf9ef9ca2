"""Simulated populations in which the right answers are known exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.overfitting.chance import Generator


def coins(rows: int, columns: int, generator: Generator) -> NDArray[np.bool_]:
    """Independent fair coins.

    Seen from a leaderboard, column 0 is the hidden label and column j tells whether submission j is right:
    for a random label these are independent, so every question below has probability 1/2.
    """
    width = -(-columns // 8)
    packed = generator.integers(0, 256, size=(rows, width), dtype=np.uint8)
    return np.unpackbits(packed, axis=1, count=columns).view(np.bool_)


def coins_for_queries(rows: int, queries: int, generator: Generator) -> NDArray[np.bool_]:
    """One label and one coin for each query."""
    return coins(rows, queries + 1, generator)


def labelled_cells(rows: int, queries: int, generator: Generator) -> NDArray[np.int64]:
    """(cell, label): one of `queries` equally likely cells, and a fair coin that is independent of it."""
    cell = generator.integers(0, queries, size=rows)
    return np.stack([cell, generator.integers(0, 2, size=rows)], axis=1)


IDENTITIES = 4
"""The population of `identities` has this many individuals for each row of the sample."""


def identities(rows: int, queries: int, generator: Generator) -> NDArray[np.int64]:
    """Who was drawn: uniform over 4n individuals."""
    return generator.integers(0, IDENTITIES * rows, size=rows)


def few_identities(rows: int, queries: int, generator: Generator) -> NDArray[np.int64]:
    """Who was drawn: uniform over queries-1 individuals, so that each can be asked about once."""
    return generator.integers(0, max(1, queries - 1), size=rows)
