"""What a release of marginals will tell and how many numbers it can have, by hand (Theorem 96)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import Gaussian
from holdfast.privacy.rule import zcdp
from holdfast.synthesis import MarginalPlan, plan_marginals
from holdfast.validity.told import smoothed_choice_told

from .people import people

ROWS = 5000
SCHEMA = hf.Schema(
    sick=hf.Boolean(), group=hf.Category("x", "y", "z"), grade=hf.Integer(0, 4), level=hf.Integer(0, 6)
)
DATA = {name: column for name, column in people(ROWS).items() if name in SCHEMA}


def opened(**options: Any) -> hf.Session:
    return hf.open(DATA, SCHEMA, ledger=MemoryLedger()).session(**{"rho": 1.0} | options)


def by_hand(planned: MarginalPlan) -> float:
    """Every group of every column, once; then in each round a marginal and (perhaps) its choice."""
    groups = [3, 4, 6, 8]  # NULL is one of them
    told = math.fsum(
        4 * (1 - 1 / many) * ROWS**2 / float(noise.variance)
        for many, noise in zip(groups, planned.columns, strict=True)
        if isinstance(noise, Gaussian)
    )
    assert isinstance(planned.noise, Gaussian)
    each = 4 * ROWS**2 / float(planned.noise.variance)
    if planned.choosing is not None:
        each += smoothed_choice_told(ROWS, float(planned.choosing))
    return told + planned.rounds * each


@pytest.mark.parametrize("rounds", [1, 3, None])
def test_what_it_tells_and_costs_is_the_sum_of_all_its_steps(rounds: int | None) -> None:
    planned = plan_marginals(opened(), rho=0.4, rounds=rounds)
    assert (planned.choosing is None) == (rounds is None) and planned.rounds == (rounds or 6)
    assert planned.tells == pytest.approx(units_told(by_hand(planned), ROWS), abs=8)
    cost = math.fsum(1 / float(noise.variance) for noise in planned.columns if isinstance(noise, Gaussian))
    assert isinstance(planned.noise, Gaussian)
    each = 1 / float(planned.noise.variance) + float(planned.choosing or 0) ** 2 / 8
    rho = zcdp(planned.event).rho
    assert rho == pytest.approx(cost + planned.rounds * each, rel=1e-9) and rho <= 0.4


def test_laplace_noise_tells_what_no_theorem_bounds() -> None:
    assert plan_marginals(opened(rho=None, epsilon=3.0), epsilon=1.0).tells == UNCOVERED


@pytest.mark.parametrize("rounds", [2, None])
def test_no_more_numbers_are_told_than_are_counted(rounds: int | None) -> None:
    """The union of Theorem 96 is over them: the groups of the columns, and the largest marginal in each round."""
    session = opened(target="table")
    planned = plan_marginals(session, rho=0.4, rounds=rounds)
    assert planned.numbers == (3 + 4 + 6 + 8) + planned.rounds * 6 * 8
    with replayed(ReplayedBits(5)):
        made = session.synthesize(method="marginals", rho=0.4, rounds=rounds)
    told = sum(np.asarray(one.values).size for one in made.measured)
    assert len(made.measured) == 4 + planned.rounds and 21 < told <= planned.numbers
