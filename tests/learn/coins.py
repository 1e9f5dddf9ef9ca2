"""An attack by two histograms: labels that nothing predicts, and a rule that their answers chose."""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast as hf

GOOD = 0.04
"""`hint` says the label of a row a little more often than not: with chance 1/2 + GOOD."""


def coins(rows: int, ids: int, draw: np.random.Generator, **options: Any) -> hf.Table:
    """Rows with an id from 0 to `ids`, a label that is a coin, and the hint; every rule by id errs on one half."""
    label = draw.random(rows) < 0.5
    hint = np.where(draw.random(rows) < 0.5 + GOOD, label, ~label)
    schema = hf.Schema(id=hf.Integer(0, ids), label=hf.Boolean(), hint=hf.Boolean())
    return hf.open({"id": draw.integers(0, ids, rows), "label": label, "hint": hint}, schema, **options)


def overfitted(session: hf.Session, ids: int, rho: float) -> Any:
    """For each id, what most of its rows are labelled, as two noisy answers of the session tell."""
    how: dict[str, Any] = {"by": "id", "edges": list(range(ids + 1)), "rho": rho / 2}
    return session.count("label", **how).value > session.count("NOT label", **how).value


def slipping_in(table: hf.Table, other: hf.Session) -> Any:
    """The table's `reserve`, before whose first charge the other session is answered."""
    reserve, waiting = table.ledger.reserve, [other]

    def late(*wanted: Any) -> Any:
        if waiting:
            waiting.pop().fraction("label", rho=1e-9)
        return reserve(*wanted)

    return late
