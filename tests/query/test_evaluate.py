"""What a question means: evaluator = row-by-row oracle = DuckDB, and mutants of each that are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings

from holdfast.errors import QueryError
from holdfast.query import evaluate as evaluator
from holdfast.query import render
from holdfast.query.evaluate import compile_expression, compile_predicate, evaluate
from holdfast.query.expression import Least, children, columns
from holdfast.query.expression import range as expression_range
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Compare, Predicate
from holdfast.query.render import render_expression, render_predicate
from holdfast.query.schema import Real, Schema

from . import kleene
from .questions import SCHEMA, arithmetic, edge_block, questions, richer, rows_of, tables

Block = dict[str, np.ndarray]
BLOCK = edge_block(300)
ROWS = rows_of(BLOCK)
quick = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


REFUSED = (
    "may leave",
    "within ±2^62",
    "nested",
    "too large",
    "as near to 0",
    "always 0",
    "always NULL",
    "needs a column on one side",
)
"""What the schema shows to have no answer."""


def parsed(text: str) -> Predicate:
    """The question, unless its arithmetic may overflow or nests too deeply."""
    try:
        return parse_predicate(text, SCHEMA)
    except QueryError as error:
        assume(not any(word in str(error) for word in REFUSED))
        raise


@pytest.fixture(scope="module")
def codes() -> Iterator[duckdb.DuckDBPyConnection]:
    """The edge table in DuckDB: `codes` holds codes, `plain` the values a person would see."""
    connection = duckdb.connect(config={"threads": 1})
    frame = pd.DataFrame({"i": np.arange(len(ROWS)), **BLOCK})
    real = [
        f'CASE WHEN isnan("{n}") THEN NULL ELSE "{n}" END AS "{n}"'
        for n in SCHEMA
        if isinstance(SCHEMA[n], Real)
    ]
    connection.register("frame", frame)
    connection.execute(f"CREATE TABLE codes AS SELECT * REPLACE ({', '.join(real)}) FROM frame")
    types = {
        "integer": "BIGINT",
        "real": "DOUBLE",
        "category": "VARCHAR",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "time": "TIME",
        "timestamp": "TIMESTAMP",
    }
    fields = ", ".join(f"{render.always_quoted(n)} {types[SCHEMA[n].kind]}" for n in SCHEMA)
    connection.execute(f"CREATE TABLE plain (i BIGINT, {fields})")
    marks = ", ".join("?" * (len(SCHEMA) + 1))
    connection.executemany(
        f"INSERT INTO plain VALUES ({marks})", [[i, *row.values()] for i, row in enumerate(ROWS)]
    )
    yield connection
    connection.close()


def chosen(connection: duckdb.DuckDBPyConnection, table: str, where: str) -> list[int]:
    return [i for (i,) in connection.execute(f"SELECT i FROM {table} WHERE {where} ORDER BY i").fetchall()]


def kept(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask).tolist()


@quick
@given(questions)
def test_the_evaluator_agrees_with_the_oracle_on_edge_cases(tree: kleene.Tree) -> None:
    mask = evaluate(parsed(kleene.sql(tree)), BLOCK, SCHEMA)
    assert mask.dtype == np.bool_
    assert kept(mask) == [i for i, row in enumerate(ROWS) if kleene.is_true(tree, row, SCHEMA)]


@quick
@given(questions, tables)
def test_the_evaluator_agrees_with_the_oracle_on_generated_tables(tree: kleene.Tree, block: Block) -> None:
    mask = evaluate(parsed(kleene.sql(tree)), block, SCHEMA)
    assert mask.tolist() == [kleene.is_true(tree, row, SCHEMA) for row in rows_of(block)]


@quick
@given(tree=questions)
def test_duckdb_agrees_over_codes(codes: duckdb.DuckDBPyConnection, tree: kleene.Tree) -> None:
    predicate = parsed(kleene.sql(tree))
    assert chosen(codes, "codes", render_predicate(predicate, SCHEMA)) == kept(
        evaluate(predicate, BLOCK, SCHEMA)
    )


def portable(tree: Any) -> bool:
    """Whether DuckDB means the same: its least passes over NULLs, and its decimals are exact."""
    if not isinstance(tree, tuple | list):
        return True
    if tree and tree[0] in ("least", "greatest", "/", "floor", "missing", "part"):
        return False
    if tree and tree[0] in ("+", "-", "*", "negate", "abs") and kleene.is_real(tree, SCHEMA):
        return False
    if tree and tree[0] == "number" and (len(tree[1]) > 15 or "." in tree[1] or "e" in tree[1]):
        return False
    return all(map(portable, tree))


@quick
@given(tree=questions.filter(portable))
def test_duckdb_agrees_on_the_text_itself(codes: duckdb.DuckDBPyConnection, tree: kleene.Tree) -> None:
    text = kleene.sql(tree)
    try:
        expected = chosen(codes, "plain", text)
    except (duckdb.OutOfRangeException, duckdb.BinderException, duckdb.ConversionException):
        assume(False)  # DuckDB's arithmetic is partial, and it types some literals more strictly
    assert kept(evaluate(parsed(text), BLOCK, SCHEMA)) == expected


@quick
@given(tree=arithmetic | richer)
def test_expressions_agree_with_the_oracle_and_duckdb(
    codes: duckdb.DuckDBPyConnection, tree: kleene.Tree
) -> None:
    try:
        expression = parse_expression(kleene.sql(tree), SCHEMA)
    except QueryError as error:
        assume(not any(word in str(error) for word in REFUSED))
        raise
    assert parse_expression(str(expression), SCHEMA) == expression
    values, null = compile_expression(expression, SCHEMA)(BLOCK)
    assert (null is None) == (not columns(expression))
    nulls = [False] * len(ROWS) if null is None else null.tolist()
    found = [None if missing else value for value, missing in zip(values.tolist(), nulls, strict=True)]
    assert found == [kleene.number(tree, row, SCHEMA) for row in ROWS]
    rendered = render_expression(expression, SCHEMA)
    assert [v for (v,) in codes.execute(f"SELECT {rendered} FROM codes ORDER BY i").fetchall()] == found
    low, high = expression_range(expression, SCHEMA)
    assert all(low <= value <= high for value in found if value is not None)


@quick
@given(questions)
def test_the_canonical_text_parses_back(tree: kleene.Tree) -> None:
    predicate = parsed(kleene.sql(tree))
    again = parse_predicate(str(predicate), SCHEMA)
    assert again == predicate
    assert hash(again) == hash(predicate)
    assert str(again) == str(predicate)


@quick
@given(questions)
def test_a_row_is_judged_by_itself(tree: kleene.Tree) -> None:
    test = compile_predicate(parsed(kleene.sql(tree)), SCHEMA)
    check_independence(lambda block: test(block))


def check_independence(test: Callable[[Block], np.ndarray]) -> None:
    """Permuted, halved, alone or none: the verdict on a row stays."""
    mask = test(BLOCK)
    order = np.random.default_rng(1).permutation(len(ROWS))
    for ids in (order, order[::2], order[:1], order[1:2], order[:0]):
        part = {name: column[ids] for name, column in BLOCK.items()}
        assert np.array_equal(test(part), mask[ids])


def test_independence_catches_an_evaluator_that_looks_at_its_block() -> None:
    with pytest.raises(AssertionError):
        check_independence(
            lambda block: block["age"] >= np.median(block["age"]) if len(block["age"]) else block["age"] > 0
        )
    with pytest.raises(AssertionError):
        check_independence(lambda block: np.arange(len(block["age"])) % 2 == 0)


CORPUS: list[kleene.Tree] = [
    ("not", ("compare", "<", ("column", "age"), ("number", "40"))),
    ("compare", ">=", ("column", "age"), ("number", "40")),
    ("not", ("and", [("column", "insured"), ("compare", "<=", ("column", "rate"), ("number", "0.5"))])),
    ("in", True, ("column", "smoker"), [("text", "no")]),
    ("compare", ">", ("+", ("column", "wide"), ("column", "small")), ("number", "0")),
    ("compare", "<", ("column", "visit"), ("column", 'next "one"')),
    ("compare", "=", ("least", [("column", "age"), ("column", "wide"), ("number", "3")]), ("number", "3")),
]


def check_meaning(judge: Callable[[str, Block], np.ndarray]) -> None:
    for tree in CORPUS:
        expected = [i for i, row in enumerate(ROWS) if kleene.is_true(tree, row, SCHEMA)]
        assert kept(judge(kleene.sql(tree), BLOCK)) == expected


def test_the_corpus_accepts_the_truth() -> None:
    check_meaning(lambda text, block: evaluate(parse_predicate(text, SCHEMA), block, SCHEMA))


def test_the_corpus_catches_a_two_valued_not() -> None:
    def twin(text: str, block: Block) -> np.ndarray:
        """NOT is everything else, also the rows that SQL calls unknown."""
        if text.startswith("NOT "):
            return ~twin(text[4:], block)
        return evaluate(parse_predicate(text, SCHEMA), block, SCHEMA)

    with pytest.raises(AssertionError):
        check_meaning(twin)


def open_range(codes: Any, lo: int, hi: int, dtype: Any) -> Any:
    """x >= lo, which NULL satisfies too, being the largest code."""
    return lambda block: codes(block) >= lo


def never_null(name: str, schema: Schema) -> Any:
    """Forgets that a code stands for NULL."""
    return lambda block: np.zeros(len(block[name]), dtype=np.bool_)


@pytest.mark.parametrize(("part", "twin"), [("_within_codes", open_range), ("_null", never_null)])
def test_the_corpus_catches_a_missing_null_guard(
    part: str, twin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, part, twin)
    with pytest.raises(AssertionError):
        check_meaning(lambda text, block: evaluator.compiled(parse_predicate(text, SCHEMA), SCHEMA)(block))


def test_duckdb_catches_a_least_that_passes_over_null(
    codes: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicate = parse_predicate("least(age, wide, 3) = 3", SCHEMA)
    assert isinstance(predicate, Compare)
    assert isinstance(predicate.left, Least)
    assert len(children(predicate.left)) == 3
    expected = kept(evaluate(predicate, BLOCK, SCHEMA))
    assert chosen(codes, "codes", render_predicate(predicate, SCHEMA)) == expected
    monkeypatch.setattr(render, "_guarded", lambda text, expression, schema: text)
    assert chosen(codes, "codes", render_predicate(predicate, SCHEMA)) != expected


@quick
@given(questions)
def test_blocks_without_values(tree: kleene.Tree) -> None:
    predicate = parsed(kleene.sql(tree))
    nulls = {name: np.full(5, kind.null_code, dtype=kind.dtype) for name, kind in SCHEMA.items()}
    row = dict.fromkeys(SCHEMA)
    assert evaluate(predicate, nulls, SCHEMA).tolist() == [kleene.is_true(tree, row, SCHEMA)] * 5
    assert evaluate(predicate, {name: column[:0] for name, column in nulls.items()}, SCHEMA).shape == (0,)


def test_sets_with_many_pieces_use_a_table_or_a_search() -> None:
    wide = [3, 70, 71, 500, 65_536, 69_999]
    for name, values in (
        ("age", [1, 5, 9, 13, 20, 119]),
        ("wide", wide),
        ("big", [0, 2, 4, 2**53, 2**53 + 2]),
    ):
        text = f"{name} IN ({', '.join(map(str, values))}) OR {name} IS NULL"
        predicate = parse_predicate(text, SCHEMA)
        block = {
            name: SCHEMA[name].encode_array(np.array([*values, *(v + 1 for v in values), None], dtype=object))
        }
        decoded = SCHEMA[name].decode(block[name])
        assert evaluate(predicate, block, SCHEMA).tolist() == [v is None or v in values for v in decoded]
