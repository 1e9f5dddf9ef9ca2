"""The board: caps, ties, the two Ladders, and nothing public about single rows."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.holdout.ladder import climb, free_ladder, proven_ladder
from holdfast.holdout.look_meter import Meter
from holdfast.holdout.metric import GRID, METRICS, Metric, log_loss
from holdfast.holdout.ranking import Standing, ranked
from holdfast.holdout.summary import Summary
from holdfast.ledger import LOOKS, Account
from holdfast.session.answer import Answer

pytestmark = pytest.mark.usefixtures("replayed_noise")
ROWS = 4000
GENERATOR = np.random.default_rng(5)
LABELS = GENERATOR.integers(0, 2, ROWS)


def model(accuracy: float, seed: int = 0) -> np.ndarray:
    right = np.random.default_rng(seed).random(ROWS) < accuracy
    return np.where(right, LABELS, 1 - LABELS)


MODES: tuple[str | None, ...] = (None, "gaussian", "votes", "ladder", "ladder-unproven")


@pytest.mark.parametrize("mode", MODES)
def test_a_submission_gets_an_answer_until_the_team_or_the_board_is_done(mode: str | None) -> None:
    board = Leaderboard(LABELS, queries=5, per_team=2, mode=mode)
    answer = board.submit("red", model(0.8))
    assert isinstance(answer, Answer)
    assert answer.low <= 0.8 <= answer.high
    board.submit("red", model(0.8))
    assert (board.looks_left("red"), board.looks_left("blue"), board.looks_left()) == (0, 2, 3)
    with pytest.raises(BudgetError, match="other teams") as refused:
        board.submit("red", model(0.9))
    assert refused.value.remaining == 0
    for team in ("blue", "green", "green"):
        board.submit(team, model(0.8))
    with pytest.raises(BudgetError):
        board.submit("blue", model(0.9))
    assert board.looks_left() == 0


def test_every_planned_submission_of_a_default_board_is_answered() -> None:
    """Twenty teams that get better and better: no number of surprises ends the board before its looks do."""
    board = Leaderboard(LABELS, queries=200, per_team=10)
    for number in range(200):
        assert board.looks_left() == 200 - number
        assert board.submit(f"team {number % 20}", model(0.5 + 0.002 * number, number)).private
    assert board.looks_left() == 0
    assert board.private
    assert "not private" not in board.table()


def test_fifty_colluding_teams_cannot_pass_the_cap_of_the_board() -> None:
    board = Leaderboard(LABELS, queries=30, per_team=10, mode="gaussian")
    given_out = 0
    for team in range(50):
        for _ in range(10):
            try:
                board.submit(f"team {team}", model(0.5))
                given_out += 1
            except BudgetError:
                break
    assert given_out == 30


def test_team_caps_alone_would_let_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: without the total cap, fifty teams take five hundred looks."""
    board = Leaderboard(LABELS, queries=30, per_team=10, mode="gaussian")
    assert isinstance(board._holdout, ReusableHoldout)
    monkeypatch.setattr(board._holdout.looks, "_most", 10**9)
    board.ledger.set_limit(Account("all looks", LOOKS, 10**9))
    planned = Meter.place
    monkeypatch.setattr(Meter, "next_place", lambda self, charged, used: used + 1)
    monkeypatch.setattr(Meter, "place", lambda self, number, numbers=1: planned(self, number % 90 + 1))
    for team in range(50):
        for _ in range(10):
            board.submit(f"team {team}", model(0.5))
    assert board._holdout.looks_used == 1500  # each of a score and two comparisons


def answer(low: float, high: float) -> Answer:
    return Answer("accuracy", (low + high) / 2, low, high, 0.95, 0, 0, 0, "population", 0, None, 1, "x", "")


Intervals = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6)).map(lambda p: (p[0] / 20, (p[0] + p[1]) / 20)),
    min_size=1,
    max_size=8,
)


