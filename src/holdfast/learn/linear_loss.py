"""Losses of linear models over a table's columns, with gradients that are whole numbers and add up exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive
from holdfast.errors import InputError
from holdfast.learn import link as links
from holdfast.learn.labelled_rows import decode, known_columns
from holdfast.learn.link import Link
from holdfast.learn.parameter_set import Ball
from holdfast.query.calling import fitting
from holdfast.query.evaluate import compile_predicate
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import columns as predicate_columns
from holdfast.query.schema import Schema, Text

Vector = NDArray[np.float64]

_SIDE = 1 << 16
"""Grid steps in the norm of a row's features, and in its slope. Their product times the rows of a block stays
below 2^53, so a block's matrix product in floats is a sum of whole numbers without any rounding."""
_CHUNK = 1 << 13
"""Rows whose features stay in the cache between the two products of a gradient."""
_HUGE = 1e100
"""Larger numbers are cut to this, so that their squares stay finite."""


@dataclass(frozen=True, slots=True)
class Design:
    """Rows ready for use: features in grid steps (whole floats), the truth."""

    features: Vector
    truth: Vector


@dataclass(frozen=True)
class LinearLoss:
    """The average of link(<theta, x>, y) + penalty/2 ||theta||^2 over theta of norm at most `radius`.

    x holds the features, each scaled from its declared bounds to [-1, 1], and a 1 for the intercept (last);
    all is divided by `clip`, and longer vectors are shortened to norm 1. Then they are put on a grid of 2^-16,
    and the loss is that of these features. A row with NULL in a feature or in a
    number that is the target counts as x = 0; a condition that is the target is false on NULL, as everywhere.

    Guarantee: a row's gradient in grid steps is k*x with whole k in -2^16..2^16 and a whole vector x of norm
    at most 2^16; sums are exact.
    """

    schema: Schema
    features: tuple[str, ...]
    target: str
    link: Link
    radius: float
    penalty: float
    clip: float
    condition: bool

    @cached_property
    def columns(self) -> tuple[str, ...]:
        needed = {*self.features, *(self._condition[1] if self.condition else (self.target,))}
        return self.schema.ordered(needed)

    @property
    def dimension(self) -> int:
        return len(self.features) + 1

    @property
    def region(self) -> Ball:
        return Ball(self.dimension, self.radius)

    @property
    def strong(self) -> float:
        return self.penalty

    @property
    def smooth(self) -> float | None:
        return None if self.link.curvature is None else self.link.curvature + self.penalty

    @property
    def _steepness(self) -> float:
        return self.link.steepness(self.radius)

    @property
    def step(self) -> float:
        return self._steepness / _SIDE**2

    @property
    def norm(self) -> int:
        return _SIDE**2

    @property
    def span(self) -> int:
        return _SIDE * math.ceil(_SIDE * min(1.0, 1.0 / self.clip))

    @property
    def rounding(self) -> float:
        return self._steepness / (2 * _SIDE)

    def prepare(self, block: Mapping[str, NDArray[Any]]) -> Design:
        table = decode(block, self.schema, self.features)
        low, high = np.array([bounds_of(self.schema, name) for name in self.features]).T
        table = (table - low) * (2.0 / (high - low)) - 1.0
        truth, known = self._truth(block)
        known &= ~np.isnan(table).any(axis=1)
        rows = np.ones((len(truth), self.dimension))
        rows[:, :-1] = np.clip(table, -1.0, 1.0)
        rows[~known] = 0.0
        return Design(on_grid(rows / self.clip, _SIDE), truth)

    def total(self, theta: Vector, rows: Design) -> NDArray[np.int64]:
        sums = np.zeros(self.dimension)
        for start in range(0, len(rows.truth), _CHUNK):
            part = Design(rows.features[start : start + _CHUNK], rows.truth[start : start + _CHUNK])
            sums += self._slopes(theta, part) @ part.features
        return sums.astype(np.int64)

    def units(self, theta: Vector, rows: Design, places: NDArray[np.int64]) -> NDArray[np.int64]:
        picked = rows.features[np.arange(len(places)), places]
        out: NDArray[np.int64] = (self._slopes(theta, rows) * picked).astype(np.int64)
        return out

    def values(self, theta: Vector, rows: Design) -> Vector:
        return self.link.value(rows.features @ theta / _SIDE, rows.truth)

    def complexity(self, n: float, chance: float) -> float:
        """2 g r/sqrt n + 2 g r sqrt(ln(1/chance)/(2n)) with slopes up to g.

        Reference: Bartlett and Mendelson 2002: contraction, the ball's Rademacher complexity r/sqrt n, and
        McDiarmid's inequality.
        """
        return 2 * self._steepness * self.radius * (1 + math.sqrt(math.log(1 / chance) / 2)) / math.sqrt(n)

    def coefficients(self, theta: Vector) -> tuple[Vector, float]:
        """The same model in the columns' own units: (a coefficient for each feature, the intercept).

        For a number the prediction is on the scale of the target, for a condition it is the link's argument.
        """
        low, high = np.array([bounds_of(self.schema, name) for name in self.features]).T
        slopes = theta[:-1] / self.clip * 2.0 / (high - low)
        intercept = theta[-1] / self.clip - float(theta[:-1] / self.clip @ ((high + low) / (high - low)))
        if self.condition:
            return slopes, intercept
        bottom, top = bounds_of(self.schema, self.target)
        half = (top - bottom) / 2
        return slopes * half, (intercept + 1) * half + bottom

    def _slopes(self, theta: Vector, rows: Design) -> Vector:
        s = rows.features @ theta / _SIDE
        slopes = self.link.slope(s, rows.truth) * (_SIDE / self._steepness)
        return np.rint(np.clip(np.nan_to_num(slopes, nan=0.0), -_SIDE, _SIDE))

    @cached_property
    def _condition(self) -> tuple[Callable[[Mapping[str, NDArray[Any]]], NDArray[np.bool_]], frozenset[str]]:
        parsed = parse_predicate(self.target, self.schema)
        return compile_predicate(parsed, self.schema), frozenset(predicate_columns(parsed))

    def _truth(self, block: Mapping[str, NDArray[Any]]) -> tuple[Vector, NDArray[np.bool_]]:
        if self.condition:
            truth = np.where(self._condition[0](block), 1.0, -1.0)
            return truth, np.ones(len(truth), dtype=np.bool_)
        low, high = bounds_of(self.schema, self.target)
        number = decode(block, self.schema, (self.target,))[:, 0]
        known = ~np.isnan(number)
        scaled = np.clip((number - low) * (2.0 / (high - low)) - 1.0, -1.0, 1.0)
        return np.where(known, scaled, 0.0), known


