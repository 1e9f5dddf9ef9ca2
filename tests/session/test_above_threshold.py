"""The sparse vector of a session: its holders share its hits, a call is told once, coming back is cheap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from session.numbers import charged_and_refused, open_rows

import holdfast as hf
from holdfast.session import above_threshold as above_module
from holdfast.session.above_threshold import AboveThreshold
from holdfast.session.session import Session


def test_two_holders_of_one_sparse_vector_share_its_hits() -> None:
    session = open_rows(np.ones(5000, dtype=int)).session(epsilon=2.0)
    hits = 0
    for _ in range(20):
        vector = AboveThreshold(session, "w", 0.3, 1, epsilon=1.0)
        try:
            vector.above("x = 0 AND x = 1")
            hits += vector.above("x = 1")
        except hf.BudgetError:
            break
    assert hits == 1
    late = session.sparse_vector(0.3, 1, epsilon=1.0, name="w")
    assert late.halted


def test_interleaved_holders_never_tell_each_others_answers() -> None:
    session = open_rows(np.arange(5000) % 1024).session(epsilon=5.0)
    first, second = (AboveThreshold(session, "w", 0.5, 3, epsilon=2.0) for _ in range(2))
    assert [
        first.above("x < 10"),
        second.above("x < 1000"),
        first.above("x < 20"),
        second.above("x < 900"),
    ] == [
        False,
        True,
        False,
        True,
    ]
    assert first.asked == 3 or first.hits_left <= 2
    assert second.hits_left == 1


def test_names_of_sparse_vectors_do_not_collide_with_their_questions() -> None:
    session = open_rows(np.arange(5000) % 1024).session(epsilon=100.0)
    vector = session.sparse_vector(0.5, 3, epsilon=1.0, name="w")
    vector.above("x < 10")
    before = session.spent
    session.sparse_vector(0.5, 3, epsilon=50.0, name="w 0")
    assert session.spent - before == pytest.approx(50.0)


def test_a_mechanism_with_its_own_delta_is_refused() -> None:
    session = open_rows(np.arange(100)).session(epsilon=5.0, delta=1e-6)
    with pytest.raises(hf.MechanismError, match="delta"):
        session.sparse_vector(0.5, 1, epsilon=0.5, delta=0.9, version="gaussian", questions=10)
    assert session.spent == 0


def test_a_repeated_call_of_a_sparse_vector_uses_no_second_hit(tmp_path: Path, table: hf.Table) -> None:
    saved = table.save(tmp_path / "people.hf")
    session = saved.session(rho=1.0, name="ann", target="table")
    vector = session.sparse_vector(0.1, 2, rho=0.5)
    assert vector.above("age >= 0", call="one")
    assert vector.hits_left == 1
    for _ in range(5):
        assert vector.above("age >= 0", call="one")
    later = hf.open(tmp_path / "people.hf").session(name="ann", target="table").sparse_vector(0.1, 2, rho=0.5)
    assert later.above("age >= 0", call="one")
    assert later.hits_left == 1
    assert later.above("age >= 0")  # without its name it is another question
    assert later.halted


class IgnoresTheCondition(AboveThreshold):
    """The broken twin: what a call was told is told to any question."""

    def _told(self, call: str, asked: str) -> bool:
        return self._calls[call][1]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_call_is_bound_to_its_condition(table: hf.Table, restarted: bool) -> None:
    session = table.session(rho=5.0, target="table")

    def hold(kind: type[AboveThreshold] = AboveThreshold) -> AboveThreshold:
        return kind(session, "vector", 0.5, 3, rho=0.5)

    first = hold()
    assert first.above("age >= 0", call="KEY")
    vector = hold() if restarted else first
    with pytest.raises(hf.InputError, match="another condition"):
        vector.above("age > 98", call="KEY")
    assert vector.above("age > -1", call="KEY")  # the same condition in other words
    assert (vector.asked, vector.hits_left) == (1, 2)
    assert hold(IgnoresTheCondition).above("age > 98", call="KEY")
    assert not vector.above("age > 98", call="another")


def lookups(session: hf.Session, kept: bool) -> list[int]:
    """How often the ledger is read for each of some questions that come back to their sparse vector."""
    read, real = [0], session._ledger.find

    def find(name: str, key: str) -> Any:
        read[-1] += 1
        return real(name, key)

    session._ledger.find = find  # type: ignore[method-assign, assignment]
    for number in range(30):
        if not kept:
            session._vectors.clear()
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
    vector = session.sparse_vector(0.1, 2, rho=0.5)
    other = table.session(rho=1.0, name="ann", target="table").sparse_vector(0.1, 2, rho=0.5)
    assert other is not vector and other.above("age >= 0")
    again = session.sparse_vector(0.1, 2, rho=0.5)
    assert (again.asked, again.hits_left) == (1, 1)
    with pytest.raises(hf.InputError, match="other terms"):
        session.sparse_vector(0.2, 2, rho=0.5)
    for number in range(40):
        session.sparse_vector(0.1, 2, rho=1e-4, name=f"number {number}")
    assert len(session._vectors) <= 16
    late = session.sparse_vector(0.1, 2, rho=0.5)
    assert (late.asked, late.hits_left) == (1, 1)


def test_a_sparse_vector_whose_questions_cannot_be_drawn_is_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(session: Session) -> bool:
        # The noise of its threshold can be drawn, that of its questions cannot.
        return session.sparse_vector(0.5, 10_000, epsilon=2e-12).above("x > 3")

    assert not charged_and_refused(open_rows(np.arange(500) % 7).session(rho=9e9), ask)
    monkeypatch.setattr(above_module, "refuse_undrawable", lambda *noise: None)
    assert charged_and_refused(open_rows(np.arange(500) % 7).session(rho=9e9), ask)