def overlap(a: Answer, b: Answer) -> bool:
    return bool(a.low <= b.high and b.low <= a.high)


def law_of_ranks(table: tuple[Standing, ...], sign: float) -> None:
    for a, b in itertools.combinations(table, 2):
        if overlap(a.best, b.best):
            assert a.rank == b.rank
        if a.rank < b.rank:
            assert sign * a.best.value > sign * b.best.value
            assert not overlap(a.best, b.best)
    assert [standing.rank for standing in table] == sorted(standing.rank for standing in table)
    for standing in table:
        assert standing.rank == 1 + sum(other.rank < standing.rank for other in table)


@pytest.mark.parametrize("greater", [True, False])
@given(intervals=Intervals)
def test_teams_whose_intervals_overlap_share_a_rank(
    greater: bool, intervals: list[tuple[float, float]]
) -> None:
    entries = [(f"team {i}", answer(*ends), 1) for i, ends in enumerate(intervals)]
    law_of_ranks(ranked(entries, greater_is_better=greater), 1.0 if greater else -1.0)


def test_ranks_by_value_alone_would_be_caught() -> None:
    """The broken twin: places in order of the values."""
    table = ranked([("a", answer(0.5, 0.7), 1), ("b", answer(0.6, 0.9), 1)], greater_is_better=True)
    by_value = tuple(replace(standing, rank=place) for place, standing in enumerate(table, 1))
    law_of_ranks(table, 1.0)
    with pytest.raises(AssertionError):
        law_of_ranks(by_value, 1.0)


def test_clearly_better_teams_come_first_and_others_tie() -> None:
    board = Leaderboard(LABELS, queries=10, mode="gaussian")
    for team, accuracy in (("weak", 0.55), ("also weak", 0.56), ("strong", 0.95)):
        board.submit(team, model(accuracy))
    ranks = {standing.team: standing.rank for standing in board.standings()}
    assert ranks == {"strong": 1, "weak": 2, "also weak": 2}
    assert {s.team: s.surely_behind for s in board.standings()} == {"strong": 0, "weak": 1, "also weak": 1}
    assert board.best is not None
    assert board.best.value == board.standings()[0].best.value
    assert "strong" in board.table().splitlines()[1]


def test_a_loss_is_better_when_it_is_smaller() -> None:
    board = Leaderboard(LABELS, "brier", queries=10, mode="gaussian")
    board.submit("sure and wrong", 1.0 - LABELS)
    board.submit("right", LABELS.astype(float))
    assert [s.team for s in board.standings()] == ["right", "sure and wrong"]


def test_certified_ladder_errors_are_below_those_of_the_theory_table() -> None:
    for rows, queries, figure in ((4000, 400, 0.185), (10**5, 10**4, 0.071), (10**6, 10**6, 0.037)):
        assert proven_ladder(rows, queries, 0.95).width < figure


