"""The sparse vector over a session's rows: questions that stay below a threshold are free."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, get_args

from holdfast.check import one_of, positive, printable
from holdfast.errors import InputError
from holdfast.ledger import UNCOVERED
from holdfast.mechanisms.accuracy import laplace_reach
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.sparse_vector_terms import Version
from holdfast.planning.promise import own_share
from holdfast.planning.recipe_information import told_by, units_told
from holdfast.planning.recipe_search import refuse_undrawable
from holdfast.privacy.event import Nothing
from holdfast.privacy.rounding import down, miss, up
from holdfast.query.measurement import Measurement
from holdfast.query.parse import condition_of
from holdfast.query.predicate import Predicate
from holdfast.validity.leave_out import recorded_grid
from holdfast.validity.leave_out_tails import comparison_half_width
from holdfast.validity.told import comparison_told

if TYPE_CHECKING:
    from holdfast.session.session import Session


def vector_text(name: str, threshold: float, asked: int, hits_left: int) -> str:
    """A sparse vector in one line."""
    return f"sparse vector {name!r} at {threshold:g}: {asked} asked, {hits_left} more may be above"


def level_of(threshold: float, rows: int) -> tuple[float, int]:
    """A threshold as a fraction of the rows, and as a count."""
    level = positive("threshold", threshold)
    if level > 1:
        raise InputError(f"expected a threshold as a fraction of the rows, at most 1, got {threshold!r}")
    return level, round(Fraction(level) * rows)


def check_terms(name: str, threshold: float, terms: Mapping[str, Any]) -> None:
    """InputError for terms of another kind, before they are compared with those of an open sparse vector."""
    printable("name", name)
    level_of(threshold, 1)
    for budget in ("epsilon", "rho"):
        if terms.get(budget) is not None:
            positive(budget, terms[budget])
    if terms.get("version") is not None:
        one_of("version", terms["version"], get_args(Version))


def settled(terms: Mapping[str, Any], target: str) -> dict[str, Any]:
    """The terms with a version: for the population by logistic noise, which is on the meter of its theorem."""
    version = terms.get("version") or ("logistic" if target == "population" else "best")
    return {**terms, "version": version}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`above`, and up to what that is true of the population: its fraction is then at least threshold - `within`, and
    otherwise at most threshold + `within`. None where nothing is claimed of the population."""

    above: bool
    threshold: float
    within: float | None

    def __str__(self) -> str:
        side = "above" if self.above else "not above"
        if self.within is None:
            return f"{side} {self.threshold:g}, about; nothing is claimed of the population"
        return f"{side} {self.threshold:g}, within {self.within:.3g} of the population"


