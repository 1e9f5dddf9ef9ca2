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
    votes only on the rows that are drawn. The model is tried on two rows first, so that one that breaks, or has
    other classes, costs no look.
    Requires: features with a row for each label; a ledger in a file if n_jobs starts other processes, where
    `answers` stays empty and `holdout.history()` has them all.
    """

    def __init__(
        self, holdout: ReusableHoldout, metric: AnyMetric | None, features: Any, method: str = "predict"
    ) -> None:
        if features is None:
            raise InputError(
                "expected the holdout's features, got none; give features= here or to the holdout"
            )
        if len(features) != holdout.rows:
            raise InputError(f"expected features of {holdout.rows} rows like the labels, got {len(features)}")
        self.holdout = holdout
        self.metric, self.features, self.method = metric, features, method
        self.answers: list[Any] = []

    def __call__(self, estimator: Any, features: Any = None, labels: Any = None, **ignored: Any) -> float:
        from holdfast.holdout.metric import metric_named

        predict = getattr(estimator, self.method)
        kind = self.holdout.metric if self.metric is None else metric_named(self.metric)
        chances = kind.wants == "chances"
        if chances:
            self._refuse_classes(estimator)

        def said(ids: NDArray[np.int64]) -> NDArray[Any]:
            given = np.asarray(predict(_take(self.features, ids)))
            # A classifier's chances come with a column for each class; other metrics want that of label 1.
            return given[:, 1] if given.shape[1:] == (2,) and not chances else given

        answer = self.holdout.score(said, metric=kind)
        self.answers.append(answer)
        return float(answer.value if kind.greater_is_better else -answer.value)

    def _refuse_classes(self, estimator: Any) -> None:
        """Before the look: columns of chances must belong to the holdout's classes."""
        known = getattr(estimator, "classes_", None)
        if known is not None and list(known) != list(self.holdout.classes):
            raise InputError(
                f"expected a model of the holdout's {len(self.holdout.classes)} classes, in the same order, "
                f"got one of {len(known)}; fit it on rows of all of them"
            )


def _take(features: Any, ids: NDArray[np.int64]) -> Any:
    """Some rows of an array, a data frame or a list."""
    if hasattr(features, "iloc"):
        return features.iloc[ids]
    if isinstance(features, list):
        return [features[i] for i in ids.tolist()]
    return features[ids]
