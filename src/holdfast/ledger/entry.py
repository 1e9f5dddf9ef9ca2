"""The facts that a ledger keeps."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import BudgetError, HoldfastError

UNIT = 1e-9
"""One unit of a charge: a billionth in the currency of its account."""


@dataclass(frozen=True, slots=True)
class Account:
    """A budget that charges are made against: a session's, or the whole table's.

    `currency` names the notion of privacy that the units count ("pure", "zcdp", "gdp"); `limit` is in units.
    """

    name: str
    currency: str
    limit: int


@dataclass(frozen=True, slots=True)
class Charge:
    """What one answer costs: in the session's own currency, and in the table's."""

    session: int
    table: int


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a session (or, with `table`, everyone) has been charged, and for how many answers."""

    answers: int
    units: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One reservation. `plan` is the JSON text that suffices to compute the answer once more; `answer` is
    the JSON text of the one answer, or None while it is paid for and not yet computed."""

    id: int
    session: str
    key: str
    plan: str
    event: str
    charge: Charge
    answer: str | None


class Stale(HoldfastError):
    """Another answer was reserved since this one was planned; plan again. Never reaches the user."""


def refuse_overspending(account: Account, spent: int, cost: int) -> None:
    """Raise BudgetError if `cost` more units would pass the account's limit.

    Guarantee: integers only, so no charge is lost to rounding and no slack is granted.
    """
    if spent + cost > account.limit:
        remaining = account.limit - spent
        raise BudgetError(
            f"this answer costs {cost * UNIT:.6g} and {account.name} has {remaining * UNIT:.6g} left "
            f"(in {account.currency}); ask for a wider answer or raise the limit",
            requested=cost * UNIT,
            remaining=remaining * UNIT,
        )
