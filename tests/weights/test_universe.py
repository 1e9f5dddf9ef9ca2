"""A universe and its regions mean what the evaluator means; weights are what a dense vector would be."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesis.people import COLUMNS, EDGES, SCHEMA, people

import holdfast as hf
from holdfast.errors import InputError, QueryError
from holdfast.query.evaluate import evaluate
from holdfast.query.parse import parse_predicate
from holdfast.query.region import GRID, Region, factors, region
from holdfast.query.universe import Universe, universe
from holdfast.weights.cell_counts import CellCounts
from holdfast.weights.distribution import Weights, views
from holdfast.weights.marginals import marginals

UNIVERSE = universe(SCHEMA, COLUMNS, EDGES)
KNOWN = universe(SCHEMA, COLUMNS, EDGES, nulls=[])
UNIVERSES = pytest.mark.parametrize("made", [UNIVERSE, KNOWN], ids=["with NULL", "without NULL"])
CONDITIONS = [
    "sick",
    "NOT sick",
    "group IN ('x', 'z') AND grade > 2",
    "level IN (1, 3, 5) AND NOT sick",
    "grade < level",
    "grade + 1 = level OR sick",
    "sick OR group = 'y'",
    "share >= 0.25 AND grade = 3",
    "grade = 1 OR level = 2",
    "TRUE",
    "FALSE",
    "level <> 4 AND grade = 2 AND sick",
    "sick IS NULL",
    "grade IS NOT NULL",
]


def dense(one: Region, made: Universe = UNIVERSE) -> np.ndarray[Any, Any]:
    """The query as a 0/1 vector of the universe's size: the form that regions avoid."""
    if one.steps is not None:
        return np.broadcast_to(one.steps / GRID, made.shape).copy()
    cells = np.zeros(made.shape)
    for box in one.boxes or ():
        for view in views(cells.reshape(-1), made.shape, box):
            view += 1
    return cells


def with_nulls(rows: int) -> dict[str, Any]:
    """People of whom some columns are unknown, each independently of the others."""
    draw, data = np.random.default_rng(8), people(rows)
    return {
        name: np.where(draw.random(rows) < 0.2, None, values.astype(object)) for name, values in data.items()
    }


@UNIVERSES
@pytest.mark.parametrize("where", CONDITIONS)
def test_a_region_counts_the_rows_that_the_evaluator_finds(where: str, made: Universe) -> None:
    table = hf.open(people(5000) if made is KNOWN else with_nulls(5000), SCHEMA)
    counts = CellCounts(table._source, made)
    block = next(iter(table._source.scan(COLUMNS)))
    truth = int(evaluate(parse_predicate(where, SCHEMA), block, SCHEMA).sum())
    assert counts.steps(region(made, where)) == GRID * truth
    assert int((dense(region(made, where), made).reshape(-1) * counts.cells).sum()) == truth


def test_a_null_in_one_column_leaves_the_others_known() -> None:
    data = people(1000)
    data["share"][:300] = np.nan
    source = hf.open(data, SCHEMA)._source
    counts, known = CellCounts(source, UNIVERSE), CellCounts(source, KNOWN)
    assert counts.cells.sum() == 1000
    assert counts.steps(region(UNIVERSE, "sick")) == int(data["sick"].sum()) * GRID
    assert counts.steps(region(UNIVERSE, "share IS NULL")) == 300 * GRID
    assert counts.steps(region(UNIVERSE, "share >= 0")) == 700 * GRID
    assert known.cells.sum() == 700  # without a group for NULL such rows are outside, and satisfy nothing
    assert known.steps(region(KNOWN, "TRUE")) == 700 * GRID


def test_every_row_lies_in_a_cell_unless_its_value_or_null_has_no_group() -> None:
    assert UNIVERSE.is_complete
    assert not KNOWN.is_complete
    assert not universe(SCHEMA, ["share"], {"share": [0.0, 0.5]}).is_complete
    assert not universe(SCHEMA, ["share", "sick"], nulls=["sick"]).is_complete
    assert (UNIVERSE.points, KNOWN.points) == (UNIVERSE.size, KNOWN.size + 1)


def test_a_condition_through_a_bin_is_refused_and_the_bin_is_named() -> None:
    with pytest.raises(
        QueryError, match=r"0\.25 to 0\.5 of 'share', which is share >= 0\.25 AND share < 0\.5"
    ):
        region(UNIVERSE, "share > 0.3")
    with pytest.raises(QueryError, match=r"0\.5 to 1 of 'share', which is share >= 0\.5;"):
        region(UNIVERSE, "share >= 0.5 AND share < 1")  # the last bin includes its end
    coarse = universe(SCHEMA, ["grade", "level"], {"grade": [0, 2, 4]})
    with pytest.raises(QueryError, match="more than one value"):
        region(coarse, "grade < level")
    with pytest.raises(QueryError, match="not in this universe"):
        region(coarse, "sick")


@pytest.mark.parametrize(
    ("columns", "edges"),
    [
        ([], None),
        ("sick", None),
        (["sick", "sick"], None),
        (["sick"], {"grade": [0, 4]}),
        (["gone"], None),
        ([["sick"]], None),
        (["share"], [0, 1]),
    ],
)
def test_bad_universes_are_refused(columns: Any, edges: Any) -> None:
    with pytest.raises((InputError, QueryError)):
        universe(SCHEMA, columns, edges)


