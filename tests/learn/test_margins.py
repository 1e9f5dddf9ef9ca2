"""Margins: exact against brute force, bounds against each other and against truth, and the phenomenon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy import stats
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)

from holdfast import learn
from holdfast.errors import InputError
from holdfast.learn.margin_bounds import breiman_bound, kl_inverse, kth_margin_bound, schapire_bound

STUMPS = learn.Stumps([np.linspace(-3, 3, 61)] * 10)


def votes_of_ten(rows: int, seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 10))
    return x, x.sum(axis=1) + 0.3 * draw.normal(size=rows) > 0


def test_boosting_chooses_the_best_stump_each_round() -> None:
    small = learn.Stumps([np.linspace(-2, 2, 9), np.linspace(-1, 1, 4)])
    draw = np.random.default_rng(0)
    x = np.round(draw.normal(size=(80, 2)), 1)
    y = np.where(x[:, 0] * x[:, 1] + 0.5 * x[:, 0] > 0, 1.0, -1.0)
    said = np.stack([np.where(small.predict(i, x), 1.0, -1.0) for i in range(small.size)], axis=1)
    found = learn.adaboost(small, x, y, rounds=25)
    weight = np.full(80, 1 / 80)
    for index, alpha in zip(found.chosen, found.weights, strict=True):
        errors = weight @ (said != y[:, None])
        assert errors[index] == pytest.approx(errors.min(), abs=1e-12)
        assert alpha == pytest.approx(0.5 * math.log((1 - errors[index]) / errors[index]))
        weight = weight * np.exp(-alpha * y * said[:, index])
        weight /= weight.sum()
    assert len(found.chosen) == 25


def test_the_test_error_falls_after_the_training_error_is_zero() -> None:
    """From the first round without a training error to the last: four samples, every one of them improves."""
    fresh, truth = votes_of_ten(20_000, seed=999)
    falls = []
    for seed in range(4):
        x, y = votes_of_ten(300, seed)
        model = learn.adaboost(STUMPS, x, y, rounds=1000)
        training = np.cumsum(model.votes(x) * model.weights, axis=1)
        clean = int(np.argmax(((training > 0) == y[:, None]).all(axis=0))) + 1
        votes = model.votes(fresh)
        first, last = (
            float(np.mean((votes[:, :rounds] @ model.weights[:rounds] > 0) != truth))
            for rounds in (clean, 1000)
        )
        falls.append(first - last)
        seen = learn.margins(model, x, y, rounds=(5, clean, 1000))
        assert seen.rounds == (5, clean, 1000)
        assert seen.training_errors[0] > 0 == seen.training_errors[1] == seen.training_errors[2]
        assert seen.minimum > seen.margins[1][0] > 0
        assert "vacuous at n = 300" in str(seen)
    assert min(falls) > 0
    assert np.mean(falls) > 0.01


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(n_estimators=30, random_state=0),
        GradientBoostingClassifier(n_estimators=30, random_state=0),
        BaggingClassifier(n_estimators=15, max_features=0.5, random_state=0),
        RandomForestClassifier(n_estimators=15, max_depth=3, random_state=0),
        ExtraTreesClassifier(n_estimators=15, max_depth=4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_margins_agree_with_what_scikit_learn_predicts(model: Any) -> None:
    x, y = votes_of_ten(400, seed=3)
    names = np.where(y, "yes", "no")
    model.fit(x, names)
    found = learn.margins(model, x, names, rounds=(5, 10_000))
    assert all(np.abs(values).max() <= 1 + 1e-9 for values in found.margins)
    wrong = float(np.mean(model.predict(x) != names))
    assert found.training_errors[-1] == pytest.approx(wrong, abs=1 / 400)  # a tie counts as wrong here
    assert found.rounds == (5, len(model.estimators_))
    assert found.log_hypotheses is not None
    flipped = learn.margins(model, x, names[::-1], rounds=(5,))  # a twin with shuffled truth is seen
    assert flipped.training_errors[0] > found.training_errors[0]


def test_schapire_bound_is_near_the_full_search_and_never_below() -> None:
    draw = np.random.default_rng(4)
    margins = np.clip(draw.normal(0.8, 0.1, 40), -1, 1)
    margins = np.concatenate([np.repeat(margins, 2000), [-0.1]])
    slow = by_hand(margins)
    found = schapire_bound(margins, math.log(20), 0.05)
    assert slow <= found * (1 + 1e-9) <= 1.1 * slow
    assert found < 0.2


def by_hand(margins: Any) -> float:
    """The printed formula at every level and every N up to 400."""
    levels, counts = np.unique(margins, return_counts=True)
    below = (np.cumsum(counts) - counts) / len(margins)
    best = 1.0
    for N in range(1, 400):
        room = math.sqrt(
            (math.log(N * (N + 1) ** 2) + N * math.log(20) - math.log(0.05)) / (2 * len(margins))
        )
        for theta, share in zip(levels, below, strict=True):
            if theta > 0:
                best = min(best, share + 2 * math.exp(-N * theta**2 / 8) + room)
    return best


def test_kth_margin_bound_is_never_above_schapire() -> None:
    draw = np.random.default_rng(5)
    sharper = 0
    for _ in range(8):
        margins = np.clip(draw.normal(draw.uniform(0.2, 0.9), 0.2, 20_000), -1, 1)
        ours, k = kth_margin_bound(margins, math.log(50), 0.05)
        assert ours <= schapire_bound(margins, math.log(50), 0.05) + 1e-12
        assert 1 <= k <= 20_000
        sharper += ours < 0.9
    assert sharper


def test_kl_inverse_is_the_chernoff_bound() -> None:
    for p, room in ((0.0, 0.1), (0.1, 0.01), (0.5, 0.3), (0.99, 0.2), (1.0, 0.1)):
        q = kl_inverse(p, room)
        assert p <= q <= 1
        if q < 1 - 1e-9:
            kl = stats.entropy([p, 1 - p], [q, 1 - q])
            assert kl == pytest.approx(room, rel=1e-6)
    assert kl_inverse(0.0, 0.1) == pytest.approx(1 - math.exp(-0.1))


def test_bounds_cover_the_population_when_the_class_is_searched() -> None:
    """The best of 64 coordinates, all coins: f = one member, margin +-1; the truth is that half of all err."""
    draw = np.random.default_rng(6)
    naive = missed = 0
    for _ in range(200):
        x = draw.random((60, 64)) < 0.5
        errors = (~x).mean(axis=0)  # the truth is "all true"
        margins = np.where(x[:, int(errors.argmin())], 1.0, -1.0)
        value, _ = kth_margin_bound(margins, math.log(64), 0.05)
        missed += value < 0.5
        naive += (
            float(np.mean(margins <= 0)) + math.sqrt(math.log(20) / 120) < 0.5
        )  # the twin ignores the search
    assert missed <= stats.binom.ppf(1 - FALSE_ALARM, 200, 0.05)
    assert naive > stats.binom.ppf(1 - FALSE_ALARM, 200, 0.05)


def test_breiman_checks_its_conditions() -> None:
    value, why = breiman_bound(0.9, 100_000, math.log(1000), 0.05)
    R = 32 * math.log(2000) / (100_000 * 0.81)
    exact = R * (math.log(200_000) + math.log(1 / R) + 1) + math.log(1000 / 0.05) / 100_000
    assert why == ""
    assert value == pytest.approx(exact)
    assert breiman_bound(0.1, 100_000, math.log(1000), 0.05) == (
        1.0,
        "needs a smallest margin above 4 sqrt(2/|H|)",
    )
    assert breiman_bound(-0.1, 100_000, math.log(1000), 0.05)[0] == 1.0
    assert breiman_bound(0.005, 10, 50.0, 0.05) == (1.0, "needs R <= 2n")


def test_plot_and_drawing() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    x, y = votes_of_ten(100, seed=7)
    found = learn.margins(learn.adaboost(STUMPS, x, y, rounds=120), x, y)
    ax = found.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "5 rounds",
        "100 rounds",
        "120 rounds",
    ]
    assert ax.lines[0].get_xdata()[1] == found.margins[0][0]
    assert found._repr_html_().count("<polyline") == 3
    import matplotlib.pyplot as plt

    plt.close("all")


def test_bad_input_is_refused() -> None:
    x, y = votes_of_ten(50, seed=8)
    model = learn.adaboost(STUMPS, x, y, rounds=5)
    with pytest.raises(InputError, match="got dict"):
        learn.margins({}, x, y)
    with pytest.raises(InputError, match="not fitted"):
        learn.margins(AdaBoostClassifier(), x, y)
    with pytest.raises(InputError, match="two classes"):
        learn.margins(RandomForestClassifier(n_estimators=2).fit(x, np.arange(50) % 3), x, y)
    for rounds in ((), (0,), (True,)):
        with pytest.raises(InputError):
            learn.margins(model, x, y, rounds=rounds)
    with pytest.raises(InputError):
        learn.margins(model, x, y, confidence=1.0)
    with pytest.raises(InputError):
        learn.adaboost(STUMPS, x, y, rounds=0)
