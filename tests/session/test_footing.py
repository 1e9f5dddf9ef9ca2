"""What a learner's claims stand on: the promise of the place that its release took."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import holdfast as hf
from holdfast.planning.promise import share
from holdfast.planning.recipe_information import told_by
from holdfast.privacy.event import BoundedRange
from holdfast.session.footing import footing_after


@pytest.mark.parametrize("target", ["table", "population"])
def test_a_claim_has_the_share_of_its_own_place(table: hf.Table, target: str) -> None:
    """Of an unbounded promise: 1/2, then 1/12 twice, then 1/48; the first one's share would be too large."""
    session = table.session(rho=1.0, target=target)
    firsts = footing_after(session, fresh=True).promise.allowance / share(None, 1)
    for place in range(1, 5):
        session.fraction(f"age < {place}", rho=1e-9)
        promise = footing_after(session, fresh=False).promise
        assert promise.allowance == pytest.approx(firsts * share(None, place), rel=1e-12)


def test_on_fresh_rows_nothing_that_others_were_told_since_chooses_the_claim(table: hf.Table) -> None:
    """The twin is the footing of rows that are not fresh: it counts what was charged after the release."""
    mine, others = table.session(rho=1.0, queries=9), table.session(rho=1.0)
    mine.pay("learn", "a class", BoundedRange(Fraction(1, 100)), queries=2, fresh=True, tells=1000)
    alone = footing_after(mine, True)
    others.fraction("age < 40", rho=1e-3)
    assert footing_after(mine, True) == replace(alone, promise=footing_after(mine, True).promise)
    assert alone.told == told_by(1000, table.rows) < footing_after(mine, False).told
