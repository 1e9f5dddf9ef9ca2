"""What a condition says of an expression: how small and how great it can be on the rows that satisfy it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from holdfast.query import expression as arithmetic
from holdfast.query.column import Integer, Real
from holdfast.query.expression import Column, Constant, Expression
from holdfast.query.predicate import And, Compare, In, Never, Or, Predicate
from holdfast.query.schema import Schema
from holdfast.query.temporal import Temporal

Bounds: TypeAlias = Mapping[Expression, tuple[float, float]]
"""The least and the greatest value of some expressions; of others nothing is known but their declared range."""

_EXACT = 2**53
"""Up to here a whole number and the float64 that it is compared as are the same."""


@lru_cache(maxsize=1024)
def bounds(expression: Expression, where: Predicate, schema: Schema) -> tuple[float, float]:
    """The least and the greatest value on the rows where `where` is true and the expression is not NULL.

    Guarantee: every such value of `expression.compute` lies within; so no row that is counted can leave it. It depends
    on the text and the schema alone. Where no row can satisfy the condition it is the declared range.
    Raises QueryError as `expression.range` does, which also sees the rows outside.
    """
    declared = arithmetic.range(expression, schema)
    known = _known(where, schema)
    return declared if known is None else arithmetic.range(expression, schema, known)


def _known(predicate: Predicate, schema: Schema) -> Bounds | None:
    """What holds where a predicate is true; None if it never is."""
    match predicate:
        case Never():
            return None
        case In(name, ranges, kind=kind) if isinstance(kind, Integer | Temporal | Real):
            offset = 0 if isinstance(kind, Real) else kind.lo
            return {Column(name): (ranges[0][0] + offset, ranges[-1][1] + offset)}
        case Compare():
            return _compared(predicate, schema)
        case And(parts):
            return _all([_known(part, schema) for part in parts])
        case Or(parts):
            return _any([_known(part, schema) for part in parts])
    return {}


def _all(parts: list[Bounds | None]) -> Bounds | None:
    """Every part holds."""
    found: dict[Expression, tuple[float, float]] = {}
    for part in parts:
        if part is None:
            return None
        for node, (lo, hi) in part.items():
            low, high = found.get(node, (lo, hi))
            found[node] = max(lo, low), min(hi, high)
    return None if any(lo > hi for lo, hi in found.values()) else found


def _any(parts: list[Bounds | None]) -> Bounds | None:
    """At least one part holds: of an expression that one of them leaves free nothing is known."""
    possible = [part for part in parts if part is not None]
    if not possible:
        return None
    shared = [node for node in possible[0] if all(node in part for part in possible)]
    several = {node: [part[node] for part in possible] for node in shared}
    return {node: (min(lo for lo, _ in ends), max(hi for _, hi in ends)) for node, ends in several.items()}


def _compared(predicate: Compare, schema: Schema) -> Bounds:
    """left op right: each side is bounded by the range of the other. A strict order is taken for a weak one."""
    op, left, right = predicate.op, predicate.left, predicate.right
    (lo, hi), (low, high) = arithmetic.range(left, schema), arithmetic.range(right, schema)
    if isinstance(right, Constant) and isinstance(lo, float):
        low = high = float(right.value)  # a float that is whole is kept as a whole number
    if isinstance(lo, int) != isinstance(low, int) and max(map(abs, (lo, hi, low, high))) > _EXACT:
        return {}  # the whole numbers are compared after rounding
    least, most = max(lo, low), min(hi, high)
    below, above = op in ("<", "<=", "="), op in (">", ">=", "=")
    found = {
        left: _of_its_kind(lo, least if above else lo, most if below else hi),
        right: _of_its_kind(low, least if below else low, most if above else high),
    }
    return {node: ends for node, ends in found.items() if not isinstance(node, Constant)}


def _of_its_kind(declared: float, lo: float, hi: float) -> tuple[float, float]:
    """Whole numbers bound whole numbers."""
    return (math.ceil(lo), math.floor(hi)) if isinstance(declared, int) else (float(lo), float(hi))
