"""Public tables beside rows or units as JSON, for whoever asks about them elsewhere: columns and keys, no rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.errors import SchemaError
from holdfast.query.lookup_schema import Joined, LookupSchema, joined_of
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import UnitSchema


def lookups_to_json(schema: Schema) -> list[dict[str, Any]]:
    """The public tables of a schema. `beside` is the table whose rows find them, where there are several."""
    if isinstance(schema, UnitSchema):
        found = [
            (schema.table, schema.beside),
            *((name, each.schema) for name, each in schema.events.items()),
        ]
    else:
        found = [(None, schema)]
    return [
        {
            "name": each.name,
            "beside": table,
            "keys": [list(pair) for pair in each.keys],
            "digest": each.digest,
            "columns": [{"name": name, **kind.to_json()} for name, kind in each.columns],
        }
        for table, beside in found
        if beside is not None
        for each in joined_of(beside).values()
    ]


def lookups_from_json(schema: Schema, value: object) -> Schema:
    """A schema with the public tables that `lookups_to_json` wrote; SchemaError for anything else."""
    tables: dict[str | None, list[Joined]] = {}
    try:
        if not isinstance(value, list):
            raise TypeError
        for each in value:
            columns = tuple(Schema.from_json({"columns": each["columns"]}).items())
            keys = tuple((str(mine), str(its)) for mine, its in each["keys"])
            joined = Joined(str(each["name"]), keys, columns, str(each["digest"]))
            tables.setdefault(each["beside"], []).append(joined)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SchemaError("expected public tables as a gateway describes them, got another value") from None
    return _beside(schema, tables) if tables else schema


def without_lookups(schema: Schema) -> Schema:
    """The declared columns alone."""
    return _beside(schema, {})


def _beside(schema: Schema, tables: Mapping[str | None, list[Joined]]) -> Schema:
    """The same columns with these public tables, and no others."""

    def wider(declared: Schema, table: str | None) -> Schema:
        bare = declared.base if isinstance(declared, LookupSchema) else declared
        return LookupSchema(bare, tables[table]) if table in tables else bare

    if not isinstance(schema, UnitSchema):
        return wider(schema, None)
    events = {name: replace(each, schema=wider(each.schema, name)) for name, each in schema.events.items()}
    if schema.is_lone:
        return UnitSchema(schema.unit, {}, events, None)
    own = schema.beside.base if schema.beside is not None else Schema.from_mapping(schema.own)
    return UnitSchema(schema.unit, wider(own, schema.table), events, schema.table)
