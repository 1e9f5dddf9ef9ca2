"""The scikit-learn estimators: their conventions, their refusals, and that they learn."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from holdfast import learn
from holdfast.errors import InputError

PRIVACY = "fits twice and compares: two fits must differ, or the noise was not fresh"
EXCEPTIONS = {
    "PrivateLogisticRegression": [
        "check_fit_idempotent",
        "check_classifier_data_not_an_array",
        "check_supervised_y_2d",
    ],
    "PrivateLinearRegression": [
        "check_fit_idempotent",
        "check_regressor_data_not_an_array",
        "check_supervised_y_2d",
        "check_regressors_int",
    ],
}
READY: dict[str, Any] = {"bounds": (-20.0, 20.0), "outside": "clip", "iterations": 10}


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
    private = learn.PrivateLogisticRegression(epsilon=1.0, delta=1e-6, radius=20.0).fit(x, y)
    open_one = LogisticRegression().fit(x, y)
    assert private.score(fresh, truth) > open_one.score(fresh, truth) - 0.01
    assert private.predict_proba(fresh).sum(axis=1) == pytest.approx(np.ones(20_000))
    assert private.plan_.cost <= 1.0
    assert 0 < private.excess_ < 0.5
    assert private.coef_[0] == pytest.approx([6, -6, 0, 0, 0], abs=1.5)


def test_two_fits_differ_and_pure_works() -> None:
    x, y = classes(20_000)
    one, two = (learn.PrivateLogisticRegression(iterations=10).fit(x, y) for _ in range(2))
    assert (one.coef_ != two.coef_).all()
    pure = learn.PrivateLogisticRegression(epsilon=1.0, delta=0, iterations=10).fit(x, y)
    assert pure.plan_.mechanism == "votes" and pure.plan_.currency == "pure"


def test_linear_regression_in_its_own_units() -> None:
    draw = np.random.default_rng(2)
    x = draw.uniform(0, 10, (40_000, 2))
    y = 3 * x[:, 0] - 2 * x[:, 1] + 5 + draw.normal(0, 1, 40_000)
    model = learn.PrivateLinearRegression(bounds=(0, 10), target_bounds=(-40, 60), radius=4.0, epsilon=5.0)
    model.fit(x, y)
    assert model.coef_ == pytest.approx([3, -2], abs=0.2)
    assert model.intercept_ == pytest.approx(5, abs=1.5)
    assert model.score(x, y) > 0.95


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
    with pytest.raises(InputError, match="two are needed"):
        learn.PrivateLogisticRegression().fit(x, np.arange(200) % 3)
    for bad in (
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"radius": -1.0},
        {"bounds": (1, -1)},
        {"outside": "x"},
    ):
        with pytest.raises(InputError):
            learn.PrivateLogisticRegression(**bad).fit(x, y)


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
