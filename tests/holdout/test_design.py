"""The planner: what it takes by itself is private and answers every look that was planned."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import run

from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.holdout import Leaderboard, ReusableHoldout, design
from holdfast.holdout.design import EPOCHS, FLIP, MODES, ROUNDED, _chosen
from holdfast.holdout.metric import GRID
from holdfast.privacy import event, rule
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Request

PLANNED = {"votes": "leave-out-votes", "gaussian": "leave-out"}
"""Under which names the planner has them."""


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
    """The broken twin takes Guess-and-Check because somebody might guess well, and runs dry after some forty looks."""
    monkeypatch.setattr(sys.modules["holdfast.holdout.design"], "_PRIVATE", MODES[3:4])
    labels = coins(1000)
    with ReusableHoldout(labels, queries=100) as guarded:
        assert guarded.design.mode == "guess-and-check"
        assert answered(guarded, labels, 100) < 60


@pytest.mark.parametrize(
    ("rows", "queries", "within"), [(10**4, 100, 0.0537), (10**4, 1000, 0.0963), (10**5, 1000, 0.0305)]
)
def test_widths_are_those_of_the_leave_out_theorem(rows: int, queries: int, within: float) -> None:
    """Before: 0.094, 0.182 and 0.058."""
    plan = design(rows=rows, queries=queries)
    assert plan.width < within
    assert (plan.mode, plan.theorem) == ("gaussian", "Theorem 23")
    assert "(Theorem 23)" in str(plan)
    assert "(Theorem 27)" in str(design(rows=rows, queries=queries, mode="votes"))
    for mode, theorem in (
        ("discretised", "D"),
        ("guess-and-check", "Guess-and-Check"),
        ("thresholdout", "T1°"),
    ):
        assert design(rows=rows, queries=queries, mode=mode).theorem == theorem


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
    assert re.search(
        r"; private: rho [\d.e-]+ for all looks together, at most [\d.e-]+ with comparisons$", str(plan)
    )


def test_the_loss_that_is_printed_is_that_of_all_looks() -> None:
    """Composition in zCDP adds: the printed figure is the loss of the event that is repeated."""
    plan = design(rows=3000, queries=100, mode="votes")
    votes = [event.Repeat(event.Votes(3000, int(e.noise), FLIP), e.answers) for e in plan.epochs]
    whole = rule.zcdp(event.Sequence(tuple(votes))).rho
    told = float(re.search(r"rho ([\d.e-]+)", plan.privacy)[1])  # type: ignore[index]
    assert told == pytest.approx(float(whole), rel=5e-3)
    assert told == pytest.approx(plan.rho, rel=5e-3)


@pytest.mark.parametrize("mode", ["votes", "gaussian"])
def test_the_loss_of_comparisons_is_the_costliest_that_can_be_asked(mode: str) -> None:
    """Every comparison of a whole holdout, on known and on unknown disagreement, within the printed loss."""
    labels = coins(3000)
    near = np.where(np.arange(3000) % 50 == 0, 1 - labels, labels)
    for expect in (None, 0.05):
        with ReusableHoldout(labels, queries=30, mode=mode) as guarded:
            spent = sum(guarded.compare(labels, near, expect=expect).rho for _ in range(guarded.looks_left))
            assert 0.1 * guarded.design.compared_rho < spent <= guarded.design.compared_rho
            assert guarded.looks_left <= 2


def spent_by_scores(mode: str, expect: float) -> tuple[float, float]:
    """What a holdout's scores cost in all, and what its ledger says that all looks may."""
    labels = coins(3000)
    with ReusableHoldout(labels, queries=30, mode=mode, expect=expect) as guarded:
        terms = next(account.terms for account in guarded.ledger.accounts() if account.terms)
        return sum(guarded.score(labels).rho for _ in range(30)), json.loads(terms)["rho"]


@pytest.mark.parametrize("mode", ["votes", "gaussian"])
@pytest.mark.parametrize("expect", [0.05, 0.5])
def test_the_ledger_counts_the_costliest_look_of_each_place(mode: str, expect: float) -> None:
    """By votes a score costs more than a comparison of models that are thought to differ much."""
    spent, said = spent_by_scores(mode, expect)
    assert spent <= said


def test_a_ledger_that_counts_comparisons_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["holdfast.holdout.design"], "score_rho", lambda plan, epoch: 0.0)
    spent, said = spent_by_scores("votes", 0.5)
    assert spent > 5 * said


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
    _chosen.cache_clear()
    design(rows=5000, queries=30, within=0.4, mode=mode)
    assert names == ([] if mode in ("thresholdout", "guesses") else [PLANNED.get(mode, mode)])
    names.clear()
    assert design(rows=5000, queries=30, within=0.4).mode == "votes"
    assert names == ["leave-out-votes"]


@pytest.mark.parametrize("mode", MODES[:4])
@pytest.mark.parametrize("within", [None, 0.2])
def test_a_design_is_what_the_planner_chose(mode: str, within: float | None) -> None:
    plan = design(rows=5000, queries=30, within=within, mode=mode)
    asked = Request(
        5000, 30, 0.95, None if within is None else within / ROUNDED, GRID, float(FLIP), epochs=EPOCHS
    )
    option = choose((PLANNED.get(mode, mode),), asked)
    assert plan.width == pytest.approx(option.width, rel=2e-6)
    assert option.width <= plan.width <= (within or 1.0)
    assert (plan.population, plan.rows_read) == (option.population, option.rows_per_answer)
    assert (plan.cells, plan.failures, plan.votes) == (option.cells, option.failures, option.votes or 0)
    assert (plan.private, plan.theorem, plan.epochs) == (option.private, option.theorem, option.epochs)
    if option.rho is not None:
        assert plan.rho == pytest.approx(option.rho)


def test_what_a_named_mode_could_do_is_said() -> None:
    with pytest.raises(
        MechanismError, match=r"mode='guess-and-check' certifies 0\.029 while at most .* not private"
    ):
        design(rows=100_000, queries=1000, within=0.029)
    with pytest.raises(MechanismError) as strict:
        design(rows=100_000, queries=1000, within=0.029, private=True)
    assert "guess-and-check" not in str(strict.value)


@pytest.mark.parametrize("unused", [{"failures": 5}, {"hits": 3}, {"threshold": 0.1}, {"tolerance": 0.1}])
def test_parameters_of_a_mode_that_was_not_named_are_refused(unused: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="name the mode"):
        design(rows=2000, queries=50, **unused)
