"""Units and their events, with public tables beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.data.lookup_join import LookedUp, LookupColumns
from holdfast.data.unit_source import UnitSource
from holdfast.query.lookup_schema import LookupSchema
from holdfast.query.unit_schema import UnitSchema


class LookupUnits(UnitSource):
    """See `UnitSource`: the units of another. `schemas` and `tables` are by the table whose rows look up."""

    def __init__(
        self,
        base: UnitSource,
        schemas: Mapping[str, LookupSchema],
        tables: Mapping[str, Sequence[LookedUp]],
    ) -> None:
        self.base = base
        schema, own, table = base.schema, base.own, base.schema.table
        events = {
            name: replace(each, schema=schemas.get(name, each.schema)) for name, each in schema.events.items()
        }
        columns = schema.own if table is None else schemas.get(table, schema.own)
        if table is not None and table in schemas:
            own = LookupColumns(own, tables[table], base.words)
        super().__init__(
            UnitSchema(schema.unit, columns, events, table),
            base.rows,
            own,
            {
                name: replace(owned, columns=LookupColumns(owned.columns, tables[name], base.words_of(name)))
                for name in schema.events
                for owned in (base.events(name),)
            },
            fingerprint=base.fingerprint,
            path=base.path,
            words=base.words,
        )

    def close(self) -> None:
        super().close()
        self.base.close()
