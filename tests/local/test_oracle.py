"""What clients accept, what the server accepts, and how estimates read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast.local as local
from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits

ORACLES: list[Any] = [
    local.KaryResponse(300, 1.0),
    local.SymmetricUnary(10, 1.0),
    local.OptimisedUnary(10, 1.0),
    local.LocalHashing(10, 1.0),
    local.HadamardResponse(10, 1.0),
    local.SubsetSelection(10, 1.0),
    local.CountMeanSketch(1.0, width=8, hashes=4, seed=1),
    local.HadamardSketch(1.0, width=8, hashes=4, seed=1),
    local.Rappor(seed=1),
]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: type(o).__name__)
def test_values_outside_are_clamped_not_told(oracle: Any) -> None:
    """An error, or a report of another shape, would tell. Extreme integers of every type are clamped."""
    top = oracle.domain - 1
    wild = np.array([-(2**63), -1, 2**63 - 1, top])
    tame = np.array([0, 0, top, top])
    assert (
        oracle.randomize(wild, ReplayedBits(2)).tobytes() == oracle.randomize(tame, ReplayedBits(2)).tobytes()
    )
    huge = np.array([2**64 - 1], dtype=np.uint64)
    assert (
        oracle.randomize(huge, ReplayedBits(2)).tobytes()
        == oracle.randomize([top], ReplayedBits(2)).tobytes()
    )


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: type(o).__name__)
def test_shapes(oracle: Any) -> None:
    assert len(oracle.randomize(3)) == 1
    assert len(oracle.randomize(np.zeros(0, dtype=np.int64))) == 0
    reports = oracle.randomize(np.zeros(100, dtype=np.int8))
    assert len(reports) == 100
    assert 8 * reports.nbytes / 100 >= oracle.report_bits > 8 * reports.nbytes / 100 - 16
    joined = np.concatenate([reports, oracle.randomize([1])])
    assert oracle.estimate(joined, items=[0, 1]).users == 101


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("values", [[0.5], ["secret-0815"], [[1, 2]], [None]], ids=repr)
def test_values_of_other_types_are_refused_without_telling(oracle: Any, values: Any) -> None:
    with pytest.raises(InputError) as error:
        oracle.randomize(values)
    assert "0815" not in str(error.value)


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: type(o).__name__)
def test_foreign_reports_are_refused(oracle: Any) -> None:
    mine = oracle.randomize([0, 1])
    for reports in (
        mine[:0],
        [],
        np.array([1.5]),
        np.array(["x"]),
        np.zeros((2, 3, 4), dtype=np.uint8),
        np.uint8(1),
    ):
        with pytest.raises(InputError):
            oracle.estimate(reports, items=[0])
    for confidence in (0.0, 1.0, -1, 2, True, float("nan"), "x"):
        with pytest.raises(InputError, match="confidence"):
            oracle.estimate(mine, items=[0], confidence=confidence)
    for items in ([], [-1], [oracle.domain], [0, 0], [0.5], [[0]], ["x"]):
        with pytest.raises(InputError, match="item"):
            oracle.estimate(mine, items=items)


@pytest.mark.parametrize("index", [0, 3, 4, 6, 7, 8])
def test_forged_numbers_are_refused(index: int) -> None:
    """A bucket, column, row or cohort which no client can send; unchecked it would index out of bounds."""
    oracle = ORACLES[index]
    reports = oracle.randomize([0, 1])
    name = {3: "y", 6: "row", 7: "column", 8: "cohort"}.get(index)
    (reports if name is None else reports[name])[0] = 255 if index == 4 else 65535
    if index == 4:
        assert oracle.columns == 16
    with pytest.raises(InputError, match="forged"):
        oracle.estimate(reports, items=[0])


def test_coin_and_mean_inputs() -> None:
    coin, mean = local.RandomizedResponse(0.75), local.OneBitMean(1.0, 1.0)
    assert set(coin.randomize([True, False] * 50)) <= {0, 1}
    assert coin.estimate([1, 0, True]).users == 3
    for reports in ([2, 0], [-1], [0.5], [], 1):
        with pytest.raises(InputError):
            coin.estimate(reports)
    with pytest.raises(InputError):
        coin.randomize(["yes"])
    with pytest.raises(InputError):
        mean.randomize(["1"])
    with pytest.raises(InputError, match="forged"):
        mean.estimate(np.array([2], dtype=np.uint8))
    assert len(mean.randomize([np.nan, np.inf, -np.inf, 0.5])) == 4


def test_large_domains_need_items() -> None:
    oracle = local.LocalHashing(1 << 40, 1.0)
    with pytest.raises(InputError, match="items"):
        oracle.estimate(oracle.randomize([1, 2, 3]))


def test_estimates_read_well() -> None:
    oracle = local.KaryResponse(30, 3.0)
    found = oracle.estimate(oracle.randomize(np.repeat(np.arange(30), 40), ReplayedBits(8)))
    text = str(found)
    assert len(text.splitlines()) == 12
    assert "30 items" in text
    assert "epsilon 3" in text
    assert "20 more" in text
    one = found[7]
    assert (one.value, one.low, one.high) == (found.value[7], found.low[7], found.high[7])
    assert str(one).startswith(f"{one.value:.5g} in [")
    assert len(one) == 1
    assert one.top(3) is one
    with pytest.raises(KeyError):
        found[99]
    with pytest.raises(KeyError):
        one[7]
    top = found.top(4)
    assert top.value.tolist() == sorted(found.value.tolist(), reverse=True)[:4]
    assert np.array_equal(top.value, found.value[top.items])
