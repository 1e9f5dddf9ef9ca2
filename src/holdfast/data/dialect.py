"""The SQL that questions render, respelled for engines that read a few words differently.

`holdfast.query` renders for DuckDB: "quoted" names, `DOUBLE`, and 1.5e0 for a double. Nothing else of its
SQL differs between the engines, so it is enough to look at the words.
"""

from __future__ import annotations

import re

_WORD = re.compile(
    r"""(?P<name>"(?:[^"]|"")*")|(?P<text>'(?:[^']|'')*')|(?P<double>\bDOUBLE\b)"""
    r"""|(?P<number>\b[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+)"""
)


def for_postgres(sql: str) -> str:
    """The type has a longer name, and a number with an exponent is a decimal unless it is cast."""

    def respelled(word: re.Match[str]) -> str:
        if word["double"]:
            return "DOUBLE PRECISION"
        if word["number"]:
            return f"CAST('{word['number']}' AS DOUBLE PRECISION)"
        return word[0]

    return _WORD.sub(respelled, sql)


def for_spark(sql: str) -> str:
    """Names are quoted by backticks; "..." would be a text."""

    def respelled(word: re.Match[str]) -> str:
        return backticked(word[0][1:-1].replace('""', '"')) if word["name"] else word[0]

    return _WORD.sub(respelled, sql)


def backticked(name: str) -> str:
    """An identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
