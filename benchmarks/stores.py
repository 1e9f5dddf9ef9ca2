"""Stores of random rows for benchmarks, written once and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from holdfast.data.save import StoreWriter
from holdfast.data.source import new_fingerprint
from holdfast.data.store import StoreSource
from holdfast.query.schema import Category, Integer, Schema

PERSON = Schema(age=Integer(0, 120), income=Integer(0, 50_000), smoker=Category("no", "yes"))
AGE = Schema(age=Integer(0, 120))
_BLOCK = 2**22


def store(folder: Path, rows: int, schema: Schema) -> StoreSource:
    """A store of `rows` uniformly random rows; 4 bytes a row for PERSON (twice: columns and records), 1 byte
    for AGE."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'-'.join(schema)}-{rows}.hf"
    if not path.exists():
        rng = np.random.default_rng(rows)
        with StoreWriter(path, schema, fingerprint=new_fingerprint()) as writer:
            for first in range(0, rows, _BLOCK):
                count = min(_BLOCK, rows - first)
                writer.append({name: _codes(rng, schema, name, count) for name in schema})
            writer.commit()
    return StoreSource(path)


def _codes(rng: np.random.Generator, schema: Schema, name: str, count: int) -> np.ndarray:
    return rng.integers(0, schema[name].codes, count, dtype=schema[name].dtype)


def _three_clauses() -> Iterator[str]:
    """No two are equal; the clause on income is another each time, for 49,999 texts."""
    for place in range(70 * 49_999):
        yield f"age > {20 + place % 70} AND income < {1 + place * 7919 % 49_999} AND smoker = 'yes'"


def _one_clause() -> Iterator[str]:
    for low in range(120):
        for high in range(low + 1, 120):
            for other in range(low):
                yield f"age BETWEEN {low} AND {high} OR age = {other}"


# One supply for the whole process: parsed texts are remembered, so a text is new only once.
new_texts = {"three clauses": _three_clauses(), "one clause": _one_clause()}
