"""A table that a gateway guards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from holdfast.client.json_values import amount_of
from holdfast.client.session import RemoteSession
from holdfast.client.wire import Wire
from holdfast.errors import MechanismError
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

    def session(self, *, confirm: bool | None = None) -> RemoteSession:
        """Your session on the table. Every one is the same share of the budget, given by the owner."""
        chosen = self._confirm if confirm is None else confirm
        return RemoteSession(self._wire, self, confirm=chosen)

    @property
    def aside(self) -> NoReturn:
        """Refused: a gateway has no door to units that are set aside."""
        raise MechanismError(
            "a gateway has no door to units that are set aside; ask them where the rows are, under the same budget: "
            "hf.open(STORE).aside.session(...)"
        )

    @property
    def spent(self) -> Amount:
        """What all analysts together have been charged."""
        return amount_of(self._wire.get(f"/v1/datasets/{self.id}/budget")["table"]["spent"])


def table_of(parts: dict[str, Any], wire: Wire, *, confirm: bool) -> RemoteTable:
    """A table from the JSON that a gateway sends."""
    names = ("id", "name", "rows", "rows_per_unit", "budget", "confidence", "queries", "target")
    chosen = {name: parts[name] for name in names}
    schema = lookups_from_json(schema_from_json(parts["schema"]), parts.get("public_tables", []))
    return RemoteTable(**chosen, schema=schema, _wire=wire, _confirm=confirm)
