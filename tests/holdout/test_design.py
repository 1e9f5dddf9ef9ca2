"""The planner: what it takes by itself is private and answers every look that was planned."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import run

from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.holdout import Leaderboard, ReusableHoldout, design
from holdfast.holdout.design import MODES
from holdfast.holdout.metric import GRID
from holdfast.mechanisms.votes import FLIP
from holdfast.privacy import event, rule
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Request


def answered(guarded: ReusableHoldout, labels: np.ndarray, queries: int) -> int:
    """How many plain scores of models that are right 85 to 95 times in 100 are answered, of `queries`."""
    draw = np.random.default_rng(3)
    for number in range(queries):
        if guarded.looks_left != queries - number:
            return number
        said = np.where(draw.random(len(labels)) < draw.uniform(0.85, 0.95), labels, 1 - labels)
        try:
            guarded.score(said)
        except BudgetError:
            return number
    return queries


SIZES = [
    (1000, 100, None),
    (1000, 1000, None),
    (10_000, 100, None),
    (10_000, 1000, 0.2),
    (100_000, 100, 0.05),
]


def coins(rows: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, rows)


@pytest.mark.parametrize(("rows", "queries", "within"), SIZES)
def test_every_planned_look_is_answered(rows: int, queries: int, within: float | None) -> None:
    labels = coins(rows)
    with ReusableHoldout(labels, queries=queries, within=within) as guarded:
        assert answered(guarded, labels, queries) == queries
        assert guarded.looks_left == 0
        with pytest.raises(BudgetError, match="fresh holdout"):
            guarded.score(labels)


def test_a_planner_that_looks_at_widths_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin takes Guess-and-Check because it is narrower, and runs dry after some forty looks."""
    monkeypatch.setattr(sys.modules["holdfast.holdout.design"], "_PRIVATE", MODES[:4])
    labels = coins(1000)
    with ReusableHoldout(labels, queries=100) as guarded:
        assert guarded.design.mode == "guess-and-check"
        assert answered(guarded, labels, 100) < 60


def test_all_looks_of_the_readme_are_answered_and_private(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("README.md", only="ReusableHoldout(")
    guarded, shown = names["holdout"], capsys.readouterr().out
    assert guarded.design.queries == 1000
    assert "1,000 looks" in shown
    assert "private: rho" in shown
    assert "not private" not in shown
    values = []
    for left in reversed(range(999)):
        answer = guarded.score(names["guesses"])
        assert (answer.private, guarded.looks_left) == (True, left)
        values.append(answer.value)
    assert abs(np.mean(values) - 0.8) < 0.02


@pytest.mark.parametrize("rows", [100, 3000, 10**5])
@pytest.mark.parametrize("queries", [1, 10, 100])
def test_left_alone_it_is_private(rows: int, queries: int) -> None:
    plan = design(rows=rows, queries=queries)
    assert plan.private
    assert plan == design(rows=rows, queries=queries, private=True)
    assert re.search(r"; private: rho [\d.e-]+ for all looks together$", str(plan))


def test_the_loss_that_is_printed_is_that_of_all_looks() -> None:
    """Composition in zCDP adds: the printed figure is the loss of the event that is repeated."""
    plan = design(rows=3000, queries=100, mode="votes")
    whole = rule.zcdp(event.Repeat(event.Votes(3000, plan.votes, FLIP), 100)).rho
    told = float(re.search(r"rho ([\d.e-]+)", plan.privacy)[1])  # type: ignore[index]
    assert told == pytest.approx(float(whole), rel=5e-3)
    assert told > 50 * plan.rho


@pytest.mark.parametrize("mode", ["discretised", "guess-and-check"])
def test_a_mode_that_is_not_private_is_taken_by_name_and_says_so(mode: str) -> None:
    labels = coins(2000)
    with ReusableHoldout(labels, queries=5, mode=mode) as guarded:
        answer = guarded.score(labels)
    assert not answer.private
    for text in (str(answer), answer._repr_html_(), str(guarded.design), answer.explanation):
        assert "not private" in text
        assert "inf" not in text
    assert '"private": false' in answer.to_json()
    assert "nfinity" not in answer.to_json()
    with pytest.raises(MechanismError, match="not private"):
        design(rows=2000, queries=5, mode=mode, private=True)


@pytest.mark.parametrize("mode", ["ladder", "ladder-unproven"])
def test_a_ladder_says_that_it_is_not_private(mode: str) -> None:
    labels = coins(2000)
    board = Leaderboard(labels, queries=5, mode=mode)
    shown = board.submit("red", labels)
    assert not board.private
    assert "not private" in str(shown)
    assert "not private" in board.table()
    with pytest.raises(MechanismError, match="not private"):
        Leaderboard(labels, queries=5, mode=mode, private=True)


def test_a_saved_holdout_that_is_not_private_is_not_opened_as_one(tmp_path: Path) -> None:
    labels = coins(2000)
    ReusableHoldout(labels, queries=5, mode="guess-and-check", ledger=tmp_path).close()
    with pytest.raises(MechanismError, match="not private"):
        ReusableHoldout(labels, private=True, ledger=tmp_path)
    ReusableHoldout(labels, ledger=tmp_path).close()


@pytest.mark.parametrize("mode", MODES)
def test_a_named_mode_is_planned_alone(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, names = sys.modules["holdfast.validity.noise_planner"]._OPTIONS, []  # type: ignore[attr-defined]
    for name, make in list(table.items()):
        monkeypatch.setitem(
            table, name, lambda asked, name=name, make=make: (names.append(name), make(asked))[1]
        )
    design(rows=5000, queries=30, within=0.4, mode=mode)
    assert names == ([] if mode == "thresholdout" else [mode])
    names.clear()
    assert design(rows=5000, queries=30, within=0.4).mode == "votes"
    assert names == ["votes"]


@pytest.mark.parametrize("mode", MODES[:4])
@pytest.mark.parametrize("within", [None, 0.2])
def test_a_design_is_what_the_planner_chose(mode: str, within: float | None) -> None:
    plan = design(rows=5000, queries=30, within=within, mode=mode)
    option = choose((mode,), Request(5000, 30, 0.95, within, GRID))
    assert (plan.width, plan.population, plan.rows_read) == (
        option.width,
        option.population,
        option.rows_per_answer,
    )
    assert (plan.cells, plan.failures, plan.votes) == (option.cells, option.failures, option.votes or 0)
    assert plan.private == option.private
    if option.rho is not None:
        assert 30 * plan.rho == pytest.approx(option.rho)
    if option.standard_deviation is not None:
        assert Fraction(plan.variance) == option.epochs[0].noise


def test_what_a_named_mode_could_do_is_said() -> None:
    with pytest.raises(
        MechanismError, match=r"mode='guess-and-check' certifies 0\.05 while at most .* not private"
    ):
        design(rows=100_000, queries=1000, within=0.05)
    with pytest.raises(MechanismError) as strict:
        design(rows=100_000, queries=1000, within=0.05, private=True)
    assert "guess-and-check" not in str(strict.value)


@pytest.mark.parametrize("unused", [{"failures": 5}, {"hits": 3}, {"threshold": 0.1}, {"tolerance": 0.1}])
def test_parameters_of_a_mode_that_was_not_named_are_refused(unused: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="name the mode"):
        design(rows=2000, queries=50, **unused)
