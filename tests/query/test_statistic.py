"""The claimed sensitivity is the true one: every table, every replaced row, by brute force."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.query.grouping import grouping
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.statistic import Sensitivity, Statistic, Workload, workload

SCHEMA = hf.Schema(x=hf.Integer(-2, 3), y=hf.Real(-1.0, 2.0, step=0.5), c=hf.Category("a", "b", "c"))
ROWS = [
    {"x": x, "y": y, "c": c}
    for x, y, c in itertools.product([0, 2, 5, 6], [-1.0, 0.2, 2.0, np.nan], [0, 1, 3])
]  # codes: x = -2, 0, 3 and NULL; c = a, b and NULL


def statistic(kind: Any, value: str | None, where: str, by: str | None) -> Statistic:
    return Statistic(
        kind,
        parse_predicate(where, SCHEMA),
        None if value is None else parse_expression(value, SCHEMA),
        None if by is None else grouping(SCHEMA, by),
    )


CASES = [
    statistic(kind, value, where, by)
    for kind, value in (
        ("fraction", None),
        ("count", None),
        ("sum", "x"),
        ("sum", "y"),
        ("sum", "x * x - 3"),
        ("mean", "x"),
        ("mean", "y"),
    )
    for where in ("x > -1", "x IS NOT NULL OR x IS NULL")
    for by in (None, "c")
]


def totals(work: Workload, row: dict[str, float]) -> np.ndarray[Any, Any]:
    block = {name: np.array([row[name]], dtype=SCHEMA[name].dtype) for name in SCHEMA}
    return np.concatenate([m.totals(block) for m in work.measurements])


def observed(work: Workload) -> tuple[Sensitivity, Sensitivity]:
    """The largest moves over all pairs of rows: replacing one, and adding or removing one.

    A total is a sum over rows, so a move does not depend on the rest of the table.
    """
    single = [totals(work, row) for row in ROWS]
    moves = [a - b for a, b in itertools.product(single, single)]

    def largest(vectors: list[Any]) -> Sensitivity:
        return Sensitivity(
            max(int(np.abs(v).sum()) for v in vectors), max(int((v * v).sum()) for v in vectors)
        )

    return largest(moves), largest(single)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_row_moves_the_totals_further_than_claimed(case: Statistic) -> None:
    work = workload(case, SCHEMA, rows=100)
    replaced, added = observed(work)
    claimed, claimed_added = work.sensitivity(), work.sensitivity("add-remove")
    assert replaced.l1 <= claimed.l1
    assert replaced.l2_squared <= claimed.l2_squared
    assert added.l1 <= claimed_added.l1
    assert added.l2_squared <= claimed_added.l2_squared


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.kind in ("fraction", "count") and not isinstance(c.where, Always)], ids=str
)
def test_the_claim_is_attained_by_counts(case: Statistic) -> None:
    work = workload(case, SCHEMA, rows=100)
    assert observed(work) == (work.sensitivity(), work.sensitivity("add-remove"))


def test_forgetting_that_a_row_touches_two_groups_is_caught() -> None:
    """The broken twin claims the sensitivity of one group for the whole vector."""
    work = workload(statistic("count", None, "x > -1", "c"), SCHEMA, rows=100)
    replaced, _ = observed(work)
    broken = workload(statistic("count", None, "x > -1", None), SCHEMA, rows=100).sensitivity()
    assert replaced.l1 > broken.l1
    assert replaced.l2_squared > broken.l2_squared


def test_known_sensitivities() -> None:
    def of(*arguments: Any) -> Sensitivity:
        return workload(statistic(*arguments), SCHEMA, rows=100).sensitivity()

    assert of("count", None, "x > 0", None) == Sensitivity(1, 1)
    assert of("histogram", None, "x > 0", "c") == Sensitivity(2, 2)
    assert of("sum", "x", "c = 'a'", None) == Sensitivity(5, 25)
    assert of("sum", "x", "x > 0", None) == Sensitivity(3, 9), "no row that is chosen is below 0"


def test_two_groups_are_several() -> None:
    schema = hf.Schema(b=hf.Boolean())
    work = workload(Statistic("count", Always(), by=grouping(schema, "b")), schema, rows=100)
    assert work.size == 2 and work.sensitivity() == Sensitivity(2, 2)


def test_a_count_beside_a_sum_costs_nothing_more() -> None:
    """From -4 to 4 the sum of a mean moves by 8, and the count, of weight 4, not at all."""
    schema = hf.Schema(x=hf.Integer(-4, 4))
    work = workload(Statistic("mean", Always(), parse_expression("x", schema)), schema, rows=100)
    assert work.sensitivity() == Sensitivity(8, 64)
    assert work.sensitivity("add-remove") == Sensitivity(8, 32)


def test_a_contribution_below_zero_counts_by_its_size() -> None:
    """-3 - x is in [-6, -1]: a row that appears moves the sum by up to 6, one that changes groups moves two."""
    alone = workload(statistic("sum", "-3 - x", "x > 0", None), SCHEMA, rows=100)
    assert alone.sensitivity() == alone.sensitivity("add-remove") == Sensitivity(6, 36)
    grouped = workload(statistic("sum", "-3 - x", "x > 0", "c"), SCHEMA, rows=100)
    assert grouped.sensitivity() == Sensitivity(12, 72)
    assert grouped.sensitivity("add-remove") == Sensitivity(6, 36)


def test_totals_are_exact_where_floats_are_not() -> None:
    """The rounding attack of Casacuberta et al.: one row changes a float sum by far more than its bound."""
    schema = hf.Schema(v=hf.Real(-(2.0**52), 2.0**52))
    values = np.array([2.0**52] + [0.5] * 4096 + [-(2.0**52)])
    work = workload(
        Statistic("sum", parse_predicate("v IS NOT NULL", schema), parse_expression("v", schema)),
        schema,
        len(values),
    )
    results = set()
    for seed in range(200):
        order = np.random.default_rng(seed).permutation(len(values))
        results.add(int(sum(m.totals({"v": values[order]}) for m in work.measurements)[0]))
    assert len(results) == 1
    floats = {
        float(np.cumsum(values[np.random.default_rng(s).permutation(len(values))])[-1]) for s in range(50)
    }
    assert len(floats) > 1  # the control: the same sum in floating point depends on the order


def keeps_it_whole(asked: Statistic, schema: hf.Schema, rows: int) -> Workload:
    """The twin: a question that keeps what keeps it."""
    if not hasattr(asked, "_totals"):
        object.__setattr__(asked, "_totals", (schema, rows, workload(asked, schema, rows)))
    return asked._totals[2]  # type: ignore[return-value]


@pytest.mark.parametrize(("working", "free"), [(workload, True), (keeps_it_whole, False)])
def test_a_question_is_free_when_nobody_asks_it_any_more(
    working: Callable[[Statistic, hf.Schema, int], Workload], free: bool
) -> None:
    """And its totals, with their compiled conditions: a gateway has some hundred new ones a second, and Python's
    collector comes seldom."""
    gc.disable()
    try:
        asked = statistic("mean", "x", "y > 0", "c")
        part = weakref.ref(working(asked, SCHEMA, 10).measurements[0])
        assert part() is not None, "kept with its question"
        assert working(asked, SCHEMA, 10).measurements[0] is part()
        del asked
        assert (part() is None) == free
    finally:
        gc.enable()
