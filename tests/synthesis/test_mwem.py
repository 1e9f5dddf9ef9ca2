"""MWEM and synthetic tables: what is charged, what is released, and files that open again."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import BudgetError, InputError
from holdfast.ledger import MemoryLedger
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.query.evaluate import evaluate
from holdfast.query.parse import parse_predicate
from holdfast.query.universe import universe
from holdfast.session.session import Session
from holdfast.synthesis import SyntheticTable, Workload, all_marginals, mwem, quality, synthesize
from holdfast.weights.cell_counts import CellCounts

from .people import COLUMNS, EDGES, SCHEMA, binary, people

ROWS = 30_000
SCHEMA2, DATA = binary(ROWS, 8)
NAMES = list(SCHEMA2)
UNIVERSE = universe(SCHEMA2, NAMES)
QUERIES = all_marginals(UNIVERSE, 2)


def session_of(**options: Any) -> Session:
    return hf.open(DATA, SCHEMA2, ledger=MemoryLedger()).session(**{"rho": 5.0, "target": "table"} | options)


def errors(session: Session, made: SyntheticTable, queries: list[str]) -> np.ndarray[Any, Any]:
    work = Workload(made.universe, queries)
    truth = work.answers(CellCounts(session._desk.for_the_owner(), made.universe).cells) / ROWS
    found: np.ndarray[Any, Any] = np.abs(truth - work.answers(made.weights.probabilities()[0]))
    return found


def test_a_workload_answers_as_the_rows_do() -> None:
    data = people(4000)
    made = universe(SCHEMA, COLUMNS, EDGES)
    queries = [
        "sick",
        "grade < level",
        "group IN ('x', 'z') AND grade = 2",
        "share < 0.25",
        "FALSE",
        "sick AND grade = 4",
    ]
    truth = [
        data["sick"],
        data["grade"] < data["level"],
        np.isin(data["group"], ["x", "z"]) & (data["grade"] == 2),
        data["share"] < 0.25,
        np.zeros(4000, dtype=bool),
        data["sick"] & (data["grade"] == 4),
    ]
    counts = CellCounts(hf.open(data, SCHEMA)._source, made)
    assert Workload(made, queries).answers(counts.cells).tolist() == [int(t.sum()) for t in truth]


def test_all_marginals_are_a_partition_for_each_pair() -> None:
    assert len(QUERIES) == 28 * 4
    counts = Workload(UNIVERSE, QUERIES).answers(
        CellCounts(session_of()._desk.for_the_owner(), UNIVERSE).cells
    )
    assert np.all(counts.reshape(28, 4).sum(axis=1) == ROWS)


def test_it_learns_the_workload_within_its_budget() -> None:
    session = session_of()
    with replayed(ReplayedBits(1)):
        made = mwem(session, NAMES, QUERIES, rho=0.05, rounds=20)
    assert float(session.spent) <= 0.05
    assert float(session.spent) == pytest.approx(0.05, rel=1e-4)
    uniform = np.abs(
        Workload(UNIVERSE, QUERIES).answers(CellCounts(session._desk.for_the_owner(), UNIVERSE).cells) / ROWS
        - 0.25
    )
    found = errors(session, made, QUERIES)
    assert uniform.max() > 0.3
    assert found.max() < 0.03
    assert found.mean() < 0.01


def test_rows_of_one_person_are_charged_as_a_group() -> None:
    for budget in ({"rho": 0.9}, {"epsilon": 3.0}):
        session = hf.open(DATA, SCHEMA2, rows_per_unit=3, ledger=MemoryLedger()).session(
            **budget, target="table"
        )
        mwem(session, NAMES, QUERIES, **budget, rounds=5)
        limit = next(iter(budget.values()))
        assert 0.99 * limit <= float(session.spent) <= limit


def test_a_workload_may_be_made_before_and_must_fit() -> None:
    session, work = session_of(), Workload(UNIVERSE, QUERIES)
    first = mwem(session, NAMES, work, rho=0.1, rounds=3)
    second = mwem(session, NAMES, QUERIES, rho=0.1, rounds=3)
    assert np.array_equal(first.weights.probabilities()[0], second.weights.probabilities()[0])
    with pytest.raises(InputError, match="over others"):
        mwem(session, NAMES[::-1], work, rho=0.1)


def test_a_pure_session_has_laplace_noise() -> None:
    session = session_of(rho=None, epsilon=30.0)
    with replayed(ReplayedBits(1)):
        made = mwem(session, NAMES, QUERIES, epsilon=20.0, rounds=10)
    assert float(session.spent) == pytest.approx(20.0, rel=1e-4)
    assert errors(session, made, QUERIES).max() < 0.2


def test_the_noise_of_a_marginal_covers_both_cells_that_a_row_moves() -> None:
    """The charge is for squared sensitivity 2; a twin that says 1 would be charged half as much."""
    session = session_of()
    mwem(session, NAMES, QUERIES, rho=0.08, rounds=4)
    event = hf.privacy.from_json(json.loads(next(iter(session._ledger.entries(session.name))).event))
    assert isinstance(event, hf.privacy.events.Repeat)
    choice, noise = event.event.events  # type: ignore[union-attr]
    assert event.count == 4
    assert noise.sensitivity_squared == 2
    assert noise.variance >= Fraction(2) / (2 * Fraction(0.01))
    assert float(choice.epsilon) ** 2 / 8 <= 0.01
    twin = hf.privacy.events.Gaussian(1, noise.variance)
    assert hf.privacy.zcdp(twin).rho < 0.6 * hf.privacy.zcdp(noise).rho


def test_coming_back_repeats_the_release() -> None:
    session = session_of()
    first = mwem(session, NAMES, QUERIES, rho=0.1, rounds=5)
    spent = float(session.spent)
    second = mwem(session, NAMES, QUERIES, rho=0.1, rounds=5)
    assert np.array_equal(first.weights.probabilities()[0], second.weights.probabilities()[0])
    assert float(session.spent) == spent
    other = mwem(session, NAMES, QUERIES, rho=0.1, rounds=5, name="other")
    assert not np.array_equal(first.weights.probabilities()[0], other.weights.probabilities()[0])
    assert float(session.spent) > spent


def test_nothing_is_read_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr(sys.modules["holdfast.synthesis.mwem"], "CellCounts", read)
    with pytest.raises(BudgetError):
        mwem(session_of(rho=0.01), NAMES, QUERIES, rho=0.1)
    session = session_of()
    with pytest.raises(AssertionError, match="rows were read"):
        mwem(session, NAMES, QUERIES, rho=0.1)
    assert float(session.spent) > 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_synthetic_rows_are_a_table_with_the_same_schema(tmp_path: Path, suffix: str) -> None:
    data = people(20_000)
    data["share"][::10] = np.nan
    session = hf.open(data, SCHEMA).session(rho=5.0, target="table")
    queries = ["sick AND grade = 4", "group = 'x'", "share < 0.25", "grade < level"]
    made = synthesize(session, COLUMNS, queries, method="mwem", rho=2.0, edges=EDGES)
    path = made.write(tmp_path / f"people{suffix}", 20_000, bits=ReplayedBits(3))
    schema = hf.Schema.from_toml(path.with_suffix(".toml"))
    assert schema == made.schema
    again = hf.open(path, schema)
    assert again.rows == 20_000
    counts = CellCounts(again._source, made.universe)
    found = Workload(made.universe, queries).answers(counts.cells) / 20_000
    assert np.abs(found - [made.fraction(q) for q in queries]).max() < 0.03
    with pytest.raises(InputError, match="csv or"):
        made.write(tmp_path / "people.xlsx", 10)


def test_columns_are_null_about_as_often_as_in_the_data_each_by_itself() -> None:
    draw, data = np.random.default_rng(4), people(20_000)
    data["share"][draw.random(20_000) < 0.2] = np.nan
    data["group"] = np.where(draw.random(20_000) < 0.05, None, data["group"])
    session = hf.open(data, SCHEMA).session(rho=5.0, target="table")
    queries = all_marginals(universe(SCHEMA, COLUMNS, EDGES), 2)
    made = mwem(session, COLUMNS, queries, rho=2.0, edges=EDGES)
    rows = made.rows(20_000)
    null = {name: np.mean([value is None for value in values]) for name, values in rows.items()}
    truth = {"sick": 0.0, "group": 0.05, "grade": 0.0, "level": 0.0, "share": 0.2}
    assert null == pytest.approx(truth, abs=0.02)
    assert made.fraction("share IS NULL AND sick") == pytest.approx(
        np.mean(np.isnan(data["share"]) & data["sick"]), abs=0.01
    )


def test_a_column_that_was_not_measured_is_not_null() -> None:
    session = hf.open(people(5000), SCHEMA).session(rho=5.0, target="table")
    made = mwem(session, ["sick", "grade"], ["sick"], rho=1.0)
    assert made.fraction("grade IS NULL") < 0.001


EDGES_OF_Y = st.lists(st.floats(0, 50), min_size=1, max_size=12, unique=True).map(
    lambda inner: sorted({0.0, 50.0, *inner})
)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.none(), EDGES_OF_Y),
    st.one_of(st.none(), st.just([0, 3, 7, 9])),
    st.lists(st.floats(0, 50), min_size=1, max_size=20),
)
def test_the_marginals_of_a_column_part_its_values_as_the_bins_do(
    reals: list[float] | None, wholes: list[int] | None, values: list[float]
) -> None:
    """Every value, the bins' own edges and their neighbours among them, satisfies the condition of its bin alone."""
    schema = hf.Schema(y=hf.Real(0, 50), k=hf.Integer(0, 9))
    given_edges = {name: edges for name, edges in (("y", reals), ("k", wholes)) if edges is not None}
    for name, tried in (("y", _around(values, reals)), ("k", np.arange(10))):
        made = universe(schema, [name], {k: v for k, v in given_edges.items() if k == name})
        block = {name: schema[name].encode_array(np.asarray(tried))}
        held = np.array(
            [evaluate(parse_predicate(where, schema), block, schema) for where in all_marginals(made, 1)]
        )
        assert np.array_equal(held.sum(axis=0), np.ones(len(tried)))
        assert np.array_equal(held.argmax(axis=0), made.groups(block))
        cells = np.arange(made.size)
        assert Workload(made, all_marginals(made, 1)).answers(cells).tolist() == cells[:-1].tolist()


