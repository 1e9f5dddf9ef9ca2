"""The private learner: one hypothesis out of a finite class, by the exponential mechanism on its mistakes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import exact_positive, probability
from holdfast.errors import InputError
from holdfast.learn.labelled_rows import Labels, Matrix, decode, known_columns, labels, matrix
from holdfast.learn.sample_size import excess_by_union, realisable_error
from holdfast.ledger import UNCOVERED, Stale
from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.laplace import add_laplace
from holdfast.mechanisms.selection import exponential, selection_loss
from holdfast.mechanisms.values import ROUND_UP, round_down
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import BoundedRange, Event, Gaussian, Laplace
from holdfast.privacy.event import Sequence as Events
from holdfast.session.footing import Footing, footing_after, is_fresh
from holdfast.validity.told import gaussian_told, selection_told

if TYPE_CHECKING:
    from holdfast.desk import Paid
    from holdfast.noise.bits import Bits
    from holdfast.session.session import Session

_MEASURING = Fraction(1, 5)
"""The part of epsilon that measures the chosen hypothesis; the rest chooses it."""
_SLACK = 1 / 20


class Hypotheses(Protocol):
    """A finite class that can be scored as a whole. All of it is public; rows come as arguments."""

    @property
    def size(self) -> int:
        """How many hypotheses there are."""

    def mistakes(self, rows: Matrix, truth: Labels) -> NDArray[np.int64]:
        """For each hypothesis, how many rows it labels wrongly: exact, and the sum over blocks of rows."""

    def predict(self, index: int, rows: Matrix) -> Labels:
        """What hypothesis `index` says of the rows."""

    def describe(self, index: int) -> str:
        """A hypothesis in words."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Hypotheses given as functions from a matrix of rows to truth values."""

    functions: tuple[Callable[[Matrix], ArrayLike], ...]

    @property
    def size(self) -> int:
        return len(self.functions)

    def mistakes(self, rows: Matrix, truth: Labels) -> NDArray[np.int64]:
        wrong = (np.count_nonzero(self.predict(i, rows) != truth) for i in range(self.size))
        return np.fromiter(wrong, dtype=np.int64, count=self.size)

    def predict(self, index: int, rows: Matrix) -> Labels:
        return labels(self.functions[index](rows), len(rows))

    def describe(self, index: int) -> str:
        return getattr(self.functions[index], "__name__", f"hypothesis {index}")


@dataclass(frozen=True, slots=True)
class Learned:
    """A hypothesis that was chosen privately, with what is certified of it on the `target`: the population, or
    the rows themselves.

    `error` is its measured share of mistakes (noise included). With probability `confidence`, both at once:
    its error on the target is at most `error_bound`, and at most `excess` above the best of the class.
    """

    index: int
    description: str
    error: float
    error_bound: float
    excess: float
    confidence: float
    epsilon: float
    rows: int
    target: str
    _class: Hypotheses = field(repr=False)

    def predict(self, rows: ArrayLike) -> Labels:
        """What the hypothesis says of new rows."""
        return self._class.predict(self.index, matrix(rows))

    def __str__(self) -> str:
        return (
            f"{self.description}: wrong on {self.error:.4f} of {self.rows:,} rows; on the {self.target} at most "
            f"{self.error_bound:.4f}, and at most {self.excess:.4f} above the best of {self._class.size:,} "
            f"(both with probability {self.confidence:g}; epsilon {self.epsilon:g})"
        )


