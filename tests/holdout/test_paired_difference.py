"""Is B better than A: narrow where they agree on most rows, and true under attack."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from holdfast.errors import BudgetError, InputError
from holdfast.holdout import ReusableHoldout, require_no_worse, reusable
from holdfast.holdout import looks as looks_room
from holdfast.holdout.labels import Labels
from holdfast.holdout.look_meter import Means, Meter, Place
from holdfast.holdout.looks import Looks
from holdfast.holdout.metric import METRICS, metric_named
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.paired_difference import Comparison
from holdfast.holdout.predictions import known_disagreement
from holdfast.ledger import Charge, Entry
from holdfast.session.answer import Answer

pytestmark = pytest.mark.usefixtures("replayed_noise")


def two_models(rows: int, better: float, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(labels, a model, another that differs on `share` of the rows and is better by `better`)."""
    draw = np.random.default_rng(9)
    labels = draw.integers(0, 2, rows)
    first = np.where(draw.random(rows) < 0.85, labels, 1 - labels)
    differ = draw.permutation(rows)[: round(share * rows)]
    right = draw.permutation(np.arange(len(differ)) < (share + better) / 2 * rows)
    second = first.copy()
    second[differ] = np.where(right, labels[differ], 1 - labels[differ])
    first[differ] = 1 - second[differ]
    return labels, first, second


@pytest.mark.parametrize(("rows", "queries", "within"), [(10_000, 100, 0.025), (100_000, 1000, 0.014)])
def test_models_that_agree_on_97_rows_of_100_are_told_apart(rows: int, queries: int, within: float) -> None:
    """Before: 0.19 and 0.058."""
    labels, old, new = two_models(rows, 0.03, 0.03)
    with ReusableHoldout(labels, queries=queries) as guarded:
        answer = guarded.compare(new, old)
        assert answer.width <= within
        assert answer.low <= 0.03 <= answer.high
        assert answer.low > 0
        assert guarded.looks_left == queries - 1
        assert answer.private
    plain = 2 * ReusableHoldout(labels, queries=queries).width
    assert answer.width < plain / 3


def test_a_disagreement_that_nobody_knows_is_told_with_noise() -> None:
    labels, old, new = two_models(10_000, 0.03, 0.03)
    with ReusableHoldout(labels, queries=100, expect=0.03) as guarded:
        answer = guarded.compare(lambda ids: new[ids], lambda ids: old[ids])
        assert answer.width <= 0.025
        assert answer.low <= 0.03 <= answer.high
        wide = guarded.compare(new, old, expect=0.2)
        assert wide.width > 1.5 * answer.width


def test_models_that_differ_more_than_expected_cost_more_and_are_refused_in_time() -> None:
    labels, old, _ = two_models(10_000, 0.03, 0.03)
    with ReusableHoldout(labels, queries=40) as guarded:
        with pytest.raises(BudgetError, match="differ on more than 5% of the rows"):
            for _ in range(40):
                guarded.compare(old, 1 - old, expect=0.05)
        used = guarded.looks_used
        assert 1 < len(guarded.history()) < 20 < used
        assert guarded.looks_left == 0
        with pytest.raises(BudgetError):
            guarded.score(old)
        assert guarded.looks_used == used


def spent_after_jumps() -> tuple[float, float]:
    """(what all looks cost, what the design says that they cost together): comparisons that tell as much as many
    looks, and then those of models that are the same, which tell nothing."""
    labels, old, _ = two_models(10_000, 0.03, 0.03)
    with ReusableHoldout(labels, queries=100, mode="gaussian") as guarded:
        answers = [guarded.compare(old, 1 - old, expect=0.05) for _ in range(6)]
        with contextlib.suppress(BudgetError):
            for _ in range(94):
                answers.append(guarded.compare(old, old))
        return sum(answer.rho or 0.0 for answer in answers), guarded.design.compared_rho


def test_all_looks_together_cost_what_the_design_says_whatever_they_tell() -> None:
    """Noise falls from place to place; each is used once, so that nobody stays in the costliest."""
    spent, stated = spent_after_jumps()
    assert spent <= stated


def test_places_that_are_used_again_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the first place before which as much was told, used or not (a place says nothing of looks)."""
    monkeypatch.setattr(
        Looks, "_place", lambda self, taken, looks, charged: self.meter.next_place(charged, 0)
    )
    charged = Looks.charge

    def one_look(self: Looks, *args: Any, **named: Any) -> Entry:
        with monkeypatch.context() as inside:
            inside.setattr(
                looks_room, "Charge", lambda session, table, queries: Charge(session, session, queries)
            )
            return charged(self, *args, **named)

    monkeypatch.setattr(Looks, "charge", one_look)
    spent, stated = spent_after_jumps()
    assert spent > 1.3 * stated


def test_what_was_told_before_rivals_are_chosen_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others ask while a submission is under way, and whom it is compared with depends on their answers."""
    labels, old, new = two_models(2000, 0.03, 0.03)
    seen: list[tuple[float, ...]] = []
    original = reusable.compared

    def watched(meter: Meter, asked: Comparison, place: Place, charged: tuple[float, ...]) -> Outcome:
        seen.append(charged)
        return original(meter, asked, place, charged)

    monkeypatch.setattr(reusable, "compared", watched)
    with ReusableHoldout(labels, queries=30, mode="gaussian") as guarded:
        told: list[tuple[float, ...]] = []

        def rivals(answer: Answer) -> list[tuple[int, np.ndarray]]:
            for _ in range(5):
                guarded.score(old, team="another")
            told.append(guarded.looks.transcript().charged)
            return [(1, old), (2, 1 - old)]

        guarded.submit(new, rivals)
        meter = guarded.looks.meter
        assert meter is not None
        own = meter.charges(Means(1, 0))
        assert len(seen) == 2
        for charged, (before, mine) in zip(seen[0], zip(told[0], own, strict=True), strict=True):
            assert charged >= before + mine
        assert all(a >= b for a, b in zip(seen[1], seen[0], strict=True))


