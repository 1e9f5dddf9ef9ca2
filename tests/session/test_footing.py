"""What a learner's claims stand on: the promise of the place that its release took."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.planning.promise import share
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
