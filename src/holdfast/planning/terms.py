"""The public facts that every plan of a session rests on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from holdfast.ledger import UNCOVERED
from holdfast.privacy.filter import Filter
from holdfast.query.schema import Schema
from holdfast.validity.places import Places


@dataclass(frozen=True, slots=True)
class Terms:
    """Fixed when the session opens; a plan depends on these, on the question, and on the ledger's totals."""

    schema: Schema
    rows: int
    rows_per_unit: int
    session: Filter
    table: Filter
    queries: int | None
    confidence: float
    target: str
    within: float | None = None
    """The half-width that the session was opened for, on the scale of a mean of numbers in [0,1]."""
    allow_uncovered: bool = True
    """Whether the owner allows what ends the leave-out theorem while other sessions rest on it."""
    part: str = "whole"
    """Which units of the table it is about: all of them ("whole"), those that are set aside ("aside"), the "rest"."""
    places: Places | None = None
    """What was fixed for the leave-out theorem; None where it cannot cover the session's answers."""
    opened: Schema | None = None
    """The schema that the session was opened with, where its questions bring public tables of their own."""
    information: int = UNCOVERED
    """The most that the session may tell, if it is a share of the meter, in the ledger's units."""
    table_information: int = UNCOVERED
    """The most that all may tell together while its plan holds."""
    share: float | None = None
    """Which part of what all will have told it was opened for, if it is a share of the meter."""

    @property
    def promised(self) -> str:
        """What the ledger keeps of a session's promise, and of the rows it is about: neither can change when the
        session is reopened."""
        opened = self.schema if self.opened is None else self.opened
        schema = hashlib.sha256(json.dumps(opened.to_json()).encode()).hexdigest()[:16]
        promised = {"confidence": self.confidence, "queries": self.queries, "target": self.target}
        promised |= {"within": self.within}
        places = None if self.places is None else self.places.to_json()
        return json.dumps(
            promised
            | {"fixed": None, "places": places, "rows": self.rows, "schema": schema}
            | {"rows_per_unit": self.rows_per_unit}
            | ({} if self.part == "whole" else {"part": self.part})
            | ({} if self.share is None else {"share": self.share})
        )

    @property
    def on_the_meter(self) -> bool:
        """Whether the leave-out theorem is about these rows: they have different owners, and what is told of them is
        counted."""
        return self.rows_per_unit == 1 and self.part != "aside"

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms for totals that the session's currency can count, the preferred one first."""
        if self.session.currency == "pure":
            return ("laplace", "logistic", "subsampled-laplace", "votes")
        return ("gaussian", "laplace", "logistic", "votes", "subsampled-laplace")
