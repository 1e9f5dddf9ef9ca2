"""Every way in which a holdout lets something out about its labels.

A new metric, method or mode needs a line here; tests/laws/test_holdout_charges.py notices if it has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout import ReusableHoldout
from holdfast.holdout.metric import METRICS, Metric, top_k
from holdfast.session.answer import Answer

ROWS = 120
TWO = np.arange(ROWS) % 2
THREE = np.arange(ROWS) % 3
NUMBERS = np.linspace(0.0, 1.0, ROWS)
QUERIES = np.arange(3 * ROWS).reshape(ROWS, 3) % 2  # the relevances of three documents
SAID = np.where(np.arange(ROWS) % 7 == 0, 1 - TWO, TWO)
CHANCES = np.where(SAID == 1, 0.9, 0.15)
Labels = NDArray[Any]


@dataclass(frozen=True)
class HoldoutRelease:
    """`ask` puts something to a holdout and returns its answers. A claim may be up to `slack` times what the worst of
    the neighbours tried shows; where that is more than a little, `because` says why."""

    name: str
    labels: Labels
    ask: Callable[[ReusableHoldout], list[Answer]]
    slack: float = 1.001
    because: str = ""

    def neighbours(self) -> Iterator[Labels]:
        """One label is another: some rows of all kinds, every class, and both ends of numbers."""
        for row in (0, 1, 2, 7, ROWS - 1):
            for other in dict.fromkeys(
                self.labels.ravel().tolist()[: 3 if self.labels.dtype.kind == "i" else 1]
            ):
                labels = self.labels.copy()
                labels[row] = other
                if not np.array_equal(labels, self.labels):
                    yield labels
            if self.labels.dtype.kind == "f":
                labels = self.labels.copy()
                labels[row] = 1.0 - round(float(labels[row]))
                yield labels

    def opened(self, labels: Labels) -> ReusableHoldout:
        """A fresh holdout by Gaussian noise."""
        return ReusableHoldout(labels, queries=12, mode="gaussian", confidence=0.5)


UNIT_OF = np.maximum(0, np.arange(ROWS) - 4) // 4
"""Four rows each, but eight of the first, of which four are kept."""


class UnitRelease(HoldoutRelease):
    """The same by units: all labels of one are others."""

    def neighbours(self) -> Iterator[Labels]:
        for unit in (0, 1, 7, int(UNIT_OF[-1])):
            for other in (0, 1, 1 - self.labels):
                yield np.where(unit == UNIT_OF, other, self.labels)

    def opened(self, labels: Labels) -> ReusableHoldout:
        return ReusableHoldout(
            labels, units=UNIT_OF, rows_per_unit=4, queries=12, mode="gaussian", confidence=0.5
        )


_TABLES = {"slack": 2.001, "because": "a table is charged as four numbers, and a label moves two cells"}
_ONE_OF_TWO = {
    "slack": 2.001,
    "because": "two numbers are charged, and a label of these rows moves one and a half",
}
_ONE_CELL = {
    "slack": 4.001,
    "because": "a table is charged as four numbers, and a label moves one cell by one",
}
_NOTHING = {"slack": math.inf, "because": "it tells nothing of the labels"}
_ROOM = {"recall": _ONE_OF_TWO, "f1": _ONE_OF_TWO, "calibration-error": _ONE_CELL, "value": _NOTHING}
_ROUGH = {"slack": 8.0, "because": "no label of these rows moves its value over the whole range"}


def _said(metric: Metric, labels: Labels) -> Labels:
    """Predictions that a metric takes."""
    if metric.wants == "rankings":
        return QUERIES * 0.5 + np.arange(3) * 0.1
    if metric.wants == "numbers":
        return np.linspace(1.0, 0.0, ROWS)
    if metric.wants in ("chances", "scores"):
        return CHANCES
    return SAID


def scores() -> Iterator[HoldoutRelease]:
    """Every metric by its name, and those that take a number."""
    labels = {"rankings": QUERIES, "numbers": NUMBERS}
    for metric in (*METRICS.values(), top_k(1)):
        held = labels.get(metric.wants, TWO)
        usual: dict[str, Any] = _TABLES if metric.table is not None else {} if metric.exact else _ROUGH
        room = _ROOM.get(metric.name, usual)
        yield HoldoutRelease(
            f"score, {metric.name}", held, lambda h, m=metric: [h.score(_said(m, TWO), metric=m)], **room
        )


def others() -> Iterator[HoldoutRelease]:
    """Three classes, weights, checks, comparisons of every kind, and a submission."""
    weights = np.where(np.arange(ROWS) % 2, 0.5, 1.0)
    wrong = 1 - TWO
    for name in ("accuracy", "balanced-accuracy", "macro-f1"):
        room: dict[str, Any] = _TABLES if METRICS[name].table is not None else {}
        yield HoldoutRelease(
            f"score, {name}, three classes", THREE, lambda h, n=name: [h.score(THREE, metric=n)], **room
        )
    yield HoldoutRelease(
        "score, several outputs",
        np.column_stack([TWO, TWO]),
        lambda h: [h.score(np.column_stack([SAID, TWO]))],
    )
    yield HoldoutRelease("score, weighted", TWO, lambda h: [h.score(SAID, sample_weight=weights)])
    yield HoldoutRelease("check", TWO, lambda h: [h.check(0.8, SAID).answer])
    yield HoldoutRelease("compare, known", TWO, lambda h: [h.compare(TWO, wrong)])
    yield HoldoutRelease(
        "compare, expected",
        TWO,
        lambda h: [h.compare(TWO, wrong, expect=0.2)],
        slack=1.2,
        because="where a label moves the difference by two it does not move the disagreement",
    )
    yield HoldoutRelease(
        "compare, functions",
        TWO,
        lambda h: [h.compare(lambda ids: TWO[ids], lambda ids: wrong[ids])],
        slack=1.2,
        because="as for a disagreement that is expected",
    )
    yield HoldoutRelease(
        "submit",
        TWO,
        lambda h: [h.submit(TWO, lambda answer: [(1, wrong), (2, wrong)])[1]],  # type: ignore[list-item]
    )


def units() -> Iterator[HoldoutRelease]:
    """Whole units: means of their rows, ratios of their totals, comparisons."""
    wrong, equal = 1 - TWO, np.ones(ROWS)
    yield UnitRelease("score, units", TWO, lambda h: [h.score(TWO)])
    yield UnitRelease("score, units, weighted", TWO, lambda h: [h.score(TWO, sample_weight=equal)])
    yield UnitRelease(
        "score, units, recall", TWO, lambda h: [h.score(TWO, metric="recall")], slack=4.001,
        because="two numbers are charged, and half of a unit's rows are of the class",
    )  # fmt: skip
    alike = UNIT_OF % 2  # all rows of a unit are alike, so that it can do its worst
    for name in ("auc", "balanced-accuracy", "macro-f1", "calibration-error"):
        told = alike if METRICS[name].wants == "labels" else np.where(alike == 1, 0.9, 0.15)
        yield UnitRelease(
            f"score, units, {name}", alike, lambda h, n=name, told=told: [h.score(told, metric=n)],
            **_ROOM.get(name, _TABLES),
        )  # fmt: skip
    yield UnitRelease("check, units", TWO, lambda h: [h.check(0.8, TWO).answer])
    yield UnitRelease("compare, units", TWO, lambda h: [h.compare(TWO, wrong)])
    yield UnitRelease(
        "compare, units, expected",
        TWO,
        lambda h: [h.compare(TWO, wrong, expect=0.2)],
        slack=1.2,
        because="where a unit moves the difference by two it does not move the disagreement",
    )
    yield UnitRelease(
        "submit, units",
        TWO,
        lambda h: [h.submit(TWO, lambda answer: [(1, wrong), (2, wrong)])[1]],  # type: ignore[list-item]
    )
