"""Predicates and expressions as SQL over a relation that holds the same codes under the same names.

Integer codes are integers of any width, a Real is a double with SQL NULL for NULL. The SQL is meant for
DuckDB and keeps to what PostgreSQL and Spark read alike. It agrees with the evaluator on every row.
"""

from __future__ import annotations

from holdfast.errors import InputError
from holdfast.query import calendar, presence
from holdfast.query import expression as arithmetic
from holdfast.query.column import ColumnType, Real
from holdfast.query.expression import (
    Absolute,
    Add,
    Case,
    Column,
    Constant,
    DatePart,
    Divide,
    Expression,
    Floor,
    Greatest,
    Least,
    Multiply,
    Negate,
    Subtract,
)
from holdfast.query.predicate import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Never,
    NotNull,
    Or,
    Predicate,
    Present,
    TextTest,
)
from holdfast.query.schema import Schema
from holdfast.query.wording import always_quoted


def render_predicate(predicate: Predicate, schema: Schema) -> str:
    """A condition that is true on exactly the rows that satisfy the predicate (elsewhere false or NULL)."""
    match predicate:
        case Always():
            return "TRUE"
        case Never():
            return "FALSE"
        case IsNull(name):
            return _null(name, schema[name])
        case NotNull(name):
            kind = schema[name]
            return (
                f"{always_quoted(name)} {'IS NOT NULL' if isinstance(kind, Real) else f'< {kind.null_code}'}"
            )
        case In(name, ranges, null):
            pieces = [_within(name, lo, hi, schema[name]) for lo, hi in ranges]
            return _joined([*pieces, _null(name, schema[name])] if null else pieces, "OR")
        case Compare(op, left, right):
            return f"{render_expression(left, schema)} {op} {render_expression(right, schema)}"
        case TextTest():
            raise InputError("expected codes that an engine can compare, got a test of texts; read the rows")
        case Present(value, negated):
            return f"{render_expression(value, schema)} IS {'NULL' if negated else 'NOT NULL'}"
        case And(parts):
            return _joined([render_predicate(part, schema) for part in parts], "AND")
        case Or(parts):
            return _joined([render_predicate(part, schema) for part in parts], "OR")


def render_expression(expression: Expression, schema: Schema) -> str:
    """A value equal to the evaluator's, BIGINT or DOUBLE; NULL where any of its columns is."""
    return f"({_render(expression, schema)})"


def _render(expression: Expression, schema: Schema) -> str:
    match expression:
        case Column(name):
            kind = schema[name]
            if isinstance(kind, Real):
                return always_quoted(name)
            return f"(CAST(NULLIF({always_quoted(name)}, {kind.null_code}) AS BIGINT) + {_literal(kind.lo)})"
        case Constant(value):
            return _literal(value)
        case Add() | Subtract() | Multiply():
            sign = {Add: "+", Subtract: "-", Multiply: "*"}[type(expression)]
            left, right = (_side(side, expression, schema) for side in (expression.left, expression.right))
            return f"({left} {sign} {right})"
        case Divide(left, right):
            above, below = (_side(side, expression, schema) for side in (left, right))
            return f"({above} / NULLIF({below}, 0.0e0))"
        case Floor(operand):
            return f"CAST(FLOOR({_render(operand, schema)}) AS BIGINT)"
        case DatePart(part, name, unit):
            return calendar.sql(part, _render(Column(name), schema), unit)
        case Case((), None):
            return "NULL"
        case Case(branches, default):
            whens = "".join(
                f" WHEN {render_predicate(when, schema)} THEN {_side(value, expression, schema)}"
                for when, value in branches
            )
            otherwise = "" if default is None else f" ELSE {_side(default, expression, schema)}"
            return f"(CASE{whens}{otherwise} END)"
        case Negate(operand):
            return f"(- {_render(operand, schema)})"
        case Absolute(operand):
            return f"ABS({_render(operand, schema)})"
        case Least(operands) | Greatest(operands):
            name = "LEAST" if isinstance(expression, Least) else "GREATEST"
            values = ", ".join(_side(operand, expression, schema) for operand in operands)
            return _guarded(f"{name}({values})", expression, schema)


def _side(operand: Expression, parent: Expression, schema: Schema) -> str:
    """An operand; a whole number beside reals becomes a double first, as NumPy does it."""
    text = _render(operand, schema)
    if arithmetic.is_integer(operand, schema) and not arithmetic.is_integer(parent, schema):
        return f"({text} * 1.0e0)"
    return text


def _guarded(text: str, expression: Expression, schema: Schema) -> str:
    """LEAST and GREATEST pass over NULLs; ours are NULL as soon as one operand is."""
    known = render_predicate(presence.known(*arithmetic.children(expression), schema=schema), schema)
    return f"(CASE WHEN {known} THEN {text} END)"


def _within(name: str, lo: float, hi: float, kind: ColumnType) -> str:
    column, first, last = always_quoted(name), _literal(lo), _literal(hi)
    if lo == hi:
        return f"{column} = {first}"
    if lo == (kind.lo if isinstance(kind, Real) else 0):
        return f"{column} <= {last}"
    return f"{column} BETWEEN {first} AND {last}"


def _null(name: str, kind: ColumnType) -> str:
    return f"{always_quoted(name)} {'IS NULL' if isinstance(kind, Real) else f'= {kind.null_code}'}"


def _literal(value: float) -> str:
    """A number; with an exponent it is a double, not a decimal, in every engine."""
    text = repr(value)
    if isinstance(value, float) and "e" not in text:
        text += "e0"
    return f"({text})" if value < 0 else text


def _joined(parts: list[str], word: str) -> str:
    """The parts in a balanced tree of parentheses: engines limit how deep a long chain may nest."""
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [f"({pair[0]} {word} {pair[1]})" if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]
