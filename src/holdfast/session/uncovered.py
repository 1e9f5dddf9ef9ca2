"""Releases that end the leave-out theorem for everybody: not while others rest on it, unless the owner allows it."""

from __future__ import annotations

import json

from holdfast.errors import BudgetError
from holdfast.ledger import UNCOVERED, Account, Charge, Ledger, Moment
from holdfast.planning.terms import Terms


def refuse_to_end(charge: Charge, moment: Moment, ledger: Ledger, name: str, terms: Terms) -> None:
    """BudgetError for a charge of session `name` that no theorem bounds, while another share on the table is open."""
    if charge.information < UNCOVERED or moment.table.information >= UNCOVERED or terms.allow_uncovered:
        return
    if terms.part == "rest":
        raise BudgetError(
            "expected a release that the leave-out theorem covers, got one that would end it on this table; ask it of "
            "the units that are set aside for such releases, table.aside.session(...), which at a gateway need a share "
            "of their own"
        )
    away = ledger.ended() | {name}
    if any(account.name not in away and _is_open(account, ledger) for account in ledger.accounts()):
        raise BudgetError(
            "expected a release that the leave-out theorem covers, because others on this table have shares that were "
            "planned by it, got one that would end it for them; ask without naming a mechanism or a version, have them "
            "closed if they are done (session.close()), or have the owner open the table with allow_uncovered=True"
        )


def _is_open(account: Account, ledger: Ledger) -> bool:
    """Whether a session that was planned by the theorem can still be answered."""
    terms = json.loads(account.terms or "{}")
    if terms.get("places") is None:
        return False
    totals, queries = ledger.totals(account.name), terms["queries"]
    return totals.units < account.limit and (queries is None or totals.answers < queries)
