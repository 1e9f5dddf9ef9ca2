"""Holdfast: ask a dataset thousands of questions, each chosen after seeing the answers before it.

Every answer is differentially private, comes with an honest interval, and is charged to a budget that is
really enforced. Start with `holdfast.open(data, schema)` and `table.session(epsilon=...)`.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    BudgetError,
    DataError,
    GatewayError,
    HoldfastError,
    InputError,
    LedgerError,
    MechanismError,
    NoRuleError,
    QueryError,
    ReopenedWarning,
    SchemaError,
    StoreError,
)
from holdfast.offered import offer as _offer

if TYPE_CHECKING:
    from holdfast import audit, holdout, learn, local, mechanisms, privacy, stream, synthesis, validity
    from holdfast.client import connect
    from holdfast.client.magic import load_ipython_extension
    from holdfast.data.lookup import Lookup
    from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema, Text, Time, Timestamp
    from holdfast.session import Answer, Plan, Session, Table, open

__version__ = "0.1.0"

# Names are imported when first used, so that `import holdfast` stays quick.
_HOME = {
    **dict.fromkeys(
        ["Boolean", "Category", "Date", "Integer", "Real", "Schema", "Text", "Time", "Timestamp"],
        "holdfast.query.schema",
    ),
    **dict.fromkeys(["Answer", "Plan", "Session", "Table", "open"], "holdfast.session"),
    "Lookup": "holdfast.data.lookup",
    "connect": "holdfast.client",
    "load_ipython_extension": "holdfast.client.magic",
}
_ROOMS = ("audit", "holdout", "learn", "local", "mechanisms", "privacy", "stream", "synthesis", "validity")

_offer("multiplicative_weights", lambda: _import_module("holdfast.weights.answerer").MultiplicativeWeights)
_offer("price_weights", lambda: _import_module("holdfast.weights.terms_choice").price_weights)
_offer("minimize", lambda: _import_module("holdfast.optimize").minimize)
_offer("plan_minimize", lambda: _import_module("holdfast.optimize").plan_minimize)
_offer("synthesize", lambda: _import_module("holdfast.synthesis").synthesize)

__all__ = [
    "Answer",
    "Boolean",
    "BudgetError",
    "Category",
    "DataError",
    "Date",
    "GatewayError",
    "HoldfastError",
    "InputError",
    "Integer",
    "LedgerError",
    "Lookup",
    "MechanismError",
    "NoRuleError",
    "Plan",
    "QueryError",
    "Real",
    "ReopenedWarning",
    "Schema",
    "SchemaError",
    "Session",
    "StoreError",
    "Table",
    "Text",
    "Time",
    "Timestamp",
    "audit",
    "connect",
    "holdout",
    "learn",
    "load_ipython_extension",
    "local",
    "mechanisms",
    "open",
    "privacy",
    "stream",
    "synthesis",
    "validity",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name]), name)
    if name in _ROOMS:
        return _import_module(f"holdfast.{name}")
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
