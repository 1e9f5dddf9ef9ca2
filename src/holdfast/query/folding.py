"""Pieces of a text that stand for one column: `visits.cost`, an aggregate of events, a subquery.

Purely by their shape; what they mean is read by `holdfast.query.across`, from the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

AGGREGATES = frozenset(["count", "exists", "sum", "avg", "min", "max", "first", "last"])
_SELECTED = frozenset(["count", "sum", "avg", "min", "max"])
_CLAUSES = {"from": False, "where": False, "having": True, "order by": True}
"""Whether the aggregates of a clause are those of the SELECT."""
FOLDED = "("
"""The quote of a piece that stands for a column which is read from its words."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as sqlglot sees it. `quote` is the sign around it, if any."""

    source: Any
    text: str
    start: int
    quote: str = ""

    @property
    def word(self) -> str:
        return " ".join(self.text.lower().split())

    @property
    def sign(self) -> str:
        """The word, if it is not a quoted one."""
        return "" if self.quote else self.word


def folded(pieces: Sequence[Piece], text: str, *, select: bool = False) -> list[Piece]:
    """The same pieces, with those that stand for one column put together. In a SELECT, what is selected,
    filtered and ordered by is its own, unless it is grouped by that."""
    found: list[Piece] = []
    place, outside, depth = 0, select, 0
    groups = _groups(pieces) if select else frozenset()
    while place < len(pieces):
        piece = pieces[place]
        if select and depth == 0 and piece.sign in _CLAUSES:
            outside = _CLAUSES[piece.sign]
        end = _call_end(pieces, place, _SELECTED if outside and depth == 0 else frozenset())
        if end is None and groups and (last := _call_end(pieces, place, frozenset())) is not None:
            end = last if _spelt(pieces[place : last + 1]) in groups else None
        if end is not None:
            last = pieces[end].start + 1
            found.append(Piece(piece.source, text[piece.start : last], piece.start, FOLDED))
            place = end + 1
        elif _is_dotted(pieces, place):
            found.append(_dotted(pieces, place))
            place += 3
        else:
            depth += {"(": 1, ")": -1}.get(piece.sign, 0)
            found.append(piece)
            place += 1
    return found


def _groups(pieces: Sequence[Piece]) -> frozenset[str]:
    """The aggregates of events that GROUP BY names."""
    signs = [piece.sign for piece in pieces]
    if "group by" not in signs:
        return frozenset()
    first = signs.index("group by")
    ends = [
        place for place, sign in enumerate(signs) if place > first and sign in ("having", "order by", "limit")
    ]
    calls = (
        (place, _call_end(pieces, place, frozenset())) for place in range(first, min([*ends, len(pieces)]))
    )
    return frozenset(_spelt(pieces[place : end + 1]) for place, end in calls if end is not None)


def _spelt(pieces: Sequence[Piece]) -> str:
    return " ".join(piece.text if piece.quote else piece.word for piece in pieces)


def dotted(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces, with a column and the table in front of it put together."""
    found: list[Piece] = []
    place = 0
    while place < len(pieces):
        three = _is_dotted(pieces, place)
        found.append(_dotted(pieces, place) if three else pieces[place])
        place += 3 if three else 1
    return found


def _dotted(pieces: Sequence[Piece], place: int) -> Piece:
    table, _, column = pieces[place : place + 3]
    return Piece(table.source, f"{table.text}.{column.text}", table.start, '"')


def closing(pieces: Sequence[Piece], opening: int) -> int | None:
    """The place of the parenthesis that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(pieces)):
        depth += {"(": 1, ")": -1}.get(pieces[place].sign, 0)
        if depth == 0:
            return place
    return None


def _call_end(pieces: Sequence[Piece], place: int, selected: frozenset[str]) -> int | None:
    """The last piece of an aggregate or a subquery that begins here."""
    here, following = pieces[place].sign, [piece.sign for piece in pieces[place + 1 : place + 2]]
    if here == "(" and following == ["select"]:
        return closing(pieces, place)
    if here in AGGREGATES and here not in selected and following == ["("]:
        return closing(pieces, place + 1)
    return None


def _is_dotted(pieces: Sequence[Piece], place: int) -> bool:
    three = pieces[place : place + 3]
    return (
        len(three) == 3
        and three[1].sign == "."
        and all(p.quote != "'" and p.word for p in (three[0], three[2]))
    )
