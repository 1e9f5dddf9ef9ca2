"""A table like a census, wider than any universe of cells: made here, so that the tests need no file."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

import holdfast as hf

WORK = ("private", "public", "self", "none")
START = datetime.date(2020, 1, 1)
SCHEMA = hf.Schema(
    age=hf.Integer(0, 99),
    work=hf.Category(*WORK),
    region=hf.Category(*(f"r{i}" for i in range(30))),
    married=hf.Boolean(),
    hours=hf.Integer(0, 99),
    gain=hf.Real(0.0, 1e5),
    since=hf.Date("2000-01-01", "2020-12-31"),
    rich=hf.Boolean(),
)


def census(rows: int, seed: int = 0) -> dict[str, Any]:
    """Columns that hang together, with spikes, skew and NULL in one in eight of the gains."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.gamma(6, 7, rows), 0, 99).astype(np.int64)
    work = np.where(age > 65, 3, draw.choice(4, rows, p=[0.6, 0.2, 0.15, 0.05]))
    hours = np.where(work == 3, 0, np.where(draw.random(rows) < 0.5, 40, draw.integers(10, 70, rows)))
    rich = draw.random(rows) < np.where(work == 3, 0.02, 0.1 + 0.004 * hours)
    gain = np.where(rich, draw.exponential(8000, rows), draw.exponential(500, rows)).clip(0, 1e5)
    gain[draw.random(rows) < 0.125] = np.nan
    return {
        "age": age,
        "work": np.array(WORK)[work],
        "region": np.array([f"r{i}" for i in np.minimum(draw.geometric(0.2, rows) - 1, 29)]),
        "married": draw.random(rows) < np.where(age > 25, 0.7, 0.1),
        "hours": hours,
        "gain": gain,
        "since": np.datetime64("2000-01-01") + draw.integers(0, 7600, rows),
        "rich": rich,
    }
