"""A ledger whose answers are recorded at public times."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from holdfast.ledger import Commit, Ledger, Outcome, Record
from holdfast.service.clock import current
from holdfast.service.together import Together


class PublicTimesLedger:
    """See `Ledger`. The same ledger, but an answer becomes visible at the time that its request's clock says.

    Otherwise the moment at which a list shows an answer would tell how long it took to compute. Nobody else waits for
    that time: a thread does in `record`, the event loop in `committed`.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._together = Together[tuple[Commit, Executor], Outcome](
            lambda asked: ledger.later([commit for commit, _ in asked], asked[0][1])
        )

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

    async def committed(self, commit: Commit, threads: Executor) -> Outcome:
        """What the ledger says to a commit; errors are outcomes too."""
        if isinstance(commit, Record):
            await current().until_record()
        return await self._together.put((commit, threads))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)
