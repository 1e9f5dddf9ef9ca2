"""What is known before anything is charged: prices, questions asked before, calls that are repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.deferred import DeferredSource, look
from holdfast.session.watch import Watch

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


def test_a_repeated_call_draws_nothing_again(table: hf.Table) -> None:
    session = table.session(rho=1.0, target="table")
    told = [session.sample("age > 49", key=f"call {i}") for i in range(200)]
    spent = float(session.spent)
    assert [session.sample("age > 49", key=f"call {i}") for i in range(200)] == told
    assert float(session.spent) == spent
    assert len(set(told)) == 2  # different calls are different draws
    assert session.sample("age > 49", key="call 0") is told[0]


def test_a_repeated_call_of_a_sparse_vector_uses_no_second_hit(tmp_path: Path, table: hf.Table) -> None:
    saved = table.save(tmp_path / "people.hf")
    session = saved.session(rho=1.0, name="ann", target="table")
    watch = session.sparse_vector(0.1, 2, rho=0.5)
    assert watch.above("age >= 0", call="one")
    assert watch.hits_left == 1
    for _ in range(5):
        assert watch.above("age >= 0", call="one")
    later = hf.open(tmp_path / "people.hf").session(name="ann", target="table").sparse_vector(0.1, 2, rho=0.5)
    assert later.above("age >= 0", call="one")
    assert later.hits_left == 1
    assert later.above("age >= 0")  # without its name it is another question
    assert later.halted


class IgnoresTheCondition(Watch):
    """The broken twin: what a call was told is told to any question."""

    def _told(self, call: str, asked: str) -> bool:
        return self._calls[call][1]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_call_is_bound_to_its_condition(table: hf.Table, restarted: bool) -> None:
    session = table.session(rho=5.0, target="table")

    def hold(kind: type[Watch] = Watch) -> Watch:
        return kind(session, "watch", 0.5, 3, rho=0.5)

    first = hold()
    assert first.above("age >= 0", call="KEY")
    watch = hold() if restarted else first
    with pytest.raises(hf.InputError, match="another condition"):
        watch.above("age > 98", call="KEY")
    assert watch.above("age > -1", call="KEY")  # the same condition in other words
    assert (watch.asked, watch.hits_left) == (1, 2)
    assert hold(IgnoresTheCondition).above("age > 98", call="KEY")
    assert not watch.above("age > 98", call="another")


def test_a_sample_of_another_condition_is_another_draw(table: hf.Table) -> None:
    session = table.session(rho=1.0, target="table")
    for where in ("age > 49", "age > 98"):
        session.sample(where, key="KEY")
    assert session._ledger.totals(session.name).entries == 2


def lookups(session: hf.Session, kept: bool) -> list[int]:
    """How often the ledger is read for each of some questions that come back to their sparse vector."""
    read, real = [0], session._ledger.find

    def find(name: str, key: str) -> Any:
        read[-1] += 1
        return real(name, key)

    session._ledger.find = find  # type: ignore[method-assign, assignment]
    for number in range(30):
        if not kept:
            session._watches.clear()
        session.sparse_vector(0.9, 3, rho=0.5).above(f"age > {50 + number}")
        read.append(0)
    return read[:-1]


def test_coming_back_to_a_sparse_vector_reads_only_what_is_new(table: hf.Table) -> None:
    counts = lookups(table.session(rho=1.0, target="table"), kept=True)
    assert max(counts[1:]) <= 5
    grows = lookups(table.session(rho=1.0, target="table"), kept=False)  # the broken twin
    assert grows[-1] > grows[1] + 20


def test_a_kept_sparse_vector_knows_what_others_answered(table: hf.Table) -> None:
    session = table.session(rho=1.0, name="ann", target="table")
    watch = session.sparse_vector(0.1, 2, rho=0.5)
    other = table.session(rho=1.0, name="ann", target="table").sparse_vector(0.1, 2, rho=0.5)
    assert other is not watch and other.above("age >= 0")
    again = session.sparse_vector(0.1, 2, rho=0.5)
    assert (again.asked, again.hits_left) == (1, 1)
    with pytest.raises(hf.InputError, match="other terms"):
        session.sparse_vector(0.2, 2, rho=0.5)
    for number in range(40):
        session.sparse_vector(0.1, 2, rho=1e-4, name=f"number {number}")
    assert len(session._watches) <= 16
    late = session.sparse_vector(0.1, 2, rho=0.5)
    assert (late.asked, late.hits_left) == (1, 1)


def test_rows_are_looked_for_when_they_are_needed(tmp_path: Path, table: hf.Table) -> None:
    place = str(tmp_path / "people.hf")
    table.save(place)
    seen = look(place, None)
    assert (seen.rows, seen.schema, seen.store) == (table.rows, table.schema, True)
    absent = DeferredSource(seen.schema, seen.rows, str(tmp_path / "elsewhere.hf"))
    assert (absent.rows, absent.schema) == (seen.rows, seen.schema)
    with pytest.raises(hf.DataError):
        absent.draw(["age"], 1)
    with pytest.raises(hf.DataError, match="registered"):
        DeferredSource(seen.schema, seen.rows + 1, place).draw(["age"], 1)
    source = DeferredSource(seen.schema, seen.rows, place)
    np.testing.assert_array_equal(
        source.gather(["age"], np.arange(5))["age"], table._source.gather(["age"], np.arange(5))["age"]
    )
    source.close()
    source.close()
