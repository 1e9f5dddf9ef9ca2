"""Synthetic tables of many columns: what is charged, told, fitted and drawn; bad input; what comes back."""

from __future__ import annotations

import datetime
import importlib
import json
import weakref
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.desk import RowAccess
from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.query.universe import universe
from holdfast.session.session import Session
from holdfast.synthesis import SyntheticTable, all_marginals, from_marginals, plan_marginals, quality
from holdfast.weights.array_module import HOST
from holdfast.weights.cell_counts import marginal_counts
from tests.weights.elsewhere import ELSEWHERE

from .wide import SCHEMA, census

ROWS = 20_000
DATA = census(ROWS)
room = importlib.import_module("holdfast.synthesis.from_marginals")


def opened(data: Any = DATA, schema: hf.Schema = SCHEMA, **options: Any) -> Session:
    table = hf.open(data, schema, ledger=MemoryLedger())
    return table.session(**{"rho": 1.0, "target": "table"} | options)


@cache
def default() -> tuple[Session, SyntheticTable]:
    """`session.synthesize()` and nothing else, once for several tests."""
    session = opened()
    with replayed(ReplayedBits(1)):
        return session, session.synthesize()


def truths(session: Session, made: SyntheticTable, ways: list[tuple[int, ...]]) -> Any:
    return marginal_counts(session._desk.for_the_owner(), made.universe, ways)


def test_the_default_learns_all_pairs_of_a_table_without_cells_for_it() -> None:
    session, made = default()
    assert made.universe.columns == tuple(SCHEMA)
    assert made.universe.size > 2**26
    assert float(session.spent) == pytest.approx(0.9, rel=1e-4)
    assert "(pure)" not in made.explanation
    assert float(session.spent) <= 0.9
    pairs = [(i, j) for i in range(8) for j in range(i + 1, 8)]
    truth, found = truths(session, made, pairs), made.weights.marginals(pairs)
    alone = truths(session, made, [(i,) for i in range(8)])
    errors, independent = [], []
    for i, j in [(0, 1), (1, 4), (1, 7), (4, 7), (0, 3), (5, 7)]:
        real = truth[i, j] / ROWS
        errors.append(np.abs(found[i, j] - real).sum() / 2)
        independent.append(np.abs(np.outer(alone[i,], alone[j,]) / ROWS**2 - real).sum() / 2)
    assert np.mean(errors) < 0.6 * np.mean(independent)
    assert np.mean(errors) < 0.06


def test_rows_come_out_with_the_types_the_nulls_and_the_spikes_of_the_table(tmp_path: Path) -> None:
    _, made = default()
    rows = made.rows(4000, bits=ReplayedBits(2))
    assert np.mean([value is None for value in rows["gain"]]) == pytest.approx(0.125, abs=0.02)
    assert sum(value is None for name in rows if name != "gain" for value in rows[name]) < 40
    assert np.mean(np.array(rows["hours"]) == 40) == pytest.approx(np.mean(DATA["hours"] == 40), abs=0.03)
    assert all(0 <= value <= 99 for value in rows["age"] if value is not None)
    days = [value for value in rows["since"] if value is not None]
    assert all(isinstance(value, datetime.date) for value in days)
    assert max(days) <= datetime.date(2020, 12, 31)  # type: ignore[type-var]
    path = made.write(tmp_path / "people.parquet", 500, bits=ReplayedBits(3))
    assert hf.open(path, hf.Schema.from_toml(path.with_suffix(".toml"))).rows == 500
    assert made.to_polars(30).shape == (30, 8)
    assert made.to_pandas(30).shape == (30, 8)
    figure = made.plot(tmp_path / "people.png")
    assert len(figure.axes) == 8
    assert (tmp_path / "people.png").stat().st_size > 1000


