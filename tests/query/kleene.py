"""The slow truth: questions as nested tuples, judged row by row in Python with three truth values.

Nothing here knows of codes, canonical forms or NumPy. `None` is SQL's unknown.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

from holdfast.query.schema import Real, Schema
from holdfast.query.wording import always_quoted

Tree = tuple[Any, ...]
Row = dict[str, Any]

_OPS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
_OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "negate": operator.neg,
    "abs": abs,
    "least": lambda *values: min(values),
    "greatest": lambda *values: max(values),
}

_PARTS = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "doy": lambda day: day.timetuple().tm_yday,
    "dow": lambda day: day.isoweekday() % 7,
    "isodow": lambda day: day.isoweekday(),
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
}


def sql(tree: Tree) -> str:
    """The tree as text, with more parentheses than needed."""
    match tree:
        case ("column", name):
            return always_quoted(name)
        case ("number", text):
            return text if text[0] != "-" else f"({text})"
        case ("text", value):
            return "'" + value.replace("'", "''") + "'"
        case ("+" | "-" | "*" as sign, left, right):
            return f"({sql(left)} {sign} {sql(right)})"
        case ("negate", inner):
            return f"(- {sql(inner)})"
        case ("abs", inner):
            return f"abs({sql(inner)})"
        case ("least" | "greatest" as name, parts):
            return f"{name}({', '.join(map(sql, parts))})"
        case ("/", left, right):
            return f"({sql(left)} / {sql(right)})"
        case ("floor" | "coalesce" | "nullif" as name, parts):
            return f"{name}({', '.join(map(sql, parts))})"
        case ("part", part, name):
            return f"{part}({always_quoted(name)})"
        case ("case", branches, default):
            whens = " ".join(f"WHEN {sql(when)} THEN {sql(value)}" for when, value in branches)
            return f"CASE {whens}{f' ELSE {sql(default)}' if default else ''} END"
        case ("missing", negated, inner):
            return f"({sql(inner)}) IS {'NOT ' if negated else ''}NULL"
        case ("compare", op, left, right):
            return f"{sql(left)} {op} {sql(right)}"
        case ("between", negated, x, low, high):
            return f"{sql(x)} {'NOT ' if negated else ''}BETWEEN {sql(low)} AND {sql(high)}"
        case ("in", negated, x, choices):
            return f"{sql(x)} {'NOT ' if negated else ''}IN ({', '.join(map(sql, choices))})"
        case ("null", negated, name):
            return f"{always_quoted(name)} IS {'NOT ' if negated else ''}NULL"
        case ("is", negated, name, truth):
            return f"{always_quoted(name)} IS {'NOT ' if negated else ''}{str(truth).upper()}"
        case ("truth", value):
            return str(value).upper()
        case ("and" | "or" as word, parts):
            return "(" + f" {word.upper()} ".join(map(sql, parts)) + ")"
        case ("not", inner):
            return f"NOT ({sql(inner)})"
    raise AssertionError(tree)


def is_true(tree: Tree, row: Row, schema: Schema) -> bool:
    """Whether WHERE keeps the row."""
    return judge(tree, row, schema) is True


def judge(tree: Tree, row: Row, schema: Schema) -> bool | None:
    """Kleene's three values."""
    match tree:
        case ("column", name):
            return row[name]
        case ("truth", value):
            return value
        case ("compare", op, left, right):
            return _compare(op, left, right, row, schema)
        case ("between", negated, x, low, high):
            both = _and([_compare(">=", x, low, row, schema), _compare("<=", x, high, row, schema)])
            return _not(both) if negated else both
        case ("in", negated, x, choices):
            found = _or([_compare("=", x, choice, row, schema) for choice in choices])
            return _not(found) if negated else found
        case ("null", negated, name):
            return (row[name] is None) != negated
        case ("missing", negated, inner):
            return (number(inner, row, schema) is None) != negated
        case ("is", negated, name, truth):
            return (row[name] is truth) != negated
        case ("and", parts):
            return _and([judge(part, row, schema) for part in parts])
        case ("or", parts):
            return _or([judge(part, row, schema) for part in parts])
        case ("not", inner):
            return _not(judge(inner, row, schema))
    raise AssertionError(tree)


def number(tree: Tree, row: Row, schema: Schema) -> Any:
    """The value of arithmetic: int where all is whole, else float; None if any column is NULL.

    Constants are worked out first, in floats if any is a fraction; what comes out whole is a whole number.
    """
    match tree:
        case ("column", name):
            return row[name]
        case ("number", text):
            exact = Fraction(text)
            return int(exact) if exact.denominator == 1 else float(exact)
        case ("part", part, name):
            return None if row[name] is None else _PARTS[part](row[name])
        case ("case", branches, default):
            value = next((v for when, v in branches if judge(when, row, schema) is True), default)
            return None if value is None else number(value, row, schema)
        case ("coalesce", parts):
            return next((v for part in parts if (v := number(part, row, schema)) is not None), None)
        case ("nullif", [first, second]):
            one, other = number(first, row, schema), number(second, row, schema)
            return None if one is None or one == other else one
        case ("/", left, right):
            above, below = number(left, row, schema), number(right, row, schema)
            if above is None or not below:  # NULL, or zero
                return None
            found = above / below
            return int(found) if not has_columns(tree) and found == int(found) else found
        case ("floor", [inner]):
            value = number(inner, row, schema)
            return None if value is None else math.floor(value)
    operands = _operands(tree)
    values = [number(operand, row, schema) for operand in operands]
    if None in values:
        return None
    if any(is_real(operand, schema) for operand in operands):
        values = [float(value) for value in values]
    found = _OPERATIONS[tree[0]](*values)
    return int(found) if not has_columns(tree) and found == int(found) else found


def is_real(tree: Tree, schema: Schema) -> bool:
    if tree[0] == "column":
        return isinstance(schema[tree[1]], Real)
    if tree[0] in ("floor", "part"):
        return False
    if tree[0] == "/" and has_columns(tree):
        return True
    if not has_columns(tree):
        return isinstance(number(tree, {}, schema), float)
    return any(is_real(part, schema) for part in _operands(tree))


def has_columns(tree: Tree) -> bool:
    return tree[0] in ("column", "part", "case") or any(map(has_columns, _operands(tree)))


def _operands(tree: Tree) -> list[Tree]:
    match tree:
        case ("column" | "number", _) | ("part", _, _):
            return []
        case ("case", branches, default):
            return [*(value for _, value in branches), *([default] if default else [])]
        case (_, list() as parts):
            return parts
    return list(tree[1:])


def _compare(op: str, left: Tree, right: Tree, row: Row, schema: Schema) -> bool | None:
    sides = []
    for side, other in ((left, right), (right, left)):
        if side[0] in ("text", "truth"):
            sides.append(side[1])
        elif side[0] == "number":
            # A number alone is exact beside whole numbers, and the nearest float beside reals.
            exact = Fraction(side[1])
            sides.append(float(exact) if is_real(other, schema) and other[0] != "number" else exact)
        else:
            sides.append(number(side, row, schema))
    if None in sides:
        return None
    if any(isinstance(side, float) for side in sides):
        sides = [float(side) for side in sides]
    if any(hasattr(side, "isoformat") for side in sides):
        sides = [str(side) for side in sides]
    return bool(_OPS[op](*sides))


def _and(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
