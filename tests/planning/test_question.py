"""A question is one value: what a client writes, a gateway parses, and nothing of it is lost."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from fastapi.exceptions import RequestValidationError

from holdfast.planning import question
from holdfast.planning.any_question import AnyQuestion
from holdfast.planning.cell_question import Independence
from holdfast.planning.distinct_question import Distinct
from holdfast.planning.quantile_question import Quantile
from holdfast.planning.question import Question
from holdfast.planning.sql_question import Sql
from holdfast.query.schema import Integer, Schema
from holdfast.service.fast_route import question_of

HOW: dict[str, Any] = {"within": 0.25, "rho": 0.5, "epsilon": 0.75, "mechanism": "votes", "rows": 7}
GROUPS: dict[str, Any] = {"where": "x > 1", "by": "x", "edges": [1.0, "2020-01-01"], **HOW}
VECTOR: dict[str, Any] = {
    "name": "n", "threshold": 0.5, "hits": 3, "epsilon": 0.1, "rho": 0.2, "delta": 1e-9, "version": "v", "questions": 4,
}  # fmt: skip
WEIGHTS: dict[str, Any] = {
    "name": "n", "columns": ["x"], "queries": 5, "within": 0.1, "rho": 0.2, "epsilon": 0.3, "delta": 0.4,
    "edges": {"x": [1.0]}, "nulls": ["x"], "version": "v", "stop": "when spent",
}  # fmt: skip
FULL: tuple[Question, ...] = (
    question.Fraction(given="x > 0", **GROUPS),
    question.Count(cumulative=True, **GROUPS),
    question.Difference(where="x > 1", other="x > 2", expect=0.1, of="x", **HOW),
    question.Total(kind="sum", column="x", cumulative=True, **GROUPS),
    question.Total(kind="mean", column="x", cumulative=True, **GROUPS),
    question.Ratio(column="x", divisor="x + 1", **GROUPS),
    question.Spread(kind="variance", column="x", sample=True, **GROUPS),
    question.Spread(kind="std", column="x", sample=True, **GROUPS),
    question.Paired(kind="covariance", column="x", other="x * x", sample=True, **GROUPS),
    question.Paired(kind="correlation", column="x", other="x * x", sample=True, **GROUPS),
    question.Regression(column="x", features=["x * x"], where="x > 1", **HOW),
    question.Top(column="x", k=3, edges=[1.0], where="x > 1", **HOW),
    question.Histogram(column="x", edges=[1.0], where="x > 1", **HOW),
    Quantile(column="x", rank=0.25, **GROUPS),
    Quantile(column="x", rank=[0.25, 0.5], **GROUPS),
    Distinct(column="x", **GROUPS),
    Independence(column="x", other="floor(x / 2)", where="x > 1", edges={"x": [1.0]}, **HOW),
    Sql(text="SELECT count(*) FROM t", **HOW),
    question.DiscoverKeys(column="x", rho=0.2, delta=1e-9),
    question.Sample(where="x > 1"),
    question.Select(candidates=["x > 1"], epsilon=0.1, rho=0.2, mechanism="exponential"),
    question.OpenSparseVector(**VECTOR),
    question.Above(where="x > 1", **VECTOR),
    question.OpenWeights(**WEIGHTS),
    question.Weigh(where="x > 1", **WEIGHTS),
)
"""Every kind, with every part given and none as it is by default."""


def parsed(asked: Question) -> Question:
    return question_of(json.dumps(asked.to_json()).encode())


def outcome(asked: Question) -> str:
    """What becomes of a question on its way: the same, another, or a reason to refuse it."""
    try:
        return "the same" if parsed(asked) == asked else "another"
    except RequestValidationError as refused:
        return str(refused.errors()[0]["type"])


def kind(asked: Question) -> str:
    return asked.kind


def test_every_kind_is_tried_with_every_part() -> None:
    assert {type(asked) for asked in FULL} == set(get_args(AnyQuestion))
    for asked in FULL:
        for part in fields(asked):
            if part.name not in ("kind", "confirm"):
                assert getattr(asked, part.name) != part.default, (asked.kind, part.name)


@pytest.mark.parametrize("asked", FULL, ids=kind)
def test_what_is_written_is_parsed(asked: Question) -> None:
    for sent in (asked, replace(asked, confirm=True)):
        assert outcome(sent) == "the same"
    assert replace(asked, confirm=True).identity == asked.identity


@pytest.mark.parametrize("asked", FULL, ids=kind)
def test_a_part_that_is_lost_on_the_way_would_be_noticed(
    asked: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, identity = asked.to_json(), asked.identity
    for lost in whole.keys() - {"kind", "confirm"}:
        rest = {name: part for name, part in whole.items() if name != lost}
        monkeypatch.setattr(Question, "to_json", lambda self, rest=rest: rest)
        assert asked.identity != identity
        assert outcome(asked) in ("another", "missing")


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("where", ""), ("where", "x" * 10_001), ("by", "x" * 2001),
        ("by", []), ("by", ["x"] * 9), ("by", [1]), ("edges", [0.0] * 10_001), ("edges", ["x" * 41]),
        ("edges", [float("nan")]), ("edges", "abc"), ("rho", 1e-10), ("rho", 1e10), ("rho", "1"), ("rho", float("inf")),
        ("within", 1e-31), ("rows", 0), ("rows", 1.5), ("mechanism", "x" * 41), ("confirm", 1), ("kind", "gossip"),
    ],
)  # fmt: skip
def test_what_no_question_is_does_not_come_in(part: str, wrong: Any) -> None:
    body = question.Fraction(where="x > 1", rho=0.5).to_json()
    assert question_of(json.dumps(body).encode()) == question.Fraction(where="x > 1", rho=0.5)
    with pytest.raises(RequestValidationError):
        question_of(json.dumps(body | {part: wrong}).encode())


def test_limits_are_for_the_network() -> None:
    """In process, a condition may be as long as it likes."""
    long = "x > 1" + " " * 10_000
    read = question.Fraction(where=long, rho=1e-12).read(Schema(x=Integer(0, 9)))
    assert read.request.rho == 1e-12 and read.question is not None and len(read.statistics) == 1
