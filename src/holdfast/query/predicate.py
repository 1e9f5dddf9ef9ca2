"""Conditions on a row: a frozen tree in which equal questions are equal values.

A predicate stands for the set of rows on which SQL's WHERE is true. NOT is pushed to the leaves while
parsing, and each leaf is false on the rows that SQL calls unknown; AND and OR of "is true" are then
two-valued, and no third value is needed. All that constants ask of one column becomes one leaf, a set of
codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from holdfast.query import expression as arithmetic
from holdfast.query.column import ColumnType
from holdfast.query.expression import Expression
from holdfast.query.ranges import Ranges, domain, intersection, union


class _Written:
    """`str` of a node is the text that parses back to it, spelt once and kept."""

    __slots__ = ("_text",)
    _text: str

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:
            from holdfast.query.spelling import spelt

            text = spelt(self)  # type: ignore[arg-type]  # only the nodes below inherit
            object.__setattr__(self, "_text", text)
            return text


@dataclass(frozen=True, slots=True)
class Always(_Written):
    pass


@dataclass(frozen=True, slots=True)
class Never(_Written):
    pass


@dataclass(frozen=True, slots=True)
class In(_Written):
    """The column's code is in one of the closed ranges; with `null`, a NULL counts too.

    `kind` is the declared type of the column, so that the node can spell itself.
    """

    column: str
    ranges: Ranges
    null: bool = False
    kind: ColumnType = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull(_Written):
    column: str


@dataclass(frozen=True, slots=True)
class NotNull(_Written):
    column: str


@dataclass(frozen=True, slots=True)
class Compare(_Written):
    """left op right, false where either of them is NULL.

    A constant is on the right, with <, <=, >, >=, = or <>; two expressions use <, <=, = or <> only.
    """

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class TextTest(_Written):
    """A test of a text column, false where it is NULL: "=", "LIKE", "starts_with" (and "<>", "NOT ..."), or a length
    ("length <=", "length >=", "length =", "length <>")."""

    column: str
    test: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Present(_Written):
    """The expression has a value; or (`negated`) it is NULL. Only of one that may be NULL where no column of it is."""

    value: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And(_Written):
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(_Written):
    parts: tuple[Predicate, ...]


Predicate: TypeAlias = Always | Never | In | IsNull | NotNull | Compare | TextTest | Present | And | Or
Leaf: TypeAlias = In | IsNull | NotNull
_ONE_COLUMN = (In, IsNull, NotNull, TextTest)


def columns(predicate: Predicate) -> frozenset[str]:
    """The names of the columns it reads."""
    if isinstance(predicate, _ONE_COLUMN):
        return frozenset((predicate.column,))
    if isinstance(predicate, Compare):
        return arithmetic.columns(predicate.left) | arithmetic.columns(predicate.right)
    if isinstance(predicate, Present):
        return arithmetic.columns(predicate.value)
    if isinstance(predicate, And | Or):
        return frozenset().union(*map(columns, predicate.parts))
    return frozenset()


def _strict(predicate: Predicate) -> frozenset[str]:
    """Columns that are not NULL where it is true, as far as its expressions tell."""
    if isinstance(predicate, Compare):
        return arithmetic.strict(predicate.left) | arithmetic.strict(predicate.right)
    if isinstance(predicate, Present) and not predicate.negated:
        return arithmetic.strict(predicate.value)
    return frozenset()


def among(name: str, ranges: Ranges, kind: ColumnType, null: bool = False) -> Predicate:
    """The column's code lies in the ranges (or is NULL), in its one form."""
    full = ranges == (domain(kind),)
    if not ranges:
        return IsNull(name) if null else Never()
    if full:
        return Always() if null else NotNull(name)
    return In(name, ranges, null, kind=kind)


