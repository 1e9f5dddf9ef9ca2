"""Units that are set aside when a table is opened: a fact of the table, which its ledger keeps."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from holdfast.check import probability
from holdfast.errors import InputError, LedgerError
from holdfast.ledger import ASIDE, Account, Ledger

if TYPE_CHECKING:
    from holdfast.data.part import Division
    from holdfast.data.source import Source


def _kept(ledger: Ledger) -> dict[str, Any] | None:
    standing = next((account for account in ledger.accounts() if account.name == ASIDE), None)
    return None if standing is None else json.loads(standing.terms)


def kept_aside(ledger: Ledger, rows: int) -> Division | None:
    """How the units of a table are divided, by what its ledger says; None if none are set aside.

    LedgerError for a ledger of other rows.
    """
    kept = _kept(ledger)
    if kept is None:
        return None
    from holdfast.data.part import Division

    if kept["rows"] != rows:
        raise LedgerError(
            f"expected the {kept['rows']:,} units of which some were set aside, got {rows:,}; open the data as they "
            "were, or with another ledger"
        )
    return Division(ledger.secret, rows, kept["aside"])


def part_of(source: Source, ledger: Ledger, part: str) -> Source:
    """The units of one part: all ("whole"), those set "aside", or the "rest".

    DataError if the units of a server's table lie in another order than when some were set aside.
    """
    division = kept_aside(ledger, source.rows) if part != "whole" else None
    if division is None:
        return source
    order = (_kept(ledger) or {}).get("order")
    if order is not None:
        bare: Any = getattr(source, "base", source)
        bare.keep_order(order)
    from holdfast.data.part import PartSource

    return PartSource(source, division, aside=part == "aside")


def how_many_aside(rows: int, share: object) -> int:
    """How many of so many units a share of them is; InputError for a share by which a part would have none."""
    part = probability("set_aside", share)
    aside = math.floor(part * rows * (1 + 2.0**-40))
    if not 0 < aside < rows:
        raise InputError(
            f"expected set_aside= such that both parts have units, got {part:g} of {rows:,}; give another share"
        )
    return aside


def keep_aside(ledger: Ledger, source: Source, share: object) -> None:
    """Have the ledger keep that this share of the units is set aside, and what their order rests on if it may change.

    InputError for another share than the one that stands, and for a table that was opened without and has sessions:
    these read all of its units. The ledger looks once more when it opens the account, so that nobody comes between.
    """
    rows = source.rows
    aside = how_many_aside(rows, share)
    if kept_aside(ledger, rows) is None:
        order = getattr(source, "order", None)
        kept = {"rows": rows, "aside": aside} | ({} if order is None else {"order": order})
        try:
            ledger.open(Account(ASIDE, "zcdp", 0, json.dumps(kept)))
        except LedgerError:
            if kept_aside(ledger, rows) is None:
                raise  # else another process was quicker, perhaps with the same share
    known = kept_aside(ledger, rows)
    if known is not None and known.aside != aside:
        raise InputError(
            f"expected set_aside={known.aside / rows:.4g} as when this table was first opened, got {share}; what is "
            "set aside cannot change, so leave it out"
        )


def answers_aside(ledger: Ledger) -> int:
    """How many answers were about the units that are set aside: these take none of the places of the rest."""
    terms = ((account.name, json.loads(account.terms or "{}")) for account in ledger.accounts())
    return sum(ledger.totals(name).answers for name, promised in terms if promised.get("part") == "aside")


def refuse_by_part(
    part: str, ledger: Ledger, rows: int, name: str | None, target: str | None, planned: bool
) -> None:
    """InputError for sessions that the units of this part cannot have; LedgerError if units were set aside since, which
    the ledger decides when it opens the account: here it is only said before anything is planned."""
    if name == ASIDE:
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
