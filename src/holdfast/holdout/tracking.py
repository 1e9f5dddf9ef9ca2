"""Where experiments are logged: Optuna studies, and anything with MLflow's `log_metric`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import BudgetError
from holdfast.session.answer import Answer

if TYPE_CHECKING:
    from holdfast.holdout.predictions import Predictions
    from holdfast.holdout.reusable import AnyMetric, ReusableHoldout


class MetricLog(Protocol):
    """What `mlflow` (the module, or a client bound to a run) can do."""

    def log_metric(self, key: str, value: float, step: int | None = None) -> Any:
        """Keep one number."""


def log_answer(log: MetricLog, answer: Answer, *, name: str | None = None, step: int | None = None) -> None:
    """Log value, low and high as three metrics, so that every chart carries the interval."""
    stem = _stem(answer, name)
    for part in ("value", "low", "high"):
        log.log_metric(stem if part == "value" else f"{stem}_{part}", float(getattr(answer, part)), step=step)


class RunLog(Protocol):
    """What a run of `wandb` can do."""

    def log(self, data: dict[str, Any], step: int | None = None) -> Any:
        """Keep some numbers."""


def log_to_wandb(run: RunLog, answer: Answer, *, name: str | None = None, step: int | None = None) -> None:
    """Log value, low and high of an answer to a run of Weights & Biases."""
    stem = _stem(answer, name)
    run.log(
        {stem: float(answer.value), f"{stem}_low": float(answer.low), f"{stem}_high": float(answer.high)},
        step=step,
    )


def _stem(answer: Answer, name: str | None) -> str:
    return name or "holdout_" + answer.question.replace(" ", "_").replace("-", "_")


class OptunaCallback:
    """Checks each new best trial of a study on the holdout; `callbacks=[OptunaCallback(...)]` in optimize.

    `predict(trial)` gives the holdout predictions of a finished trial. The trial's own value is the guess, so
    the modes of guesses a truthful study costs nearly nothing. In a study of several objectives it is each new trial on
    the Pareto front, and the guess is its value of the objective number `objective`. Results go to the study's user
    attributes under "holdout". When no looks are left it stops the study, or (stop=False) only goes silent.
    """

    def __init__(
        self,
        holdout: ReusableHoldout,
        predict: Callable[[Any], Predictions],
        *,
        metric: AnyMetric | None = None,
        objective: int = 0,
        stop: bool = True,
    ) -> None:
        self.holdout, self.predict, self.metric, self.stop = holdout, predict, metric, stop
        self.objective = objective
        self.verdicts: dict[int, Any] = {}
        self.refused = False

    def __call__(self, study: Any, trial: Any) -> None:
        if self.refused or trial.values is None:
            return
        if trial.number not in [best.number for best in study.best_trials]:
            return
        value = float(trial.values[self.objective])
        try:
            verdict = self.holdout.check(value, self.predict(trial), metric=self.metric)
        except BudgetError:
            self.refused = True
            if self.stop:
                study.stop()
            return
        self.verdicts[trial.number] = verdict
        answer = verdict.answer
        told = {"fine": verdict.fine, "value": answer.value, "low": answer.low, "high": answer.high}
        study.set_user_attr("holdout", {**study.user_attrs.get("holdout", {}), str(trial.number): told})
