"""SQL text into our own trees: sqlglot parses, a short list of node types is converted, all else is refused.

Everyday conditions are read without sqlglot, into the same trees (`holdfast.query.quick_parser`). NOT is pushed down on
the way, so that the trees hold no negation. Refusals depend only on text and schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from holdfast.errors import InputError, QueryError
from holdfast.query import canonical
from holdfast.query import expression as arithmetic
from holdfast.query.calendar import PARTS, TRUNCATED, has
from holdfast.query.canonical import constant
from holdfast.query.casts import WHOLE
from holdfast.query.column import INTEGER_LIMIT, Boolean, Category, Text
from holdfast.query.comparison import (
    FLIPPED,
    NEGATED,
    Operand,
    comparison,
    label_pattern,
    text_length,
    text_pattern,
    truncated_day,
)
from holdfast.query.expression import NULL, Column, DatePart, Expression
from holdfast.query.predicate import Always, IsNull, Never, NotNull, Predicate, conjunction, disjunction
from holdfast.query.presence import absent, known
from holdfast.query.quick_parser import plain_predicate
from holdfast.query.scan import MAX_DEPTH, MAX_TERMS, MAX_TEXT, OURS, REGRESSIONS, Token, scan
from holdfast.query.schema import Schema
from holdfast.query.temporal import Temporal
from holdfast.query.wording import quoted

__all__ = ["MAX_DEPTH", "MAX_OPERATIONS", "MAX_TERMS", "MAX_TEXT", "parse_expression", "parse_predicate"]

MAX_OPERATIONS = 64
"""Arithmetic operations on top of one another; a sum of 65 terms has that many."""

_CACHED_TEXT = 4096
COMPARISONS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "eq": "=", "neq": "<>"}
_OPERATIONS: dict[str, Callable[[Expression, Expression], Expression]] = {
    "add": canonical.add,
    "sub": canonical.subtract,
    "mul": canonical.multiply,
    "div": canonical.divide,
}
_PATTERNS = {"like": "LIKE", "ilike": "ILIKE", "startswith": "starts_with"}
_TRUTHS = frozenset([*COMPARISONS, *_PATTERNS, "and", "or", "not", "between", "in", "is", "exists"])
_CONTENT = ("column", "name", "number", "string")
Node = Any  # sqlglot's expression; its classes move between releases, their keys do not
Made = TypeVar("Made")


def parse_predicate(text: str, schema: Schema) -> Predicate:
    """The condition in the text, in canonical form. QueryError points at what is not in the language.

    Cost: some 40 µs for a short everyday text, 250 µs for another; nothing worth naming for one that was parsed
    before.
    """
    return _remembered(text, schema, _predicate_cached, _predicate)


def condition_of(where: str | Predicate, schema: Schema) -> Predicate:
    """A condition: a text is parsed, and what was parsed on its way, by the same columns, is taken as it is."""
    return where if isinstance(where, Predicate) else parse_predicate(where, schema)


def parse_expression(text: str, schema: Schema) -> Expression:
    """The arithmetic in the text, in canonical form, of integers or reals. QueryError as above."""
    return _remembered(text, schema, _expression_cached, _expression)


def _remembered(
    text: str, schema: Schema, cached: Callable[[str, Schema], Made], fresh: Callable[[str, Schema], Made]
) -> Made:
    if not isinstance(text, str):
        raise InputError(f"expected the text of a question, got {type(text).__name__}")
    if not isinstance(schema, Schema):
        raise InputError(f"expected a Schema, got {type(schema).__name__}")
    return cached(text, schema) if len(text) <= _CACHED_TEXT else fresh(text, schema)


def _predicate(text: str, schema: Schema) -> Predicate:
    predicate = plain_predicate(text, schema)
    if predicate is None:
        predicate = full_predicate(text, schema)
    _check_canonical(str(predicate), text, schema)
    return predicate


def full_predicate(text: str, schema: Schema) -> Predicate:
    """The condition in the text, whatever of the language it uses."""
    converter = Converter(text, schema, scan(text, schema))
    return converter.predicate(converter.parsed(), positive=True)


def _expression(text: str, schema: Schema) -> Expression:
    converter = Converter(text, schema, scan(text, schema))
    expression = converter.number(converter.parsed())
    _check_canonical(str(expression), text, schema)
    return expression


_predicate_cached = lru_cache(maxsize=4096)(_predicate)
_expression_cached = lru_cache(maxsize=1024)(_expression)


def _check_canonical(canonical: str, text: str, schema: Schema) -> None:
    """The canonical text must be askable too."""
    if len(canonical) > 1000 or canonical.count("(") + canonical.count("-") > MAX_DEPTH // 2:
        try:
            scan(canonical, schema)
        except QueryError:
            raise QueryError(
                "the question is too large once written out; ask a simpler one", text, 0
            ) from None


class Converter:
    """Turns sqlglot's tree of one text into ours. Every refusal is a QueryError with its place."""

    def __init__(self, text: str, schema: Schema, tokens: list[Token]) -> None:
        self.text = text
        self.schema = schema
        self.tokens = tokens

    def parsed(self, *, statement: bool = False) -> Node:
        """sqlglot's tree of the tokens: a condition, or a whole statement."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.dialects.dialect import Dialect
        from sqlglot.errors import ParseError

        lexer: Any = sqlglot.tokens
        name = lexer.TokenType.IDENTIFIER
        known = {"column": name, "name": name, "function": lexer.TokenType.VAR}
        raw = []
        for place, token in enumerate(self.tokens):
            source = known.get(token.kind, token.source)
            # sqlglot sees the grammar only: a name or a value is the number of its token. So is the column
            # number, because that is what a ParseError reports.
            # Functions of our own are not sqlglot's, which has ideas about some of them.
            own = "_" if token.kind == "function" and token.value in OURS | REGRESSIONS else ""
            word = str(place) if token.kind in _CONTENT else own + token.value
            raw.append(lexer.Token(source, word, 1, place, token.start, token.start))
        try:
            parser = Dialect.get_or_raise(None).parser()
            trees = parser.parse(raw, "") if statement else parser.parse_into(exp.Condition, raw, "")
        except ParseError as error:
            raise self._unreadable(error) from None
        except RecursionError:
            raise QueryError("the question is nested too deeply; take it apart", self.text, 0) from None
        if len(trees) != 1 or trees[0] is None:
            raise QueryError("cannot read the question; write one condition", self.text, 0)
        return trees[0]

    def predicate(self, node: Node, positive: bool) -> Predicate:
        """The rows on which the node is true; with positive=False, those on which NOT node is true."""
        key = node.key
        if key == "paren":
            return self.predicate(node.this, positive)
        if key == "not":
            return self.predicate(node.this, not positive)
        if key in ("and", "or"):
            parts = [self.predicate(part, positive) for part in _chain(node, key)]
            return conjunction(*parts) if (key == "and") == positive else disjunction(*parts)
        if key in COMPARISONS:
            return self._compared(COMPARISONS[key], node.this, node.expression, positive)
        if key == "between":
            low = self._compared(">=", node.this, node.args["low"], positive)
            high = self._compared("<=", node.this, node.args["high"], positive)
            return conjunction(low, high) if positive else disjunction(low, high)
        if key == "in":
            choices = node.expressions
            if not choices or node.args.get("query") or node.args.get("field") or node.args.get("unnest"):
                raise self.refusal("IN needs a list of values in parentheses", node)
            parts = [self._compared("=", node.this, choice, positive) for choice in choices]
            return disjunction(*parts) if positive else conjunction(*parts)
        if key in _PATTERNS:
            return self._pattern(_PATTERNS[key], node, positive)
        if key == "is":
            return self._is(node, positive)
        if key == "boolean":
            return Always() if bool(node.this) == positive else Never()
        if key == "column":
            name = self.name(node)
            if not isinstance(self.schema[name], Boolean):
                raise self.refusal(f"{quoted(name)} is not a condition; compare it with something", node)
            return comparison("=", Column(name), positive, self.schema)
        if key == "case":
            raise self.refusal("CASE gives a number here; compare it with one", node)
        raise self.refusal("expected a condition here", node)

    def number(self, node: Node) -> Expression:
        """The node as arithmetic, checked against the declared ranges."""
        operand = self._operand(node)
        if isinstance(operand, str | bool):
            raise self.refusal("expected a number here, or a column of numbers", node)
        found = constant(operand) if isinstance(operand, Fraction) else operand
        if isinstance(found, Column) and self.schema[found.name].kind not in ("integer", "real"):
            raise self.refusal(
                f"{quoted(found.name)} is a {self.schema[found.name].kind} column, not a number", node
            )
        self._placed(lambda: arithmetic.range(found, self.schema), node)
        return found

    def _pattern(self, test: str, node: Node, positive: bool) -> Predicate:
        name, pattern = self._text_column(node.this, test, (Text, Category)), bare(node.expression)
        if pattern.key != "literal" or not pattern.is_string:
            raise self.refusal(f"{test} needs a text in quotes", node)
        # sqlglot's newer releases keep the NOT of NOT LIKE inside.
        inverse = bool(node.args.get("negate"))
        wanted, kind = self.token(pattern).value, self.schema[name]
        if isinstance(kind, Category):
            return label_pattern(test, name, wanted, positive != inverse, kind)
        if test == "ILIKE":
            raise self.refusal("ILIKE is over declared labels; of a text column write LIKE", node)
        return text_pattern(test, name, wanted, positive != inverse)

    def _text_column(self, node: Node, test: str, kinds: tuple[type, ...] = (Text,)) -> str:
        node = bare(node)
        name = self.name(node) if node.key == "column" else None
        if name is None or not isinstance(self.schema[name], kinds):
            among = "text or category" if Category in kinds else "text"
            raise self.refusal(f"{test} applies to a {among} column only", node)
        return name

    def _compared(self, op: str, left: Node, right: Node, positive: bool) -> Predicate:
        if bare(right).key == "length":
            op, left, right = FLIPPED[op], right, left
        if bare(left).key == "length":
            name = self._text_column(bare(left).this, "length")
            kind, number = self.schema[name], self._operand(right)
            assert isinstance(kind, Text)
            wanted = op if positive else NEGATED[op]
            return self._placed(lambda: text_length(wanted, name, number, kind), right)
        op = op if positive else NEGATED[op]
        if (days := self._truncated(op, left, right)) is not None:
            return days
        sides = self._operand(left), self._operand(right)
        if isinstance(sides[0], Column):
            blamed = left if isinstance(sides[1], Expression) else right
        else:
            blamed = left if isinstance(sides[0], Expression) or isinstance(sides[1], Column) else right
        return self._placed(lambda: comparison(op, *sides, self.schema), blamed)

    def _is(self, node: Node, positive: bool) -> Predicate:
        subject, state = bare(node.this), node.expression.key
        if subject.key != "column":
            if state != "null":
                raise self.refusal("IS TRUE applies to a column only; write the condition alone", node)
            value = self._term(self._operand(subject), subject)
            self._placed(lambda: arithmetic.range(value, self.schema), subject)
            return absent(value, self.schema) if positive else known(value, schema=self.schema)
        name = self.name(subject)
        if state == "null":
            return IsNull(name) if positive else NotNull(name)
        if state == "boolean" and isinstance(self.schema[name], Boolean):
            wanted = bool(node.expression.this)
            if positive:
                return comparison("=", Column(name), wanted, self.schema)
            return disjunction(comparison("=", Column(name), not wanted, self.schema), IsNull(name))
        raise self.refusal(f"{quoted(name)} IS needs NULL, or TRUE or FALSE for a boolean column", node)

    def _operand(self, node: Node, depth: int = 0) -> Operand:
        """One side of a comparison. A number alone stays exact."""
        node = bare(node)
        key = node.key
        if depth > MAX_OPERATIONS:
            raise self.refusal(f"at most {MAX_OPERATIONS} operations may build on one another", node)
        if key == "column":
            return Column(self.name(node))
        if key == "literal":
            return self.token(node).value if node.is_string else self.literal(node)
        if key == "boolean":
            return bool(node.this)
        if key == "neg":
            inner = self._operand(node.this, depth + 1)
            return -inner if isinstance(inner, Fraction) else canonical.negate(self._term(inner, node.this))
        if key in _OPERATIONS:
            left, right = (self._term(self._operand(n, depth + 1), n) for n in (node.this, node.expression))
            return _OPERATIONS[key](left, right)
        if key in ("abs", "least", "greatest"):
            given = [node.this, *node.expressions]
            operands = tuple(self._term(self._operand(n, depth + 1), n) for n in given)
            if key == "abs":
                return canonical.absolute(operands[0])
            return canonical.least(operands) if key == "least" else canonical.greatest(operands)
        if key == "case":
            return self.case(node, lambda value: self._value(value, depth + 1))
        if key == "anonymous":
            return self._called(str(node.this)[1:], node.expressions, node, depth + 1)
        raise self.refusal("expected a column, a value or arithmetic here", node)

    def _value(self, node: Node, depth: int) -> Expression:
        """A number, or NULL."""
        if bare(node).key == "null":
            return NULL
        return self._term(self._operand(node, depth), node)

    def case(self, node: Node, read: Callable[[Node], Expression]) -> Expression:
        """CASE WHEN condition THEN value … ELSE value END, or CASE x WHEN value THEN …"""
        subject, branches = node.args.get("this"), []
        for branch in node.args["ifs"]:
            when = branch.this
            if subject is None:
                condition = self.predicate(when, positive=True)
            else:
                condition = self._compared("=", subject, when, positive=True)
            branches.append((condition, read(branch.args["true"])))
        default = node.args.get("default")
        return canonical.case(tuple(branches), NULL if default is None else read(default))

    def _called(self, name: str, given: list[Node], node: Node, depth: int) -> Expression:
        """A function that is ours."""
        if name in PARTS:
            column, unit = self._moment_column(given, name, name, node)
            return DatePart(name, column, unit)
        if name == WHOLE:
            if len(given) != 1:
                raise self.refusal("a cast takes one number or condition", node)
            return self._whole(given[0])
        wanted = {"nullif": 2, "floor": 1, "ceil": 1}
        if name not in ("coalesce", *wanted):
            raise self.refusal(f"{name} is no number here; group by it, or compare it with a date", node)
        if len(given) != wanted.get(name, max(1, len(given))):
            raise self.refusal(
                f"{name} takes {'two arguments' if name == 'nullif' else 'one argument'}", node
            )
        operands = [self._value(each, depth) for each in given]
        if name == "coalesce":
            *first, last = operands
            return canonical.case(tuple((known(each, schema=self.schema), each) for each in first), last)
        if name == "nullif":
            differ = self._placed(lambda: comparison("<>", operands[0], operands[1], self.schema), node)
            same = absent(operands[1], self.schema)
            return canonical.case(((disjunction(differ, same), operands[0]),))
        if name == "floor":
            return canonical.floor(operands[0], self.schema)
        return canonical.negate(canonical.floor(canonical.negate(operands[0]), self.schema))

    def _whole(self, node: Node) -> Expression:
        """A cast to a whole number: of a truth value 1 or 0, of a whole number itself."""
        if self.is_condition(node):
            true, false = (self.predicate(node, positive=positive) for positive in (True, False))
            return canonical.case(((true, constant(Fraction(1))), (false, constant(Fraction(0)))))
        value = self.number(node)
        if not arithmetic.is_integer(value, self.schema):
            raise self.refusal(
                "engines round a cast each in its own way; write floor(x), or floor(x + 0.5)", node
            )
        return value

    def is_condition(self, node: Node) -> bool:
        """Whether it is a truth value: a comparison, or a Boolean column."""
        node = bare(node)
        if node.key == "column":
            return isinstance(self.schema[self.name(node)], Boolean)
        return node.key in _TRUTHS

    def _moment_column(self, given: list[Node], what: str, part: str, node: Node) -> tuple[str, int]:
        """A column that has such a part, and the microseconds of its steps."""
        if len(given) != 1:
            raise self.refusal(f"{what} takes one date column", node)
        column = bare(given[0])
        name = self.name(column) if column.key == "column" else None
        kind = None if name is None else self.schema[name]
        if name is None or not isinstance(kind, Temporal):
            raise self.refusal(f"{what} applies to a date, time or timestamp column only", column)
        if not has(part, kind):
            raise self.refusal(f"{quoted(name)} is a {kind.kind} column, which has no {part}", column)
        return name, kind.unit

    def truncation(self, node: Node) -> tuple[str, str] | None:
        """What date_trunc('month', visit) means: the part and the column; None if it is something else."""
        node = bare(node)
        if node.key != "anonymous" or str(node.this) != "_date_trunc":
            return None
        part = bare(node.expressions[0]) if len(node.expressions) == 2 else node
        word = self.token(part).value.lower() if part.key == "literal" and part.is_string else ""
        if word not in TRUNCATED:
            raise self.refusal(
                f"date_trunc takes {', '.join(map(repr, TRUNCATED))} and a column of dates or times", node
            )
        return word, self._moment_column(node.expressions[1:], "date_trunc", word, node)[0]

    def _truncated(self, op: str, left: Node, right: Node) -> Predicate | None:
        """A date_trunc beside a date."""
        if self.truncation(left) is None:
            op, left, right = FLIPPED[op], right, left
        if (trunc := self.truncation(left)) is None:
            return None
        value = self._operand(right)
        return self._placed(lambda: truncated_day(op, *trunc, value, self.schema), right)

    def _term(self, operand: Operand, node: Node) -> Expression:
        """A part of a larger expression."""
        if isinstance(operand, str | bool):
            raise self.refusal("expected a number here, or a column of numbers", node)
        if not isinstance(operand, Fraction):
            return operand
        if (
            operand.denominator == 1
            and abs(operand) > INTEGER_LIMIT
            and self.token(bare(node)).value.isdigit()
        ):
            raise self.refusal("a whole number in arithmetic must be within ±2^62", node)
        return self._placed(lambda: constant(operand), node)

    def number_literal(self, node: Node) -> Fraction | None:
        """A number as it is written, perhaps with a minus; None for anything else."""
        node = bare(node)
        if node.key == "neg":
            inner = self.number_literal(node.this)
            return None if inner is None else -inner
        return self.literal(node) if node.key == "literal" and not node.is_string else None

    def literal(self, node: Node) -> Fraction:
        digits = self.token(node).value
        _, _, exponent = digits.lower().partition("e")
        if len(digits) > 400 or len(exponent) > 4 or (exponent and abs(int(exponent)) > 400):
            raise self.refusal("the number is too long or too large", node)
        return Fraction(digits)

    def name(self, node: Node) -> str:
        """The column that a node names."""
        if set(filter(node.args.get, node.args)) != {"this"} or node.this.key != "identifier":
            raise self.refusal("expected a plain column here", node)
        return self.token(node.this).value

    def token(self, leaf: Node) -> Token:
        """The token behind a literal or an identifier."""
        if not str(leaf.this).isdecimal():  # a keyword where sqlglot expected a name
            raise self.refusal("expected a column or a value here", leaf)
        return self.tokens[int(leaf.this)]

    def _placed(self, make: Callable[[], Made], node: Node) -> Made:
        """Give a refusal from below its place in the text."""
        try:
            return make()
        except QueryError as error:
            raise self.refusal(str(error), node) from None

    def refusal(self, message: str, node: Node) -> QueryError:
        starts = []
        for found in node.walk():
            if found.key in ("identifier", "literal") and str(found.this).isdecimal():
                starts.append(self.token(found).start)
            elif "start" in found.meta:  # functions, in sqlglot's newer releases
                starts.append(found.meta["start"])
        if not starts:  # TRUE, FALSE and * have no place in the tree
            starts = [token.start for token in self.tokens if token.value == node.sql().lower()] or [0]
        return QueryError(message, self.text, min(starts))

    def _unreadable(self, error: Any) -> QueryError:
        details = error.errors[0] if error.errors else {}
        place = min(details.get("col") or 0, len(self.tokens) - 1)
        token = self.tokens[place]
        if place == len(self.tokens) - 1 and not str(details.get("description")).startswith("Invalid"):
            return QueryError("the question ends too early; write the rest", self.text, len(self.text))
        return QueryError(
            f"cannot read the question at {token.value!r}; look at what stands before it",
            self.text,
            token.start,
        )


def _chain(node: Node, key: str) -> Iterator[Node]:
    """The operands of a run of ANDs or ORs, which sqlglot nests to the left; no recursion."""
    stack = [node]
    while stack:
        top = bare(stack.pop())
        if top.key == key:
            stack += (top.expression, top.this)
        else:
            yield top


def bare(node: Node) -> Node:
    """Without the parentheses around it."""
    while node.key == "paren":
        node = node.this
    return node
