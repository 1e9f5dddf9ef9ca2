"""The scikit-learn estimators: their conventions, their refusals, and that they learn."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

from holdfast import learn
from holdfast.errors import InputError

PRIVACY = "fits twice and compares: two fits must differ, or the noise was not fresh"
EXCEPTIONS = {
    "PrivateLogisticRegression": [
        "check_fit_idempotent",
        "check_classifier_data_not_an_array",
        "check_supervised_y_2d",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "PrivateLinearRegression": [
        "check_fit_idempotent",
        "check_regressor_data_not_an_array",
        "check_supervised_y_2d",
        "check_regressors_int",
    ],
    "PrivateScaler": [
        "check_fit_idempotent",
        "check_transformer_general",
        "check_transformer_data_not_an_array",
    ],
}
READY: dict[str, Any] = {"bounds": (-20.0, 20.0), "outside": "clip"}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_scikit_learn_accepts_it_but_for_the_stated_exceptions(name: str) -> None:
    model = getattr(learn, name)(**READY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own checks warn on purpose
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= set(EXCEPTIONS[name]), PRIVACY
    assert sum(result["status"] == "passed" for result in results) >= 40


def classes(rows: int, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    x = draw.uniform(-1, 1, (rows, 5))
    return x, np.where(draw.random(rows) < 1 / (1 + np.exp(-6 * (x[:, 0] - x[:, 1]))), "yes", "no")


def test_it_learns_nearly_what_the_open_one_learns() -> None:
    x, y = classes(40_000)
    fresh, truth = classes(20_000, seed=1)
    private = learn.PrivateLogisticRegression(epsilon=1.0, delta=1e-6).fit(x, y)
    open_one = LogisticRegression().fit(x, y)
    assert private.score(fresh, truth) > open_one.score(fresh, truth) - 0.01
    assert private.predict_proba(fresh).sum(axis=1) == pytest.approx(np.ones(20_000))
    assert 0 < private.excess_ < 0.5 and "at most" in private.certificate_
    assert private.coef_[0] == pytest.approx([6, -6, 0, 0, 0], abs=1.5)
    assert private.n_iter_ == 20


def test_two_fits_differ_and_pure_works() -> None:
    x, y = classes(20_000)
    one, two = (learn.PrivateLogisticRegression().fit(x, y) for _ in range(2))
    assert (one.coef_ != two.coef_).all()
    pure = learn.PrivateLogisticRegression(epsilon=1.0, delta=0).fit(x[:, :1], y)
    assert "votes" in pure.certificate_ and pure.coef_.shape == (1, 1)


@pytest.mark.parametrize("sets", [load_breast_cancer, load_digits])
def test_small_tables_are_learnt_better_than_by_plain_descent(sets: Any) -> None:
    """Mean accuracy over three splits at (1, 1e-6): DP gradient descent has .885 and .865 (docs/benchmarks.md), the
    former rule had .67 and .81."""
    x, y = sets(return_X_y=True)
    bounds = (x.min(axis=0) * 0.9, x.max(axis=0) * 1.1 + 1e-9) if x.shape[1] == 30 else (0.0, 16.0)
    scores = []
    for seed in range(3):
        train, test, known, truth = train_test_split(x, y % 2, test_size=0.3, random_state=seed)
        scores.append(
            learn.PrivateLogisticRegression(bounds=bounds, outside="clip")
            .fit(train, known)
            .score(test, truth)
        )
    assert np.mean(scores) > (0.85 if x.shape[1] == 30 else 0.82)


def test_data_frames_text_labels_and_sparse_rows() -> None:
    x, y = classes(4000)
    frame = pd.DataFrame(x, columns=list("abcde"))
    model = learn.PrivateLogisticRegression(epsilon=10.0).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == list("abcde") and set(model.predict(frame)) == {"no", "yes"}
    thin = sparse.csr_matrix(np.where(np.abs(x) < 0.3, 0.0, x))
    again = learn.PrivateLogisticRegression(epsilon=10.0).fit(thin, y)
    assert again.score(thin, y) > 0.8


def test_many_classes_and_declared_ones() -> None:
    draw = np.random.default_rng(3)
    x = draw.uniform(-1, 1, (9000, 2))
    y = np.array(["north", "east", "south", "west"])[
        (np.arctan2(x[:, 1], x[:, 0]) // (np.pi / 2)).astype(int) + 2
    ]
    model = learn.PrivateLogisticRegression(classes=["north", "east", "south", "west", "nowhere"]).fit(x, y)
    assert model.predict_proba(x).shape == (9000, 5) and model.score(x, y) > 0.9
    assert model.certificate_ == "nothing certified"
    with pytest.raises(InputError, match="labels among classes="):
        learn.PrivateLogisticRegression(classes=["north", "east"]).fit(x, y)


def test_weights_move_the_model() -> None:
    """A tenth is rare: unweighted it is hardly predicted, balanced often; so with weights on rows."""
    draw = np.random.default_rng(4)
    x = draw.uniform(-1, 1, (30_000, 2))
    rare = draw.random(30_000) < 0.1 * (1 + 0.8 * x[:, 0])
    told = {}
    for name, how, weights in (
        ("plain", {}, None),
        ("balanced", {"class_weight": "balanced"}, None),
        ("declared", {"class_weight": {True: 9.0}}, None),
        ("rows", {"weight_bound": 9.0}, np.where(rare, 9.0, 1.0)),
    ):
        told[name] = (
            learn.PrivateLogisticRegression(**how).fit(x, rare, sample_weight=weights).predict(x).mean()
        )
    assert told["plain"] < 0.05
    assert all(0.2 < told[name] < 0.8 for name in ("balanced", "declared", "rows")), told


def test_without_intercept_the_boundary_goes_through_the_origin() -> None:
    x = np.random.default_rng(5).uniform(0, 10, (5000, 2))
    model = learn.PrivateLogisticRegression(bounds=(0, 10), fit_intercept=False).fit(x, x[:, 0] > x[:, 1])
    assert model.intercept_ == 0 and model.score(x, x[:, 0] > x[:, 1]) > 0.95


def test_linear_regression_in_its_own_units() -> None:
    draw = np.random.default_rng(2)
    x = draw.uniform(0, 10, (40_000, 2))
    y = 3 * x[:, 0] - 2 * x[:, 1] + 5 + draw.normal(0, 1, 40_000)
    model = learn.PrivateLinearRegression(bounds=(0, 10), target_bounds=(-40, 60)).fit(x, y)
    assert model.coef_ == pytest.approx([3, -2], abs=0.2)
    assert model.intercept_ == pytest.approx(5, abs=1.5)
    assert model.score(x, y) > 0.95
    assert model.coef_intervals_.shape == (2, 2) and (model.coef_certified_ < 0.5).all()
    pure = learn.PrivateLinearRegression(bounds=(0, 10), target_bounds=(-40, 60), delta=0).fit(x[:, :1], y)
    assert not hasattr(pure, "coef_intervals_")


def test_a_scaler_finds_the_range_and_a_pipeline_learns() -> None:
    x, y = classes(20_000)
    wide = x * [1, 10, 100, 5, 2] + [0, 50, -300, 1, 7]
    scaler = learn.PrivateScaler(bounds=(-1000, 1000))
    piped = make_pipeline(scaler, learn.PrivateLogisticRegression()).fit(wide, y)
    assert piped.score(wide, y) > 0.85
    assert scaler.low_ == pytest.approx([-1, 41, -390, -3.5, 5.2], abs=10)
    assert scaler.high_ == pytest.approx([1, 59, -210, 5.5, 8.8], abs=10)
    assert np.abs(scaler.transform(wide * 50)).max() == 1.0


def test_scaling_may_round() -> None:
    x, y = classes(500)
    scaled = MinMaxScaler().fit_transform(x)
    scaled[0, 0], scaled[1, 0] = 1.0000000000000002, -1e-16
    learn.PrivateLogisticRegression(bounds=(0, 1)).fit(scaled, y)
    scaled[0, 0] = 1.001
    with pytest.raises(InputError, match="scale them with public numbers"):
        learn.PrivateLogisticRegression(bounds=(0, 1)).fit(scaled, y)


def test_unscaled_and_missing_data_are_refused_with_advice() -> None:
    x, y = classes(200)
    with pytest.raises(InputError, match="scale them with public numbers"):
        learn.PrivateLogisticRegression().fit(x * 100, y)
    holes = x.copy()
    holes[3, 2] = np.nan
    with pytest.raises(InputError, match="NaN or infinity; drop those rows"):
        learn.PrivateLogisticRegression().fit(holes, y)
    with pytest.raises(InputError, match="target_bounds"):
        learn.PrivateLinearRegression().fit(x, x[:, 0] * 50)
    with pytest.raises(ValueError, match="NaN"):  # scikit-learn's own words
        learn.PrivateLinearRegression().fit(x, np.where(np.arange(200) == 3, np.nan, 0.5))
    with pytest.raises(InputError, match="at least two classes"):
        learn.PrivateLogisticRegression().fit(x, np.ones(200))
    for weights in (np.ones(199), np.full(200, -1.0), np.full(200, 1.5), np.zeros(200), np.full(200, np.nan)):
        with pytest.raises(InputError, match="sample weights"):
            learn.PrivateLogisticRegression().fit(x, y, sample_weight=weights)
    for bad in (
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"weight_bound": -1.0, "class_weight": {"no": -1.0}},
        {"class_weight": "fair"},
        {"class_weight": 3},
        {"iterations": 0},
        {"bounds": (1, -1)},
        {"bounds": ([0.0, 0.0], [1.0, 1.0])},
        {"bounds": 7},
        {"outside": "x"},
        {"delta": 0, "class_weight": "balanced"},
    ):
        with pytest.raises(InputError):
            learn.PrivateLogisticRegression(**bad).fit(x, y)
    with pytest.raises(InputError, match="rank"):
        learn.PrivateScaler(rank=0.7).fit(x)


def test_learn_needs_no_scikit_learn_until_it_is_used() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from holdfast import learn\n"
        "learn.FiniteClass(learn.Thresholds([0.0])), learn.logistic, learn.Monitor, learn.margins\n"
        "try: learn.PrivateLogisticRegression\n"
        "except ImportError: print('asked for')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "asked for"