@pytest.mark.parametrize("expect", [0.01, 0.6, math.nan, "0.1", True])
def test_a_guess_that_the_plan_does_not_allow_is_refused_before_the_look(expect: object) -> None:
    labels, old, new = two_models(2000, 0.03, 0.03)
    with ReusableHoldout(labels, queries=5) as guarded:
        with pytest.raises(InputError, match="expect"):
            guarded.compare(new, old, expect=expect)  # type: ignore[arg-type]
        assert guarded.looks_used == 0


def test_a_gate_lets_a_better_model_through() -> None:
    """A review's case: n = 10,000, k = 100, a gain of 0.04; it was refused with a bar of one point."""
    labels, old, new = two_models(10_000, 0.04, 0.1)
    with ReusableHoldout(labels, queries=100) as guarded:
        assert require_no_worse(guarded, new, old, by=0.01).low > -0.01
        with pytest.raises(AssertionError, match="may be worse"):
            require_no_worse(guarded, old, new, by=0.01)


@pytest.mark.parametrize("metric", ["accuracy", "error", "brier", "log-loss"])
def test_a_known_disagreement_is_the_largest_over_all_labels(metric: str) -> None:
    """Brute force: every way to label six rows with two classes."""
    draw, kind = np.random.default_rng(4), METRICS[metric]
    (values,) = kind.row_values
    for _ in range(5):
        labels = Labels(np.array([0, 1, 0, 1, 1, 0]))
        sides = [draw.integers(0, 2, 6) if kind.wants == "labels" else draw.random(6) for _ in "ab"]
        found = known_disagreement(sides[0], sides[1], labels, kind)
        assert found is not None
        largest = max(
            float(
                np.mean(
                    np.abs(np.subtract(*(np.asarray(values(side, np.array(held)), float) for side in sides)))
                )
            )
            for held in itertools.product((0, 1), repeat=6)
        )
        assert largest <= found + 1e-4
        assert found == pytest.approx(largest, abs=1e-4)


def test_what_takes_the_labels_or_the_features_is_not_known() -> None:
    labels = Labels(np.array([0.5, 1.5, 2.5]))
    numbers = np.zeros(3)
    assert known_disagreement(numbers, numbers, labels, metric_named("squared-error")) is None
    two = Labels(np.array([0, 1, 1]))
    assert known_disagreement(lambda ids: numbers[ids], numbers, two, metric_named("accuracy")) is None


def hill_climbing(
    compare: Callable[[np.ndarray, np.ndarray], Answer | float], rows: int, looks: int
) -> list[Answer | float]:
    """Compare models that differ on a twentieth of the rows with one base; in the end the rows that helped most.

    Labels are coins, so that every difference is 0 in the population.
    """
    draw = np.random.default_rng(1)
    base, helped, told = draw.integers(0, 2, rows), np.zeros(rows), []
    for _ in range(looks - 1):
        flipped = draw.permutation(rows)[: rows // 20]
        other = base.copy()
        other[flipped] = 1 - other[flipped]
        told.append(compare(other, base))
        value = told[-1].value if isinstance(told[-1], Answer) else told[-1]
        helped[flipped] += float(value)
    best = base.copy()
    chosen = np.argsort(helped)[-rows // 20 :]
    best[chosen] = 1 - best[chosen]
    return [*told, compare(best, base)]


@pytest.mark.parametrize("mode", ["gaussian", "votes"])
def test_differences_hold_under_attack(mode: str) -> None:
    rows, looks = 2000, 250
    for seed in range(2):
        labels = np.random.default_rng([5, seed]).integers(0, 2, rows)
        with ReusableHoldout(labels, queries=looks, mode=mode) as guarded:
            told = hill_climbing(lambda a, b, g=guarded: g.compare(a, b), rows, looks)  # type: ignore[misc]
        assert all(isinstance(answer, Answer) and answer.low <= 0 <= answer.high for answer in told)


def test_a_paired_test_fails_where_ours_holds() -> None:
    """The broken twin: exact differences, with the interval of a paired normal test for 250 looks."""
    rows, looks = 2000, 250
    labels = np.random.default_rng([5, 0]).integers(0, 2, rows)
    told = hill_climbing(lambda a, b: float(np.mean((a == labels) * 1.0 - (b == labels))), rows, looks)
    reach = 4.0 * math.sqrt(0.05 / rows)  # Q(4) is less than 0.05/(2*250)
    assert abs(float(told[-1])) > 1.5 * reach  # type: ignore[arg-type]
