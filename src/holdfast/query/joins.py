"""The JOINs of a SELECT as they are written: which table, by which columns. What they mean is decided elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.errors import QueryError
from holdfast.query.folding import Piece, dotted
from holdfast.query.lookup_schema import Joined

_BEGIN = frozenset(["join", "inner", "left", "right", "full", "cross", "natural", "outer"])
_WORDS = (["join"], ["inner", "join"], ["left", "join"], ["left", "outer", "join"])


@dataclass(frozen=True, slots=True)
class Join:
    """One JOIN: USING (columns), or ON equations. `outer` keeps the rows that find nothing."""

    table: str
    outer: bool
    using: tuple[str, ...] | None
    equal: tuple[tuple[str, str], ...]
    start: int

    def by(self, keys: Sequence[tuple[str, str]], others: Sequence[str]) -> bool:
        """Whether it makes each of these pairs equal, and no others: a column of the `others`, one of its own."""
        if self.using is not None:
            return sorted(keys) == sorted((name, name) for name in self.using)
        return sorted(keys) == sorted(self._sided(left, right, others) for left, right in self.equal)

    def _sided(self, left: str, right: str, others: Sequence[str]) -> tuple[str, str]:
        if left.startswith(f"{self.table}."):
            left, right = right, left
        table, dot, column = left.rpartition(".")
        mine = column if not dot or table in others else ""
        return mine, right.removeprefix(f"{self.table}.") if right.startswith(f"{self.table}.") else ""


def read_joins(text: str, clause: Sequence[Piece]) -> list[Join]:
    """The JOINs between FROM's table and the next clause. QueryError for what is none."""
    return [_join(text, part) for part in _parts(text, dotted(clause))]


def _parts(text: str, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    if pieces and pieces[0].sign not in _BEGIN:
        raise QueryError(
            "expected JOIN, WHERE or GROUP BY after the table, got another word", text, pieces[0].start
        )
    part: list[Piece] = []
    for place, piece in enumerate(pieces):
        if place and piece.sign in _BEGIN and pieces[place - 1].sign not in _BEGIN:
            yield part
            part = []
        part.append(piece)
    if part:
        yield part


def _join(text: str, part: Sequence[Piece]) -> Join:
    start = part[0].start
    length = next((place for place, piece in enumerate(part) if piece.sign not in _BEGIN), len(part))
    kind, rest = [piece.sign for piece in part[:length]], part[length:]
    if kind not in _WORDS:
        raise QueryError("only a plain JOIN or a LEFT JOIN is in the language; write it so", text, start)
    if len(rest) < 2 or rest[1].sign not in ("using", "on"):
        raise QueryError("expected USING or ON after the table of a JOIN, got neither", text, start)
    words, using = [piece.text for piece in rest[2:]], None
    equal: list[tuple[str, str]] = []
    if rest[1].sign == "using":
        if len(words) < 3 or (words[0], words[-1]) != ("(", ")") or set(words[2:-1:2]) - {","}:
            raise QueryError("USING needs columns in parentheses; write USING (key)", text, start)
        using = tuple(words[1:-1:2])
    else:
        for place in range(0, len(words), 4):
            four = words[place : place + 4]
            if len(four) < 3 or four[1] != "=" or (len(four) == 4) == (place + 4 >= len(words)):
                raise QueryError("ON needs equal keys; write ON a.key = b.key AND ...", text, start)
            if len(four) == 4 and four[3].lower() != "and":
                raise QueryError("ON needs equal keys; write ON a.key = b.key AND ...", text, start)
            equal.append((four[0], four[2]))
    return Join(rest[0].text, kind[0] == "left", using, tuple(equal), start)


def refuse_other_key(text: str, join: Join, table: Joined, others: Sequence[str]) -> None:
    """QueryError where a public table is joined by anything but its key."""
    if not join.by(table.keys, others):
        names = ", ".join(its for _, its in table.keys)
        raise QueryError(
            f"{table.name} is joined by its key, and by nothing else; write USING ({names}), or ON",
            text,
            join.start,
        )


def without_table(text: str, pieces: Sequence[Piece], table: str) -> str:
    """The text without the name of its table in front of columns, letter for letter in place."""
    for here, dot in pairwise(pieces):
        if dot.sign == "." and here.quote != "'" and here.text == table and text[dot.start] == ".":
            length = dot.start + 1 - here.start
            text = text[: here.start] + " " * length + text[dot.start + 1 :]
    return text
