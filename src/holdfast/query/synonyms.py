"""PostgreSQL's and DuckDB's names for what the language has, put into ours before anything is read.

EXTRACT(year FROM visit), date_part('year', visit)        year(visit)
percentile_cont(0.9) WITHIN GROUP (ORDER BY age)          quantile_cont(age, 0.9), as is percentile_disc: a quantile is
                                                          one of the values that the schema allows
count(DISTINCT age)                                       approx_count_distinct(age)
CAST(departed AS DATE), date(departed), departed::date    date_trunc('day', departed)
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
    "quantile_disc": "quantile_cont",
    "approx_quantile": "quantile_cont",
    "countif": "count_if",
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


_RANKED = ("percentile_cont", "percentile_disc", "quantile_cont", "quantile_disc")


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
            found += [_made(",", "COMMA", piece), ranks[place], piece]
        elif piece.sign == "::" and signs[:1] == ["date"] and found:
            first = len(found) - (3 if len(found) > 2 and found[-2].text == "." else 1)
            found[first:] = _day(found[first:], found[first])
            place += 1
        elif called and piece.word in ("cast", "date"):
            ends = _closings(pieces) if ends is None else ends
            inner = pieces[place + 2 : ends.get(place + 1, place)]
            if piece.word == "cast":
                inner = inner[:-2] if [each.sign for each in inner[-2:]] == ["as", "date"] else []
            if len(inner) != 1 and [each.sign for each in inner[1:-1]] != ["."]:
                found.append(piece)
            else:
                found += _day(inner, piece)
                place = ends[place + 1]
        elif called and piece.word == "count" and signs[1] == "distinct":
            found += [replace(piece, text="approx_count_distinct"), pieces[place + 1]]
            place += 2
        elif called and (part := _part(pieces[place : place + 4])) is not None:
            found += part
            place += 3
        elif called and piece.word in _RANKED and signs[2:3] == [")"]:
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


def _day(column: Sequence[Piece], place: Piece) -> list[Piece]:
    """date_trunc('day', column)."""
    word, day = _made("date_trunc", "VAR", place), replace(_made("day", "STRING", place), quote="'")
    return [
        word,
        _made("(", "L_PAREN", place),
        day,
        _made(",", "COMMA", place),
        *column,
        _made(")", "R_PAREN", place),
    ]


def _made(text: str, token: str, place: Piece) -> Piece:
    """A piece that nobody wrote; its place is that of another."""
    import sqlglot

    lexer: Any = sqlglot.tokens
    return Piece(lexer.TokenType[token], text, place.start)
