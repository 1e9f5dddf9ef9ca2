"""The answerer end to end: accuracy, the update bound against adversaries, charges, crashes and restarts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthesis.people import COLUMNS, EDGES, SCHEMA, binary, people

import holdfast as hf
from holdfast.desk import Paid
from holdfast.errors import BudgetError, InputError, QueryError
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.query.region import Region, region
from holdfast.query.universe import universe
from holdfast.session.session import Session
from holdfast.weights.answerer import MultiplicativeWeights
from holdfast.weights.array_module import array_module

pytestmark = pytest.mark.usefixtures("replayed_noise")
ROWS = 40_000
WIDE = 6
SCHEMA2, DATA = binary(ROWS, WIDE)
NAMES = list(SCHEMA2)


class NoBits:
    """A source of randomness that nobody may touch."""

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn")

    below = words = chunks = integers_below = _refuse


def open_weights(session: Session, **options: Any) -> MultiplicativeWeights:
    settings: dict[str, Any] = {"queries": 10_000, "within": 0.1} | options
    return MultiplicativeWeights(session, settings.pop("columns", NAMES), **settings)


def session_of(table: hf.Table, **options: Any) -> Session:
    return table.session(**{"rho": 500.0, "target": "table", "queries": 10**6} | options)


def conjunctions() -> list[tuple[str, np.ndarray[Any, Any]]]:
    """All conjunctions of up to three columns, with the rows that satisfy them."""
    from itertools import combinations, product

    found = []
    for size in (1, 2, 3):
        for names in combinations(NAMES, size):
            for signs in product((False, True), repeat=size):
                where = " AND ".join(n if s else f"NOT {n}" for n, s in zip(names, signs, strict=True))
                held = np.logical_and.reduce([DATA[n] == s for n, s in zip(names, signs, strict=True)])
                found.append((where, held))
    return found


QUESTIONS = conjunctions()
TRUTH = {where: float(held.mean()) for where, held in QUESTIONS}
REGIONS = {where: region(universe(SCHEMA2, NAMES), where) for where in TRUTH}


def worst_question(weights: MultiplicativeWeights) -> str:
    """What an adversary who knows the rows asks next: the largest gap that was not released yet."""
    gaps = {
        where: abs(truth - weights.weights.fraction(REGIONS[where]))
        for where, truth in TRUTH.items()
        if REGIONS[where].text not in weights._released
    }
    return max(gaps, key=lambda where: gaps[where])


def test_every_answer_is_within_its_promise_and_lazy_rounds_cost_nothing() -> None:
    session = session_of(hf.open(DATA, SCHEMA2))
    weights = open_weights(session)
    opened = float(session.spent)
    for where, truth in TRUTH.items():
        spent, updates = float(session.spent), weights.updates
        answer = weights.fraction(where)
        assert abs(answer.value - truth) <= weights.within
        assert answer.low <= truth <= answer.high
        if weights.updates == updates:
            paid = round((float(session.spent) - spent) / opened, 6)
            assert paid in (0, 1)  # the next run is paid when it is first used
    assert 0 < weights.updates <= weights.terms.updates
    runs = weights.updates + (weights._run is not None)
    assert float(session.spent) == pytest.approx(runs * opened)


@pytest.mark.parametrize("seed", range(3))
def test_an_adversary_never_needs_more_updates_than_the_bound(seed: int) -> None:
    with replayed(ReplayedBits(seed)):
        weights = open_weights(session_of(hf.open(DATA, SCHEMA2)), within=0.05)
        for _ in range(120):
            where = worst_question(weights)
            answer = weights.fraction(where)
            assert abs(answer.value - TRUTH[where]) <= weights.within
            assert weights.updates <= weights.terms.updates
            assert weights.potential >= -1e-9


def test_a_twin_that_does_not_learn_uses_up_its_updates_and_is_wrong_afterwards() -> None:
    class Stubborn(MultiplicativeWeights):
        def _update(self, query: Region, steps: int) -> None:
            before = self.weights.probabilities()[0].reshape(-1)
            super()._update(query, steps)
            self.weights._cells[:] = before
            self.weights._outside, self.weights._total = 1 - before.sum(), 1.0

    weights = Stubborn(session_of(hf.open(DATA, SCHEMA2)), NAMES, queries=10_000, within=0.25)
    wrong = 0
    for where in sorted(TRUTH, key=lambda w: -TRUTH[w]):
        answer = weights.fraction(where)
        wrong += abs(answer.value - TRUTH[where]) > weights.within
    assert weights.updates == weights.terms.updates or weights.settled
    assert wrong > 0


def test_settled_weights_answer_for_ever_without_the_rows() -> None:
    weights = open_weights(session_of(hf.open(DATA, SCHEMA2)), within=0.2)
    weights.potential = 2 * weights.within**2  # as after its last certified update
    assert weights.settled
    weights._secret = None  # type: ignore[assignment]  # the rows are gone
    asked = weights.asked
    assert all(0 <= weights.fraction(where).value <= 1 for where in list(TRUTH)[:50])
    assert weights.asked == asked


def test_numbers_between_0_and_1_are_answered_as_well() -> None:
    data = people(30_000)
    session = session_of(hf.open(data, SCHEMA))
    weights = open_weights(session, columns=COLUMNS, edges=EDGES)
    for power in (1, 2, 3):
        values = [(i / 4) ** power for i in range(5)]
        truth = float(((data["grade"] / 4) ** power).mean())
        answer = weights.product({"grade": values})
        assert abs(answer.value - truth) <= answer.noise
    scaled = weights.product({"grade": [0, 0, 0, 0, 1], "sick": [0, 1]})
    assert abs(scaled.value - float(((data["grade"] == 4) & data["sick"]).mean())) <= scaled.noise


def test_the_population_part_is_added_and_grows_with_what_others_spend() -> None:
    table = hf.open(DATA, SCHEMA2)
    session = session_of(table, target="population", queries=None)
    weights = open_weights(session, within=0.2, version="best")
    first = weights.fraction("c0")
    assert first.target == "population"
    assert first.population > 0
    assert first.high - first.value <= first.noise + first.population + 1e-12
    session.fraction("c1", rho=5.0)
    assert weights.fraction("c0").population > first.population


def test_the_lecture_and_the_textbook_versions_run_by_name() -> None:
    table = hf.open(DATA, SCHEMA2)
    pure = table.session(epsilon=9000.0, target="table", queries=10**6)
    book = open_weights(pure, within=None, epsilon=8000.0, version="textbook", queries=1000)
    slides = open_weights(
        session_of(table, rho=10**6), within=None, epsilon=400.0, delta=1e-6, version="lecture"
    )
    for weights in (book, slides):
        for where in list(TRUTH)[:40]:
            assert abs(weights.fraction(where).value - TRUTH[where]) <= weights.within
        assert weights.updates > 0
        assert not weights.settled
    with pytest.raises(InputError, match="epsilon= and delta="):
        open_weights(session_of(table), version="textbook")


def test_a_pure_session_has_laplace_answers() -> None:
    session = hf.open(DATA, SCHEMA2).session(epsilon=500.0, target="table", queries=10**5)
    weights = open_weights(session, within=None, epsilon=400.0)
    assert weights.terms.answer == "laplace"
    assert weights.terms.epsilon <= 400.0
    for where in list(TRUTH)[:60]:
        assert abs(weights.fraction(where).value - TRUTH[where]) <= weights.within


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    hf.open(DATA, SCHEMA2).save(tmp_path / "rows.hf")
    return tmp_path / "rows.hf"


def test_a_restart_goes_on_where_it_was_and_draws_nothing(saved: Path) -> None:
    weights = open_weights(session_of(hf.open(saved), name="analyst"), within=0.05)
    answers = {where: weights.fraction(where).value for where in list(TRUTH)[:80]}
    assert weights.updates > 2
    weights._open_run()  # a run is under way, its threshold drawn
    spent = float(weights._session.spent)
    with replayed(NoBits()):
        again = open_weights(session_of(hf.open(saved), name="analyst"), within=0.05)
        threshold = again._open_run().to_json()["secret"]["noisy_threshold"]
    assert again.updates == weights.updates
    assert again.potential == weights.potential
    assert np.array_equal(again.weights.probabilities()[0], weights.weights.probabilities()[0])
    assert threshold == weights._run.to_json()["secret"]["noisy_threshold"]  # type: ignore[union-attr]
    assert float(again._session.spent) == spent
    released = [w for w in answers if REGIONS[w].text in again._released]
    assert released
    assert all(again.fraction(w).value == answers[w] for w in released)
    assert again.asked >= weights.asked


def test_a_restart_leaves_questions_over(saved: Path) -> None:
    weights = open_weights(session_of(hf.open(saved), name="analyst"), queries=100)
    weights.fraction("c0")
    again = open_weights(session_of(hf.open(saved), name="analyst"), queries=100)
    assert again.asked == 1
    again.fraction("c1")


def test_rows_of_one_person_are_charged_as_a_group(saved: Path) -> None:
    table = hf.open(saved, rows_per_unit=3)
    session = session_of(table)
    weights = open_weights(session, within=None, rho=9.0)
    assert weights.terms.rho <= 1.0
    assert float(session.spent) * weights.terms.updates <= 9.0
    one = open_weights(session_of(hf.open(DATA, SCHEMA2)), within=None, rho=1.0)
    assert weights.within == pytest.approx(one.within)


def test_a_twin_that_forgets_its_threshold_is_caught_drawing(saved: Path) -> None:
    class Forgetful(MultiplicativeWeights):
        def _open_run(self) -> Any:
            from holdfast.mechanisms.sparse_vector import SparseVector

            return SparseVector(0, sensitivity=1, epsilon=1, hits=1)

    open_weights(session_of(hf.open(saved), name="analyst"))
    session = session_of(hf.open(saved), name="analyst")
    with replayed(NoBits()):
        twin = Forgetful(session, NAMES, queries=10_000, within=0.1)
        with pytest.raises(AssertionError, match="noise was drawn"):
            twin._open_run()


@pytest.mark.parametrize("crash_at", range(1, 9))
def test_a_crash_at_any_record_loses_at_most_an_answer(
    saved: Path, crash_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies when it is about to record something: after the charge, before the answer leaves."""
    session = session_of(hf.open(saved), name="analyst")
    calls = 0
    real = Paid.record

    def record(paid: Paid, outcome: str, *, secret: bool = False) -> str:
        nonlocal calls
        calls += 1
        if calls == crash_at:
            raise KeyboardInterrupt
        return real(paid, outcome, secret=secret)

    released: dict[str, float] = {}
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as crash:
        crash.setattr(Paid, "record", record)
        weights = open_weights(session, within=0.05)
        for where in TRUTH:
            before = weights.updates
            value = weights.fraction(where).value
            if weights.updates > before:
                released[where] = value
    spent = float(session.spent)
    again = open_weights(session_of(hf.open(saved), name="analyst"), within=0.05)
    assert float(again._session.spent) == spent
    assert again.updates in (len(released), len(released) + 1)
    for where, value in released.items():
        assert again.fraction(where).value == value
    for where in list(TRUTH)[:60]:
        assert abs(again.fraction(where).value - TRUTH[where]) <= again.within
    charged = {e.key for e in again._session._ledger.entries("analyst") if e.charge.session}
    assert len(charged) == again.updates + (again._run is not None)