def _around(values: list[float], edges: list[float] | None) -> np.ndarray[Any, Any]:
    near = np.array([0.0, 50.0, *values, *(edges or np.linspace(0, 50, 33))])
    return np.clip(np.concatenate([near, np.nextafter(near, -1), np.nextafter(near, 51)]), 0, 50)


@pytest.mark.parametrize("edges", [None, [0, 10, 20, 30, 40, 50], [0, 2.5, 5, 50]])
def test_mwem_fits_the_marginals_of_a_real_column(edges: list[float] | None) -> None:
    schema, draw = hf.Schema(y=hf.Real(0, 50), k=hf.Integer(0, 2)), np.random.default_rng(0)
    y, k = draw.exponential(2, 20_000).clip(0, 50), draw.integers(0, 3, 20_000)
    cut = {} if edges is None else {"y": edges}
    session = hf.open({"y": y, "k": k}, schema).session(rho=5.0, target="table")
    pairs = all_marginals(universe(schema, ["y", "k"], cut), 2)
    assert len(pairs) == 3 * (32 if edges is None else len(edges) - 1)
    made = mwem(session, ["y", "k"], pairs, rho=1.0, edges=cut)
    assert quality(session, made, pairs, owner_only=True).max_error < 0.01
    assert all(values.count(None) < 100 for values in made.rows(5000).values())


