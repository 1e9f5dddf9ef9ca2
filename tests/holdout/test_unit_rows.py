"""Holdouts of units: what their rows say together, for n units and not for their rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.holdout.metric import GRID, METRICS
from holdfast.holdout.unit_rows import UnitRows

pytestmark = pytest.mark.usefixtures("replayed_noise")
PEOPLE = np.repeat(np.arange(2000), 10)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, GRID // 2)), min_size=1, max_size=40),
    st.integers(1, 6),
)
def test_a_unit_has_the_mean_of_its_first_rows_and_a_ratio_their_totals(
    rows: list[tuple[int, int]], most: int
) -> None:
    keys, halves = np.array(rows).T
    values = 2 * halves
    units = UnitRows(keys, len(keys), most)
    kept = [values[keys == key][:most] for key in np.unique(keys)]
    drawn = np.array([len(kept) - 1, 0, 0])
    for sides, expected in (
        (1, [part.mean() for part in kept]),
        (2, [part.sum() / most for part in kept]),
    ):
        (found, *_) = units.values([lambda ids: values[ids]] * sides)
        assert np.all(np.abs(found(None) - expected) <= 1.0)
        assert np.all((found(None) % 2 == 0) & (found(None) >= 0) & (found(None) <= GRID))
        assert np.array_equal(found(drawn), found(None)[drawn])


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans(), st.booleans()), min_size=1))
def test_what_two_arrays_differ_by_is_bounded_whatever_the_labels(rows: list[tuple[int, ...]]) -> None:
    keys, first, second, labels = np.array(rows).T
    units = UnitRows(keys, len(keys), 3)
    (one,), (other,) = (units.values([lambda ids, s=said: (s == labels)[ids]]) for said in (first, second))
    bound = units.mean(GRID * (first != second).astype(np.int64))
    assert np.abs(one(None) - other(None)).mean() <= bound


def labels_of_people(seed: int = 5) -> Any:
    """All rows of a person have one label: 20,000 rows say no more than 2,000 people do."""
    return np.random.default_rng(seed).integers(0, 2, 2000)[PEOPLE]


@pytest.mark.parametrize("mode", ["votes", "gaussian"])
def test_intervals_are_as_wide_as_units_make_them(mode: str) -> None:
    labels, terms = labels_of_people(), {"queries": 10, "mode": mode}
    people = ReusableHoldout(labels, units=PEOPLE, rows_per_unit=10, **terms)
    assert (people.rows, people.units) == (20_000, 2000)
    assert people.width == ReusableHoldout(labels[::10], **terms).width
    answer = people.score(np.ones(20_000, int))
    assert answer.low <= 0.5 <= answer.high
    assert answer.question == "accuracy, the mean of units' means"
    recall = people.score(np.ones(20_000, int), metric="recall")
    assert recall.question == "recall over rows, at most 10 a unit" and recall.high == 1.0
    assert people.check(0.5, np.ones(20_000, int)).fine


def test_rows_that_are_taken_for_independent_are_caught() -> None:
    """A search over coins: 60 models, and the vote of those that the holdout prefers. 60 people, 1,000 rows each."""
    rng = np.random.default_rng(1)
    people = np.repeat(np.arange(60), 1000)
    labels, models = rng.integers(0, 2, 60)[people], rng.integers(0, 2, (60, 60))[:, people]
    terms: dict[str, Any] = {"queries": 61, "mode": "gaussian"}

    def searched(holdout: ReusableHoldout) -> bool:
        """Whether all intervals hold one half, which every coin has in the population."""
        answers = [holdout.score(model) for model in models]
        chosen = [model for model, answer in zip(models, answers, strict=True) if answer.value > 0.5]
        answers.append(holdout.score((np.mean(chosen, axis=0) > 0.5).astype(int)))
        return all(answer.low <= 0.5 <= answer.high for answer in answers)

    assert searched(ReusableHoldout(labels, units=people, rows_per_unit=1000, **terms))
    assert not searched(ReusableHoldout(labels, **terms))


def test_a_ledger_knows_whose_the_rows_are(tmp_path: Path) -> None:
    labels, place = labels_of_people(), tmp_path / "looks.sqlite"
    terms: dict[str, Any] = {"ledger": place, "anchors": tmp_path}
    with ReusableHoldout(labels, units=PEOPLE, rows_per_unit=10, queries=9, **terms) as first:
        first.score(labels)
        other = pickle.loads(pickle.dumps(first))  # noqa: S301
        assert (other.units, other.looks_used) == (2000, first.looks_used)
        other.close()
    names = np.array([f"p{key}" for key in PEOPLE], dtype=object)
    ReusableHoldout(labels, units=names, rows_per_unit=10, **terms).close()  # whatever people are called
    shifted = np.roll(PEOPLE, 1)
    for wrong in ({}, {"units": PEOPLE, "rows_per_unit": 9}, {"units": shifted, "rows_per_unit": 10}):
        with pytest.raises(LedgerError, match="other labels or units"):
            ReusableHoldout(labels, **wrong, **terms)  # type: ignore[arg-type]


def test_a_board_of_units() -> None:
    labels = labels_of_people()
    board = Leaderboard(labels, units=PEOPLE, rows_per_unit=10, queries=4, mode="gaussian")
    assert board.submit("a", labels).high == 1.0
    board.submit("b", 1 - labels)
    assert [one.team for one in board.standings()] == ["a", "b"]
    with pytest.raises(InputError, match="no within=, failures= or units="):
        Leaderboard(labels, units=PEOPLE, rows_per_unit=10, queries=4, mode="ladder")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"units": PEOPLE}, "rows_per_unit"),
        ({"units": PEOPLE, "rows_per_unit": 0}, "rows_per_unit"),
        ({"rows_per_unit": 3}, "expected units= beside rows_per_unit="),
        ({"units": PEOPLE[:-1], "rows_per_unit": 3}, "one key for each of 20000 rows"),
        ({"units": np.where(PEOPLE == 3, np.nan, PEOPLE), "rows_per_unit": 3}, "rows without a key"),
        ({"units": [None, *PEOPLE[1:]], "rows_per_unit": 3}, "rows without a key"),
        ({"units": [[1, 2], *PEOPLE[1:]], "rows_per_unit": 3}, "several shapes"),
    ],
)
def test_bad_units_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ReusableHoldout(labels_of_people(), queries=4, mode="gaussian", **wrong)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-GRID, GRID)), min_size=1, max_size=40
    ),
    st.integers(1, 6),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
)
def test_a_unit_weighs_one_in_a_table(rows: list[tuple[int, ...]], most: int, weights: list[float]) -> None:
    """Its rows that are kept share it: sums of cells are those of the means of rows, within what is said."""
    keys, places, values = np.array(rows).T
    units = UnitRows(keys, len(keys), most)
    fallen, steps = units.cells(lambda ids: (places[ids], values[ids]))(None)
    named = units.tabled(METRICS["auc"])
    done = 0
    for key in np.unique(keys):
        chosen = np.flatnonzero(keys == key)[:most]
        mine = slice(done, done := done + len(chosen))
        assert np.abs(steps[mine]).sum() <= GRID
        if np.all(values[chosen] == GRID):
            assert steps[mine].sum() == GRID
        sums = [
            np.array(weights)[cells] @ told
            for cells, told in ((fallen[mine], steps[mine]), (places[chosen], values[chosen] / len(chosen)))
        ]
        assert abs(sums[0] - sums[1]) <= GRID * named.rounding
    assert done == len(steps)


SAME = {"auc": 0.8, "balanced-accuracy": 0.8, "macro-f1": 0.8, "calibration-error": 0.0}
"""What is true of people who are half of each class, and of chances that are right for four fifths of them."""


@pytest.mark.parametrize("metric", SAME)
def test_metrics_of_tables_are_those_of_people(metric: str) -> None:
    """People who are told wrong have nine rows, and the others one: by rows the model is bad, by people good."""
    rng = np.random.default_rng(11)
    label, right = rng.integers(0, 2, 20_000), rng.random(20_000) < 0.8
    rows = np.where(right, 1, 9)
    people, said = np.repeat(np.arange(20_000), rows), np.repeat(np.where(right, label, 1 - label), rows)
    sure = 0.5 * rng.random(20_000)[people]
    given = {
        "auc": np.where(said == 1, 0.5 + sure, 0.5 - sure),
        "calibration-error": np.where(said == 1, 0.8, 0.2),
    }.get(metric, said)
    terms: dict[str, Any] = {"queries": 8, "mode": "gaussian"}
    answers = [
        ReusableHoldout(label[people], **how, **terms).score(given, metric=metric)
        for how in ({"units": people, "rows_per_unit": 9}, {})
    ]
    assert answers[0].question == f"{metric}, where a unit weighs one"
    assert answers[0].low <= SAME[metric] <= answers[0].high < answers[0].low + 0.5
    assert not answers[1].low <= SAME[metric] <= answers[1].high, "the twin, for which each row weighs one"


def test_a_table_of_units_moves_by_one_unit_as_by_one_row() -> None:
    """Both tables are charged alike, and the one of people is as wide as one of so many rows."""
    labels = labels_of_people()
    people = ReusableHoldout(labels, units=PEOPLE, rows_per_unit=10, queries=8, mode="gaussian")
    alone = ReusableHoldout(labels[::10], queries=8, mode="gaussian")
    told = [
        holdout.score(1 - of, metric="balanced-accuracy")
        for holdout, of in ((people, labels), (alone, labels[::10]))
    ]
    assert told[0].rho == told[1].rho
    assert 0 <= (told[0].high - told[0].low) - (told[1].high - told[1].low) <= 0.02
