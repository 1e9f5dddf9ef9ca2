"""What was given, as JSON: numbers, texts and dates, also those of NumPy."""

from __future__ import annotations

import datetime
import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.errors import InputError


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


def _plain(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.tolist()
    if isinstance(part, np.generic):
        return part.item()
    if isinstance(part, datetime.date):
        return part.isoformat()
    if isinstance(part, Fraction):
        return float(part)
    return list(part)