@given(
    st.lists(st.integers(0, 50 * GRID // 2).map(lambda x: 2 * x), min_size=1, max_size=30), st.integers(1, 12)
)
def test_the_ladder_shows_falling_multiples_of_its_step(sums: list[int], cells: int) -> None:
    """Exactly the transcript that the theorem counts, and never further than a step from the best so far."""
    ladder = replace(proven_ladder(50, 30, 0.95), cells=cells)
    secret, shown = "", []
    for held in sums:
        losses = np.zeros(50, dtype=np.int64)
        losses[:] = held // 50
        losses[0] += held - int(losses.sum())
        secret, loss, moved = climb(ladder, secret, losses)
        assert moved == (not shown or loss < shown[-1])
        shown.append(loss)
    steps = [value * cells for value in shown]
    assert all(step == pytest.approx(round(step)) for step in steps)
    best = list(itertools.accumulate((held / (50 * GRID) for held in sums), min))
    for value, least in zip(shown, best, strict=True):
        assert -0.5 / cells - 1e-12 <= value - least <= 1.0 / cells + 1e-12


def test_a_team_that_never_moved_the_ladder_does_not_borrow_the_best_score() -> None:
    board = Leaderboard(LABELS, queries=10, mode="ladder")
    board.submit("strong", model(0.9))
    shown = board.submit("weak", model(0.5))
    assert shown.value > 0.8
    assert [s.team for s in board.standings()] == ["strong"]


def test_the_parameter_free_ladder_is_marked_unproven() -> None:
    board = Leaderboard(LABELS, queries=10, mode="ladder-unproven")
    shown = board.submit("a", model(0.7))
    assert (shown.low, shown.high, shown.confidence) == (0.0, 1.0, 0.0)
    assert not board.proven
    assert "unproven" in board.table()
    assert "unproven" in shown.explanation
    assert math.isinf(free_ladder(10, 10, 0.95).width)


def test_the_parameter_free_ladder_keeps_the_attack_at_its_published_loss() -> None:
    """n = 4000, k = 400: the majority of the vectors that moved the board loses 0.484 on the board's rows
    (0.4845 over 60 seeds, standard deviation 0.006 a run). Only two or three vectors move it, and the best
    of them, the last, breaks ties; were it the first, the loss would be 0.493."""
    losses: dict[str, list[float]] = {"last": [], "first": []}
    for seed in range(10):
        generator = np.random.default_rng([2, seed])
        labels = generator.integers(0, 2, 4000)
        coins = generator.integers(0, 2, (400, 4000))
        board = Leaderboard(labels, "error", queries=400, mode="ladder-unproven")
        shown = [board.submit("a", said).value for said in coins]
        moved = np.flatnonzero(np.diff(shown, prepend=1.0) < 0)
        votes = 2 * coins[moved].sum(axis=0) - len(moved)
        for name, breaker in (("last", coins[moved[-1]]), ("first", coins[moved[0]])):
            losses[name].append(float(np.mean(np.where(votes == 0, breaker, votes > 0) != labels)))
    assert np.mean(losses["last"]) == pytest.approx(0.4845, abs=0.005)
    assert np.mean(losses["first"]) > np.mean(losses["last"]) + 0.004


def test_boosting_on_exact_scores_follows_the_formula() -> None:
    for queries in (100, 400):
        losses = []
        for seed in range(6):
            generator = np.random.default_rng([2, seed])
            labels = generator.integers(0, 2, 4000)
            coins = generator.integers(0, 2, (queries, 4000))
            kept = np.round((coins != labels).mean(axis=1), 5) <= 0.5
            votes = 2 * coins[kept].sum(axis=0) - kept.sum()
            losses.append(float(np.mean(np.where(votes == 0, coins[0], votes > 0) != labels)))
        theory = 0.5 - math.sqrt(queries / 4000) / (math.pi * math.sqrt(2))
        assert np.mean(losses) == pytest.approx(theory, abs=0.008)


@pytest.mark.parametrize("mode", [None, "ladder"])
def test_a_board_comes_back_after_a_restart(tmp_path: Path, mode: str | None) -> None:
    board = Leaderboard(LABELS, queries=10, per_team=3, mode=mode, ledger=tmp_path)
    first = board.submit("red", model(0.9), key="day 1")
    board.close()
    board = Leaderboard(LABELS, queries=10, per_team=3, mode=mode, ledger=tmp_path)
    assert board.looks_left("red") == 2
    assert board.submit("red", model(0.9), key="day 1").value == first.value
    assert [s.team for s in board.standings()] == ["red"]
    board.close()
    with pytest.raises(LedgerError):
        Leaderboard(LABELS, queries=11, mode=mode, ledger=tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"per_team": 0}, {"mode": "ladder", "within": 0.1}, {"mode": "ladder", "metric": "recall"}]
)
def test_bad_terms_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Leaderboard(LABELS, queries=5, **wrong)


