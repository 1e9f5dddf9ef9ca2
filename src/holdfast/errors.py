"""Every error that Holdfast raises on purpose.

    HoldfastError
    ├── InputError        an argument is not what it must be
    ├── SchemaError       a declaration contradicts itself
    ├── QueryError        a question is outside the language; .text, .position
    │   └── UndiscoveredError  groups of a text column whose keys nobody knows; .column
    ├── DataError         rows cannot be read as declared
    │   └── StoreError    a saved store is broken, foreign or too new
    ├── BudgetError       the budget would be overspent; .requested, .remaining, .within
    ├── MechanismError    the session, or this process, may not use that mechanism
    ├── NoRuleError       no theorem covers this event in this notion of privacy
    ├── LedgerError       the record of charges cannot be read or written
    └── GatewayError      a gateway cannot be reached or does not let you in; .code, .status

    UserWarning
    └── ReopenedWarning   rows were opened again with a fresh count of what is charged

A message says what was expected, what came, and what to do. What came is a parameter, a name or a piece of
the question's text; it is never a value from the data.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Root of the tree. `str(error)` is "expected, got, hint" in plain words."""


class InputError(HoldfastError, ValueError):
    """An argument is not what it must be. The message names what is allowed; nothing was charged."""


class SchemaError(HoldfastError, ValueError):
    """A declaration contradicts itself. Correct the schema; the message names the column."""


class QueryError(HoldfastError, ValueError):
    """A question is outside the language; nothing was charged. The message offers what can be asked instead.

    `position` is the 0-based offset into `text`, if known.
    """

    def __init__(self, message: str, text: str | None = None, position: int | None = None) -> None:
        self.text = text
        self.position = position
        super().__init__(message + _pointer(text, position))


class UndiscoveredError(QueryError):
    """A question by the keys of a text column that were not discovered, or of which none was found (`tried`).

    Discover them with `session.keys(column)`; if none was found, no group is large enough for the budget.
    """

    def __init__(self, column: str, tried: bool = False) -> None:
        self.column, self.tried = column, tried
        found = (
            "of which no key was found; no group is large enough"
            if tried
            else "whose keys nobody has declared"
        )
        super().__init__(
            f"expected a column with known groups, got the text column {column!r}, {found}"
            + ("" if tried else f"; discover them: session.keys({column!r})")
        )


class DataError(HoldfastError):
    """Rows cannot be read as declared, or changed since they were opened.

    Compare them with the schema, and open them anew.
    """


class StoreError(DataError):
    """A saved store is broken, foreign, or of another format.

    Ingest it again from its source, or use the release that wrote it.
    """


class BudgetError(HoldfastError):
    """The request would overspend; nothing was charged. Ask less exactly, or have the owner raise the limit.

    `requested` and `remaining` are in the currency named by the message; `within` is the tightest
    half-width that is still affordable, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        requested: float | None = None,
        remaining: float | None = None,
        within: float | None = None,
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        self.within = within
        super().__init__(message)


class MechanismError(HoldfastError):
    """The session may not use that mechanism, or it was opened in another process; nothing was charged.

    The message names a mechanism that it may use; in a forked child, open the table there.
    """


class NoRuleError(HoldfastError):
    """No theorem covers this event in this notion of privacy; unknown means no. Choose another mechanism or budget."""


class LedgerError(HoldfastError):
    """The record of charges cannot be read or written. What was charged stays charged; asking again resumes.

    `holdfast ledger verify` says what is wrong, and docs/ledger.md what to do about an older copy.
    """


class GatewayError(HoldfastError):
    """A gateway cannot be reached, or does not let you in. Asking again never charges twice.

    `code` is the gateway's word for it ("unauthorized", "not-found", …) and `status` is HTTP's number; where no
    reply came they are "unreachable" and None.
    """

    def __init__(self, message: str, *, code: str = "unreachable", status: int | None = None) -> None:
        self.code = code
        self.status = status
        super().__init__(message)


class ReopenedWarning(UserWarning):
    """Rows were opened again in this process, with a fresh count of what is charged.

    Keep the table and its sessions, or name one ledger for all openings (`ledger=`).
    """


def _pointer(text: str | None, position: int | None) -> str:
    """Two lines that show the place: a window of the text, and a caret below it."""
    if text is None or position is None:
        return ""
    start, end = max(0, position - 30), min(len(text), position + 30)
    window = "".join(c if c.isprintable() else " " for c in text[start:end])
    head, tail = ("…" if start else ""), ("…" if end < len(text) else "")
    return f"\n  {head}{window}{tail}\n  {' ' * (len(head) + position - start)}^"
