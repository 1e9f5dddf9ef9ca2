"""Questions about the order of a column: quantiles, one or several at once, and the extremes."""

from __future__ import annotations

import fractions
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.planning.meaning import events_of, refuse_long_lines
from holdfast.planning.question import Grouped, Read
from holdfast.planning.question_parts import Chance, Edges, Limits, Name, named, where_of
from holdfast.query.across import scope
from holdfast.query.group_keys import computed_keys, groups_of, key_texts
from holdfast.query.grouping import Groups, bins_of_all, is_list
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Boolean, Category, Schema, Text
from holdfast.query.statistic import Statistic

MAX_CELLS = 2**24
"""How many counts a quantile by groups may need."""
MAX_RANKS = 100
"""How many quantiles may be asked for at once."""
Ranks = Annotated[Sequence[Chance], Limits(1, MAX_RANKS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Grouped):
    """The value below which a fraction `rank` of the rows lies; of several ranks, all of them together."""

    kind: Literal["quantile"] = "quantile"
    column: Name
    rank: Chance | Ranks = 0.5

    def read(self, schema: Schema) -> Read:
        if not isinstance(self.column, str):
            raise InputError(f"expected the name of one column, got {shown(self.column)}")
        schema = scope(schema, [self.where, *computed_keys(self.by)], [self.column, *key_texts(self.by)])
        edges: Any = dict(self.edges) if isinstance(self.edges, Mapping) else {self.column: self.edges}
        own = edges.pop(self.column, None)
        by = None if self.by is None else groups_of(schema, self.by, edges)
        where, column = where_of(self.where, schema), named(schema, self.column)
        return self._read(quantile_of(schema, column, self.rank, where, by, own))


def quantile_of(
    schema: Schema, column: str, rank: Any, where: Predicate, by: Groups | None, edges: Edges | None = None
) -> Statistic:
    """One quantile, chosen privately; or those of a list of ranks, from running counts that are told once.

    Edges that leave values out get a bin beyond: those rows are below the quantile, or above it, all the same.
    """
    several = is_list(rank)
    ranks = [_rank(each) for each in rank] if several else [_rank(rank)]
    if not 1 <= len(ranks) <= MAX_RANKS or len(set(ranks)) < len(ranks):
        raise InputError(f"expected 1 to {MAX_RANKS} different ranks, got {shown(rank)}")
    kind = schema.get(column) if isinstance(column, str) else None
    if isinstance(kind, Category | Boolean | Text):
        raise QueryError(f"column {column!r} has no order, so it has no quantiles; ask for a histogram")
    bins = bins_of_all(schema, column, edges)
    if by is not None and by.size * bins.size > MAX_CELLS:
        raise InputError(
            f"expected at most {MAX_CELLS:,} groups times bins, got {by.size * bins.size:,}; give fewer edges"
        )
    over = events_of(schema)
    if not several:
        return Statistic("quantile", where, None, by, ranks[0], bins, over=over)
    refuse_long_lines(bins.size, 1 if by is None else by.size)
    return Statistic("quantiles", where, None, by, bins=bins, over=over, ranks=tuple(ranks))


def _rank(rank: Any) -> fractions.Fraction:
    if isinstance(rank, bool) or not isinstance(rank, int | float | fractions.Fraction) or not 0 < rank < 1:
        raise InputError(f"expected a rank strictly between 0 and 1, got {shown(rank)}")
    whole = fractions.Fraction(rank).limit_denominator(10**6)
    if not 0 < whole < 1:
        raise InputError(f"expected a rank of a millionth at least from 0 and 1, got {shown(rank)}")
    return whole
