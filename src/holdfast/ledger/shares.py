"""Shares of a table's meter: how much an account may tell of the rows, so that nobody widens another's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.errors import BudgetError
from holdfast.ledger.entry import UNCOVERED, UNIT, Account, Totals

Told = Callable[[str], int]
"""What the account of a name has told so far."""


def given_away(shares: Iterable[Account], told_by: Told, told: int) -> int:
    """What everybody together may have told at most: each share its maximum, all others what they told."""
    if told >= UNCOVERED:
        return UNCOVERED
    by_shares = {share: told_by(share.name) for share in shares}
    most = sum(max(share.information, its_own) for share, its_own in by_shares.items())
    return min(UNCOVERED, most + told - sum(by_shares.values()))


def most_of_all(shares: Iterable[Account]) -> int:
    """What everybody together may tell for the plan of every share to hold."""
    return min((share.table_information for share in shares), default=UNCOVERED)


def check_share(account: Account, others: Sequence[Account], told_by: Told, told: int) -> None:
    """Refuse to open a share that would widen the plan of another, or whose own plan counts others at less than they
    may tell; `others` are the shares that stand."""
    after = given_away(others, told_by, told) + account.information
    if account.is_share and after > min(account.table_information, most_of_all(others)):
        raise BudgetError(
            "the meter of this table is shared out: one more share of this size would widen what was promised to "
            "others; open a smaller one",
            requested=account.information * UNIT,
            remaining=max(0, most_of_all(others) - given_away(others, told_by, told)) * UNIT,
        )


def check_told(
    account: Account, shares: Sequence[Account], told_by: Told, mine: Totals, before: int, tells: int
) -> None:
    """Refuse a charge that tells more than its account's share, or (without one) more than the shares of others leave.

    `mine` are the account's totals with it, `before` is what was told of the table without it, `tells` what it tells.
    """
    if not (shares or account.is_share):
        return
    if account.is_share:
        most, after = account.information, mine.information
    else:
        most, after = most_of_all(shares), given_away(shares, told_by, before) + tells
    if tells and before < UNCOVERED and after > most:
        whose = (
            "its share of the meter" if account.is_share else "what the shares of others leave of the meter"
        )
        raise BudgetError(
            f"this answer would tell more of the rows than {whose} allows: it tells {tells * UNIT:.4g}, and "
            f"{max(0, most - after + tells) * UNIT:.4g} is left; ask for a wider answer",
            requested=tells * UNIT,
            remaining=max(0, most - after + tells) * UNIT,
        )
