"""Adaptive opponents: the published numbers, the truths they claim, and who stays inside the interval."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.audit.overfitting import ANSWERERS, ATTACKS, Answerer, Attack, Referee, play
from holdfast.audit.overfitting.game import Halted
from holdfast.audit.overfitting.holdouts import thresholdout_with
from holdfast.audit.overfitting.naive_bayes import single_adaptive_analyst
from holdfast.audit.overfitting.population import coins
from holdfast.errors import BudgetError, InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.validity.gaussian_answers import gaussian_noise

SMALL = {
    "boosting": (1000, 400),
    "hill-climbing": (400, 200),
    "single-adaptive": (1000, 300),
    "quadratic-adaptive": (1000, 300),
    "feature-selection": (1000, 500),
    "trained-selection": (1000, 1003),
    "fingerprinting": (400, 400),
    "repeating": (500, 1001),
    "membership": (300, 601),
}


def games(attack: str, answerer: str, runs: int, rows: int, queries: int, **more: Any) -> list[Any]:
    return [
        play(
            ATTACKS[attack],
            ANSWERERS[answerer],
            rows=rows,
            queries=queries,
            generator=np.random.default_rng([seed, rows]),
            bits=ReplayedBits(seed),
            **more,
        )
        for seed in range(runs)
    ]


def test_the_small_version_covers_every_attack() -> None:
    assert SMALL.keys() == ATTACKS.keys()


@pytest.mark.parametrize("attack", ATTACKS)
def test_naive_answers_fail_and_ours_hold(attack: str) -> None:
    """Each is judged by the width that it claims itself. At these sizes exact answers would stay inside our
    widths too; `test_exact_answers_leave_the_width_that_ours_keep` is played where they do not.
    """
    rows, queries = SMALL[attack]
    naive = games(attack, "naive", 12, rows, queries)
    assert sum(game.missed for game in naive) >= 11
    for answerer in ANSWERERS.keys() - {"naive"}:
        outcomes = games(attack, answerer, 6, rows, queries)
        assert [game for game in outcomes if game.missed] == [], answerer
    for answerer in ("gaussian", "votes"):
        assert all(game.answered >= queries - 10 for game in games(attack, answerer, 1, rows, queries))


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_truths_that_analysts_state_are_true(attack: str) -> None:
    """Every question is asked of a fresh sample too: its mean must be near the stated truth."""
    rows, queries = SMALL[attack]
    fresh = ATTACKS[attack].population(20 * rows, queries, np.random.default_rng(99))
    if attack == "fingerprinting":  # who exists depends on the size of the sample
        fresh = np.random.default_rng(99).integers(0, 4 * rows, size=20 * rows)
    gaps: list[np.ndarray] = []

    class Honest(Referee):
        def many(self, questions: Any, truths: Any, guesses: Any = None) -> np.ndarray:
            gaps.append(np.abs(questions(fresh).mean(axis=0) - np.asarray(truths)))
            return super().many(questions, truths, guesses)

    generator = np.random.default_rng(7)
    sample = ATTACKS[attack].population(rows, queries, generator)
    ATTACKS[attack].analyst(Honest(sample, ANSWERERS["naive"](rows, queries, 0.05, None), queries), generator)
    worst = float(np.concatenate(gaps).max())
    assert worst < math.sqrt(math.log(2 * queries / 1e-9) / (2 * 20 * rows))


def test_boosting_hits_the_published_losses() -> None:
    """n = 4000: loss .467 at k = 100 and .427 at k = 400 on a rounded leaderboard."""
    for queries, loss, spread in ((100, 0.464, 0.005), (400, 0.429, 0.007)):
        found = 0.5 - np.mean([game.last for game in games("boosting", "naive", 20, 4000, queries)])
        assert found == pytest.approx(loss, abs=spread)
        assert found == pytest.approx(0.5 - math.sqrt(queries / 4000) / (math.pi * math.sqrt(2)), abs=0.004)


def test_the_single_adaptive_analyst_gains_what_theory_says() -> None:
    found = np.mean([game.last for game in games("single-adaptive", "naive", 20, 2000, 200)])
    assert found == pytest.approx(0.125, abs=0.006)


def test_gaussian_noise_takes_most_of_the_gain_away() -> None:
    """The bias is .399 sqrt(k/n)/sqrt(1 + 4 n sigma^2); the twin without noise has all of it."""
    rows, queries = 2000, 400
    sigma = gaussian_noise(rows, queries, 0.05)[1] / rows
    expected = 0.399 * math.sqrt(queries / rows / (1 + 4 * rows * sigma**2))
    gains = []
    for seed in range(60):
        seen = Recorder()
        attack = Attack("seen", ATTACKS["single-adaptive"].population, seen)
        play(
            attack,
            ANSWERERS["gaussian"],
            rows=rows,
            queries=queries,
            generator=np.random.default_rng(seed),
            bits=ReplayedBits(seed),
        )
        gains.append(seen.gain)
    error = float(np.std(gains)) / math.sqrt(len(gains))
    assert np.mean(gains) == pytest.approx(expected, abs=6 * error)
    assert np.mean(gains) < 0.3 * 0.399 * math.sqrt(queries / rows)


class Recorder:
    """The single-adaptive analyst, noting how right the last vote is on the sample itself."""

    gain = math.nan

    def __call__(self, ask: Referee, generator: np.random.Generator) -> None:
        single_adaptive_analyst(self.watch(ask), generator)

    def watch(self, ask: Referee) -> Referee:
        answer = ask._answerer.answer

        def noted(truths: np.ndarray, guesses: Any) -> np.ndarray:
            self.gain = float(truths.mean(axis=0)[-1]) - 0.5
            return answer(truths, guesses)

        ask._answerer = Answerer("watched", ask._answerer.width, noted)
        return ask


def test_freedmans_paradox_as_in_the_thresholdout_paper() -> None:
    """n = d = 3000, no signal: the plain holdout says .63, Thresholdout .51, and .50 is true."""
    rows, queries = 3000, 3003

    def reusable(rows: int, queries: int, beta: float, bits: Any) -> Answerer:
        root = math.sqrt(rows)
        return thresholdout_with(rows, round(2 * root), Fraction(round(root / 8)), 10**9, 1.0, bits)

    arguments = {"rows": rows, "queries": queries}
    attack = ATTACKS["trained-selection"]
    plain, protected = (
        np.mean(
            [
                play(
                    attack, maker, **arguments, generator=np.random.default_rng(s), bits=ReplayedBits(s)
                ).last
                for s in range(4)
            ]
        )
        for maker in (ANSWERERS["naive"], reusable)
    )
    assert plain == pytest.approx(0.13, abs=0.015)
    assert protected < 0.025


def test_naive_answers_break_where_theory_says() -> None:
    """At k = n (alpha/.399)^2 the error of the single-adaptive analyst crosses alpha."""
    rows, alpha = 2500, 0.1
    edge = rows * (alpha / 0.399) ** 2
    below = np.mean([game.last for game in games("single-adaptive", "naive", 20, rows, round(0.7 * edge))])
    above = np.mean([game.last for game in games("single-adaptive", "naive", 20, rows, round(1.4 * edge))])
    assert below < alpha < above


def test_exact_answers_leave_the_width_that_ours_keep() -> None:
    """The twin has no noise and claims the same width, at a size where that matters (k/n = 0.56)."""
    rows, queries = 20_000, 11_151

    def twin(rows: int, queries: int, beta: float, bits: Any) -> Answerer:
        exact = ANSWERERS["naive"](rows, queries, beta, bits).answer
        return Answerer("twin", ANSWERERS["gaussian"](rows, queries, beta, bits).width, exact)

    attack = ATTACKS["single-adaptive"]
    ours, exact = (
        play(
            attack,
            maker,
            rows=rows,
            queries=queries,
            generator=np.random.default_rng(3),
            bits=ReplayedBits(3),
        )
        for maker in (ANSWERERS["gaussian"], twin)
    )
    assert ours.width == exact.width == pytest.approx(0.25, abs=1e-3)
    assert not ours.missed
    assert exact.missed


def test_an_answerer_that_stops_ends_the_game() -> None:
    def mute(rows: int, queries: int, beta: float, bits: Any) -> Answerer:
        def answer(truths: np.ndarray, guesses: Any) -> np.ndarray:
            answers = truths.mean(axis=0)
            answers[5:] = np.nan
            return answers

        return Answerer("mute", 0.5, answer)

    outcome = play(ATTACKS["boosting"], mute, rows=100, queries=20, generator=np.random.default_rng(0))
    assert (outcome.answered, outcome.queries) == (5, 20)
    empty = play(
        ATTACKS["membership"], ANSWERERS["splitting"], rows=10, queries=21, generator=np.random.default_rng(0)
    )
    assert (empty.answered, empty.missed) == (0, False)


def test_the_referee_counts_and_refuses() -> None:
    rows = coins(50, 4, np.random.default_rng(0))
    ask = Referee(rows, ANSWERERS["naive"](50, 2, 0.05, None), 2)
    assert ask(lambda r: r[:, 1], 0.5) == rows[:, 1].mean()
    assert ask.left == 1
    with pytest.raises(InputError, match="predicate"):
        ask(lambda r: r[:, 1].astype(float), 0.5)
    ask(lambda r: r[:, 2], 0.5)
    with pytest.raises(BudgetError):
        ask(lambda r: r[:, 3], 0.5)


def test_a_stopped_answerer_tells_the_analyst() -> None:
    ask = Referee(coins(5, 3, np.random.default_rng(0)), ANSWERERS["splitting"](5, 9, 0.05, None), 9)
    with pytest.raises(Halted):
        ask(lambda rows: rows[:, 0], 0.5)


@pytest.mark.parametrize(
    "changes", [{"rows": 0}, {"queries": 0}, {"beta": 0.0}, {"beta": 1.0}, {"beta": math.nan}]
)
def test_nonsense_is_refused(changes: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"rows": 100, "queries": 10, "beta": 0.05} | changes
    with pytest.raises(InputError):
        play(ATTACKS["boosting"], ANSWERERS["naive"], **arguments, generator=np.random.default_rng(0))
