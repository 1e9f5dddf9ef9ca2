"""Questions that bring public tables of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.planning.question import Interval, Read
from holdfast.planning.terms import Terms
from holdfast.query.calling import fitting
from holdfast.query.lookup_schema import Joined, LookupSchema
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic, workload
from holdfast.query.unit_schema import UnitSchema
from holdfast.session.answer import Answer
from holdfast.session.estimate import Beside, Estimate

if TYPE_CHECKING:
    from holdfast.data.lookup import Lookup
    from holdfast.data.source import Source
    from holdfast.ledger import Ledger
    from holdfast.planning.budget import Budget

Widen = Callable[[Mapping[str, "Lookup"]], "Source"]
"""The same rows with more public tables beside them."""


class LookingUp:
    """The part of a session that takes more public tables."""

    name: str
    _ledger: Ledger
    _budget: Budget
    _terms: Terms
    _widen: Widen

    @fitting
    def looking_up(self, lookups: Mapping[str, Lookup]) -> WithTables:
        """This session's questions, with public tables of your own: `session.looking_up({"towns": hf.Lookup(towns,
        "town")}).mean("income", by="towns.size")`.

        They are charged to this session, and cost what they cost of tables that were given at the opening. The same
        question of another table is another question.
        Guarantee: no privacy is lost by a table that was not read off the rows; answers of any session may have gone
        into it (docs/theorems.md, Theorem 70).
        """
        from holdfast.session.session import Session

        source = self._widen(lookups)
        terms = replace(self._terms, schema=source.schema, opened=self._terms.schema)
        return WithTables(Session(source, self._ledger, self._budget, terms, self.name, self._widen))


class WithTables(Beside[Answer]):
    """See `Session.looking_up`."""

    @property
    def estimate(self) -> Estimate:
        """The same questions, planned only."""
        return self._session.estimate

    def put(self, asked: Read) -> list[Answer]:
        return self._session.put(asked)

    def _read(self, asked: Interval) -> Read:
        return self._session._read(asked)


def told_apart(read: Read, terms: Terms) -> Read:
    """A question that knows the contents of the public tables which it alone has: without, the answer of one that was
    asked of other contents under the same names would stand for it."""
    if terms.opened is None:
        return read
    known = _public(terms.opened)
    brought = [each for name, each in _public(terms.schema).items() if name not in known]
    return replace(read, statistics=[_with_contents(each, brought, terms) for each in read.statistics])


def _with_contents(statistic: Statistic, brought: list[Joined], terms: Terms) -> Statistic:
    columns = {
        name
        for measurement in workload(statistic, terms.schema, terms.rows).measurements
        for name in measurement.columns
    }
    if isinstance(terms.schema, UnitSchema):
        said = [each for name in columns if (each := terms.schema.aggregate(name)) is not None]
        columns |= {name for each in said for name in each.columns}
    used = [
        each.digest
        for each in brought
        if not columns.isdisjoint(each.called(column) for column, _ in each.columns)
    ]
    return replace(statistic, brought=" ".join(used)) if used else statistic


def _public(schema: Schema) -> Mapping[str, Joined]:
    return schema.lookups if isinstance(schema, UnitSchema | LookupSchema) else {}
