"""Text into tokens, and the limits of size: everything that can be refused before parsing, with its place.

sqlglot splits the text; each token must then be in a short list of signs, keywords, functions, literals and
declared columns. Columns become quoted identifiers, so that no name is ever taken for a keyword.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.check import near
from holdfast.errors import QueryError
from holdfast.query.calendar import PARTS
from holdfast.query.casts import WHOLE, uncast
from holdfast.query.flatten import flattened
from holdfast.query.folding import FOLDED, Piece, dotted, folded
from holdfast.query.lookup_schema import LookupSchema
from holdfast.query.other_ways import OTHER_CLAUSES, OTHER_SIGNS, OTHER_WAYS
from holdfast.query.result_names import named
from holdfast.query.schema import Schema
from holdfast.query.synonyms import respelt
from holdfast.query.unit_schema import RowSchema, UnitSchema

MAX_TEXT = 65_536
"""Characters in a question."""
MAX_DEPTH = 16
"""Parentheses, function calls, NOTs and minus signs around one another. sqlglot takes about thirty frames for
each, so that this many stay far from the interpreter's limit of a thousand."""
MAX_TERMS = 2048
"""Operators, keywords and function calls in a question."""

_SIGNS = frozenset(["(", ")", ",", "+", "-", "*", "/", "<", "<=", ">", ">=", "=", "==", "<>", "!="])
_CASE = ("case", "when", "then", "else", "end")
_KEYWORDS = frozenset(
    ["and", "or", "not", "in", "between", "is", "null", "true", "false", "like", "ilike", *_CASE]
)
OURS = frozenset(["coalesce", "nullif", "floor", "ceil", "date_trunc", "low", "high", WHOLE, *PARTS])
"""Functions that mean what is said here, whatever sqlglot makes of them."""
REGRESSIONS = frozenset(["regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy"])
"""Of sqlglot's versions only some know these; here they are our own."""
_FUNCTIONS = frozenset(["abs", "least", "greatest", "length", "starts_with", *OURS]) - {"low", "high"}
_SELECT_KEYWORDS = frozenset(
    ["select", "from", "where", "as", "having", "limit", "asc", "desc", "group by", "order by", "filter"]
) | frozenset(["over", "partition by", "offset"])
_SELECT_SIGNS = _SIGNS | {"[", "]"}
_SELECT_FUNCTIONS = frozenset(["count", "sum", "avg", "median", "quantile_cont", "low", "high"]) | frozenset(
    [
        "variance",
        "var_samp",
        "var_pop",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "covar_pop",
        "covar_samp",
        "corr",
        "independence",
        "approx_count_distinct",
        "count_if",
        "min",
        "max",
        *REGRESSIONS,
    ]
)


def words(*, select: bool) -> list[str]:
    """Every keyword and function of a condition, or of a SELECT, as they are typed: AND, abs(."""
    keywords = _KEYWORDS | _SELECT_KEYWORDS if select else _KEYWORDS
    functions = _FUNCTIONS - {WHOLE} | _SELECT_FUNCTIONS if select else _FUNCTIONS - {WHOLE}
    return sorted(word.upper() for word in keywords) + sorted(f"{name}(" for name in functions)


_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^\W\d][\w$]*(?:\s+[^\W\d][\w$]*)*")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text. `kind` is sign, keyword, function, column, name, number or string."""

    kind: str
    value: str
    start: int
    source: Any
    """sqlglot's own token type."""


_END = Piece(None, "", 0)


