"""The opponent before holdouts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from holdfast.audit.audit_report import audit_case
from holdfast.audit.case import Case
from holdfast.audit.holdout_cases import holdouts
from holdfast.holdout import checked_guess, paired_difference, table_score, unit_rows
from holdfast.holdout.metric import GRID

pytestmark = pytest.mark.usefixtures("replayed_noise")
FEW = 150


def named(name: str) -> Case:
    return next(case for case in holdouts() if case.name == f"holdout: {name}")


def test_honest_looks_pass() -> None:
    for case in holdouts():
        assert not audit_case(case, FEW).violated, case.name


def test_a_comparison_with_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = named("comparison")
    planned = paired_difference._variance
    monkeypatch.setattr(paired_difference, "_variance", lambda plan, squared: planned(plan, squared) / 100)
    assert audit_case(honest, 2 * FEW).verdict == "VIOLATED"


def test_a_table_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = named("balanced accuracy")
    noisy = table_score.noisy_table
    monkeypatch.setattr(
        table_score,
        "noisy_table",
        lambda plan, epoch, rows, cells: noisy(plan, type(epoch)(1, Fraction(1, 10), 1), rows, cells),
    )
    assert audit_case(honest, 2 * FEW).verdict == "VIOLATED"


def test_a_unit_that_counts_as_forty_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = named("score of units")
    monkeypatch.setattr(unit_rows, "_shared", lambda halves, among: GRID * np.where(halves, 1, -39) // 2)
    assert audit_case(honest, 2 * FEW).verdict == "VIOLATED"


def test_a_check_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = named("guess")
    monkeypatch.setattr(checked_guess, "add_gaussian", lambda held, variance: held)
    monkeypatch.setattr(checked_guess, "exceeds", lambda distance, scale: True)
    assert audit_case(honest, 2 * FEW).verdict == "VIOLATED"
