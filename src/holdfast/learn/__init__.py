"""Learning under privacy: finite classes, convex losses, and what margins and privacy say of new rows."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.learn.boxes import Boxes
    from holdfast.learn.conjunctions import Conjunctions
    from holdfast.learn.finite_class import FiniteClass, Hypotheses, Learned
    from holdfast.learn.sample_size import agnostic_rows, realisable_rows
    from holdfast.learn.stumps import Stumps
    from holdfast.learn.thresholds import Thresholds

# Names are imported when first used: scikit-learn is needed by its estimators only.
_HOME = {
    "Boxes": "boxes",
    "Conjunctions": "conjunctions",
    "FiniteClass": "finite_class",
    "Hypotheses": "finite_class",
    "Learned": "finite_class",
    "Stumps": "stumps",
    "Thresholds": "thresholds",
    "agnostic_rows": "sample_size",
    "realisable_rows": "sample_size",
}

__all__ = [
    "Boxes",
    "Conjunctions",
    "FiniteClass",
    "Hypotheses",
    "Learned",
    "Stumps",
    "Thresholds",
    "agnostic_rows",
    "realisable_rows",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(_import_module(f"holdfast.learn.{_HOME[name]}"), name)
    raise AttributeError(f"module 'holdfast.learn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
