"""The desk: a charge is committed, and whoever paid it may look at rows. There is no other way to them."""

from __future__ import annotations

import uuid
from itertools import count
from typing import TYPE_CHECKING

from holdfast.desk.paid import Paid, RowAccess
from holdfast.desk.replayed import noted
from holdfast.desk.steps import Steps
from holdfast.ledger import Charge, Entry, Ledger, Precondition, Reserve

if TYPE_CHECKING:
    from holdfast.data.source import Source


class Desk:
    """The one holder of a session's rows, before the session's account in a ledger.

    Guarantee: a `Paid` is made here and nowhere else, from an entry that the ledger has committed.
    """

    def __init__(self, source: Source, ledger: Ledger, account: str) -> None:
        self._source, self._ledger, self._account = source, ledger, account
        self._keys = map(f"once {uuid.uuid4().hex} {{}}".format, count())

    def pay(self, key: str | None, plan: str, event: str, charge: Charge, holds: Precondition) -> Steps[Paid]:
        """Commit a charge: a step, so that many can be committed together. Without a key it is paid once, for ever.

        BudgetError before it would overspend; Stale if the plan holds no longer, or the key is taken.
        """
        return self._paid((yield self._reserve(key, plan, event, charge, holds)))

    def paid(self, key: str | None, plan: str, event: str, charge: Charge, holds: Precondition) -> Paid:
        """`pay`, at once and in this thread."""
        return self._paid(self._reserve(key, plan, event, charge, holds).put(self._ledger))

    def find(self, key: str) -> Paid | None:
        """What was paid under this key before; it goes on where it stopped."""
        entry = self._ledger.find(self._account, key)
        return None if entry is None else self._paid(entry)

    def for_the_owner(self) -> RowAccess:
        """The rows themselves, uncharged: for what is shown to their owner and to nobody else."""
        return RowAccess(self._source)

    def _reserve(
        self, key: str | None, plan: str, event: str, charge: Charge, holds: Precondition
    ) -> Reserve:
        """A charge. There is no other way to one, so that none can forget what it has to say."""
        return Reserve(self._account, key or next(self._keys), noted(plan), event, charge, holds)

    def _paid(self, entry: Entry) -> Paid:
        return Paid(entry, self._source, self._ledger)
