"""PostgreSQL's and DuckDB's names for what the language has, put into ours before anything is read.

EXTRACT(year FROM visit), date_part('year', visit)        year(visit)
percentile_cont(0.9) WITHIN GROUP (ORDER BY age)          quantile_cont(age, 0.9)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.query.calendar import PARTS
from holdfast.query.folding import Piece

NAMES = {
    "mean": "avg",
    "quantile": "quantile_cont",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "ceiling": "ceil",
    "dayofmonth": "day",
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "weekofyear": "week",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
}
"""Other names of functions. Days of the week count from Sunday, 0, as in PostgreSQL and DuckDB."""


def respelt(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces in our words. Each keeps its place in the text; what is not whole stays, to be refused there.

    Cost: linear in the number of pieces, however they nest.
    """
    found: list[Piece] = []
    ranks: dict[int, Piece] = {}
    place, ends = 0, None
    while place < len(pieces):
        piece = pieces[place]
        signs = [each.sign for each in pieces[place + 1 : place + 4]]
        called = not piece.quote and signs[:1] == ["("]
        if place in ranks:  # the end of what percentile_cont ranks
            found += [replace(piece, text=",", source=_comma()), ranks[place], piece]
        elif called and (part := _part(pieces[place : place + 4])) is not None:
            found += part
            place += 3
        elif called and piece.word in ("percentile_cont", "quantile_cont") and signs[2:3] == [")"]:
            ends = _closings(pieces) if ends is None else ends
            behind = [each.sign for each in pieces[place + 4 : place + 8]]
            last = ends.get(place + 6) if behind == ["within", "group", "(", "order by"] else None
            if last is None:
                found.append(piece)
            else:
                ranks[last] = pieces[place + 2]
                found += [replace(piece, text="quantile_cont"), pieces[place + 1]]
                place += 7
        else:
            found.append(replace(piece, text=NAMES[piece.word]) if called and piece.word in NAMES else piece)
        place += 1
    return found


def _part(call: Sequence[Piece]) -> list[Piece] | None:
    """EXTRACT(part FROM and date_part('part', as part(."""
    middle = {"extract": "from", "date_part": ",", "datepart": ","}.get(call[0].word)
    if middle is None or len(call) < 4 or call[3].sign != middle:
        return None
    part = NAMES.get(call[2].word, call[2].word)
    if part not in PARTS or (call[2].quote == "'") != (middle == ","):
        return None
    return [replace(call[0], text=part, start=call[2].start), call[1]]


def _closings(pieces: Sequence[Piece]) -> dict[int, int]:
    """For each opening parenthesis, where it closes."""
    found, opened = {}, []
    for place, piece in enumerate(pieces):
        if piece.sign == "(":
            opened.append(place)
        elif piece.sign == ")" and opened:
            found[opened.pop()] = place
    return found


def _comma() -> Any:
    import sqlglot

    lexer: Any = sqlglot.tokens
    return lexer.TokenType.COMMA