@pytest.mark.parametrize("team", ["", "   ", "a\nb", "x" * 201, 3])
def test_bad_names_are_refused_before_the_charge(team: Any) -> None:
    board = Leaderboard(LABELS, queries=5)
    with pytest.raises(InputError, match="team"):
        board.submit(team, model(0.5))
    assert board.looks_left() == 5


def test_hostile_team_names_are_inert_on_the_terminal() -> None:
    from rich.console import Console

    board = Leaderboard(LABELS, queries=5, mode="gaussian")
    board.submit("[red]boo[/red]", model(0.5))
    console = Console(record=True, width=120, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(board)
    console.file.close()
    assert "[red]boo[/red]" in console.export_text()


@pytest.mark.parametrize("mode", ["ladder", "ladder-unproven"])
def test_a_ladder_is_not_opened_again_with_another_metric(tmp_path: Path, mode: str) -> None:
    """Its secret is the best loss so far, and the loss of one metric says nothing of another's."""
    terms: dict[str, Any] = {"queries": 9, "mode": mode, "ledger": tmp_path}
    Leaderboard(LABELS, "accuracy", **terms).close()
    for other in ("log-loss", "error", Metric("accuracy", METRICS["accuracy"].values, high=2.0)):
        with pytest.raises(LedgerError, match="other terms"):
            Leaderboard(LABELS, other, **terms)
    Leaderboard(LABELS, "accuracy", **terms).close()


def mixed(folder: Path) -> Leaderboard:
    """A board on log-loss, on labels that were scored by accuracy and by a log-loss of another range."""
    with ReusableHoldout(LABELS, metric="accuracy", queries=27, mode="gaussian", ledger=folder) as holdout:
        holdout.score(LABELS, team="accuracy")
        holdout.score(LABELS * 0.8 + 0.1, metric=log_loss(3.0), team="range", key="once")
        with pytest.raises(InputError, match="another question"):
            holdout.score(LABELS * 0.8 + 0.1, metric=log_loss(5.0), team="range", key="once")
        holdout.check(0.1, LABELS * 0.8 + 0.1, metric=log_loss(5.0), team="check")
    board = Leaderboard(LABELS, "log-loss", queries=9, mode="gaussian", ledger=folder)
    board.submit("log-loss", LABELS * 0.8 + 0.1)
    return board


def test_standings_never_mix_metrics(tmp_path: Path) -> None:
    board = mixed(tmp_path)
    assert [line.team for line in board.standings()] == ["log-loss"]
    assert board.looks_left() == 7
    board.close()


def test_standings_without_their_question_would_be_caught(tmp_path: Path) -> None:
    """The broken twin reads all answers, as if they were of one metric."""
    board = mixed(tmp_path)
    board._summary = Summary(board._holdout.looks, question=None, greater_is_better=False)  # type: ignore[arg-type]
    assert len(board.standings()) > 1
    board.close()


def steps(
    rows: int, teams: int, *, gain: float = 0.02, share: float = 0.05
) -> tuple[np.ndarray, list[np.ndarray]]:
    """(labels, models that are each better by `gain` than the one before and differ from it on `share` of the rows)."""
    draw = np.random.default_rng(8)
    labels = draw.integers(0, 2, rows)
    models = [np.where(draw.random(rows) < 0.8, labels, 1 - labels)]
    for _ in range(teams - 1):
        last = models[-1]
        mended = draw.permutation(np.flatnonzero(last != labels))[: round((share + gain) / 2 * rows)]
        broken = draw.permutation(np.flatnonzero(last == labels))[: round((share - gain) / 2 * rows)]
        models.append(last.copy())
        models[-1][mended], models[-1][broken] = labels[mended], 1 - labels[broken]
    return labels, models


def test_teams_two_points_apart_that_disagree_on_a_twentieth_of_the_rows_have_two_ranks(
    tmp_path: Path,
) -> None:
    labels, models = steps(100_000, 4)
    board = Leaderboard(labels, queries=100, ledger=tmp_path)
    for team in (2, 0, 3, 1):
        board.submit(f"team {team}", models[team])
    assert [(s.rank, s.team) for s in board.standings()] == [(4 - i, f"team {i}") for i in (3, 2, 1, 0)]
    seen = board.standings()
    assert any(overlap(a.best, b.best) for a, b in itertools.pairwise(seen)), (
        "their intervals alone would tie"
    )
    kept = tmp_path / "predictions"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in kept.iterdir()} == {0o600}
    assert len(list(kept.iterdir())) == 4
    board.close()
    with_others = Leaderboard(labels, queries=100, ledger=tmp_path)
    assert [s.rank for s in with_others.standings()] == [1, 2, 3, 4]
    with_others.forget_predictions()
    assert not list(kept.iterdir())
    assert [s.rank for s in with_others.standings()] == [1, 2, 3, 4]
    with_others.close()


