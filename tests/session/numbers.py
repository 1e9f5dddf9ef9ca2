"""A table of one column of numbers, and whether a question was refused too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.session.session import Session


def open_rows(values: Any) -> hf.Table:
    """Rows of `x` in 0..1023."""
    return hf.open({"x": np.asarray(values)}, hf.Schema(x=hf.Integer(0, 1023)))


def charged_and_refused(session: Session, ask: Callable[[Session], Any]) -> bool:
    """Whether a question was refused after its charge."""
    try:
        ask(session)
    except hf.HoldfastError:
        return session._ledger.totals(session.name).entries > 0
    return False
