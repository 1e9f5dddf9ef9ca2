"""What a synthetic table of many columns will measure, and at what price: from public numbers, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.check import positive, whole
from holdfast.errors import InputError
from holdfast.ledger import UNCOVERED
from holdfast.mechanisms.values import round_down, round_up
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import BoundedRange, Event, Gaussian, Laplace, Repeat
from holdfast.privacy.event import Sequence as Both
from holdfast.query.schema import Boolean, Category
from holdfast.query.universe import Universe
from holdfast.synthesis.smoothed_choice import SENSITIVITY
from holdfast.validity.leave_out_charges import groups_radius_squared
from holdfast.validity.told import gaussian_told, smoothed_choice_told
from holdfast.weights.column_bins import CLEAR
from holdfast.weights.junction_tree import JunctionTree, junction_tree
from holdfast.weights.marginals import Axes

if TYPE_CHECKING:
    from holdfast.session.session import Session

MEMORY = 2**28
"""The bytes that a model may need, unless more is allowed: it is fitted in seconds to minutes."""
MOST_CELLS = 2**26
ORDERED_BINS, CATEGORIES = 32, 128
_COLUMNS, _CHOOSING, _REST = 0.35, 0.08, 0.1
_MORE_ROUNDS, _WIDE = 20, 20
STEPS, LAST_STEPS = 60, 400
"""The most steps of the fit before a choice, and of the last one."""
_A_NUMBER = 64
"""Bytes of a count: exact, as it was told, as text, and with its variance."""
_A_CELL = 25e-9
"""Seconds of one processor that a step takes for a cell of the model, where docs/benchmarks.md was measured."""
_NOISE_COUNTS = 0.2
"""So much of the noise of a marginal stays in the fit: others share its columns."""


@dataclass(frozen=True)
class MarginalPlan:
    """The steps of a release, all fixed beforehand: every column, then so many marginals, chosen or all of them.

    `str` says it in words. `memory` bounds the model, and `counts` what it is fitted to, in bytes.
    """

    universe: Universe
    rows: int
    candidates: Mapping[Axes, float]
    """What may be measured, each with the weight of its errors, at most 1."""
    columns: tuple[Event, ...]
    """The noise of each column's counts."""
    choosing: Fraction | None
    """The epsilon of one choice; None where everything is measured."""
    noise: Event | None
    """Of each marginal that is measured; None where there are none."""
    rounds: int
    memory: int
    amount: float
    bins: int
    rest: Event | None = None
    """Of each marginal that is not chosen; None where those are not measured."""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The most bins that each column can have."""
        return tuple(
            min(size, (CATEGORIES + 1 if _is_listed(self.universe, axis) else 2 * self.bins) + 1)
            for axis, size in enumerate(self.universe.shape)
        )

    @property
    def numbers(self) -> int:
        """The most numbers that can be released: all groups of the columns, and the largest marginals."""
        shape = self.shape
        largest = max((math.prod(shape[axis] for axis in axes) for axes in self.candidates), default=0)
        return sum(self.universe.shape) + (self.rounds + self.left) * largest

    @property
    def noises(self) -> list[Event]:
        """Of every marginal that is measured, in order: those that are chosen, then the others."""
        chosen = [] if self.noise is None else [self.noise] * self.rounds
        return chosen + ([] if self.rest is None else [self.rest] * self.left)

    @property
    def left(self) -> int:
        """How many marginals are measured though they were not chosen."""
        return 0 if self.rest is None else len(self.candidates) - self.rounds

    @property
    def event(self) -> Event:
        """What is charged: the composition of all steps."""
        steps = list(self.columns)
        if self.noise is not None:
            one = self.noise if self.choosing is None else Both((BoundedRange(self.choosing), self.noise))
            steps.append(Repeat(one, self.rounds))
        if self.rest is not None:
            steps.append(Repeat(self.rest, self.left))
        return Both(tuple(steps))

    @property
    def tells(self) -> int:
        """How much it tells of the rows, in the ledger's units; UNCOVERED with Laplace noise.

        Reference: docs/theorems.md, Theorems 24 (vectors) and 95 (choices).
        """
        if not all(isinstance(noise, Gaussian) for noise in self.columns):
            return UNCOVERED
        told = 0.0
        for size, noise in zip(self.universe.shape, self.columns, strict=True):
            told += gaussian_told(groups_radius_squared(size), deviation(noise) / self.rows)
        if self.noise is not None:
            told += self.rounds * gaussian_told(1.0, deviation(self.noise) / self.rows)
        if self.rest is not None:
            told += self.left * gaussian_told(1.0, deviation(self.rest) / self.rows)
        if self.choosing is not None:
            told += self.rounds * smoothed_choice_told(self.rows, float(self.choosing))
        return units_told(told, self.rows)

    @property
    def fits(self) -> int:
        """How many models are fitted before the last one: one for a few choices where there are many columns."""
        return 0 if self.choosing is None else -(-self.rounds // self.every)

    @property
    def every(self) -> int:
        """After so many choices the model is fitted anew."""
        return max(1, len(self.universe.axes) // _WIDE)

    @property
    def seconds(self) -> float:
        """What the fits take at most, about, on a processor like that of docs/benchmarks.md: most end far earlier. The
        models grow into their memory one choice after the other."""
        cells = min(self.memory / 16, float(math.prod(self.shape)))
        return _A_CELL * cells * (STEPS * self.fits / 2 + LAST_STEPS)

    def price(self, cells: int) -> float:
        """What the noise of a marginal of so many cells adds to the errors, in counts: what a choice weighs."""
        assert self.noise is not None
        return _NOISE_COUNTS * math.sqrt(2 / math.pi) * deviation(self.noise) * cells

    def affords(self, sets: list[Axes], tree: JunctionTree) -> bool:
        """Whether a model with these marginals keeps within the memory, and its cliques within 2^26 cells."""
        return tree.memory(sets) <= self.memory and tree.largest <= MOST_CELLS

    def holds(self, axes: Axes) -> bool:
        """Whether a model of these columns alone keeps within it."""
        alone = tuple(range(len(axes)))
        return self.affords([alone], junction_tree([self.shape[axis] for axis in axes], [alone]))

    def __str__(self) -> str:
        low, high = min(map(deviation, self.columns)), max(map(deviation, self.columns))
        noise = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
        words = f"{len(self.columns)} columns of {self.rows:,} rows: counts of each column with noise of {noise} rows"
        if self.noise is not None:
            how = "all" if self.choosing is None else f"{self.rounds} chosen privately out of"
            others = "" if self.rest is None else f", the others with {deviation(self.rest):.3g}"
            words += (
                f"; {how} {len(self.candidates):,} marginals with noise of {deviation(self.noise):.3g} rows a cell"
                f"{others}; at most {self.memory / 2**20:,.0f} MiB for the model, and "
                f"{self.counts / 2**20:,.0f} MiB for counts; at most about {_duration(self.seconds)} for the fits"
            )
        return words

    @property
    def counts(self) -> int:
        """The bytes that the counts of all candidates need at most, as they are measured and as they are recorded."""
        shape = self.shape
        return _A_NUMBER * sum(math.prod(shape[axis] for axis in axes) for axes in self.candidates)


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds <= 90 else f"{math.ceil(seconds / 60)} minutes"


def deviation(noise: Event) -> float:
    """The standard deviation of one count's noise."""
    if isinstance(noise, Gaussian):
        return math.sqrt(noise.variance)
    assert isinstance(noise, Laplace)
    return math.sqrt(2) * float(noise.scale)


