"""WITH and subqueries in FROM that choose rows and name columns, put into the SELECT around them.

WITH late AS (SELECT carrier, dep_delay / 60 AS hours FROM flights WHERE dep_delay > 15)
SELECT avg(hours) FROM late GROUP BY carrier

SELECT avg((dep_delay / 60)) FROM flights WHERE dep_delay > 15 GROUP BY carrier

Piece by piece and before anything is read, so that a refusal still points into the text as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from holdfast.errors import QueryError
from holdfast.query.folding import AGGREGATES, Piece, closing

MAX_SELECTS = 16
"""SELECTs inside one another."""
MAX_PIECES = 2**15
"""Words and signs once all is put in: a name that stands twice is put in twice."""
_AFTER = frozenset(["where", "group by", "having", "order by", "limit", "offset"])
_SUMMARIES = AGGREGATES | {"median", "quantile_cont", "percentile_cont", "mean", "quantile"}
_WAY = "a SELECT inside another chooses rows and names columns, and nothing else"


@dataclass(frozen=True, slots=True)
class _View:
    """What a subquery is: a table, perhaps a condition, and what its columns are."""

    table: Piece
    where: tuple[Piece, ...]
    columns: Mapping[str, tuple[Piece, ...]]
    rest: bool
    """Whether the other columns of the table are there too."""


def flattened(pieces: Sequence[Piece], text: str, split: Mapping[str, Piece]) -> list[Piece]:
    """The same SELECT without WITH and subqueries in FROM; `split` has the signs that may have to be written.

    QueryError for one that does more than choose rows and name columns: its groups would be of groups.
    """
    if not pieces or pieces[0].sign not in ("with", "select"):
        return list(pieces)
    return _Flattener(text, split).select(pieces, {})


class _Flattener:
    def __init__(self, text: str, signs: Mapping[str, Piece]) -> None:
        self.text = text
        self.signs = signs

    def select(self, pieces: Sequence[Piece], views: Mapping[str, _View], depth: int = 0) -> list[Piece]:
        if depth > MAX_SELECTS:
            raise QueryError(
                f"a SELECT may stand {MAX_SELECTS} deep inside others; write it flatter",
                self.text,
                pieces[0].start,
            )
        pieces, views = self._with(list(pieces), dict(views), depth)
        start = _place(pieces, {"from"})
        if start is None or start + 1 >= len(pieces):
            return pieces
        first, end = pieces[start + 1], start + 2
        if first.sign == "(" and pieces[start + 2 : start + 3] and pieces[start + 2].sign == "select":
            last = closing(pieces, start + 1)
            if last is None:
                return pieces
            view, end = self._view(pieces[start + 2 : last], views, depth), last + 1
            end, name = self._called(pieces, end)
        elif first.word in views:
            view, (end, name) = views[first.word], self._called(pieces, end)
            name = name or first.word
        else:
            return pieces
        if end < len(pieces) and pieces[end].sign not in _AFTER:
            raise QueryError(
                "FROM takes one subquery, and nothing beside it; leave it out", self.text, pieces[end].start
            )
        return self._put(pieces[:start], view, pieces[end:], pieces[start], name)

    def _with(
        self, pieces: list[Piece], views: dict[str, _View], depth: int
    ) -> tuple[list[Piece], dict[str, _View]]:
        """The statement behind WITH, and what stands before it."""
        if not pieces or pieces[0].sign != "with":
            return pieces, views
        place = 1
        while True:
            head = [piece.sign for piece in pieces[place + 1 : place + 4]]
            last = closing(pieces, place + 2) if head == ["as", "(", "select"] else None
            if last is None:
                where = min(place, len(pieces) - 1)
                raise QueryError("WITH is name AS (SELECT ...); write it so", self.text, pieces[where].start)
            views[pieces[place].word] = self._view(pieces[place + 3 : last], views, depth)
            if last + 1 < len(pieces) and pieces[last + 1].sign == ",":
                place = last + 2
                continue
            return pieces[last + 1 :], views

    def _called(self, pieces: Sequence[Piece], place: int) -> tuple[int, str]:
        """Where FROM goes on after the name of a subquery, and the name."""
        if place < len(pieces) and pieces[place].sign == "as":
            place += 1
        if place < len(pieces) and pieces[place].sign not in _AFTER and pieces[place].quote != "'":
            return place + 1, pieces[place].word
        return place, ""

    def _view(self, pieces: Sequence[Piece], views: Mapping[str, _View], depth: int) -> _View:
        pieces = self.select(pieces, views, depth + 1)
        self._refuse_more(pieces)
        start = _place(pieces, {"from"})
        if start is None or start + 1 >= len(pieces):
            raise QueryError("FROM and a table are missing; write FROM t", self.text, pieces[-1].start)
        behind = pieces[start + 2 :]
        if behind and behind[0].sign != "where":
            raise QueryError(f"{_WAY}; leave this out", self.text, behind[0].start)
        columns: dict[str, tuple[Piece, ...]] = {}
        rest = False
        for item in _items(pieces[1:start]):
            if [piece.sign for piece in item] == ["*"]:
                rest = True
            elif len(item) > 2 and item[-2].sign == "as":
                columns[item[-1].word] = tuple(item[:-2])
            elif len(item) == 1:
                columns[item[0].word] = tuple(item)
            else:
                place = item[0].start if item else pieces[0].start
                raise QueryError("what a subquery computes needs a name; write AS and one", self.text, place)
        return _View(pieces[start + 1], tuple(behind[1:]), columns, rest)

    def _refuse_more(self, pieces: Sequence[Piece]) -> None:
        for piece, follower in zip(pieces, [*pieces[1:], pieces[-1]], strict=True):
            if piece.sign in _AFTER - {"where"} or piece.sign == "distinct":
                raise QueryError(
                    f"{_WAY}; put {piece.text.upper()} outside, or ask twice", self.text, piece.start
                )
            if piece.sign in _SUMMARIES and follower.sign == "(":
                raise QueryError(
                    f"{_WAY}; {piece.word} inside it would be an answer within a question: ask twice",
                    self.text,
                    piece.start,
                )

    def _put(
        self, head: Sequence[Piece], view: _View, tail: Sequence[Piece], start: Piece, name: str
    ) -> list[Piece]:
        """The outer SELECT over the inner table."""
        aliases = {after.word for piece, after in pairwise(head) if piece.sign == "as"}
        found = [
            *self._named(self._titled(head, view, name), view, name, frozenset(aliases)),
            start,
            view.table,
        ]
        stop = _place(tail, _AFTER - {"where"})
        stop = len(tail) if stop is None else stop
        condition, after = list(tail[1:stop]) if tail and tail[0].sign == "where" else [], list(tail[stop:])
        outer = self._named(condition, view, name, frozenset())
        parts = [part for part in (list(view.where), outer) if part]
        if parts:
            opened, closed, word = self.signs["("], self.signs[")"], self.signs["and"]
            found.append(replace(self.signs["where"], start=parts[0][0].start))
            for place, part in enumerate(parts):
                found += [replace(word, start=part[0].start)] if place else []
                found += [replace(opened, start=part[0].start), *part, replace(closed, start=part[-1].start)]
        return found + self._named(after, view, name, frozenset(aliases))

    def _titled(self, head: Sequence[Piece], view: _View, name: str) -> list[Piece]:
        """What is selected, with AS behind columns of the subquery: they keep the names that they have there."""
        found = list(head[:1])
        for place, item in enumerate(_items(head[1:])):
            found += [replace(self.signs[","], start=item[0].start)] if place and item else []
            own = item[2:] if name and [each.sign for each in item[:2]] == [name, "."] else item
            titled = len(own) == 1 and own[0].word in view.columns and own[0].quote != "'"
            found += [*item, replace(self.signs["as"], start=own[0].start), own[0]] if titled else item
        return found

    def _named(self, pieces: Sequence[Piece], view: _View, name: str, aliases: frozenset[str]) -> list[Piece]:
        """Pieces with the names of the subquery's columns replaced by what they are."""
        found: list[Piece] = []
        place, clause = 0, ""
        while place < len(pieces):
            piece = pieces[place]
            clause = piece.sign if piece.sign in _AFTER else clause
            following = pieces[place + 1].sign if place + 1 < len(pieces) else ""
            if name and piece.quote != "'" and piece.word == name and following == ".":
                place += 2
                continue
            own = _is_name(piece) and following != "(" and not (found and found[-1].sign == "as")
            ended = [before.sign for before in found[-2:]] in (["low", "("], ["high", "("])
            arranged = clause != "" and (clause != "group by" or piece.word not in view.columns)
            hidden = piece.word in aliases and (ended or arranged)  # what was selected under this name
            if own and not hidden and piece.word in view.columns:
                meant = view.columns[piece.word]
                if len(meant) == 1:
                    found.append(replace(meant[0], start=piece.start))
                else:
                    opened, closed = (replace(self.signs[sign], start=piece.start) for sign in "()")
                    found += [opened, *meant, closed]
            elif own and not hidden and not view.rest and piece.quote != "'":
                raise QueryError(
                    f"there is no column {piece.text!r} in the subquery; it has {', '.join(view.columns)}",
                    self.text,
                    piece.start,
                )
            else:
                found.append(piece)
            place += 1
            if len(found) > MAX_PIECES:
                raise QueryError(
                    "the statement is too large once its subqueries are put in; ask a simpler one",
                    self.text,
                    0,
                )
        return found


def _is_name(piece: Piece) -> bool:
    """Whether a piece may name a column."""
    from holdfast.query.scan import is_word

    if piece.quote:
        return piece.quote != "'"
    plain = is_word(piece) and piece.word not in _AFTER | {
        "select",
        "as",
        "asc",
        "desc",
        "filter",
        "from",
        "date",
    }
    return plain and not piece.text[:1].isdecimal()


def _place(pieces: Sequence[Piece], words: Set[str]) -> int | None:
    """Where the first of these words stands outside parentheses."""
    depth = 0
    for place, piece in enumerate(pieces):
        depth += {"(": 1, ")": -1}.get(piece.sign, 0)
        if depth == 0 and piece.sign in words:
            return place
    return None


def _items(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """What stands between the commas outside parentheses."""
    found: list[list[Piece]] = [[]]
    depth = 0
    for piece in pieces:
        depth += {"(": 1, ")": -1}.get(piece.sign, 0)
        if piece.sign == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(piece)
    return found
