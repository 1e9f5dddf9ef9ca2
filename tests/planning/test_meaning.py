"""What a text means: a number, or a condition with where it is false."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.errors import InputError, QueryError
from holdfast.planning.meaning import is_flag, number_or_condition, refuse_twice, varying
from holdfast.query.parse import parse_expression, parse_predicate

SCHEMA = hf.Schema(x=hf.Integer(0, 9), t=hf.Boolean())


def test_a_number_is_a_number_and_a_condition_knows_where_it_is_false() -> None:
    assert number_or_condition("x + 1", SCHEMA) == (parse_expression("x + 1", SCHEMA), None, None)
    value, chosen, against = number_or_condition("t OR x > 3", SCHEMA)
    assert value is None and chosen == parse_predicate("t OR x > 3", SCHEMA)
    assert against == parse_predicate("NOT t AND x <= 3", SCHEMA)
    with pytest.raises(QueryError, match="no arithmetic"):
        number_or_condition("t + 1", SCHEMA)


def test_what_has_nothing_to_ask_is_refused() -> None:
    with pytest.raises(QueryError, match="the same number"):
        varying("x", parse_predicate("x = 3", SCHEMA), SCHEMA)
    with pytest.raises(QueryError, match="one number twice"):
        refuse_twice(*(parse_expression(text, SCHEMA) for text in ("x + 1", "1 + x")))
    with pytest.raises(InputError, match="True or False"):
        is_flag("sample", 1)
