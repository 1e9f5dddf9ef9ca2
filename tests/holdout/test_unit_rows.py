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
from holdfast.holdout.metric import GRID
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
        ({"units": PEOPLE, "rows_per_unit": 3, "metric": "auc"}, "a mean over rows for a holdout of units"),
    ],
)
def test_bad_units_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ReusableHoldout(labels_of_people(), queries=4, mode="gaussian", **wrong)


def test_a_table_of_all_rows_is_refused_before_the_charge() -> None:
    people = ReusableHoldout(labels_of_people(), units=PEOPLE, rows_per_unit=10, queries=8, mode="gaussian")
    with pytest.raises(InputError, match="got balanced-accuracy"):
        people.score(labels_of_people(), metric="balanced-accuracy")
    assert people.looks_used == 0
