"""Learning under privacy: finite classes, convex losses, and what margins and privacy say of new rows."""

from typing import TYPE_CHECKING, Any

from holdfast.learn.boosting import Boosted, adaboost
from holdfast.learn.boxes import Boxes
from holdfast.learn.conjunctions import Conjunctions
from holdfast.learn.ensemble import Ensemble
from holdfast.learn.finite_class import FiniteClass, Hypotheses, Learned
from holdfast.learn.generalization import (
    Memoriser,
    estimation_width,
    expected_gap,
    family_width,
    likely_gap,
)
from holdfast.learn.linear_loss import LinearLoss, hinge, huber, linear, logistic, quantile, squared
from holdfast.learn.margin_distribution import MarginBound, Margins, margins
from holdfast.learn.monitor import Monitor, Verdict
from holdfast.learn.own_loss import OwnLoss
from holdfast.learn.parameter_set import Ball, Box
from holdfast.learn.sample_size import agnostic_rows, realisable_rows
from holdfast.learn.stumps import Stumps
from holdfast.learn.thresholds import Thresholds
from holdfast.optimize import DescentPlan, Minimum, minimize, plan_minimize

if TYPE_CHECKING:
    from holdfast.learn.estimators import (
        PrivateLinearRegression,
        PrivateLogisticRegression,
        PrivateScaler,
    )

__all__ = [
    "Ball",
    "Boosted",
    "Box",
    "Boxes",
    "Conjunctions",
    "DescentPlan",
    "Ensemble",
    "FiniteClass",
    "Hypotheses",
    "Learned",
    "LinearLoss",
    "MarginBound",
    "Margins",
    "Memoriser",
    "Minimum",
    "Monitor",
    "OwnLoss",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateScaler",
    "Stumps",
    "Thresholds",
    "Verdict",
    "adaboost",
    "agnostic_rows",
    "estimation_width",
    "expected_gap",
    "family_width",
    "hinge",
    "huber",
    "likely_gap",
    "linear",
    "logistic",
    "margins",
    "minimize",
    "plan_minimize",
    "quantile",
    "realisable_rows",
    "squared",
]


def __getattr__(name: str) -> Any:
    """The estimators, imported when first used: they need scikit-learn."""
    if name not in ("PrivateLinearRegression", "PrivateLogisticRegression", "PrivateScaler"):
        raise AttributeError(f"module 'holdfast.learn' has no attribute {name!r}")
    from holdfast.learn import estimators

    return getattr(estimators, name)