def test_marginals_of_no_columns_or_too_many_are_refused() -> None:
    for ways in (0, 9, True, 1.0, "2"):
        with pytest.raises(InputError, match="for ways"):
            all_marginals(UNIVERSE, ways)  # type: ignore[arg-type]


def test_rows_stay_inside_the_declared_bins() -> None:
    session = hf.open(people(5000), SCHEMA).session(rho=5.0, target="table")
    made = synthesize(session, COLUMNS, ["sick"], rho=1.0, edges=EDGES)
    rows = made.rows(2000, bits=ReplayedBits(5))
    assert set(rows["group"]) <= {"x", "y", "z", None}
    assert all(v is None or 0 <= v <= 4 for v in rows["grade"])
    assert all(v is None or 0 <= v <= 1 for v in rows["share"])
    assert made.rows(0) == {name: [] for name in COLUMNS}
    with pytest.raises(InputError):
        made.rows(-1)


def test_the_quality_report_is_private_or_says_that_it_is_not() -> None:
    session = session_of()
    made = mwem(session, NAMES, QUERIES, rho=0.05, rounds=10)
    held_out = all_marginals(UNIVERSE, 1)
    exact = quality(session, made, held_out, owner_only=True)
    assert not exact.private
    assert str(exact).startswith("OWNER ONLY")
    assert exact.max_error == pytest.approx(errors(session, made, held_out).max(), abs=1e-4)
    spent = float(session.spent)
    with replayed(ReplayedBits(2)):
        noisy = quality(session, made, held_out, rho=0.1)
    assert float(session.spent) == pytest.approx(spent + 0.1, abs=1e-6)
    assert abs(noisy.max_error - exact.max_error) <= noisy.half_width
    assert abs(noisy.mean_error - exact.mean_error) <= noisy.half_width
    assert "by itself; measured privately" in str(noisy)
    for bad in ({}, {"rho": 0.1, "owner_only": True}, {"rho": float("nan")}):
        with pytest.raises(InputError):
            quality(session, made, held_out, **bad)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"rho": 1.0, "epsilon": 1.0},
        {"rho": -1.0},
        {"rho": True},
        {"rho": 1.0, "rounds": 0},
        {"rho": 1.0, "rounds": 1.5},
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    session = session_of()
    with pytest.raises(InputError):
        mwem(session, NAMES, QUERIES, **bad)
    with pytest.raises(InputError, match="method"):
        synthesize(session, NAMES, QUERIES, method="magic")
    with pytest.raises(InputError):
        mwem(session, NAMES, "c0", rho=1.0)
    assert float(session.spent) == 0


def test_wide_marginals_are_refused() -> None:
    schema = hf.Schema(a=hf.Integer(0, 99), b=hf.Integer(0, 99))
    table = hf.open({"a": np.arange(100), "b": np.arange(100)}, schema)
    with pytest.raises(InputError, match="coarser"):
        mwem(table.session(rho=1.0, target="table"), ["a", "b"], ["a < b"], rho=0.5)
