"""What was charged, and for which answer.

A request is *reserved* (its charge is committed), then *answered* (its one answer is committed), then
delivered from what was committed. Nothing is ever refunded; a reservation without an answer is paid for and
may be resumed. Sessions, the command line and a server that share a table share one ledger.
"""

from holdfast.ledger.copy import copy_ledger
from holdfast.ledger.entry import ALWAYS, Account, Charge, Entry, Stale, Totals, While
from holdfast.ledger.memory import MemoryLedger
from holdfast.ledger.protocol import Ledger
from holdfast.ledger.sqlite import SqliteLedger

__all__ = [
    "ALWAYS",
    "Account",
    "Charge",
    "Entry",
    "Ledger",
    "MemoryLedger",
    "SqliteLedger",
    "Stale",
    "Totals",
    "While",
    "copy_ledger",
]
