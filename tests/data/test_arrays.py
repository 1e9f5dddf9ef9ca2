"""Arrays, lists and pandas columns of every dtype into codes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from data.tables import whole
from holdfast.data.open import open_source
from holdfast.errors import DataError
from holdfast.query.schema import Boolean, Category, ColumnType, Date, Integer, Real, Schema

AGE, KIND = Integer(0, 120), Category("no", "yes", "1", "true")


def codes(column: ColumnType, values: Any) -> list[Any]:
    return whole(open_source({"x": values}, Schema(x=column)))["x"].tolist()


def framed(column: ColumnType, values: Any) -> list[Any]:
    return whole(open_source(pd.DataFrame({"x": values}), Schema(x=column)))["x"].tolist()


def test_arrays_are_copied() -> None:
    ages, incomes, flags = np.array([1, 2], np.uint8), np.array([0.5, 1.0]), np.array([0, 1], np.uint8)
    data = {"age": ages, "income": incomes, "flag": flags}
    source = open_source(data, Schema(age=Integer(0, 120), income=Real(0, 1), flag=Boolean()))
    before = {name: array.copy() for name, array in whole(source).items()}
    ages[:], incomes[:], flags[:] = 99, 0.75, 0
    data["age"] = np.array([5, 5])
    for name, array in whole(source).items():
        np.testing.assert_array_equal(array, before[name])


def test_a_list_keeps_what_each_value_is() -> None:
    """NumPy would make texts of the first list and floats of the second."""
    assert codes(KIND, ["no", 1, True, None, 2]) == [0, 2, 3, 4, 4]
    assert codes(Integer(0, 2**61), [2**60 + 1, 0.5, None]) == [2**60 + 1, 1, 2**61 + 1]
    assert codes(AGE, [2**70, -(2**70), 5]) == [120, 0, 5]
    assert codes(AGE, (7, 8)) == [7, 8]
    assert codes(Real(0, 9), [1.5, 2.5]) == [1.5, 2.5]
    assert codes(Boolean(), [True, False]) == [1, 0]


def test_masked_arrays() -> None:
    assert codes(AGE, np.ma.MaskedArray([1, 2, 3], mask=[0, 1, 0])) == [1, 121, 3]
    assert codes(Boolean(), np.ma.MaskedArray([True, False], mask=[1, 0])) == [2, 0]


PANDAS: list[tuple[ColumnType, Any, list[Any]]] = [
    (AGE, pd.Series([1, None, 300], dtype="Int64"), [1, 121, 120]),
    (AGE, pd.Series([1, None, 300], dtype="Float64"), [1, 121, 120]),
    (AGE, pd.Series([1, 2], dtype="uint8"), [1, 2]),
    (AGE, pd.Series([2**62 + 1, None], dtype="UInt64"), [120, 121]),
    (Integer(0, 2**61), pd.Series([2**60 + 1, None], dtype="Int64"), [2**60 + 1, 2**61 + 1]),
    (AGE, pd.Series([1, None], dtype="int64[pyarrow]"), [1, 121]),
    (KIND, pd.Series(["yes", None, "?"], dtype="str"), [1, 4, 4]),
    (KIND, pd.Series(["yes", None, "?"], dtype="string"), [1, 4, 4]),
    (KIND, pd.Series(["yes", None, "?"], dtype="string[pyarrow]"), [1, 4, 4]),
    (KIND, pd.Series(["yes", None, 1, True], dtype="object"), [1, 4, 2, 3]),
    (KIND, pd.Series(["yes", None, "?"], dtype="category"), [1, 4, 4]),
    (AGE, pd.Series([7, None, 500], dtype="category"), [7, 121, 120]),
    (AGE, pd.Series(["7", None, "x"], dtype="str"), [7, 121, 121]),
    (Boolean(), pd.Series([True, None], dtype="boolean"), [1, 2]),
    (Boolean(), pd.Series([True, None], dtype="bool[pyarrow]"), [1, 2]),
    (Date("2020-01-01", "2020-12-31"), pd.Series(["2020-01-03", None], dtype="datetime64[ns]"), [2, 366]),
    (
        Date("2020-01-01", "2020-12-31"),
        pd.Series([datetime.date(2020, 1, 3), None], dtype="object"),
        [2, 366],
    ),
    (Date("2020-01-01", "2020-12-31"), pd.Series(["2020-01-03"], dtype="datetime64[ns, UTC]"), [2]),
    (
        Date("2020-01-01", "2020-12-31"),
        pd.Series(["2020-01-03 23:00"], dtype="datetime64[ns]").dt.tz_localize("America/New_York"),
        [3],
    ),
]


@pytest.mark.parametrize(
    ("column", "values", "expected"), PANDAS, ids=[str(case[1].dtype) for case in PANDAS]
)
def test_pandas_dtypes(column: ColumnType, values: Any, expected: list[Any]) -> None:
    assert framed(column, values) == expected
    assert codes(column, values) == expected


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (AGE, np.array([1j])),
        (AGE, np.array(["2020-01-01"], dtype="datetime64[D]")),
        (Real(0, 1), np.array([(1, 2)], dtype="i4,i4")),
        (Date("2020-01-01", "2021-01-01"), np.array([1, 2])),
        (Boolean(), np.array([1], dtype="timedelta64[s]")),
    ],
)
def test_impossible_dtypes_name_the_column(column: ColumnType, values: Any) -> None:
    with pytest.raises(DataError, match="column 'x'"):
        codes(column, values)


@pytest.mark.parametrize("values", [5, None, "text", np.zeros((2, 2)), np.array(3), object()])
def test_things_that_are_not_columns(values: Any) -> None:
    with pytest.raises(DataError, match="flat array"):
        codes(AGE, values)


def test_unequal_lengths_and_missing_columns() -> None:
    schema = Schema(a=AGE, b=AGE)
    with pytest.raises(DataError, match="equal length, got 'a': 2, 'b': 3"):
        open_source({"a": [1, 2], "b": [1, 2, 3]}, schema)
    for data in ({"a": [1]}, pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1], 0: [2]})):
        with pytest.raises(DataError, match="expected a column 'b', got data with 'a'"):
            open_source(data, schema)
    with pytest.raises(DataError, match="no columns"):
        open_source({}, schema)
    with pytest.raises(DataError, match="2 of that name"):
        open_source(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "b"]), schema)


def test_other_columns_are_ignored() -> None:
    source = open_source({"x": [1], "names": ["secret"], 3: object()}, Schema(x=AGE))
    assert whole(source)["x"].tolist() == [1]
