"""PostgreSQL's and DuckDB's names for what the language has, put into ours before anything is read.

EXTRACT(year FROM visit), date_part('year', visit)        year(visit)
percentile_cont(0.9) WITHIN GROUP (ORDER BY age)          quantile_cont(age, 0.9)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.query.calendar import PARTS
from holdfast.query.folding import Piece, closing

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
    """The same pieces in our words. Each keeps its place in the text; what is not whole stays, to be refused there."""
    found: list[Piece] = []
    place = 0
    while place < len(pieces):
        piece = pieces[place]
        end = closing(pieces, place + 1) if _opens(pieces, place) else None
        if end is not None and (inner := _part(pieces[place : end + 1])) is not None:
            found += [*inner[:2], *respelt(inner[2:])]
            place = end + 1
        elif end is not None and (ranked := _ranked(pieces, place, end)) is not None:
            found += ranked[0]
            place = ranked[1]
        else:
            called = end is not None and piece.word in NAMES
            found.append(replace(piece, text=NAMES[piece.word]) if called else piece)
            place += 1
    return found


def _opens(pieces: Sequence[Piece], place: int) -> bool:
    """Whether a function is called here."""
    return not pieces[place].quote and place + 1 < len(pieces) and pieces[place + 1].sign == "("


def _part(call: Sequence[Piece]) -> list[Piece] | None:
    """EXTRACT(part FROM x) and date_part('part', x) as part(x)."""
    name, middle = call[0].word, {"extract": "from", "date_part": ",", "datepart": ","}.get(call[0].word)
    if middle is None or len(call) < 6 or call[3].sign != middle:
        return None
    part = NAMES.get(call[2].word, call[2].word)
    if part not in PARTS or (name != "extract" and call[2].quote != "'"):
        return None
    return [replace(call[0], text=part, start=call[2].start), call[1], *call[4:]]


def _ranked(pieces: Sequence[Piece], place: int, end: int) -> tuple[list[Piece], int] | None:
    """percentile_cont(rank) WITHIN GROUP (ORDER BY x) as quantile_cont(x, rank), and where it ends."""
    signs = [piece.sign for piece in pieces[end + 1 : end + 5]]
    if pieces[place].word not in ("percentile_cont", "quantile_cont") or signs != [
        "within",
        "group",
        "(",
        "order by",
    ]:
        return None
    last = closing(pieces, end + 3)
    if last is None:
        return None
    name, opening, rank, value = (
        pieces[place],
        pieces[place + 1],
        pieces[place + 2 : end],
        pieces[end + 5 : last],
    )
    comma = replace(opening, text=",", source=_comma())
    return [replace(name, text="quantile_cont"), opening, *value, comma, *rank, pieces[last]], last + 1


def _comma() -> Any:
    import sqlglot

    lexer: Any = sqlglot.tokens
    return lexer.TokenType.COMMA