def test_too_many_cells_are_refused_with_their_number() -> None:
    with pytest.raises(InputError, match="2,304"):
        universe(SCHEMA, COLUMNS, EDGES, most=2303)
    with pytest.raises(InputError, match="630"):
        universe(SCHEMA, COLUMNS, EDGES, nulls=[], most=600)
    for bad in ("sick", ["gone"], 7):
        with pytest.raises(InputError, match="nulls="):
            universe(SCHEMA, ["sick"], nulls=bad)  # type: ignore[arg-type]


def test_sql_and_blocks_agree_on_the_cells() -> None:
    data = with_nulls(2000)
    frame = polars.DataFrame({name: values.tolist() for name, values in data.items()})
    memory, engine = hf.open(data, SCHEMA), hf.open(frame, SCHEMA)
    for made in (UNIVERSE, KNOWN, universe(SCHEMA, COLUMNS, {"share": [0.1, 0.6]}, nulls=["share", "grade"])):
        first, second = (CellCounts(t._source, made).cells for t in (memory, engine))
        assert np.array_equal(first, second)
        assert (first.sum() == 2000) == made.is_complete


def test_the_block_path_for_large_universes_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    source = hf.open(with_nulls(3000), SCHEMA)._source
    before = CellCounts(source, UNIVERSE).cells
    monkeypatch.setattr("holdfast.weights.cell_counts._PUSHED_DOWN", 1)
    assert np.array_equal(before, CellCounts(source, UNIVERSE).cells)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([UNIVERSE, KNOWN]),
    st.lists(st.tuples(st.sampled_from(CONDITIONS), st.floats(-3, 3)), max_size=80),
)
def test_weights_are_the_dense_vector(made: Universe, updates: list[tuple[str, float]]) -> None:
    weights, vector, outside = Weights(made), np.ones(made.shape), 0.0 if made.is_complete else 1.0
    for where, eta in updates:
        one = region(made, where)
        vector = vector * np.exp(eta * dense(one, made))
        weights.tilt(one, eta)
    total = vector.sum() + outside
    for where in CONDITIONS:
        one = region(made, where)
        assert weights.fraction(one) == pytest.approx((vector * dense(one, made)).sum() / total, abs=1e-9)
    cells, rest = weights.probabilities()
    assert cells.sum() + rest == pytest.approx(1, abs=1e-9)


def test_a_twin_that_forgets_the_total_is_caught() -> None:
    class Forgetful(Weights):
        def tilt(self, region: Region, eta: float) -> None:
            before = self._total
            super().tilt(region, eta)
            self._total = before

    weights = Forgetful(UNIVERSE)
    weights.tilt(region(UNIVERSE, "sick"), 1.0)
    cells, rest = weights.probabilities()
    assert abs(cells.sum() + rest - 1) > 0.1


def test_factors_are_products_of_numbers_on_the_grid() -> None:
    numbers = {"grade": [0.0, 0.25, 0.5, 0.75, 1.0], "sick": [0.5, 1.0]}
    one = factors(UNIVERSE, numbers)
    assert not one.is_counting
    data = people(4000)
    counts = CellCounts(hf.open(data, SCHEMA)._source, UNIVERSE)
    truth = (data["grade"] / 4 * np.where(data["sick"], 1.0, 0.5)).sum()
    assert counts.steps(one) / GRID == pytest.approx(truth, abs=4000 / GRID)
    again = factors(UNIVERSE, json.loads(one.text))
    assert (one.factors, again.factors, region(UNIVERSE, "sick").factors) == (2, 2, None)
    assert again.steps is not None
    assert one.steps is not None
    assert np.array_equal(again.steps, one.steps)
    with pytest.raises(InputError):
        factors(UNIVERSE, {"grade": [0, 0, 0, 0, 1.5]})
    with pytest.raises(InputError):
        factors(UNIVERSE, {"grade": [0, 0, 0, 0, math.nan]})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shared_marginals_are_the_plain_sums(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    subsets = st.lists(st.sets(st.integers(0, len(shape) - 1)).map(lambda s: tuple(sorted(s))), min_size=1)
    wanted = data.draw(subsets)
    cells = np.arange(math.prod(shape), dtype=np.int64).reshape(shape) ** 2 % 101
    found = marginals(cells, wanted)
    for axes in wanted:
        others = tuple(i for i in range(len(shape)) if i not in axes)
        assert np.array_equal(found[axes], cells.sum(others))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_views_cover_a_box_once(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    box = tuple(
        data.draw(st.tuples(st.integers(0, size - 1), st.integers(1, size)).filter(lambda r: r[0] < r[1]))
        for size in shape
    )
    flat = np.zeros(math.prod(shape))
    uncut = views(flat.copy(), shape, box, cached=False)  # as a GPU has it
    assert len(uncut) == 1 and uncut[0].size == math.prod(last - first for first, last in box)
    for view in views(flat, shape, box):
        view += 1
    truth = np.zeros(shape)
    truth[tuple(slice(*side) for side in box)] = 1
    assert np.array_equal(flat.reshape(shape), truth)
