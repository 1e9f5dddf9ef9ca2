"""Classification by gradient descent: every row's gradient cut by its norm, in coordinates that were released before.

A fit is one charge. It tells the mean of the features, their second moments around it, and then the gradients of all
rows at the points that it comes to. All sums are whole numbers with exact Gaussian noise. Shares, steps, clip and step
size follow from the number of rows and features and from the budget alone, by the rule in docs/learn.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive, whole
from holdfast.errors import BudgetError, MechanismError
from holdfast.learn.labelled_rows import decode, known_columns
from holdfast.learn.linear_loss import bounds_of, on_grid, scales
from holdfast.learn.moments import (
    GRAM_SENSITIVITY_SQUARED,
    gram_deviation,
    mean_sensitivity_squared,
    noisy_gram,
    noisy_mean,
)
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.values import ROUND_UP, round_up
from holdfast.optimize.certificate import noise_norm
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import Event, Gaussian, Repeat
from holdfast.privacy.event import Sequence as Events
from holdfast.privacy.filter import UNITS
from holdfast.validity.told import gaussian_told

if TYPE_CHECKING:
    from holdfast.desk import Paid
    from holdfast.query.schema import Schema
    from holdfast.session.session import Session

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_CENTRE = Fraction(1, 10)
_SHAPE = Fraction(3, 20)
_BALANCE = Fraction(1, 50)
"""The parts of the budget for the mean, the second moments and (if asked) the classes; the steps have the rest."""
_SHORT = 0.15
_LESS_SHORT = 0.6
"""Rows count for the second moments up to one of these times sqrt(features): the less noise, the longer."""
_CLEAR = 200.0
"""The clarity n mu/sqrt(d) from which rows count longer, and gradients are cut less."""
_NOISIEST = 0.5
"""Rows are centred if the noise of a feature's mean is at most this, the feature being in [-1,1]."""
STEPS = 20
_LONGEST = 64
_GRID = 1 << 12
_SLOPE = 1 << 20
"""Grid steps in a coordinate of a row, and in a slope; a row is never longer than _LONGEST."""
NORM = _SLOPE * _GRID
"""What a row's whole gradient is at most: the clip, 1, on both grids. A chunk's sum stays below 2^53."""
_CHUNK = 1 << 13
_BELOW = 1 - 2.0**-40


