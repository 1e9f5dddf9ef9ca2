"""Text into tokens, and the limits of size: everything that can be refused before parsing, with its place.

sqlglot splits the text; each token must then be in a short list of signs, keywords, functions, literals and
declared columns. Columns become quoted identifiers, so that no name is ever taken for a keyword.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.errors import QueryError
from holdfast.query.schema import Schema
from holdfast.query.wording import near

MAX_TEXT = 65_536
"""Characters in a question."""
MAX_DEPTH = 16
"""Parentheses, function calls, NOTs and minus signs around one another. sqlglot takes about thirty frames for
each, so that this many stay far from the interpreter's limit of a thousand."""
MAX_TERMS = 2048
"""Operators, keywords and function calls in a question."""

_SIGNS = frozenset(["(", ")", ",", "+", "-", "*", "<", "<=", ">", ">=", "=", "==", "<>", "!="])
_KEYWORDS = frozenset(["and", "or", "not", "in", "between", "is", "null", "true", "false"])
_FUNCTIONS = frozenset(["abs", "least", "greatest"])
_SELECT_KEYWORDS = frozenset(["select", "from", "where", "as"]) | {"group by"}
_SELECT_FUNCTIONS = frozenset(["count", "sum", "avg", "median", "quantile_cont"])
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


def scan(text: str, schema: Schema, *, select: bool = False) -> list[Token]:
    """The tokens of a question, each one admissible by itself; QueryError at the first that is not."""
    if len(text) > MAX_TEXT:
        raise QueryError(f"a question may have {MAX_TEXT} characters, got {len(text)}; ask a shorter one")
    keywords = _KEYWORDS | _SELECT_KEYWORDS if select else _KEYWORDS
    functions = _FUNCTIONS | _SELECT_FUNCTIONS if select else _FUNCTIONS
    pieces = _split(text)
    tokens: list[Token] = []
    for place, (source, value, start, quote) in enumerate(pieces):
        follower = pieces[place + 1] if place + 1 < len(pieces) else (None, "", len(text), "")
        word = " ".join(value.lower().split())
        if quote == "'":
            kind = "string"
        elif quote == '"':
            kind = "column"
        elif value in _SIGNS:
            kind = "sign"
        elif text[start].isdigit() and _NUMBER.fullmatch(value):
            kind = "number"
        elif word in keywords:
            kind, value = "keyword", word
        elif word == "date" and follower[3] == "'":
            continue  # DATE '2024-12-31' says no more than '2024-12-31' beside a date column
        elif _WORD.fullmatch(value):
            kind = "function" if follower[1] == "(" and not follower[3] else "column"
        else:
            raise QueryError(f"{value!r} is not part of the language", text, start)
        last = tokens[-1] if tokens else None
        after = last.value if last and last.kind in ("keyword", "sign") else ""
        if after == "," and value in (")", "from"):
            raise QueryError("a comma needs something after it", text, start)
        if after in ("from", "as") and kind != "column":
            raise QueryError(f"{after.upper()} needs a plain name", text, start)
        if kind == "function":
            if word not in functions:
                raise QueryError(
                    f"the function {value} is not in the language; it has {', '.join(sorted(functions))}",
                    text,
                    start,
                )
            value = word
        elif kind == "column":
            if after in ("from", "as"):
                kind = "name"
            else:
                value = _column(value, source.name, schema, text, start)
        elif kind == "keyword" and word == "null" and not _follows_is(tokens):
            raise QueryError("a comparison with NULL is never true; write IS NULL", text, start)
        tokens.append(Token(kind, value, start, source))
    if not tokens:
        raise QueryError("the question is empty; write a condition such as age > 40", text, 0)
    check_size(tokens, text)
    return tokens


def check_size(tokens: Iterable[Token], text: str) -> None:
    """Refuse what nests deeper than MAX_DEPTH or has more than MAX_TERMS terms."""
    terms = 0
    outer: list[tuple[int, int, int]] = []  # for each open parenthesis: depth, NOTs and BETWEENs around it
    base = nots = betweens = minuses = 0
    operand = False  # whether the last token ends an operand, after which a minus is a subtraction
    for token in tokens:
        sign = token.value if token.kind in ("sign", "keyword") else token.kind
        terms += token.kind in ("sign", "keyword", "function") and sign not in ("(", ")", ",")
        match sign:
            case "(":
                outer.append((base, nots, betweens))
                base, nots, betweens, minuses = base + nots + minuses + 1, 0, 0, 0
            case ")" if outer:
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
            case "and" | "or" | ",":
                nots = betweens = 0
        operand = sign in (")", "column", "number", "string", "null", "true", "false", "name")
        if operand:
            minuses = 0
        if base + nots + minuses > MAX_DEPTH:
            raise QueryError(
                f"conditions may be nested {MAX_DEPTH} deep; write this one flatter", text, token.start
            )
        if terms > MAX_TERMS:
            raise QueryError(f"a question may have {MAX_TERMS} terms; ask a shorter one", text, token.start)


def _split(text: str) -> list[tuple[Any, str, int, str]]:
    """(sqlglot type, text, offset, quote) of each piece; nothing but white space may lie between them."""
    import sqlglot
    from sqlglot.errors import TokenError

    try:
        # After an opening parenthesis no word can start one of sqlglot's raw commands (SHOW, CALL, ...).
        raw = sqlglot.tokenize("(" + text)[1:]
    except TokenError:
        raise QueryError("a quote or a comment is never closed", text, _unclosed(text)) from None
    pieces = []
    end = 0
    for token in raw:
        start = token.start - 1
        _check_gap(text, end, start)
        end = token.end
        quote = text[start] if token.token_type.name in ("STRING", "IDENTIFIER") else ""
        pieces.append((token.token_type, token.text, start, quote))
    _check_gap(text, end, len(text))
    return pieces


def _check_gap(text: str, start: int, end: int) -> None:
    gap = text[start:end]
    if gap.strip():
        place = start + len(gap) - len(gap.lstrip())
        raise QueryError("comments are not part of the language", text, place)


def _follows_is(tokens: list[Token]) -> bool:
    last = [token.value for token in tokens[-2:] if token.kind == "keyword"]
    return last[-1:] == ["is"] or last == ["is", "not"]


def _unclosed(text: str) -> int:
    """Where the last quote or comment opens that nothing closes."""
    place = 0
    while found := re.compile(r"'|\"|--|/\*").search(text, place):
        closing = {"--": "\n", "/*": "*/"}.get(found[0], found[0])
        place = text.find(closing, found.end()) + len(closing)
        if place < len(closing):
            return found.start()
    return 0


def _column(name: str, source: str, schema: Schema, text: str, start: int) -> str:
    """The declared name; without quotes, upper and lower case are the same where only one column fits."""
    if name in schema:
        return name
    exact = source == "IDENTIFIER"
    alike = [] if exact else [known for known in schema if known.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    if not exact and source != "VAR":
        raise QueryError(f"{name.upper()} is not part of the language", text, start)
    raise QueryError(f"there is no column {name!r}{near(name, schema)}", text, start)
