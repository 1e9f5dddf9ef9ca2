"""How much two tapes differ: the privacy loss of what a release did, recomputed from what its doors were shown.

One theorem for each door, none of them taken from `holdfast.privacy`; losses along one path add up. In three notions:
pure (epsilon), zcdp (rho), gdp (mu squared). Where a door has no loss in a notion the number is infinite.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from oracles.selection_laws import permute_and_flip_law, worst_log_ratio
from oracles.sparse_vector_law import Logistic, Noise, Tabled, laplace, probability
from oracles.tape import LawBroken, Step, Tape

_LONGEST = 1000
"""Scales up to which the law of a sparse vector is summed over the integers; beyond, it is an integral."""
_ORDERS = 1 + np.geomspace(1e-4, 1e4, 500)


@dataclass(frozen=True)
class Loss:
    """One door's part."""

    pure: float
    zcdp: float
    gdp: float = math.inf


@dataclass(frozen=True)
class Played:
    """A release on one table: its tape, and the tape on which one row is fetched wherever rows are drawn."""

    rows: Sequence[Any]
    tape: Tape
    only: Callable[[int], Tape]

    def each_row(self, place: int) -> list[Step]:
        """What the door at a place is shown, for every row."""
        return [self.only(self.rows.index(row)).steps[place] for row in self.rows]


def observed(first: Played, second: Played, notion: str) -> float:
    """The loss between two tables of one path through a release's doors."""
    return math.fsum(getattr(loss, notion) for loss in _losses(first, second))


def _losses(first: Played, second: Played) -> Iterator[Loss]:
    steps = list(zip(first.tape.steps, second.tape.steps, strict=True))
    place = 0
    while place < len(steps):
        here, there = steps[place]
        following = [pair for pair in steps[place + 1 :] if pair[0].door != "coin"]
        if here.door == "rows":
            end, losses = _sampled(first, second, place)
            yield from losses
            place = end
            continue
        if here.door == "threshold":
            asked = []
            for pair in following:
                if pair[0].door == "threshold":
                    break
                asked += [pair] if pair[0].door == "above" else []
            yield _sparse(here.public, asked)
        elif here.door in _ALONE:
            yield _ALONE[here.door](here, there)
        elif here.door not in ("coin", "above"):
            raise LawBroken(f"{here.door} without what has to come before it")
        place += 1


def from_pure(epsilon: float) -> Loss:
    """epsilon-DP is epsilon tanh(epsilon/2)-zCDP; its loss lies between -epsilon and epsilon."""
    return Loss(epsilon, epsilon * math.tanh(epsilon / 2), ranged(2 * epsilon))


def ranged(spread: float) -> float:
    """mu squared of a loss that lies in an interval so long: both ends equally likely, where mu is spread/2 slopes."""
    return math.pi / 2 * (spread / 2) ** 2


def _laplace(here: Step, there: Step) -> Loss:
    """The sum of all moves, over the scale."""
    moved = sum(abs(int(a) - int(b)) for a, b in zip(here.secret.flat, there.secret.flat, strict=True))
    return from_pure(float(moved / here.public[0]))


def _gaussian(here: Step, there: Step) -> Loss:
    """The sum of all squared moves, over twice the variance; over the variance less 4 for mu squared."""
    moved = sum((int(a) - int(b)) ** 2 for a, b in zip(here.secret.flat, there.secret.flat, strict=True))
    variance = here.public[0]
    if not moved:
        return Loss(0.0, 0.0, 0.0)
    return Loss(
        math.inf, float(moved / (2 * variance)), float(moved / (variance - 4)) if variance > 4 else math.inf
    )


def _logistic_sum(here: Step, there: Step) -> Loss:
    """The sum of all moves over the scale; in zCDP their squares over four times its square, if that is less."""
    moves = [abs(int(a) - int(b)) for a, b in zip(here.secret.flat, there.secret.flat, strict=True)]
    scale = here.public[0]
    found = from_pure(float(sum(moves) / scale))
    return Loss(
        found.pure, min(found.zcdp, float(sum(move**2 for move in moves) / (4 * scale**2))), found.gdp
    )


def _choice(here: Step, there: Step) -> Loss:
    """Proportional to exp(rate*score): the range of ln(p/q) is rate times the range of the moves; range^2/8 in zCDP."""
    moves = here.secret - there.secret
    spread = float(here.public[1] * int(moves.max() - moves.min()))
    return Loss(spread, min(spread**2 / 8, from_pure(spread).zcdp), ranged(spread))


