"""A scikit-learn scorer that looks at the holdout, not at the fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.holdout.reusable import AnyMetric, ReusableHoldout


class HoldoutScorer:
    """`scoring=` for GridSearchCV, RandomizedSearchCV and cross_val_score.

    Each call costs a look and returns the released value, larger is better; `answers` keeps the intervals.
    The fold's own rows are ignored: what is scored is the fitted model on the holdout's features, and with
    votes only on the rows that are drawn.
    Requires: features with a row for each label; a state folder if n_jobs starts other processes, where
    `answers` stays empty and `holdout.history()` has them all.
    """

    def __init__(
        self, holdout: ReusableHoldout, metric: AnyMetric | None, features: Any, method: str = "predict"
    ) -> None:
        if features is None:
            raise InputError("a scorer needs the holdout's features; give features= here or to the holdout")
        if len(features) != holdout.rows:
            raise InputError(f"features must have {holdout.rows} rows like the labels, got {len(features)}")
        self.holdout = holdout
        self.metric, self.features, self.method = metric, features, method
        self.answers: list[Any] = []

    def __call__(self, estimator: Any, features: Any = None, labels: Any = None, **ignored: Any) -> float:
        from holdfast.holdout.metric import metric_named

        predict = getattr(estimator, self.method)

        def said(ids: NDArray[np.int64]) -> NDArray[Any]:
            given = np.asarray(predict(_take(self.features, ids)))
            # A classifier's chances come with one column for each class; the last is that of label 1.
            return given[:, -1] if given.ndim == 2 else given

        answer = self.holdout.score(said, metric=self.metric)
        self.answers.append(answer)
        kind = self.holdout.metric if self.metric is None else metric_named(self.metric)
        return float(answer.value if kind.greater_is_better else -answer.value)


def _take(features: Any, ids: NDArray[np.int64]) -> Any:
    """Some rows of an array, a data frame or a list."""
    if hasattr(features, "iloc"):
        return features.iloc[ids]
    if isinstance(features, list):
        return [features[i] for i in ids.tolist()]
    return features[ids]
