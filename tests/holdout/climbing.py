"""An analyst who keeps what scored well, on labels that nothing predicts: every metric with its true value.

The models are random. In the end those whose scores were better than the median are put together, and the others the
other way round: on the holdout's own rows the last model is far better than any model is in the population.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout import ReusableHoldout
from holdfast.holdout.metric import Metric, auc, calibration_error, metric_named, ndcg, rmse, top_k

ROWS, LOOKS = 2000, 41
_RELEVANCES = (3.0, 2.0, 1.0, 0.0)
Array = NDArray[Any]


@dataclass(frozen=True)
class Metered:
    """A metric with labels that are drawn, models for them, and the truth.

    `shown` makes predictions of votes, numbers from -1 to 1: the greater, the more they speak for class 1.
    """

    metric: str | Metric
    truth: Callable[[Array], float]
    """What predictions are worth where labels are drawn anew."""
    labels: Callable[[np.random.Generator, int], Array] = lambda draw, rows: draw.integers(0, 2, rows)
    shown: Callable[[Array], Array] = lambda votes: (votes > 0).astype(np.int64)
    width: int = 1
    """How many numbers a model has for each row."""
    asked: dict[str, Any] = field(default_factory=dict)
    opened: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Metric:
        return metric_named(self.metric)


def _half(said: Array) -> float:
    return 0.5


def _squares(said: Array) -> float:
    return float(np.mean((said**2 + (1 - said) ** 2) / 2))


def _logs(said: Array) -> float:
    return float(-np.mean(np.log(said) + np.log(1 - said)) / 2)


def _f1(said: Array) -> float:
    share = float(np.mean(said))
    return share / (share + 0.5)


def _macro(said: Array) -> float:
    share = float(np.mean(said))
    return (share / (share + 0.5) + (1 - share) / (1.5 - share)) / 2


def _calibration(said: Array) -> float:
    bins = np.minimum((said * 5).astype(int), 4)
    return float(sum(abs(np.sum((0.5 - said)[bins == b])) for b in range(5)) / len(said))


def _ranking(said: Array) -> float:
    discounts = 1 / np.log2(np.arange(2, 4))
    best = float(np.array(_RELEVANCES[:2]) @ discounts)
    return float(
        np.mean([np.array(order[:2]) @ discounts for order in itertools.permutations(_RELEVANCES)]) / best
    )


def _chances(votes: Array) -> Array:
    """.1 or .9."""
    return np.where(votes > 0, 0.9, 0.1)


def _three(votes: Array) -> Array:
    """Chances of three classes: .6 for the one with the most votes."""
    chances = np.full(votes.shape, 0.2)
    chances[np.arange(len(votes)), votes.argmax(axis=1)] = 0.6
    return chances


def _three_classes(draw: np.random.Generator, rows: int) -> Array:
    return draw.integers(0, 3, rows)


METRICS: dict[str, Metered] = {
    "accuracy": Metered("accuracy", _half),
    "accuracy, votes": Metered("accuracy", _half, opened={"mode": "votes"}),
    "error": Metered("error", _half),
    "brier": Metered("brier", _squares, shown=_chances),
    "log-loss": Metered("log-loss", _logs, shown=_chances),
    "brier, three classes": Metered(
        "brier", lambda said: (0.44 - 2 / 3 + 1) / 2, _three_classes, _three, 3
    ),
    "log-loss, three classes": Metered(
        "log-loss", lambda said: -(math.log(0.6) + 2 * math.log(0.2)) / 3, _three_classes, _three, 3
    ),
    "squared-error": Metered("squared-error", _squares, shown=_chances),
    "absolute-error": Metered("absolute-error", _half, shown=_chances),
    "rmse": Metered(rmse(1.0), lambda said: math.sqrt(_squares(said)), shown=_chances),
    "squared-error, two outputs": Metered(
        "squared-error", _squares, lambda draw, rows: draw.integers(0, 2, (rows, 2)).astype(float), _chances, 2
    ),
    "top-2 of four": Metered(top_k(2), _half, lambda draw, rows: draw.integers(0, 4, rows), np.asarray, 4),
    "ndcg-2": Metered(
        ndcg(2), _ranking, lambda draw, rows: draw.permuted(np.tile(_RELEVANCES, (rows, 1)), axis=1), np.asarray, 4
    ),
    "precision": Metered("precision", _half),
    "recall": Metered("recall", lambda said: float(np.mean(said))),
    "f1": Metered("f1", _f1),
    "accuracy, weighted": Metered(
        "accuracy", _half, asked={"sample_weight": 1.0 + np.arange(ROWS) % 3, "most_weight": 3.0}
    ),
    "auc": Metered(auc(10), _half, shown=_chances),
    "balanced-accuracy": Metered("balanced-accuracy", _half),
    "macro-f1": Metered("macro-f1", _macro),
    "calibration-error": Metered(calibration_error(5), _calibration, shown=_chances),
    "accuracy, guesses": Metered("accuracy", _half, opened={"mode": "guesses", "alarms": 10, "answers": LOOKS - 10}),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Climb:
    """What one analyst was told: how often an interval did not hold the truth, and the last of them."""

    false: int
    halves: float
    """The mean half-width."""
    last_error: float
    """How far the last value was from the truth, in the direction of better scores."""
    narrow: int
    """How many would not have held it, were they a quarter as wide."""
    ordinary: bool
    """Whether the interval of an ordinary holdout does not hold the truth of its last model, after the same attack on
    exact scores: by Hoeffding's inequality and a union over all looks. Never, where a score is no mean of rows."""