@dataclass(frozen=True, slots=True)
class FitPlan:
    """What a fit will do and cost, complete before a row is read."""

    rows: int
    features: int
    classes: int
    steps: int
    rate: float
    """The step size, on the mean gradient."""
    clip: float
    """The norm at which a row's gradient is cut, where a typical row has norm sqrt(features + 1) or less."""
    short: float
    """The norm up to which a row counts for the second moments."""
    intercept: bool
    mean_variance: Fraction | None
    """None: not centred, because the mean would be too noisy, or there is no intercept to make up for it."""
    shape_variance: Fraction
    step_variance: Fraction
    count_variance: Fraction | None

    @property
    def outputs(self) -> int:
        """How many linear scores there are: one decides between two classes."""
        return 1 if self.classes == 2 else self.classes

    @property
    def event(self) -> Event:
        shape = [Gaussian(GRAM_SENSITIVITY_SQUARED, self.shape_variance)]
        if self.mean_variance is not None:
            shape.insert(0, Gaussian(mean_sensitivity_squared(self.features), self.mean_variance))
        if self.count_variance is not None:
            shape.append(Gaussian(2, self.count_variance))
        return Events((*shape, Repeat(Gaussian(4 * NORM**2, self.step_variance), self.steps + 1)))

    @property
    def sigma(self) -> float:
        """The scale of the noise in a coordinate of the mean gradient."""
        return math.sqrt(self.step_variance) / (self.rows * NORM) * ROUND_UP

    @property
    def tells(self) -> int:
        """What it tells of the rows, in the ledger's units: docs/theorems.md, Theorem 24 (vectors)."""
        n = self.rows
        squares = [
            (GRAM_SENSITIVITY_SQUARED / 2, self.shape_variance, 1),
            (NORM**2, self.step_variance, self.steps + 1),
        ]
        if self.mean_variance is not None:
            squares.append((mean_sensitivity_squared(self.features) / 4, self.mean_variance, 1))
        if self.count_variance is not None:
            squares.append((1.0, self.count_variance, 1))
        return units_told(
            math.fsum(times * gaussian_told(float(r), math.sqrt(v) / n) for r, v, times in squares), n
        )

    def __str__(self) -> str:
        centred = "centring and " if self.mean_variance else ""
        return (
            f"{self.steps} steps of {self.rate:.3g} over {self.rows:,} rows, {self.features} features and "
            f"{self.classes} classes, gradients cut at norm {self.clip:.3g} after {centred}scaling by released moments"
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """A linear classifier in the columns' own units, and what is certified of it on the rows.

    `excess`: with the session's confidence, this fit by itself, the mean clipped loss is at most this much above
    that of every parameter up to twice as long (in the released coordinates); infinite where that says nothing, from
    the loss at zero on, and for more than two classes.
    """

    coefficients: Matrix
    intercepts: Vector
    excess: float
    plan: FitPlan

    @property
    def certificate(self) -> str:
        if math.isinf(self.excess):
            return "nothing certified"
        return (
            f"clipped loss on these rows at most {self.excess:.3g} above every parameter up to twice as long"
        )


def plan_fit(
    session: Session,
    features: int,
    classes: int,
    *,
    rho: float | None = None,
    steps: int | None = None,
    intercept: bool = True,
    balanced: bool = False,
) -> FitPlan:
    """The rule: shares, steps and step size from the numbers of rows and features and the budget alone.

    The clarity is c = n mu/sqrt(d): noise of scale 2/(n mu) in d directions against a signal of about 1. The step size
    times the steps is 10 sqrt(c), at most 120: noise is walked into for no longer than it takes to find the signal, and
    a step of 6 is stable at a curvature of 1/4. Gradients are cut at sqrt(c/200), between 1 and sqrt(d + 1)/2, and
    rows are shortened to .15 sqrt(d) times the same, at most .6 sqrt(d): a noisy fit wants short rows, a clear one
    true ones.
    """
    terms = session._terms
    if session.currency == "pure":
        raise MechanismError(
            "a fit has Gaussian noise, which this session's budget (pure epsilon) cannot count; give rho="
        )
    units = terms.session.limit_units - session._moment().session.units
    if rho is not None:
        units = math.floor(Fraction(positive("rho", rho)) * UNITS * (2 if session.currency == "gdp" else 1))
    # A part in a million is kept for the rounding of charges to whole units; rows owned in groups cost their square.
    amount = Fraction(units, UNITS) * Fraction(999_999, 1_000_000) / terms.rows_per_unit**2
    if amount <= 0:
        raise BudgetError("this budget does not pay for a single step; give more")
    steps = STEPS if steps is None else whole("iterations", steps)
    mu = math.sqrt(amount * (1 if session.currency == "gdp" else 2)) * terms.rows_per_unit
    clarity = terms.rows * mu / math.sqrt(features)
    cut = max(1.0, math.sqrt(clarity / _CLEAR))

    def variance(squared: int, part: Fraction) -> Fraction:
        exact = amount * part
        return round_up(squared / exact) + 4 if session.currency == "gdp" else round_up(squared / (2 * exact))

    mean_noise = 2 * math.sqrt(features / _CENTRE) / (mu * terms.rows)
    centred = intercept and mean_noise <= _NOISIEST
    centre, count = (_CENTRE if centred else Fraction(0)), (_BALANCE if balanced else Fraction(0))
    rest = (1 - _SHAPE - centre - count) / (steps + 1)
    return FitPlan(
        terms.rows,
        features,
        classes,
        steps,
        min(120.0, 10 * math.sqrt(clarity)) / steps,
        min(cut, max(1.0, math.sqrt(features + 1) / 2)),
        min(_SHORT * cut, _LESS_SHORT) * math.sqrt(features),
        intercept,
        variance(mean_sensitivity_squared(features), _CENTRE) if centred else None,
        variance(GRAM_SENSITIVITY_SQUARED, _SHAPE),
        variance(4 * NORM**2, rest),
        variance(2, _BALANCE) if balanced else None,
    )


def fit(
    session: Session,
    features: Sequence[str],
    target: str,
    classes: int,
    *,
    rho: float | None = None,
    steps: int | None = None,
    intercept: bool = True,
    weight: str | None = None,
    class_weights: Sequence[float] | str | None = None,
) -> Fit:
    """Logistic regression (two classes) or softmax regression: `target` is a column of whole numbers 0..classes-1.

    Guarantee: charged once, before a row is read; private by the session's filter, whatever the rows and weights are,
    because each row's gradient is cut to norm 1. A row with NULL counts as nothing.
    Requires: `weight`, a column of numbers that multiplies a row's gradient, and `class_weights` in [0, 1] ("balanced":
    by noisy counts of the classes); declared bounds of the features that were fixed without the rows.
    Reference: docs/learn.md for the rule; docs/theorems.md, Theorem 260, for the certificate; Song, Steinke, Thakkar,
    Thakurta 2021 for clipped gradients of linear models as those of another convex loss.
    Cost: `FitPlan.event`; one query of the session.
    """
    schema, names = session.schema, known_columns(session.schema, features)
    (target,) = known_columns(schema, [target])
    weight = None if weight is None else known_columns(schema, [weight])[0]
    middle, length = scales(schema, names, intercept)
    scales(schema, [target, *([] if weight is None else [weight])], intercept)  # or they are refused
    balanced = isinstance(class_weights, str)
    plan = plan_fit(
        session, len(names), classes, rho=rho, steps=steps, intercept=intercept, balanced=balanced
    )
    words = f"fit {target} by {', '.join(names)}"
    paid = session.pay("fit", words, plan.event, queries=1, tells=plan.tells)
    rows, truth, weights = _rows(paid, schema, names, target, weight)
    rows -= middle
    rows /= length
    np.clip(rows, -1.0, 1.0, out=rows)
    known = ~(np.isnan(rows).any(axis=1) | np.isnan(truth))
    rows[~known], weights[~known] = 0.0, 0.0
    labels = np.where(known, np.clip(truth, 0, classes - 1), 0).astype(np.intp)
    if class_weights is not None:
        weights *= _class_weights(plan, labels, known, class_weights)[labels]
    centre = np.zeros(len(names))
    if plan.mean_variance is not None:
        centre = np.clip(noisy_mean(rows, plan.mean_variance), -1.0, 1.0)
    rows -= centre
    rows[~known] = 0.0
    shape = _whitening(rows, plan)
    # In units of the clip, so that a gradient of norm 1 is the longest; theta is in its inverse.
    shape /= plan.clip
    ready = np.empty((len(rows), len(names) + intercept))
    np.matmul(rows, shape, out=ready[:, : len(names)])
    if intercept:
        ready[:, -1] = known / plan.clip
    descent = _Descent(plan, on_grid(ready / _LONGEST, _LONGEST * _GRID), labels, weights)
    theta = descent.run()
    excess = descent.excess(theta, (1 - session.confidence) / (session.queries or 1))
    scaled = theta[:, : len(names)] @ shape.T
    coefficients = scaled / length
    intercepts = -coefficients @ middle - scaled @ centre
    if intercept:
        intercepts += theta[:, -1] / plan.clip
    paid.record(
        json.dumps(
            {"coefficients": coefficients.tolist(), "intercepts": intercepts.tolist(), "excess": excess}
        )
    )
    return Fit(coefficients, intercepts, excess, plan)


class _Descent:
    """Rows on their grid, and the noisy steps over them."""

    def __init__(self, plan: FitPlan, rows: Matrix, labels: NDArray[np.intp], weights: Vector) -> None:
        self._plan, self._rows, self._labels, self._weights = plan, rows, labels, weights
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        self._caps = np.minimum(float(_SLOPE) ** 2, NORM * _BELOW / np.maximum(lengths, 1.0))
        self._points: list[Matrix] = []
        self._gradients: list[Matrix] = []

    def run(self) -> Matrix:
        """The average of the second half of the points; these, and the gradients that were told at them, are kept."""
        plan = self._plan
        theta = np.zeros((plan.outputs, self._rows.shape[1]))
        half = plan.steps // 2
        for t in range(plan.steps + 1):
            gradient = self.gradient(theta)
            if t > half:
                self._points.append(theta)
                self._gradients.append(gradient)
            theta = theta - plan.rate * plan.clip**2 * gradient
        return np.asarray(np.mean(self._points, axis=0))

    def gradient(self, theta: Matrix) -> Matrix:
        """The mean of all rows' clipped gradients, with noise."""
        total = np.asarray(add_gaussian(self.total(theta), self._plan.step_variance))
        return total / (self._plan.rows * float(NORM))

    def total(self, theta: Matrix) -> NDArray[np.int64]:
        """The exact sum of whole gradients, each of norm at most NORM."""
        sums = np.zeros(theta.shape, dtype=np.int64)
        for start in range(0, len(self._rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            rows = self._rows[part]
            slopes = self._slopes(rows @ theta.T / _GRID, part)
            sums += (slopes.T @ rows).astype(np.int64)
        return sums

    def _slopes(self, scores: Matrix, part: slice) -> Matrix:
        """Whole slopes: of length at most the row's cap, so that slope times row is at most NORM."""
        labels, weights, caps = self._labels[part], self._weights[part], self._caps[part]
        if self._plan.outputs == 1:
            slopes = (0.5 * (1 + np.tanh(scores[:, 0] / 2)) - labels) * weights
            # |slope| <= 1, so what is cut is cut by the row's cap alone.
            return np.trunc(np.clip(slopes * _SLOPE, -caps, caps))[:, None]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        slopes = powers / powers.sum(axis=1, keepdims=True)
        slopes[np.arange(len(labels)), labels] -= 1.0
        slopes *= weights[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
        factors = np.minimum(float(_SLOPE), caps * _BELOW / np.maximum(lengths, 1e-300))
        return np.asarray(np.trunc(slopes * factors[:, None]))

    def excess(self, theta: Matrix, beta: float) -> float:
        """Theorem 260, for two classes: by all gradients at the points of which theta is the average."""
        plan = self._plan
        if plan.outputs > 1:
            return math.inf
        points, gradients = (np.concatenate(found) for found in (self._points, self._gradients))
        count, rounding = len(points), 1.001 * _LONGEST / _SLOPE
        squares = np.einsum("ij,ij->i", points, points)
        walked = np.einsum("ij,ij->i", points, gradients)
        # The noise of the gradients along the points: a martingale, by its realised variance.
        spread = 1 + float(squares.mean())
        along = plan.sigma * math.sqrt(spread * (2 * math.log(2 / beta) + math.log(spread)) / count)
        across = float(np.linalg.norm(gradients.mean(axis=0)))
        across += noise_norm(theta.size, 1, plan.sigma / math.sqrt(count), beta) + rounding
        length = float(np.linalg.norm(theta))
        sizes = 2 * length * across + along + rounding * float(np.sqrt(squares).mean())
        bound = float(walked.mean()) + (sizes + 1e-9 * float(abs(walked).mean())) * ROUND_UP
        return max(bound, 0.0) if bound < math.log(2) else math.inf


def _rows(
    paid: Paid, schema: Schema, names: Sequence[str], target: str, weight: str | None
) -> tuple[Matrix, Vector, Vector]:
    """Features, labels from 0 on, and weights as parts of the largest declared; NULL is NaN, and weighs nothing."""
    wanted = [*names, target, *([] if weight is None else [weight])]
    blocks = paid.scan(schema.ordered(wanted))
    found = np.concatenate([decode(block, schema, wanted) for block in blocks])
    width = len(names)
    truth = found[:, width] - (bounds_of(schema, target)[0] if schema[target].kind == "integer" else 0.0)
    weights = np.ones(len(found))
    if weight is not None:
        weights = np.clip(np.nan_to_num(found[:, -1]) / bounds_of(schema, weight)[1], 0.0, 1.0)
    return np.ascontiguousarray(found[:, :width]), truth, weights


def _whitening(rows: Matrix, plan: FitPlan) -> Matrix:
    """The root of the inverse second moments, with twice the length of their noise added: more noise, less shape."""
    d = plan.features
    square = plan.short**2
    moments = noisy_gram(rows / plan.short, plan.shape_variance) * square
    floor = max(2 * math.sqrt(d) * gram_deviation(plan.shape_variance, plan.rows), 1e-4) * square
    values, vectors = np.linalg.eigh(moments)
    return np.asarray((vectors / np.sqrt(np.maximum(values, 0.0) + floor)) @ vectors.T)


def _class_weights(
    plan: FitPlan, labels: NDArray[np.intp], known: NDArray[np.bool_], given: Sequence[float] | str
) -> Vector:
    """A factor in [0,1] for each class: as declared, or the least noisy count over its own."""
    if not isinstance(given, str):
        factors = np.asarray(given, dtype=np.float64)
        return np.asarray(factors / factors.max())
    assert plan.count_variance is not None
    counts = np.bincount(labels[known], minlength=plan.classes).astype(np.int64)
    noisy = np.asarray(add_gaussian(counts, plan.count_variance)).astype(np.float64)
    noisy = np.maximum(noisy, plan.rows / (100 * plan.classes))
    return np.asarray(noisy.min() / noisy)
