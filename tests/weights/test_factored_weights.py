"""Weights of many columns: the same distribution as over cells, the same promises, and what does not fit is refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InputError
from holdfast.ledger import MemoryLedger
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.query.region import factors, region
from holdfast.query.universe import Universe, universe
from holdfast.session.session import Session
from holdfast.weights.distribution import Weights
from holdfast.weights.factored_weights import FactoredWeights
from tests.synthesis.wide import SCHEMA, census
from tests.weights.elsewhere import ELSEWHERE

ROWS = 20_000
DATA = census(ROWS)
SMALL = universe(SCHEMA, ["work", "married", "hours", "rich"], {"hours": [0, 30, 40, 99]})
PART = universe(SCHEMA, ["work", "married", "hours", "rich"], {"hours": [0, 30, 40, 60]}, nulls=["work"])
"""A row may lie in none of its cells."""
QUERIES = (
    "work = 'self' AND rich",
    "married AND rich",
    "hours >= 40 AND married",
    "rich OR work = 'none'",
    "hours < 30",
    "NOT rich AND work = 'self'",
)


def opened(**options: Any) -> Session:
    table = hf.open(DATA, SCHEMA, ledger=MemoryLedger())
    return table.session(**{"rho": 2.0, "queries": 100_000, "target": "table"} | options)


def truth(first: str, second: str) -> float:
    return float(np.mean((DATA["work"] == first) & (DATA["region"] == second)))


@pytest.mark.parametrize("cells", [SMALL, PART], ids=["complete", "with an outside"])
def test_tilted_factors_are_tilted_cells(cells: Universe) -> None:
    """Theorem 280, against the weights on all cells; a twin that forgets an update is caught."""
    dense, factored, lost = Weights(cells), FactoredWeights(cells, 2**24), FactoredWeights(cells, 2**24)
    distant = FactoredWeights(cells, 2**24, ELSEWHERE)  # on a device
    draw = np.random.default_rng(0)
    asked = [region(cells, text) for text in (*QUERIES, "1 = 1")]
    asked.append(factors(cells, {"work": [0.1, 0.9, 0.4, 0.6], "rich": [0.2, 0.8]}))
    for step in range(30):
        query = asked[int(draw.integers(len(asked)))]
        assert factored.fraction(query) == pytest.approx(dense.fraction(query), abs=1e-12)
        assert distant.fraction(query) == pytest.approx(dense.fraction(query), abs=1e-12)
        eta = float(draw.normal())
        for weights in (dense, factored, distant, *([lost] if step != 11 else [])):
            weights.tilt(query, eta)
    every = [(0, 1), (1, 2, 3), (0, 1, 2, 3), (2,)]
    truths, found, twins = dense.marginals(every), factored.marginals(every), lost.marginals(every)
    assert all(np.array_equal(distant.marginals(every)[axes], found[axes]) for axes in every)
    assert all(np.abs(found[axes] - truths[axes]).max() < 1e-12 for axes in every)
    assert max(np.abs(twins[axes] - truths[axes]).max() for axes in every) > 1e-3
    never, always = region(cells, "rich AND NOT rich AND rich IS NOT NULL"), region(cells, "1 = 1")
    inside = 1.0 - dense.probabilities()[1]
    assert factored.fraction(never) == pytest.approx(0.0)
    assert factored.fraction(always) == pytest.approx(inside)
    assert (inside == 1.0) == cells.is_complete
    beyond = factored.sampled(10_000, ReplayedBits(1))[1]
    assert np.mean(beyond) == pytest.approx(1.0 - inside, abs=0.05)


def answered_about_the_inside() -> tuple[float, float]:
    """Questions that nearly every cell satisfies, of rows half of which are in none: the answer that is farthest off,
    and the promise."""
    rows = 4000
    data = {"a": [None, 1] * (rows // 2), "b": np.arange(rows) % 4}
    table = hf.open(data, hf.Schema(a=hf.Integer(0, 3), b=hf.Integer(0, 3)), ledger=MemoryLedger())
    session = table.session(rho=1000.0, target="table")
    with replayed(ReplayedBits(1)):
        weights = session.multiplicative_weights(["a", "b"], queries=50, within=0.1, nulls=[], memory=2**20)
        pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
        told = [weights.fraction(f"a >= 0 AND b <> {i} OR a <> 0 AND b <> {j}").value for i, j in pairs]
    return max(abs(value - 0.5) for value in told), weights.within


def test_rows_in_no_cell_keep_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: without an outside the weights settle, and say that all rows are in the cells."""
    missed, within = answered_about_the_inside()
    assert missed <= within
    monkeypatch.setattr(FactoredWeights, "_inside", 1.0)
    assert answered_about_the_inside()[0] > 4 * within


