"""A ledger whose answers are recorded at public times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.service.clock import wait_to_record

if TYPE_CHECKING:
    from holdfast.ledger.chained import ChainedLedger


class PublicTimesLedger:
    """See `Ledger`. The same ledger, but an answer becomes visible at the time that its request's clock says.

    Otherwise the moment at which a list shows an answer would tell how long it took to compute.
    """

    def __init__(self, ledger: ChainedLedger) -> None:
        self._ledger = ledger

    def record(self, entry: int, answer: str, *, secret: bool = False, after: int | None = None) -> str:
        wait_to_record()
        return self._ledger.record(entry, answer, secret=secret, after=after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)
