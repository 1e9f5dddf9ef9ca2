"""A session planned for validity is what the planner chose, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from session.numbers import open_rows

import holdfast as hf
from holdfast.planning.fixed import odds_noise
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Request

QUARTER = Fraction(1, 4)


@pytest.mark.parametrize("only", ["votes", "gaussian"])
def test_a_session_keeps_the_numbers_of_the_option(only: str) -> None:
    option = choose((f"{only}-odds",), Request(50_000, 200, 0.95))
    fixed = odds_noise(50_000, 200, 0.95, only)
    assert (fixed.mechanism, fixed.noise, fixed.flip) == (only, option.epochs[0].noise, QUARTER)
    assert (fixed.width, fixed.population, fixed.odds) == (option.width, option.population, True)


def test_a_validity_session_cannot_be_reopened_on_other_terms() -> None:
    table = open_rows(np.arange(20_000) % 1024)
    table.session(rho=1000.0, name="a", queries=2).count("x < 5", rho=1.0)
    with pytest.raises(hf.LedgerError):
        table.session(within=0.45, queries=2, name="a")
    other = open_rows(np.arange(20_000) % 1024)
    other.session(within=0.25, queries=2, name="b").fraction("x < 5")
    with pytest.raises(hf.LedgerError):
        other.session(within=0.45, queries=2, name="b")


def test_a_validity_session_takes_no_samples() -> None:
    session = open_rows(np.arange(20_000) % 1024).session(intervals="odds", queries=2, rho=1000.0)
    with pytest.raises(hf.MechanismError):
        session.sample("x < 5")


def test_odds_sessions_answer_no_means() -> None:
    session = open_rows(np.arange(20_000) % 1024).session(queries=2, intervals="odds")
    with pytest.raises(hf.MechanismError, match="odds"):
        session.mean("x")