def test_a_wide_table_is_answered_within_the_promise_and_comes_back() -> None:
    session = opened()
    with replayed(ReplayedBits(1)):
        weights = session.multiplicative_weights(
            list(SCHEMA), queries=2000, within=0.06, memory=2**24, stop="when spent"
        )
        assert weights.universe.size > 2**32
        told = {}
        for work in ("private", "public", "self", "none"):
            for place in range(12):
                asked = f"work = '{work}' AND region = 'r{place}'"
                told[work, f"r{place}"] = weights.fraction(asked)
        first = weights.fraction("age < 30 AND married")
    for (work, place), answer in told.items():
        assert abs(answer.value - truth(work, place)) <= answer.noise <= weights.within
    assert abs(first.value - np.mean((DATA["age"] < 30) & DATA["married"])) <= weights.within
    assert 0 < weights.updates <= weights.terms.updates
    assert weights.potential < np.log(float(weights.universe.size))
    assert len(weights.rows(50)["age"]) == 50
    spent = float(session.spent)
    again = session.multiplicative_weights(
        list(SCHEMA), queries=2000, within=0.06, memory=2**24, stop="when spent"
    )
    assert again.updates == weights.updates and float(session.spent) == spent
    repeated = again.fraction("work = 'private' AND region = 'r0'")
    assert repeated.value == pytest.approx(
        told["private", "r0"].value, abs=1e-9
    ) or repeated.value == pytest.approx(truth("private", "r0"), abs=weights.within)


def test_what_would_not_fit_is_refused_before_it_is_charged() -> None:
    session = opened()
    weights = session.multiplicative_weights(
        list(SCHEMA), queries=100, within=0.1, memory=2**18, stop="when spent"
    )
    entries, spent, asked = (
        len(list(session._ledger.entries(session.name))),
        float(session.spent),
        weights.asked,
    )
    with pytest.raises(InputError, match=r"cannot hold age, region, hours together .* ask about .* only"):
        weights.fraction("age < 30 AND region = 'r1' AND hours = 40")
    assert len(list(session._ledger.entries(session.name))) == entries
    assert float(session.spent) == spent and weights.asked == asked
    assert abs(weights.fraction("rich AND married").value - np.mean(DATA["rich"] & DATA["married"])) <= 0.1
    with pytest.raises(InputError, match="ask about fewer columns at once"):
        weights.fraction(" OR ".join(f"{name} IS NULL" for name in SCHEMA))


@pytest.mark.parametrize(
    "bad",
    [
        {"memory": 0},
        {"memory": 1.5},
        {"memory": 2**20, "device": "abacus"},
        {"memory": 2**20, "start": object()},
    ],
)
def test_bad_terms_are_refused(bad: dict[str, Any]) -> None:
    session = opened()
    with pytest.raises(InputError):
        session.multiplicative_weights(["rich", "work"], queries=10, rho=0.1, **bad)
    assert float(session.spent) == 0


def test_an_update_that_is_cut_off_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, whole = FactoredWeights(SMALL, 2**24), FactoredWeights(SMALL, 2**24)
    query = region(SMALL, QUERIES[0])
    weights.fraction(query)
    whole.tilt(query, 0.7)
    with monkeypatch.context() as broken:

        def full(*_: Any) -> Any:
            raise MemoryError

        broken.setattr(FactoredWeights, "_product", full)
        with pytest.raises(MemoryError):
            weights.tilt(query, 0.7)
    assert weights.fraction(query) == pytest.approx(whole.fraction(query), abs=1e-12)


def test_a_tilt_keeps_within_the_stated_memory() -> None:
    shape = {f"c{i}": hf.Integer(0, 99) for i in range(6)}
    cells = universe(hf.Schema(**shape), list(shape), {}, nulls=[], most=10**20)
    weights, needed = FactoredWeights(cells, 2**28), 0
    tracemalloc.start()
    for first in range(4):
        query = region(cells, " AND ".join(f"c{first + j} < 50" for j in range(3)))
        weights.refuse_large(query)
        weights.fraction(query)
        weights.tilt(query, 0.3)
        tree = weights._tree(())
        needed = 8 * (4 * tree.cells + 2 * len(weights._factors) * 100**3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert needed <= 2**28 and peak <= 1.1 * needed, (peak, needed)


def test_a_product_that_no_array_holds_is_refused_before_the_charge() -> None:
    rows = {f"c{i}": np.arange(100) % 2 == 0 for i in range(70)}
    table = hf.open(rows, hf.Schema(**dict.fromkeys(rows, hf.Boolean())), ledger=MemoryLedger())
    session = table.session(rho=10.0, target="table")
    with replayed(ReplayedBits(1)):
        weights = session.multiplicative_weights(
            list(rows), queries=10, within=0.4, memory=2**20, stop="when spent"
        )
    spent = session.spent
    with pytest.raises(InputError, match="name fewer columns"):
        weights.product({"c1": [0.5, 0.5]})
    assert session.spent == spent
