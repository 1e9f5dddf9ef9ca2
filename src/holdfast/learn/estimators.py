"""scikit-learn estimators: private logistic, softmax and linear regression, and scaling. Needs the extra "sklearn"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OneToOneFeatureMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.check import one_of, positive, whole
from holdfast.errors import InputError
from holdfast.learn.clipped_descent import fit as fit_classifier
from holdfast.learn.gram_regression import regress
from holdfast.learn.linear_loss import LinearLoss, logistic, squared
from holdfast.ledger import MemoryLedger
from holdfast.optimize import minimize
from holdfast.query.schema import Boolean, Integer, Real, Schema
from holdfast.session.session import Session
from holdfast.session.table import open as open_table

Table = NDArray[np.float64]
Bounds = tuple[float | Sequence[float], float | Sequence[float]]

_LAST_DIGITS = 1e-9
"""So far beyond a bound, as a part of its range, a feature counts as on it: scaling rounds."""
_RADIUS = 10.0
"""Of the ball of parameters where votes descend, in scaled features: pure epsilon only."""


class _Private(BaseEstimator):  # type: ignore[misc]  # the base class has no types
    """What all share: declared bounds, and one session with a budget of its own for each fit.

    Guarantee: (epsilon, delta)-DP for what is fitted, replacing one row by another, if bounds and parameters were
    fixed without looking at the rows. What a refusal tells, and the set of classes if it is not declared, are not
    covered: the caller holds the rows.
    """

    epsilon: float
    delta: float
    bounds: Bounds
    outside: str

    def _features(self, X: ArrayLike, *, reset: bool = True) -> Table:
        """Dense and finite features; refused with advice where they cannot be used."""
        return self._dense(
            validate_data(self, X, dtype=np.float64, ensure_all_finite=False, accept_sparse=True, reset=reset)
        )

    def _both(self, X: ArrayLike, y: Any) -> tuple[Table, NDArray[Any]]:
        """Features and target to fit."""
        table, target = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite=False, accept_sparse=True
        )
        return self._dense(table), target

    def _dense(self, table: Any) -> Table:
        dense = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
        if not np.isfinite(dense).all():
            raise InputError("Input X contains NaN or infinity; drop those rows or fill them in first")
        return dense

    def _inside(self, table: Table) -> tuple[Table, Table, Table]:
        """The features cut to their bounds, and the bounds of each."""
        try:
            low, high = (
                np.broadcast_to(np.asarray(end, dtype=np.float64), table.shape[1]) for end in self.bounds
            )
        except (TypeError, ValueError):
            low = high = np.array([math.nan])
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InputError(
                "expected finite bounds (low, high) with low < high, for all or each feature, got others"
            )
        slack = _LAST_DIGITS * (high - low)
        if (
            one_of("outside", self.outside, ("refuse", "clip")) == "refuse"
            and ((table < low - slack) | (table > high + slack)).any()
        ):
            raise InputError(
                "expected features inside the declared bounds, got some outside; scale them with public numbers or a "
                'PrivateScaler, declare wider bounds=, or say outside="clip"'
            )
        return np.clip(table, low, high), low, high

    def _session(
        self,
        table: Table,
        more: Mapping[str, tuple[Any, NDArray[Any]]],
        queries: int = 1,
        only: str | None = None,
    ) -> tuple[Session, list[str]]:
        """A session on these rows with the whole budget, and the names of the features; `more` are other columns."""
        rows, low, high = self._inside(table)
        names = [f"x{j}" for j in range(rows.shape[1])]
        schema = Schema.from_mapping(
            {name: Real(float(low[j]), float(high[j])) for j, name in enumerate(names)}
            | {name: column for name, (column, _) in more.items()}
        )
        columns: dict[str, Any] = {name: rows[:, j] for j, name in enumerate(names)}
        opened = open_table(
            columns | {name: values for name, (_, values) in more.items()}, schema, ledger=MemoryLedger()
        )
        pure = self.delta == 0
        return (
            opened.session(
                epsilon=self.epsilon,
                delta=None if pure else self.delta,
                queries=queries,
                target="table",
                only=None if pure else only,
            ),
            names,
        )

    def _linear_scores(self, X: ArrayLike) -> Table:
        """coef_ times new rows, plus intercept_: one column for each score."""
        check_is_fitted(self)
        table = self._features(X, reset=False)
        return np.asarray(table @ np.atleast_2d(self.coef_).T + np.ravel(self.intercept_))

    def _by_votes(self, session: Session, loss: LinearLoss) -> tuple[Table, float]:
        """Pure epsilon: descent by votes, certified but wide."""
        found = minimize(session, loss, mechanism="votes")
        self.excess_, self.certificate_ = found.excess, str(found.plan)
        return loss.coefficients(found.theta)


class PrivateLogisticRegression(ClassifierMixin, _Private):  # type: ignore[misc]
    """Logistic regression, for more than two classes softmax regression: `coef_`, `intercept_`, `classes_`.

    Parameters: `epsilon`, `delta` (0: pure, two classes only, by votes, and much less accurate); `bounds`, the least
    and greatest value of the features, for all or for each; `outside`, what to do with what lies beyond: "refuse"
    or "clip"; `classes`, the labels that may be (default: those that are, which is not private); `fit_intercept`;
    `class_weight`, a dict or "balanced" (by noisy counts); `weight_bound`, the largest sample weight; `iterations`
    (default 20). Steps, clip and step size follow from rows, features and budget alone: docs/learn.md.

    `excess_` is the certified excess of `holdfast.learn.clipped_descent.Fit`, on these rows and for this one fit;
    `certificate_` says it in words, often "nothing certified". Nothing is claimed of the population.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Bounds = (-1.0, 1.0),
        classes: Sequence[Any] | None = None,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        weight_bound: float = 1.0,
        iterations: int | None = None,
        outside: str = "refuse",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.weight_bound = weight_bound
        self.iterations = iterations
        self.outside = outside

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> PrivateLogisticRegression:
        table, target = self._both(X, y)
        check_classification_targets(target)
        self.classes_, labels = self._labels(target)
        weights, factors = self._weights(sample_weight, len(table)), self._factors()
        if self.delta == 0:
            if len(self.classes_) > 2 or weights is not None or factors is not None or not self.fit_intercept:
                raise InputError(
                    "expected two classes without weights and with an intercept for delta=0, got another; give a "
                    "delta= such as 1e-6"
                )
            session, names = self._session(table, {"y": (Boolean(), labels == 1)})
            slopes, intercept = self._by_votes(
                session, logistic(session.schema, names, "y = true", radius=_RADIUS)
            )
            self.coef_, self.intercept_ = slopes[None, :], np.array([intercept])
            return self
        more: dict[str, tuple[Any, NDArray[Any]]] = {"y": (Integer(0, len(self.classes_) - 1), labels)}
        if weights is not None:
            more["w"] = (Real(0.0, positive("weight_bound", self.weight_bound)), weights)
        session, names = self._session(table, more, only="gaussian")
        found = fit_classifier(
            session,
            names,
            "y",
            len(self.classes_),
            steps=self.iterations,
            intercept=self.fit_intercept,
            weight=None if weights is None else "w",
            class_weights=factors,
        )
        self.coef_, self.intercept_ = found.coefficients, found.intercepts
        self.plan_, self.excess_, self.certificate_ = found.plan, found.excess, found.certificate
        self.n_iter_ = found.plan.steps
        return self

    def _labels(self, target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The classes in order, and the place of each row's among them."""
        kinds = np.unique(target if self.classes is None else np.asarray(self.classes))
        places = np.searchsorted(kinds, target).clip(0, len(kinds) - 1)
        if not (kinds[places] == target).all():
            raise InputError("expected labels among classes=, got others; declare all that may be")
        if len(kinds) < 2:
            raise InputError(
                "expected at least two classes, got one class; declare classes=, or give other rows"
            )
        return kinds, places

    def _weights(self, given: ArrayLike | None, rows: int) -> Table | None:
        if given is None:
            return None
        weights = np.asarray(given, dtype=np.float64)
        most = positive("weight_bound", self.weight_bound)
        if weights.ndim == 0:
            weights = np.full(rows, float(weights))
        if weights.shape != (rows,):
            raise InputError(f"expected {rows} sample weights, got an array of shape {weights.shape}")
        if not (weights >= 0).all() or not (weights > 0).any():
            raise InputError("expected sample weights of 0 or more, not all of them zero, got others")
        if self.outside == "refuse" and (weights > most * (1 + _LAST_DIGITS)).any():
            raise InputError(
                "expected sample weights up to weight_bound=, got larger ones; declare the largest that may be, or say "
                'outside="clip"'
            )
        return np.minimum(weights, most)

    def _factors(self) -> Sequence[float] | str | None:
        given = self.class_weight
        if given is None or isinstance(given, str):
            return None if given is None else one_of("class_weight", given, ("balanced",))
        if not isinstance(given, Mapping):
            raise InputError('expected a dict or "balanced" for class_weight, got another thing')
        return [positive("class_weight", given.get(kind, 1.0)) for kind in self.classes_.tolist()]

    def decision_function(self, X: ArrayLike) -> Table:
        scores = self._linear_scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        scores = self.decision_function(X)
        places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[places]
        return chosen

    def predict_proba(self, X: ArrayLike) -> Table:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            high = 0.5 * (1 + np.tanh(scores / 2))
            return np.stack([1 - high, high], axis=1)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags


class PrivateLinearRegression(RegressorMixin, _Private):  # type: ignore[misc]
    """Least squares by one noisy matrix of second moments: `coef_`, `intercept_`, and what is known of each.

    `target_bounds` are declared like the features' `bounds`; targets beyond them are treated by the same rule.
    `coef_intervals_` are asymptotic 95% intervals for the population, each by itself: noise and sampling, errors of one
    variance. `coef_certified_` is certified: with probability 95% all coefficients of the least squares fit to these
    very rows are within it; infinite where nothing is certified. `ridge_` is what was added against the noise.
    With `delta=0` it descends by votes, and has neither.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Bounds = (-1.0, 1.0),
        target_bounds: tuple[float, float] = (-1.0, 1.0),
        fit_intercept: bool = True,
        outside: str = "refuse",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.fit_intercept = fit_intercept
        self.outside = outside

    def fit(self, X: ArrayLike, y: ArrayLike) -> PrivateLinearRegression:
        table, target = self._both(X, y)
        target = np.asarray(target, dtype=np.float64)
        if not np.isfinite(target).all():
            raise InputError("Input y contains NaN or infinity; drop those rows or fill them in first")
        low, high = (float(end) for end in self.target_bounds)
        if not (math.isfinite(high - low) and low < high):
            raise InputError("expected finite target_bounds (low, high) with low < high, got others")
        slack = _LAST_DIGITS * (high - low)
        if self.outside == "refuse" and ((target < low - slack) | (target > high + slack)).any():
            raise InputError(
                'expected targets inside target_bounds=, got some outside; declare wider ones, or say outside="clip"'
            )
        column = Real(low, high), np.clip(target, low, high)
        session, names = self._session(table, {"y": column}, only="gaussian")
        if self.delta == 0:
            if not self.fit_intercept:
                raise InputError("expected an intercept for delta=0, got none; give a delta= such as 1e-6")
            loss = squared(session.schema, names, "y", radius=_RADIUS)
            slopes, intercept = self._by_votes(session, loss)
            self.coef_, self.intercept_ = slopes, float(intercept)
            return self
        found = regress(session, names, "y", intercept=self.fit_intercept)
        self.coef_, self.intercept_ = found.coefficients[:-1], float(found.coefficients[-1])
        self.coef_intervals_, self.coef_certified_ = found.intervals[:-1], found.certified[:-1]
        self.intercept_interval_, self.ridge_ = found.intervals[-1], found.ridge
        return self

    def predict(self, X: ArrayLike) -> Table:
        return np.asarray(self._linear_scores(X)[:, 0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags


class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, _Private):  # type: ignore[misc]
    """Features scaled to [-1, 1] between two private quantiles of each, and cut there; a budget of its own.

    Guarantee: (epsilon, delta)-DP for `low_` and `high_`; a pipeline with a model costs the sum of both budgets.
    `bounds` are wide ones, declared; `rank` is the share of rows that may lie beyond, on either side.
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.5,
        delta: float = 1e-7,
        bounds: Bounds = (-1000.0, 1000.0),
        rank: float = 0.05,
        outside: str = "clip",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.rank = rank
        self.outside = outside

    def fit(self, X: ArrayLike, y: Any = None) -> PrivateScaler:
        table = self._features(X)
        if not 0 < self.rank < 0.5:
            raise InputError("expected a rank between 0 and 1/2, got another; 0.05 is usual")
        session, names = self._session(table, {}, queries=whole("queries", 2 * table.shape[1]))
        ends = [[session.quantile(name, at).value for name in names] for at in (self.rank, 1 - self.rank)]
        low, high = np.sort(np.array(ends, dtype=np.float64), axis=0)
        _, first, last = self._inside(table)
        least = (last - first) / 1024  # a feature that hardly moves is not blown up
        middle = (low + high) / 2
        half = np.maximum(high - low, least) / 2
        self.low_, self.high_ = middle - half, middle + half
        return self

    def transform(self, X: ArrayLike) -> Table:
        check_is_fitted(self)
        table = self._features(X, reset=False)
        scaled = (table - (self.high_ + self.low_) / 2) * (2.0 / (self.high_ - self.low_))
        return np.asarray(np.clip(scaled, -1.0, 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags
