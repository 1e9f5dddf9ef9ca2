"""The multiplicative weights of a session on a gateway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.client.json_values import answers_of
from holdfast.planning.keywords import Many
from holdfast.planning.question import OpenWeights, Weigh
from holdfast.query.universe import universe
from holdfast.session import Answer

if TYPE_CHECKING:
    from holdfast.client.session import RemoteSession


class RemoteWeights:
    """`fraction(where)`, any number of times up to `queries`; only updates are paid for.

    See `holdfast.weights.answerer.MultiplicativeWeights`, which stands at the gateway. Products and
    synthetic rows are not offered over a gateway.
    """

    def __init__(
        self, session: RemoteSession, columns: Sequence[str], queries: int, **how: Unpack[Many]
    ) -> None:
        self._session = session
        self._terms: dict[str, Any] = {"columns": columns, "queries": queries, **how}
        self.universe = universe(session.schema, columns, how.get("edges"), nulls=how.get("nulls"))
        self.queries = int(queries)
        self.within = float(self._opened()["within"])

    def __repr__(self) -> str:
        from holdfast.weights.answerer import weights_text

        return weights_text(self._terms.get("name", "weights"), self.universe, self.queries, self.within)

    @property
    def asked(self) -> int:
        """How many questions were compared with the rows, by all holders of the name together."""
        return int(self._opened()["asked"])

    @property
    def updates(self) -> int:
        """How many updates happened."""
        return int(self._opened()["updates"])

    @property
    def updates_left(self) -> int:
        """How many more may happen."""
        return int(self._opened()["updates_left"])

    def fraction(self, where: str) -> Answer:
        """The fraction of all rows that satisfy the condition; those outside the universe satisfy none."""
        return answers_of(self._session._ask(Weigh(where=where, **self._terms)))[0]

    def _opened(self) -> dict[str, Any]:
        """Open, or come back; where they stand."""
        return self._session._ask(OpenWeights(**self._terms))
