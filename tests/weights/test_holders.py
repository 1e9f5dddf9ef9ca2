"""Several holders of one name: a run tells one hit, questions are counted once, an opening stands."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.ledger import MemoryLedger
from holdfast.query.region import GRID, Region, factors, region
from holdfast.session.answer import Answer
from holdfast.session.session import Session
from holdfast.weights import answerer as multiplicative_weights
from holdfast.weights.answerer import MultiplicativeWeights

DRAW = np.random.default_rng(0)
DATA = {f"c{i}": DRAW.random(20_000) < p for i, p in enumerate([0.05, 0.95, 0.5, 0.5])}
NAMES = list(DATA)
FAR, NEAR = "c1", "c2"
"""Conditions that even weights get wrong by 0.45, and right."""


class TellsBelow(MultiplicativeWeights):
    """A twin that commits hits only."""

    def _compare(self, query: Region) -> Answer | None:
        guess = self.weights.fraction(query)
        gap = abs(self._total(query) - round(guess * self._session._terms.rows * GRID))
        if self._open_run().above(gap):
            self._run = None
            return super()._compare(query)
        return self._answer(query, guess, "below", 0.0)


class CountsAlone(MultiplicativeWeights):
    """A twin whose questions have keys of their own."""

    def _key(self, kind: str, number: int) -> str:
        return super()._key(kind, number) + (self._holder if kind == "question" else "")


def new_session() -> Session:
    schema = hf.Schema(**{name: hf.Boolean() for name in DATA})
    return hf.open(DATA, schema, ledger=MemoryLedger()).session(rho=500.0, target="table", queries=10**6)


def hold(
    session: Session, kind: type[MultiplicativeWeights] = MultiplicativeWeights, columns: Any = NAMES
) -> MultiplicativeWeights:
    return kind(session, columns, queries=64, within=0.1, nulls=[])


def paid_and_hit(session: Session) -> tuple[int, int]:
    entries = list(session._ledger.entries(session.name))
    notes = [json.loads(entry.plan).get("note", {}) for entry in entries]
    return sum(e.charge.session > 0 for e in entries), sum(note.get("above", 0) for note in notes)


def told_when_overtaken(kind: type[MultiplicativeWeights], where: str) -> bool:
    """Whether a comparison is told although another holder hits between its look and its commitment."""
    session = new_session()
    first, second = hold(session), hold(session, kind)
    look = second._total
    came: list[Answer] = []

    def total(query: Region) -> int:
        if not came:
            came.append(first.fraction("c0"))
        return look(query)

    second._total = total  # type: ignore[method-assign]
    told = second._compare(region(second.universe, where)) is not None
    assert first.updates == 1
    answer = second.fraction(where)
    assert abs(answer.value - DATA[where].mean()) <= second.within
    paid, hits = paid_and_hit(session)
    assert hits <= paid
    return told


def test_an_overtaken_comparison_is_forgotten_whatever_it_was() -> None:
    assert not told_when_overtaken(MultiplicativeWeights, FAR)
    assert not told_when_overtaken(MultiplicativeWeights, NEAR)
    assert told_when_overtaken(TellsBelow, NEAR) != told_when_overtaken(TellsBelow, FAR)


def what_is_seen(kind: type[MultiplicativeWeights], where: str, failing: str) -> str:
    """What an analyst sees of a question while the ledger refuses some keys."""
    session = new_session()
    weights = hold(session, kind)
    real = session._ledger.reserve

    def reserve(name: str, key: str, *rest: Any) -> Any:
        if failing in key:
            raise LedgerError("disk full")
        return real(name, key, *rest)

    session._ledger.reserve = reserve  # type: ignore[method-assign, assignment]
    try:
        for _ in range(3):
            with pytest.raises(LedgerError, match="disk full"):
                weights.fraction(where)
            weights = hold(session, kind)
    except pytest.fail.Exception:
        return "an answer"
    assert paid_and_hit(session) == (1, 0)
    session._ledger.reserve = real  # type: ignore[method-assign]
    assert abs(weights.fraction(where).value - DATA[where].mean()) <= weights.within
    assert paid_and_hit(session) == (1, weights.updates)
    return "an error"


def test_an_unwritable_ledger_tells_nothing() -> None:
    for failing in ("", " question "):
        assert what_is_seen(MultiplicativeWeights, FAR, failing) == "an error"
        assert what_is_seen(MultiplicativeWeights, NEAR, failing) == "an error"
    assert what_is_seen(TellsBelow, FAR, "") != what_is_seen(TellsBelow, NEAR, "")


def test_above_and_below_write_under_the_same_key() -> None:
    """So that no failure that depends on the key can tell them apart."""
    keys = []
    for where in (FAR, NEAR):
        session = new_session()
        assert hold(session).fraction(where)
        keys.append([entry.key for entry in session._ledger.entries(session.name)])
    assert keys[0] == keys[1]


@pytest.mark.parametrize("reopened", [False, True])
def test_a_hit_whose_answer_could_not_be_recorded_ends_its_run(reopened: bool) -> None:
    session = new_session()
    weights = hold(session)
    real = session._ledger.record

    def record(entry: int, answer: str, *, secret: bool = False, told: int | None = None) -> str:
        raise LedgerError("disk full")

    session._ledger.record = record  # type: ignore[method-assign]
    for where in (FAR, NEAR, "c0"):  # only the answer that was begun is tried again
        with pytest.raises(LedgerError, match="disk full"):
            weights.fraction(where)
        assert paid_and_hit(session) == (1, 1)
    session._ledger.record = real  # type: ignore[method-assign]
    again = hold(session) if reopened else weights
    assert "repeated" in again.fraction(FAR).explanation
    assert again.updates == 1
    again.fraction(NEAR)
    assert paid_and_hit(session)[0] == 2


def drained(weights: MultiplicativeWeights) -> int:
    """How many questions are compared before the refusal."""
    for count in range(200):
        weights._lazy.clear()
        try:
            weights.fraction(("c2", "c3", "NOT c2", "c2 AND c3")[count % 4])
        except BudgetError:
            return count
    raise AssertionError("no end of questions")


def test_questions_are_counted_for_all_holders_together() -> None:
    def compared(kind: type[MultiplicativeWeights]) -> int:
        session = new_session()
        holders = [hold(session, kind), hold(session, kind)]
        holders[0].fraction(NEAR)
        holders[1].fraction(NEAR)
        return 2 + sum(drained(weights) for weights in holders)

    assert compared(MultiplicativeWeights) == 64
    assert compared(CountsAlone) == 128


def test_the_opening_that_stands_is_compared_with_ones_own() -> None:
    """Both holders find the name free; one of them is quicker."""

    def second_opening(columns: list[str]) -> MultiplicativeWeights:
        session = new_session()
        first = hold(session, columns=["c0", "c1"])
        real, asked = session._ledger.find, []

        def find(name: str, key: str) -> Any:
            asked.append(key)
            return None if len(asked) == 1 else real(name, key)

        session._ledger.find = find  # type: ignore[method-assign, assignment]
        second = hold(session, columns=columns)
        assert second.terms == first.terms
        return second

    with pytest.raises(InputError, match="other terms"):
        second_opening(["c2", "c3"])
    assert second_opening(["c0", "c1"]).fraction("c0")


def test_a_product_of_many_numbers_is_wider_by_all_their_rounding() -> None:
    weights = hold(new_session())
    value = (GRID - 0.501) / GRID
    values = {name: [value, value] for name in NAMES}
    query = factors(weights.universe, values)
    assert query.steps is not None
    off = abs(Fraction(int(query.steps.flat[0]), GRID) - Fraction(value) ** 4)
    assert off > Fraction(1, GRID)  # one step, as it once was, is too little
    assert off <= Fraction(4, GRID)
    assert weights.product(values).noise == weights.within + 4 / GRID
    assert weights.fraction(NEAR).noise == weights.within


def open_while(session: Session, meanwhile: Any, monkeypatch: pytest.MonkeyPatch) -> MultiplicativeWeights:
    """Open weights; `meanwhile` happens each time between their plan and their charge."""
    real, under_way = multiplicative_weights.plan_weights, []

    def planned(*asked: Any, **how: Any) -> Any:
        terms = real(*asked, **how)
        if not under_way:
            under_way.append(True)
            meanwhile()
            under_way.clear()
        return terms

    with monkeypatch.context() as patch:
        patch.setattr(multiplicative_weights, "plan_weights", planned)
        return session.multiplicative_weights(["c0", "c1"], queries=100, rho=1.0, name="last")


def busy_session(target: str) -> Session:
    schema = hf.Schema(**{name: hf.Boolean() for name in DATA})
    return hf.open(DATA, schema, ledger=MemoryLedger()).session(rho=500.0, target=target)  # type: ignore[arg-type]


def widths(target: str, monkeypatch: pytest.MonkeyPatch, *, together: bool) -> list[float]:
    """What three weights certify, opened one after the other or all planned before any is charged."""
    session, found = busy_session(target), []

    def open_others() -> None:
        for name in ("first", "second")[len(found) :]:
            others = session.multiplicative_weights(["c0", "c1"], queries=100, rho=1.0, name=name)
            found.append(others.within)

    if not together:
        open_others()
    last = open_while(session, open_others, monkeypatch)
    return [*found, last.within]


def pay_whatever_happened(self: Session, *what: Any, last: int | None = None, **how: Any) -> Any:
    """The broken twin does not look who took the places meanwhile."""
    return real_pay(self, *what, last=None if last is None else 1 << 60, **how)


real_pay = Session.pay


@pytest.mark.parametrize("target", ["table", "population"])
def test_weights_planned_at_the_same_moment_share_the_promise(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = widths(target, monkeypatch, together=False)
    assert honest == sorted(set(honest))  # later places have smaller shares, so the widths grow

    def keeps_the_promise() -> bool:
        return all(w >= h for w, h in zip(widths(target, monkeypatch, together=True), honest, strict=True))

    assert keeps_the_promise()
    monkeypatch.setattr(Session, "pay", pay_whatever_happened)
    assert not keeps_the_promise()


def test_a_busy_table_does_not_keep_weights_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    session, plans = busy_session("table"), []

    def ask_others() -> None:
        plans.append(session._answered)
        for number in range(20):
            session.count("c0", rho=1e-6 * (1 + number + 20 * len(plans)))

    weights = open_while(session, ask_others, monkeypatch)
    assert 2 <= len(plans) <= 6
    place = session._answered - 100 + 1  # its first place; its plan was for that one or a later one
    assert place > plans[-1] + 1
    fresh = busy_session("table")
    assert weights.within > fresh.multiplicative_weights(["c0", "c1"], queries=100, rho=1.0).within


def test_openings_of_one_name_at_the_same_moment_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second plan differs, because the ledger moved; the opening that stands counts."""
    session, others = busy_session("table"), []

    def open_the_same() -> None:
        session.count("c0", rho=1e-6)
        others.append(session.multiplicative_weights(["c0", "c1"], queries=100, rho=1.0, name="last"))

    second = open_while(session, open_the_same, monkeypatch)
    assert [second.terms] == [other.terms for other in others]
    assert session._answered == 101
    with monkeypatch.context() as patch:  # a twin that compares the plans, and not what was asked for
        patch.setattr(Session, "pay", lambda *what, last=None, **how: real_pay(*what, **how))
        session = busy_session("table")
        with pytest.raises(InputError, match="other terms"):
            open_while(session, open_the_same, monkeypatch)
