"""What is one question, what is refused and where, and how large a question may be."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InputError, QueryError
from holdfast.query import scan
from holdfast.query.evaluate import compile_expression, compile_predicate
from holdfast.query.expression import Absolute, Add, Column, Constant, Multiply, Subtract
from holdfast.query.parse import (
    MAX_DEPTH,
    MAX_OPERATIONS,
    MAX_TERMS,
    MAX_TEXT,
    parse_expression,
    parse_predicate,
)
from holdfast.query.predicate import Always, In, IsNull, Never, NotNull, columns, conjunction, disjunction
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema

SCHEMA = Schema.from_mapping(
    {
        "age": Integer(0, 120),
        "height": Integer(50, 250),
        "big": Integer(-(2**61), 2**61 - 1),
        "income": Real(0, 500_000),
        "smoker": Category("no", "yes", "it's"),
        "grade": Category(1, 2, 3),
        "insured": Boolean(),
        "visit": Date("2020-01-01", "2026-12-31"),
        "birth": Date("1900-01-01", "2026-12-31"),
        "weird name": Integer(0, 9),
        'say "hi"': Integer(0, 9),
        "date": Integer(0, 9),
        "show": Integer(0, 9),
        "order": Integer(0, 9),
        "Σ": Integer(0, 9),
        "and": Integer(0, 9),
    }
)

SAME: list[list[str]] = [
    [
        "5 < age",
        "age > 5",
        "NOT age <= 5",
        "age >= 6",
        "NOT (5 >= age)",
        "age > 5.5",
        "6.0 <= AGE",
        "NOT NOT age > 5",
    ],
    ["age > 40.5", "age >= 41", "age > 40", "age >= 40.0001", "age + 1 > 41", "41 - age <= 0", "-age < -40"],
    [
        "age = 5",
        "age IN (5)",
        "age BETWEEN 5 AND 5",
        "age IN (5, 5, 5.0)",
        "age >= 5 AND age <= 5",
        "5 == age",
    ],
    ["age <> 5", "NOT age = 5", "age != 5", "age NOT IN (5)", "age < 5 OR age > 5", "NOT age IN (5)"],
    ["age = 1 OR age = 2", "age IN (1, 2)", "age IN (2, 1)", "age BETWEEN 1 AND 2", "age > 0 AND age < 3"],
    ["age BETWEEN 3 AND 7", "3 <= age AND 7 >= age", "age <= 7 AND (age >= 3)", "NOT (age < 3 OR age > 7)"],
    [
        "age > 120",
        "FALSE",
        "NOT TRUE",
        "age = 5.5",
        "age < 0",
        "age = 1 AND age = 2",
        "age IS NULL AND age > 3",
    ],
    ["age <= 120", "age IS NOT NULL", "NOT age IS NULL", "age <> 5.5", "age >= -3", "age = 1 OR age <> 1"],
    ["age IS NULL OR age IS NOT NULL", "TRUE", "1 < 2", "NOT FALSE", "age <= 5 OR age > 5 OR age IS NULL"],
    ["insured", "insured = TRUE", "insured <> FALSE", "NOT NOT insured", "insured IS TRUE", "TRUE = insured"],
    ["NOT insured", "insured = FALSE", "insured IS FALSE", "insured IN (FALSE)", "NOT (insured = TRUE)"],
    ["insured IS NOT TRUE", "insured IS NULL OR NOT insured", "NOT (insured IS TRUE)"],
    [
        "smoker = 'yes'",
        "'yes' = smoker",
        "smoker IN ('yes')",
        "NOT smoker <> 'yes'",
        "smoker NOT IN ('no', 'it''s')",
    ],
    ["grade = 2", "grade = '2'", "grade IN (2.0)", "NOT grade IN (1, 3)"],
    [
        "visit > '2021-05-01'",
        "visit >= DATE '2021-05-02'",
        "NOT visit <= '2021-05-01'",
        "'2021-05-02' <= visit",
    ],
    ["income > 5", "NOT income <= 5", "5.0 < income", "income > 5e0", "income > 5 AND income > 3"],
    ["income BETWEEN 1 AND 2", "income >= 1 AND income <= 2", "NOT (income < 1 OR income > 2)"],
    [
        "age > 40 AND smoker = 'yes'",
        "smoker = 'yes' AND age > 40",
        "(age > 40) AND ((smoker = 'yes')) AND TRUE",
    ],
    [
        "age = 1 AND (insured OR grade = 1)",
        "(grade = 1 OR insured) AND age = 1",
        "(insured OR grade = 1) AND 1 = age",
    ],
    ["insured AND (insured OR age = 1)", "insured", "insured OR (insured AND age = 1)"],
    ["NOT (insured AND age > 3)", "NOT insured OR age <= 3", "NOT (age > 3 AND insured)"],
    ["age < height", "height > age", "height - age > 0", "age - height <= -1", "NOT height <= age"],
    ["age - height >= 5", "height - age <= -5", "NOT (age - height < 5)", "5 <= age - height"],
    [
        "age = height",
        "height = age",
        "age - height = 0",
        "NOT age <> height",
        "age = height AND age IS NOT NULL",
    ],
    [
        "age + height > 200",
        "height + age > 200",
        "200 < height + age",
        "height + age >= 201",
        "age + height - 1 >= 200",
    ],
    ["abs(age - 40) <= 2", "age BETWEEN 38 AND 42", "abs(40 - age) < 3", "age IN (38, 39, 40, 41, 42)"],
    ["least(age, 5) = 5", "age >= 5", "greatest(5, age) = age", "age * 2 >= 10", "age * 1.5 >= 7.5"],
    ["least(age, height) > 60", "least(height, age, height) > 60", "60 < least(age, least(height, age))"],
    ["income * 2 > age", "age < 2 * income", "NOT 2 * income <= age", "income * 2.0 > age + 0"],
    ['"weird name" = 3', '"weird name" IN (3)'],
    ["age / 2 > height", "NOT age / 2 <= height", "height < age / 2"],
    [
        "year(visit) = 2021",
        "visit BETWEEN '2021-01-01' AND '2021-12-31'",
        "extract(YEAR FROM visit) = 2021",
        "date_part('year', visit) IN (2021)",
        "date_trunc('year', visit) = DATE '2021-01-01'",
    ],
    [
        "coalesce(age, 0) < 5",
        "age < 5 OR age IS NULL",
        "ifnull(age, 0) < 5",
        "CASE WHEN age IS NOT NULL THEN age ELSE 0 END < 5",
    ],
    [
        "smoker LIKE 'n%'",
        "smoker = 'no'",
        "CASE WHEN smoker = 'no' THEN 1 ELSE 0 END = 1",
        "CASE smoker WHEN 'no' THEN 1 END = 1",
        "starts_with(smoker, 'n')",
    ],
    ["age + height IS NULL", "age IS NULL OR height IS NULL"],
    ["nullif(age, 3) IS NULL", "age = 3 OR age IS NULL"],
    ["date = 3", '"date" = 3', "DATE = 3"],
]


@pytest.mark.parametrize("texts", SAME, ids=lambda texts: texts[0])
def test_equal_questions_are_equal_values(texts: list[str]) -> None:
    found = [parse_predicate(text, SCHEMA) for text in texts]
    for (one, first), (two, second) in pairwise(zip(texts, found, strict=True)):
        assert first == second, (one, two)
        assert hash(first) == hash(second)
        assert str(first) == str(second)
        assert parse_predicate(str(first), SCHEMA) == first


def test_different_questions_are_different_values() -> None:
    firsts = [parse_predicate(texts[0], SCHEMA) for texts in SAME]
    twice = [texts[0] for texts, found in zip(SAME, firsts, strict=True) if firsts.count(found) > 1]
    assert twice == ["insured", "insured AND (insured OR age = 1)"]


def test_the_canonical_text_is_what_a_person_would_write() -> None:
    for text, canonical in [
        ("NOT (age BETWEEN 3 AND 7 OR smoker = 'it''s')", "(age <= 2 OR age >= 8) AND smoker <> 'it''s'"),
        ("income > 0.1 AND income < 7", "income > 0.1 AND income < 7"),
        ("5 < AGE", "age >= 6"),
        ("grade <> 1 and visit <> '2020-01-02'", "grade <> '1' AND visit <> '2020-01-02'"),
        ("age in (1,2,3,9,20) or age is null", "age BETWEEN 1 AND 3 OR age IN (9, 20) OR age IS NULL"),
        ('"weird name"=1 or "say ""hi"""=2', '"say ""hi""" = 2 OR "weird name" = 1'),
        ("height - (age - 3) > 2", "age - 3 - height <= -3"),
        (
            'show = 1 and "order" = 2 and "and" = 3 and "date" = 4',
            '"and" = 3 AND "date" = 4 AND order = 2 AND show = 1',
        ),
        ("Σ > 3", '"Σ" >= 4'),
    ]:
        assert str(parse_predicate(text, SCHEMA)) == canonical
        assert str(parse_predicate(canonical, SCHEMA)) == canonical


