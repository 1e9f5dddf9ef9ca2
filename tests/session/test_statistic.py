"""Own functions of a row: clipped, put on a grid, answered by every mechanism."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.query.function import FunctionMeasurement, RowFunction
from holdfast.query.predicate import Always
from holdfast.query.statistic import Sensitivity, Statistic, workload


def wealth(rows: Any) -> Any:
    return rows["income"] / 9_000 * (rows["smoker"] == 1)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "votes"])
def test_the_mean_of_a_function(table: hf.Table, data: dict[str, Any], mechanism: str) -> None:
    session = table.session(target="table", epsilon=20.0, delta=1e-6, confidence=1 - 1e-9)
    clipped = np.clip(np.clip(data["income"], -1_000, 9_000) / 9_000, 0, 1)
    truth = float(np.nanmean(clipped * (data["smoker"] == "yes")))
    answer = session.statistic(wealth, ["income", "smoker"], within=0.2, mechanism=mechanism)
    assert answer.low <= truth <= answer.high
    assert answer.question == "mean of wealth(income, smoker)"
    assert answer.mechanism == mechanism


def test_every_call_is_charged(table: hf.Table) -> None:
    session = table.session(target="table", rho=1.0)
    answers = [session.statistic(wealth, ["income", "smoker"], rho=0.1) for _ in range(2)]
    assert session.spent.rho == pytest.approx(0.2, rel=1e-4)
    assert answers[0].value != answers[1].value


def test_values_outside_are_clipped(table: hf.Table) -> None:
    session = table.session(target="table", rho=100.0, confidence=1 - 1e-9)
    for value, expected in ((7.0, 1.0), (-7.0, 0.0), (np.inf, 1.0), (-np.inf, 0.0)):
        answer = session.statistic(lambda rows, v=value: np.full(len(rows["age"]), v), ["age"], rho=1.0)
        assert answer.low <= expected <= answer.high


def test_where_a_function_is_nan_the_row_is_unknown_as_in_a_mean(
    table: hf.Table, data: dict[str, Any]
) -> None:
    """A tenth of the incomes is NULL: the mean over the known ones is far outside if NULL counts as 0."""
    session = table.session(target="table", rho=100.0, confidence=1 - 1e-9)
    answer = session.statistic(lambda rows: (rows["income"] + 1_000) / 10_000, ["income"], rho=1.0)
    told = session.mean("income", rho=1.0)
    truth = float(np.nanmean(np.clip(data["income"], -1_000, 9_000) + 1_000) / 10_000)
    assert answer.low <= truth <= answer.high
    assert answer.low <= (told.value + 1_000) / 10_000 <= answer.high
    assert answer.width < 0.01 < truth - 0.9 * truth  # so the interval tells the two laws apart


def test_nothing_known_is_nothing_told(table: hf.Table) -> None:
    session = table.session(target="table", rho=100.0)
    answer = session.statistic(lambda rows: np.full(len(rows["age"]), np.nan), ["age"], rho=1.0)
    assert (answer.low, answer.high) == (0.0, 1.0)


def moves(measured: Callable[[NDArray[np.float64]], NDArray[np.int64]]) -> Sensitivity:
    """The largest moves of both totals between any two rows, by brute force over what a function may say."""
    values = np.array([0.0, 1e-9, 0.3, 0.5, 1.0, 7.0, -7.0, np.inf, -np.inf, np.nan])
    pairs = measured(values).T
    apart = [a - b for a, b in itertools.product(pairs, pairs)]
    return Sensitivity(max(int(np.abs(v).sum()) for v in apart), max(int((v * v).sum()) for v in apart))


def test_no_value_of_a_function_moves_the_totals_further_than_claimed() -> None:
    schema = hf.Schema(x=hf.Real(0, 1))
    asked = Statistic("mean", Always(), function=RowFunction(lambda rows: rows["x"], ("x",)))
    work = workload(asked, schema, rows=100)

    def measured(values: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.array([m.units(values) for m in work.measurements if isinstance(m, FunctionMeasurement)])

    assert moves(measured) == work.sensitivity()
    heavier = moves(lambda values: measured(values) * np.array([[1], [2]]))  # the twin weighs presence more
    assert heavier.l1 > work.sensitivity().l1


def test_both_totals_come_of_one_call(table: hf.Table) -> None:
    """A function that says NaN at every second call would else move the pair further than was paid for."""
    session, calls = table.session(target="table", rho=100.0, confidence=1 - 1e-9), itertools.count()
    blocks = sum(1 for _ in table._source.scan(("age",)))

    def moody(rows: Any) -> Any:
        return np.full(len(rows["age"]), np.nan if next(calls) >= blocks else 1.0)

    answer = session.statistic(moody, ["age"], rho=1.0)
    assert next(calls) == blocks
    assert answer.low > 0.99


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
