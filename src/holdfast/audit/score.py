"""Scores: numbers that are high where one input is likelier than the other.

A score is learnt from outputs of both inputs; the events of an audit are {score >= t}. Whatever a score is, a
certificate computed on other runs stays valid, so nothing here can make an audit wrong, only weak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.grain import grain
from holdfast.audit.outputs import Outputs

Vector = NDArray[np.float64]

_BINS = 64
_COORDINATES = 16
_NEWTON_STEPS = 25
_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Score:
    """`apply` gives one number for each output; `name` says what is measured."""

    name: str
    apply: Callable[[Outputs], Vector]


def scores(first: Outputs, second: Outputs) -> Iterator[Score]:
    """Every score that suits these outputs: frequencies, thresholds, bins, grains and a linear classifier."""
    yield _table("frequency of the output", _keys, first, second)
    if first.matrix is None or second.matrix is None or first.matrix.shape[1] != second.matrix.shape[1]:
        return
    columns = first.matrix.shape[1]
    for column in range(min(columns, _COORDINATES)):
        where = "output" if columns == 1 else f"output[{column}]"
        yield Score(where, _column(column, 1.0))
        yield Score(f"-{where}", _column(column, -1.0))
        yield _binned(where, column, first, second)
        if first.floats or second.floats:
            yield Score(f"-grain of {where}", partial(_fineness, column=column))
            yield _table(f"grain of {where}", partial(_grains, column=column), first, second)
    if columns > 1:
        yield _classifier(first, second)


def _keys(outputs: Outputs) -> list[Hashable]:
    return list(outputs.keys)


def _column(column: int, sign: float) -> Callable[[Outputs], Vector]:
    return lambda outputs: sign * _numbers(outputs)[:, column]


def _fineness(outputs: Outputs, column: int) -> Vector:
    assert outputs.matrix is not None
    return -grain(outputs.matrix[:, column])


def _grains(outputs: Outputs, column: int) -> list[Hashable]:
    return _fineness(outputs, column).tolist()  # type: ignore[no-any-return]


def _table(name: str, keys: Callable[[Outputs], list[Hashable]], first: Outputs, second: Outputs) -> Score:
    """The log-ratio of smoothed frequencies; a key that neither side has shown scores below all others."""
    here, there = Counter(keys(first)), Counter(keys(second))
    ratio = {key: float(np.log((here[key] + 0.5) / (there[key] + 0.5))) for key in here | there}
    unseen = min(ratio.values()) - 1.0
    return Score(name, lambda outputs: np.array([ratio.get(key, unseen) for key in keys(outputs)]))


def _binned(where: str, column: int, first: Outputs, second: Outputs) -> Score:
    """Frequencies of quantile bins: finds middle parts and pairs of tails, which no threshold can."""
    pooled = np.concatenate([_numbers(first)[:, column], _numbers(second)[:, column]])
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS + 1)[1:-1], method="nearest"))

    def bins(outputs: Outputs) -> list[Hashable]:
        found: list[Hashable] = np.searchsorted(edges, _numbers(outputs)[:, column], side="right").tolist()
        return found

    return _table(f"bin of {where}", bins, first, second)


def _classifier(first: Outputs, second: Outputs) -> Score:
    """Ridge logistic regression on standardised coordinates and their squares, by Newton's method."""
    x, y = _numbers(first), _numbers(second)
    pooled = np.concatenate([x, y])
    centre, spread = np.median(pooled, axis=0), np.std(pooled, axis=0) + 1e-300

    def features(outputs: Outputs) -> Vector:
        standard = np.clip((_numbers(outputs) - centre) / spread, -8.0, 8.0)
        return np.concatenate([standard, standard**2, np.ones((len(outputs), 1))], axis=1)

    design = np.concatenate([features(first), features(second)])
    labels = np.concatenate([np.ones(len(first)), np.zeros(len(second))])
    weights = np.zeros(design.shape[1])
    ridge = _RIDGE * len(labels) * np.eye(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 0.5 * (1.0 + np.tanh(0.5 * np.clip(design @ weights, -30.0, 30.0)))
        slope = design.T @ (labels - chance) - ridge @ weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, slope)
        weights += step
        if float(np.max(np.abs(step))) < 1e-8:
            break
    return Score("linear classifier", lambda outputs: features(outputs) @ weights)


def _numbers(outputs: Outputs) -> Vector:
    assert outputs.matrix is not None
    # A mechanism may say NaN or infinity; both get a place at the ends, so that every comparison is total.
    return np.clip(np.nan_to_num(outputs.matrix, nan=-2e100, posinf=1e100, neginf=-1e100), -2e100, 1e100)
