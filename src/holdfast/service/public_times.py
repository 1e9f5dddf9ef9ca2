"""A ledger whose answers are recorded at public times, and of which no session fills more than its part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.ledger import ALWAYS, Charge, Commit, Entry, Ledger, Outcome, Precondition, Reserve
from holdfast.service.clock import current


class PublicTimesLedger:
    """See `Ledger`. The same ledger, but an answer becomes visible at the time that its request's clock says.

    Otherwise the moment at which a list shows an answer would tell how long it took to compute. Nobody else waits for
    that time: a thread does in `record`, and `Work` in the event loop before it puts an answer among other commits.

    Guarantee: no session makes a reservation beyond its first `most_entries`: each is counted in the transaction that
    would commit it, however many ask at the same moment. What was reserved before is found as ever.
    """

    def __init__(self, ledger: Ledger, most_entries: int | None = None) -> None:
        self._ledger, self._most = ledger, most_entries
        self._last = ALWAYS, replace(ALWAYS, most_entries=most_entries)
        """What was asked to hold last, and with the number of entries: questions of one kind have the same."""

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: Precondition = ALWAYS
    ) -> Entry:
        return self._ledger.reserve(session, key, plan, event, charge, self._capped(holds))

    def commit_all(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._ledger.commit_all(
            [
                replace(commit, holds=self._capped(commit.holds)) if isinstance(commit, Reserve) else commit
                for commit in commits
            ]
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

    def _capped(self, holds: Precondition) -> Precondition:
        last, capped = self._last
        if holds is not last:
            capped = replace(holds, most_entries=self._most)
            self._last = holds, capped
        return capped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)
