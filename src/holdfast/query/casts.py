"""Casts to numbers and the function if, put into the words of the language before anything is read.

CAST(age AS DOUBLE), age::numeric(9, 2)              age: numbers are divided and averaged as they are
CAST(age > 40 AS INTEGER), (age > 40)::int           as_integer(age > 40): 1 where it holds, 0 where it does not
if(age > 40, 1, 0), iff(...), iif(...)               CASE WHEN age > 40 THEN 1 ELSE 0 END
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.query.folding import Piece

WHOLE = "as_integer"
"""What a cast to a whole number is called on the way to the parser."""
_REALS = frozenset(
    ["double", "double precision", "float", "float4", "float8", "real", "numeric", "decimal", "number"]
)
_WHOLES = frozenset(["int", "integer", "bigint", "smallint", "tinyint", "int2", "int4", "int8", "int64"])
_CHOICES = frozenset(["if", "iff", "iif"])
_BEFORE = frozenset(
    ["and", "or", "not", "in", "when", "then", "else", "between", "like", "ilike", "is", "case", "as", "over"]
) | frozenset(
    ["select", "from", "where", "filter", "having", "order by", "group by", "partition by", "limit"]
)
"""Words that call nothing when a parenthesis follows."""


@dataclass(slots=True)
class _Open:
    """A parenthesis or a CASE that is not closed yet; `start` is where it begins, with its function."""

    start: int
    kind: str = ""
    commas: int = 0


def uncast(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces without these. What is not whole stays, to be refused there.

    Cost: linear in the number of pieces, but for moving the list itself.
    """
    if not any(piece.sign == "::" or piece.sign == "cast" or piece.sign in _CHOICES for piece in pieces):
        return list(pieces)
    found: list[Piece] = []
    frames: list[_Open] = []
    operand = 0
    """Where what stands last begins."""
    place = 0
    while place < len(pieces):
        piece = pieces[place]
        sign = piece.sign
        inner = frames[-1] if frames else None
        place += 1
        if sign == "(":
            called = found[-1].sign if found else ""
            word = called.replace("_", "a").isalnum() and called not in _BEFORE
            frames.append(_Open(len(found) - word, called if word else ""))
            if word and called in _CHOICES:
                found[-1] = _word("case", found[-1])
                piece = _word("when", piece)
        elif sign == "case":
            frames.append(_Open(len(found)))
        elif sign == "," and inner is not None and inner.kind in _CHOICES and inner.commas < 2:
            piece = _word(("then", "else")[inner.commas], piece)
            inner.commas += 1
        elif sign in (")", "end") and inner is not None:
            operand = frames.pop().start
            if inner.kind in _CHOICES:
                piece = _word("end", piece)
            elif inner.kind == "cast":
                _end_cast(found, operand)
        elif sign == "::" and place < len(pieces) and pieces[place].sign in _REALS | _WHOLES and found:
            if pieces[place].sign in _WHOLES:
                first = found[operand]
                found[operand:operand] = [_word(WHOLE, first), _sign("(", first)]
                found.append(_sign(")", piece))
            place += 1 + _precision(pieces[place + 1 : place + 6])
            continue
        elif sign != "." and not (found and found[-1].sign == "."):
            operand = len(found)
        found.append(piece)
    return found


def _end_cast(found: list[Piece], start: int) -> None:
    """CAST(x AS type without its last parenthesis, in our words."""
    inside = len(found) - start - 2
    behind = next((each for each in (2, 5, 7) if each <= inside and found[-each].sign == "as"), 0)
    kind = found[1 - behind].sign if behind else ""
    if kind not in _REALS | _WHOLES or (behind > 2 and _precision(found[2 - behind :]) != behind - 2):
        return
    del found[-behind:]
    if kind in _WHOLES:
        found[start] = _word(WHOLE, found[start])
    else:
        del found[start]


def _precision(pieces: Sequence[Piece]) -> int:
    """How many pieces (9) or (9, 2) behind a type are."""
    signs = [piece.sign for piece in pieces]
    if signs[:1] != ["("]:
        return 0
    if signs[2:3] == [")"] and signs[1].isdecimal():
        return 3
    plain = signs[2:3] == [","] and signs[4:5] == [")"] and signs[1].isdecimal() and signs[3].isdecimal()
    return 5 if plain else 0


_SIGNS = {"(": "L_PAREN", ")": "R_PAREN"}


def _sign(text: str, place: Piece) -> Piece:
    import sqlglot

    lexer: Any = sqlglot.tokens
    return Piece(lexer.TokenType[_SIGNS[text]], text, place.start)


def _word(text: str, place: Piece) -> Piece:
    """A word that nobody wrote; its place is that of another."""
    import sqlglot

    lexer: Any = sqlglot.tokens
    kind = "VAR" if text == WHOLE else text.upper()
    return replace(place, source=lexer.TokenType[kind], text=text, quote="")
