"""Names of results without AS.

SELECT region r, count(*) n FROM people GROUP BY region
SELECT region AS r, count(*) AS n FROM people GROUP BY region
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.query.folding import Piece

_ENDS = frozenset([")", "end", "null", "true", "false"])


def named(pieces: Sequence[Piece], word: Piece) -> list[Piece]:
    """The same pieces with AS before each name of a result that has none; `word` is an AS.

    Cost: linear in the number of pieces.
    """
    found: list[Piece] = []
    listed = [False]
    """Whether what is selected stands here, for each open parenthesis."""
    for piece in pieces:
        sign = piece.sign
        if sign in (",", "from", ")") and listed[-1] and _is_alias(found):
            found.insert(-1, replace(word, start=found[-1].start))
        if sign == "(":
            listed.append(False)
        elif sign == ")" and len(listed) > 1:
            listed.pop()
        elif sign in ("select", "from"):
            listed[-1] = sign == "select"
        found.append(piece)
    return found


def _is_alias(pieces: Sequence[Piece]) -> bool:
    """Whether the last of these is a name behind something that is whole."""
    if len(pieces) < 2 or not _is_plain(pieces[-1]):
        return False
    before = pieces[-2]
    return before.sign in _ENDS or _is_plain(before) or before.quote == "'" or before.text[:1].isdecimal()


def _is_plain(piece: Piece) -> bool:
    """Whether it can be nothing but a name."""
    return piece.quote == '"' or (not piece.quote and piece.source.name == "VAR")
