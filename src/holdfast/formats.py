"""The formats that Holdfast writes: each says its version, and one of another version is refused before a change."""

from __future__ import annotations

from holdfast.errors import HoldfastError, LedgerError

FORMATS = {
    "store": 1,
    "ledger": 1,
    "ledger's export": 1,
    "ledger's anchor": 1,
    "gateway's catalog": 1,
    "gateway's replies": 1,
    "holdout's note": 1,
}
"""Their versions, by what is written so."""


def check_format(kind: str, found: object, place: object, error: type[HoldfastError] = LedgerError) -> None:
    """Raise `error` unless the version `found` is the one that is written today."""
    if type(found) is not int or found != FORMATS[kind]:
        got = f"version {found}" if type(found) is int else "none"
        raise error(
            f"expected a {kind} of version {FORMATS[kind]}, got {got} in {place}; use the Holdfast that wrote it"
        )
