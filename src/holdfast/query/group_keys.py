"""What rows are grouped by: columns, whole numbers that are computed, dates cut to months, CASE, conditions.

by="year(visit)"    by=["carrier", "floor(distance / 500)"]    GROUP BY CASE WHEN age < 40 THEN 'young' ELSE 'old' END
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from holdfast.check import shown
from holdfast.errors import InputError
from holdfast.query import calendar
from holdfast.query import expression as arithmetic
from holdfast.query.canonical import case
from holdfast.query.computed_groups import ExpressionGroups, Product
from holdfast.query.expression import Constant, Expression
from holdfast.query.grouping import MAX_GROUPS, Grouping, Groups, grouping, is_list
from holdfast.query.parse import COMPARISONS, Converter, bare
from holdfast.query.scan import scan
from holdfast.query.schema import Real, Schema
from holdfast.query.temporal import Temporal, Time
from holdfast.query.time_reading import datetime_of
from holdfast.query.wording import quoted

Key: TypeAlias = str | ExpressionGroups | Grouping
"""The name of a column, whose groups are its own or cut by edges; or groups that the text itself gives."""
MAX_KEYS = 8
"""Columns that rows are grouped by at once."""
_CONDITIONS = frozenset([*COMPARISONS, "and", "or", "not", "between", "in", "like", "startswith", "is"])


def computed_keys(by: object) -> list[str]:
    """Those texts in by= that are no names of columns."""
    return [key for key in key_texts(by) if "(" in key or "::" in key]


def key_texts(by: object) -> list[str]:
    """The texts in by=: none, one, or a list of them."""
    if by is None:
        return []
    keys = [by] if isinstance(by, str) else list(by) if is_list(by) else []  # type: ignore[call-overload]
    if not keys or not all(isinstance(key, str) for key in keys):
        raise InputError(f"expected by= as the name of a column or a list of names, got {shown(by)}")
    return keys


def groups_of(schema: Schema, by: object, edges: object = None) -> Groups:
    """The groups of by=, with edges= as a list for one column, or as a dict from columns to their edges.

    Guarantee: they are known from the texts and the schema alone, and there are at most MAX_GROUPS.
    """
    texts = key_texts(by)
    given = edges if isinstance(edges, Mapping) else {} if edges is None else {texts[0]: edges}
    if len(texts) > 1 and edges is not None and not isinstance(edges, Mapping):
        raise InputError(
            "expected edges= as a dict from columns to their edges, got one list for several columns"
        )
    if unknown := [name for name in given if name not in texts]:
        raise InputError(f"expected edges of what is in by=, got them for {shown(unknown[0])}")
    return crossed(schema, [key_of(text, schema) for text in texts], [given.get(text) for text in texts])


def crossed(schema: Schema, keys: Sequence[Key], edges: Sequence[Any] | None = None) -> Groups:
    """The groups of one key, or of each combination of several."""
    if len(keys) > MAX_KEYS:
        raise InputError(f"expected at most {MAX_KEYS} columns to group by, got {len(keys)}; leave some out")
    if len(set(keys)) < len(keys):
        raise InputError("expected different columns to group by, got one twice; leave it out")
    parts = []
    for key, cut in zip(keys, edges or [None] * len(keys), strict=True):
        if cut is not None and not isinstance(key, str):
            raise InputError(f"expected no edges for {key.column}, got some; its groups are its own values")
        if cut is None and isinstance(key, str) and isinstance(schema.get(key), Real):
            raise InputError(
                f"expected edges= for the real column {key!r}, got none; write edges=[...] with a few of its values, "
                f"or by={f'floor({quoted(key)} / 10)'!r}"
            )
        parts.append(grouping(schema, key, cut) if isinstance(key, str) else key)
    sizes = [part.size for part in parts]
    if math.prod(sizes) > MAX_GROUPS:
        raise InputError(
            f"expected at most {MAX_GROUPS:,} groups, got {' x '.join(map(str, sizes))} = {math.prod(sizes):,}; "
            "give coarser edges, or fewer columns"
        )
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def key_of(text: str, schema: Schema) -> Key:
    """A column by its name, as it is declared; anything else is read."""
    name = schema.spelling(text)
    if name is not None or not any(sign in text for sign in ("(", " ", "::")):
        return name or text  # what is no column is refused by whoever looks it up
    return _parsed(text, schema)


@lru_cache(maxsize=512)
def _parsed(text: str, schema: Schema) -> Key:
    reader = Converter(text, schema, scan(text, schema))
    return read_key(reader, reader.parsed())


def read_key(reader: Converter, node: Any) -> Key:
    """What a node of GROUP BY or a text of by= means; QueryError for what has no public groups."""
    node = bare(node)
    if node.key == "column":
        return reader.name(node)
    if (cut := reader.truncation(node)) is not None:
        return _truncated(reader.schema, *cut)
    if node.key in _CONDITIONS:
        return _condition(reader, node)
    if node.key == "case" and any(_is_text(value) for value in _values(node)):
        return _texts(reader, node)
    value = reader.number(node)
    low, high = arithmetic.range(value, reader.schema)
    if not arithmetic.is_integer(value, reader.schema):
        raise reader.refusal("groups are whole numbers; write floor(...), as in floor(x / 10)", node)
    if high - low >= MAX_GROUPS:
        raise reader.refusal(
            f"{value} has {int(high - low) + 1:,} values, and at most {MAX_GROUPS:,} may be groups; divide it",
            node,
        )
    labels = tuple(str(number) for number in range(int(low), int(high) + 1))
    return ExpressionGroups(reader.schema, value, int(low), labels, str(value))


def _truncated(schema: Schema, part: str, name: str) -> Grouping:
    """The years, weeks or hours of the declared values; each is called by its first day, or by when it begins."""
    kind = schema[name]
    assert isinstance(kind, Temporal)
    begins = calendar.starts(part, kind, MAX_GROUPS)
    codes = np.maximum(begins // kind.unit - kind.lo, 0).tolist()
    bounds = (*codes, kind.codes)
    starts = tuple(kind.value(code) for code in codes)
    ends = tuple(kind.value(code - 1) for code in bounds[1:])
    moments = map(datetime_of, begins.tolist())
    if part not in calendar.OF_DAY:
        labels = tuple(str(moment.date()) for moment in moments)
    else:
        labels = tuple(str(moment.time() if isinstance(kind, Time) else moment) for moment in moments)
    return Grouping(name, bounds, labels, starts, ends)


def _condition(reader: Converter, node: Any) -> ExpressionGroups:
    """Where a condition is false, and where it is true; where it is unknown, there is no group."""
    true, false = (reader.predicate(node, positive=positive) for positive in (True, False))
    value = case(((false, Constant(0)), (true, Constant(1))))
    return ExpressionGroups(reader.schema, value, 0, ("false", "true"), str(true))


def _texts(reader: Converter, node: Any) -> ExpressionGroups:
    """A CASE whose values are texts: a group for each, in the order in which they are written."""
    labels: dict[str, int] = {}

    def place(value: Any) -> Expression:
        value = bare(value)
        if value.key == "null":
            return arithmetic.NULL
        if not _is_text(value):
            raise reader.refusal(
                "the values of this CASE are texts and something else; write texts only", value
            )
        return Constant(labels.setdefault(reader.token(value).value, len(labels)))

    value = reader.case(node, place)
    written = dict(zip(map(Constant, labels.values()), labels, strict=True))
    return ExpressionGroups(reader.schema, value, 0, tuple(labels), _spelt(value, written))


def _spelt(value: Expression, written: Mapping[Any, str]) -> str:
    """The CASE with its texts."""
    from holdfast.query.wording import string

    if not isinstance(value, arithmetic.Case):
        return string(written[value])
    whens = "".join(f" WHEN {condition} THEN {_spelt(each, written)}" for condition, each in value.branches)
    if not value.branches:
        return "NULL"
    return f"CASE{whens}{'' if value.default is None else f' ELSE {_spelt(value.default, written)}'} END"


def _values(node: Any) -> list[Any]:
    default = node.args.get("default")
    return [*(branch.args["true"] for branch in node.args["ifs"]), *([] if default is None else [default])]


def _is_text(node: Any) -> bool:
    node = bare(node)
    return bool(node.key == "literal" and node.is_string)
