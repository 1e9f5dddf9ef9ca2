"""What the API takes: the bodies of requests, nothing beyond what is declared."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from holdfast.planning.question_parts import Amount, Chance, Many
from holdfast.planning.question_parts import Name as Column
from holdfast.query.schema import Schema
from holdfast.service.boards import Board
from holdfast.service.catalog import Person
from holdfast.service.dataset import Dataset
from holdfast.service.gateway import Gateway
from holdfast.service.parts import ID, PART


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("printable", "expected printable characters only; leave the others out")
    return text


Printable = AfterValidator(_printable)
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S"), Printable]
"""What a caller calls something: people read it, and every database must be able to keep it."""
Id = Annotated[str, Path(pattern=ID)]
PartId = Annotated[str, Path(pattern=PART)]
"""A table, or the units of it that are set aside: `people.aside`."""
NewId = Annotated[str, Field(pattern=ID)]
Key = Annotated[
    Annotated[str, Printable] | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)
]
ShortName = Annotated[str, Field(min_length=1, max_length=100), Printable]
Identity = Annotated[str, Field(min_length=1, max_length=255, pattern=r"\S"), Printable]

BYTES_A_ROW = 256
"""More than any number takes, and any text that a prediction may be."""


class Body(BaseModel):
    """A request's body: nothing beyond what is declared."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Budget(Body):
    """epsilon (pure), epsilon and delta, or rho."""

    epsilon: Amount | None = None
    delta: Chance | None = None
    rho: Amount | None = None

    def given(self) -> dict[str, Any]:
        """The amounts that were given."""
        return self.model_dump(exclude_none=True)


class Share(Budget):
    """An analyst's part of a table: a budget, and perhaps how many of the table's answers they may use up."""

    queries: Annotated[int, Field(ge=1)] | None = None


class NewLookup(Body):
    """A public table (CSV or Parquet, below the gateway's data folders) and its key: columns that are called alike in
    both tables, or what it calls each of the rows' columns."""

    path: Annotated[str, Field(min_length=1, max_length=1000)]
    key: Name | Annotated[list[Name], Field(min_length=1)] | Annotated[dict[Name, Name], Field(min_length=1)]
    columns: dict[str, Any] | None = Field(
        default=None, alias="schema", description="its columns; without them they are read off it"
    )


class NewDataset(Body):
    """A table: where it is (below the gateway's data folders, or postgresql://), its columns, its cap."""

    id: NewId
    name: Name | None = None
    path: Annotated[str, Field(min_length=1, max_length=1000)]
    relation: Name | None = None
    columns: dict[str, Any] | None = Field(
        default=None, alias="schema", description="the declared columns; a saved store has its own"
    )
    rows_per_unit: Many = 1
    budget: Budget
    confidence: Chance = 0.95
    queries: Many | None = None
    target: Annotated[str, Field(pattern="^(population|table)$")] = "population"
    allow_uncovered: bool = False
    set_aside: Chance | None = Field(
        default=None,
        description="the share of the units for releases that the leave-out theorem does not cover, asked as "
        "ID.aside; a saved store says it itself",
    )
    lookups: dict[Name, NewLookup] = Field(
        default_factory=dict,
        description="public tables by name, whose columns stand beside those of the rows",
    )

    def register(self, guard: Gateway, asker: Person) -> Dataset:
        """Take the table in."""
        return guard.register(
            asker, self.id, self.path, None if self.columns is None else Schema.from_json(self.columns),
            relation=self.relation, rows_per_unit=self.rows_per_unit, name=self.name or self.id,
            budget=self.budget.given(), confidence=self.confidence, queries=self.queries, target=self.target,
            allow_uncovered=self.allow_uncovered, set_aside=self.set_aside,
            lookups={
                name: each.model_dump(by_alias=True, exclude_none=True) for name, each in self.lookups.items()
            },
        )  # fmt: skip


class NewPerson(Body):
    """Somebody: an owner, an analyst, an auditor, or a machine that reads the metrics and nothing else; with a team,
    which holds the looks at boards."""

    name: ShortName
    scope: Annotated[str, Field(pattern="^(owner|analyst|auditor|metrics)$")] = "analyst"
    team: ShortName | None = None
    identity: Identity | None = None


class NewIdentity(Body):
    """By what a provider of single sign-on, or a proxy, knows somebody: an e-mail or a subject."""

    identity: Identity


class NewToken(Body):
    """A token, which ends after so many days."""

    label: Annotated[str, Field(max_length=100), Printable] = ""
    days: Annotated[float, Field(gt=0, le=36_500)] | None = None


class NewBoard(Body):
    """Labels (a file below the gateway's data folders) and the terms of a leaderboard or a holdout."""

    id: NewId
    name: Name | None = None
    labels: Annotated[str, Field(min_length=1, max_length=1000)]
    column: Column | None = None
    units: Column | None = Field(
        default=None, description="the column that says whose label it is: people count, not rows"
    )
    rows_per_unit: Many | None = Field(
        default=None, description="with units: how many rows of one are kept, the first"
    )
    metric: Annotated[str, Field(max_length=40)] = "accuracy"
    queries: Many
    per_team: Many | None = None
    within: Chance | None = None
    confidence: Chance = 0.95
    mode: Annotated[str, Field(max_length=40)] | None = None
    private: bool = Field(
        default=True,
        description="false allows a mode that is not private: labels can be worked out from its answers",
    )

    def board(self, kind: str) -> Board:
        """The declaration."""
        parts = self.model_dump() | {"kind": kind, "rows": 0, "name": self.name or self.id}
        return Board(**parts)


Rows = Annotated[list[float | Annotated[str, Field(max_length=200)] | list[float]], Field(min_length=1)]


class Predictions(Body):
    """One prediction for each row of the labels, in their order: a number, a text, or a chance for each class."""

    predictions: Rows


class Scoring(Predictions):
    """Predictions for a holdout; `train_score` asks only whether that score is fine, `against` by how much they exceed
    other predictions."""

    train_score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    metric: Annotated[str, Field(max_length=40)] | None = None
    guess: Annotated[float, Field(allow_inf_nan=False)] | None = None
    against: Rows | None = None
    expect: Chance | None = None
    sample_weight: Annotated[list[float], Field(min_length=1)] | None = None
    most_weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