class FiniteClass:
    """A finite class to learn from: ready ones (`Thresholds`, `Stumps`, `Conjunctions`, `Boxes`), or functions."""

    def __init__(self, hypotheses: Hypotheses | Sequence[Callable[[Matrix], ArrayLike]]) -> None:
        if isinstance(hypotheses, Sequence):
            if not hypotheses or not all(callable(h) for h in hypotheses):
                raise InputError(
                    "expected a class, or a list of functions, for hypotheses, got another thing"
                )
            hypotheses = Listed(tuple(hypotheses))
        self.hypotheses: Hypotheses = hypotheses

    @property
    def size(self) -> int:
        """How many hypotheses there are."""
        return self.hypotheses.size

    def learn(
        self,
        rows: ArrayLike,
        truth: ArrayLike,
        *,
        epsilon: float,
        confidence: float = 0.95,
        realisable: bool = False,
        bits: Bits | None = None,
    ) -> Learned:
        """Choose a hypothesis with few mistakes on these rows, and measure it.

        Guarantee: epsilon-DP, exactly; the claims of `Learned`. `realisable` is a promise of the caller that
        some hypothesis of the class is never wrong on the population.
        Requires: the class was fixed without looking at these rows, or at anything computed from them; the rows
        are independent draws from the population; replacing one changes each number of mistakes by at most 1.
        Reference: Kasiviswanathan et al. 2008, Theorem 3.4, with alpha/4 as the slack; error:
        the transfer term tanh(epsilon/4) or uniform convergence, whichever is less.
        Cost: `events.BoundedRange(4/5 epsilon)`, `events.Laplace(1, 5/epsilon)`.
        """
        table = matrix(rows)
        eps, beta = exact_positive("epsilon", epsilon), 1 - probability("confidence", confidence)
        wrong = self.hypotheses.mistakes(table, labels(truth, len(table)))
        index, measured = _release(wrong, eps, bits)
        n = len(table)
        each = beta / 2
        error_width = min(_error_by_union(self.size, n, eps, each), _error_by_transfer(n, eps, each))
        excess = min(
            excess_by_union(self.size, n, n, float(_choosing(eps)), each),
            _excess_by_transfer(self.size, n, eps, each),
        )
        bound = min(1.0, max(0.0, measured / n + error_width))
        if realisable:
            # The best error is 0, so a bound on the excess bounds the error too. The smaller of two fixed numbers
            # is one claim, not two: the claims stay two, at beta/2 each.
            excess = min(excess, realisable_error(self.size, n, float(_choosing(eps)), each))
            bound = min(bound, excess)
        return self._learned(index, measured, n, bound, excess, 1 - beta, eps, "population")

    def learn_in(
        self,
        session: Session,
        features: Sequence[str],
        target: str,
        *,
        epsilon: float,
    ) -> Learned:
        """As `learn`, over the rows of a session: `target` is a condition, such as "smoker = 'yes'".

        Guarantee: charged to the session before a row is read. The two claims are among those that hold
        together with the session's confidence, whatever else was asked: class and target may have been chosen by
        earlier answers. If there is none, of any session, uniform convergence over the class may be narrower.
        Requires: hypotheses that stay as they are from the call on.
        Reference: docs/theorems.md, Theorem 43 where the leave-out theorem covers all that was told, else Theorem 21.
        Cost: in a pure session as `learn`; in others the mistakes are measured with Gaussian noise of the same zCDP,
        which the leave-out theorem covers, so the choice alone is pure. Two of the session's queries. All rows are
        read once.
        """
        from holdfast.query.evaluate import compile_predicate
        from holdfast.query.parse import parse_predicate
        from holdfast.query.predicate import columns as predicate_columns

        schema = session._terms.schema
        names = known_columns(schema, features)
        condition = parse_predicate(target, schema)
        test, needed = compile_predicate(condition, schema), {*names, *predicate_columns(condition)}
        eps = exact_positive("epsilon", epsilon)
        normal = session.currency != "pure"
        measuring = Gaussian(1, _scale(eps) ** 2) if normal else Laplace(1, _scale(eps))
        event = Events((BoundedRange(_choosing(eps)), measuring))
        tells = _told(session._terms.rows, eps) if normal else UNCOVERED
        paid, footing = _charged(session, f"learn {target} from {', '.join(names)}", event, tells)
        wrong = np.zeros(self.size, dtype=np.int64)
        for block in paid.scan(schema.ordered(needed)):
            wrong += self.hypotheses.mistakes(matrix(decode(block, schema, names)), test(block))
        index, measured = _release(wrong, eps, normal=normal)
        width, excess = _claims(self.size, eps, footing, normal)
        n, confidence = footing.rows, session.confidence
        bound = min(1.0, max(0.0, measured / n + width))
        found = self._learned(index, measured, n, bound, excess, confidence, eps, footing.promise.target)
        paid.record(json.dumps({"hypothesis": index, "error": found.error, "bound": bound}))
        return found

    def _learned(
        self,
        index: int,
        measured: int,
        n: int,
        bound: float,
        excess: float,
        confidence: float,
        eps: Fraction,
        target: str,
    ) -> Learned:
        words = self.hypotheses.describe(index)
        return Learned(
            index,
            words,
            min(1.0, max(0.0, measured / n)),
            bound,
            excess,
            confidence,
            float(eps),
            n,
            target,
            self.hypotheses,
        )


def _charged(session: Session, words: str, event: Event, tells: int) -> tuple[Paid, Footing]:
    """Charge two claims; and what they stand on, which is looked up again if somebody was charged first."""
    while True:
        fresh = is_fresh(session._terms, session._moment())
        with suppress(Stale):
            paid = session.pay("learn", words, event, queries=2, fresh=fresh, tells=tells)
            return paid, footing_after(session, fresh)