def on_grid(rows: Vector, side: int) -> Vector:
    """Rows shortened to norm 1, times `side`, cut towards 0 to whole numbers whose norm is surely at most `side`."""
    rows = np.clip(rows, -_HUGE, _HUGE)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    with np.errstate(invalid="ignore"):
        scaled = np.trunc(rows * (side * (1 - 2.0**-40) / np.maximum(lengths, 1.0))[:, None])
    scaled = np.asarray(np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=0.0), dtype=np.float64)
    # Squares of whole numbers below 2^53 add up exactly, so this decides without rounding.
    scaled[np.einsum("ij,ij->i", scaled, scaled) > float(side) ** 2] = 0.0
    return scaled


class Shape(TypedDict, total=False):
    """What every linear loss takes: see `linear`."""

    radius: float
    penalty: float
    clip: float | None


@fitting
def logistic(schema: Schema, features: Sequence[str], target: str, **how: Unpack[Shape]) -> LinearLoss:
    """Logistic regression: `target` is a condition, such as "smoker = 'yes'"; see `linear` for `how`."""
    return linear(schema, features, target, links.Logistic(), condition=True, **how)


@fitting
def hinge(
    schema: Schema, features: Sequence[str], target: str, *, smoothing: float = 0.5, **how: Unpack[Shape]
) -> LinearLoss:
    """A support vector machine with a smoothed hinge: `target` is a condition."""
    return linear(schema, features, target, links.Hinge(smoothing), condition=True, **how)


@fitting
def squared(schema: Schema, features: Sequence[str], target: str, **how: Unpack[Shape]) -> LinearLoss:
    """Least squares: `target` is a column of numbers, scaled from its declared bounds to [-1, 1]."""
    return linear(schema, features, target, links.Squared(), condition=False, **how)


@fitting
def huber(
    schema: Schema, features: Sequence[str], target: str, *, threshold: float = 0.5, **how: Unpack[Shape]
) -> LinearLoss:
    """Robust regression: squares up to `threshold` (of the scaled target), straight beyond."""
    return linear(schema, features, target, links.Huber(threshold), condition=False, **how)


@fitting
def quantile(
    schema: Schema, features: Sequence[str], target: str, *, rank: float = 0.5, **how: Unpack[Shape]
) -> LinearLoss:
    """Quantile regression at `rank`."""
    return linear(schema, features, target, links.Quantile(rank), condition=False, **how)


@fitting
def linear(
    schema: Schema,
    features: Sequence[str],
    target: str,
    link: Link,
    *,
    condition: bool,
    radius: float = 5.0,
    penalty: float = 0.0,
    clip: float | None = None,
) -> LinearLoss:
    """A linear model with any `link`. `clip` is the norm at which scaled rows (intercept included) are cut; by
    default sqrt(features + 1), which cuts none. A smaller one costs less noise where long rows are rare."""
    names = known_columns(schema, features)
    for name in names if condition else (*names, *known_columns(schema, [target])):
        low, high = bounds_of(schema, name)
        if not low < high:
            raise InputError(f"expected column {name!r} with two different bounds, got equal ones")
    if condition:
        parse_predicate(target, schema)
    if penalty != 0.0:
        penalty = positive("penalty", penalty)
    longest = math.sqrt(len(names) + 1)
    clip = longest if clip is None else min(longest, positive("clip", clip))
    return LinearLoss(schema, names, target, link, positive("radius", radius), penalty, clip, condition)


def bounds_of(schema: Schema, name: str) -> tuple[float, float]:
    """The declared ends of a column, as `decode` gives its numbers."""
    column = schema[name]
    if isinstance(column, Text):
        raise InputError(f"expected a column of numbers, categories or dates, got the text column {name!r}")
    if column.kind == "date":
        return 0.0, float(column.hi - column.lo)  # decoded as days from the first
    return float(column.lo), float(column.hi)


def scales(schema: Schema, names: Sequence[str], intercept: bool) -> tuple[Vector, Vector]:
    """(middle, length): (number - middle)/length is in [-1, 1]. Without an intercept nothing may be moved."""
    low, high = np.array([bounds_of(schema, name) for name in names]).T
    if intercept:
        return (high + low) / 2, (high - low) / 2
    return np.zeros(len(names)), np.maximum(np.abs(low), np.abs(high))
