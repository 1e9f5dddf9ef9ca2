"""A gateway's refusals (application/problem+json) as the errors that a session in process would raise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.errors import (
    BudgetError,
    GatewayError,
    HoldfastError,
    InputError,
    LedgerError,
    MechanismError,
    QueryError,
)


def refusal(status: int, body: bytes) -> HoldfastError:
    """The error that a reply is."""
    try:
        problem = json.loads(body)
        code, words = problem["code"], problem.get("detail") or problem["title"]
    except (ValueError, KeyError, TypeError):
        return GatewayError(
            f"expected a gateway's reply, got status {status} without its reason; is the address right?",
            code="unknown",
            status=status,
        )
    known = _ERRORS.get(code)
    if known is not None:
        return known(words, problem)
    return GatewayError(f"{words}{_ADVICE.get(code, '')}", code=code, status=status)


def _budget(words: str, problem: dict[str, Any]) -> BudgetError:
    numbers = {name: problem.get(name) for name in ("requested", "remaining", "within")}
    return BudgetError(words, **numbers)


def _unconfirmed(words: str, problem: dict[str, Any]) -> BudgetError:
    advice = "; a session opened with confirm=True agrees to such costs. Nothing was charged"
    return BudgetError(words + advice, requested=problem.get("cost"), remaining=problem.get("remaining"))


def _question(words: str, problem: dict[str, Any]) -> QueryError:
    error = QueryError(words)  # the words show the place already
    error.position = problem.get("position")
    return error


_ERRORS: dict[str, Callable[[str, dict[str, Any]], HoldfastError]] = {
    "budget": _budget,
    "confirm": _unconfirmed,
    "question": _question,
    "mechanism": lambda words, _: MechanismError(words),
    "unavailable": lambda words, _: LedgerError(words),
    **dict.fromkeys(
        ("invalid", "idempotency", "taken", "too-large", "media"), lambda words, _: InputError(words)
    ),
}
_ADVICE = {
    "unauthorized": "; the token is unknown, has ended or was revoked: ask the gateway's owner for another",
    "not-found": "; look at what connection.tables shows, or ask the owner to admit you",
    "rate": "; the gateway asks for fewer requests",
}