REFUSED: list[tuple[str, str]] = [
    # The mark ¦ stands before the place that must be pointed at.
    ("¦", "empty"),
    ("¦   ", "empty"),
    ("age >¦", "too early"),
    ("age > 40 AND¦", "too early"),
    ("(age > 40¦", "too early"),
    ("NOT¦", "too early"),
    ("age BETWEEN 1¦", "too early"),
    ("age > 40¦)", "cannot read"),
    ("age > 40 ¦insured", "cannot read"),
    ("age = 1 ¦2", "cannot read"),
    ("¦() = 1", "expected a column"),
    ("¦agee > 3", "did you mean age"),
    ("¦incom > 3", "did you mean income"),
    ("¦nothing_like_it > 3", "no column"),
    ("¦weird > 1", "did you mean weird name"),
    ('¦"Age" > 1', "did you mean age"),
    ("¦t.age > 1", "no column"),
    ("age¦.x > 1", "not part"),
    ("¦age / 0 > 3", "always 0"),
    ("¦income / income > 3", "divide by greatest(income, 0.1)"),
    ("¦nullif(1, 1) = 1", "always NULL"),
    ("year(¦age) = 2020", "timestamp column only"),
    ("¦year(visit, visit) = 2020", "one date column"),
    ("month(¦visit + 1) = 2020", "timestamp column only"),
    ("¦date_trunc('month', visit) + 1 = 3", "compare it with a date"),
    ("¦date_trunc('era', visit) = '2020-01-01'", "'year', 'quarter', 'month'"),
    ("date_trunc('hour', ¦visit) = '2020-01-01'", "which has no hour"),
    ("hour(¦visit) = 3", "which has no hour"),
    ("date_trunc('month', visit) = ¦3", "such as"),
    ("¦nullif(age) = 1", "two arguments"),
    ("¦floor(age, 2) = 1", "one argument"),
    ("CASE WHEN age > 1 THEN ¦'x' END = 1", "expected a number"),
    ("CASE WHEN age > 1 THEN 1¦", "too early"),
    ("CASE END = 1¦", "too early"),
    ("age ¦% 2 = 1", "not part"),
    ("age /¦/ 2 = 1", "whole parts are floor"),
    ("age ¦^ 2 = 1", "not part"),
    ("age ¦& 2 = 1", "not part"),
    ("age ¦| 2 = 1", "not part"),
    ("¦~age = 1", "not part"),
    ("¦age << 2 = 1", "expected a column"),
    ("smoker ¦|| 'x' = 'nox'", "not part"),
    ("age¦::text = 3", "not part"),
    ("¦cast(age AS text) = 3", "a cast is to a number"),
    ("¦upper(smoker) = 'NO'", "write x ILIKE"),
    ("¦sqrt(age) = 1", "sqrt has no whole numbers"),
    ("¦pg_sleep(10) = 1", "function pg_sleep"),
    ("¦random() < 0.5", "random changes"),
    ("¦read_csv('/etc/passwd') = 1", "function read_csv"),
    ("¦now() > visit", "now changes"),
    ("¦current_date > visit", "not part"),
    ("¦age(visit) > 3", "age is compared as dates are"),
    ("¦age LIKE 'n%'", "LIKE applies to a text or category column only"),
    ("¦age ILIKE 'n%'", "ILIKE applies to a text or category"),
    ("smoker ¦SIMILAR TO 'n'", "not part"),
    ("smoker ¦~ 'n'", "not part"),
    ("smoker ¦GLOB 'n'", "not part"),
    ("CASE WHEN ¦age > 1 THEN TRUE END", "CASE gives a number"),
    ("¦EXISTS (age)", "function EXISTS"),
    ("age > (¦SELECT 1)", "SELECT is not part"),
    ("age IN (¦SELECT age)", "SELECT is not part"),
    ("age > ¦ANY (1)", "function ANY"),
    ("age > 40¦; DROP TABLE x", "not part"),
    ("age > 40¦;", "not part"),
    ("age > 40 ¦-- and more", "comments"),
    ("age > 40 ¦/* hidden */ AND insured", "comments"),
    ("¦/* x */ age > 40", "comments"),
    ("age ¦/*+ hint */ > 40", "comments"),
    ("age > 40 ¦/* open", "never closed"),
    ("age = ¦'abc", "never closed"),
    ('¦"abc = 3', "never closed"),
    ("age = ¦$1", "not part"),
    ("age = ¦?", "not part"),
    ("age = ¦:x", "not part"),
    ("age = ¦@x", "not part"),
    ("age = ¦{x}", "not part"),
    ("¦[age] = 1", "not part"),
    ("¦`age` = 1", "not part"),
    ("age ¦<=> 1", "not part"),
    ("age IS ¦DISTINCT FROM 1", "not part"),
    ("age ¦UNION SELECT 1", "not part"),
    ("¦age IS 5", "IS needs"),
    ("¦age IS TRUE", "IS needs"),
    ("¦age + 1 IS TRUE", "column only"),
    ("age = ¦NULL", "IS NULL"),
    ("age <> ¦NULL", "IS NULL"),
    ("age IN (1, ¦NULL)", "IS NULL"),
    ("¦NULL", "IS NULL"),
    ("age NOT ¦NULL", "IS NULL"),
    ("age ¦ISNULL", "not part"),
    ("¦age", "not a condition"),
    ("insured AND ¦smoker", "not a condition"),
    ("NOT ¦age", "not a condition"),
    ("¦1", "expected a condition"),
    ("¦'yes'", "expected a condition"),
    ("age = 1 OR ¦age + 1", "expected a condition"),
    ("¦1 < age < 3", "expected a column"),
    ("age = (¦height = 3)", "expected a column"),
    ("(¦insured AND insured) = TRUE", "expected a column"),
    ("¦age IN ()", "list of values"),
    ("¦age IN 5", "list of values"),
    ("age IN (1, (¦2, 3))", "expected a column"),
    ("age IN (1,¦)", "comma"),
    ("(¦age, height) = 1", "expected a column"),
    ("age = ¦'x'", "integer column"),
    ("age = ¦TRUE", "integer column"),
    ("income > ¦'5'", "real column"),
    ("insured = ¦1", "TRUE or FALSE"),
    ("insured > ¦FALSE", "no order"),
    ("insured = ¦'yes'", "TRUE or FALSE"),
    ("smoker = ¦'maybe'", "labels 'no', 'yes'"),
    ("smoker = ¦'Yes'", "did you mean yes"),
    ("smoker IN ('no', ¦'nein')", "labels"),
    ("¦'nein' = smoker", "labels"),
    ("smoker = ¦5", "labels"),
    ("smoker = ¦TRUE", "labels"),
    ("smoker < ¦'yes'", "no order"),
    ("smoker BETWEEN ¦'no' AND 'yes'", "no order"),
    ("¦smoker = grade", "compare it with a value"),
    ("¦insured = age", "compare it with a value"),
    ("¦smoker + 1 = 2", "no arithmetic"),
    ("¦insured * 2 = 2", "no arithmetic"),
    ("¦abs(smoker) = 1", "no arithmetic"),
    ("visit = ¦'2021-02-30'", "such as"),
    ("visit = ¦'yesterday'", "such as"),
    ("visit = ¦'2021-01-01 10:00'", "such as"),
    ("visit = ¦5", "such as"),
    ("¦visit + 1 = 2", "date column"),
    ("¦visit - birth > 3", "date column"),
    ("¦visit = age", "compared with another of its kind"),
    ("'a' = ¦'b'", "needs a column"),
    ("'a' = ¦1", "needs a column"),
    ("age + ¦'1' = 2", "expected a number"),
    ("age + ¦TRUE = 2", "expected a number"),
    ("age = ¦1e999999999", "too long or too large"),
    ("age = ¦" + "9" * 401, "too long or too large"),
    ("age = ¦1e", "not part"),
    ("age = 0¦x1F", "no column"),
    ("age = 1¦_000", "no column"),
    ("age + ¦99999999999999999999 > 3", "within ±2^62"),
    ("income * ¦1e309 > 3", "too large for arithmetic"),
    ("¦big * 4 > 3", "may leave ±2^62"),
    ("¦big + big + big = 3", "may leave ±2^62"),
    ("¦big * big = 3", "may leave ±2^62"),
    ("3 < ¦big * big", "may leave ±2^62"),
    ("¦4611686018427387904 + 1 > age", "may leave ±2^62"),
    ("¦income * 1e300 * 1e300 > 1", "floating-point"),
    ("abs(age, 1¦) = 1", "cannot read"),
    ("abs(¦) = 1", "cannot read"),
    ("least(¦) = 1", "cannot read"),
    ("age = 1 ¦AS x", "not part"),
    ("age¦: 1", "not part"),
    ("¦* > 1", "expected a column"),
]