def conjunction(*parts: Predicate) -> Predicate:
    """All of the parts, flattened, merged by column, sorted; of none, Always."""
    if len(parts) > 1 and all(type(part) is In for part in parts):
        sets = {part.column: part for part in parts}  # type: ignore[union-attr]
        if len(sets) == len(parts):  # most questions: nothing to merge, and none makes another superfluous
            return And(tuple(sorted(parts, key=_order)))
    leaves: dict[str, Predicate] = {}
    rest: set[Predicate] = set()
    for part in _flat(parts, And):
        if isinstance(part, Never):
            return part
        if isinstance(part, Leaf):
            leaves[part.column] = _both(leaves[part.column], part) if part.column in leaves else part
        elif not isinstance(part, Always):
            rest.add(part)
    if Never() in leaves.values():
        return Never()
    # A comparison is true only where its columns are not NULL.
    known = frozenset().union(*map(_strict, rest))
    rest.update(leaf for name, leaf in leaves.items() if leaf != NotNull(name) or name not in known)
    return _joined(rest, And, Or, Always())


def disjunction(*parts: Predicate) -> Predicate:
    """Any of the parts, flattened, merged by column, sorted; of none, Never."""
    leaves: dict[str, list[Leaf]] = {}
    rest: set[Predicate] = set()
    for part in _flat(parts, Or):
        if isinstance(part, Always):
            return part
        if isinstance(part, Leaf):
            leaves.setdefault(part.column, []).append(part)
        elif not isinstance(part, Never):
            rest.add(part)
    merged = {name: _either(same) for name, same in leaves.items()}
    if Always() in merged.values():
        return Always()
    # A comparison adds nothing where it is already enough that one of its columns is not NULL.
    known = {name for name, leaf in merged.items() if leaf == NotNull(name)}
    rest = {part for part in rest if not _strict(part) & known}
    return _joined(rest | set(merged.values()), Or, And, Never())


def _flat(parts: Iterable[Predicate], node: type[And] | type[Or]) -> Iterable[Predicate]:
    for part in parts:
        if isinstance(part, node):
            yield from part.parts
        else:
            yield part


def _both(first: Predicate, second: Leaf) -> Predicate:
    """Two conditions on one column at once."""
    match first, second:
        case (NotNull(name), In(ranges=ranges, kind=kind)) | (In(ranges=ranges, kind=kind), NotNull(name)):
            return among(name, ranges, kind)
        case (IsNull(), In(null=True)) | (In(null=True), IsNull()):
            return first if isinstance(first, IsNull) else second
        case In(name, mine, null, kind=kind), In(ranges=other, null=also):
            return among(name, intersection(mine, other), kind, null and also)
    return first if first == second else Never()


def _either(leaves: list[Leaf]) -> Predicate:
    """At least one of several conditions on one column."""
    name, null = leaves[0].column, any(isinstance(leaf, IsNull) for leaf in leaves)
    sets = [leaf for leaf in leaves if isinstance(leaf, In)]
    null = null or any(leaf.null for leaf in sets)
    if any(isinstance(leaf, NotNull) for leaf in leaves):
        return Always() if null else NotNull(name)
    if not sets:
        return IsNull(name)
    return among(name, union(piece for leaf in sets for piece in leaf.ranges), sets[0].kind, null)


def _joined(
    parts: set[Predicate], node: type[And] | type[Or], other: type[And] | type[Or], empty: Predicate
) -> Predicate:
    """The parts under one node, less those that another part makes superfluous: a AND (a OR b) is a."""
    kept = [part for part in parts if not (isinstance(part, other) and parts.intersection(part.parts))]
    if len(kept) > 1:
        return node(tuple(sorted(kept, key=_order)))
    return kept[0] if kept else empty


def _order(predicate: Predicate) -> tuple[Any, ...]:
    """A sort key. Tuples of one rank hold comparable things."""
    match predicate:
        case IsNull(name):
            return 1, name
        case NotNull(name):
            return 2, name
        case In(name, ranges, null):
            return 3, name, ranges, null
        case Compare(op, left, right):
            return 4, str(left), op, str(right)
        case TextTest(name, test, value):
            return 7, name, test, str(value)
        case Present(value, negated):
            return 8, str(value), negated
        case And(parts):
            return 5, tuple(map(_order, parts))
        case Or(parts):
            return 6, tuple(map(_order, parts))
    return (0, str(predicate))