def test_conditions_are_answered_from_the_model() -> None:
    _, made = default()
    age, work, rich = DATA["age"], DATA["work"], DATA["rich"]
    assert made.fraction("rich AND work = 'private'") == pytest.approx(
        np.mean(rich & (work == "private")), abs=0.02
    )
    assert made.fraction("age < 30 OR age > 60") == pytest.approx(np.mean((age < 30) | (age > 60)), abs=0.02)
    assert made.fraction("age < hours") == pytest.approx(np.mean(age < DATA["hours"]), abs=0.03)
    assert made.fraction("gain IS NULL") == pytest.approx(0.125, abs=0.01)
    assert made.fraction("rich OR NOT rich OR rich IS NULL") == pytest.approx(1.0)


def test_every_number_that_was_measured_is_within_its_interval() -> None:
    """Theorem 96 for the table, on a fixed draw; a twin of an eighth of the width is caught."""
    session, made = default()
    truth = truths(session, made, [(i,) for i in range(8)])
    alone = [one for one in made.measured if len(one.columns) == 1]
    assert [one.columns[0] for one in alone] == list(SCHEMA)
    missed = 0
    for axis, one in enumerate(alone):
        away = np.abs(one.values - truth[axis,] / ROWS)
        assert away.max() <= one.within
        missed += int((away > one.within / 8).sum())
        assert one.population is None
    assert missed > 0
    assert "gain" in str(made.measured) and len(made.measured) > 8
    assert made.explanation.startswith("8 columns of 20,000 rows")


def test_a_session_for_the_population_stays_on_the_meter_and_has_intervals() -> None:
    session = opened(rho=0.5, target="population", queries=40)
    before = session.fraction("rich").width
    with replayed(ReplayedBits(4)):
        made = session.synthesize(["work", "married", "rich"], rho=0.01)
    told = session._moment().table.information
    assert 0 < told < UNCOVERED
    assert told >= plan_marginals(session, ["work", "married", "rich"], rho=0.01).tells > 0
    assert all(one.within < one.population < 0.2 for one in made.measured)
    fresh = census(400_000, seed=9)
    for one in made.measured:
        if one.columns == ("rich",):
            assert abs(one.values[1] - fresh["rich"].mean()) <= one.population
    assert session.fraction("married").width < 3 * before  # the theorem goes on
    again = session.synthesize(["work", "married", "rich"], rho=0.01)
    assert [one.population for one in again.measured] == [one.population for one in made.measured]


def test_what_is_told_ends_the_theorem_with_laplace_noise_only() -> None:
    session = opened(rho=None, epsilon=3.0)
    planned = plan_marginals(session, ["work", "rich"], epsilon=1.0)
    assert planned.tells == UNCOVERED
    made = session.synthesize(["work", "rich"], method="marginals", epsilon=1.0)
    assert float(session.spent) == pytest.approx(1.0, rel=1e-4)
    assert made.fraction("rich") == pytest.approx(DATA["rich"].mean(), abs=0.02)


def test_nothing_is_paid_for_choosing_when_everything_is_measured() -> None:
    session = opened(only="gaussian")
    planned = plan_marginals(session, ["work", "married", "rich"], rho=0.2)
    assert planned.choosing is None and planned.rounds == 3 and planned.amount == 0.2
    assert hf.privacy.gdp(planned.event).mu_squared == pytest.approx(0.4, rel=1e-3)
    session.synthesize(["work", "married", "rich"], rho=0.2)
    wide = plan_marginals(opened(), rho=0.2)
    assert wide.choosing is not None and wide.rounds == 20
    assert wide.noise is not None and wide.noise.sensitivity_squared == 2  # type: ignore[union-attr]
    assert hf.privacy.zcdp(wide.event).rho == pytest.approx(0.2, rel=1e-4)
    before = float(session.spent)
    session.synthesize(rho=0.2)
    assert 0.399 < float(session.spent) - before <= 0.4, (
        "the choices cost more in mu squared: all is a little less"
    )


