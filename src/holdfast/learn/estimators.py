"""scikit-learn estimators: private logistic and linear regression. Needs the extra "sklearn"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.check import one_of
from holdfast.errors import InputError
from holdfast.learn.linear_loss import LinearLoss, logistic, squared
from holdfast.ledger import MemoryLedger
from holdfast.optimize import Minimum, minimize
from holdfast.query.schema import Boolean, Real, Schema
from holdfast.session.table import open as open_table

Table = NDArray[np.float64]
Bounds = tuple[float | Sequence[float], float | Sequence[float]]


class _PrivateLinear(BaseEstimator):  # type: ignore[misc]  # the base class has no types
    """What the two estimators share: declared bounds, one session, one descent.

    Parameters: `epsilon`, `delta` (0 means pure epsilon-DP, by votes); `bounds`, the least and greatest value of
    the features, for all or for each; `radius` of the ball of parameters in scaled features; `penalty`, the
    weight of ||theta||^2/2; `clip`, the norm at which scaled rows are cut (default: never); `iterations`
    (default: planned); `outside`, what to do with features beyond their bounds: "refuse" or "clip".

    Guarantee: (epsilon, delta)-DP for the coefficients, if bounds and parameters, and so the loss, were fixed without
    looking at the rows. What a refusal tells, and the set of classes, are not covered: the caller holds the rows.
    `excess_` speaks of these rows alone, and of this one fit; nothing is claimed of the population.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Bounds = (-1.0, 1.0),
        radius: float = 10.0,
        penalty: float = 0.0,
        clip: float | None = None,
        iterations: int | None = None,
        mechanism: str | None = None,
        outside: str = "refuse",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.radius = radius
        self.penalty = penalty
        self.clip = clip
        self.iterations = iterations
        self.mechanism = mechanism
        self.outside = outside

    def _given(self, X: ArrayLike, y: ArrayLike) -> tuple[Table, Any]:
        """Features and target to fit; refused with advice where they cannot be used."""
        table, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        return _finite(table), target

    def _scores(self, X: ArrayLike) -> Table:
        """coef_ times new rows, plus intercept_."""
        check_is_fitted(self)
        table = _finite(validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False))
        scores: Table = table @ np.ravel(self.coef_) + float(np.ravel(self.intercept_)[0])
        return scores

    def _inside(self, table: Table) -> tuple[Table, Table, Table]:
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=np.float64), table.shape[1]) for end in self.bounds
        )
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InputError(
                "expected finite bounds (low, high) with low < high, for all or each feature, got others"
            )
        if (
            one_of("outside", self.outside, ("refuse", "clip")) == "refuse"
            and ((table < low) | (table > high)).any()
        ):
            raise InputError(
                "expected features inside the declared bounds, got some outside; scale them with public numbers, "
                'declare wider bounds=, or say outside="clip"'
            )
        return np.clip(table, low, high), low, high

    def _descend(
        self, table: Table, target: NDArray[Any], column: Boolean | Real
    ) -> tuple[LinearLoss, Minimum]:
        rows, low, high = self._inside(table)
        names = [f"x{j}" for j in range(rows.shape[1])]
        features = {name: Real(float(low[j]), float(high[j])) for j, name in enumerate(names)}
        schema = Schema.from_mapping({**features, "y": column})
        columns: dict[str, Any] = {name: rows[:, j] for j, name in enumerate(names)}
        how: dict[str, Any] = {"radius": self.radius, "penalty": self.penalty, "clip": self.clip}
        if isinstance(column, Boolean):
            loss = logistic(schema, names, "y = true", **how)
        else:
            loss = squared(schema, names, "y", **how)
        pure = self.delta == 0
        only = None if pure or self.mechanism == "votes" else "gaussian"
        # Each fit has a budget of its own, by its parameters.
        session = open_table({**columns, "y": target}, schema, ledger=MemoryLedger()).session(
            epsilon=self.epsilon, delta=None if pure else self.delta, queries=1, target="table", only=only
        )
        found = minimize(session, loss, iterations=self.iterations, mechanism=self.mechanism)
        self.plan_, self.excess_, self.n_iter_ = found.plan, found.excess, found.plan.iterations
        return loss, found


def _finite(table: Table) -> Table:
    if not np.isfinite(table).all():
        raise InputError("Input X contains NaN or infinity; drop those rows or fill them in first")
    return table


class PrivateLogisticRegression(ClassifierMixin, _PrivateLinear):  # type: ignore[misc]
    """Logistic regression for two classes: `coef_`, `intercept_`, and `excess_`, the certified excess of the mean
    loss over the best in the ball, on these rows."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> PrivateLogisticRegression:
        table, target = self._given(X, y)
        check_classification_targets(target)
        self.classes_ = np.unique(target)
        if len(self.classes_) != 2:
            few = "one class" if len(self.classes_) == 1 else f"{len(self.classes_)} classes"
            raise InputError(
                f"Only binary classification is supported. The type of the target has {few}; two are needed"
            )
        loss, found = self._descend(table, target == self.classes_[1], Boolean())
        slopes, intercept = loss.coefficients(found.theta)
        self.coef_, self.intercept_ = slopes[None, :], np.array([intercept])
        return self

    def decision_function(self, X: ArrayLike) -> Table:
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        positive = self._scores(X) > 0
        chosen: NDArray[Any] = self.classes_[positive.astype(int)]
        return chosen

    def predict_proba(self, X: ArrayLike) -> Table:
        high = 0.5 * (1 + np.tanh(self.decision_function(X) / 2))
        return np.stack([1 - high, high], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        return tags


class PrivateLinearRegression(RegressorMixin, _PrivateLinear):  # type: ignore[misc]
    """Least squares. `target_bounds` are declared like the features' `bounds`; targets beyond them are treated by
    the same rule."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Bounds = (-1.0, 1.0),
        target_bounds: tuple[float, float] = (-1.0, 1.0),
        radius: float = 10.0,
        penalty: float = 0.0,
        clip: float | None = None,
        iterations: int | None = None,
        mechanism: str | None = None,
        outside: str = "refuse",
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            radius=radius,
            penalty=penalty,
            clip=clip,
            iterations=iterations,
            mechanism=mechanism,
            outside=outside,
        )
        self.target_bounds = target_bounds

    def fit(self, X: ArrayLike, y: ArrayLike) -> PrivateLinearRegression:
        table, target = self._given(X, y)
        target = np.asarray(target, dtype=np.float64)
        if not np.isfinite(target).all():
            raise InputError(
                "Input y contains NaN or infinity; drop those rows or fill them in before fitting"
            )
        low, high = (float(end) for end in self.target_bounds)
        if not (math.isfinite(high - low) and low < high):
            raise InputError("expected finite target_bounds (low, high) with low < high, got others")
        if self.outside == "refuse" and ((target < low) | (target > high)).any():
            raise InputError(
                'expected targets inside target_bounds=, got some outside; declare wider ones, or say outside="clip"'
            )
        loss, found = self._descend(table, np.clip(target, low, high), Real(low, high))
        slopes, intercept = loss.coefficients(found.theta)
        self.coef_, self.intercept_ = slopes, float(intercept)
        return self

    def predict(self, X: ArrayLike) -> Table:
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = True
        return tags
