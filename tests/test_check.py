"""The checks of what a caller may pass: what is taken, what is refused, and in which sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from holdfast import check
from holdfast.errors import InputError

NO_NUMBERS = [
    True, np.True_, None, "1", b"1", "", 1j, [1], (0.5,), {}, object(), np.array([0.5]), np.zeros((1, 1)),
    float("nan"), float("inf"), float("-inf"), np.float64("nan"), np.float32("inf"), Decimal("NaN"),
    Decimal("Infinity"), Decimal("1e999999999"),
]  # fmt: skip
"""What no check takes for a number."""

HUGE = [10**400, -(10**400), 10**10_000, Fraction(10**400), Fraction(1, 10**400)]
"""What no float holds; the third is too long to print as well."""

CHECKS: list[Callable[[str, object], object]] = [
    check.positive, check.probability, check.between, check.integer, check.whole, check.exact,
    check.exact_positive, check.written, check.rational,
]  # fmt: skip

SENTENCE = re.compile(r"expected [^;]+ for rows, got [^;]+(; .+)?")


def refused(function: Callable[..., object], *given: object) -> str:
    """The sentence of the refusal."""
    with pytest.raises(InputError) as caught:
        function("rows", *given)
    assert SENTENCE.fullmatch(str(caught.value)), caught.value
    assert len(str(caught.value)) < 200
    return str(caught.value)


@pytest.mark.parametrize("function", CHECKS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: f"{type(value).__name__}-{value!s:.8}")
def test_what_is_no_number_is_refused_in_one_sentence(
    function: Callable[[str, object], object], value: object
) -> None:
    refused(function, value)


@pytest.mark.parametrize("value", HUGE, ids=["above", "below", "long", "fraction", "small"])
@pytest.mark.parametrize(
    "function", [check.positive, check.probability, check.exact_positive, check.integer, check.whole],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_what_no_float_holds_is_refused(function: Callable[[str, object], object], value: object) -> None:
    refused(function, value)


def test_a_number_of_any_kind_is_taken_for_what_it_is() -> None:
    for half in (0.5, Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.float64(0.5), np.array(0.5)):
        for function in (check.positive, check.probability, check.between):
            told = function("rows", half)
            assert type(told) is float and told == 0.5
        for exactly in (check.exact, check.exact_positive, check.written):
            told_exactly = exactly("rows", half)
            assert type(told_exactly) is Fraction and told_exactly == Fraction(1, 2)
    for three in (3, np.int8(3), np.uint64(3)):
        for counted in (check.integer, check.whole):
            assert type(counted("rows", three)) is int and counted("rows", three) == 3
        assert check.rational("rows", three) / 2**70 * 2**70 == 3  # NumPy's integers would overflow


def test_positive_and_between_keep_their_ends() -> None:
    assert check.positive("rows", 5e-324) == 5e-324
    assert "a positive finite number" in refused(check.positive, 0)
    refused(check.positive, -0.1)
    assert check.between("rows", -3) == -3.0
    assert check.between("rows", 0, 0.0) == 0.0
    assert check.between("rows", 1, 0.0, 1.0) == 1.0
    assert "of at least 0 for" in refused(check.between, -1e-9, 0.0)
    assert "from 0 to 1 for" in refused(check.between, 1.1, 0.0, 1.0)
    assert refused(check.between, 2, 0.0, 1.0, "less").endswith("; less")


def test_a_probability_is_strictly_inside() -> None:
    assert check.probability("rows", 0.3, 0.5) == 0.3
    for value in (0, 1, 1.0, -0.1, 1.5, 1 - Fraction(1, 10**30), 5e-324):
        assert "strictly between 0 and 1" in refused(check.probability, value)
    assert "between 0 and 0.5" in refused(check.probability, 0.5, 0.5)


def test_an_integer_is_no_float_and_a_whole_number_may_be_one() -> None:
    assert check.whole("rows", 1e6) == check.whole("rows", Fraction(10**6)) == 10**6
    assert check.whole("rows", 0.0, 0) == 0
    assert check.integer("rows", 10**400, most=None) == 10**400
    for value in (1.0, np.float64(2), Fraction(3)):
        assert "an integer of at least 1" in refused(check.integer, value)
    for function in (check.integer, check.whole):
        refused(function, 0)
        refused(function, 2.5)
        assert "from 0 to 4" in refused(function, 5, 0, 4)


def test_exact_is_the_binary_number_and_written_the_decimal_one() -> None:
    assert check.exact("rows", 0.1) == Fraction(0.1) != Fraction(1, 10)
    assert check.written("rows", 0.1) == check.written("rows", np.float64(0.1)) == Fraction(1, 10)
    assert check.exact("rows", 0) == 0
    refused(check.exact_positive, 0)
    refused(check.exact, -1)
    assert "its unit" in refused(check.exact, 1e-310)
    assert "bits" in refused(check.exact, Fraction(10**2000, 10**2000 + 1))


def test_a_sampler_takes_no_float() -> None:
    assert check.rational("rows", Fraction(1, 3), most=1) == Fraction(1, 3)
    assert check.rational("rows", 0) == 0
    for value in (0.5, np.float64(1), Decimal(1), -1):
        assert "Fraction or an int of at least 0" in refused(check.rational, value)
    with pytest.raises(InputError, match="above 0 and at most 4 for scale, got 5"):
        check.rational("scale", 5, positive=True, most=4)
    with pytest.raises(InputError, match="above 0 for scale, got 0"):
        check.rational("scale", 0, positive=True)


def test_a_name_is_readable_and_a_refusal_does_not_repeat_it() -> None:
    assert check.printable("team", "Zoë 1") == "Zoë 1"
    for value in ("", "  ", "a\n", "\x1b[31m", "\u202e", 3, None, b"a"):
        with pytest.raises(
            InputError, match=r"^expected printable characters for team, got something else; choose"
        ):
            check.printable("team", value)
    with pytest.raises(InputError, match="1 to 3 printable characters"):
        check.printable("team", "four", 3)
    assert check.printable("team", "abc", 3) == "abc"


def test_a_word_is_one_of_some() -> None:
    assert check.one_of("mode", "sqrt", ("tree", "sqrt")) == "sqrt"
    with pytest.raises(
        InputError, match=r'^expected "tree" or "sqrt" for mode, got \'tre\'; did you mean tree\?$'
    ):
        check.one_of("mode", "tre", ("tree", "sqrt"))
    for value in (None, 1, ["tree"], "x" * 10_000):
        with pytest.raises(InputError, match="for mode, got"):
            check.one_of("mode", value, ("tree", "sqrt"))


def test_what_was_given_is_shown_in_few_characters() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    assert check.shown(0.5) == "0.5"
    assert check.shown(10**10_000) == "int"
    assert check.shown(Hostile()) == "Hostile"
    assert check.shown("x" * 1000).endswith("… (str)")
    assert len(check.shown(["x" * 1000])) < 80
