"""A table of which units are set aside is asked in two parts, each by an id and on accounts of its own.

`people` is the rest, `people.aside` the units that are set aside. Both are charged to the one ledger of the table,
under its one cap (docs/theorems.md, Theorem 61).
"""

from __future__ import annotations

from holdfast.errors import InputError

ID = r"^[a-z0-9][a-z0-9_-]{0,63}$"
"""What a table or a board may be called."""
PART = r"^[a-z0-9][a-z0-9_-]{0,63}(\.aside)?$"
"""What can be asked: a table, or the units of it that are set aside."""
_ASIDE = ".aside"
_ACCOUNT = " aside"


def aside_of(table: str) -> str:
    """The id of the units of a table that are set aside."""
    return table + _ASIDE


def is_aside(key: str) -> bool:
    """Whether this is the id of units that are set aside."""
    return key.endswith(_ASIDE)


def table_of(key: str) -> str:
    """The table that a part belongs to; a table itself."""
    return key.removesuffix(_ASIDE)


def with_parts(key: str) -> tuple[str, ...]:
    """What of a table can be asked, if all of it is meant: itself and what is set aside; a part is itself."""
    return (key,) if is_aside(key) else (key, aside_of(key))


def account_of(key: str, person: str) -> str:
    """The account in the table's ledger of somebody who asks this part."""
    return person + _ACCOUNT if is_aside(key) else person


def called(account: str, names: dict[str, str]) -> str:
    """Whose account this is, by the names of people; the account itself if it is nobody's."""
    person = account.removesuffix(_ACCOUNT)
    return account if person not in names else names[person] + (", aside" if person != account else "")


def refuse_part(key: str) -> None:
    """InputError for what is about a whole table, and was asked of a part of it."""
    if is_aside(key):
        raise InputError(
            f"expected a table, got the units of one that are set aside, which have no cap and no end of their own; "
            f"give {table_of(key)!r}"
        )
