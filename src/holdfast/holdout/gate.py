"""Gates for test suites: a model passes only if the holdout is sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.session.answer import Answer

if TYPE_CHECKING:
    from holdfast.holdout.predictions import Predictions
    from holdfast.holdout.reusable import AnyMetric, ReusableHoldout


def require(
    holdout: ReusableHoldout,
    predictions: Predictions,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    metric: AnyMetric | None = None,
    key: str | None = None,
) -> Answer:
    """The score, if its whole interval clears the bar; AssertionError otherwise, as a pytest test wants it.

    Give `key` (the commit, say), so that a re-run of the same test takes no second look. Costs one look.
    """
    answer = holdout.score(predictions, metric=metric, key=key)
    if at_least is not None and answer.low < at_least:
        raise AssertionError(f"{answer} is not surely at least {at_least:g}")
    if at_most is not None and answer.high > at_most:
        raise AssertionError(f"{answer} is not surely at most {at_most:g}")
    return answer


def require_no_worse(
    holdout: ReusableHoldout,
    new: Predictions,
    old: Predictions,
    *,
    by: float,
    metric: AnyMetric | None = None,
    key: str | None = None,
) -> Answer:
    """The difference, if the new model is surely not worse than the old one by more than `by`. One look."""
    from holdfast.holdout.metric import metric_named

    kind = holdout.metric if metric is None else metric_named(metric)
    answer = holdout.compare(new, old, metric=metric, key=key)
    worst = answer.low if kind.greater_is_better else -answer.high
    if worst < -by:
        raise AssertionError(f"{answer}: the new model may be worse by more than {by:g}")
    return answer
