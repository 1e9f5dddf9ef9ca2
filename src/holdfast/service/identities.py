"""By which name of a provider's or a proxy's somebody is known, and which signings-in are over."""

from __future__ import annotations

import string

from holdfast.check import printable
from holdfast.service.gateway_database import Database, Remembered

TABLES = (
    "CREATE TABLE IF NOT EXISTS identities (identity TEXT PRIMARY KEY, person TEXT NOT NULL UNIQUE REFERENCES people)",
    "CREATE TABLE IF NOT EXISTS entrances (digest TEXT PRIMARY KEY, used DOUBLE PRECISION NOT NULL)",
)
LONGEST = 255
_REMEMBERED_SECONDS = 86_400.0
"""For so long a signing-in that is over is known again. Codes and identity tokens of providers end long before."""
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def canonical(identity: str, kind: str) -> str:
    """An identity as it is compared. E-mails differ from each other whatever the case of A to Z in them; all other
    letters count as they are, since Unicode's own lower case makes some letters of others ('K' of the kelvin sign).
    Subjects count as they are."""
    text = printable("identity", identity, LONGEST).strip()
    return text.translate(_LOWER) if kind == "email" else text


class Identities:
    """A person has one identity at most, and an identity one person."""

    def __init__(self, database: Database | Remembered) -> None:
        self._database = database
        with database.write():
            for statement in TABLES:
                database.rows(statement)

    def person(self, identity: str) -> str | None:
        """The id of whoever has this identity."""
        rows = self._database.rows("SELECT person FROM identities WHERE identity = ?", identity)
        return str(rows[0][0]) if rows else None

    def of(self, person: str) -> str | None:
        """The identity of somebody."""
        rows = self._database.rows("SELECT identity FROM identities WHERE person = ?", person)
        return str(rows[0][0]) if rows else None

    def put(self, person: str, identity: str | None) -> bool:
        """Whether somebody has this identity now, or none: not if it is another's. Requires: a block of changes."""
        self._database.rows("DELETE FROM identities WHERE person = ?", person)
        added = "INSERT INTO identities VALUES (?, ?) ON CONFLICT (identity) DO NOTHING RETURNING person"
        return identity is None or bool(self._database.rows(added, identity, person))

    def first_use(self, digest: str, now: float) -> bool:
        """Whether a signing-in ends here for the first time.

        Guarantee: of several that come at once with the same digest, to whichever worker, one is the first.
        """
        with self._database.write():
            self._database.rows("DELETE FROM entrances WHERE used <= ?", now - _REMEMBERED_SECONDS)
            used = "INSERT INTO entrances VALUES (?, ?) ON CONFLICT (digest) DO NOTHING RETURNING digest"
            return bool(self._database.rows(used, digest, now))
