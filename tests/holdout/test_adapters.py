"""Where people already work: scikit-learn, Optuna, MLflow-style logs, test suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.errors import BudgetError, InputError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout.gate import require, require_no_worse
from holdfast.holdout.tracking import OptunaCallback, log_answer, log_to_wandb

pytestmark = pytest.mark.usefixtures("replayed_noise")
GENERATOR = np.random.default_rng(9)
FEATURES = GENERATOR.normal(size=(4000, 3))
LABELS = (FEATURES[:, 0] + 0.3 * GENERATOR.normal(size=4000) > 0).astype(int)
TRAIN, Y_TRAIN = FEATURES[:1000], LABELS[:1000]
HELD, Y_HELD = FEATURES[1000:], LABELS[1000:]


def holdout(**more: Any) -> ReusableHoldout:
    return ReusableHoldout(Y_HELD, **{"queries": 40, "features": HELD, "mode": "gaussian", **more})


def test_scikit_learn_searches_with_the_holdout_as_scorer() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, cross_val_score

    guarded = holdout()
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=guarded.scorer("accuracy"), cv=2)
    search.fit(TRAIN, Y_TRAIN)
    assert guarded.looks_used == 4
    brier = guarded.scorer("brier", method="predict_proba")
    scores = cross_val_score(LogisticRegression(), TRAIN, Y_TRAIN, scoring=brier, cv=2)
    assert guarded.looks_used == 6
    assert (scores <= 0).all()
    model = LogisticRegression().fit(TRAIN, Y_TRAIN)
    scorer = guarded.scorer()
    value = scorer(model, TRAIN, Y_TRAIN)
    assert value == scorer.answers[0].value
    assert scorer.answers[0].low <= model.score(HELD, Y_HELD) <= scorer.answers[0].high


def test_a_scorer_takes_frames_and_lists_and_predicts_only_drawn_rows() -> None:
    import pandas as pd

    class Model:
        def __init__(self) -> None:
            self.sizes: list[int] = []

        def predict(self, rows: Any) -> Any:
            self.sizes.append(len(rows))
            return np.zeros(len(rows), dtype=int)

    for features in (pd.DataFrame(HELD), HELD.tolist(), HELD):
        model, guarded = Model(), holdout(mode="votes")
        guarded.scorer(features=features)(model)
        assert model.sizes == [2, guarded.design.votes]
    with pytest.raises(InputError, match="features"):
        ReusableHoldout(Y_HELD, queries=5).scorer()
    with pytest.raises(InputError, match="3000 rows"):
        guarded.scorer(features=HELD[:5])


@pytest.mark.filterwarnings("ignore::Warning:optuna")
def test_an_optuna_study_checks_each_new_best_and_stops_when_the_looks_end() -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    guarded = holdout(queries=2)

    def predict(trial: Any) -> np.ndarray:
        return (HELD[:, 0] > trial.params["bar"]).astype(int)

    def objective(trial: Any) -> float:
        bar = trial.suggest_float("bar", -2, 2)
        return float(np.mean((TRAIN[:, 0] > bar) == Y_TRAIN))

    callback = OptunaCallback(guarded, predict)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    for bar in (2.0, 1.0, 0.5, 0.2, 0.0):
        study.enqueue_trial({"bar": bar})
    study.optimize(objective, n_trials=50, callbacks=[callback])
    assert guarded.looks_used == 2
    assert callback.refused
    assert len(study.trials) < 50
    told = study.user_attrs["holdout"]
    assert len(told) == 2
    assert all(entry["low"] <= entry["value"] <= entry["high"] for entry in told.values())
    assert all(verdict.fine for verdict in callback.verdicts.values())


def test_a_whole_grid_search_is_answered_as_planned() -> None:
    """Six settings in five folds, with the holdout that a user opens without thinking about modes."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    guarded = ReusableHoldout(Y_HELD, queries=30, features=HELD)
    settings = {"C": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0]}
    search = GridSearchCV(LogisticRegression(), settings, scoring=guarded.scorer(), cv=5, error_score="raise")
    search.fit(TRAIN, Y_TRAIN)
    assert (guarded.looks_used, guarded.looks_left) == (30, 0)
    assert all(answer.private for _, answer in guarded.history())
    with pytest.raises(BudgetError):
        guarded.scorer()(search.best_estimator_)


@pytest.mark.filterwarnings("ignore::Warning:optuna")
def test_a_study_whose_objective_is_the_holdout_runs_all_its_trials() -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    guarded = ReusableHoldout(Y_HELD, queries=200)

    def objective(trial: Any) -> float:
        bar = trial.suggest_float("bar", -2, 2)
        return float(guarded.score((HELD[:, 0] > bar).astype(int)).value)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=200)
    assert (guarded.looks_used, guarded.looks_left) == (200, 0)
    assert len({trial.value for trial in study.trials}) > 150


def classified(labels: np.ndarray) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(TRAIN, labels[:1000])


