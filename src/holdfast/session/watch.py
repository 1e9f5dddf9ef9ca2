"""The sparse vector over a session's rows: questions that stay below a threshold are free."""

from __future__ import annotations

import json
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.privacy.event import Nothing
from holdfast.query.measurement import Measurement
from holdfast.query.parse import parse_predicate
from holdfast.session.request import positive

if TYPE_CHECKING:
    from holdfast.session.session import Session


class Watch:
    """`above(where)`: is the fraction of rows that satisfy a condition above the threshold?

    Guarantee: all answers together cost what was charged at the opening, however many questions stay below.
    The noisy threshold is kept in the ledger (secret, beside the rows) before an answer leaves, so that a
    restart goes on with it and never draws it again.
    Reference: `holdfast.mechanisms.SparseVector`.
    """

    def __init__(self, session: Session, name: str, threshold: float, hits: int, **terms: Any) -> None:
        self._session, self._name, self._lock = session, name, Lock()
        self._rows = session._terms.rows
        level = positive("threshold", threshold)
        if level > 1:
            raise InputError(f"expected a threshold as a fraction of the rows, at most 1, got {threshold!r}")
        count = round(Fraction(level) * self._rows)
        fresh = SparseVector(count, sensitivity=1, hits=hits, **terms)
        entry = session.charge(f"sparse vector {name!r}", fresh.event, key=f"sparse vector {name}")
        state = json.loads(session.record(entry, json.dumps(fresh.to_json())))
        if state["terms"] != fresh.to_json()["terms"]:
            raise InputError(f"sparse vector {name!r} was opened on other terms; choose another name")
        self._vector = SparseVector.from_json(self._last() or state)
        self.threshold = level

    def above(self, where: str) -> bool:
        """Whether the fraction is about above the threshold. BudgetError once it has halted."""
        condition = parse_predicate(where, self._session._schema)
        with self._lock:
            if self._vector.halted:
                self._vector.above(0)  # raises, and says why
            key = f"sparse vector {self._name} {self._vector.asked}"
            entry = self._session.charge(f"above {self.threshold:g}: {condition}", Nothing(), key=key)
            value = int(self._session._source.totals(Measurement(self._session._schema, condition))[0])
            answer = self._vector.above(value)
            state = {"above": answer, "state": self._vector.to_json()}
            return bool(json.loads(self._session.record(entry, json.dumps(state)))["above"])

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
        """With the session's confidence, so many answers are all right but for this fraction of the rows."""
        return self._vector.half_width(questions, 1 - self._session.confidence) / self._rows

    def _last(self) -> dict[str, Any] | None:
        """The newest state on the ledger, if questions were answered before."""
        number, state = 0, None
        while True:
            entry = self._session._ledger.find(self._session.name, f"sparse vector {self._name} {number}")
            if entry is None or entry.answer is None:
                return state
            number, state = number + 1, json.loads(entry.answer)["state"]