def plan_marginals(
    session: Session,
    universe: Universe,
    candidates: Mapping[Axes, float],
    *,
    rho: float | None,
    epsilon: float | None,
    rounds: int | None,
    bins: int,
    memory: int | None,
    named: bool,
) -> MarginalPlan:
    """The plan of a release: of the budget .35 for the columns, .08 for choosing, .57 for marginals, .1 of which is for
    those that were not chosen, where their noise is then below sqrt(rows).

    Guarantee: rho-zCDP (epsilon-DP with Laplace noise) by composition; one row moves two cells of each marginal by 1.
    Among the columns the budget is divided so that the noise, summed over all counts, is least: in proportion to
    groups^(2/3). Of pairs that nobody `named`, those that are beyond the memory by themselves are left out; named
    marginals are refused. Where all candidates can be measured in as many rounds, nothing is chosen and nothing paid
    for it.
    """
    if (rho is None) == (epsilon is None):
        raise InputError("expected either rho= or epsilon= (pure differential privacy), got both or neither")
    d, n = len(universe.axes), session._terms.rows
    allowed = MEMORY if memory is None else whole("memory", memory)
    wanted = min(5 * d // 2, d + _MORE_ROUNDS) if rounds is None else whole("rounds", rounds)
    draft = MarginalPlan(
        universe, n, candidates, (), None, None, 0, allowed, 0.0, whole("bins", bins, 2, 1024)
    )
    if named:
        _refuse_large(draft)
    candidates = {axes: weight for axes, weight in candidates.items() if draft.holds(axes)}
    count = min(wanted, len(candidates))
    everything = count == len(candidates) and draft.affords(
        list(candidates), junction_tree(draft.shape, candidates)
    )
    size = session._terms.rows_per_unit
    weights = [length ** (2 / 3) for length in universe.shape]
    for_columns = _COLUMNS if count else 1.0
    for_choosing = 0.0 if everything or not count else _CHOOSING
    left = len(candidates) - count
    if rho is not None:
        amount = positive("rho", rho)
        whole_rho = amount / size**2 * (1 - 2.0**-40)
        own = tuple(_gaussian(whole_rho * for_columns * weight / sum(weights)) for weight in weights)
        choosing = round_down(math.sqrt(8 * whole_rho * for_choosing / count)) if for_choosing else None
        rest = _gaussian(whole_rho * _REST / left) if for_choosing and left else None
        if rest is not None and deviation(rest) > math.sqrt(n):
            rest = None
        for_chosen = 1 - for_columns - for_choosing - (_REST if rest is not None else 0.0)
        noise: Event | None = _gaussian(whole_rho * for_chosen / count) if count else None
    else:
        amount = positive("epsilon", epsilon)
        rate = amount / size * (1 - 2.0**-40)
        own = tuple(_laplace(rate * for_columns / d) for _ in weights)
        choosing = round_down(rate * for_choosing / count) if for_choosing else None
        noise = _laplace(rate * (1 - for_columns - for_choosing) / count) if count else None
        rest = None
    made = MarginalPlan(
        universe, n, candidates, own, choosing, noise, count, allowed, amount, draft.bins, rest
    )
    _refuse_noise(made, rho is not None)
    return made


def _gaussian(rho: float) -> Event:
    return Gaussian(2, round_up(1 / Fraction(rho)))


def _laplace(epsilon: float) -> Event:
    return Laplace(SENSITIVITY, SENSITIVITY / round_down(epsilon))


def _is_listed(universe: Universe, axis: int) -> bool:
    return isinstance(universe.schema[universe.axes[axis].column], Category | Boolean)


def ordered(universe: Universe, axis: int) -> bool:
    """Whether neighbouring groups of a column are alike."""
    return not _is_listed(universe, axis)


def _refuse_large(plan: MarginalPlan) -> None:
    """A marginal that alone is beyond the memory is refused, with the largest part of it that is not."""
    for axes in plan.candidates:
        if plan.holds(axes):
            continue
        names = [plan.universe.axes[axis].column for axis in axes]
        kept = list(axes)
        while len(kept) > 1 and not plan.holds(tuple(kept)):
            kept.remove(max(kept, key=lambda axis: plan.shape[axis]))
        fits = ", ".join(plan.universe.axes[axis].column for axis in kept)
        cells = math.prod(plan.shape[axis] for axis in axes)
        raise InputError(
            f"cannot hold {', '.join(names)} together: up to {cells:,} cells are beyond {plan.memory:,} bytes; ask "
            f"about {fits} only, give coarser edges=, or more memory="
        )


def _refuse_noise(plan: MarginalPlan, concentrated: bool) -> None:
    most = min(map(deviation, plan.columns))
    if CLEAR * most >= plan.rows:
        more = CLEAR * most / plan.rows
        name, least = ("rho", plan.amount * more**2) if concentrated else ("epsilon", plan.amount * more)
        raise InputError(
            f"expected a budget with which something stands out of the noise, got {name}={plan.amount:g} for "
            f"{len(plan.columns)} columns of {plan.rows:,} rows; give more than {least:.2g}, or take fewer columns"
        )
