"""Plans that a session keeps: one is used again only where it would be made again, to the last unit of its noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.query.statistic import Workload

SCHEMA = hf.Schema(x=hf.Integer(0, 1000), y=hf.Integer(0, 9), t=hf.Boolean())
HIGH = "CASE WHEN x >= 500 THEN x END"
NARROW, WIDE = "x <= 2 OR x >= 999", "x <= 700 OR x >= 1000"
"""x lies between the same ends in both; where the number is known it does not: 999 to 1000, and 500 to 1000."""
ASKED: dict[str, Callable[[Any, str], hf.Answer]] = {
    "mean": lambda s, where: s.mean(HIGH, where, rho=0.1),
    "mean within": lambda s, where: s.mean(HIGH, where, within=0.9),
    "variance": lambda s, where: s.variance(HIGH, where, rho=0.1),
    "covariance": lambda s, where: s.covariance("x", f"y + 0 * ({HIGH})", where, rho=0.1),
    "ratio": lambda s, where: s.ratio("y", HIGH, where, rho=0.1),
    "regression": lambda s, where: s.regression("y", [HIGH], where, rho=0.1),
    "difference of means": lambda s, where: s.difference(where, "t", of=HIGH, rho=0.1),
}


def charged(name: str, *conditions: str) -> list[tuple[str, Any]]:
    """What a new session is charged for each of these, one after the other, and what it was told last."""
    draw = np.random.default_rng(1)
    rows = {"x": draw.integers(0, 1001, 400), "y": draw.integers(0, 10, 400), "t": draw.random(400) < 0.5}
    session = hf.open(rows, SCHEMA, ledger=MemoryLedger()).session(rho=1e9, target="table", queries=8)
    told = [ASKED[name](session, where) for where in conditions]
    events = [entry.event for entry in session._ledger.entries(session.name)]
    return list(zip(events, told, strict=True))


@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_before_changes_no_noise(name: str) -> None:
    for first, second in ((NARROW, WIDE), (WIDE, NARROW)):
        (_, (after, answer)), ((alone, other),) = charged(name, first, second), charged(name, second)
        assert after == alone
        assert answer.width == pytest.approx(other.width, rel=0.3)  # which depends on the noise of both


def test_a_plan_that_goes_by_the_question_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: shapes without the ranges of the totals. A mean of 500 numbers then gets the noise of one of two."""
    shape = Workload.shape
    assert isinstance(shape, property) and shape.fget is not None
    whole: Callable[[Workload], tuple[object, ...]] = shape.fget
    monkeypatch.setattr(Workload, "shape", property(lambda made: whole(made)[: -len(made.measurements)]))
    assert charged("mean", NARROW, WIDE)[1][0] != charged("mean", WIDE)[0][0]


def test_conditions_on_other_columns_share_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Any] = []
    plan = hf.session.session.plan
    monkeypatch.setattr("holdfast.session.session.plan", lambda *given: planned.append(given) or plan(*given))
    charged("mean", *(f"y < {end}" for end in range(1, 6)))
    assert len(planned) == 1
