"""Every value finds its code: each column type against a slow reading of one value at a time."""

from __future__ import annotations

import datetime
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import DataError, HoldfastError, InputError, SchemaError
from holdfast.query.column import column_from_json
from holdfast.query.schema import Boolean, Category, Date, Integer, Real

SIZES = [
    (Integer(0, 0), np.uint8),
    (Integer(0, 254), np.uint8),
    (Integer(0, 255), np.uint16),
    (Integer(-1, 65_534), np.uint32),
    (Integer(-(2**62), -1), np.uint64),
    (Boolean(), np.uint8),
    (Category("a"), np.uint8),
    (Category(*range(255)), np.uint8),
    (Category(*range(256)), np.uint16),
    (Date("2020-01-01", "2020-01-01"), np.uint8),
    (Date("0001-01-01", "9999-12-31"), np.uint32),
    (Real(0, 1), np.float64),
]


@pytest.mark.parametrize(("column", "dtype"), SIZES)
def test_the_smallest_dtype_that_also_holds_null(column: Any, dtype: Any) -> None:
    assert column.dtype == np.dtype(dtype)
    if column.codes is None:
        assert math.isnan(column.null_code)
    else:
        assert column.null_code == column.codes
        assert np.iinfo(column.dtype).max >= column.null_code


def test_integer_reads_any_kind_of_array() -> None:
    column = Integer(0, 120)
    for given_, codes in [
        (np.array([True, False]), [1, 0]),
        (np.array([-128, 0, 127], np.int8), [0, 0, 120]),
        (np.array([2**64 - 1, 0], np.uint64), [120, 0]),
        (np.array([-(2**63), 2**63 - 1, 7]), [0, 120, 7]),
        (np.array([1.5, 2.5, -0.5, -0.6, np.nan, np.inf, -np.inf, 1e300]), [2, 3, 0, 0, 121, 120, 0, 120]),
        (np.array([1.5, np.nan, np.inf], np.float16), [2, 121, 120]),
        (np.array([1e4000, 7.25], np.longdouble), [120, 7]),
        (
            np.array(["12", " 7.5 ", "x", "", "1e999", "-inf", "nan", "+3", "1_0"]),
            [12, 8, 121, 121, 120, 0, 121, 3, 121],
        ),
        (np.array([b"12", b"\xff"]), [12, 121]),
        (
            np.array([None, 3, 2.5, "4", object(), b"3", float("nan"), pd.NA], object),
            [121, 3, 3, 4, 121, 121, 121, 121],
        ),
        (np.array([Decimal("2.5"), Fraction(5, 2), 10**500, True], object), [3, 3, 120, 1]),
        (np.array([], object), []),
    ]:
        found = column.encode_array(given_)
        assert found.dtype == np.uint8
        assert found.tolist() == codes, given_


def test_rounding_is_exact_where_adding_a_half_is_not() -> None:
    """The twin floor(x + 0.5) in float64 gives 1 for the number just below one half."""
    below_half = math.nextafter(0.5, 0)
    odd = 2.0**52 + 1
    column = Integer(0, 2**53)
    assert column.encode_array(np.array([below_half, odd])).tolist() == [0, int(odd)]
    assert [math.floor(below_half + 0.5), math.floor(odd + 0.5)] != [0, int(odd)]


def test_whole_numbers_beyond_2_53_are_exact() -> None:
    column = Integer(-(2**61), 2**61 - 1)
    values = [2**53 + 1, -(2**53) - 1, 2**61 - 1, -(2**61)]
    for given_ in (np.array(values), np.array(values, object), np.array([str(v) for v in values])):
        assert column.decode(column.encode_array(given_)) == values
    assert column.decode(column.encode_array(np.array([Decimal(2**53 + 1)], object))) == [2**53 + 1]


@settings(deadline=None)
@given(
    st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 2**62 - 1)).filter(lambda t: sum(t) <= 2**62),
    st.lists(
        st.integers() | st.floats() | st.decimals() | st.fractions() | st.none() | st.booleans() | st.text()
    ),
)
def test_integer_objects_against_exact_fractions(bounds: tuple[int, int], values: list[Any]) -> None:
    column = Integer(bounds[0], bounds[0] + bounds[1])

    def slow(value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, str):
            try:
                value = float(value) if not value.lstrip("+-").isdigit() else int(value)
            except ValueError:
                return None
        if (isinstance(value, Decimal) and value.is_nan()) or math.isnan(value):
            return None
        if value in (math.inf, -math.inf):
            return column.hi if value > 0 else column.lo
        return min(max(math.floor(Fraction(value) + Fraction(1, 2)), column.lo), column.hi)

    plain = [
        v for v in values if not isinstance(v, str) or (v.isascii() and "_" not in v and v.isprintable())
    ]
    array = np.empty(len(plain), dtype=object)
    array[:] = plain
    assert column.decode(column.encode_array(array)) == [slow(v) for v in plain]


