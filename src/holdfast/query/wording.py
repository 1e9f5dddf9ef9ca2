"""How names and values are spelt in the text of a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

KEYWORDS = re.compile(
    "and|or|not|in|between|is|null|true|false|date|abs|least|greatest|select|from|where|group|by|as|like"
    "|starts_with|length|case|when|then|else|end",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Spelt(str):
    """The name of a column that is written as it is: with its table in front, or as an aggregate of events."""

    __slots__ = ()


def quoted(name: str) -> str:
    """A column name as an identifier: bare where that is unmistakable, else in double quotes."""
    return name if isinstance(name, Spelt) else _quoted(name)


@lru_cache(maxsize=1024)
def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name) and not KEYWORDS.fullmatch(name):
        return name
    return always_quoted(name)


def always_quoted(name: str) -> str:
    """A column name in double quotes."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def string(value: str) -> str:
    """A text in single quotes."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def listed(names: Sequence[str], limit: int = 12) -> str:
    """Names for an error message, at most `limit` of them."""
    rest = len(names) - limit
    return ", ".join(map(repr, names[:limit])) + (f" and {rest} more" if rest > 0 else "")
