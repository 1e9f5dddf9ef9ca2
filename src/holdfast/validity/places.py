"""What a session fixes when it is opened: the noise of its places, and the rows that the theorem leaves out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from holdfast.privacy.rounding import round_up, up
from holdfast.validity.falling import Schedule
from holdfast.validity.leave_out import LeaveOut, planned_place, recorded_grid
from holdfast.validity.leave_out_logistic import TELLS_LIKE, logistic_half_width, logistic_told
from holdfast.validity.leave_out_votes import votes_as_noisy, votes_half_width
from holdfast.validity.option import Epoch
from holdfast.validity.told import gaussian_told, rare_told, votes_told

_WHOLE_UNITS = 1 + 1e-6
"""What a ledger counts is rounded up, which widens the widths a little."""
_MORE_VOTES = (1.0, 1.01, 1.02, 1.04, 1.08)
"""How many more votes than Gaussian noise of the same size asks for are tried."""
_FLIPS = tuple(Fraction(1, 2**power) for power in range(8, 1, -1))
"""How often a vote may be flipped: rarer flips read fewer rows, cost more privacy, and want more rows in the table."""
_LITTLE_MORE = 1.05
"""Votes that tell so much more than Gaussian noise of their size are as good."""


@lru_cache(maxsize=64)
def sensible_flips(rows: int) -> tuple[Fraction, ...]:
    """The flips with which votes on so many rows tell about what Gaussian noise of their size tells, the rarest first;
    at least one, if the theorem covers any."""
    told = {flip: votes_told(rows, 1, float(flip)) / (2 * (1 - 2 * float(flip))) ** 2 for flip in _FLIPS}
    most = max(_LITTLE_MORE, min(told.values()))
    return tuple(flip for flip, much in told.items() if much <= most and math.isfinite(much))


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a session's answers, in order.

    Guarantee: with probability 1 - beta every answer of the session is within its half-width of the population, for
    every adaptive analyst; `width` is the half-width of each answer that is asked for plainly, while nobody else is
    told anything on the same rows, nor a quantile here, which tells more than its place.
    Requires: made before the session's first answer, and kept. Unless `mixed`, made before the table's first answer:
    the rows to leave out are then fixed by place. Otherwise the mixture over the recorded grid holds.
    Reference: docs/theorems.md, Theorem 31.
    """

    rows: int
    mechanism: str = "gaussian"
    flip: Fraction = Fraction(1, 16)
    epochs: tuple[Epoch, ...] = ()
    """The noise of plain answers, one number each, on the scale of a mean in [0,1]: a variance in squared rows, a scale
    in rows (logistic), or a number of votes. Empty: every answer says for itself how exact it is to be."""
    mixed: bool = True
    begun: float = 0.0
    """What was told of these rows when it was planned."""
    width: float = math.inf
    rare: tuple[tuple[int, ...], ...] = ()
    """Where answers are read as rare events: for each epoch the numbers of rows to leave out. What each answer tells is
    then read off it, and `width` is the most that an end of an interval can be away from its answer, after answers that
    were all of one half."""

    @property
    def by_votes(self) -> bool:
        """Whether the theorem covers votes on so many rows."""
        return math.isfinite(votes_told(self.rows, 1, float(self.flip)))

    def epoch_of(self, place: int) -> tuple[Epoch, int]:
        """The epoch that holds a place, and the last place of that epoch."""
        last = 0
        for epoch in self.epochs:
            last += epoch.answers
            if place <= last:
                return epoch, last
        raise IndexError(place)

    def left_out(self, place: int) -> LeaveOut:
        """What the theorem leaves out for the answer in this place, however it is read (Theorem 91)."""
        if self.mixed:
            return recorded_grid(self.rows)
        if not self.rare:
            return planned_place(self.rows, self.epoch_of(place)[0].left_out)
        last = 0
        for epoch, sizes in zip(self.epochs, self.rare, strict=True):
            last += epoch.answers
            if place <= last:
                return planned_place(self.rows, *sizes)
        raise IndexError(place)

    def tells(self, epoch: Epoch) -> float:
        """What one plain answer of an epoch tells."""
        if self.mechanism == "votes":
            return votes_told(self.rows, int(epoch.noise), float(self.flip))
        if self.mechanism == "logistic":
            return logistic_told(0.25, float(epoch.noise) / self.rows)
        if self.rare:
            return rare_told(self.rows, math.sqrt(epoch.noise) / self.rows, 0.5)
        return gaussian_told(0.25, math.sqrt(epoch.noise) / self.rows)

    def told_before(self, place: int) -> float:
        """What plain answers alone have told before this place."""
        told, left = self.begun, place - 1
        for epoch in self.epochs:
            count = min(left, epoch.answers)
            told += count * self.tells(epoch)
            left -= count
        return up(told)

    @property
    def told_by_itself(self) -> float:
        """What all plain answers of the plan tell."""
        return up(math.fsum(epoch.answers * self.tells(epoch) for epoch in self.epochs))

    def half_width(self, epoch: Epoch, left_out: LeaveOut, told: float, beta: float) -> float:
        """The half-width of a plain answer of this epoch after so much was told."""
        charged = left_out.charges(told)
        if self.mechanism == "votes":
            return votes_half_width(left_out, charged, int(epoch.noise), float(self.flip), beta)
        if self.mechanism == "logistic":
            scale = float(epoch.noise) / self.rows
            return logistic_half_width(left_out, charged, scale, beta, 1 / self.rows)
        sigma = math.sqrt(epoch.noise) / self.rows
        return left_out.half_width(charged, sigma, beta, 1 / self.rows)

    def widest(self, beta: float) -> float:
        """The half-width of the widest plain answer: within an epoch the last is."""
        answers, last, widest = sum(epoch.answers for epoch in self.epochs), 0, 0.0
        for epoch in self.epochs:
            last += epoch.answers
            told = self.told_before(last)
            if math.isinf(told):
                return math.inf
            widest = max(widest, self.half_width(epoch, self.left_out(last), told, beta / answers))
        return widest * _WHOLE_UNITS

    def to_json(self) -> list[object]:
        """What a ledger keeps of it."""
        epochs = [[epoch.answers, str(epoch.noise), epoch.left_out] for epoch in self.epochs]
        numbers = [self.mechanism, str(self.flip), epochs, self.mixed, self.begun, min(self.width, 1e300)]
        return [*numbers, [list(sizes) for sizes in self.rare]]


