"""The reusable holdout: what it charges, what it refuses, and that its intervals hold under attack."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BudgetError, HoldfastError, InputError, LedgerError, MechanismError
from holdfast.holdout import Leaderboard, ReusableHoldout, design, label_release, row_loss
from holdfast.holdout.design import MODES, Design

pytestmark = pytest.mark.usefixtures("replayed_noise")
ROWS = 6000
TRIED = 2
"""Of how many rows a function is asked before the charge."""


def world(seed: int = 0, rows: int = ROWS, accuracy: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, rows)
    return labels, np.where(generator.random(rows) < accuracy, labels, 1 - labels)


def holdout(mode: str, labels: np.ndarray, queries: int = 40, **more: Any) -> ReusableHoldout:
    return ReusableHoldout(labels, queries=queries, mode=mode, **more)


@pytest.mark.parametrize("mode", MODES)
class TestEveryMode:
    def test_a_score_is_near_the_truth_and_says_how_near(self, mode: str) -> None:
        labels, said = world()
        answer = holdout(mode, labels).score(said)
        assert answer.low <= 0.8 <= answer.high
        assert answer.high - answer.low <= 2 * holdout(mode, labels).width * (1 + 1e-9)
        parts = answer.noise + answer.sampling + answer.population
        assert parts == pytest.approx(answer.width if mode == "guesses" else holdout(mode, labels).width)
        assert answer.mechanism == mode

    def test_looks_are_counted_and_the_last_is_followed_by_a_refusal(self, mode: str) -> None:
        labels, said = world()
        guarded = holdout(mode, labels, queries=3)
        for left in (2, 1, 0):
            guarded.score(said, guess=0.8)
            assert guarded.looks_left == left
        with pytest.raises(BudgetError, match="fresh holdout") as refused:
            guarded.score(said, guess=0.8)
        assert refused.value.remaining == 0
        assert guarded.looks_used == 3

    def test_a_ratio_takes_two_looks_and_what_is_left_is_named(self, mode: str) -> None:
        labels, said = world()
        guarded = holdout(mode, labels, queries=3)
        if mode == "guesses":
            with pytest.raises(InputError, match="a mean over rows"):
                guarded.score(said, metric="precision", guess=0.4)
            return
        guarded.score(said, metric="precision", guess=0.4)
        assert guarded.looks_used == 2
        with pytest.raises(BudgetError, match="accuracy"):
            guarded.score(said, metric="recall", guess=0.4)
        assert guarded.score(said, guess=0.8).low <= 0.8

    def test_a_known_key_is_free_and_says_the_same(self, mode: str) -> None:
        labels, said = world()
        guarded = holdout(mode, labels, queries=2)
        first = guarded.score(said, key="model-7")
        again = guarded.score(said, key="model-7")
        assert (again.value, again.repeated, guarded.looks_used) == (first.value, True, 1)
        with pytest.raises(InputError, match="another question"):
            guarded.score(said, metric="error", key="model-7")

    def test_check_confirms_a_true_score_and_corrects_a_false_one(self, mode: str) -> None:
        labels, said = world(rows=40_000)
        guarded = holdout(mode, labels, queries=8)
        honest, boast = guarded.check(0.8, said), guarded.check(0.999, said)
        assert honest.fine
        assert not boast.fine
        assert boast.answer.low <= 0.8 <= boast.answer.high

    def test_compare_reads_a_difference_in_one_look(self, mode: str) -> None:
        labels, said = world(rows=40_000)
        guarded = holdout(mode, labels, queries=8)
        answer = guarded.compare(said, 1 - said)
        assert answer.low <= 0.6 <= answer.high
        assert guarded.looks_used == 1

    def test_the_charge_stands_before_a_label_is_read(self, mode: str) -> None:
        labels, _ = world()
        guarded = holdout(mode, labels)

        def fails(ids: np.ndarray) -> np.ndarray:
            if len(ids) <= TRIED:
                return np.zeros(len(ids))
            assert guarded.looks_used == 1
            raise RuntimeError("a model that breaks")

        with pytest.raises(RuntimeError):
            guarded.score(fails)
        assert guarded.looks_used == 1

    def test_messages_and_answers_never_tell_a_label(self, mode: str) -> None:
        labels = np.array(["canary-93", "plain"] * 3000)
        guarded = holdout(mode, labels, queries=2)
        told = [guarded.score(labels, guess=1.0).to_json()]
        for wrong in (lambda: guarded.score(labels[:5]), lambda: guarded.score(np.zeros(6000))):
            with pytest.raises(InputError) as refused:
                wrong()
            told.append(str(refused.value))
        guarded.score(labels, guess=1.0)
        with pytest.raises(BudgetError) as ended:
            guarded.score(labels)
        assert "canary" not in " ".join([*told, str(ended.value), str(guarded.design)])


def test_charging_after_reading_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin of `test_the_charge_stands_before_a_label_is_read`."""
    labels, _ = world()
    guarded = holdout("votes", labels)
    ask = guarded._ask

    def read_first(question: str, sides: Any, *rest: Any) -> Any:
        sides[0](np.arange(3))
        return ask(question, sides, *rest)

    monkeypatch.setattr(guarded, "_ask", read_first)
    seen: list[int] = []
    guarded.score(lambda ids: (seen.append(guarded.looks_used), np.zeros(len(ids)))[1])
    assert seen[0] == 0


