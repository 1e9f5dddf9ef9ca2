"""The questions that the page asks: every kind of the API, in groups, with the fields of its form."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

from holdfast.planning.any_question import AnyQuestion
from holdfast.planning.question import Question
from holdfast.query.scan import words
from holdfast.query.schema import Category, Schema, Text
from holdfast.service.page.look import of_events

FORMS: dict[str, type[Question]] = {
    kind: form for form in get_args(AnyQuestion) for kind in get_args(get_type_hints(form)["kind"])
}
"""Every kind of question that the API takes."""
_GROUPED = ("where", "by", "edges")
_MEASURED = ("exact", "mechanism", "rows")
_BOUGHT = ("spend", "mechanism", "rows")
"""How near these will be depends on the rows, so that nobody can say a half-width before."""
_PAIR = ("column", "other", *_GROUPED)
_VECTOR = ("name", "threshold", "hits", "spend", "delta", "questions", "version")
_WEIGHTS = (
    "name", "columns", "queries", "exact", "delta", "edges", "nulls", "version", "stop",
)  # fmt: skip
KINDS: dict[str, tuple[str, ...]] = {
    "fraction": ("where", "given", "by", "edges", *_MEASURED),
    "count": (*_GROUPED, "cumulative", *_MEASURED),
    "histogram": ("column", "where", "edges", *_MEASURED),
    "top": ("column", "k", "where", "edges", *_MEASURED),
    "distinct": ("column", *_GROUPED, *_MEASURED),
    "difference": ("where", "against", "of", "expect", *_MEASURED),
    "mean": ("column", *_GROUPED, *_MEASURED),
    "sum": ("column", *_GROUPED, "cumulative", *_MEASURED),
    "ratio": ("column", "divisor", *_GROUPED, *_BOUGHT),
    "quantile": ("column", "rank", *_GROUPED, *_MEASURED),
    "variance": ("column", *_GROUPED, "sample", *_MEASURED),
    "std": ("column", *_GROUPED, "sample", *_MEASURED),
    "correlation": (*_PAIR, *_BOUGHT),
    "covariance": (*_PAIR, "sample", *_MEASURED),
    "regression": ("column", "features", "where", *_BOUGHT),
    "independence": ("column", "other", "where", "edges", *_BOUGHT),
    "sql": ("text", *_MEASURED),
    "keys": ("column", "spend", "delta"),
    "select": ("candidates", "spend", "mechanism"),
    "sample": ("where",),
    "sparse-vector": _VECTOR,
    "above": ("where", *_VECTOR),
    "multiplicative-weights": _WEIGHTS,
    "weigh": ("where", *_WEIGHTS),
}
"""The fields of the form of each kind. `tests/service/test_page_controls.py` says which of the API's have none."""
GROUPS = {
    "How many rows": ("fraction", "count", "histogram", "top", "distinct", "difference"),
    "A number": ("mean", "sum", "ratio", "quantile", "variance", "std"),
    "Two columns": ("correlation", "covariance", "regression", "independence"),
    "Anything": ("sql",),
    "Keys, choices and long series": (
        "keys", "select", "sample", "sparse-vector", "above", "multiplicative-weights", "weigh",
    ),
}  # fmt: skip
WORDS = {
    "sql": "SQL", "distinct": "distinct values", "std": "standard deviation", "keys": "discover keys",
    "select": "choose among conditions",
    "sample": "one vote", "sparse-vector": "open a sparse vector", "above": "is it above?",
    "multiplicative-weights": "open weights", "weigh": "fraction by weights",
}  # fmt: skip
"""What a kind is called where its own name would not do."""
EXACT = {"within": "within ±", "rho": "for ρ", "epsilon": "for ε"}
"""How an accuracy is said: as a half-width, or as what may be spent."""
SPENT = {"rho": "ρ", "epsilon": "ε"}
"""How it is said what may be spent."""
PARTS = {"against": "other"}
"""Fields that are called otherwise in the API: the other part of a difference is a condition, of a pair a column."""
UNITS = {
    "fraction": ("fraction", "difference"), "share": ("multiplicative-weights", "weigh"),
    "rows": ("count", "histogram", "top"), "column": ("mean", "sum"), "rank": ("quantile",),
    "answer": ("variance", "std", "covariance", "distinct"),
}  # fmt: skip
"""What a half-width is counted in."""
FINE = ("mechanism", "rows", "version", "stop", "nulls")
"""Fields that few need; they are shown when somebody opens them."""
DEFAULTS = {
    **{name: "" for names in KINDS.values() for name in names},
    "kind": "fraction", "rank": "0.5", "exact": "within", "amount": "", "notion": "rho",
    "name": "first", "threshold": "0.1", "hits": "5", "queries": "100",
}  # fmt: skip
"""The fields of the form before anybody has typed."""
MOST_KEYS = 1000
"""So many keys of a column are completed at most: all of them are a part of the page."""
_PAID = {"select", "sparse-vector", "above"}
"""Kinds that nobody can plan for: what they may cost is always said."""


