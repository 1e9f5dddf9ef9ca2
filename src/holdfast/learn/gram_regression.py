"""Least squares by sufficient statistics: one release of the second moments of features and target, then arithmetic.

Notation: v = (x, 1, y) with features and target scaled from their declared bounds to [-1,1], p of them; G the mean
of vv', E its noise, with scale sigma in each entry.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive
from holdfast.errors import BudgetError, MechanismError
from holdfast.learn.labelled_rows import decode, known_columns
from holdfast.learn.linear_loss import scales
from holdfast.learn.moments import GRAM_SENSITIVITY_SQUARED, gram_deviation, gram_rounding, noisy_gram
from holdfast.mechanisms.values import ROUND_UP, round_up
from holdfast.optimize.certificate import noise_norm
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import Gaussian
from holdfast.privacy.filter import UNITS
from holdfast.validity.told import gaussian_told

if TYPE_CHECKING:
    from holdfast.session.session import Session

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Regression:
    """A linear model in the columns' own units, the intercept last.

    `certified`: with the session's confidence, this one by itself, every coefficient of the least squares fit to these
    very rows is within this of the one given, all at once; infinite where nothing is certified.
    `standard_errors` are asymptotic: of the noise, and of drawing the rows from a population with errors of one
    variance.
    """

    coefficients: Vector
    certified: Vector
    standard_errors: Vector
    confidence: float
    ridge: float

    @property
    def intervals(self) -> Matrix:
        """(low, high) of each coefficient on the population, each by itself and asymptotically, at the confidence."""
        reach = NormalDist().inv_cdf((1 + self.confidence) / 2) * self.standard_errors
        return np.stack([self.coefficients - reach, self.coefficients + reach], axis=1)


def regress(
    session: Session,
    features: Sequence[str],
    target: str,
    *,
    rho: float | None = None,
    intercept: bool = True,
) -> Regression:
    """Least squares of a column of numbers by others; NULL in one of them takes a row out.

    Guarantee: charged once, before a row is read; private by the session's filter. `Regression.certified` by
    docs/theorems.md, Theorem 45. A ridge of what the noise may hide is added where the features' least
    eigenvalue is smaller, after Wang 2018 (AdaSSP).
    Requires: declared bounds that were fixed without the rows.
    Cost: `events.Gaussian(GRAM_SENSITIVITY_SQUARED, variance)`; one query of the session.
    """
    schema, names = session.schema, known_columns(session.schema, features)
    wanted = [*names, *known_columns(schema, [target])]
    middle, length = scales(schema, wanted, intercept)
    terms = session._terms
    variance = _variance(session, rho)
    tells = units_told(
        gaussian_told(GRAM_SENSITIVITY_SQUARED / 2, math.sqrt(variance) / terms.rows), terms.rows
    )
    paid = session.pay(
        "regress",
        f"regress {target} by {', '.join(names)}",
        Gaussian(GRAM_SENSITIVITY_SQUARED, variance),
        queries=1,
        tells=tells,
    )
    blocks = paid.scan(schema.ordered(wanted))
    found = np.concatenate([decode(block, schema, wanted) for block in blocks])
    scaled = np.clip((found - middle) / length, -1.0, 1.0)
    rows = np.insert(scaled, len(names), 1.0, axis=1) if intercept else scaled
    rows[np.isnan(rows).any(axis=1)] = 0.0
    p = rows.shape[1]
    theta, covariance, reach, ridge = _solve(
        noisy_gram(rows / math.sqrt(p), variance) * p,
        gram_deviation(variance, terms.rows) * p,
        gram_rounding(p) * p,
        terms.rows,
        (1 - session.confidence) / (session.queries or 1),
    )
    # To own units: the slopes, and below them the intercept, which the middles of the bounds move.
    slopes = length[-1] / length[:-1]
    change = np.vstack([np.diag(slopes), -slopes * middle[:-1]])
    if intercept:
        change = np.column_stack([change, np.append(np.zeros(len(names)), length[-1])])
    coefficients = change @ theta
    coefficients[-1] += middle[-1]
    certified = np.linalg.norm(change, axis=1) * reach * ROUND_UP
    errors = np.sqrt(np.einsum("ij,jk,ik->i", change, covariance, change))
    paid.record(json.dumps({"coefficients": coefficients.tolist()}))
    return Regression(coefficients, certified, errors, session.confidence, ridge)


def _variance(session: Session, rho: float | None) -> Fraction:
    """The noise that the budget pays for: all that is left of it, or rho."""
    terms, gdp = session._terms, session.currency == "gdp"
    if session.currency == "pure":
        raise MechanismError(
            "a regression has Gaussian noise, which this session's budget (pure epsilon) cannot count; give rho="
        )
    units = terms.session.limit_units - session._moment().session.units
    if rho is not None:
        units = math.floor(Fraction(positive("rho", rho)) * UNITS * (2 if gdp else 1))
    if units <= 0:
        raise BudgetError("this budget does not pay for a regression; give more")
    exact = Fraction(units, UNITS) / terms.rows_per_unit**2
    squared = Fraction(GRAM_SENSITIVITY_SQUARED)
    return round_up(squared / exact) + 4 if gdp else round_up(squared / (2 * exact))


def _solve(
    moments: Matrix, sigma: float, rounding: float, rows: int, beta: float
) -> tuple[Vector, Matrix, float, float]:
    """(coefficients, their asymptotic covariance, the certified distance to those of the rows, the ridge).

    Theorem 45: |theta - least squares| <= (e sqrt(1 + |theta|^2) + ridge |theta|)/(least eigenvalue - e), e >= |E|.
    """
    p = len(moments)
    inner, outer = moments[:-1, :-1], moments[:-1, -1]
    values, vectors = np.linalg.eigh(inner)
    least = float(values[0])
    likely = 2 * math.sqrt(p) * sigma
    ridge = max(0.0, likely - least)
    inverse = np.linalg.inv(inner + ridge * np.eye(p - 1))
    theta = inverse @ outer
    length = float(np.linalg.norm(theta))
    net = 4 * sigma * math.sqrt(p * math.log(9) + math.log(2 / beta))
    error = min(net, math.sqrt(2) * noise_norm(p * (p + 1) // 2, 1, sigma, beta)) + rounding
    gap = least - error
    reach = (error * math.hypot(1.0, length) + ridge * length) / gap * ROUND_UP if gap > 0 else math.inf
    residual = max(float(moments[-1, -1] - 2 * theta @ outer + theta @ inner @ theta), sigma)
    noise = sigma**2 * ((1 + length**2) * np.eye(p - 1) + np.outer(theta, theta))
    seen = (vectors * np.maximum(values, 0.0)) @ vectors.T  # noise can make an eigenvalue negative
    covariance = inverse @ (noise + residual / rows * seen) @ inverse
    return theta, covariance, reach, ridge