def test_without_the_predictions_they_tie() -> None:
    """The broken twin keeps nothing, and knows the intervals of the scores only."""
    labels, models = steps(100_000, 4)
    board = Leaderboard(labels, queries=100)
    for team, model in enumerate(models):
        board.submit(f"team {team}", model)
        board.forget_predictions()
    assert {s.rank for s in board.standings()} == {1}


def test_a_comparison_with_a_submission_that_is_no_longer_the_best_is_not_used() -> None:
    labels, models = steps(100_000, 3)
    board = Leaderboard(labels, queries=100)
    board.submit("low", models[0])
    board.submit("high", models[1])
    assert [s.team for s in board.standings()] == ["high", "low"]
    board.submit("low", models[2])
    assert board.standings()[0].team == "low"
    pairs = board._summary.refresh().differences()
    assert set(pairs) == {("low", "high")}


def distance(low: float, high: float) -> Answer:
    return replace(answer(low, high), question="difference")


@pytest.mark.parametrize("greater", [True, False])
def test_bounds_of_differences_add_up(greater: bool) -> None:
    """a - b is not certain, but b - c is by so much that a - c is too."""
    sign = 1.0 if greater else -1.0
    entries = [(name, answer(0.3, 0.7), 1) for name in "abc"]

    def of(low: float, high: float) -> Answer:
        return distance(*sorted((sign * low, sign * high)))

    apart = {("a", "b"): of(-0.01, 0.03), ("b", "c"): of(0.02, 0.05)}
    table = ranked(entries, greater_is_better=greater, differences=apart)
    assert {s.team: (s.rank, s.surely_behind) for s in table} == {"a": (1, 0), "b": (1, 0), "c": (3, 2)}
    unsure = apart | {("a", "b"): of(-0.03, 0.01)}
    assert {s.rank for s in ranked(entries, greater_is_better=greater, differences=unsure)} == {1}


@given(
    values=st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True),
    doubts=st.lists(st.integers(0, 3), min_size=15, max_size=15),
)
def test_whatever_the_true_scores_are_different_ranks_are_in_the_right_order(
    values: list[int], doubts: list[int]
) -> None:
    """Intervals that hold, for scores and for differences: no two ranks may contradict the truth."""
    truth = {f"team {i}": value / 12 for i, value in enumerate(values)}
    entries = [(team, answer(max(0.0, v - 0.3), min(1.0, v + 0.3)), 1) for team, v in truth.items()]
    pairs = list(itertools.combinations(truth, 2))
    differences = {
        (a, b): distance(truth[a] - truth[b] - doubt / 12, truth[a] - truth[b] + doubt / 24)
        for (a, b), doubt in zip(pairs, doubts, strict=False)
        if doubt
    }
    table = ranked(entries, greater_is_better=True, differences=differences)
    for a, b in itertools.combinations(table, 2):
        assert a.rank == b.rank or truth[a.team] > truth[b.team]
