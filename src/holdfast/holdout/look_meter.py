"""How much the answers of a holdout have told, and which place of the plan comes next.

What a release charges is known for each number m of rows that the plan leaves out: the meter holds a sum for each epoch
of the plan. The next look takes the first free place before which the plan has told at least that much. A place is
taken once: its noise, its number of rows and its chance of a miss are what was fixed for it before the first look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.errors import InputError
from holdfast.holdout.design import DIFFERENCE_NOISE, DISAGREEMENT_NOISE, FLIP, ROUNDED, Design, score_rho
from holdfast.holdout.metric import GRID
from holdfast.privacy.rounding import down, miss, up
from holdfast.validity.leave_out import LeaveOut
from holdfast.validity.leave_out_charges import gaussian_charge
from holdfast.validity.leave_out_intervals import difference_charge, moments_half_width
from holdfast.validity.leave_out_votes import vote_charge, votes_half_width
from holdfast.validity.option import Epoch

Charges = tuple[float, ...]
"""What was charged at each epoch's number of rows left out."""


@dataclass(frozen=True, slots=True)
class Means:
    """Means of the plan's own kind, told together: how many scalars they are worth, and their epoch."""

    scalars: float
    epoch: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two scores with noise, of models that differ on a known share of the rows at most."""

    disagreement: float
    sigma: float


@dataclass(frozen=True, slots=True)
class Pair:
    """The disagreement with noise, as it was told, then the difference with noise; `guess` is from before both."""

    disagreement: float
    disagreement_sigma: float
    sigma: float
    guess: float


@dataclass(frozen=True, slots=True)
class Lost:
    """So many looks whose answers were lost with an older copy of the ledger: the costliest there are."""

    looks: int


Told = Means | Difference | Pair | Lost
_KINDS: dict[str, type[Told]] = {kind.__name__: kind for kind in (Means, Difference, Pair, Lost)}


def told_to_json(told: Told) -> list[object]:
    """What an outcome keeps of it."""
    kind = type(told)
    return [kind.__name__, *(getattr(told, name) for name in kind.__slots__)]


def told_from_json(kept: Sequence[object]) -> Told:
    """What `told_to_json` wrote."""
    name, *parts = kept
    made: Told = _KINDS[str(name)](*parts)  # type: ignore[arg-type]
    return made


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer is given: counted from 1, with its epoch."""

    number: int
    index: int
    epoch: Epoch
    sigma: float
    chance: float
    """How likely each of the numbers told in it may miss."""
    whole: bool
    """Whether each has a whole share of the plan's chance: all of them have a place in this epoch."""