@pytest.mark.parametrize(("marked", "message"), REFUSED, ids=[repr(marked)[:40] for marked, _ in REFUSED])
def test_refusals_point_at_the_place(marked: str, message: str) -> None:
    text, place = marked.replace("¦", ""), marked.index("¦")
    with pytest.raises(QueryError) as caught:
        parse_predicate(text, SCHEMA)
    assert caught.value.text == text
    assert message in str(caught.value)
    assert caught.value.position == place, str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def refusal(text: str) -> QueryError | None:
    try:
        parse_predicate(text, SCHEMA)
    except QueryError as error:
        return error
    return None


def nested(form: str, times: int) -> str:
    opening, middle, closing = form.split("…")
    return opening * times + middle + closing * times


DEEP = [
    ("(…age = 1…)", 1),
    ("NOT …insured…", 1),
    ("NOT (…insured…)", 2),
    ("abs(…age…)", 1),
    ("least(1, …age…)", 1),
    ("- …age…", 1),
    ("-(…age…)", 2),
    ("(insured AND (age = 1 OR …insured…))", 2),
    ("NOT NOT NOT age BETWEEN 1 AND (…2…)", 4),
    ("NOT (insured OR (age + …1… = 3))", 3),
]


@pytest.mark.parametrize(("form", "cost"), DEEP)
def test_nesting_up_to_the_stated_depth(form: str, cost: int) -> None:
    """At the limit a question is read or refused for what it says; beyond it, for its depth."""
    tail = " > 3" if form.split("…")[1] == "age" else ""
    deepest = nested(form, MAX_DEPTH // cost) + tail

    def from_a_deep_stack(frames: int) -> None:
        if frames:
            return from_a_deep_stack(frames - 1)
        assert "nested" not in str(refusal(deepest))
        return None

    from_a_deep_stack(300)
    scan.scan(deepest, SCHEMA)
    for times in (MAX_DEPTH // cost + 1, 100, 1000):
        with pytest.raises(QueryError, match="nested 16 deep"):
            parse_predicate(nested(form, times) + tail, SCHEMA)


def test_prefixes_in_a_row_do_not_nest() -> None:
    assert parse_predicate(" AND ".join(["NOT insured"] * 100), SCHEMA) == parse_predicate(
        "NOT insured", SCHEMA
    )
    assert parse_predicate("age > " + " + ".join(["-1"] * 60), SCHEMA) == NotNull("age")


def test_a_very_long_text_is_refused_before_it_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(text: str) -> Any:
        raise AssertionError("the text was split")

    monkeypatch.setattr(scan, "split", forbidden)
    for text in ("a" * (MAX_TEXT + 1), "age > 1 AND " * 1_000_000, "(" * 10_000_000):
        with pytest.raises(QueryError, match="characters"):
            parse_predicate(text, SCHEMA)
    with pytest.raises(AssertionError):
        parse_predicate("a" * MAX_TEXT, SCHEMA)


def test_long_chains_are_read_without_recursion() -> None:
    parts = [f"(age = {i % 120} AND height = {50 + i % 200})" for i in range(1, 400)]
    text = " OR ".join(parts)
    predicate = parse_predicate(text, SCHEMA)
    assert columns(predicate) == {"age", "height"}
    assert str(predicate).count("height") == len(parts)
    block = {"age": np.array([5, 5], np.uint8), "height": np.array([5, 6], np.uint8)}
    assert compile_predicate(predicate, SCHEMA)(block).tolist() == [True, False]
    many = " AND ".join(["age <> 3"] * (MAX_TERMS // 2))
    assert parse_predicate(many, SCHEMA) == parse_predicate("age <> 3", SCHEMA)
    with pytest.raises(QueryError, match="terms"):
        parse_predicate(many + " AND insured AND insured", SCHEMA)
    listed = "big IN (" + ", ".join(map(str, range(0, 20_000, 2))) + ")"
    assert len(parse_predicate(listed, SCHEMA).ranges) == 10_000  # type: ignore[union-attr]


def test_long_sums() -> None:
    parse_expression(" + ".join(["age"] * (MAX_OPERATIONS + 1)), SCHEMA)
    with pytest.raises(QueryError, match="operations"):
        parse_expression(" + ".join(["age"] * (MAX_OPERATIONS + 2)), SCHEMA)


def test_what_grows_too_large_once_written_out_is_refused() -> None:
    name = "x" * 2000
    schema = Schema.from_mapping({name: Integer(0, 10**6)})
    grown = f"{name} IN (" + ", ".join(str(i) for i in range(0, 200, 3)) + ")"
    assert parse_predicate(grown, schema) == parse_predicate(str(parse_predicate(grown, schema)), schema)
    wide = " OR ".join(f"{name} BETWEEN {i} AND {i + 1}" for i in range(0, 90, 3))
    assert len(wide) < MAX_TEXT
    assert len(str(parse_predicate(wide, schema))) < MAX_TEXT
    squares = [f"abs(abs(abs(age - 64) - 32) - 16) = {i}" for i in range(16)]
    assert str(parse_predicate(squares[5], SCHEMA)) == "age IN (11, 21, 43, 53, 75, 85, 107, 117)"


def test_a_question_is_parsed_once() -> None:
    assert parse_predicate("age > 17", SCHEMA) is parse_predicate("age > 17", SCHEMA)
    assert parse_expression("age + 17", SCHEMA) is parse_expression("age + 17", SCHEMA)
    other = Schema(age=Integer(0, 50))
    assert parse_predicate("age > 50", other) == Never()
    assert parse_predicate("age > 50", SCHEMA) != Never()


@pytest.mark.parametrize("text", [None, 3, b"age > 3", ["age > 3"]])
def test_only_text_is_a_question(text: Any) -> None:
    for parse in (parse_predicate, parse_expression):
        with pytest.raises(InputError, match="expected the text"):
            parse(text, SCHEMA)
    with pytest.raises(InputError, match="Schema"):
        parse_predicate("age > 3", {"age": Integer(0, 1)})  # type: ignore[arg-type]


def test_nothing_heavy_is_imported_before_the_first_question() -> None:
    code = (
        "import sys, holdfast.query.select, holdfast.query.evaluate, holdfast.query.render;"
        "print([m for m in ('sqlglot', 'scipy', 'duckdb', 'pandas', 'difflib') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


SOUP = """age height income smoker insured visit Σ 1 0 2.5 1e3 'no' '2020-01-01' "order" TRUE NULL AND OR
NOT IN IS
BETWEEN abs least greatest DATE ( ) , + - * / < <= > >= = <> :: ; -- /* */ ' " $ ? . [ ] { } SELECT FROM x"""
words = st.sampled_from(SOUP.split())


@settings(max_examples=150, deadline=None)
@given(st.text() | st.text("age=<>()'\"-+*/,.1e \n") | st.lists(words, max_size=15).map(" ".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    error = refusal(text)
    if error is None:
        found = parse_predicate(text, SCHEMA)
        assert parse_predicate(str(found), SCHEMA) == found
    else:
        assert error.text == text
        assert error.position is not None
        assert 0 <= error.position <= len(text)


def test_trees_can_be_joined_in_code() -> None:
    age, insured = parse_predicate("age > 5", SCHEMA), parse_predicate("insured", SCHEMA)
    assert conjunction() == Always()
    assert disjunction() == Never()
    assert conjunction(insured, age, NotNull("age")) == parse_predicate("age > 5 AND insured", SCHEMA)
    assert conjunction(age, IsNull("age")) == Never()
    assert disjunction(age, NotNull("age")) == NotNull("age")
    assert disjunction(age, IsNull("age"), NotNull("age")) == Always()
    assert isinstance(disjunction(age, IsNull("age")), In)
    assert conjunction(disjunction(age, IsNull("age")), IsNull("age")) == IsNull("age")
    assert conjunction(disjunction(age, IsNull("age")), NotNull("age")) == age
    assert columns(conjunction(age, insured)) == {"age", "insured"}
    with pytest.raises(InputError, match="at least one column"):
        compile_predicate(Always(), SCHEMA)({})


def test_expressions_have_one_form() -> None:
    age, height = Column("age"), Column("height")
    for text, tree in [
        ("height + age", Add(age, height)),
        ("age - -3", Add(age, Constant(3))),
        ("2 * 3 * age", Multiply(age, Constant(6))),
        ("age * 1 + 0", age),
        ("-(age - height)", Subtract(height, age)),
        ("abs(-(abs(age)))", Absolute(age)),
        ("1 + 1", Constant(2)),
        ("0.5 * 4", Constant(2)),
        ("least(3, 4)", Constant(3)),
        ("- - age", age),
        ("0 - (0 - age)", age),
    ]:
        assert parse_expression(text, SCHEMA) == tree, text
    values, null = compile_expression(Constant(2), SCHEMA)({"age": np.zeros(3, np.uint8)})
    assert values.tolist() == [2, 2, 2]
    assert null is None


@pytest.mark.parametrize(
    "text", ["smoker", "insured", "visit", "'x'", "TRUE", "age > 3", "age = 3", "insured AND insured"]
)
def test_only_numbers_are_expressions(text: str) -> None:
    with pytest.raises(QueryError):
        parse_expression(text, SCHEMA)
