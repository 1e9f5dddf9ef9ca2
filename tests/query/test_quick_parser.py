"""The short way to read a question is the long way: the same trees, and never a text that the other refuses."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.errors import QueryError
from holdfast.query import quick_parser
from holdfast.query.across import _names
from holdfast.query.comparison import NEGATED, Operand
from holdfast.query.expression import Column
from holdfast.query.parse import full_predicate, parse_predicate
from holdfast.query.predicate import Predicate
from holdfast.query.quick_parser import plain_names, plain_predicate
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema
from holdfast.query.unit_schema import Events, UnitSchema

from .test_parse import REFUSED, SAME
from .test_parse import SCHEMA as LANGUAGE

SCHEMA = Schema.from_mapping(
    {
        "age": Integer(0, 120),
        "small": Integer(-3, 3),
        "income": Real(-10, 1e6),
        "smoker": Category("no", "yes", "it's", "and", 7, "a -- b"),
        "insured": Boolean(),
        "visit": Date("2020-01-01", "2026-12-31"),
        "order": Integer(0, 9),
        "date": Integer(0, 9),
        "x": Boolean(),
        # Names that look like something else: only quotes can mean them.
        "5": Integer(0, 9),
        "and": Boolean(),
        "TRUE": Boolean(),
        "(": Boolean(),
        "'no'": Boolean(),
    }
)
quick = settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))

EVERYDAY = [
    "age > 40 AND income < 25000 AND smoker = 'yes'",
    "age BETWEEN 3 AND 70 OR age = 2",
    "age>=3 and(age<=7 or smoker!='no')",
    "NOT (insured OR age NOT IN (1, 2, 3)) AND visit >= '2022-02-03'",
    "income > -5.25 AND small == -3",
    "insured IS NOT TRUE AND age IS NULL",
    "5 < age AND 'yes' = smoker AND TRUE",
    "age < small AND order <> 4\n OR date = 3",
    "NOT x",
]
NASTY = [
    *(
        "age > 1e5",
        "age > 0x10",
        "age > 1_000",
        "age > 1.",
        "age > .5",
        "age > 1.5.2",
        "age > 5and x",
        "age > 5x",
    ),
    *(
        "age > 5 -- x",
        "age > 5 /* x */",
        "age > 5;",
        "age > 5; x",
        "age >- 5",
        "age >-5",
        "age <-5",
        "age > --5",
    ),
    *("age > - 5", "age -5 > 3", "age <=> 5", "age => 5", "age =< 5", "age < > 5", "age ! = 5", "age === 5"),
    *(
        "smoker = 'it''s'",
        "smoker = 'it' 's'",
        "smoker = 'a -- b'",
        "smoker = 'and'",
        "smoker = 7",
        "smoker = '7'",
    ),
    *("smoker = x'41'", "smoker = n'no'", "smoker = E'no'", "smoker = 'no", "smoker = no'", 'smoker = "no"'),
    *("smoker = 'n\\o'", "smoker = 'no\\'", "smoker = 'n\no'", "smoker = $$no$$", "smoker = `no`"),
    *(
        "\uff41ge > 5",
        "age > \u0665",
        "age\u00a0> 5",
        "age\u2003> 5",
        "age \uff1e 5",
        "\u0430ge > 5",
        "age > 5\x00",
    ),
    *(
        "age\x0b> 5",
        "age\x0c> 5",
        "age > 5\u200b",
        "\ufeffage > 5",
        "age > 5\x1a",
        "\u017fmall > 1",
        "\u212a > 1",
    ),
    *("5 > 3", "(5) > 3", "5 = 5", "5 BETWEEN 3 AND age", "5 IN (age, 3)", "TRUE = insured", "TRUE IS NULL"),
    *(
        "(",
        ")",
        "'no'",
        "and",
        "NOT and",
        "TRUE",
        "( AND TRUE",
        "5",
        "5 = 5 AND 5",
        "'no' = TRUE",
        "age > and",
    ),
    *(
        "age",
        "smoker",
        "insured = 1",
        "insured = 'TRUE'",
        "insured IN (TRUE, FALSE)",
        "NOT NOT x",
        "NOT",
        "x x",
    ),
    *(
        "age IN ()",
        "age IN (1,)",
        "age IN 1",
        "age IN (1",
        "age IN (NULL)",
        "age = NULL",
        "age IS 5",
        "age IS TRUE",
    ),
    *(
        "age NOT = 5",
        "age NOT > 5",
        "age NOT NULL",
        "NOT age",
        "age IS NOT",
        "age BETWEEN 1",
        "age BETWEEN 1 AND",
    ),
    *(
        "age BETWEEN 1 OR 5",
        "age BETWEEN 1 AND 5 AND 7",
        "age NOT BETWEEN 1 AND 5 AND x",
        "x AND",
        "AND x",
        "x OR",
    ),
    *("(age) > 5", "((x))", "(x", "x)", "(x) IS NULL", "(x, x)", "(x) = TRUE", "NOT (x) = TRUE", "x = NOT x"),
    *("age > 5 > 3", "age = 5 = x", "NOT age = 5", "NOT age = 5 = x", "NOT x IS NULL", "NOT x = TRUE AND x"),
    *("date '2020-01-01' < visit", "visit > date '2021-01-01'", "date > 3", "date = '2020-01-01'", "DATE(3)"),
    *(
        "order by",
        "order BY > 3",
        "age (5)",
        "age(5) > 3",
        "abs(age) > 3",
        "age + 1 > 3",
        "age * 2 > 3",
        "AGE > 5",
    ),
    *(
        "age > 99999999999999999999",
        f"age > {'9' * 18}",
        f"income > 0.{'3' * 18}",
        f"age > {'0' * 17}5",
        "age > 007",
    ),
    *(
        "visit > '2020-1-1'",
        "visit > ' 2020-01-01'",
        "visit = '2024-02-30'",
        "visit = 5",
        "smoker > 'no'",
        "",
        "  ",
    ),
    *("age IS NULL AND (age IS NOT NULL AND age < small)", "x OR (x AND (x OR (x AND x)))", "x AND (x OR x)"),
    *("(" * 16 + "x" + ")" * 16, "(" * 17 + "x" + ")" * 17, "NOT " * 16 + "x", "NOT " * 17 + "x"),
    *(
        "x" + " AND x" * 160,
        "x" + " AND x" * 170,
        "{{ x }}",
        "{% x %}",
        "x::boolean",
        "x @> 5",
        "age -> 5",
        "x || x",
    ),
]


def check_agreement(text: str, schema: Schema = SCHEMA) -> bool:
    """Whether the short way reads the text; what it reads is what the long way reads."""
    found = plain_predicate(text, schema)
    if found is None:
        return False
    expected = full_predicate(text, schema)  # raises where it refuses, and then this fails
    assert found == expected, text
    assert str(found) == str(expected), text
    return True


@pytest.mark.parametrize("text", EVERYDAY)
def test_everyday_questions_are_read_the_short_way(text: str) -> None:
    assert check_agreement(text)


def test_the_corpus_of_the_language_agrees() -> None:
    texts = [text for texts in SAME for text in texts]
    assert sum(check_agreement(text, LANGUAGE) for text in texts) > len(texts) / 3
    for marked, _ in REFUSED:
        assert plain_predicate(marked.replace("¦", ""), LANGUAGE) is None


def check_strange_texts() -> list[str]:
    """Those that are read the short way."""
    return [text for text in NASTY if check_agreement(text)]


def test_strange_texts_agree() -> None:
    read = check_strange_texts()
    assert {"smoker = 'a -- b'", "5 IN (age, 3)", "NOT x IS NULL", "date > 3"} <= set(read)
    assert len(read) < len(NASTY) / 2


@pytest.mark.parametrize("schema", [SCHEMA, LANGUAGE], ids=["strange names", "language"])
def test_refusals_are_those_of_the_long_way(schema: Schema) -> None:
    for text in NASTY:
        assert outcome(parse_predicate, text, schema) == outcome(full_predicate, text, schema)


def outcome(parse: Callable[[str, Schema], Predicate], text: str, schema: Schema) -> object:
    """The tree, or the refusal and its place."""
    try:
        return parse(text, schema)
    except QueryError as error:
        return str(error), error.position


operands = st.sampled_from(
    [
        "age",
        "small",
        "income",
        "smoker",
        "insured",
        "visit",
        "order",
        "x",
        "0",
        "1",
        "-1",
        "40",
        "2.50",
        "-0.5",
        "119",
        "1e2",
        "TRUE",
        "false",
        "'yes'",
        "'it''s'",
        "'2021-06-01'",
        "'7'",
    ]
)
signs = st.sampled_from(["<", "<=", ">", ">=", "=", "==", "<>", "!="])
lists = st.lists(operands, min_size=1, max_size=3).map(", ".join)
leaves = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(["age", "small", "income"]), signs, st.integers(-5, 130)),
    st.builds("{} {} {}".format, operands, signs, operands),
    st.builds("{} {}BETWEEN {} AND {}".format, operands, st.sampled_from(["", "NOT "]), operands, operands),
    st.builds("{} {}IN ({})".format, operands, st.sampled_from(["", "NOT "]), lists),
    st.builds("{} IS {}".format, operands, st.sampled_from(["NULL", "NOT NULL", "TRUE", "NOT FALSE"])),
    st.sampled_from(["insured", "x", "TRUE", "FALSE", "age"]),
)
texts = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["AND", "and", "OR", "or"]), inner),
        st.builds("{} ({})".format, st.sampled_from(["", "NOT", "x AND", "x OR", "NOT x AND"]), inner),
        st.builds("NOT {}".format, inner),
    ),
    max_leaves=5,
)


@quick
@given(texts)
@example("small < age AND (small IS NOT NULL AND age > 3)")
def test_generated_questions_agree(text: str) -> None:
    check_agreement(text)


@quick
@given(texts, st.randoms(use_true_random=False))
def test_disturbed_questions_agree(text: str, chance: random.Random) -> None:
    """Characters lost, doubled, exchanged or put in, where they hurt."""
    letters = list(text)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(letters) + 1)
        strange = chance.choice(
            ["", *" \t\n\r\x0b\u00a0'\"-/*.,;()<>=!eExX0159_$@#:?\\[]{}|&~%+`\u0131\uff1d\u0665"]
        )
        letters[place : place + chance.randint(0, 2)] = strange * chance.randint(1, 2)
    check_agreement("".join(letters))


VISITS = Schema(
    cost=Integer(0, 999), ward=Category("surgery", "(", "it, is"), urgent=Boolean(), count=Integer(0, 9)
)
UNITS = UnitSchema(
    "person",
    {"age": Integer(0, 120), "sum": Integer(0, 9)},
    {"visits": Events(VISITS, 20, "cost"), "drugs": Events(Schema(dose=Integer(0, 50)), 3)},
    "people",
)
AGGREGATES = [
    "count(visits, cost > 100) >= 3",
    "age > 40 AND exists(visits, ward = 'surgery')",
    "EXISTS (visits, ward IN ('(', 'it, is')) OR NOT count ( drugs ) = 0",
    "sum(visits.cost) < 100 AND NOT (max(cost, urgent) IS NULL OR first(visits.ward) = 'surgery')",
    "count(drugs) < count(visits, urgent AND (cost > 3 OR cost < 2))",
    "cost > 100 AND count(drugs, dose > 3) > 1",
]
ODD = [
    "count(visits, cost > 100 >= 3",
    "count(visits)) > 3",
    "(count(visits) > 3",
    "count(DISTINCT visits) > 3",
    "count(count(visits)) > 3",
    "exists(SELECT 1 FROM visits WHERE visits.person = people.person AND cost > 3)",
    "exists(visits) = TRUE",
    "exists(visits) exists(visits)",
    "exists(visits)(visits)",
    "count(visits).cost > 3",
    "people.count(visits) > 3",
    "sum > 3 AND sum(cost) > 3 AND count > 3",
    "counts(visits) > 3",
    "count(visits, cost > 1e2) > 3",
    "count(visits, cost > 100 -- x) > 3",
    "visits.cost > 3 AND age > 2",
    "count(doctors) > 3",
    "sum(age) > 3",
    "avg(cost, dose > 3) > 3",
    "'count(visits)' = 3",
    '"count"(visits) > 3',
    "count(visits)\u00a0> 3",
]


@pytest.mark.parametrize("schema", [UNITS, UNITS.of_rows("visits")], ids=["units", "events"])
def test_aggregates_of_events_agree(schema: Schema) -> None:
    read = [text for text in (*AGGREGATES, *ODD) if check_agreement(text, schema)]
    assert set(AGGREGATES) - set(read) <= {AGGREGATES[-1]} and len(read) < len(AGGREGATES) + 5
    for text in (*AGGREGATES, *ODD):
        assert outcome(parse_predicate, text, schema) == outcome(full_predicate, text, schema)
        found = plain_names(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("holdfast.query.across.plain_names", lambda text: None)
            assert found is None or sorted(found) == sorted(_names(text)), text


@quick
@given(st.sampled_from(AGGREGATES), st.randoms(use_true_random=False))
def test_disturbed_aggregates_agree(text: str, chance: random.Random) -> None:
    letters = list(text)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(letters) + 1)
        letters[place : place + chance.randint(0, 2)] = chance.choice(["", *" '\"-,.()<=5x"])
    check_agreement("".join(letters), UNITS)


def test_the_corpus_catches_an_aggregate_that_ends_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes the names in an aggregate for columns of the question."""
    monkeypatch.setattr(quick_parser, "AGGREGATES", frozenset())
    assert [text for text in AGGREGATES if check_agreement(text, UNITS)] == []


def test_the_corpus_catches_a_reader_that_passes_over_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quick_parser, "_PLAIN", re.compile("(?s:.*)"))
    with pytest.raises(QueryError):
        check_strange_texts()


def test_the_corpus_catches_a_not_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_parser, "NEGATED", {sign: sign for sign in NEGATED})
    with pytest.raises(AssertionError):
        check_strange_texts()


def test_the_corpus_catches_runs_that_are_joined_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(self: quick_parser._Reader, parts: quick_parser._Run, found: object, positive: bool) -> None:
        parts.append(self.joined(found, positive))  # type: ignore[arg-type]

    monkeypatch.setattr(quick_parser._Reader, "_add", add)
    with pytest.raises(AssertionError):
        check_strange_texts()


def test_the_corpus_catches_names_that_are_taken_for_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes every declared name for a column, also 5 and 'no'."""

    def operand(token: str, schema: Schema) -> Operand:
        if token in schema:
            return Column(token)
        raise quick_parser._NotPlain

    monkeypatch.setattr(quick_parser, "_operand", operand)
    quick_parser._compared.cache_clear()
    with pytest.raises((AssertionError, QueryError)):
        check_strange_texts()
    quick_parser._compared.cache_clear()
