"""A registered table, as its owner declared it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.query.lookup_json import lookups_from_json, lookups_to_json
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import schema_from_json
from holdfast.service.parts import aside_of


@dataclass(frozen=True, slots=True)
class Dataset:
    """A registered table, as its owner declared it. All of it is public to its analysts but `path`."""

    id: str
    name: str
    path: str
    """Where the rows are: an absolute path, or a database's address with `relation`."""
    relation: str | None
    store: bool
    """Whether it is a saved store, which has a ledger of its own."""
    schema: Schema
    rows: int
    """How many can be asked about: all but those that are set `aside`."""
    rows_per_unit: int
    budget: dict[str, Any]
    confidence: float
    queries: int | None
    target: str
    ledger: str | None
    """The id of its ledger. Another one in its place would be a fresh budget, and is refused. None until it is made."""
    retired: bool = False
    """Whether it answers nothing any more."""
    allow_uncovered: bool = False
    """Whether an analyst may ask what ends the leave-out theorem for the others."""
    lookups: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where the public tables beside it are: their path, key and declared columns. What they hold is in `schema`."""
    aside: int = 0
    """How many units are set aside, by what its ledger says."""
    set_aside: float | None = None
    """Which share of the units its owner wants set aside; the ledger keeps it, once there is one."""

    def public(self) -> dict[str, Any]:
        """What an analyst may know. It is a function of the declaration alone."""
        return {
            "id": self.id, "name": self.name, "schema": self.schema.to_json(), "rows": self.rows,
            "rows_per_unit": self.rows_per_unit, "budget": self.budget, "confidence": self.confidence,
            "queries": self.queries, "target": self.target, "allow_uncovered": self.allow_uncovered,
            "retired": self.retired, "public_tables": lookups_to_json(self.schema), "aside": self.aside,
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """What the catalog keeps."""
        return (
            {key: value for key, value in self.public().items() if key not in ("id", "retired")}
            | {
                "path": self.path,
                "relation": self.relation,
                "store": self.store,
                "lookups": self.lookups,
            }
            | ({} if self.set_aside is None else {"set_aside": self.set_aside})
        )

    def part_aside(self) -> Dataset:
        """The units that are set aside, as something to ask: under the same cap, with no plan of their own. Of a table
        that is its own population nobody may ask them."""
        name = f"{self.name}, set aside"
        return replace(self, id=aside_of(self.id), name=name, rows=self.aside, aside=0, queries=None)

    @classmethod
    def of(cls, key: str, record: dict[str, Any], retired: bool = False) -> Dataset:
        """The dataset that `record` wrote."""
        declared = {name: part for name, part in record.items() if name != "public_tables"}
        schema = lookups_from_json(schema_from_json(record["schema"]), record.get("public_tables", []))
        return cls(**declared | {"id": key, "schema": schema}, retired=retired)
