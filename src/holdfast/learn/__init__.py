"""Learning under privacy: finite classes, convex losses, and what margins and privacy say of new rows."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.learn.boosting import Boosted, adaboost
    from holdfast.learn.boxes import Boxes
    from holdfast.learn.conjunctions import Conjunctions
    from holdfast.learn.ensemble import Ensemble
    from holdfast.learn.estimators import PrivateLinearRegression, PrivateLogisticRegression
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
    from holdfast.learn.region import Ball, Box
    from holdfast.learn.sample_size import agnostic_rows, realisable_rows
    from holdfast.learn.stumps import Stumps
    from holdfast.learn.thresholds import Thresholds
    from holdfast.session.minimize import DescentPlan, Minimum, minimize, plan_minimize

# Names are imported when first used: scikit-learn is needed by its estimators only.
_HOME = {
    **dict.fromkeys(["Boosted", "adaboost"], "holdfast.learn.boosting"),
    **dict.fromkeys(["Boxes"], "holdfast.learn.boxes"),
    **dict.fromkeys(["Conjunctions"], "holdfast.learn.conjunctions"),
    **dict.fromkeys(["Ensemble"], "holdfast.learn.ensemble"),
    **dict.fromkeys(["PrivateLinearRegression", "PrivateLogisticRegression"], "holdfast.learn.estimators"),
    **dict.fromkeys(["FiniteClass", "Hypotheses", "Learned"], "holdfast.learn.finite_class"),
    **dict.fromkeys(
        ["Memoriser", "estimation_width", "expected_gap", "family_width", "likely_gap"],
        "holdfast.learn.generalization",
    ),
    **dict.fromkeys(
        ["LinearLoss", "hinge", "huber", "linear", "logistic", "quantile", "squared"],
        "holdfast.learn.linear_loss",
    ),
    **dict.fromkeys(["MarginBound", "Margins", "margins"], "holdfast.learn.margin_distribution"),
    **dict.fromkeys(["Monitor", "Verdict"], "holdfast.learn.monitor"),
    **dict.fromkeys(["OwnLoss"], "holdfast.learn.own_loss"),
    **dict.fromkeys(["Ball", "Box"], "holdfast.learn.region"),
    **dict.fromkeys(["agnostic_rows", "realisable_rows"], "holdfast.learn.sample_size"),
    **dict.fromkeys(["Stumps"], "holdfast.learn.stumps"),
    **dict.fromkeys(["Thresholds"], "holdfast.learn.thresholds"),
    **dict.fromkeys(["DescentPlan", "Minimum", "minimize", "plan_minimize"], "holdfast.session.minimize"),
}

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
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast.learn' has no attribute {name!r}")
    return getattr(_import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