def _told(rows: int, eps: Fraction) -> int:
    """What choosing and measuring tell of the rows, in the ledger's units; docs/theorems.md, Theorem 24."""
    chosen = units_told(selection_told(rows, float(_choosing(eps))), rows)
    return min(UNCOVERED, chosen + units_told(gaussian_told(0.25, float(_scale(eps)) / rows), rows))


def _claims(size: int, eps: Fraction, footing: Footing, normal: bool = False) -> tuple[float, float]:
    """(what to add to the measured error, the excess) that a session may claim.

    h wrong is one query of range 1, h* wrong minus h wrong one of range 2, where h* is the best of the class on the
    population; both were chosen by what was told. Where the leave-out theorem covers that, each claim has a chance
    for it, and another for the noise or the choice (docs/theorems.md, Theorems 43 and 91). Else by transfer
    (Theorem 21): the noise enters by its overshoot, a bad choice by its chance times one half, its greatest
    excess over that range. On a fresh table also by a union over the class, if that is less.
    """
    promise, n = footing.promise, footing.rows

    def noise(allowance: float, overshoot: bool) -> float:
        if normal:
            return gaussian_reach(_scale(eps) ** 2, allowance, overshoot) / n
        return laplace_reach(_scale(eps), allowance, overshoot) / n

    if promise.target == "table":
        return noise(promise.allowance, False), _selection(size, n, eps, promise.allowance)
    if footing.covered:
        beyond, alone = footing.beyond(footing.covered_chance), footing.noise_chance
        error = (beyond + noise(2 * alone, False)) * ROUND_UP  # of the noise, too, only one side matters
        excess = (2 * beyond + _selection(size, n, eps, alone)) * ROUND_UP
    else:
        error = (footing.transfer + noise(promise.allowance * n, True)) * ROUND_UP
        excess = (2 * footing.transfer + _selection(size, n, eps, 2 * promise.allowance)) * ROUND_UP
    if footing.fresh:
        units, chance = footing.units, footing.outright
        error = min(error, noise(chance / 2, False) + _uniform(size, units, chance))
        excess = min(excess, excess_by_union(size, n, units, float(_choosing(eps)), chance))
    return error, min(1.0, excess)


def _release(
    wrong: NDArray[np.int64], eps: Fraction, bits: Bits | None = None, *, normal: bool = False
) -> tuple[int, int]:
    """The index of a hypothesis, and its number of mistakes plus noise."""
    index = exponential(-wrong, sensitivity=1, epsilon=_choosing(eps), bits=bits)
    mistakes = int(wrong[index])
    if normal:
        return index, int(add_gaussian(mistakes, _scale(eps) ** 2, bits))
    return index, int(add_laplace(mistakes, _scale(eps), bits))


def _choosing(eps: Fraction) -> Fraction:
    return round_down(float(eps * (1 - _MEASURING)))


def _scale(eps: Fraction) -> Fraction:
    return 1 / round_down(float(eps * _MEASURING))


def _selection(size: int, n: int, eps: Fraction, beta: float) -> float:
    return selection_loss(size, sensitivity=1, epsilon=_choosing(eps), beta=beta) / n


def _error_by_union(size: int, n: int, eps: Fraction, beta: float) -> float:
    """err_P - measured error: noise at beta/2, all hypotheses at beta/2."""
    return laplace_reach(_scale(eps), beta / 2, overshoot=False) / n + _uniform(size, n, beta)


def _uniform(size: int, units: float, beta: float) -> float:
    """One-sided Hoeffding over the units for all hypotheses, at beta/2."""
    return math.sqrt((math.log(2 * size) - math.log(beta)) / (2 * units)) * ROUND_UP


def _error_by_transfer(n: int, eps: Fraction, beta: float) -> float:
    """T1° for the pure mechanism: whether the measured error misses is decided by what was released."""
    t = _transfer(eps)
    return t * (1 + _SLACK) + laplace_reach(_scale(eps), beta * t * _SLACK * n, overshoot=True) / n


def _excess_by_transfer(size: int, n: int, eps: Fraction, beta: float) -> float:
    """err_P(h) - OPT = [err_P - err_S](h) + [err_S(h) - err_S(h*)] + [err_S - err_P](h*).

    The first is the transfer term; the others are at most 1 and exceed what is added here with probability at
    most beta*slack together, which the transfer theorem counts as expected overshoot.
    """
    t = _transfer(eps)
    chance = beta * t * _SLACK
    best = math.sqrt(math.log(2 / chance) / (2 * n)) * ROUND_UP
    return min(1.0, t * (1 + _SLACK) + _selection(size, n, eps, chance / 2) + best)


def _transfer(eps: Fraction) -> float:
    return math.tanh(float(eps) / 4) * ROUND_UP
