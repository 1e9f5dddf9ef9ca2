"""What a release of marginals will tell and how many numbers it can have, by hand (Theorem 96)."""

from __future__ import annotations

import math
from dataclasses import replace
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
from holdfast.synthesis.marginal_plan import deviation
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
    told += planned.rounds * each
    if planned.rest is not None:
        assert isinstance(planned.rest, Gaussian)
        told += planned.left * 4 * ROWS**2 / float(planned.rest.variance)
    return told


def parts_of(planned: MarginalPlan) -> float:
    """The rho of all steps: two cells of every marginal move by 1, whether or not it was chosen."""
    steps = [*planned.columns, *planned.noises]
    cost = math.fsum(1 / float(noise.variance) for noise in steps if isinstance(noise, Gaussian))
    return cost + planned.rounds * float(planned.choosing or 0) ** 2 / 8


@pytest.mark.parametrize("rounds", [1, 3, None])
def test_what_it_tells_and_costs_is_the_sum_of_all_its_steps(rounds: int | None) -> None:
    planned = plan_marginals(opened(), rho=0.4, rounds=rounds)
    assert (planned.choosing is None) == (rounds is None) and planned.rounds == (rounds or 6)
    assert planned.rounds + planned.left == 6 and (planned.rest is None) == (rounds is None)
    assert planned.tells == pytest.approx(units_told(by_hand(planned), ROWS), abs=8)
    rho = zcdp(planned.event).rho
    assert (
        rho == pytest.approx(parts_of(planned), rel=1e-9)
        and rho == pytest.approx(0.4, rel=1e-4)
        and rho <= 0.4
    )
    if planned.rest is not None:  # a twin that measures those that were not chosen for nothing
        assert zcdp(replace(planned, rest=None).event).rho < 0.92 * rho


def test_what_was_not_chosen_is_measured_where_its_noise_is_below_the_roots_of_the_rows() -> None:
    for rho, measured in ((0.4, True), (0.001, False)):
        planned = plan_marginals(opened(), rho=rho, rounds=1)
        assert (planned.rest is not None) == measured
        assert planned.rest is None or deviation(planned.rest) <= math.sqrt(ROWS)
        assert zcdp(planned.event).rho == pytest.approx(rho, rel=1e-4)
        assert ("the others with" in str(planned)) == measured


def test_memory_and_time_are_said_beforehand() -> None:
    """The steps that a plan counts are those of `from_marginals`, each as long as its model is large."""
    session = opened()
    few, many = (plan_marginals(session, rho=0.4, rounds=rounds) for rounds in (1, 3))
    assert few.fits == 1 and many.fits == 3 and plan_marginals(session, rho=0.4).fits == 0
    cells = math.prod(few.shape)
    assert few.seconds == pytest.approx(25e-9 * cells * (30 + 400))
    assert many.seconds == pytest.approx(25e-9 * cells * (90 + 400))
    narrow = replace(many, memory=2**14)
    assert narrow.seconds == pytest.approx(
        25e-9 * min(cells, 2**10) * (90 + 400)
    )  # no more cells than have room
    assert str(many).endswith("MiB for counts; at most about 1 s for the fits")
    assert many.counts == 64 * sum(few.shape[one] * few.shape[other] for one, other in many.candidates)
    columns = {f"c{place}": np.zeros(ROWS, dtype=int) for place in range(10)}
    schema = hf.Schema.from_mapping(dict.fromkeys(columns, hf.Integer(0, 30)))
    wide = plan_marginals(hf.open(columns, schema, ledger=MemoryLedger()).session(rho=9.0), rho=9.0)
    assert "minutes for the fits" in str(wide)


def test_laplace_noise_tells_what_no_theorem_bounds() -> None:
    assert plan_marginals(opened(rho=None, epsilon=3.0), epsilon=1.0).tells == UNCOVERED


@pytest.mark.parametrize("rounds", [2, None])
def test_no_more_numbers_are_told_than_are_counted(rounds: int | None) -> None:
    """The union of Theorem 96 is over them: the groups of the columns, and the largest marginal in each round."""
    session = opened(target="table")
    planned = plan_marginals(session, rho=0.4, rounds=rounds)
    assert planned.numbers == (3 + 4 + 6 + 8) + 6 * 6 * 8
    with replayed(ReplayedBits(5)):
        made = session.synthesize(method="marginals", rho=0.4, rounds=rounds)
    told = sum(np.asarray(one.values).size for one in made.measured)
    assert len(made.measured) == 4 + 6 and 21 < told <= planned.numbers
