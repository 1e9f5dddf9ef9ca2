"""Margins: exact against brute force and against scikit-learn, and the phenomenon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)

from holdfast import learn
from holdfast.errors import InputError

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
