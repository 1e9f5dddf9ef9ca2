"""Small tables for the tests of weights and synthetic data."""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast as hf

SCHEMA = hf.Schema(
    sick=hf.Boolean(),
    group=hf.Category("x", "y", "z"),
    grade=hf.Integer(0, 4),
    level=hf.Integer(0, 6),
    share=hf.Real(0.0, 1.0),
)
COLUMNS = list(SCHEMA)
EDGES = {"share": [0.0, 0.25, 0.5, 1.0]}


def people(rows: int, seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    grade = draw.integers(0, 5, rows)
    sick = draw.random(rows) < 0.1 + 0.15 * grade
    return {
        "sick": sick,
        "group": np.where(sick, "x", draw.choice(["x", "y", "z"], rows)),
        "grade": grade,
        "level": np.minimum(grade + draw.integers(0, 3, rows), 6),
        "share": draw.random(rows) ** 2,
    }


def binary(rows: int, columns: int, seed: int = 0) -> tuple[hf.Schema, dict[str, Any]]:
    draw = np.random.default_rng(seed)
    hidden = draw.random(rows)
    data = {f"c{i}": draw.random(rows) < 0.1 + 0.8 * hidden * (i % 3) / 2 for i in range(columns)}
    return hf.Schema(**{name: hf.Boolean() for name in data}), data
