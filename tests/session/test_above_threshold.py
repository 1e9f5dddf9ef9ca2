"""The sparse vector of a session: its holders share its hits, a call is told once, coming back is cheap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from session.numbers import charged_and_refused, open_rows

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.session import above_threshold as above_module
from holdfast.session.above_threshold import AboveThreshold, Comparison
from holdfast.session.session import Session

SCHEMA = hf.Schema(x=hf.Integer(0, 1023))


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

    def _told(self, call: str, asked: str) -> Comparison:
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


def numbers(n: int) -> dict[str, Any]:
    return {"x": np.arange(n) % 1000}


def told(table: hf.Table) -> int:
    return table.ledger.totals().information


def meter_of(session: Session) -> tuple[list[bool], list[int]]:
    """What six questions are told, two of them surely above, and what the ledger counts after each."""
    vector = session.sparse_vector(0.5, 3, epsilon=0.5)
    counts, said = [session._ledger.totals().information], []
    for where in ("x < 10", "x < 20", "x < 990", "x < 30", "x < 980", "x < 40"):
        said.append(vector.above(where))
        counts.append(session._ledger.totals().information)
    return said, counts


def test_questions_below_are_free_on_the_meter_and_one_above_is_paid_before_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand: an alarm of rate lam tells at least the lam^2 of a Gaussian answer. The twin never pays."""

    def is_sound() -> bool:
        session = hf.open(numbers(20_000), SCHEMA, ledger=MemoryLedger()).session(rho=5.0, queries=10)
        said, counts = meter_of(session)
        assert said == [False, False, True, False, True, False]
        rate = 20_000 / float(session.sparse_vector(0.5, 3, epsilon=0.5)._vector.allocation.question)
        each = [round((count - counts[0]) / 1e9 * 20_000 / rate**2, 3) for count in counts]
        one = each[1]
        return 1 <= one < 1.01 and each == pytest.approx(
            [0, one, one, one, 2 * one, 2 * one, 3 * one], abs=2e-3
        )

    assert is_sound()
    monkeypatch.setattr(AboveThreshold, "_told_by_a_hit", lambda self, vector: 0)
    assert not is_sound()


def test_a_sparse_vector_for_the_population_ends_no_theorem() -> None:
    table = hf.open(numbers(20_000), SCHEMA, ledger=MemoryLedger())
    session = table.session(rho=5.0, queries=10)
    vector = session.sparse_vector(0.5, 3, epsilon=0.5)
    before, after = vector.compare("x < 10"), None
    assert (before.above, before.threshold) == (False, 0.5)
    assert before.within is not None and before.within < 0.06
    assert "not above 0.5, within" in str(before)
    assert session.estimate.fraction("x < 52").promise.left_out is not None
    for limit in range(9):
        session.fraction(f"x < {limit}", rho=0.05)
    after = vector.compare("x < 11")
    assert after.within is not None and after.within > 1.2 * before.within, "what others were told widens it"
    session.fraction("x < 60", epsilon=0.01, mechanism="laplace")
    assert vector.compare("x < 12") == Comparison(False, 0.5, None), "the theorem is at its end"
    assert told(table) == UNCOVERED


def test_older_versions_by_name_end_the_theorem_and_the_table_has_the_least_noise() -> None:
    table = hf.open(numbers(2_000), SCHEMA, ledger=MemoryLedger())
    about_table = table.session(rho=5.0, target="table").sparse_vector(0.5, 1, epsilon=0.5)
    assert about_table._vector.allocation.noise == "laplace"
    assert about_table.compare("x < 10").within is None
    table = hf.open(numbers(2_000), SCHEMA, ledger=MemoryLedger())
    named = table.session(rho=5.0).sparse_vector(0.5, 1, epsilon=0.5, version="best")
    assert told(table) == UNCOVERED and named.compare("x < 10").within is None
    pure = hf.open(numbers(2_000), SCHEMA, ledger=MemoryLedger())
    found = pure.session(epsilon=5.0).sparse_vector(0.5, 1, epsilon=0.5).compare("x < 10")
    assert told(pure) < UNCOVERED and found.within is not None


def test_a_call_of_logistic_noise_is_repeated_with_its_width(tmp_path: Path) -> None:
    saved = hf.open(numbers(5_000), SCHEMA, ledger=MemoryLedger()).save(tmp_path / "rows.hf")
    session = saved.session(rho=5.0, name="ann")
    first = session.sparse_vector(0.5, 2, epsilon=0.5).compare("x < 990", call="one")
    counted = told(saved)
    saved.close()
    again = hf.open(tmp_path / "rows.hf")
    vector = again.session(name="ann").sparse_vector(0.5, 2, epsilon=0.5)
    assert vector.compare("x < 990", call="one") == first and told(again) == counted
    vector.above("x < 10")
    assert told(again) == 2 * counted, "the hit of the earlier process is paid for now"
    again.close()


def test_what_is_said_of_the_population_is_true_of_it() -> None:
    """Rows of a known law, thresholds at its true values: an answer is wrong if the sample misled it by `within`.

    The twin claims a thirtieth of it.
    """
    draw, wrong, twin = np.random.default_rng(7), 0, 0
    for _ in range(15):
        table = hf.open({"x": draw.integers(0, 1000, 1_000)}, SCHEMA, ledger=MemoryLedger())
        vector = table.session(rho=50.0).sparse_vector(0.3, 20, epsilon=20.0)
        for limit in range(270, 330, 3):
            if vector.halted:
                break
            found, truth = vector.compare(f"x < {limit}"), limit / 1000
            assert found.within is not None
            short = (0.3 - truth) if found.above else (truth - 0.3)
            wrong, twin = wrong + (short > found.within), twin + (short > found.within / 30)
    assert wrong == 0 and twin > 2
