"""Holdouts: what a look tells of one label, against what it says that it costs.

One label of a few, or both of one unit, is the other class. Which classes there are is public: both tables have both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.audit.case import DELTA, Case, one_by_one
from holdfast.holdout import ReusableHoldout
from holdfast.privacy.conversion import zcdp_to_approx
from holdfast.session.answer import Answer

Labels = tuple[int, ...]
FIRST: Labels = (0, 1) * 10
SECOND: Labels = (1, *FIRST[1:])
OTHER_UNIT: Labels = (1, 0, *FIRST[2:])
"""Both rows of the first unit, where a unit has two, have other labels."""
_MODEL = np.array(FIRST)
_OTHER = np.array(SECOND)
"""It differs in one row, the one whose label is replaced: that moves the difference by two rows."""
_CHANCES = np.where(_MODEL == 1, 0.8, 0.2)
_RUNS = 1_500


def holdouts() -> list[Case]:
    """Scores, comparisons, tables, and guesses that are checked."""
    gaussian = {"queries": 4, "mode": "gaussian"}
    units = {**gaussian, "units": np.arange(20) // 2, "rows_per_unit": 2}
    guesses = {"queries": 3, "mode": "guesses", "alarms": 1, "answers": 1}
    return [
        case("score", lambda h: h.score(_MODEL), gaussian),
        case("comparison", lambda h: h.compare(_MODEL, _OTHER), gaussian),
        case("comparison, expected", lambda h: h.compare(_MODEL, _OTHER, expect=0.2), gaussian),
        case("balanced accuracy", lambda h: h.score(_MODEL, metric="balanced-accuracy"), gaussian),
        case("area under the curve", lambda h: h.score(_CHANCES, metric="auc"), gaussian),
        case("score of units", lambda h: h.score(_MODEL), units, second=OTHER_UNIT),
        case(
            "balanced accuracy of units",
            lambda h: h.score(_MODEL, metric="balanced-accuracy"),
            units,
            second=OTHER_UNIT,
        ),
        case("guess", lambda h: h.score(np.tile(_MODEL, 150), guess=0.6), guesses, times=150),
    ]


def case(
    name: str,
    ask: Callable[[ReusableHoldout], Answer],
    terms: dict[str, Any],
    *,
    times: int = 1,
    second: Labels = SECOND,
) -> Case:
    """An audit of the value that `ask` is told, with a fresh holdout for every run.

    The claim is the answer's own rho, or that of the whole plan where looks depend on guesses. Further labels (`times`)
    are alike in both tables.
    """
    opening = terms | {"confidence": 0.5, "expect": 0.2 if terms["mode"] == "gaussian" else None}

    def opened(labels: Labels) -> ReusableHoldout:
        return ReusableHoldout(np.concatenate([labels, np.tile(FIRST, times - 1)]).astype(int), **opening)

    planned = opened(FIRST)
    claimed = ask(planned).rho if planned.design.metered else planned.design.rho

    assert claimed is not None
    epsilon = zcdp_to_approx(claimed, DELTA)
    return Case(
        f"holdout: {name}",
        one_by_one(lambda labels: float(ask(opened(labels)).value)),
        FIRST,
        second,
        epsilon,
        DELTA,
        _RUNS,
    )