class Meter:
    """The meter of one design.

    Guarantee: an answer in a place that `next_place` finds is within the design's width of the population with
    probability 1 - beta/queries; every planned look finds a place if none tells more than its place may, and so do
    comparisons of models that differ on no more rows than was expected. All looks together cost no more than
    `Design.compared_rho`.
    Requires: the design was fixed before the first look; no place is taken twice; what is charged are all answers that
    were told before the look was asked.
    Reference: docs/theorems.md, Theorem 52.
    """

    def __init__(self, plan: Design) -> None:
        self.plan = plan
        self.beta = miss(plan.confidence)

    @property
    def nothing(self) -> Charges:
        """What is charged before the first look."""
        return (0.0,) * len(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of rows that the plan leaves out, as `Charges` has them."""
        return tuple(epoch.left_out for epoch in self.plan.epochs)

    def charges(self, told: Told) -> Charges:
        """What a release charges at each number of rows left out."""
        return tuple(self._charge(told, left_out) for left_out in self.sizes)

    def after(self, charged: Charges, told: Told) -> Charges:
        """What is charged after one more release."""
        return tuple(up(old + new) for old, new in zip(charged, self.charges(told), strict=True))

    def next_place(self, charged: Charges, used: int) -> int | None:
        """The first place beyond those used before which the plan has told as much; None where there is none left."""
        begun, number = self._begun, 0
        for index, epoch in enumerate(self.plan.epochs):
            each = self._each[index]
            ahead = max(0.0, charged[index] / ROUNDED - begun[index])
            skipped = max(math.ceil(ahead / each) if ahead else 0, used - number)
            if skipped < epoch.answers:
                return number + skipped + 1
            number += epoch.answers
        return None

    def place(self, number: int, numbers: int = 1) -> Place:
        """A place by its number, for one that is told in it, or for several that are told together.

        Those take the next places too. Where these are in the next epoch, the chances of the places in this one are
        shared: no more is missed at an epoch's number of rows than was planned for it.
        """
        first = number
        for index, epoch in enumerate(self.plan.epochs):
            if first <= epoch.answers:
                fit = min(numbers, epoch.answers - first + 1)
                chance = down(self.beta / self.plan.queries * fit / numbers)
                return Place(number, index, epoch, self.plan.sigma(epoch), chance, fit == numbers)
            first -= epoch.answers
        raise InputError(f"expected a place of {self.plan.queries:,}, got {number:,}; ask for fewer looks")

    def rho(self, place: Place) -> float:
        """The zCDP loss of one plain answer in this place."""
        return self._rhos[place.index]

    def left(self, charged: Charges, used: int) -> int:
        """How many places are left."""
        found = self.next_place(charged, used)
        return 0 if found is None else self.plan.queries - found + 1

    def left_out(self, place: Place) -> LeaveOut:
        """The rows that the theorem leaves out for an answer in this place."""
        return LeaveOut(self.plan.rows, (place.epoch.left_out,))

    def on_plan(self, charged: Charges, place: Place) -> bool:
        """Whether no more is charged than the plan has told before the last place of this epoch."""
        before = self._begun[place.index] + (place.epoch.answers - 1) * self._each[place.index]
        return charged[place.index] <= before * ROUNDED

    def half_width(self, charged: Charges, place: Place) -> float:
        """Of a plain answer: the design's, unless more was told than planned meanwhile, or a chance is shared."""
        if place.whole and self.on_plan(charged, place):
            return self.plan.width
        left_out, told = self.left_out(place), (charged[place.index],)
        if self.plan.mode == "votes":
            return votes_half_width(left_out, told, int(place.epoch.noise), float(FLIP), place.chance)
        return left_out.half_width(told, place.sigma, place.chance, 1 / (GRID * self.plan.rows))

    def sum_reach(self, charged: Charges, place: Place, norm: float, beta: float) -> float:
        """The half-width of a mean over rows of range 1 that is a sum of numbers told in this place, of so much noise.

        `norm` is the length of the weights. Sums of discrete noise are bounded by their moments.
        Reference: docs/theorems.md, Theorem 54.
        """
        return moments_half_width(self.left_out(place), (charged[place.index],), up(place.sigma * norm), beta)

    @cached_property
    def _rhos(self) -> tuple[float, ...]:
        return tuple(score_rho(self.plan, epoch) for epoch in self.plan.epochs)

    @cached_property
    def _each(self) -> tuple[float, ...]:
        """What one plain answer of each epoch charges at its own number of rows left out."""
        return tuple(self._charge(Means(1, i), e.left_out) for i, e in enumerate(self.plan.epochs))

    @cached_property
    def _begun(self) -> tuple[float, ...]:
        """What the plan has told before each epoch, at that epoch's number of rows left out."""
        epochs = self.plan.epochs
        return tuple(
            math.fsum(epochs[i].answers * self._charge(Means(1, i), epoch.left_out) for i in range(index))
            for index, epoch in enumerate(epochs)
        )

    def _charge(self, told: Told, left_out: int) -> float:
        rows = self.plan.rows
        if isinstance(told, Pair):
            return difference_charge(
                rows, left_out, told.disagreement, told.disagreement_sigma, told.sigma, told.guess
            )
        if isinstance(told, Difference):
            return up(4 * told.disagreement * gaussian_charge(rows, left_out, told.sigma))
        if isinstance(told, Lost):
            return up(told.looks * self._costliest(left_out))
        epoch = self.plan.epochs[told.epoch]
        if self.plan.mode == "votes":
            return up(told.scalars * int(epoch.noise) * vote_charge(rows, left_out, float(FLIP)))
        return up(told.scalars * gaussian_charge(rows, left_out, self.plan.sigma(epoch)))

    def _costliest(self, left_out: int) -> float:
        """A pair in the last epoch, whatever it said: both of its answers at their largest variance."""
        plan = self.plan
        squared = plan.expect * plan.sigma(plan.epochs[-1]) ** 2
        size = gaussian_charge(
            plan.rows, left_out, math.sqrt(DISAGREEMENT_NOISE * (1 - plan.expect) * squared)
        )
        return up(size + 4 * gaussian_charge(plan.rows, left_out, math.sqrt(DIFFERENCE_NOISE * squared)))
