"""The sparse vector over a session's rows: questions that stay below a threshold are free."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from fractions import Fraction
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, get_args

from holdfast.check import one_of, positive, printable
from holdfast.errors import InputError
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.sparse_vector_terms import Version
from holdfast.planning.recipe_search import refuse_undrawable
from holdfast.privacy.event import Nothing
from holdfast.query.measurement import Measurement
from holdfast.query.parse import parse_predicate

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
    one_of("version", terms.get("version", "best"), get_args(Version))


class AboveThreshold:
    """`above(where)`: is the fraction of rows that satisfy a condition above the threshold?

    Guarantee: all answers together cost what was charged at the opening, however many questions stay below.
    The noisy threshold is kept in the ledger (secret, beside the rows) before an answer leaves, so that a
    restart goes on with it and never draws it again.
    Reference: `holdfast.mechanisms.SparseVector`.
    """

    def __init__(self, session: Session, name: str, threshold: float, hits: int, **terms: Any) -> None:
        self._session, self._name = session, printable("name", name)
        self._lock, self._holder = Lock(), uuid.uuid4().hex
        self._rows = session._terms.rows
        level, count = level_of(threshold, self._rows)
        fresh = SparseVector(count, sensitivity=1, hits=hits, **terms)
        refuse_undrawable(fresh.allocation.noise, fresh.allocation.question)
        self._paid = session.pay(
            "sparse vector", f"sparse vector {name!r}", fresh.event, key=self._key("opened")
        )
        state = json.loads(self._paid.outcome or self._paid.record(json.dumps(fresh.to_json()), secret=True))
        if state["terms"] != fresh.to_json()["terms"]:
            raise InputError(
                f"expected the terms that sparse vector {name!r} was opened on, got other terms; choose another name"
            )
        self._vector, self._number = SparseVector.from_json(state), 0
        self._calls: dict[str, tuple[str, bool]] = {}
        """What each call asked, as a digest, and what it was told."""
        self._catch_up()
        self.threshold = level

    def __repr__(self) -> str:
        return vector_text(self._name, self.threshold, self.asked, self.hits_left)

    def above(self, where: str, *, call: str | None = None) -> bool:
        """Whether the fraction is about above the threshold. BudgetError once it has halted.

        A `call` names this question: the same call, repeated after a crash, gets the same answer. InputError if
        it was made for another condition.
        """
        condition = parse_predicate(where, self._session.schema)
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
                turn = self._session.pay("sparse vector", words, Nothing(), key=key)
                if turn.outcome is not None:
                    continue  # another holder of this sparse vector was quicker
                value = int(self._paid.totals(Measurement(self._session.schema, condition))[0])
                answer = trial.above(value)
                told = json.dumps(
                    {
                        "by": self._holder,
                        "above": answer,
                        "call": call,
                        "asked": asked,
                        "state": trial.to_json(),
                    }
                )
                if turn.record(told, secret=True) == told:
                    self._catch_up()
                    return answer

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

    def _key(self, place: object) -> str:
        return json.dumps(["sparse vector", self._name, place])

    def _told(self, call: str, asked: str) -> bool:
        """What a call was told before."""
        condition, above = self._calls[call]
        if condition != asked:
            raise InputError(
                "expected the condition that this call was made for, got another condition; take a new call"
            )
        return above

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
                    self._calls[told["call"]] = told["asked"], told["above"]
                state, self._number = told["state"], self._number + 1
        finally:  # the state goes with the number, also when the ledger fails halfway
            if state is not None:
                self._vector = SparseVector.from_json(state)
