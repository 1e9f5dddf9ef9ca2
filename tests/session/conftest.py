from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger

SCHEMA = hf.Schema(
    age=hf.Integer(0, 99),
    income=hf.Real(-1_000.0, 9_000.0),
    smoker=hf.Category("no", "yes", "never asked"),
    insured=hf.Boolean(),
    visit=hf.Date("2020-01-01", "2020-12-31"),
)


def people(rows: int, seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    income = draw.normal(3_000, 2_000, rows)
    income[draw.random(rows) < 0.1] = np.nan
    return {
        "age": draw.integers(0, 100, rows),
        "income": income,
        "smoker": draw.choice(["no", "yes"], rows, p=[0.7, 0.3]),
        "insured": draw.random(rows) < 0.8,
        "visit": np.datetime64("2020-01-01") + draw.integers(0, 366, rows),
    }


@pytest.fixture(scope="session")
def data() -> dict[str, Any]:
    return people(20_000)


@pytest.fixture
def table(data: dict[str, Any]) -> hf.Table:
    return hf.open(data, SCHEMA)


@pytest.fixture
def make_table(data: dict[str, Any]) -> Callable[..., hf.Table]:
    """A table of its own each time: a fresh count, and meant."""
    return lambda **options: hf.open(data, SCHEMA, ledger=MemoryLedger(), **options)