def _permute_and_flip(here: Step, there: Step) -> Loss:
    """Both laws, summed over all sets of accepted candidates."""
    return from_pure(_flipped(tuple(here.secret.tolist()), tuple(there.secret.tolist()), here.public[1]))


@cache
def _flipped(here: tuple[int, ...], there: tuple[int, ...], rate: Fraction) -> float:
    return float(worst_log_ratio(permute_and_flip_law(here, rate), permute_and_flip_law(there, rate)))


def _logistic(here: Step, there: Step) -> Loss:
    """One bit whose chances are 1/(1 + exp(-distance/scale)): bounded range, so at most its square over 8."""
    p, q = (1 / (1 + math.exp(-float(step.secret / here.public[0]))) for step in (here, there))
    return _coin(p, q)


def _smoothed(here: Step, there: Step) -> Loss:
    """As `_choice`, of weights 1/(1 + e^x + e^y)."""
    logs = []
    for step in (here, there):
        x, y = (float(step.public[1]) * part.astype(float) for part in step.secret)
        logs.append(-np.logaddexp(0.0, np.logaddexp(x, y)))
    moves = logs[0] - logs[1]
    spread = float(moves.max() - moves.min())
    return Loss(spread, min(spread**2 / 8, from_pure(spread).zcdp), ranged(spread))


_ALONE = {
    "logistic": _logistic,
    "logistic-sum": _logistic_sum,
    "smoothed": _smoothed,
    "laplace": _laplace,
    "gaussian": _gaussian,
    "choice": _choice,
    "permute-and-flip": _permute_and_flip,
}


def _sampled(first: Played, second: Played, place: int) -> tuple[int, list[Loss]]:
    """Drawn rows and what was made of them; also where that ends."""
    law, count, _ = first.tape.steps[place].public
    after = first.tape.steps[place + 1].door
    if after == "laplace":
        sums = [_sum_law(played, place + 1, law, count) for played in (first, second)]
        return place + 2, [_mixture(*sums, first.tape.steps[place + 1].public[0])]
    if after != "votes" or law != "with":
        raise LawBroken(f"there is no law for {after} on rows drawn {law} replacement")
    end, voted = place + 1, 0
    while voted < count:
        voted += first.tape.steps[end].public[0]
        end += 1
    if voted != count:
        raise LawBroken(f"{count} rows were drawn for {voted} votes")
    chances = [_vote_chances(played, place, range(place + 1, end)) for played in (first, second)]
    pairs = Counter(zip(*chances, strict=True))
    return end, [_times(_coin(float(p), float(q)), times) for (p, q), times in pairs.items()]


def _vote_chances(played: Played, drawn: int, places: range) -> list[Fraction]:
    """The chance of a one, for each vote: the mean over all rows of what they would vote."""
    chances: list[Fraction] = []
    ids = played.tape.steps[drawn].said.tolist()
    for place in places:
        count, flip, levels = played.tape.steps[place].public
        shown, by_row = played.tape.steps[place].secret, [step.secret for step in played.each_row(place)]
        for i in range(count):
            if int(shown[i]) != int(by_row[ids[len(chances)]][i]):
                raise LawBroken("a vote does not come from its own row")
            mean = Fraction(sum(int(values[i]) for values in by_row), len(by_row) * levels)
            if not 0 <= mean <= 1:
                raise LawBroken("a vote's chance is outside of 0..1")
            chances.append(flip + (1 - 2 * flip) * mean)
    return chances


def _times(loss: Loss, times: int) -> Loss:
    return Loss(loss.pure * times, loss.zcdp * times, loss.gdp * times)


@cache
def _coin(p: float, q: float) -> Loss:
    """One bit: the worst ratio, and the worst Rényi divergence for its order, both ways."""
    if p == q:
        return Loss(0.0, 0.0, 0.0)
    logs = np.log([[p, 1 - p], [q, 1 - q]])
    worst = float(np.abs(logs[0] - logs[1]).max())
    rho = 0.0
    for mine, other in (logs, logs[::-1]):
        exponents = _ORDERS[:, None] * mine + (1 - _ORDERS[:, None]) * other
        divergences = np.logaddexp(exponents[:, 0], exponents[:, 1]) / (_ORDERS - 1)
        rho = max(rho, float((divergences / _ORDERS).max()))
    return Loss(worst, rho, ranged(float(np.ptp(logs[0] - logs[1]))))


