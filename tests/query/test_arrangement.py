"""Which groups are shown, and in which order: as DuckDB would, on the values that were released."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pytest

from holdfast.query.arrangement import Arrangement, Combined, Compared, Having


def as_sql(having: Having) -> str:
    if isinstance(having, Compared):
        return f"{'ab'[having.aggregate]} {having.op} {having.number!r}"
    return "(" + (" AND " if having.every else " OR ").join(map(as_sql, having.parts)) + ")"


HAVINGS: list[Having | None] = [
    None,
    *(Compared(0, op, 2.0) for op in ("<", "<=", ">", ">=", "=", "<>")),
    Combined((Compared(0, ">", 1.0), Compared(1, "<=", 3.0)), True),
    Combined((Compared(0, ">", 3.0), Combined((Compared(1, "<", 1.0), Compared(0, "=", 1.0)), False)), False),
]
ORDERS: list[tuple[tuple[int, bool], ...]] = [
    (),
    ((-1, True),),
    ((0, False),),
    ((1, True), (0, False)),
]


@pytest.mark.parametrize(("limit", "offset"), [(None, 0), (1, 0), (3, 2), (100, 0), (None, 4), (5, 100)])
def test_as_a_database_would(limit: int | None, offset: int) -> None:
    draw = np.random.default_rng(3)
    a, b = draw.integers(0, 5, 12).astype(float), draw.integers(0, 5, 12).astype(float)
    places = np.arange(12)
    for having, order in itertools.product(HAVINGS, ORDERS):
        words = [("place", "a", "b")[at + 1] + " DESC" * last for at, last in order]
        text = (
            f"SELECT place FROM (SELECT unnest($1) AS place, unnest($2) AS a, unnest($3) AS b) "
            f"WHERE {'TRUE' if having is None else as_sql(having)} ORDER BY {', '.join([*words, 'place'])}"
            + ("" if limit is None else f" LIMIT {limit}")
            + f" OFFSET {offset}"
        )
        with duckdb.connect() as engine:
            found = engine.execute(text, [places.tolist(), a.tolist(), b.tolist()]).fetchall()
        arrangement = Arrangement(("a", "b"), order, having, limit, (), offset)
        assert arrangement.places([list(a), list(b)]) == [place for (place,) in found], text


def test_names_alone_change_nothing() -> None:
    assert not Arrangement(("a",)).changes
    assert Arrangement(("a",)).places([[3.0, 1.0, 2.0]]) == [0, 1, 2]
    assert Arrangement(("a",), limit=1).changes
    assert Arrangement(("a",), offset=1).changes
