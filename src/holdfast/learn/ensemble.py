"""Voting classifiers, ours and scikit-learn's, read as weights and votes in [-1, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.learn.labelled_rows import Matrix, labels, matrix

Vector = NDArray[np.float64]


class Ensemble(Protocol):
    """What can be asked for its margins: a vote of each member for each row, and the members' weights."""

    @property
    def weights(self) -> Vector: ...
    @property
    def log_hypotheses(self) -> float: ...
    def votes(self, rows: Matrix) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Voters:
    """An ensemble's weights (not negative), its votes on some rows, and ln|H| of its members, if known.

    The first `before` columns are votes from before the first round (the start of gradient boosting).
    """

    weights: Vector
    votes: Vector
    signs: Vector
    log_hypotheses: float | None
    before: int = 0


def voters(model: Any, rows: ArrayLike, truth: ArrayLike) -> Voters:
    """The votes of an ensemble on rows with known truth (`signs`: -1 or 1).

    Reads ours (`Ensemble`), and from scikit-learn AdaBoostClassifier, GradientBoostingClassifier,
    BaggingClassifier, RandomForestClassifier and ExtraTreesClassifier, each fitted on two classes.
    """
    names = {kind.__name__ for kind in type(model).__mro__}
    if hasattr(model, "votes") and hasattr(model, "weights"):
        table = matrix(rows)
        signs = np.where(labels(truth, len(table)), 1.0, -1.0)
        return Voters(np.asarray(model.weights), model.votes(table), signs, model.log_hypotheses)
    reader = next((_READERS[name] for name in _READERS if name in names), None)
    if reader is None:
        raise InputError(
            f"expected an ensemble of {', '.join(_READERS)} or one with `votes` and `weights`, got "
            f"{type(model).__name__}"
        )
    if not hasattr(model, "estimators_"):
        raise InputError("expected a fitted ensemble, got one that was not fitted; call fit first")
    classes = np.asarray(model.classes_)
    if classes.size != 2:
        raise InputError(f"expected an ensemble for two classes, got {classes.size}")
    table = np.asarray(rows, dtype=np.float64)
    given = np.asarray(truth)
    if table.ndim != 2 or given.shape != (len(table),) or not np.isin(given, classes).all():
        raise InputError("expected a table and for each row one of the ensemble's two classes, got others")
    weights, votes, members = reader(model, table, classes)
    signs = np.where(given == classes[1], 1.0, -1.0)
    log_hypotheses = _log_trees(members, table.shape[1])
    return Voters(weights, votes, signs, log_hypotheses, len(weights) - len(members))


def _adaboost(model: Any, table: Matrix, classes: NDArray[Any]) -> tuple[Vector, Vector, list[Any]]:
    members = list(model.estimators_)
    votes = np.stack([np.where(member.predict(table) == classes[1], 1.0, -1.0) for member in members], axis=1)
    return np.asarray(model.estimator_weights_[: len(members)], dtype=np.float64), votes, members


def _gradient_boosting(model: Any, table: Matrix, classes: NDArray[Any]) -> tuple[Vector, Vector, list[Any]]:
    """A tree with leaves in [-m, m] votes by its leaf over m, with weight m; the constant start is one more."""
    members = [tree for (tree,) in model.estimators_]
    greatest = np.array([max(float(np.abs(tree.tree_.value).max()), 1e-300) for tree in members])
    votes = np.stack([tree.predict(table) for tree in members], axis=1) / greatest
    weights = model.learning_rate * greatest
    start = np.asarray(model.decision_function(table)) - votes @ weights
    if float(np.ptp(start)) > 1e-6 * (1 + float(np.abs(start).max())):
        raise InputError("expected gradient boosting from a constant start (init=None), got another init")
    first = np.full((len(table), 1), np.sign(start[0]))
    return np.concatenate([[abs(start[0])], weights]), np.concatenate([first, votes], axis=1), members


def _averaging(model: Any, table: Matrix, classes: NDArray[Any]) -> tuple[Vector, Vector, list[Any]]:
    members = list(model.estimators_)
    subsets = getattr(model, "estimators_features_", [slice(None)] * len(members))
    votes = [_chance(member, table[:, columns]) for member, columns in zip(members, subsets, strict=True)]
    return np.ones(len(members)), 2.0 * np.stack(votes, axis=1) - 1.0, members


def _chance(member: Any, table: Matrix) -> Vector:
    """The member's probability of the second class; members know the classes as 0 and 1."""
    known = list(member.classes_)
    if hasattr(member, "predict_proba"):
        return (
            np.asarray(member.predict_proba(table))[:, known.index(1)] if 1 in known else np.zeros(len(table))
        )
    return np.asarray(member.predict(table) == 1, dtype=np.float64)


def _log_trees(members: list[Any], features: int) -> float | None:
    """ln of the number of trees with this many leaves and a label -1 or 1 in each.

    Trees compare features as 32-bit floats, so a split is one of features * 2^32; shapes of L leaves are below
    4^L, and L itself is paid for by L(L+1). A tree with leaves in [-1, 1] is a mixture of such trees, so
    bounds for votes of a finite class hold for it too.
    """
    if not all(hasattr(member, "tree_") for member in members):
        return None
    L = max(int(member.tree_.n_leaves) for member in members)
    return (L - 1) * math.log(features * 2.0**32) + L * math.log(8) + math.log(L * (L + 1))


_READERS: dict[str, Callable[[Any, Matrix, NDArray[Any]], tuple[Vector, Vector, list[Any]]]] = {
    "AdaBoostClassifier": _adaboost,
    "GradientBoostingClassifier": _gradient_boosting,
    "BaggingClassifier": _averaging,
    "RandomForestClassifier": _averaging,
    "ExtraTreesClassifier": _averaging,
}