def scan(text: str, schema: Schema, *, select: bool = False) -> list[Token]:
    """The tokens of a question, each one admissible by itself; QueryError at the first that is not."""
    check_length(text)
    keywords = _KEYWORDS | _SELECT_KEYWORDS if select else _KEYWORDS
    functions = _FUNCTIONS | _SELECT_FUNCTIONS if select else _FUNCTIONS
    pieces: Sequence[Piece] = respelt(uncast(split(text)))
    if select:
        pieces = named(pieces, split("as")[0])
    if select and any(piece.sign in ("with", "(") for piece in pieces):
        pieces = flattened(pieces, text, {piece.text: piece for piece in split("( ) , and where as")})
    if isinstance(schema, UnitSchema | RowSchema):
        pieces = folded(pieces, text, select=select)
    elif isinstance(schema, LookupSchema):
        pieces = dotted(pieces)
    tokens: list[Token] = []
    aliases: set[str] = set()
    clause = ""
    for piece, follower in zip(pieces, [*pieces, _END][1:], strict=True):
        kind = _kind(piece, follower, keywords, _SELECT_SIGNS if select else _SIGNS)
        if kind == "date":
            continue  # DATE '2024-12-31' says no more than '2024-12-31' beside a date column
        last = tokens[-1] if tokens else None
        if last and last.value == "group by" and piece.sign == "all" and follower.sign in ("", *_BEHIND):
            kind = "keyword"
        after = last.value if last and last.kind in ("keyword", "sign") else ""
        if problem := _problem(kind, piece, after, tokens, functions):
            raise QueryError(problem, text, piece.start)
        if kind == "column" and after in ("from", "as"):
            kind = "name"
            if after == "as":
                aliases.add(piece.text)
        elif kind == "column" and piece.text in aliases and _means_alias(clause, piece.text, tokens, schema):
            kind = "name"
        if kind == "keyword" and piece.word in _ARRANGING and "over" not in [t.value for t in tokens[-2:]]:
            clause = piece.word
        if kind == "column":
            value = _column(piece, schema, text)
        else:
            value = piece.word if kind in ("keyword", "function") else piece.text
        tokens.append(Token(kind, value, piece.start, piece.source))
    if not tokens:
        raise QueryError("the question is empty; write a condition such as age > 40", text, 0)
    check_size(tokens, text)
    return tokens


_ARRANGING = ("group by", "having", "order by")
_BEHIND = ("having", "order by", "limit", "offset")


def _means_alias(clause: str, name: str, tokens: list[Token], schema: Schema) -> bool:
    """Whether a name means what was selected under it, and no column that may be called the same."""
    if clause == "group by":
        return name not in schema
    ends = [token.value for token in tokens[-2:]]
    return clause != "" or (ends in (["low", "("], ["high", "("]) and tokens[-2].kind == "function")


def check_length(text: str) -> None:
    """Refuse a text before it is split."""
    if len(text) > MAX_TEXT:
        raise QueryError(f"a question may have {MAX_TEXT} characters, got {len(text)}; ask a shorter one")


def check_size(tokens: Iterable[Token], text: str) -> None:
    """Refuse what nests deeper than MAX_DEPTH or has more than MAX_TERMS terms."""
    terms = 0
    outer: list[tuple[int, int, int]] = []  # for each open parenthesis: depth, NOTs and BETWEENs around it
    base = nots = betweens = minuses = 0
    operand = False  # whether the last token ends an operand, after which a minus is a subtraction
    for token in tokens:
        sign = token.value if token.kind in ("sign", "keyword") else token.kind
        terms += token.kind in ("sign", "keyword", "function") and sign not in ("(", ")", ",", "end")
        match sign:
            case "(" | "case":
                outer.append((base, nots, betweens))
                base, nots, betweens, minuses = base + nots + minuses + 1, 0, 0, 0
            case ")" | "end" if outer:
                base, nots, betweens = outer.pop()
                minuses = 0
            case "not":
                nots += 1
            case "-" if not operand:
                minuses += 1
            case "between":
                betweens += 1
            case "and" if betweens:
                betweens -= 1
            case "and" | "or" | "," | "when" | "then" | "else":
                nots = betweens = 0
        operand = sign in (")", "end", "column", "number", "string", "null", "true", "false", "name")
        if operand:
            minuses = 0
        if base + nots + minuses > MAX_DEPTH:
            raise QueryError(
                f"conditions may be nested {MAX_DEPTH} deep; write this one flatter", text, token.start
            )
        if terms > MAX_TERMS:
            raise QueryError(f"a question may have {MAX_TERMS} terms; ask a shorter one", text, token.start)


def _kind(piece: Piece, follower: Piece, keywords: frozenset[str], signs: frozenset[str]) -> str:
    if piece.quote:
        return "string" if piece.quote == "'" else "column"
    if piece.text in signs:
        return "sign"
    if _NUMBER.fullmatch(piece.text):
        return "number"
    if piece.word in keywords:
        return "keyword"
    if piece.word in ("date", "time", "timestamp") and follower.quote == "'":
        return "date"
    if not _WORD.fullmatch(piece.text):
        return "unknown"
    return "function" if follower.text == "(" and not follower.quote else "column"