THREE = np.digitize(FEATURES[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize("labels", [THREE, np.array(["low", "mid", "top"])[THREE], 2 * LABELS - 1])
@pytest.mark.parametrize("metric", ["brier", "log-loss"])
def test_chances_of_every_class_are_scored_not_the_last_column(labels: np.ndarray, metric: str) -> None:
    from sklearn.metrics import log_loss

    model, held = classified(labels), labels[1000:]
    guarded = ReusableHoldout(held, queries=300, features=HELD)
    scorer = guarded.scorer(metric, method="predict_proba")
    scorer(model)
    chances = model.predict_proba(HELD)
    hot = held[:, None] == model.classes_
    truth = ((chances - hot) ** 2).sum(axis=1).mean() / 2 if metric == "brier" else log_loss(held, chances)
    assert scorer.answers[0].low <= truth <= scorer.answers[0].high


def test_a_model_of_other_classes_or_one_that_breaks_costs_no_look() -> None:
    from sklearn.linear_model import LogisticRegression

    guarded = ReusableHoldout(THREE[1000:], queries=4, features=HELD)
    two = LogisticRegression().fit(TRAIN, Y_TRAIN)
    with pytest.raises(InputError, match="3 classes, in the same order, got one of 2"):
        guarded.scorer("brier", method="predict_proba")(two)
    narrow = LogisticRegression().fit(TRAIN[:, :2], THREE[:1000])
    with pytest.raises(ValueError, match="features"):
        guarded.scorer()(narrow)
    with pytest.raises(InputError, match="one number for each row"):
        guarded.scorer("squared-error", method="predict_proba")(classified(THREE))
    assert guarded.looks_used == 0


def test_answers_are_logged_with_their_interval() -> None:
    class Log:
        def __init__(self) -> None:
            self.kept: dict[str, tuple[float, int | None]] = {}

        def log_metric(self, key: str, value: float, step: int | None = None) -> None:
            self.kept[key] = (value, step)

    log, answer = Log(), holdout().score(Y_HELD)
    log_answer(log, answer, step=3)
    log_answer(log, answer, name="final")
    assert log.kept["holdout_accuracy"] == (answer.value, 3)
    assert log.kept["holdout_accuracy_low"] == (answer.low, 3)
    assert log.kept["final_high"] == (answer.high, None)


def test_a_gate_passes_only_what_is_sure() -> None:
    guarded = holdout()
    good, coin = Y_HELD, GENERATOR.integers(0, 2, 3000)
    assert require(guarded, good, at_least=0.7).value > 0.9
    assert require(guarded, good, at_most=0.3, metric="error").value < 0.1
    with pytest.raises(AssertionError, match="not surely at least"):
        require(guarded, coin, at_least=0.5)
    with pytest.raises(AssertionError, match="not surely at most"):
        require(guarded, coin, at_most=0.5)
    assert require_no_worse(guarded, good, coin, by=0.05).low > -0.05
    assert require_no_worse(guarded, good, coin, by=0.05, metric="error").value < 0
    with pytest.raises(AssertionError, match="may be worse"):
        require_no_worse(guarded, coin, good, by=0.05)


def test_a_gate_with_a_key_can_be_run_again_for_nothing() -> None:
    guarded = holdout(queries=1)
    require(guarded, Y_HELD, at_least=0.5, key="commit")
    require(guarded, Y_HELD, at_least=0.5, key="commit")
    with pytest.raises(BudgetError):
        require(guarded, Y_HELD, at_least=0.5, key="another")


def test_workers_of_a_search_share_one_count_of_looks(tmp_path: Path) -> None:
    from joblib import Parallel, delayed
    from sklearn.linear_model import LogisticRegression

    with holdout(ledger=tmp_path) as guarded:
        model = LogisticRegression().fit(TRAIN, Y_TRAIN)
        scores = Parallel(n_jobs=2)(delayed(guarded.scorer())(model) for _ in range(6))
        assert guarded.looks_used == 6
        assert sorted(scores) == sorted(answer.value for _, answer in guarded.history())
    with pytest.raises(InputError, match="ledger="):
        holdout().__reduce__()


@pytest.mark.filterwarnings("ignore::Warning:optuna")
def test_a_study_of_several_objectives_checks_each_new_trial_on_the_front() -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    guarded = holdout(queries=30)

    def predict(trial: Any) -> np.ndarray:
        return (HELD[:, 0] > trial.params["bar"]).astype(int)

    def objective(trial: Any) -> tuple[float, float]:
        bar = trial.suggest_float("bar", -2, 2)
        return abs(bar), float(np.mean((TRAIN[:, 0] > bar) == Y_TRAIN))

    callback = OptunaCallback(guarded, predict, objective=1)
    study = optuna.create_study(
        directions=["minimize", "maximize"], sampler=optuna.samplers.RandomSampler(seed=0)
    )
    for bar in (2.0, 1.0, 0.0, 1.5):
        study.enqueue_trial({"bar": bar})
    study.optimize(objective, n_trials=4, callbacks=[callback])
    assert set(callback.verdicts) == {0, 1, 2}
    assert guarded.looks_used == 3


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package itself, with its store in a folder: nothing is sent."""
    import mlflow

    answer = holdout().score(Y_HELD)
    before = mlflow.get_tracking_uri()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    try:
        with mlflow.start_run() as run:
            log_answer(mlflow, answer, step=3)
            log_answer(mlflow, answer, name="own", step=4)
        client = mlflow.MlflowClient()
        for stem, step in (("holdout_accuracy", 3), ("own", 4)):
            for part in ("value", "low", "high"):
                name = stem if part == "value" else f"{stem}_{part}"
                (kept,) = client.get_metric_history(run.info.run_id, name)
                assert (kept.value, kept.step) == (getattr(answer, part), step)
    finally:
        mlflow.set_tracking_uri(before)


@pytest.mark.filterwarnings("ignore")
def test_a_run_of_weights_and_biases_keeps_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package itself, offline: the run is a file."""
    for part in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"WANDB_{part}_DIR", str(tmp_path / part.lower()))
    import wandb

    answer = holdout().score(Y_HELD)
    quiet = wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True)
    run = wandb.init(mode="offline", dir=str(tmp_path), project="holdfast", settings=quiet)
    try:
        log_to_wandb(run, answer, step=3)
    finally:
        run.finish()
        wandb.teardown()
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    kept = file.read_bytes()
    for name, value in (("holdout_accuracy_low", answer.low), ("holdout_accuracy_high", answer.high)):
        assert name.encode() in kept
        assert repr(value).removesuffix(".0").encode() in kept
