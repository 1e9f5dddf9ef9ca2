"""A session planned for validity is what the planner chose, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from session.numbers import open_rows

import holdfast as hf
from holdfast import validity
from holdfast.errors import MechanismError
from holdfast.planning.fixed import fixed_noise, odds_noise
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Request

QUARTER = Fraction(1, 4)


@pytest.mark.parametrize("only", ["votes", "gaussian"])
def test_a_session_keeps_the_numbers_of_the_option(only: str) -> None:
    plan = validity.plan(rows=50_000, queries=200, within=0.1, confidence=0.95)
    option = next(option for option in plan.options if option.name == only)
    fixed = fixed_noise(50_000, 200, 0.1, 0.95, only)
    assert (fixed.mechanism, fixed.noise, fixed.flip) == (only, option.epochs[0].noise, QUARTER)
    assert (fixed.width, fixed.population, fixed.odds) == (option.width, option.population, False)
    option = choose((f"{only}-odds",), Request(50_000, 200, 0.95))
    fixed = odds_noise(50_000, 200, 0.95, only)
    assert (fixed.mechanism, fixed.noise, fixed.flip) == (only, option.epochs[0].noise, QUARTER)
    assert (fixed.width, fixed.population, fixed.odds) == (option.width, option.population, True)


def test_votes_are_preferred_and_gaussian_noise_is_taken_where_only_it_certifies() -> None:
    assert fixed_noise(50_000, 200, 0.1, 0.95, None) == fixed_noise(50_000, 200, 0.1, 0.95, "votes")
    widths = [choose((name,), Request(50_000, 200, 0.95)).width for name in ("gaussian", "votes")]
    between = sum(widths) / 2
    assert widths[0] < widths[1]
    assert fixed_noise(50_000, 200, between, 0.95, None).mechanism == "gaussian"
    with pytest.raises(MechanismError, match=r"votes certifies [\d.]+, or \d+ queries within"):
        fixed_noise(50_000, 200, between, 0.95, "votes")


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
    session = open_rows(np.arange(20_000) % 1024).session(within=0.25, queries=2, rho=1000.0)
    with pytest.raises(hf.MechanismError):
        session.sample("x < 5")


def test_odds_sessions_answer_no_means() -> None:
    session = open_rows(np.arange(20_000) % 1024).session(queries=2, intervals="odds")
    with pytest.raises(hf.MechanismError, match="odds"):
        session.mean("x")
