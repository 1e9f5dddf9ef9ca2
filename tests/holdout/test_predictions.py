"""What a metric cannot take is refused before the charge, and chances for several classes are scored as such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss as sklearn_log_loss

from holdfast.errors import HoldfastError, InputError
from holdfast.holdout import Leaderboard, ReusableHoldout, log_loss, row_loss
from holdfast.holdout import predictions as predictions_module
from holdfast.holdout.labels import Labels
from holdfast.holdout.metric import GRID, METRICS
from holdfast.holdout.predictions import row_values

ROWS = 2000
DRAW = np.random.default_rng(8)
TWO = DRAW.integers(0, 2, ROWS)
TEN = DRAW.integers(0, 10, ROWS)
TEXT = np.array(["cat", "dog", "eel"])[DRAW.integers(0, 3, ROWS)]
CHANCES = DRAW.dirichlet(np.ones(10), ROWS)


def quoting(said: Any, labels: Any) -> Any:
    raise KeyError(f"label {labels[0]}")


def ragged(ids: Any) -> Any:
    return [[1], [1, 2]]


WRONG: list[tuple[Any, Any, Any]] = [
    (TEN, CHANCES, "accuracy"), (TEN, CHANCES, "squared-error"), (TEN, CHANCES, "value"), (TWO, CHANCES, "recall"),
    (TEN, CHANCES[:, :9], "log-loss"), (TWO, CHANCES, "log-loss"), (TWO, CHANCES[:, :1], "brier"),
    (TWO, TWO[:, None], "error"), (TWO, TWO.astype(complex), "brier"), (TWO, [[1], [1, 2]] * 1000, "accuracy"),
    (TEN, CHANCES[:, 1], "brier"), (TEN, CHANCES[:, 1], "log-loss"), (2 * TWO - 1, CHANCES[:, 1], "brier"),
    (TEXT, TEXT, "brier"), (TEXT, TEXT, "squared-error"), (TEXT, TEXT, "value"), (TEXT, TEXT, "precision"),
    (TEXT, CHANCES[:, :4], "log-loss"), (TEXT, np.zeros(ROWS), "accuracy"), (TWO, TEXT, "accuracy"),
    (TWO, TWO, quoting), (TWO, TWO, lambda said, labels: said[:1]), (TWO, TWO, lambda said, labels: 0.5),
    (TWO, TWO, lambda said, labels: said.astype(str)), (TWO, lambda ids: CHANCES[ids], "accuracy"),
    (TWO, lambda ids: np.zeros(3), "accuracy"), (TWO, ragged, "accuracy"), (TWO, None, "accuracy"),
    (TWO, lambda ids: TEXT[ids], "error"),
]  # fmt: skip


def looks_lost(labels: Any, said: Any, metric: Any, mode: str) -> int:
    """What a score that must be refused costs."""
    with ReusableHoldout(labels, queries=9, mode=mode) as guarded:
        with pytest.raises(InputError) as refused:
            guarded.score(said, metric=metric)
        assert "label " not in str(refused.value)
        return guarded.looks_used


@pytest.mark.parametrize("mode", ["gaussian", "votes", "guess-and-check"])
@pytest.mark.parametrize("case", range(len(WRONG)))
def test_what_a_metric_cannot_take_is_refused_before_the_charge(case: int, mode: str) -> None:
    assert looks_lost(*WRONG[case], mode) == 0


DOORS: dict[str, Callable[[ReusableHoldout, Any, Any], object]] = {
    "check": lambda guarded, said, metric: guarded.check(0.5, said, metric=metric),
    "compare": lambda guarded, said, metric: guarded.compare(said, said, metric=metric),
    "compare the second": lambda guarded, said, metric: guarded.compare(
        FITS[id(guarded)], said, metric=metric
    ),
}
FITS: dict[int, Any] = {}
"""What fits the labels of a holdout, by the holdout."""


@pytest.mark.parametrize("mode", ["gaussian", "guess-and-check"])
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_it_before_the_charge(
    door: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for labels, said, metric in WRONG:
        with ReusableHoldout(labels, queries=9, mode=mode) as guarded:
            chances = metric in ("log-loss", "brier") and labels is TEN
            monkeypatch.setitem(FITS, id(guarded), CHANCES if chances else labels)
            with pytest.raises(InputError) as refused:
                DOORS[door](guarded, said, metric)
            assert "label " not in str(refused.value)
            assert guarded.looks_used == 0


def test_a_board_refuses_it_before_the_charge() -> None:
    """Also the rivals' predictions, which were taken before, stay as they were."""
    tried = 0
    for labels, said, metric in WRONG:
        try:
            board = Leaderboard(labels, metric=metric, queries=9, mode="gaussian")
        except InputError:
            continue  # the metric makes no sense of these labels
        with board:
            before = board.looks_left()
            with pytest.raises(InputError):
                board.submit("team", said)
            assert board.looks_left() == before and not board.standings()
        tried += 1
    assert tried > len(WRONG) / 2


