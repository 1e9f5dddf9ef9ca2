"""Tables that a statement gives other names, in the words of one that does not.

SELECT avg(v.cost) FROM visits v JOIN people AS p ON v.person = p.person WHERE p.age > 40

SELECT avg(visits.cost) FROM visits JOIN people ON visits.person = people.person WHERE people.age > 40
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from holdfast.query.folding import Piece
from holdfast.query.scan import check_length, is_word, split

_TABLES = ("from", "join")
_BEHIND = frozenset(
    ["where", "group by", "having", "order by", "limit", "offset", "on", "using", "join", ")"]
) | frozenset(["inner", "left", "right", "full", "cross", "natural", "outer", "positional"])
"""What may stand behind the name of a table."""
_SCHEMAS = (["main"], ["public"])
"""How databases call the place of their tables."""
_Edit = tuple[int, int, str]
"""From where to where a text is replaced, and by what."""
_NO_PIECE = Piece(None, "", 0)


def without_aliases(text: str, *, alone: bool = False) -> str:
    """The text in which every table is called by its own name; `alone`, with no table in front of a column.

    An alias holds inside the SELECT that gives it, and in those inside that one.
    """
    check_length(text)
    pieces = split(text)
    selects = _selects(pieces)
    called: dict[tuple[int, ...], dict[str, Piece]] = {}
    edits: list[_Edit] = []
    for place in range(len(pieces)):
        if not _before_table(pieces, place):
            continue
        first = place + 1
        schema = pieces[first : first + 2]
        if (
            alone
            and [each.word for each in schema[:1]] in _SCHEMAS
            and [each.sign for each in schema[1:]] == ["."]
        ):
            first += 2
        table, *behind = [*pieces[first : first + 4], *[_NO_PIECE] * 4][:4]
        if not _is_name(table) or behind[0].sign == ".":
            continue
        if first > place + 1:
            edits.append((pieces[place + 1].start, table.start, ""))
        here = called.setdefault(selects[place], {table.word: table} if alone else {})
        alias, follower = behind[1:] if behind[0].sign == "as" else behind[:2]
        if _is_alias(alias) and (follower is _NO_PIECE or follower.sign in _BEHIND):
            here[alias.word] = table
            edits.append((_end(table), _end(alias), ""))
    if not called:
        return text
    for place, (piece, dot) in enumerate(pairwise(pieces)):
        if (
            dot.sign != "."
            or piece.quote == "'"
            or (place and (pieces[place - 1].sign == "." or _before_table(pieces, place - 1)))
        ):
            continue
        around = (called.get(selects[place][:depth], {}) for depth in range(len(selects[place]), -1, -1))
        table = next((names[piece.word] for names in around if piece.word in names), _NO_PIECE)
        if table is not _NO_PIECE:
            edits.append((piece.start, dot.start + 1, "" if alone else f"{_spelt(table)}."))
    return _edited(text, edits)


def _selects(pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
    """For each piece the places of the parentheses around it, from the outermost on."""
    found: list[tuple[int, ...]] = []
    around: tuple[int, ...] = ()
    for place, piece in enumerate(pieces):
        if piece.sign == ")":
            around = around[:-1]
        found.append(around)
        if piece.sign == "(":
            around = (*around, place)
    return found


def _before_table(pieces: Sequence[Piece], place: int) -> bool:
    """Whether it is a FROM or a JOIN, and not that of extract(year FROM visit)."""
    inside = [each.word for each in pieces[max(0, place - 3) : max(0, place - 1)]] == ["extract", "("]
    return pieces[place].sign in _TABLES and not inside


def _is_name(piece: Piece) -> bool:
    return piece.quote == '"' or (not piece.quote and is_word(piece))


def _is_alias(piece: Piece) -> bool:
    """Whether it may be a new name: no word that means something to SQL, such as SEMI or TABLESAMPLE."""
    plain = not piece.quote and piece.sign not in _BEHIND and is_word(piece)
    return piece.quote == '"' or (plain and piece.source.name == "VAR")


def _spelt(piece: Piece) -> str:
    doubled = piece.text.replace('"', '""')
    return f'"{doubled}"' if piece.quote else piece.text


def _end(piece: Piece) -> int:
    return piece.start + len(_spelt(piece))


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    found, last = [], 0
    for start, end, words in sorted(edits):
        found += [text[last:start], words]
        last = end
    return "".join([*found, text[last:]])
