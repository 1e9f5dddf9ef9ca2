"""SQL's LIKE in linear time: % stands for any text, _ for any one character; there is no escape."""

from __future__ import annotations

import re
from collections.abc import Callable


def like(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text matches.

    Between two % the leftmost place of a piece is as good as any other, so nothing is ever tried again.
    Cost: at most the length of the text times that of the longest piece with _ in it; no backtracking.
    """
    first, *rest = pattern.split("%")
    if not rest:
        whole = _piece(first)
        return lambda text: len(text) == len(first) and whole(text, 0, len(text)) == 0
    *middle, last = rest
    begins, ends = _piece(first), _piece(last)
    pieces = [(len(piece), _piece(piece)) for piece in middle if piece]

    def matches(text: str) -> bool:
        place, stop = len(first), len(text) - len(last)
        if place > stop or begins(text, 0, place) != 0 or ends(text, stop, len(text)) != stop:
            return False
        for length, find in pieces:
            found = find(text, place, stop)
            if found < 0:
                return False
            place = found + length
        return True

    return matches


def _piece(piece: str) -> Callable[[str, int, int], int]:
    """Where a piece without % first stands in a part of a text; -1 if nowhere."""
    if "_" not in piece:
        return lambda text, start, stop: text.find(piece, start, stop)
    pattern = re.compile("".join("." if letter == "_" else re.escape(letter) for letter in piece), re.DOTALL)

    def find(text: str, start: int, stop: int) -> int:
        found = pattern.search(text, start, stop)
        return -1 if found is None else found.start()

    return find