class AboveThreshold:
    """`above(where)`: is the fraction of rows that satisfy a condition above the threshold?

    Guarantee: all answers together cost what was charged at the opening, however many questions stay below.
    The noisy threshold is kept in the ledger (secret, beside the rows) before an answer leaves, so that a
    restart goes on with it and never draws it again.
    In a session for the population, where version is not named, the noise of the questions is logistic: with the
    session's confidence all answers are right about the population up to their `within`, whatever is asked, by
    whom; by itself, outside the joint promise of the session's intervals. Half of the chance of a miss is for the
    threshold, the rest for the questions, in epochs. What it tells is counted when it is due: before the first
    question, and before the first after each "above"; questions that stay below are free.
    Requires: for the population, independent rows.
    Reference: `holdfast.mechanisms.SparseVector`; docs/theorems.md, Theorem 32.
    """

    def __init__(self, session: Session, name: str, threshold: float, hits: int, **terms: Any) -> None:
        self._session, self._name = session, printable("name", name)
        self._lock, self._holder = Lock(), uuid.uuid4().hex
        self._rows = session._terms.rows
        level, count = level_of(threshold, self._rows)
        target = session._terms.target if session._terms.on_the_meter else "table"
        fresh = SparseVector(count, sensitivity=1, hits=hits, **settled(terms, target))
        refuse_undrawable(fresh.allocation.noise, fresh.allocation.question)
        self._tells = self._told_by_a_hit(fresh)
        self._moved = abs(count / self._rows - level)
        tells = None if self._tells is None else 0
        words = f"sparse vector {name!r}"
        self._paid = session.pay("sparse vector", words, fresh.event, key=self._key("opened"), tells=tells)
        state = json.loads(self._paid.outcome or self._paid.record(json.dumps(fresh.to_json()), secret=True))
        if state["terms"] != fresh.to_json()["terms"]:
            raise InputError(
                f"expected the terms that sparse vector {name!r} was opened on, got other terms; choose another name"
            )
        self._vector, self._number, self._due = SparseVector.from_json(state), 0, True
        self._calls: dict[str, tuple[str, Comparison]] = {}
        """What each call asked, as a digest, and what it was told."""
        self.threshold = level
        self._catch_up()

    def __repr__(self) -> str:
        return vector_text(self._name, self.threshold, self.asked, self.hits_left)

    def above(self, where: str | Predicate, *, call: str | None = None) -> bool:
        """Whether the fraction is about above the threshold; see `compare`."""
        return self.compare(where, call=call).above

    def compare(self, where: str | Predicate, *, call: str | None = None) -> Comparison:
        """Whether the fraction is about above the threshold, and within what. BudgetError once it has halted.

        A `call` names this question: the same call, repeated after a crash, gets the same answer. InputError if
        it was made for another condition.
        """
        condition = condition_of(where, self._session.schema)
        asked = blake2b(str(condition).encode(), digest_size=16).hexdigest()
        with self._lock:
            while True:
                self._catch_up()
                if call is not None and call in self._calls:
                    return self._told(call, asked)
                if self._vector.halted:
                    self._vector.above(0)  # raises, and says why
                key, trial = self._key(self._number), SparseVector.from_json(self._vector.to_json())
                words = f"above {self.threshold:g}: {condition}"
                tells = self._tells if self._due else None
                turn = self._session.pay("sparse vector", words, Nothing(), key=key, tells=tells)
                if turn.outcome is not None:
                    continue  # another holder of this sparse vector was quicker
                within = self._within(trial.asked + 1)
                value = int(self._paid.totals(Measurement(self._session.schema, condition))[0])
                answer = trial.above(value)
                told = json.dumps(
                    {
                        "by": self._holder,
                        "above": answer,
                        "within": within,
                        "call": call,
                        "asked": asked,
                        "state": trial.to_json(),
                    }
                )
                if turn.record(told, secret=True) == told:
                    self._catch_up()
                    return Comparison(answer, self.threshold, within)

    @property
    def halted(self) -> bool:
        """Whether all hits are used up."""
        return self._vector.halted

    @property
    def hits_left(self) -> int:
        """How many more questions may be answered with "above"."""
        return self._vector.hits_left

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self._vector.asked

    def half_width(self, questions: int) -> float:
        """With the session's confidence, so many answers are all right but for this fraction of the rows.

        It speaks of the table, and by itself: it spends the whole chance of a miss, and stands outside the
        joint promise of the session's intervals.
        """
        return self._vector.half_width(questions, 1 - self._session.confidence) / self._rows

    def _told_by_a_hit(self, vector: SparseVector) -> int | None:
        """What one answer "above" tells, in the ledger's units; None where no theorem bounds it."""
        if vector.allocation.noise != "logistic":
            return None
        return units_told(
            comparison_told(self._rows, up(self._rows / float(vector.allocation.question))), self._rows
        )

    def _within(self, place: int) -> float | None:
        """Up to what the answer to the question in this place will be true of the population.

        The question is chosen already, so that it can depend on nothing that is charged from now on.
        """
        terms, allocation = self._session._terms, self._vector.allocation
        told = self._session._moment().table.information
        covered = self._tells is not None and self._rows > 1 and terms.on_the_meter
        if not covered or terms.target != "population" or told >= UNCOVERED:
            return None
        beta = miss(terms.confidence) / 2
        thresholds = self._vector.terms.hits if allocation.redraw else 1
        secret = laplace_reach(allocation.threshold, beta / thresholds, False) / self._rows
        rate = down(self._rows / float(allocation.question))
        tau = _half_width(self._rows, told, rate, beta * own_share(place))
        within = up(tau + secret + self._moved)
        return within if within < 1 else None

    def _key(self, place: object) -> str:
        return json.dumps(["sparse vector", self._name, place])

    def _told(self, call: str, asked: str) -> Comparison:
        """What a call was told before."""
        condition, told = self._calls[call]
        if condition != asked:
            raise InputError(
                "expected the condition that this call was made for, got another condition; take a new call"
            )
        return told

    def catch_up(self) -> None:
        """Take over what was answered since, by others too."""
        with self._lock:
            self._catch_up()

    def _catch_up(self) -> None:
        """Take over what other holders of this sparse vector, or an earlier process, have answered.

        Only what stands in the ledger counts: an answer that did not become the record is never told.
        """
        state, find = None, self._session._desk.find
        try:
            while (turn := find(self._key(self._number))) is not None and turn.outcome:
                told = json.loads(turn.outcome)
                if told["call"] is not None:
                    answer = Comparison(told["above"], self.threshold, told["within"])
                    self._calls[told["call"]] = told["asked"], answer
                state, self._number, self._due = told["state"], self._number + 1, told["above"]
        finally:  # the state goes with the number, also when the ledger fails halfway
            if state is not None:
                self._vector = SparseVector.from_json(state)


@lru_cache(maxsize=1024)
def _half_width(rows: int, told: int, rate: float, beta: float) -> float:
    """Of one comparison, after so many of the ledger's units were told; by the mixture over the recorded grid."""
    grid = recorded_grid(rows)
    return comparison_half_width(grid, grid.charges(told_by(told, rows)), rate, beta)
