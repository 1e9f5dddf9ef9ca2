"""What is planned when a session is opened: the least width under both budgets, in one line."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.planning.plain_answer import cost_in_all

SCHEMA = hf.Schema(x=hf.Integer(0, 9))


def table(n: int) -> hf.Table:
    return hf.open({"x": np.arange(n) % 10}, SCHEMA)


def test_the_budgets_pay_for_every_place() -> None:
    """The twin has no limit on its table, and plans for more than this one allows."""
    small = table(1_000)
    small.limit(rho=0.001)
    session = small.session(rho=1.0, queries=30)
    places, budget = session._terms.places, session._terms.table
    assert places is not None
    assert 0.9e6 < cost_in_all(places, budget) <= small.ledger.limit().limit
    free = table(1_000).session(rho=1.0, queries=30)._terms.places
    assert (
        free is not None
        and free.width < places.width
        and cost_in_all(free, budget) > small.ledger.limit().limit
    )


@pytest.mark.parametrize(
    ("how", "planned"),
    [
        ({"epsilon": 1.0, "delta": 1e-6}, True),
        ({"rho": 0.1, "only": "gaussian"}, True),
        ({"epsilon": 1.0}, False),
        ({"rho": 0.1, "target": "table"}, False),
    ],
)
def test_what_the_theorem_cannot_cover_has_no_places(how: dict[str, float], planned: bool) -> None:
    session = table(5_000).session(**how, queries=20)
    assert (session._terms.places is not None) is planned
    assert ("20 answers, each within" in session.plan) is planned
    if planned:
        assert session.fraction("x < 5").noise > 0


def test_more_budget_or_fewer_queries_are_never_wider() -> None:
    widths = [table(1_000).session(rho=rho, queries=50)._terms.places.width for rho in (1e-3, 1e-2, 1e-1)]
    assert widths == sorted(widths, reverse=True)
    widths = [table(1_000).session(rho=0.1, queries=k)._terms.places.width for k in (1, 10, 100)]
    assert widths == sorted(widths)
