"""Holdouts and leaderboards that can be looked at again and again without being fooled.

Every score comes with an interval for the population which holds for all scores at once, however adaptively
the models were chosen; the number of looks is enforced.
"""

from __future__ import annotations

from holdfast.holdout.design import Design, design
from holdfast.holdout.gate import require, require_no_worse
from holdfast.holdout.leaderboard import Leaderboard
from holdfast.holdout.metric import METRICS, Metric, log_loss, row_loss, squared_error
from holdfast.holdout.reusable import ReusableHoldout, Verdict
from holdfast.holdout.tracking import OptunaCallback, log_answer, log_to_wandb

__all__ = [
    "METRICS",
    "Design",
    "Leaderboard",
    "Metric",
    "OptunaCallback",
    "ReusableHoldout",
    "Verdict",
    "design",
    "log_answer",
    "log_loss",
    "log_to_wandb",
    "require",
    "require_no_worse",
    "row_loss",
    "squared_error",
]