def test_charges_come_before_noise() -> None:
    session = session_of(hf.open(DATA, SCHEMA2))
    order: list[str] = []
    pay = session.pay
    session.pay = lambda *a, **k: (order.append("charge"), pay(*a, **k))[1]  # type: ignore[method-assign]

    class Telling(ReplayedBits):
        def below(self, n: int) -> int:
            order.append("noise")
            return super().below(n)

        def words(self, count: int) -> Any:
            order.append("noise")
            return super().words(count)

    with replayed(Telling(1)):
        open_weights(session)
    assert order[0] == "charge"
    assert "noise" in order


@pytest.mark.parametrize(
    "bad",
    [
        {"queries": 0},
        {"queries": True},
        {"queries": 1.5},
        {"within": 0.0},
        {"within": 1.0},
        {"within": float("nan")},
        {"within": -0.1},
        {"within": None},
        {"within": 0.1, "rho": 1.0},
        {"version": "newest"},
        {"columns": []},
        {"device": "abacus"},
    ],
)
def test_bad_parameters_are_refused_before_anything_is_charged(bad: dict[str, Any]) -> None:
    session = session_of(hf.open(DATA, SCHEMA2))
    with pytest.raises((InputError, QueryError)):
        open_weights(session, **bad)
    assert float(session.spent) == 0


def test_what_cannot_be_paid_or_promised_is_refused() -> None:
    table = hf.open(DATA, SCHEMA2)
    with pytest.raises(BudgetError, match="updates may cost"):
        open_weights(session_of(table, rho=0.001))
    with pytest.raises(BudgetError, match="promised for 100 queries"):
        open_weights(session_of(table, queries=100))
    weights = open_weights(session_of(table), queries=3)
    for where in ("c0", "c1", "c2"):
        weights.fraction(where)
    weights.potential = 5.0
    with pytest.raises(BudgetError, match="3 questions"):
        for where in TRUTH:
            weights.fraction(where)
    with pytest.raises(InputError, match="other terms"):
        open_weights(weights._session, within=0.2)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=f"{library}: not installed"):
        array_module(library)


def test_the_array_layer_knows_its_dtypes() -> None:
    with pytest.raises(InputError, match="dtype"):
        array_module("numpy", "int8")
    assert array_module("numpy", "float32").ones(3).dtype == np.float32
