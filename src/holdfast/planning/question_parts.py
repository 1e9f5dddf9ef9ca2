"""How large a number in a question may be, and how long a text or a list, when it comes over a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from holdfast.query.group_keys import MAX_KEYS
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import Always, Predicate
from holdfast.query.schema import Schema

STRICT: dict[str, object] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""How the gateway's parser reads a question."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a number may be that comes over a network, or how long a text or a list. In process there is no
    such limit. The gateway's parser (pydantic) asks for it by the name of the method."""

    least: float
    most: float

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        parsed = schema.get("json_schema", schema)
        long = parsed["type"] in ("str", "list")
        parsed |= {"min_length" if long else "ge": self.least, "max_length" if long else "le": self.most}
        return schema


Text = Annotated[str, Limits(1, 10_000)]
Name = Annotated[str, Limits(1, 200)]
Key = Annotated[str, Limits(1, 2_000)]
"""What rows are grouped by: a column, or what is computed from some."""
Keys = Annotated[Sequence[Key], Limits(1, MAX_KEYS)]
Word = Annotated[str, Limits(0, 40)]
Amount = Annotated[float, Limits(1e-9, 1e9)]
"""A budget. Ledgers count in units of 1e-9, and nobody means more than 1e9."""
Width = Annotated[float, Limits(1e-30, 1e30)]
Chance = Annotated[float, Limits(1e-100, math.nextafter(1, 0))]
Many = Annotated[int, Limits(1, 10**15)]
Edges = Annotated[Sequence[float | Word], Limits(0, 10_000)]


def named(schema: Schema, name: str) -> str:
    """The declared name of a column; what is none is refused by whoever looks it up."""
    return (schema.spelling(name) or name) if isinstance(name, str) else name


def where_of(text: str | None, schema: Schema) -> Predicate:
    """The condition of a question; none is one that always holds."""
    return Always() if text is None else parse_predicate(text, schema)