@given(st.lists(st.floats()))
def test_real_clamps_and_has_one_zero(values: list[float]) -> None:
    column = Real(-1, 1e9)
    for array in (np.array(values, np.float64), np.array(values, object)):
        found = column.encode_array(array)
        assert found.dtype == np.float64
        for value, code in zip(values, found.tolist(), strict=True):
            if math.isnan(value):
                assert math.isnan(code)
            else:
                assert code == min(max(value, -1.0), 1e9)
                assert code != 0 or math.copysign(1, code) == 1
    assert column.decode(np.array([np.nan, 0.5])) == [None, 0.5]


def test_real_reads_any_kind_of_array() -> None:
    column = Real(0, 10)
    for given_, codes in [
        (np.array([True]), [1.0]),
        (np.array([2**63 - 1, -5]), [10.0, 0.0]),
        (np.array([1e4000, 0.25], np.longdouble), [10.0, 0.25]),
        (np.array(["0.1", "x", "inf", "1e-400"]), [0.1, None, 10.0, 0.0]),
        (
            np.array([10**500, Decimal("1E-999999999"), Decimal("sNaN"), Fraction(1, 3), None], object),
            [10, 0, None, 1 / 3, None],
        ),
    ]:
        assert column.decode(column.encode_array(given_)) == codes
    signalling = np.array([0x7FA00000], np.uint32).view(np.float32)
    assert column.decode(column.encode_array(signalling)) == [None]


def test_boolean_reads_words_and_numbers() -> None:
    column = Boolean()
    for given_, codes in [
        (np.array([True, False]), [1, 0]),
        (np.array([0, 2, -1]), [0, 1, 1]),
        (np.array([0.0, np.nan, 0.5]), [0, 2, 1]),
        (np.array(["TRUE", " no ", "1", "f", "maybe", ""]), [1, 0, 1, 0, 2, 2]),
        (np.array([None, True, "y", 0, object()], object), [2, 1, 1, 0, 2]),
    ]:
        assert column.encode_array(given_).tolist() == codes
    assert column.decode(np.array([0, 1, 2], np.uint8)) == [False, True, None]


@pytest.mark.parametrize(
    "labels", [("no", "yes", "it's", "7"), tuple(map(str, range(300))), ("", "é", "日本", "true")]
)
def test_category_finds_labels_in_any_kind_of_array(labels: tuple[str, ...]) -> None:
    column = Category(*labels)
    values = [*labels, "unknown", "N O", labels[0] + " ", "zz"]
    expected = [column.labels.index(v) if v in labels else column.null_code for v in values]
    for array in (np.array(values), np.array(values, object), np.array(values, np.dtypes.StringDType())):
        found = column.encode_array(array)
        assert found.dtype == column.dtype
        assert found.tolist() == expected
    assert column.encode_array(np.array([], "U3")).tolist() == []


def test_category_reads_numbers_as_their_text() -> None:
    column = Category(3, "2.5", "true", -1, "0")
    assert column.labels == ("3", "2.5", "true", "-1", "0")
    for given_, codes in [
        (np.array([3, -1, 4]), [0, 3, 5]),
        (np.array([3.0, 2.5, np.nan, -0.0, np.inf]), [0, 1, 5, 4, 5]),
        (np.array([True, False]), [2, 5]),
        (np.array([3, 3.0, "3", True, None, float("nan"), 10**5000], object), [0, 0, 0, 2, 5, 5, 5]),
    ]:
        assert column.encode_array(given_).tolist() == codes


def test_date_reads_days() -> None:
    column = Date("2020-01-01", datetime.date(2026, 12, 31))
    last = column.codes - 1
    for given_, codes in [
        (np.array(["2020-01-02", "NaT", "1000-01-01", "3000-01-01"], "M8[s]"), [1, column.codes, 0, last]),
        (np.array(["2020-01-02T23:59:59", "1969-12-31T23:00"], "M8[ns]"), [1, 0]),
        (np.array([2**62, -(2**62), 51], "M8[Y]"), [last, 0, 366]),
        (
            np.array(["2020-01-03", "2021-02-29", "2020-01-03T10:00", "3 Jan", "20200103"]),
            [2, *[column.codes], 2, *[column.codes] * 2],
        ),
        (
            np.array([datetime.datetime(2020, 1, 5, 3), None, 5, pd.NaT, pd.Timestamp("2020-01-05")], object),
            [4, *[column.codes] * 3, 4],
        ),
    ]:
        assert column.encode_array(given_).tolist() == codes, given_
    assert column.decode(np.array([0, last, column.null_code])) == [column.first, column.last, None]


