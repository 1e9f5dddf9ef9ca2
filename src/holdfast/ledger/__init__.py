"""What was charged, and for which answer.

A request is *reserved* (its charge is committed), then *answered* (its one answer is committed), then
delivered from what was committed. Nothing is ever refunded; a reservation without an answer is paid for and
may be resumed. Sessions, the command line and a server that share a table share one ledger. Its facts are
chained by SHA-256 and anchored outside (docs/ledger.md).
"""

from holdfast.ledger.audit import Verified, verify
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.commit import Commit, Outcome, Record, Reserve, Survey, Surveyed, outcome
from holdfast.ledger.division import ASIDE
from holdfast.ledger.entry import (
    ALWAYS,
    BEGINNING,
    LOOKS,
    QUESTION,
    UNCOVERED,
    Account,
    Charge,
    Entry,
    Moment,
    Precondition,
    Stale,
    Totals,
)
from holdfast.ledger.export import export, verify_export
from holdfast.ledger.memory import MemoryLedger
from holdfast.ledger.move import copy_ledger, move_ledger
from holdfast.ledger.open import LEDGER_FILE, acknowledge, open_ledger
from holdfast.ledger.postgres import PostgresLedger
from holdfast.ledger.protocol import Ledger
from holdfast.ledger.shares import given_away, most_of_all
from holdfast.ledger.sqlite import SqliteLedger

__all__ = [
    "ALWAYS",
    "ASIDE",
    "BEGINNING",
    "LEDGER_FILE",
    "LOOKS",
    "QUESTION",
    "UNCOVERED",
    "Account",
    "ChainedLedger",
    "Charge",
    "Commit",
    "Entry",
    "Ledger",
    "MemoryLedger",
    "Moment",
    "Outcome",
    "PostgresLedger",
    "Precondition",
    "Record",
    "Reserve",
    "SqliteLedger",
    "Stale",
    "Survey",
    "Surveyed",
    "Totals",
    "Verified",
    "acknowledge",
    "copy_ledger",
    "export",
    "given_away",
    "most_of_all",
    "move_ledger",
    "open_ledger",
    "outcome",
    "verify",
    "verify_export",
]