def _problem(
    kind: str, piece: Piece, after: str, tokens: list[Token], functions: frozenset[str]
) -> str | None:
    """What is wrong with a piece at its place, if anything."""
    if kind == "unknown" or (kind == "sign" and piece.text in ("/", "*") and after == piece.text):
        sign = 2 * piece.text if kind == "sign" else piece.text
        return f"{sign!r} is not part of the language{OTHER_SIGNS.get(sign, '')}"
    if kind == "function" and piece.word in ("extract", "date_part"):
        return f"{piece.word} takes a part ({', '.join(PARTS)}) and a column of dates or times"
    if kind == "function" and piece.word in OTHER_WAYS:
        return OTHER_WAYS[piece.word]
    if kind == "function" and piece.word not in functions:
        advice = near(piece.word, functions) or f"; it has {', '.join(sorted(functions - {WHOLE}))}"
        return f"the function {piece.text} is not in the language{advice}"
    if kind in ("sign", "keyword") and after == "," and piece.word in (")", "from"):
        return "a comma needs something after it"
    if kind != "column" and after in ("from", "as"):
        return f"{after.upper()} needs a plain name"
    if kind == "keyword" and piece.word == "null":
        last = [token.value for token in tokens[-2:] if token.kind == "keyword"]
        if last[-1:] not in (["is"], ["then"], ["else"]) and last != ["is", "not"]:
            return "a comparison with NULL is never true; write IS NULL"
    return None


@lru_cache(maxsize=256)
def split(text: str) -> tuple[Piece, ...]:
    """sqlglot's tokens; nothing but white space may lie between them."""
    import sqlglot
    from sqlglot.errors import TokenError

    try:
        # After an opening parenthesis no word can start one of sqlglot's raw commands (SHOW, CALL, ...).
        raw = sqlglot.tokenize("(" + text)[1:]
    except TokenError:
        raise QueryError("a quote or a comment is never closed; close it", text, _unclosed(text)) from None
    pieces = []
    end = 0
    for token in raw:
        start = token.start - 1
        _check_gap(text, end, start)
        end = token.end
        quote = text[start] if token.token_type.name in ("STRING", "IDENTIFIER") else ""
        pieces.append(Piece(token.token_type, token.text, start, quote))
    _check_gap(text, end, len(text))
    return tuple(pieces)


def _check_gap(text: str, start: int, end: int) -> None:
    gap = text[start:end]
    if gap.strip():
        place = start + len(gap) - len(gap.lstrip())
        raise QueryError("comments are not part of the language; leave them out", text, place)


def _unclosed(text: str) -> int:
    """Where the last quote or comment opens that nothing closes."""
    place = 0
    while found := re.compile(r"'|\"|--|/\*").search(text, place):
        closing = {"--": "\n", "/*": "*/"}.get(found[0], found[0])
        place = text.find(closing, found.end()) + len(closing)
        if place < len(closing):
            return found.start()
    return 0


def _column(piece: Piece, schema: Schema, text: str) -> str:
    """The declared name; without quotes, upper and lower case are the same where only one column fits."""
    name = piece.text
    if isinstance(schema, UnitSchema | RowSchema):
        return _across(piece, schema, text)
    if (found := schema.spelling(name)) is not None:
        return found
    alike = [] if piece.quote else [known for known in schema if known.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    if not piece.quote and piece.source.name != "VAR":
        advice = OTHER_CLAUSES.get(piece.word, "ask without it")
        raise QueryError(f"{name.upper()} is not part of the language; {advice}", text, piece.start)
    quoted = "; a text stands in single quotes, a column in double ones" if piece.quote == '"' else ""
    advice = near(name, schema) or quoted or "; name one that is declared"
    raise QueryError(f"there is no column {name!r}{advice}", text, piece.start)


def _across(piece: Piece, schema: UnitSchema | RowSchema, text: str) -> str:
    """The one name of a column of units or their events, or of what events say of a unit."""
    of = schema if isinstance(schema, UnitSchema) else schema.of
    try:
        if piece.quote == FOLDED:
            return of.read(piece.text).name
        found = schema.spelling(piece.text)
    except QueryError as error:
        raise QueryError(str(error), text, piece.start) from None
    if found is not None:
        return found
    alike = [known for known in schema if known.casefold() == piece.text.casefold()]
    if len(alike) == 1 and not piece.quote:
        return alike[0]
    raise QueryError(of.unknown(piece.text), text, piece.start)


def is_word(piece: Piece) -> bool:
    """Whether a piece may be a name."""
    return piece.sign not in _KEYWORDS and bool(_WORD.fullmatch(piece.text))
