"""Everyday conditions read by hand, ten times as quickly as by sqlglot, into the same trees.

    either:     both (OR both)*
    both:       inverse (AND inverse)*
    inverse:    NOT inverse | ( either ) | TRUE | FALSE | column | clause
    clause:     operand sign operand | operand [NOT] BETWEEN operand AND operand
                | operand [NOT] IN ( operand, ... ) | column IS [NOT] (NULL | TRUE | FALSE)
    operand:    column | number | 'text' | TRUE | FALSE | aggregate(...)

Names are plain and spelt as declared, numbers are short decimals; what events say of a unit is read from its own words
by `holdfast.query.across`. All else, and whatever is wrong, is left to
`holdfast.query.parse`, which also knows what to say about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from holdfast.errors import QueryError
from holdfast.query.column import Boolean
from holdfast.query.comparison import NEGATED, Operand, comparison
from holdfast.query.expression import Column
from holdfast.query.folding import AGGREGATES
from holdfast.query.predicate import Always, IsNull, Never, NotNull, Predicate, conjunction, disjunction
from holdfast.query.scan import MAX_DEPTH
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import RowSchema, UnitSchema

_LONGEST = 1000
_TOKEN = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*|-?[0-9]{1,18}(?:\.[0-9]{1,18})?|'[^'\\\x00-\x1f]*'|<=|>=|<>|!=|==|[<>=(),.]"
)
_PLAIN = re.compile(rf"(?:{_TOKEN.pattern}|[ \t\r\n])*+")
_AGGREGATE = re.compile(rf"(?:{'|'.join(sorted(AGGREGATES))})[ \t\r\n]*+\(", re.IGNORECASE)
_SIGNS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "==": "=", "<>": "<>", "!=": "<>"}
_TRUTHS = {"true": True, "false": False}
_KEYWORDS = frozenset(["and", "or", "not", "in", "between", "is", "null", *_TRUTHS])
_END = ""


class _NotPlain(Exception):
    """The text is not one of these, or is wrong."""


class _Run(list[Predicate]):
    """The parts of a run of ANDs or ORs that was in parentheses: a longer run of the same kind takes them in."""

    def __init__(self, word: str) -> None:
        self.word = word


def plain_predicate(text: str, schema: Schema) -> Predicate | None:
    """The condition in the text, if it is an everyday one; None if not, or if it is wrong."""
    words = _words(text)
    if words is None:
        return None
    tokens = [word.lower() if word.lower() in _KEYWORDS else word for word in words]
    if (
        len(tokens) > MAX_DEPTH
        and sum(token in ("(", "not") or token[0] == "-" for token in tokens) > MAX_DEPTH
    ):
        return None
    reader = _Reader(tokens, schema)
    try:
        found = reader.joined(reader.either(True), True)
        reader.expect(_END)
    except (_NotPlain, QueryError):
        return None
    return found


def plain_names(text: str) -> list[str] | None:
    """The names in an everyday text, other than in aggregates; None if it is none, or calls another function."""
    tokens = _words(text)
    if tokens is None or "." in tokens:
        return None
    names = [token.isidentifier() and token.lower() not in _KEYWORDS for token in tokens]
    if any(name and follower == "(" for name, follower in zip(names, tokens[1:], strict=False)):
        return None
    return [token for name, token in zip(names, tokens, strict=True) if name]


def _words(text: str) -> list[str] | None:
    """The pieces of an everyday text, each aggregate as one of them; None if it is no everyday text."""
    if len(text) > _LONGEST or not _PLAIN.fullmatch(text):
        return None
    if not _AGGREGATE.search(text):
        return _TOKEN.findall(text)
    found: list[str] = []
    start, depth = -1, 0
    for piece in _TOKEN.finditer(text):
        word = piece[0]
        if start < 0 and word.lower() in AGGREGATES and _AGGREGATE.match(text, piece.start()):
            start = piece.start()
        elif start < 0:
            found.append(word)
        elif word.lower() == "distinct":
            return None
        else:
            depth += (word == "(") - (word == ")")
            if depth == 0:
                found.append(text[start : piece.end()])
                start = -1
    return found if start < 0 else None


class _Reader:
    """Reads tokens from left to right. `positive` says whether the number of NOTs around is even."""

    def __init__(self, tokens: list[str], schema: Schema) -> None:
        self.tokens = iter(tokens)
        self.schema = schema
        self.next = next(self.tokens, _END)

    def take(self) -> str:
        token, self.next = self.next, next(self.tokens, _END)
        return token

    def accept(self, token: str) -> bool:
        """Whether the token comes next; then it is taken."""
        found = self.next == token
        if found:
            self.take()
        return found

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise _NotPlain

    def either(self, positive: bool) -> Predicate | _Run:
        return self.run("or", self.both, positive)

    def both(self, positive: bool) -> Predicate | _Run:
        return self.run("and", self.inverse, positive)

    def run(self, word: str, read: Callable[[bool], Predicate | _Run], positive: bool) -> Predicate | _Run:
        first = read(positive)
        if self.next != word:
            return first
        parts = _Run(word)
        self._add(parts, first, positive)
        while self.accept(word):
            self._add(parts, read(positive), positive)
        return parts

    def _add(self, parts: _Run, found: Predicate | _Run, positive: bool) -> None:
        if isinstance(found, _Run) and found.word == parts.word:
            parts += found
        else:
            parts.append(self.joined(found, positive))

    def joined(self, found: Predicate | _Run, positive: bool) -> Predicate:
        if not isinstance(found, _Run):
            return found
        return conjunction(*found) if (found.word == "and") == positive else disjunction(*found)

    def inverse(self, positive: bool) -> Predicate | _Run:
        if self.accept("not"):
            return self.joined(self.inverse(not positive), not positive)
        if self.accept("("):
            found = self.either(positive)
            self.expect(")")
            return found
        return self.clause(positive)

    def clause(self, positive: bool) -> Predicate:
        left = self.take()
        if sign := _SIGNS.get(self.next):
            self.take()
            return self.compared(sign, left, positive)
        if self.accept("is"):
            return self.state(_operand(left, self.schema), positive)
        if self.accept("not"):
            positive = not positive
            if self.next not in ("in", "between"):
                raise _NotPlain
        if self.accept("between"):
            low = self.compared(">=", left, positive)
            self.expect("and")
            high = self.compared("<=", left, positive)
            return conjunction(low, high) if positive else disjunction(low, high)
        if self.accept("in"):
            parts = self.choices(left, positive)
            return disjunction(*parts) if positive else conjunction(*parts)
        alone = _operand(left, self.schema)
        if isinstance(alone, bool):
            return Always() if alone == positive else Never()
        if isinstance(alone, Column) and isinstance(self.schema[alone.name], Boolean):
            return comparison("=", alone, positive, self.schema)
        raise _NotPlain

    def compared(self, sign: str, left: str, positive: bool) -> Predicate:
        return _compared(sign if positive else NEGATED[sign], left, self.take(), self.schema)

    def choices(self, left: str, positive: bool) -> list[Predicate]:
        """What comes after IN."""
        self.expect("(")
        found = [self.compared("=", left, positive)]
        while self.accept(","):
            found.append(self.compared("=", left, positive))
        self.expect(")")
        return found

    def state(self, column: Operand, positive: bool) -> Predicate:
        """What comes after IS."""
        if not isinstance(column, Column):
            raise _NotPlain
        positive ^= self.accept("not")
        if self.accept("null"):
            return IsNull(column.name) if positive else NotNull(column.name)
        wanted = _TRUTHS.get(self.take())
        if wanted is None or not isinstance(self.schema[column.name], Boolean):
            raise _NotPlain
        if positive:
            return comparison("=", column, wanted, self.schema)
        return disjunction(comparison("=", column, not wanted, self.schema), IsNull(column.name))


@lru_cache(maxsize=4096)
def _compared(sign: str, left: str, right: str, schema: Schema) -> Predicate:
    """One comparison; new questions are often made of old ones."""
    return comparison(sign, _operand(left, schema), _operand(right, schema), schema)


def _operand(token: str, schema: Schema) -> Operand:
    if token[:1] == "'":
        return token[1:-1]
    if token[-1:].isdecimal() and not token.isidentifier():
        return Fraction(token) if "." in token else Fraction(int(token))
    if token in _TRUTHS:
        return _TRUTHS[token]
    if len(token) > 1 and token[-1] == ")":
        if not isinstance(schema, UnitSchema | RowSchema):
            raise _NotPlain
        return Column((schema if isinstance(schema, UnitSchema) else schema.of).read(token).name)
    name = None if token in _KEYWORDS or not token.isidentifier() else schema.spelling(token)
    if name is None:
        raise _NotPlain
    return Column(name)
