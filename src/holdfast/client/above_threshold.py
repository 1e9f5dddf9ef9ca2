"""The sparse vector of a session on a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client.json_values import key_of
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.planning.question import Above, OpenSparseVector
from holdfast.query.parse import parse_predicate
from holdfast.session.above_threshold import Comparison, check_terms, level_of, settled, vector_text

if TYPE_CHECKING:
    from holdfast.client.session import RemoteSession


class RemoteAboveThreshold:
    """`above(where)`: is the fraction of rows that satisfy a condition above the threshold?

    See `holdfast.session.above_threshold.AboveThreshold`, which stands at the gateway. `halted`, `hits_left` and
    `asked` are as of the last call of this object.
    """

    def __init__(self, session: RemoteSession, name: str, threshold: float, hits: int, **terms: Any) -> None:
        check_terms(name, threshold, terms)
        self._session, self._rows = session, session._table.rows
        self.threshold, count = level_of(threshold, self._rows)
        # The terms alone count here; the noisy threshold is drawn at the gateway.
        table = session._table
        target = table.target if table.rows_per_unit == 1 and table.part != "aside" else "table"
        self._widths = SparseVector(count, sensitivity=1, hits=hits, **settled(terms, target))
        self._terms: dict[str, Any] = {"name": name, "threshold": self.threshold, "hits": hits, **terms}
        self._state = session._ask(OpenSparseVector(**self._terms))

    def __repr__(self) -> str:
        return vector_text(str(self._terms["name"]), self.threshold, self.asked, self.hits_left)

    def above(self, where: str, *, call: str | None = None) -> bool:
        """Whether the fraction is about above the threshold; see `compare`."""
        return self.compare(where, call=call).above

    def compare(self, where: str, *, call: str | None = None) -> Comparison:
        """Whether the fraction is about above the threshold, and within what. BudgetError once it has halted.

        A `call` names this question: the same call, repeated later, gets the same answer.
        """
        parse_predicate(where, self._session.schema)
        key = None if call is None else key_of("above", call)
        self._state = self._session._ask(Above(where=where, **self._terms), key)
        return Comparison(bool(self._state["above"]), self.threshold, self._state["within"])

    @property
    def halted(self) -> bool:
        """Whether no further question is answered."""
        return bool(self._state["halted"])

    @property
    def hits_left(self) -> int:
        """How many more questions may be answered with "above"."""
        return int(self._state["hits_left"])

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return int(self._state["asked"])

    def half_width(self, questions: int) -> float:
        """With the session's confidence, so many answers are all right but for this fraction of the rows.

        About the table, by itself, outside the joint promise of the session's intervals; see `AboveThreshold`.
        """
        return self._widths.half_width(questions, 1 - self._session.confidence) / self._rows
