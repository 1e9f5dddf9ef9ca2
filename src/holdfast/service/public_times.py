"""A ledger whose answers are recorded at public times."""

from __future__ import annotations

from typing import Any

from holdfast.ledger import Ledger
from holdfast.service.clock import current


class PublicTimesLedger:
    """See `Ledger`. The same ledger, but an answer becomes visible at the time that its request's clock says.

    Otherwise the moment at which a list shows an answer would tell how long it took to compute. Nobody else waits for
    that time: a thread does in `record`, and `Work` in the event loop before it puts an answer among other commits.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def record(
        self,
        entry: int,
        answer: str,
        *,
        secret: bool = False,
        after: int | None = None,
        told: int | None = None,
    ) -> str:
        current().wait_to_record()
        return self._ledger.record(entry, answer, secret=secret, after=after, told=told)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)
