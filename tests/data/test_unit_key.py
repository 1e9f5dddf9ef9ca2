"""One key for one unit, whichever door it came through."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from services import postgres

from holdfast.data.duckdb_dialect import DUCKDB
from holdfast.data.encode import encode_sql
from holdfast.data.postgres_dialect import POSTGRES
from holdfast.data.unit_key import KEY_LIMIT, KeyHalf
from holdfast.errors import DataError

HALVES = [KeyHalf(0, KEY_LIMIT - 1, "person", half) for half in (0, 1)]
TEXTS = [
    "a",
    "ab",
    "",
    " a",
    "7",
    "07",
    "-7",
    "-0",
    "7.0",
    "ünï ☃",
    "it's",
    "9" * 17,
    "9" * 18,
    None,
    "NULL",
    "x" * 5000,
]
NUMBERS = [0, 7, -7, 10**17, 10**17 - 1, -(10**17), 2**62, None]


def encoded(values: Any) -> list[tuple[int, int]]:
    array = np.array(values, dtype=object) if isinstance(values, list) else values
    return list(zip(*(half.encode_array(array).tolist() for half in HALVES), strict=True))


def by_sql(query: str, run: Any) -> list[tuple[int, int]]:
    return [(int(first), int(second)) for first, second in run(query)]


@pytest.mark.parametrize(
    ("values", "kind"), [(TEXTS, "VARCHAR"), (NUMBERS, "BIGINT"), ([1.0, 2.5, None, 1e20], "DOUBLE")]
)
def test_duckdb_and_postgres_agree_with_python(values: list[Any], kind: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (place INT, person {kind})")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values)))
    chosen = ", ".join(encode_sql(DUCKDB, half, "person", kind) for half in HALVES)
    found = by_sql(f"SELECT {chosen} FROM t ORDER BY place", lambda q: connection.execute(q).fetchall())
    assert found == encoded(values)
    server = postgres()
    its = {"VARCHAR": "text", "BIGINT": "int8", "DOUBLE": "float8"}[kind]
    server.execute("DROP TABLE IF EXISTS keys_of_people")
    server.execute(f"CREATE TABLE keys_of_people (place int, person {its})")
    import psycopg

    with psycopg.connect(server.url) as link:
        link.cursor().executemany("INSERT INTO keys_of_people VALUES (%s, %s)", list(enumerate(values)))
        chosen = ", ".join(encode_sql(POSTGRES, half, "person", its) for half in HALVES)
        query: Any = f"SELECT {chosen} FROM keys_of_people ORDER BY place"
        assert by_sql(query, lambda q: link.execute(q).fetchall()) == encoded(values)


def test_whole_numbers_are_the_same_as_texts_and_as_floats() -> None:
    assert encoded(["7", "-7", "0"]) == encoded([7, -7, 0]) == encoded(np.array([7.0, -7.0, 0.0]))
    assert encoded(np.array([7, 2**63 + 5], dtype=np.uint64)) == encoded(["7", str(2**63 + 5)])
    assert len(set(encoded(["7", "07", "+7", " 7", "7.0"]))) == 5


def test_what_is_no_key() -> None:
    none = (KEY_LIMIT, KEY_LIMIT)
    assert encoded([None, "", float("nan")]) == [none] * 3
    assert encoded(np.array([np.nan, 1.5, np.inf])) == [none] * 3


def test_mixed_and_foreign_keys_are_refused_without_showing_one() -> None:
    for values in (["a", 1], [1.0, "1"], [b"a"], ["\udc80"]):
        with pytest.raises(DataError) as refused:
            encoded(values)
        assert "'a'" not in str(refused.value) and "udc80" not in str(refused.value)
