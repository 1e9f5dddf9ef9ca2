"""Row 27 of docs/threats.md: an interval says of which quantity it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gateway import ROWS

import holdfast as hf
from service.site import site

ROOT = Path(__file__).resolve().parents[2]


def test_the_interval_is_of_the_clamped_quantity() -> None:
    """Heavy tails beyond the declared bounds: the mean of what was declared is covered, and the raw one is not."""
    raw = np.random.default_rng(5).pareto(1.1, ROWS) * 100
    clamped = np.clip(raw, 0, 1000)
    with site({"people": hf.open({"income": raw}, hf.Schema(income=hf.Real(0, 1000)))}) as here:
        answer = here.ask({"kind": "mean", "column": "income", "rho": 0.01}).json()["answers"][0]
        declared = here.call("GET", "/datasets/people").json()["schema"]["columns"][0]
    assert answer["low"] <= np.mean(clamped) <= answer["high"]
    assert not answer["low"] <= np.mean(raw) <= answer["high"], "the twin: an interval for the unclamped mean"
    assert (declared["lo"], declared["hi"]) == (0, 1000), "the bounds are told to whoever asks"
    limits = (ROOT / "docs" / "limits.md").read_text()
    assert "after clamping to the declared bounds, and its interval covers that" in limits
