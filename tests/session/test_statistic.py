"""Own functions of a row: clipped, put on a grid, answered by every mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf


def wealth(rows: Any) -> Any:
    return rows["income"] / 9_000 * (rows["smoker"] == 1)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "votes", "subsampled-laplace"])
def test_the_mean_of_a_function(table: hf.Table, data: dict[str, Any], mechanism: str) -> None:
    session = table.session(target="table", epsilon=20.0, delta=1e-6, confidence=1 - 1e-9)
    clipped = np.clip(np.nan_to_num(np.clip(data["income"], -1_000, 9_000)) / 9_000, 0, 1)
    truth = float(np.mean(clipped * (data["smoker"] == "yes")))
    answer = session.statistic(wealth, ["income", "smoker"], within=0.05, mechanism=mechanism)
    assert answer.low <= truth <= answer.high
    assert answer.question == "mean of wealth(income, smoker)"
    assert answer.mechanism == mechanism


def test_every_call_is_charged(table: hf.Table) -> None:
    session = table.session(target="table", rho=1.0)
    answers = [session.statistic(wealth, ["income", "smoker"], rho=0.1) for _ in range(2)]
    assert session.spent.rho == pytest.approx(0.2, rel=1e-4)
    assert answers[0].value != answers[1].value


def test_values_outside_are_clipped_and_no_numbers_count_as_zero(table: hf.Table) -> None:
    session = table.session(target="table", rho=100.0, confidence=1 - 1e-9)
    for value, expected in ((7.0, 1.0), (-7.0, 0.0), (np.nan, 0.0), (np.inf, 1.0)):
        answer = session.statistic(lambda rows, v=value: np.full(len(rows["age"]), v), ["age"], rho=1.0)
        assert answer.low <= expected <= answer.high


def test_bad_functions(table: hf.Table) -> None:
    session = table.session(target="table", rho=1.0)
    for function, columns, error in (
        (wealth, ["nothing"], hf.QueryError),
        (wealth, "age", hf.QueryError),
        (wealth, [], hf.QueryError),
        (7, ["age"], hf.InputError),
    ):
        with pytest.raises(error):
            session.statistic(function, columns, rho=0.1)  # type: ignore[arg-type]
    assert session.spent == 0


def _by_an_error(rows: Any) -> Any:
    raise type(f"AgeIs{rows['age'][0]:.0f}", (Exception,), {})


def _by_a_shape(rows: Any) -> Any:
    return np.zeros(int(rows["age"][0]) + 1)


def _by_its_name(rows: Any) -> Any:
    _by_its_name.__name__ = f"age_{rows['age'][0]:.0f}"
    return 1 / 0


@pytest.mark.parametrize("function", [_by_an_error, _by_a_shape, _by_its_name])
def test_a_function_that_fails_says_nothing_of_the_rows(table: hf.Table, function: Any) -> None:
    """Its words are fixed, and no cause hangs on the error."""
    session = table.session(target="table", rho=1.0)
    with pytest.raises(hf.DataError) as refused:
        session.statistic(function, ["age"], rho=0.1, mechanism="gaussian")
    assert str(refused.value) == (
        "expected one number for each row from the function, got something else; try it on rows of your own"
    )
    assert refused.value.__cause__ is None and refused.value.__context__ is None