def _sum_law(played: Played, place: int, law: str, count: int) -> dict[int, float]:
    """The law of the sum of the drawn rows' contributions, which only one row fetched alone can show."""
    shown = played.tape.steps[place].secret
    if shown.shape != (1,):
        raise LawBroken("there is no law for several sums over drawn rows")
    alone = [Fraction(int(step.secret[0]), count) for step in played.each_row(place)]
    ids = played.tape.steps[place - 1].said.tolist()
    if any(one.denominator != 1 for one in alone) or sum(alone[i] for i in ids) != int(shown[0]):
        raise LawBroken("what was made of the drawn rows is not the sum of their contributions")
    values = tuple(sorted(int(one) for one in alone))
    return _without(values, count) if law == "without" else _with(values, count)


@cache
def _without(values: tuple[int, ...], count: int) -> dict[int, float]:
    """Every subset equally likely: ways[k, s] of k rows with sum s."""
    ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    for value in values:
        for (k, s), n in list(ways.items()):
            if k < count:
                ways[k + 1, s + value] += n
    total = math.comb(len(values), count)
    return {s: n / total for (k, s), n in ways.items() if k == count}


@cache
def _with(values: tuple[int, ...], count: int) -> dict[int, float]:
    """Independent draws."""
    law = {0: 1.0}
    for _ in range(count):
        following: Counter[int] = Counter()
        for s, mass in law.items():
            for value in values:
                following[s + value] += mass / len(values)  # type: ignore[assignment]
        law = dict(following)
    return law


def _mixture(here: dict[int, float], there: dict[int, float], scale: Fraction) -> Loss:
    """A sum of known law plus Laplace noise.

    Between two sums both chances are A u + B/u with u = exp(output/scale), so that their ratio is monotone there, and
    beyond all sums it is constant: the worst output is one of the sums.
    """
    outputs = np.array(sorted({*here, *there}))
    laws = [
        sum(mass * np.exp(-abs(outputs - s) / float(scale)) for s, mass in law.items())
        for law in (here, there)
    ]
    return from_pure(float(np.abs(np.log(laws[0]) - np.log(laws[1])).max()))


def _sparse(threshold: tuple[Any, ...], asked: list[tuple[Step, Step]]) -> Loss:
    """One noisy threshold and every comparison with it: the exact chance of these outcomes on both tables."""
    if not asked:
        return Loss(0.0, 0.0, 0.0)
    laws = [threshold, *(here.public[0] for here, _ in asked)]
    kinds = [[kind for kind, _ in law] for law in laws]
    known = kinds[0] == ["laplace"] and kinds[1:] in (
        [[kind]] * len(asked) for kind in ("laplace", "logistic")
    )
    if not known or len({law[0] for law in laws[1:]}) != 1:
        raise LawBroken(
            "a sparse vector without Laplace noise on its threshold, or Laplace or logistic on each of its questions"
        )
    outcome = tuple(here.said for here, _ in asked)
    level, rho, nu = asked[0][0].public[1], laws[0][0][1], laws[1][0]
    chance = _summed if max(rho, nu[1]) <= _LONGEST else _integrated
    first, second = (
        chance(outcome, tuple(pair[side].secret - level for pair in asked), rho, nu) for side in (0, 1)
    )
    return from_pure(abs(math.log(first) - math.log(second)))


Law = tuple[str, Fraction]


@cache
def _summed(outcome: tuple[bool, ...], gaps: tuple[int, ...], rho: Fraction, nu: Law) -> float:
    noise: Noise = Logistic(nu[1]) if nu[0] == "logistic" else _tabled(nu[1])
    return probability(outcome, gaps, 0, _tabled(rho), noise, redraw=False)


@cache
def _tabled(scale: Fraction) -> Tabled:
    return laplace(scale)


@cache
def _integrated(outcome: tuple[bool, ...], gaps: tuple[int, ...], rho: Fraction, nu: Law) -> float:
    """As `_summed` with continuous noise, which for such scales is the same to a part in a thousand at most.

    Between the gaps every factor is smooth, so that sixteen nodes to a stretch of one scale are exact to the float.
    """
    r, v = float(rho), float(nu[1])
    ends = np.unique(np.concatenate([np.array(gaps, dtype=float), [0.0], np.arange(-40, 41) * min(r, v)]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends)[:, None] / 2
    t = ends[:-1, None] + half * (nodes + 1)
    density = np.exp(-np.abs(t) / r) / (2 * r)
    for answer, gap in zip(outcome, gaps, strict=True):
        small = np.exp(-np.abs(t - gap) / v)
        tail = small / (1 + small) if nu[0] == "logistic" else 0.5 * small
        # The noise reaches t - gap, or stays below; whichever is small is not taken from 1.
        density = density * np.where((t >= gap) == answer, tail, 1 - tail)
    return float((density * weights * half).sum())