def places_from_json(rows: int, kept: list[Any]) -> Places:
    """What `Places.to_json` wrote of a session on so many rows."""
    mechanism, flip, epochs, mixed, begun, width, rare = kept
    made = tuple(Epoch(answers, Fraction(noise), left_out) for answers, noise, left_out in epochs)
    sizes = tuple(tuple(each) for each in rare)
    return Places(rows, mechanism, Fraction(flip), made, mixed, begun, width, sizes)


def by_gaussian(schedule: Schedule) -> Places:
    """The places of a schedule, answered with its noise."""
    made = Places(schedule.rows, epochs=schedule.epochs, mixed=schedule.mixed, begun=schedule.begun)
    return replace(made, width=made.widest(schedule.beta))


def by_logistic(schedule: Schedule) -> Places:
    """The places of a schedule of logistic noise, answered with it: a scale for the variance that tells as much."""
    epochs = tuple(
        replace(epoch, noise=round_up(Fraction(math.sqrt(epoch.noise) / TELLS_LIKE)))
        for epoch in schedule.epochs
    )
    made = Places(schedule.rows, "logistic", epochs=epochs, mixed=schedule.mixed, begun=schedule.begun)
    return replace(made, width=made.widest(schedule.beta))


def by_votes(schedule: Schedule, flip: Fraction) -> Places:
    """The places of a schedule, answered by votes that are as noisy together; a few more where that is narrower."""
    found = []
    for more in _MORE_VOTES:
        epochs = tuple(
            replace(
                epoch, noise=Fraction(math.ceil(more * votes_as_noisy(schedule.sigma(epoch), float(flip))))
            )
            for epoch in schedule.epochs
        )
        made = Places(schedule.rows, "votes", flip, epochs, schedule.mixed, schedule.begun)
        found.append((made.widest(schedule.beta), made))
    width, best = min(found, key=lambda pair: pair[0])
    return replace(best, width=width)