@pytest.mark.parametrize(
    ("column", "array"),
    [
        (Integer(0, 1), np.array([1j])),
        (Integer(0, 1), np.array(["2020-01-01"], "M8[D]")),
        (Real(0, 1), np.array([1], "m8[s]")),
        (Boolean(), np.array([(1,)], dtype=[("a", int)])),
        (Category("a"), np.array([1j])),
        (Date("2020-01-01", "2020-01-02"), np.array([1])),
        (Integer(0, 1), np.array([[1]])),
        (Integer(0, 1), [1]),
    ],
)
def test_impossible_arrays_are_refused_by_dtype_alone(column: Any, array: Any) -> None:
    with pytest.raises(DataError):
        column.encode_array(array)


@settings(deadline=None)
@given(st.data())
def test_reading_is_total(data: st.DataObject) -> None:
    numbers = (
        st.booleans() | st.integers() | st.floats() | st.decimals() | st.fractions() | st.complex_numbers()
    )
    nothing = st.sampled_from([None, pd.NA, pd.NaT, np.datetime64("NaT"), object()])
    junk = numbers | nothing | st.text() | st.binary() | st.dates() | st.datetimes()
    values = data.draw(st.lists(junk, max_size=20))
    array = np.empty(len(values), dtype=object)
    array[:] = values
    for column, _ in SIZES:
        codes = column.encode_array(array)
        assert codes.dtype == column.dtype
        assert codes.shape == (len(values),)
        assert column.codes is None or all(0 <= c <= column.null_code for c in codes.tolist())
        assert np.array_equal(column.encode_array(array[::-1])[::-1], codes, equal_nan=column.codes is None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Integer(1, 0),
        lambda: Integer(0.0, 1),
        lambda: Integer(True, 2),
        lambda: Integer("0", 1),
        lambda: Integer(float("nan"), 1),
        lambda: Integer(-(2**62) - 1, 0),
        lambda: Integer(-(2**61), 2**61),
        lambda: Real(1, 0),
        lambda: Real(1, 1),
        lambda: Real(float("nan"), 1),
        lambda: Real(0, float("inf")),
        lambda: Real(-1e308, 1e308),
        lambda: Real(0, 10**400),
        lambda: Real("0", 1),
        lambda: Real(False, 1),
        lambda: Real(0, 1, 0),
        lambda: Real(0, 1, -0.5),
        lambda: Real(0, 1, 2),
        lambda: Real(0, 1, 1e-12),
        lambda: Real(0, 1, float("nan")),
        lambda: Real(0, 5e-324),
        lambda: Category(),
        lambda: Category("a", "a"),
        lambda: Category(1, "1"),
        lambda: Category(True),
        lambda: Category(1.5),
        lambda: Category(None),
        lambda: Category("a\0"),
        lambda: Category("\ud800"),
        lambda: Date("2020-01-02", "2020-01-01"),
        lambda: Date("2020-02-30", "2021-01-01"),
        lambda: Date("yesterday", "2021-01-01"),
        lambda: Date(5, 6),
        lambda: column_from_json({"type": "integer", "lo": 0}),
        lambda: column_from_json({"type": "integer", "lo": 0, "hi": 1, "step": 2}),
        lambda: column_from_json({"type": "text"}),
        lambda: column_from_json({"type": "category", "labels": "abc"}),
        lambda: column_from_json({}),
        lambda: column_from_json(None),
    ],
)
def test_declarations_that_contradict_themselves(make: Any) -> None:
    with pytest.raises(SchemaError):
        make()


def test_single_codes_and_values() -> None:
    assert Integer(5, 9).code(7) == 2
    assert Integer(5, 9).value(2) == 7
    assert Boolean().code(True) == 1
    assert Boolean().value(0) is False
    assert Category("a", 2).code(2) == 1
    assert Category("a", 2).value(1) == "2"
    assert Date("2020-01-01", "2020-12-31").code("2020-01-03") == 2
    assert Date("2020-01-01", "2020-12-31").value(2) == datetime.date(2020, 1, 3)
    wrong: list[tuple[Any, Any]] = [
        (Integer(5, 9), 7.0),
        (Integer(5, 9), True),
        (Boolean(), 1),
        (Category("a"), "b"),
        (Date("2020-01-01", "2020-12-31"), "x"),
    ]
    for column, value in wrong:
        with pytest.raises(InputError):
            column.code(value)


@pytest.mark.parametrize("column", [column for column, _ in SIZES])
def test_columns_are_values(column: Any) -> None:
    assert column_from_json(column.to_json()) == column
    assert pickle.loads(pickle.dumps(column)) == column  # noqa: S301 - our own bytes
    assert hash(column_from_json(column.to_json())) == hash(column)
    assert eval(repr(column)) == column  # noqa: S307 - our own text
    with pytest.raises((AttributeError, TypeError)):  # CPython says TypeError for a class attribute
        column.lo = 3


def test_no_message_holds_a_value_from_the_data() -> None:
    with pytest.raises(HoldfastError) as error:
        Integer(0, 1).encode_array(np.array([123456789 + 1j]))
    assert "123456789" not in str(error.value)
