"""Who is ahead, as far as anyone can know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.session.answer import Answer


@dataclass(frozen=True, slots=True)
class Standing:
    """A team's place. Teams whose intervals overlap share a rank, so a rank is never an accident of noise."""

    rank: int
    team: str
    best: Answer
    submissions: int
    surely_behind: int
    """How many teams are better beyond doubt: their interval lies wholly on the better side."""


def ranked(bests: Iterable[tuple[str, Answer, int]], *, greater_is_better: bool) -> tuple[Standing, ...]:
    """Teams with their best answers and numbers of submissions, in order, with ranks.

    Guarantee: overlapping intervals give the same rank, and so do chains of them; then two different ranks
    are in the right order whenever all intervals hold.
    """
    sign = 1.0 if greater_is_better else -1.0

    def ends(answer: Answer) -> tuple[float, float]:
        low, high = sorted((sign * answer.low, sign * answer.high))
        return low, high

    order = sorted(bests, key=lambda entry: (-sign * entry[1].value, entry[0]))
    lows = [ends(answer)[0] for _, answer, _ in order]
    # A chain ends before the first team whose interval lies below those of all teams ahead of it.
    by_high = sorted(range(len(order)), key=lambda i: -ends(order[i][1])[1])
    ranks = [0] * len(order)
    rank, floor = 0, float("inf")
    for place, i in enumerate(by_high, 1):
        low, high = ends(order[i][1])
        if high < floor or not rank:
            rank = place
        floor = min(floor, low) if rank != place else low
        ranks[i] = rank
    table = []
    for i, (team, answer, submissions) in enumerate(order):
        behind = sum(low > ends(answer)[1] for low in lows)
        table.append(Standing(ranks[i], team, answer, submissions, behind))
    return tuple(sorted(table, key=lambda standing: standing.rank))
