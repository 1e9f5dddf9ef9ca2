"""A table that a gateway guards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from holdfast.client.json_values import amount_of
from holdfast.client.session import RemoteSession
from holdfast.client.wire import Wire
from holdfast.errors import InputError
from holdfast.planning.budget import Amount
from holdfast.query.lookup_json import lookups_from_json
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import schema_from_json


@dataclass(frozen=True)
class RemoteTable:
    """What its owner declared: all of it is public to its analysts. The rows stay at the gateway."""

    id: str
    name: str
    rows: int
    schema: Schema
    rows_per_unit: int
    budget: dict[str, Any]
    confidence: float
    queries: int | None
    target: str
    _wire: Wire = field(repr=False, compare=False)
    _confirm: bool = field(default=False, repr=False, compare=False)
    _aside: int = field(default=0, repr=False, compare=False)

    @property
    def part(self) -> str:
        """Which units of a table it is about: all ("whole"), those that are set "aside", or the "rest"."""
        return "aside" if self.id.endswith(".aside") else "rest" if self._aside else "whole"

    def session(self, *, confirm: bool | None = None) -> RemoteSession:
        """Your session on the table. Every one is the same share of the budget, given by the owner."""
        chosen = self._confirm if confirm is None else confirm
        return RemoteSession(self._wire, self, confirm=chosen)

    @property
    def aside(self) -> RemoteTable:
        """The units that are set aside, as a table: for releases that the leave-out theorem does not cover.

        They are asked by a share of their own, which the owner gives, under the same budget of the table; see
        `holdfast.Table.aside`.
        """
        if not self._aside:
            raise InputError(
                "expected a table with units that are set aside, got one without; its owner registers it with set_aside"
            )
        parts = self._wire.get(f"/v1/datasets/{quote(self.id, safe='')}.aside")
        return table_of(parts, self._wire, confirm=self._confirm)

    @property
    def spent(self) -> Amount:
        """What all analysts together have been charged."""
        return amount_of(self._wire.get(f"/v1/datasets/{self.id}/budget")["table"]["spent"])


def table_of(parts: dict[str, Any], wire: Wire, *, confirm: bool) -> RemoteTable:
    """A table from the JSON that a gateway sends."""
    names = ("id", "name", "rows", "rows_per_unit", "budget", "confidence", "queries", "target")
    chosen = {name: parts[name] for name in names}
    schema = lookups_from_json(schema_from_json(parts["schema"]), parts.get("public_tables", []))
    return RemoteTable(**chosen, schema=schema, _wire=wire, _confirm=confirm, _aside=parts.get("aside", 0))