def test_votes_index_an_array_only_at_drawn_rows() -> None:
    """A score must not touch n entries: that is what makes 1e7 rows as quick as 1e5."""
    labels = np.zeros(2_000_000, dtype=np.int64)
    guarded = ReusableHoldout(labels, queries=100, within=0.05)
    assert guarded.design.mode == "votes"
    asked: list[int] = []
    guarded.score(lambda ids: (asked.append(len(ids)), np.zeros(len(ids)))[1])
    assert asked == [TRIED, guarded.design.votes]
    assert guarded.design.rows_read < 5000
    larger = design(rows=20_000_000, queries=100, within=0.05)
    assert larger.rows_read <= 1.1 * guarded.design.rows_read


def boosting(score: Callable[[np.ndarray], float], rows: int, queries: int, seed: int) -> np.ndarray:
    """Blum and Hardt's attack: keep the random vectors that scored at least 1/2, return their majority."""
    generator = np.random.default_rng([7, seed])
    coins = generator.integers(0, 2, (queries, rows))
    kept = np.array([score(row) >= 0.5 for row in coins[:-1]])
    votes = 2 * coins[:-1][kept].sum(axis=0) - kept.sum()
    return np.where(votes == 0, coins[-1], votes > 0).astype(np.int64)


@pytest.mark.parametrize("mode", ["votes", "gaussian", "guess-and-check", "thresholdout"])
def test_intervals_hold_under_the_boosting_attack(mode: str) -> None:
    """Every label is a coin, so the truth is 1/2. Seeds are fixed, and the widths leave room to spare."""
    missed = 0
    for seed in range(8):
        labels = np.random.default_rng([3, seed]).integers(0, 2, 2000)
        guarded = ReusableHoldout(labels, queries=101, mode=mode)
        answers = []

        def score(said: np.ndarray, guarded: Any = guarded, answers: Any = answers) -> float:
            answers.append(guarded.score(said))
            return float(answers[-1].value)

        final = boosting(score, 2000, 100, seed)
        answers.append(guarded.score(final))
        missed += any(not answer.low <= 0.5 <= answer.high for answer in answers)
    assert missed == 0


def test_exact_scores_fail_where_ours_hold() -> None:
    """The broken twin: on the same labels, exact means leave the width that Guess-and-Check keeps."""
    exact_missed = ours_missed = 0
    for seed in range(2):
        labels = np.random.default_rng([3, seed]).integers(0, 2, 400)
        guarded = ReusableHoldout(labels, queries=3001, mode="guess-and-check", failures=6)
        exact = boosting(lambda said, y=labels: float(np.mean(said == y)), 400, 3000, seed)
        exact_missed += abs(float(np.mean(exact == labels)) - 0.5) > guarded.width
        ours = boosting(lambda said, g=guarded: float(g.score(said, guess=0.52).value), 400, 3000, seed)
        answer = guarded.score(ours, guess=0.52)
        ours_missed += not answer.low <= 0.5 <= answer.high
    assert (exact_missed, ours_missed) == (2, 0)