def test_coming_back_repeats_the_release_and_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session, columns = opened(), ["work", "married", "rich", "hours"]
    first = session.synthesize(columns, rho=0.1, rounds=2, name="a")
    spent = float(session.spent)
    monkeypatch.setattr(room, "marginal_counts", None)
    second = session.synthesize(columns, rho=0.1, rounds=2, name="a")
    assert np.array_equal(first.weights.marginals([(0, 3)])[0, 3], second.weights.marginals([(0, 3)])[0, 3])
    assert float(session.spent) == spent
    with pytest.raises(TypeError):
        session.synthesize(columns, rho=0.1, rounds=2, name="b")
    assert float(session.spent) > spent  # charged before a row is read


def test_rows_of_one_person_are_charged_as_a_group() -> None:
    session = hf.open(DATA, SCHEMA, rows_per_unit=3, ledger=MemoryLedger()).session(rho=0.9, target="table")
    session.synthesize(["work", "rich"], method="marginals", rho=0.9)
    assert 0.99 * 0.9 <= float(session.spent) <= 0.9


def test_a_workload_says_which_marginals_may_be_measured() -> None:
    columns = ["age", "work", "hours", "rich", "married"]
    queries = ["work = 'self' AND rich AND married", "age < 30 AND rich", "age < 40 AND rich", "married"]
    planned = plan_marginals(opened(), columns, queries, rho=0.2)
    assert planned.candidates == {(0, 3): 1.0, (1, 3, 4): pytest.approx(0.5**0.5)}
    with replayed(ReplayedBits(5)):
        made = from_marginals(opened(), columns, queries, rho=0.2)
    assert {one.columns for one in made.measured if len(one.columns) > 1} == {
        ("age", "rich"),
        ("work", "rich", "married"),
    }
    session = opened(census(5000, 3))
    checked = from_marginals(session, columns, rho=0.3, name="checked")
    exact = quality(session, checked, queries, owner_only=True)
    with replayed(ReplayedBits(6)):
        private = quality(session, checked, queries, rho=0.1)  # a private check on what was not measured
    assert abs(private.max_error - exact.max_error) <= private.half_width


def test_the_model_keeps_within_its_memory() -> None:
    session = opened()
    for memory in (2**17, 2**20):
        with replayed(ReplayedBits(7)):
            made = session.synthesize(rho=0.1, rounds=12, memory=memory, name=f"{memory}")
        assert made.weights.model.tree.memory() <= memory
    small = plan_marginals(session, rho=0.1, memory=2**16)
    assert 0 < len(small.candidates) < len(plan_marginals(session, rho=0.1).candidates) == 28
    with pytest.raises(InputError, match=r"cannot hold age, hours together: .* ask about hours only"):
        session.synthesize(queries=["age < 30 AND hours = 40"], rho=0.1, memory=2**16)


@pytest.mark.parametrize(
    "bad",
    [
        {"rho": -1.0},
        {"rho": True},
        {"rho": 0.1, "epsilon": 0.1},
        {"rho": 0.1, "rounds": 0},
        {"rho": 0.1, "bins": 1},
        {"rho": 0.1, "memory": -1},
        {"rho": 0.1, "columns": "age"},
        {"rho": 0.1, "columns": []},
        {"rho": 0.1, "columns": ["nobody"]},
        {"rho": 0.1, "edges": [1, 2]},
        {"rho": 0.1, "edges": {"age": [3, 2]}},
        {"rho": 0.1, "queries": []},
        {"rho": 0.1, "method": "magic"},
        {"rho": 0.1, "method": "mwem"},
        {"rho": 1e-9},
    ],
)
def test_bad_input_is_refused_before_anything_is_charged(bad: dict[str, Any]) -> None:
    session = opened()
    with pytest.raises(hf.HoldfastError):
        session.synthesize(**bad)
    assert float(session.spent) == 0


