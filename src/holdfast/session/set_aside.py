"""Units that are set aside when a table is opened: a fact of the table, which its ledger keeps."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from holdfast.check import probability
from holdfast.errors import InputError, LedgerError
from holdfast.ledger import Account, Ledger

if TYPE_CHECKING:
    from holdfast.data.part import Division
    from holdfast.data.source import Source

ACCOUNT = "units set aside"
"""Under this name stands how many there are; nothing is ever charged to it."""


def kept_aside(ledger: Ledger, rows: int) -> Division | None:
    """How the units of a table are divided, by what its ledger says; None if none are set aside.

    LedgerError for a ledger of other rows.
    """
    standing = next((account for account in ledger.accounts() if account.name == ACCOUNT), None)
    if standing is None:
        return None
    from holdfast.data.part import Division

    kept = json.loads(standing.terms)
    if kept["rows"] != rows:
        raise LedgerError(
            f"expected the {kept['rows']:,} units of which some were set aside, got {rows:,}; open the data as they "
            "were, or with another ledger"
        )
    return Division(ledger.secret, rows, kept["aside"])


def part_of(source: Source, ledger: Ledger, part: str) -> Source:
    """The units of one part: all ("whole"), those set "aside", or the "rest"."""
    division = kept_aside(ledger, source.rows) if part != "whole" else None
    if division is None:
        return source
    from holdfast.data.part import PartSource

    return PartSource(source, division, aside=part == "aside")


def keep_aside(ledger: Ledger, rows: int, share: object) -> None:
    """Have the ledger keep that this share of the units is set aside. InputError for another share than the one that
    stands, and for a table that was opened without and has sessions: these read all of its units."""
    part = probability("set_aside", share)
    aside = math.floor(part * rows * (1 + 2.0**-40))
    if not 0 < aside < rows:
        raise InputError(
            f"expected set_aside= such that both parts have units, got {part:g} of {rows:,}; give another share"
        )
    known = kept_aside(ledger, rows)
    if known is not None and known.aside != aside:
        raise InputError(
            f"expected set_aside={known.aside / rows:.4g} as when this table was first opened, got {part:g}; what is "
            "set aside cannot change, so leave it out"
        )
    if known is None and any(True for _ in ledger.accounts()):
        raise InputError(
            "expected set_aside= when the table is first opened, got it after sessions were opened on all of its "
            "units; leave it out, or start with another ledger and other rows"
        )
    if known is None:
        ledger.open(Account(ACCOUNT, "zcdp", 0, json.dumps({"rows": rows, "aside": aside})))


def refuse_by_part(
    part: str, ledger: Ledger, rows: int, name: str | None, target: str | None, planned: bool
) -> None:
    """InputError for sessions that the units of this part cannot have; LedgerError if units were set aside since."""
    if name == ACCOUNT:
        raise InputError(
            f"expected a name for a session, got {name!r}, which the ledger uses; choose another"
        )
    if part == "aside" and (target == "table" or planned):
        raise InputError(
            'cannot open: on the units that are set aside target="table", within=, intervals= and share= mean '
            "nothing; leave them out, or open the session on the table itself"
        )
    if (kept_aside(ledger, rows) is None) != (part == "whole"):
        raise LedgerError("units of this table were set aside since it was opened; open it again")
