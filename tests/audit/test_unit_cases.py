"""The opponent before questions about people with several rows."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.audit import unit_cases
from holdfast.audit.audit_report import audit_case
from holdfast.audit.unit_cases import units
from holdfast.data.unit_cap import Cap
from holdfast.data.unit_events import OwnedRows
from holdfast.query.measurement import Measurement

FEW = 300


@pytest.mark.parametrize(
    "name", ["count of events", "mean of means", "histogram of units", "select of units", "minimize of units"]
)
def test_honest_sessions_pass(name: str) -> None:
    honest = next(case for case in units() if case.name == f"session: {name}")
    assert not audit_case(honest, FEW).violated


def test_a_person_that_is_charged_as_one_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for one row, while a person has three."""
    honest = next(case for case in units() if case.name == "session: count of events")
    assert honest.epsilon == pytest.approx(2.0)
    monkeypatch.setattr(Measurement, "most", 1)
    assert audit_case(honest, 4 * FEW).verdict == "VIOLATED"


def test_a_bound_that_is_not_kept_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nine rows of a person count, with noise for three."""
    honest = next(case for case in units() if case.name == "session: count of events")
    monkeypatch.setattr(
        Cap, "_first", lambda self, order, owner, doubtful: np.ones(len(owner), dtype=np.bool_)
    )
    monkeypatch.setattr(OwnedRows, "_refuse_too_many", lambda self, lengths: None)
    monkeypatch.setattr(unit_cases, "_source", unit_cases._source.__wrapped__)
    assert audit_case(honest, 4 * FEW).verdict == "VIOLATED"
