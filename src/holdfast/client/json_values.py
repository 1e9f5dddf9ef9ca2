"""What was given, as JSON (numbers, texts and dates, also those of NumPy); what comes back, from JSON."""

from __future__ import annotations

import datetime
import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.planning.budget import Amount
from holdfast.session import Answer


def to_json(body: dict[str, Any]) -> bytes:
    """The body of a call. What was not given is left out."""
    try:
        given = {name: part for name, part in body.items() if part is not None}
        return json.dumps(given, default=_plain).encode()
    except (TypeError, ValueError):
        raise InputError("expected numbers, texts and dates, got something that cannot be sent") from None


def key_of(*parts: str) -> str:
    """A key for a call, which is the same for the same parts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def answer_of(parts: dict[str, Any], *, repeated: bool = False) -> Answer:
    """An answer from the JSON that a gateway sends."""
    return Answer.from_json(json.dumps(parts), repeated=repeated)


def answers_of(told: dict[str, Any]) -> list[Answer]:
    """The answers of a reply."""
    answers = told["answers"]
    repeated = told.get("repeated", [False] * len(answers))
    return [answer_of(parts, repeated=again) for parts, again in zip(answers, repeated, strict=True)]


def amount_of(parts: dict[str, Any]) -> Amount:
    """An amount of budget from the JSON that a gateway sends."""
    return Amount(parts["amount"], rho=parts["rho"], epsilon=parts["epsilon"], delta=parts["delta"])


def _plain(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.tolist()
    if isinstance(part, np.generic):
        return part.item()
    if isinstance(part, datetime.date | datetime.time):
        return part.isoformat()
    if isinstance(part, Fraction):
        return float(part)
    return list(part)
