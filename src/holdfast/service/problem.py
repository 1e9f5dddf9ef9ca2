"""Everything that can go wrong over HTTP: a closed list of codes, as application/problem+json (RFC 9457)."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from holdfast.errors import (
    BudgetError,
    DataError,
    HoldfastError,
    LedgerError,
    MechanismError,
    NoRuleError,
    QueryError,
)
from holdfast.service.catalog import Taken
from holdfast.service.logs import note_failure

CODES: dict[str, tuple[int, str]] = {
    "invalid": (422, "The request cannot be understood"),
    "question": (422, "The question is outside the language"),
    "mechanism": (422, "This session may not use that mechanism"),
    "idempotency": (422, "The key was used for another request"),
    "unauthorized": (401, "A valid token is needed"),
    "forbidden": (403, "This token may not do that"),
    "not-found": (404, "There is no such thing, or it is not yours to see"),
    "method": (405, "That cannot be done here"),
    "taken": (409, "The name or id is in use"),
    "confirm": (409, "The question costs much of what is left: ask again with confirm"),
    "budget": (402, "The budget would be overspent; nothing was charged"),
    "too-large": (413, "The request is too large"),
    "media": (415, "Send JSON"),
    "rate": (429, "Too many requests; wait"),
    "unavailable": (
        503,
        "It cannot be answered now; what was charged stays charged, and asking again resumes",
    ),
    "internal": (
        500,
        "A fault of the gateway; if something was charged, asking again is answered without a second charge",
    ),
}
"""Code, status and title. No code, and nothing beside it, depends on a row of a table."""


class Problem(Exception):
    """Refuse a request with one of CODES. `detail` is for the eyes of whoever asked; `more` are numbers."""

    def __init__(self, code: str, detail: str = "", **more: Any) -> None:
        self.code, self.detail, self.more = code, detail, more
        super().__init__(code)

    @property
    def status(self) -> int:
        return CODES[self.code][0]

    def body(self) -> dict[str, Any]:
        """The problem as JSON."""
        status, title = CODES[self.code]
        detail = {"detail": self.detail} if self.detail else {}
        return (
            {"type": f"about:blank#{self.code}", "title": title, "status": status, "code": self.code}
            | detail
            | self.more
        )


REFUSALS = (Problem, HoldfastError)


def problem_of(error: Problem | HoldfastError) -> Problem:
    """The problem that a refusal is: itself, or what an error of ours is over HTTP.

    Why something is not available is logged here, by kind and place. Words of our errors come from the question, the
    schema and the ledger; those of a source that fails are kept from the analyst, because a source's words may hold
    what it read.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, BudgetError):
        numbers = {"requested": error.requested, "remaining": error.remaining, "within": error.within}
        return Problem("budget", str(error), **{name: n for name, n in numbers.items() if n is not None})
    if isinstance(error, QueryError):
        place = {} if error.position is None else {"position": error.position}
        return Problem("question", str(error), **place)
    if isinstance(error, Taken):
        return Problem("taken", str(error))
    if isinstance(error, MechanismError | NoRuleError):
        return Problem("mechanism", str(error))
    if isinstance(error, DataError | LedgerError):
        note_failure(error, "unavailable")
        return Problem("unavailable")
    return Problem("invalid", str(error))


def unreadable(error: RequestValidationError | ValidationError) -> Problem:
    """Where a request is wrong, and how; not what was sent, which may be long."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return Problem("invalid", f"{place}: {first['msg']}")
