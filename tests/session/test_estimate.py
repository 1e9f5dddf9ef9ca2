"""What is known before anything is charged: prices, and questions asked before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast as hf

CANDIDATES = ["age > 10", "age > 50"]
RELEASES: dict[str, tuple[Callable[[Any], Any], Callable[[hf.Session], object]]] = {
    "sample": (lambda e: e.sample("age > 3"), lambda s: s.sample("age > 3")),
    "exponential": (lambda e: e.select(CANDIDATES, rho=0.01), lambda s: s.select(CANDIDATES, rho=0.01)),
    "permute": (
        lambda e: e.select(CANDIDATES, epsilon=0.1, mechanism="permute-and-flip"),
        lambda s: s.select(CANDIDATES, epsilon=0.1, mechanism="permute-and-flip"),
    ),
    "sparse vector": (
        lambda e: e.sparse_vector(0.3, 5, rho=0.02),
        lambda s: s.sparse_vector(0.3, 5, rho=0.02),
    ),
    "statistic": (
        lambda e: e.fraction("age > 3", rho=0.01),
        lambda s: s.fraction("age > 3", rho=0.01),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RELEASES))
@pytest.mark.parametrize("owned", [1, 3])
def test_an_estimate_is_what_is_charged(make_table: Callable[..., hf.Table], name: str, owned: int) -> None:
    session = make_table(rows_per_unit=owned).session(rho=50.0, target="table")
    priced, put = RELEASES[name]
    price = priced(session.estimate)
    assert float(session.spent) == 0
    put(session)
    assert float(session.spent) == price.cost > 0
    assert f"{price.cost:.4g}" in price.explain()


def test_weights_cost_no_more_than_their_price(table: hf.Table) -> None:
    session = table.session(rho=50.0, target="table")
    terms: dict[str, Any] = {"queries": 50, "rho": 1.0}
    price = session.estimate.multiplicative_weights(["smoker", "insured"], **terms)
    weights = session.multiplicative_weights(["smoker", "insured"], **terms)
    for where in ("smoker = 'yes'", "insured", "smoker = 'yes' AND insured"):
        weights.fraction(where)
    assert 0 < float(session.spent) <= price.cost <= 1.0


def test_what_was_asked_is_known(table: hf.Table) -> None:
    session = table.session(rho=1.0, target="table")
    assert not session.known.fraction("age > 3", within=0.1)
    assert not session.known.select(CANDIDATES, rho=0.1)
    assert not session.opened("sparse vector", "watch")
    assert not session.opened("weights", "w")
    session.fraction("age > 3", within=0.1)
    session.select(CANDIDATES, rho=0.1)
    session.sparse_vector(0.3, 2, rho=0.1)
    session.multiplicative_weights(["insured"], queries=5, rho=0.1, name="w")
    assert session.known.fraction("age >= 4", within=0.1)  # the same question in other words
    assert session.known.fraction("age > 3", within=0.11)  # the answer at hand is more exact
    assert not session.known.fraction("age > 3", within=0.09)
    assert session.known.select(CANDIDATES, rho=0.1)
    assert not session.known.select(CANDIDATES, rho=0.11)
    assert session.opened("sparse vector", "watch")
    assert session.opened("weights", "w")
