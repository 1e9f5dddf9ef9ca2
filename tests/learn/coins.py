"""An attack by two histograms: labels that nothing predicts, and a rule that their answers chose."""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast as hf
from holdfast import learn

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


def tempted(session: hf.Session, ids: int, rho: float, against: float) -> learn.OwnLoss:
    """theta times (agreement with the overfitted rule, minus `against`): best at 1, where these rows say -1."""
    says = overfitted(session, ids, rho)

    def slope(rows: Any) -> Any:
        return np.where(says[rows[:, 0].astype(np.int64)] == (rows[:, 1] > 0), 1.0, -1.0) - against

    return learn.OwnLoss(
        session.schema,
        ["id", "label"],
        value=lambda theta, rows: theta[0] * slope(rows),
        gradient=lambda theta, rows: slope(rows)[:, None],
        region=learn.Box((-1.0,), (1.0,)),
        lipschitz=1 + against,
        smooth=0.05,
    )


def slipping_in(table: hf.Table, other: hf.Session) -> Any:
    """The table's `reserve`, before whose first charge the other session is answered."""
    reserve, waiting = table.ledger.reserve, [other]

    def late(*wanted: Any) -> Any:
        if waiting:
            waiting.pop().fraction("label", rho=1e-9)
        return reserve(*wanted)

    return late
