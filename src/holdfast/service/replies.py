"""Replies: under which key they stand, and how plans, amounts and answers are written in them."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from holdfast.ledger import Entry
from holdfast.planning.budget import Amount
from holdfast.planning.plan import STATISTIC
from holdfast.service.answering import Released
from holdfast.service.catalog import Catalog, Person
from holdfast.service.problem import Problem
from holdfast.session import Answer, Plan
from holdfast.session.price import Price

_MEMBERS = 100


class Reply:
    """The reply to a call by its Idempotency-Key: `standing` if there is one, or a new one, kept before it is told.

    The key is taken for this request now, before anything is charged, and refused if another request has it. Whoever
    comes with the same request goes on with it: it may have been interrupted, and the ledger knows how far it came.
    """

    def __init__(self, catalog: Catalog, asker: Person, place: str, what: str, call: str | None) -> None:
        self._catalog, self._whose, self._call = catalog, (asker.id, place), call
        self._digest = hashlib.sha256(what.encode()).hexdigest()
        self.name = fresh_name() if call is None else call
        self.standing = None if call is None else self._claimed(call)

    def kept(self, body: str) -> str:
        """Keep a reply. Another of the same call may have been first: then that one."""
        if self._call is None:
            return body
        return self._catalog.keep_reply(*self._whose, self._call, self._digest, body)

    def _claimed(self, call: str) -> str | None:
        digest, body = self._catalog.claim(*self._whose, call, self._digest)
        if digest != self._digest:
            raise Problem("idempotency", "use a new Idempotency-Key for another question")
        return body or None


def fresh_name() -> str:
    """The name of a call that came without one."""
    return secrets.token_hex(16)


def mark_of(said: NDArray[Any]) -> str:
    """What stands for predictions where two requests are compared."""
    return f"{said.dtype} {hashlib.sha256(said.tobytes()).hexdigest()}"


def answers_in(entries: Iterable[Entry]) -> Iterator[str]:
    """The answers to statistics among reservations, as they were told."""
    return (entry.answer for entry in entries if entry.answer and entry.kind == STATISTIC)


def answer_mark(answer: Answer) -> str:
    """The name of an answer in links, the same however its groups are arranged. It opens nothing by itself."""
    return _mark(vars(answer))


def marked(texts: Iterable[str], mark: str) -> str | None:
    """The newest of some answers that has this name; None if there is none."""
    found = None
    for text in texts:
        if _mark(json.loads(text)) == mark:
            found = text
    return found


def _mark(parts: Mapping[str, Any]) -> str:
    told = [
        str(parts.get(name)) for name in ("question", "rho", "epsilon", "within", "mechanism", "rows_read")
    ]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:24]


def json_array(texts: Iterable[str]) -> Iterator[str]:
    """A JSON array, some hundred members at a time."""
    start, rest = "[", iter(texts)
    while some := list(islice(rest, _MEMBERS)):
        yield start + ",\n".join(some)
        start = ",\n"
    yield "[]" if start == "[" else "]"


def answers_of(plan: Plan | Price) -> int:
    """How many of the promised answers it uses up."""
    return plan.charge.queries if isinstance(plan, Plan) else plan.answers


def shown(plan: Plan | Price) -> dict[str, Any]:
    """A plan as JSON."""
    names = ["question", "mechanism", "cost", "explanation"]
    if isinstance(plan, Plan):
        names += ["rows_read", "rho", "epsilon", "width", "noise", "sampling", "population"]
        names += ["target", "confidence", "scope", "within", "qualifying"]
    return {name: _finite(getattr(plan, name)) for name in names} | {"answers": answers_of(plan)}


def _finite(value: Any) -> Any:
    """JSON has no infinity: a width without an end is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def amount(value: Amount) -> dict[str, float | None]:
    """An amount of budget in all the notions that apply."""
    return {"amount": float(value), "rho": value.rho, "epsilon": value.epsilon, "delta": value.delta}


def json_of(released: Released) -> str:
    """The bytes that leave. Answers are written as the ledger keeps them."""
    answers = released.get("answers", [])
    texts = ",".join(answer.to_json() for answer in answers)
    head = json.dumps({name: part for name, part in released.items() if name != "answers"})
    return f'{head[:-1]}, "answers": [{texts}]}}' if "answers" in released else head