def climb(case: Metered, draw: np.random.Generator, looks: int = LOOKS, rows: int = ROWS) -> Climb:
    """One run of the analyst, on a guarded holdout and on one that tells its scores exactly."""
    kind, labels = case.kind, case.labels(draw, rows)
    models = draw.uniform(-1, 1, (looks - 1, rows, *([case.width] if case.width > 1 else [])))
    models = np.sign(models) if case.width < 3 else models
    opening = {"mode": "gaussian"} | case.opened
    cost = kind.looks + ("sample_weight" in case.asked)
    answers = []
    with ReusableHoldout(labels, metric=kind, queries=looks * cost, **opening) as guarded:

        def told(votes: Array) -> float:
            said = case.shown(votes)
            answer = guarded.score(said, **case.asked)
            truth = case.truth(said)
            answers.append((answer.low, answer.value, answer.high, truth))
            return answer.value

        _together(told, models, kind.greater_is_better)
    last: list[Array] = []

    def exact(votes: Array) -> float:
        last.append(case.shown(votes))
        return _exactly(kind, last[-1], labels, case.asked.get("sample_weight"))

    final = _together(exact, models, kind.greater_is_better)
    reach = (kind.high - kind.low) * math.sqrt(math.log(2 * looks / 0.05) / (2 * rows))
    low, value, high, truth = np.array(answers).T
    better = 1 if kind.greater_is_better else -1
    middle, quarter = (low + high) / 2, (high - low) / 8
    return Climb(
        int(((truth < low) | (truth > high)).sum()),
        float(np.mean(high - low) / 2),
        float(better * (value[-1] - truth[-1])),
        int((abs(middle - truth) > quarter).sum()),
        kind.plain and abs(final - case.truth(last[-1])) > reach,
    )


def _together(told: Callable[[Array], float], models: Array, greater: bool) -> float:
    """The score of the models that did well put together, and of the others the other way round."""
    found = np.array([told(votes) for votes in models])
    sign = np.where((found > np.median(found)) == greater, 1.0, -1.0)
    return told(np.clip(np.tensordot(sign, models, 1) / math.sqrt(len(models)), -1, 1))


def _exactly(kind: Metric, said: Array, labels: Array, weights: Array | None) -> float:
    """A score of the rows themselves, by the textbook."""
    from sklearn import metrics

    if kind.table is not None:
        if kind.name.startswith("calibration-error"):
            bins = np.minimum((said * 5).astype(int), 4)
            return float(sum(abs(np.sum((labels - said)[bins == b])) for b in range(5)) / len(said))
        if kind.name == "auc":
            return float(metrics.roc_auc_score(labels, np.floor(said * 10)))
        if kind.name == "macro-f1":
            return float(metrics.f1_score(labels, said, average="macro"))
        return float(metrics.balanced_accuracy_score(labels, said))
    if kind.parts:
        a, b = (np.mean(part(said, labels)) for part in kind.parts)
        return float(a / (a + b))
    assert kind.values is not None
    each = np.asarray(kind.values(said, labels), dtype=float)
    if each.ndim == 2:
        each = each.mean(axis=1)
    return kind.on_scale(float(np.average(each, weights=weights)))