def test_a_budget_too_small_says_how_much_would_do() -> None:
    session = opened()
    with pytest.raises(InputError, match="give more than") as refused:
        session.synthesize(rho=1e-9)
    least = float(str(refused.value).split("more than ")[1].split(",")[0])
    plan_marginals(session, rho=1.3 * least)
    with pytest.raises(BudgetError):
        session.synthesize(rho=2.0)


def test_odd_columns_work() -> None:
    """One value, NULL only, ten thousand categories, one row, texts beside them."""
    draw = np.random.default_rng(0)
    schema = hf.Schema(
        one=hf.Category("only"),
        same=hf.Integer(3, 3),
        none=hf.Real(0.0, 1.0),
        many=hf.Category(*(f"c{i}" for i in range(10_000))),
        said=hf.Text(5),
    )
    data = {
        "one": np.array(["only"] * 3000),
        "same": np.full(3000, 3),
        "none": np.full(3000, np.nan),
        "many": np.array([f"c{i}" for i in np.minimum(draw.geometric(0.3, 3000), 9000)]),
        "said": np.array(["hello"] * 3000),
    }
    with replayed(ReplayedBits(8)):
        made = opened(data, schema).synthesize(rho=0.5)
        rows = made.rows(500)
    assert "Left out, as texts: said" in made.explanation
    assert rows["one"].count("only") > 490 and rows["same"].count(3) > 490
    assert rows["none"].count(None) > 450
    assert np.mean([value == "c1" for value in rows["many"]]) == pytest.approx(0.3, abs=0.1)
    single = {name: values[:1] for name, values in census(5).items()}
    alone = opened(single, rho=1e7).synthesize(["age", "rich"], rho=1e6)
    assert abs(alone.rows(1)["age"][0] - single["age"][0]) <= 2  # type: ignore[operator]


def test_units_with_several_rows_have_their_number_as_a_column() -> None:
    """Whoever has many rows is drawn as one, and moves the release as one."""
    draw = np.random.default_rng(0)
    people = np.minimum(draw.geometric(0.002, 20_000), 3999)
    data = {"person": people, "paid": draw.integers(0, 50, 20_000)}
    schema = hf.Schema(person=hf.Integer(0, 3999), paid=hf.Integer(0, 49))
    table = hf.open(data, schema, unit="person", rows_per_unit=10, ledger=MemoryLedger())
    session = table.session(rho=1.0, target="table")
    with replayed(ReplayedBits(12)):
        made = session.synthesize(rho=0.5)
        rows = made.rows(2000)["count(rows)"]
    truth = np.minimum(np.bincount(people)[np.unique(people)], 10)
    assert table.rows == len(truth)
    assert float(session.spent) <= 0.5
    assert np.mean(np.array(rows) == 10) == pytest.approx(np.mean(truth == 10), abs=0.05)


def test_declared_edges_are_bins_and_what_lies_outside_counts_as_null() -> None:
    edges = {"age": [18, 30, 65], "gain": [0, 100, 1000, 100_000]}
    with replayed(ReplayedBits(9)):
        made = opened().synthesize(["age", "gain"], rho=0.5, edges=edges)
    inside = (DATA["age"] >= 18) & (DATA["age"] <= 65)
    assert made.fraction("age IS NULL") == pytest.approx(1 - inside.mean(), abs=0.01)
    assert made.fraction("age >= 30") == pytest.approx(np.mean(inside & (DATA["age"] >= 30)), abs=0.01)


def test_rows_follow_pairs_that_no_clique_has() -> None:
    """Measured though they were not chosen: rows that are drawn agree with them, where the model cannot."""
    columns = ["work", "married", "rich", "hours"]
    with replayed(ReplayedBits(3)):
        made = opened().synthesize(columns, rho=0.3, rounds=1)
        rows = made.rows(ROWS)
    tree = made.weights.model.tree
    assert sum(tree.holder(axes) is None for axes in combinations(range(4), 2)) == 5

    none, rich = np.array(rows["work"]) == "none", np.array(rows["rich"], dtype=bool)
    real = float(((DATA["work"] == "none") & DATA["rich"]).mean())
    assert abs(made.fraction("work = 'none' AND rich") - real) > 0.02  # independent in the model
    assert abs(float((none & rich).mean()) - real) < 0.01


