"""Who is ahead, as far as anyone can know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from holdfast.session.answer import Answer

_MARGIN = 1e-9
"""A difference must be above this to be certain: bounds are sums of a few floats."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A team's place. Teams that nobody can tell apart share a rank, so a rank is never an accident of noise."""

    rank: int
    team: str
    best: Answer
    submissions: int
    surely_behind: int
    """How many teams are better beyond doubt."""


def ranked(
    bests: Iterable[tuple[str, Answer, int]],
    *,
    greater_is_better: bool,
    differences: Mapping[tuple[str, str], Answer] | None = None,
) -> tuple[Standing, ...]:
    """Teams with their best answers and numbers of submissions, in order, with ranks.

    `differences` holds for some pairs of teams by how much the score of the first exceeds that of the second.
    Guarantee: whenever all intervals hold, two different ranks are in the right order. Teams share a rank if neither
    is surely better, and so do chains of such teams. Surely better: by the intervals of the scores, by that of a
    difference, or by adding such bounds up.
    Cost: cubic in the number of teams that were compared, in whole arrays.
    """
    sign = 1.0 if greater_is_better else -1.0
    order = sorted(bests, key=lambda entry: (-sign * entry[1].value, entry[0]))
    if not order:
        return ()
    lows, highs = np.array([sorted((sign * answer.low, sign * answer.high)) for _, answer, _ in order]).T
    lead = lows[:, None] - highs[None, :]  # by so much the first of two is better, at least
    number = {team: place for place, (team, _, _) in enumerate(order)}
    compared = set()
    for (first, second), answer in (differences or {}).items():
        i, j = number[first], number[second]
        low, high = sorted((sign * answer.low, sign * answer.high))
        lead[i, j], lead[j, i] = max(lead[i, j], low), max(lead[j, i], -high)
        compared |= {i, j}
    for between in compared:
        lead = np.maximum(lead, lead[:, between, None] + lead[None, between, :])
    better = lead > _MARGIN
    np.fill_diagonal(better, False)
    _, tied = connected_components(~(better | better.T), directed=False)
    table = []
    for i, (team, answer, submissions) in enumerate(order):
        ahead = int((better[:, i] & (tied != tied[i])).sum())
        table.append(Standing(1 + ahead, team, answer, submissions, int(better[:, i].sum())))
    return tuple(sorted(table, key=lambda standing: standing.rank))
