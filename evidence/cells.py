"""What is played, how often, and the games themselves."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.audit.overfitting import ANSWERERS, ATTACKS, Answerer, play
from holdfast.audit.overfitting.holdouts import thresholdout_with
from holdfast.noise.bits import Bits, ReplayedBits
from holdfast.validity.gaussian_answers import gaussian_noise
from holdfast.validity.search import most

BETA = 0.05
CHUNK = 25

SIZES = {
    "boosting": (4000, 400),
    "hill-climbing": (1000, 500),
    "single-adaptive": (2000, 500),
    "quadratic-adaptive": (2000, 500),
    "feature-selection": (2000, 1003),
    "trained-selection": (1000, 1003),
    "fingerprinting": (1000, 1000),
    "repeating": (2000, 1001),
    "membership": (3000, 6001),
}
"""Rows and queries for each attack: few enough for a thousand games, enough to break naive answers."""

BREAKING_ROWS = 10_000
BREAKING_ALPHA = 0.1
BREAKING_QUERIES = (50, 100, 200, 400, 628, 900, 1300, 2000)
EQUAL_ROWS = 20_000
EQUAL_ALPHA = 0.25


@dataclass(frozen=True, slots=True)
class Cell:
    """Some games of one kind."""

    experiment: str
    attack: str
    answerer: str
    rows: int
    queries: int
    runs: int

    @property
    def key(self) -> str:
        """A name for files and seeds; the number of runs is no part of it."""
        return f"{self.experiment}.{self.attack}.{self.answerer}.{self.rows}.{self.queries}"


@dataclass(frozen=True, slots=True)
class Job:
    """A chunk of a cell: games first..first+count-1."""

    cell: Cell
    first: int
    count: int

    @property
    def key(self) -> str:
        return f"{self.cell.key}.{self.first}-{self.first + self.count}"


def cells(scale: float = 1.0) -> list[Cell]:
    """All cells, with `scale` times the full number of runs."""

    def runs(full: int) -> int:
        return max(2, round(scale * full))

    everything = [
        Cell("coverage", attack, answerer, *SIZES[attack], runs(1000))
        for attack in ATTACKS
        for answerer in ANSWERERS
    ]
    everything += [
        Cell("breaking", "single-adaptive", answerer, BREAKING_ROWS, queries, runs(100))
        for answerer in ("naive", "gaussian", "votes")
        for queries in BREAKING_QUERIES
    ]
    everything += [
        Cell("equal", "single-adaptive", answerer, EQUAL_ROWS, equal_queries(), runs(100))
        for answerer in ("naive", "gaussian")
    ]
    everything += [Cell("published", "boosting", "naive", 4000, queries, runs(100)) for queries in (100, 400)]
    everything += [Cell("published", "single-adaptive", "naive", 2000, 200, runs(100))]
    everything += [
        Cell("published", "trained-selection", answerer, 3000, 3003, runs(20))
        for answerer in ("naive", "paper-thresholdout")
    ]
    return everything


def equal_queries() -> int:
    """How many queries the Gaussian answers certify at EQUAL_ALPHA with EQUAL_ROWS rows."""
    return most(lambda k: gaussian_noise(EQUAL_ROWS, k, BETA)[0] <= EQUAL_ALPHA)


def jobs(wanted: list[Cell]) -> list[Job]:
    """Chunks of every cell; the first chunks of all cells come first, so that a broken run shows early."""
    chunks = [
        Job(cell, first, min(CHUNK, cell.runs - first))
        for cell in wanted
        for first in range(0, cell.runs, CHUNK)
    ]
    return sorted(chunks, key=lambda job: job.first)


def run(job: Job) -> list[list[float]]:
    """The games of a job: worst error, last error, claimed width, answers given. Seeded by the job's cell."""
    cell, seed = job.cell, zlib.crc32(job.cell.key.encode())
    maker = paper_thresholdout if cell.answerer == "paper-thresholdout" else ANSWERERS[cell.answerer]
    games = []
    for number in range(job.first, job.first + job.count):
        outcome = play(
            ATTACKS[cell.attack],
            maker,
            rows=cell.rows,
            queries=cell.queries,
            generator=np.random.default_rng([seed, number]),  # noqa: TID251  (simulated worlds)
            beta=BETA,
            bits=ReplayedBits(seed * 10**6 + number),
        )
        games.append([outcome.worst, outcome.last, outcome.width, float(outcome.answered)])
    return games


def paper_thresholdout(rows: int, queries: int, beta: float, bits: Bits | None) -> Answerer:
    """Thresholdout as in the paper's experiment: threshold 4/sqrt(n), tolerance 1/sqrt(n), for correlations.

    Its noise scale is a quarter of the tolerance; on [0,1] all three are halved. Nothing is certified.
    """
    root = math.sqrt(rows)
    return thresholdout_with(rows, round(2 * root), Fraction(round(root / 8)), 10**9, math.inf, bits)