def offered(schema: Schema) -> dict[str, list[str]]:
    """The groups of kinds that a table can be asked: keys are discovered where there is a text."""
    has_text = any(
        isinstance(column, Text) for column in [*schema.values(), *dict(of_events(schema)).values()]
    )
    return {
        group: [kind for kind in members if kind != "keys" or has_text] for group, members in GROUPS.items()
    }


def completions(schema: Schema) -> dict[str, Any]:
    """What a question may be completed with: columns with their keys, and the words of conditions and of SQL."""
    columns = [*schema.items(), *of_events(schema)]
    keys = {
        name: column.labels[:MOST_KEYS] if isinstance(column, Category) else [] for name, column in columns
    }
    return {"columns": keys, "condition": words(select=False), "sql": words(select=True)}


def amounts(rows: int, *, planned: bool) -> dict[str, float]:
    """A sensible accuracy for each kind that has one, on a table of so many rows: two in a hundred, or what a first
    answer about a population can have. `planned` tables need none: the plan says it."""
    if planned:
        return {}
    part = max(0.02, math.ceil(300 / math.sqrt(max(1, rows))) / 100)
    counted = dict.fromkeys(UNITS["rows"], float(max(1, round(part * rows))))
    return counted | dict.fromkeys(UNITS["fraction"], part) | {"quantile": max(0.1, part)}


def needed(*, planned: bool) -> dict[str, list[str]]:
    """The fields that a question of each kind cannot do without; `planned` tables say how exactly by themselves."""
    return {kind: _needed(kind, planned) for kind in KINDS}


def _needed(kind: str, planned: bool) -> list[str]:
    wanted = {each.name for each in fields(FORMS[kind]) if each.default is MISSING}
    found = [name for name in KINDS[kind] if PARTS.get(name, name) in wanted]
    exact = "exact" in KINDS[kind] and (not planned or kind in UNITS["share"])
    bought = kind in _PAID or ("spend" in KINDS[kind] and not planned and kind != "keys")
    # Ten groups are too many for some columns, so that the page has no number of its own.
    return found + ["k"] * (kind == "top") + ["amount"] * exact + ["spend"] * bought


def stylesheet() -> str:
    """Each kind shows its own fields. A browser without :has() shows them all, and the server sorts it out."""
    every = {name for names in KINDS.values() for name in names}
    rules = [_hidden([kind], [f".f-{name}" for name in every - set(names)]) for kind, names in KINDS.items()]
    rules.append(_hidden([kind for kind in KINDS if not set(FINE) & set(KINDS[kind])], [".fine"]))
    rules.append(
        _hidden([kind for kind, names in needed(planned=True).items() if "where" in names], [".optional"])
    )
    for unit, kinds in UNITS.items():
        chosen = ", ".join(f"#kind-{kind}" for kind in kinds)
        rules.append(
            f'#ask:has(:is({chosen}):checked):has([value="within"]:checked) .u-{unit} {{ display: inline; }}'
        )
    return "\n".join(rules) + "\n"


def _hidden(kinds: list[str], places: list[str]) -> str:
    chosen = ", ".join(f"#kind-{kind}" for kind in kinds)
    return f"#ask:has(:is({chosen}):checked) :is({', '.join(sorted(places))}) {{ display: none; }}"
