"""What the games of a cell say together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evidence.cells import BETA, Cell
from holdfast.audit.binomial import least_proportion, proportion_interval


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the games, and simultaneous misses with their exact 95% interval."""

    cell: Cell
    runs: int
    width: float
    worst: float
    largest: float
    last: float
    last_error: float
    answered: float
    misses: int
    low: float
    high: float
    errors: tuple[float, ...]

    @staticmethod
    def of(cell: Cell, games: list[list[float]]) -> Summary:
        worst, last, width, answered = np.array(games, dtype=np.float64).T
        misses = int(np.count_nonzero(worst > width))
        low, high = proportion_interval(misses, len(games))
        silent = not answered.any()
        return Summary(
            cell,
            len(games),
            float(width[0]),
            math.nan if silent else float(worst.mean()),
            math.nan if silent else float(worst.max()),
            math.nan if silent else float(np.nanmean(last)),
            math.nan if silent else float(np.nanstd(last) / math.sqrt(len(games))),
            float(answered.mean()),
            misses,
            low,
            high,
            tuple(worst.tolist()),
        )

    @property
    def ratio(self) -> float:
        """Claimed width over the mean of the worst errors."""
        return self.width / self.worst

    def beyond(self, width: float) -> float:
        """The share of games whose worst error is above some width."""
        return sum(error > width for error in self.errors) / self.runs

    @property
    def refuted(self) -> bool:
        """Whether the claimed confidence is surely wrong: one false alarm in a million."""
        return float(least_proportion(self.misses, self.runs, 1e-6)) > BETA


def verdicts(coverage: list[Summary]) -> list[str]:
    """What is not as it should be: naive answers that hold, or others that do not."""
    problems = []
    for summary in coverage:
        place = f"{summary.cell.answerer} against {summary.cell.attack}"
        if summary.cell.answerer == "naive" and not summary.refuted and summary.runs >= 100:
            problems.append(f"{place}: naive answers should fail, {summary.misses} of {summary.runs} did")
        if summary.cell.answerer != "naive" and summary.refuted:
            problems.append(f"{place}: {summary.misses} misses in {summary.runs} runs")
    return problems