def test_a_check_that_comes_after_the_charge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin takes everything at first, and finds out when the labels are read."""
    taken, calls = predictions_module._taken, []

    def late(said: Any, *rest: Any) -> Any:
        calls.append(said)
        return said if len(calls) == 1 else taken(said, *rest)

    monkeypatch.setattr(predictions_module, "_taken", late)
    monkeypatch.setattr(predictions_module, "_refuse_values", lambda *rest: None)
    assert looks_lost(TEN, CHANCES[:, :9], "log-loss", "gaussian") == 1


def test_an_own_metric_that_fails_on_the_labels_is_ours_and_quotes_none() -> None:
    """It can be known only when it meets the labels: the look is charged, the error is a HoldfastError."""

    def meets(said: Any, labels: Any) -> Any:
        if labels.any():
            raise KeyError(f"label {labels[0]} canary")
        return said

    with ReusableHoldout(TWO, queries=9) as guarded:
        with pytest.raises(HoldfastError, match="KeyError") as refused:
            guarded.score(TWO, metric=row_loss(meets))
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__
        assert "canary" not in str(refused.value)
        assert guarded.looks_used == 1


@pytest.mark.parametrize("opened", [ReusableHoldout, Leaderboard])
def test_a_metric_that_makes_no_sense_of_the_labels_opens_nothing(opened: Callable[..., Any]) -> None:
    for metric in ("squared-error", "recall"):
        with pytest.raises(InputError, match=r"labels that are numbers|pos_label="):
            opened(TEXT, metric=metric, queries=9)


def mean(labels: Any, said: Any, metric: Any) -> float:
    values = row_values(said, Labels(labels), metric)[0](None)
    return float(metric.low + (metric.high - metric.low) * values.mean() / GRID)


@pytest.mark.parametrize("labels", [TEN, TEN * 3 - 7, np.array(list("abcdefghij"))[TEN]])
def test_chances_for_each_class_are_scored_as_the_textbook_does(labels: Any) -> None:
    known = np.unique(labels)
    hot = labels[:, None] == known
    assert mean(labels, CHANCES, METRICS["brier"]) == pytest.approx(
        ((CHANCES - hot) ** 2).sum(axis=1).mean() / 2, abs=1e-5
    )
    soft = 0.9 * CHANCES + 0.01
    assert mean(labels, soft, log_loss(5.0)) == pytest.approx(
        sklearn_log_loss(labels, soft, labels=known), abs=1e-4
    )


@pytest.mark.parametrize("metric", [METRICS["brier"], METRICS["log-loss"]])
def test_two_columns_are_the_same_as_the_chance_of_label_1(metric: Any) -> None:
    chance = DRAW.random(ROWS)
    columns = np.column_stack([1 - chance, chance])
    assert mean(TWO, columns, metric) == pytest.approx(mean(TWO, chance, metric), abs=1e-5)
    assert mean(np.zeros(ROWS, dtype=int), columns, metric) == pytest.approx(
        mean(np.zeros(ROWS, dtype=int), chance, metric), abs=1e-5
    )


@pytest.mark.parametrize("metric", [METRICS["brier"], METRICS["log-loss"]])
def test_chances_that_are_all_large_do_not_win(metric: Any) -> None:
    """An array of them is refused; from a function rows are made to sum to 1, and no chance at all is the worst."""

    def hidden(value: float) -> Any:
        """Even chances for the two rows that are tried, this for the others."""
        return lambda ids: np.where((ids < 2)[:, None], 0.1, np.full((len(ids), 10), value))

    assert mean(TEN, hidden(1.0), metric) == pytest.approx(mean(TEN, hidden(0.1), metric))
    for nothing in (0.0, np.nan, -3.0):
        assert mean(TEN, hidden(nothing), metric) == pytest.approx(metric.high, rel=0.01)
        with pytest.raises(InputError, match=r"chances|finite"):
            mean(TEN, np.full((ROWS, 10), nothing), metric)
    perfect = (TEN[:, None] == np.arange(10)).astype(float)
    assert mean(TEN, perfect, metric) == pytest.approx(0.0)
    assert mean(TEN, np.roll(perfect, 1, axis=1), metric) == pytest.approx(metric.high, abs=1e-4)


def test_a_score_of_several_classes_covers_its_truth() -> None:
    chances = np.where(TEN[:, None] == np.arange(10), 0.55, 0.05)
    with ReusableHoldout(TEN, metric="brier", queries=300) as guarded:
        answer = guarded.score(chances)
        assert answer.low <= (0.45**2 + 9 * 0.05**2) / 2 <= answer.high
        assert guarded.classes.tolist() == list(range(10))
        assert guarded.compare(chances, CHANCES).value < 0
