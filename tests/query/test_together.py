"""Totals that are added up together are those of each by itself, and those that plain Python finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.query import measurement
from holdfast.query.distinct import DistinctMeasurement
from holdfast.query.group_keys import groups_of
from holdfast.query.measurement import Measurement, Shared
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.statistic import Statistic, workload
from holdfast.query.together import Together, together

SCHEMA = hf.Schema(
    x=hf.Integer(-9, 9), y=hf.Real(0, 1), far=hf.Integer(-(2**46), 2**46), g=hf.Category("a", "b")
)
ROWS = 3000


def block() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(5)
    y = draw.random(ROWS)
    y[::7] = np.nan
    return {
        "x": draw.integers(0, 20, ROWS).astype(SCHEMA["x"].dtype),  # the last is NULL
        "y": y,
        "far": draw.integers(3 * 2**45, 2**47, ROWS).astype(SCHEMA["far"].dtype),
        "g": draw.integers(0, 3, ROWS).astype(SCHEMA["g"].dtype),
    }


def joined(kind: Any, *values: str, where: str = "x > -3", by: str | None = None) -> Together:
    first, *rest = (parse_expression(value, SCHEMA) for value in values)
    asked = Statistic(
        kind,
        parse_predicate(where, SCHEMA),
        first,
        by=None if by is None else groups_of(SCHEMA, by),
        values=tuple(rest),
    )
    found = together(workload(asked, SCHEMA, ROWS).measurements)
    assert found is not None
    return found


CASES = {
    "a variance": joined("variance", "y"),
    "a correlation by groups": joined("correlation", "x", "y", by="g"),
    "a ratio, each known by itself": joined("ratio", "x", "y", where="g = 'a' OR y > 0.5"),
    "numbers beyond what float64 adds exactly": joined("ratio", "far", "x", by="g"),
    "a regression": joined("regression", "y", "x", "x * x"),
    "a mean by groups": joined("mean", "y", by="g"),
}


@pytest.mark.parametrize("case", CASES)
def test_they_are_those_of_each_by_itself(case: str) -> None:
    both, rows = CASES[case], block()
    apart = both.apart(both.totals(rows))
    assert sum(map(len, apart)) == both.size
    for each, found in zip(both.measurements, apart, strict=True):
        assert found.tolist() == each.totals(rows).tolist()


def test_they_are_those_of_plain_python() -> None:
    """Counts, and sums of x and its squares around 3, by groups, of the rows where x > -3."""
    both, rows = joined("variance", "x", by="g"), block()
    known = [(int(x) - 9, g) for x, g in zip(rows["x"], rows["g"], strict=True) if 6 < x < 19]
    expected = [
        [sum((x - 3) ** power for x, g in known if g == group) for group in (0, 1)] for power in range(3)
    ]
    assert [each.tolist() for each in both.apart(both.totals(rows))] == expected


def test_a_part_that_is_shared_by_mistake_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin takes what was worked out for one condition for that of another."""
    both, rows = CASES["a ratio, each known by itself"], block()
    right = both.totals(rows).tolist()
    once = Shared.once
    monkeypatch.setattr(Shared, "once", lambda self, part, found: once(self, part[0], found))
    assert both.totals(rows).tolist() != right


def test_sums_that_leave_float64_need_both_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    both, rows = CASES["numbers beyond what float64 adds exactly"], block()
    rows["far"] = rows["far"] | np.uint64(1)
    right = both.totals(rows).tolist()
    known = [
        (int(a) - 2**46, int(g))
        for a, x, g in zip(rows["far"], rows["x"], rows["g"], strict=True)
        if 6 < x < 19
    ]
    assert right[:2] == [sum(a for a, g in known if g == group) for group in (0, 1)]
    monkeypatch.setattr(measurement, "_EXACT", 2**80)  # the broken twin trusts float64
    assert both.totals(rows).tolist() != right


def test_only_sums_over_the_same_groups_are_joined() -> None:
    one, grouped = Measurement(SCHEMA, Always()), Measurement(SCHEMA, Always(), by=groups_of(SCHEMA, "g"))
    assert together([one]) is None
    assert together([one, grouped]) is None
    assert together([one, DistinctMeasurement(SCHEMA, Always())]) is None
    assert together([one, one]) is not None