def test_one_model_is_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stated memory is that of one: the last round's is gone when the next is fitted."""
    fitted, held = room._modelled, []

    def watched(*given: Any) -> Any:
        assert all(one() is None for one in held)
        found = fitted(*given)
        held.append(weakref.ref(found[0]))
        return found

    monkeypatch.setattr(room, "_modelled", watched)
    opened().synthesize(["work", "married", "rich", "hours"], rho=0.3, rounds=3)
    assert len(held) == 4


def test_progress_is_told_round_by_round_and_of_the_last_fit() -> None:
    told: list[tuple[int, int]] = []
    columns = ["work", "married", "rich", "hours"]
    opened().synthesize(columns, rho=0.3, rounds=3, progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]  # the last fit is a step of its own


def test_many_candidates_are_compared_on_a_random_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_SCORED", 2)
    with replayed(ReplayedBits(10)):
        made = opened().synthesize(["work", "married", "rich", "hours"], rho=0.3, rounds=3)
    assert len({one.columns for one in made.measured}) == 4 + 6  # what was not chosen is measured lightly
    noise = [one.deviation for one in made.measured if len(one.columns) == 2]
    assert noise[0] == noise[2] < noise[3] == noise[5]


def test_what_is_recorded_is_what_was_told_and_nothing_else() -> None:
    session = opened()
    made = session.synthesize(["work", "married", "rich", "hours"], rho=0.3, rounds=2)
    entry = next(iter(session._ledger.entries(session.name)))
    told = json.loads(entry.answer or "")
    assert sorted(told) == ["beyond", "columns", "marginals"]
    assert len(told["marginals"]) == 6
    event = hf.privacy.from_json(json.loads(entry.event))
    assert hf.privacy.zcdp(event).rho <= Fraction(0.3)
    assert made.rho == 0.3


def test_small_universes_still_go_to_mwem_and_marginals_are_no_worse() -> None:
    """Ours against ours, on 3 columns and the same budget."""
    columns, errors = ["work", "married", "rich"], {}
    pairs = all_marginals(universe(SCHEMA, columns), 2)
    for method in ("mwem", "marginals"):
        session = opened()
        with replayed(ReplayedBits(11)):
            made = session.synthesize(columns, pairs, method=method, rho=0.002)
        errors[method] = quality(session, made, pairs, owner_only=True).mean_error
    assert opened().synthesize(columns, pairs, rho=0.1).method == "mwem"
    assert errors["marginals"] < 1.2 * errors["mwem"]


def test_a_model_that_is_fitted_on_a_device_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, made = ["work", "married", "rich"], []
    monkeypatch.setattr(room, "array_module", {"numpy": HOST, "torch": ELSEWHERE}.get)
    for device in ("numpy", "torch"):
        with replayed(ReplayedBits(1)):
            made.append(opened().synthesize(columns, rho=0.3, rounds=1, device=device))
    every = [(0, 1), (0, 2), (1, 2)]
    first, second = (one.weights.marginals(every) for one in made)
    assert all(np.allclose(first[axes], second[axes], atol=1e-12) for axes in every)


def test_an_unknown_device_is_refused_before_the_charge() -> None:
    session = opened()
    with pytest.raises(InputError, match="device"):
        session.synthesize(["work", "rich"], rho=0.3, device="abacus")
    assert float(session.spent) == 0


def test_the_rows_are_read_twice_however_many_rounds_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, so that 10^7 rows are never held: once for the columns, once for all candidates."""
    session, read = opened(), []
    scan = RowAccess.scan
    monkeypatch.setattr(RowAccess, "scan", lambda self, *given: read.append(given) or scan(self, *given))
    session.synthesize(["work", "married", "hours", "rich"], rho=0.1, rounds=4)
    assert len(read) == 2
