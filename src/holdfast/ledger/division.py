"""Units that are set aside: which accounts may stand beside the one that says so."""

from __future__ import annotations

import json

from holdfast.errors import InputError, LedgerError
from holdfast.ledger.entry import LOOKS, LOST, Account

ASIDE = "units set aside"
"""Under this name stands how many there are; nothing is ever charged to it."""


def check_part(account: Account, divided: bool, others: bool) -> None:
    """Refuse to open an account for the first time that does not fit those that stand: to set units aside after others
    were opened, which are about all units; or, where units are set aside (`divided`), one about all of them.

    Guarantee: a ledger asks it in the transaction that opens the account, so that of two processes one is refused
    (docs/theorems.md, Theorem 61).
    """
    if account.name == ASIDE:
        if others:
            raise InputError(
                "expected set_aside= when the table is first opened, got it after sessions were opened on all of its "
                "units; leave it out, or start with another ledger and other rows"
            )
    elif divided and account.name != LOST and account.currency != LOOKS and not _part(account):
        raise LedgerError("units of this table were set aside since it was opened; open it again")


def _part(account: Account) -> object:
    return json.loads(account.terms or "{}").get("part")