def test_half_the_noise_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The released Gaussian noise has the designed spread; half of it is rejected by the same test."""
    labels, said = world()

    def spread() -> float:
        guarded = ReusableHoldout(labels, queries=400, mode="gaussian")
        values = [guarded.score(said).value for _ in range(400)]
        wanted = [
            guarded.design.sigma(epoch) for epoch in guarded.design.epochs for _ in range(epoch.answers)
        ]
        return float(np.std((np.array(values) - np.mean(said == labels)) / wanted))

    assert 0.8 < spread() < 1.2
    original = label_release.add_gaussian
    monkeypatch.setattr(label_release, "add_gaussian", lambda value, variance: original(value, variance / 4))
    assert not 0.8 < spread() < 1.2


def test_precision_and_recall_cover_the_truth_at_every_corner() -> None:
    labels, said = world(rows=50_000)
    guarded = ReusableHoldout(labels, queries=50)
    for name in ("precision", "recall"):
        answer = guarded.score(said, metric=name)
        assert 0.0 <= answer.low < 0.8 < answer.high <= 1.0
    nothing = guarded.score(np.zeros(50_000), metric="precision")
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_scores_come_on_the_metrics_own_scale() -> None:
    labels, _ = world(rows=50_000)
    guarded = ReusableHoldout(labels, queries=50)
    chances = np.full(50_000, 0.5)
    assert (
        guarded.score(chances, metric="log-loss").low
        <= math.log(2)
        <= guarded.score(chances, metric="log-loss").high
    )
    halves = guarded.score(chances, metric=row_loss(lambda said, y: said / 4))
    assert halves.low <= 0.125 <= halves.high


@pytest.mark.parametrize(
    "wrong",
    [
        {"queries": 0}, {"queries": True}, {"queries": 2.5}, {"queries": 10, "within": 0.0},
        {"queries": 10, "within": math.nan}, {"queries": 10, "confidence": 1.0}, {"queries": 10, "mode": "magic"},
        {"queries": 10, "metric": "nonsense"}, {"queries": 10, "features": np.zeros((3, 1))}, {},
        {"queries": 10, "mode": "thresholdout", "threshold": -1.0}, {"queries": 10, "mode": "thresholdout", "hits": 0},
        {"queries": 10, "mode": "guess-and-check", "failures": -1},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ReusableHoldout(world()[0], **wrong)


@pytest.mark.parametrize("guess", [math.nan, math.inf, True, "0.5"])
def test_bad_guesses_are_refused_before_the_charge(guess: Any) -> None:
    labels, said = world()
    guarded = ReusableHoldout(labels, queries=5)
    with pytest.raises(InputError):
        guarded.check(guess, said)
    assert guarded.looks_used == 0


def test_what_cannot_be_certified_is_refused_with_what_can() -> None:
    with pytest.raises(MechanismError, match=r"certifies .* or [\d,]+ looks within 0.05"):
        design(rows=10_000, queries=100_000, within=0.05, private=True)
    with pytest.raises(MechanismError, match="nothing can be certified"):
        design(rows=3, queries=10**6)
    with pytest.raises(MechanismError, match="not private"):
        design(rows=1000, queries=10, mode="guess-and-check", private=True)


def test_the_planner_prefers_what_reads_least_and_keeps_its_promise() -> None:
    assert design(rows=10**6, queries=1000, within=0.05).mode == "votes"
    assert design(rows=4000, queries=4000).mode == "gaussian"
    for rows, queries, within in ((10**4, 50, 0.1), (10**5, 500, 0.06), (2000, 20, 0.15)):
        chosen = design(rows=rows, queries=queries, within=within)
        assert chosen.width <= within
        narrowest = design(rows=rows, queries=queries)
        options = [design(rows=rows, queries=queries, mode=mode) for mode in MODES[:3]]
        assert narrowest.width == min(option.width for option in options if option.private)
        assert narrowest == design(rows=rows, queries=queries, private=True)
        either = design(rows=rows, queries=queries, private=False)
        assert either.width == min(option.width for option in options)


@pytest.mark.parametrize("mode", MODES)
def test_a_design_survives_json(mode: str) -> None:
    plan = design(rows=5000, queries=30, mode=mode)
    assert Design.from_json(plan.to_json()) == plan


def test_guess_and_check_refuses_when_failures_used_up_its_width() -> None:
    """Wild guesses fail; after enough of them the next look is refused, before anything is charged."""
    labels, said = world()
    guarded = ReusableHoldout(labels, queries=1000, mode="guess-and-check", failures=4)
    with pytest.raises(BudgetError, match="guesses failed"):
        for number in range(1000):
            guarded.score(said, guess=float(number % 2))
    used = guarded.looks_used
    assert 4 <= used < 40
    assert guarded.looks_left == 0
    with pytest.raises(BudgetError):
        guarded.score(said)
    assert guarded.looks_used == used


def test_thresholdout_ends_after_its_disagreements() -> None:
    labels, said = world()
    guarded = ReusableHoldout(labels, queries=100, mode="thresholdout", hits=3)
    with pytest.raises(BudgetError, match="disagreed 3 times"):
        for _ in range(100):
            guarded.check(0.0, said)
    assert guarded.looks_left == 0


def test_other_terms_for_the_same_labels_are_refused(tmp_path: Any) -> None:
    labels, said = world()
    with ReusableHoldout(labels, queries=10, ledger=tmp_path) as first:
        first.score(said)
    with pytest.raises(LedgerError, match="other terms"):
        ReusableHoldout(labels, queries=20, ledger=tmp_path)
    with ReusableHoldout(labels, ledger=tmp_path) as again:
        assert (again.looks_used, again.looks_left) == (1, 9)


def test_every_error_is_ours() -> None:
    assert issubclass(BudgetError, HoldfastError)
    labels, _ = world()
    guarded = ReusableHoldout(labels, queries=5)
    for wrong in (np.zeros((3, 3)), "text", None, np.array([{}] * ROWS)):
        with pytest.raises(HoldfastError):
            guarded.score(wrong)
    assert guarded.looks_used == 0


@given(
    rows=st.integers(1, 60),
    queries=st.integers(1, 500),
    within=st.none() | st.floats(0.01, 0.99),
    mode=st.none() | st.sampled_from(MODES),
)
@settings(max_examples=20, deadline=None)
def test_small_holdouts_get_a_design_or_a_clear_refusal(
    rows: int, queries: int, within: float | None, mode: str | None
) -> None:
    try:
        plan = design(rows=rows, queries=queries, within=within, mode=mode)
    except MechanismError:
        return
    assert 0.0 < plan.width <= (within or 1.0)
    labels = np.arange(rows) % 2
    answer = ReusableHoldout(labels, queries=queries, within=within, mode=mode).score(labels)
    assert 0.0 <= answer.low <= answer.value <= answer.high <= 1.0


def test_labels_behind_a_ladder_are_not_opened_as_a_holdout(tmp_path: Any) -> None:
    labels, _ = world()
    Leaderboard(labels, queries=10, mode="ladder", ledger=tmp_path).close()
    for terms in ({}, {"queries": 10}):
        with pytest.raises(LedgerError):
            ReusableHoldout(labels, ledger=tmp_path, **terms)


def test_a_generous_guess_and_check_lasts_for_all_planned_looks() -> None:
    labels, said = world(rows=100_000)
    guarded = ReusableHoldout(labels, queries=1000, within=0.4, mode="guess-and-check")
    assert guarded.looks_left == 1000
    guarded.score(said, guess=0.0)
    assert guarded.looks_left == 999
