"""The certificate of an optimisation query on the population: Theorem 21, and what would be false without it.

And on the rows: what T noisy steps reach, against the formulas of docs/learn.md written down again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from learn.coins import coins, slipping_in, tempted
from oracles.statistics import FALSE_ALARM
from scipy import stats

import holdfast as hf
from holdfast import learn
from holdfast.ledger import Precondition
from holdfast.mechanisms.votes import FLIP
from holdfast.optimize import minimize, minimum, plan_minimize
from holdfast.optimize.certificate import (
    SCORE,
    noise_norm,
    population_part,
    rules,
    score_unit,
    slope,
    table_excess,
)
from holdfast.planning.promise import Promise, promises
from holdfast.session.footing import Footing, footing_after
from holdfast.validity.leave_out import recorded_grid

SCHEMA = hf.Schema(id=hf.Integer(0, 9), label=hf.Boolean(), hint=hf.Boolean())
LOGISTIC = partial(learn.logistic, SCHEMA, ["id"], "label")


def slide() -> learn.OwnLoss:
    """A slope of 1 everywhere."""
    return learn.OwnLoss(
        SCHEMA,
        ["id"],
        value=lambda theta, rows: np.full(len(rows), theta[0]),
        gradient=lambda theta, rows: np.ones((len(rows), 1)),
        region=learn.Ball(1, 1.0),
        lipschitz=1.0,
    )


@pytest.mark.parametrize(
    ("rows", "ids", "rho", "against"), [(4_000, 4_000, 10.0, 0.3), (150_000, 2_000, 0.02, 0.03)]
)
def test_the_excess_is_covered_when_answers_chose_the_loss(
    rows: int, ids: int, rho: float, against: float, monkeypatch: Any
) -> None:
    """Labels are coins, so the mean slope is -`against`. The twin certifies as if the loss had been fixed before:
    its excess is false in every run."""
    draw = np.random.default_rng(1)

    def run() -> tuple[float, float]:
        session = coins(rows, ids, draw).session(rho=2 * rho, queries=4)
        loss = tempted(session, ids, rho, against)
        found = minimize(session, loss, rho=rho / 4, iterations=40, mechanism="gaussian")
        return against * (1 - float(found.theta[0])), found.excess

    runs = [run() for _ in range(4)]
    assert all(excess <= certified for excess, certified in runs)

    def forgetful(session: hf.Session, fresh: bool) -> Footing:
        """By Theorem 43, as if nothing had been told before and by the descent."""
        stands = footing_after(session, fresh)
        assert stands.covered and not fresh
        return replace(stands, told=0.0)

    for twin in (lambda session, fresh: footing_after(session, True), forgetful):
        monkeypatch.setattr(minimum, "footing_after", twin)
        runs = [run() for _ in range(3)]
        assert all(excess > certified for excess, certified in runs)


def test_the_population_part_is_by_the_leave_out_theorem_where_it_covers() -> None:
    """Theorem 43: twice G D times one side of Corollary A at its chance; the table's part has the chance for noise."""
    loss = LOGISTIC(radius=2.0)
    promise = next(promises("population", 20_000, 0.05, 0.1, 0.01))
    stands = Footing(promise, 20_000, 1, fresh=False, told=1e6, covered_chance=0.01, noise_chance=0.003)
    beyond, chance = population_part(loss, stands)
    grid = recorded_grid(20_000)
    one_side = grid.any_statistic(grid.charges(1e6), 0.02)  # ln(2/.02) for two sides is ln(1/.01) for one
    assert chance == 0.003
    assert 1 < beyond / (2 * (1 + 2.0**-17) * 4.0 * one_side) < 1.005  # what was told is rounded up
    more = population_part(loss, replace(stands, told=4e6))[0]
    assert beyond < more < 2 * beyond


@pytest.mark.parametrize("mechanism", ["gaussian", "votes"])
def test_a_descent_tells_what_its_noise_lets_through(mechanism: str) -> None:
    """4 R^2 n^2/variance a step for vectors of norm at most R; votes about 4 (1-2a)^2 n each; later answers stay
    covered."""
    session = coins(20_000, 9, np.random.default_rng(5)).session(rho=1.0, queries=4)
    loss = LOGISTIC(radius=2.0)
    found = minimize(session, loss, rho=0.01, iterations=20, mechanism=mechanism, rows=2000)
    told = session._moment().table.information * 20_000 / 1e9
    if mechanism == "gaussian":
        expected = 20 * 4 * float(loss.norm) ** 2 * 20_000**2 / float(found.plan.noise)
        # Replacing a row moves a sum by 2 R, so a step costs (2 R)^2/(2 variance) in zCDP: I = 2 n^2 rho.
        assert expected == pytest.approx(2 * 20_000**2 * found.plan.cost, rel=1e-6)
    else:
        expected = 4 * (1 - 2 * float(FLIP)) ** 2 * found.plan.rows_read * 20_000 / (20_000 - 1)
    assert told == pytest.approx(expected, rel=1e-6 if mechanism == "gaussian" else 0.2)
    assert session._moment().table.information == found.plan.tells
    assert footing_after(session, False).covered


def test_within_is_planned_for_what_the_descent_itself_tells() -> None:
    """The certificate that was asked for is met after earlier answers, at the least cost that is found."""
    session = coins(100_000, 9, np.random.default_rng(5)).session(rho=1.0, queries=4)
    session.fraction("hint")
    found = minimize(session, LOGISTIC(radius=2.0), within=0.4)
    assert found.excess <= 0.4
    assert found.plan.tells <= session._moment().table.information


@pytest.mark.parametrize("penalty", [0.0, 3.0])
def test_the_population_part_by_transfer_is_the_theorems(penalty: float) -> None:
    """Theorem 21 (a), with its numbers computed here once more: twice G D, and no other term."""
    loss = LOGISTIC(radius=2.0, penalty=penalty)
    promise = next(promises("population", 20_000, 0.05, 0.1, 0.01))
    beyond, chance = population_part(loss, Footing(promise, 20_000, 1, fresh=False))
    steep, diameter = 1 + 2.0**-17, 4.0
    assert beyond == pytest.approx(2 * steep * diameter * 1.05 * promise.population, rel=1e-9)
    greatest = steep * diameter + penalty / 2 * 2.0**2  # of the table's excess
    assert chance * greatest / (2 * steep * diameter) == pytest.approx(promise.allowance, rel=1e-9)


def test_the_greatest_excess_is_attained() -> None:
    """A slope of G everywhere is an excess of G D from one end to the other, and a range of 2 G D for the minimum."""
    loss = slide()
    promise = next(promises("population", 100, 0.05, 1.0, 0.0))
    beyond, _ = population_part(loss, Footing(promise, 100, 1, fresh=False))
    rows = np.zeros((5, 1))
    ends = np.array([1.0]), np.array([-1.0])
    apart = loss.values(ends[0], rows) - loss.values(ends[1], rows)
    assert beyond >= 2 * apart.max() * (promise.population + promise.slack)
    assert beyond == pytest.approx(2 * 2.0 * (promise.population + promise.slack), rel=1e-5)


@pytest.mark.parametrize("owned", [1, 5])
def test_the_population_part_of_a_fresh_table_is_by_units(owned: int) -> None:
    loss = LOGISTIC(radius=2.0)
    promise = next(promises("population", 20_000, 0.05, 0.1, 1.0))
    beyond, chance = population_part(loss, Footing(promise, 20_000, owned, fresh=True))
    assert chance == pytest.approx(promise.allowance / (promise.population + promise.slack) / 3)
    units, likely = 20_000 / owned, math.log(1 / chance)
    complexity = 2 * 2.0 * (1 / math.sqrt(units) + math.sqrt(likely / (2 * units)))
    at_best = 2 * 2.0 * math.sqrt(likely / (2 * units))
    assert beyond == pytest.approx(complexity + at_best, rel=1e-4)


def test_outright_chances_fit_the_promise() -> None:
    """Theorem 21 (b): if this claim fails with chance c and the others' overshoots are (1-w) beta o, then all
    together fail with chance at most beta. A chance of twice as much breaks the inequality."""
    weight, beta = 0.3, 0.05 / 2
    for level, promise in enumerate(promises("population", 300, 0.05, weight, 0.0)):
        if level == 0:
            alpha, o, c = promise.population, promise.slack, Footing(promise, 300, 1, fresh=True).outright
            for chance, holds in ((c, True), (2 * c, False)):
                others = (beta - chance) * (o + alpha)
                assert (others >= (1 - weight) * beta * o + beta * alpha - 1e-12) is holds
        assert Footing(promise, 300, 1, fresh=True).outright == pytest.approx(
            weight * 0.05 / ((level + 1) * (level + 2)) / 21
        )


@pytest.mark.parametrize("kept", ["memory", "store"])
def test_an_answer_that_slips_in_ends_the_claim_for_the_whole_region(
    kept: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """It is planned again, for a table of which something was told. The twin keeps the narrow certificate."""
    certified = {}
    for case in ("alone", "raced", "careless"):
        opened = coins(20_000, 9, np.random.default_rng(5))
        other = opened
        if kept == "store":
            opened = opened.save(tmp_path / f"{case}.hf")
            other = hf.open(tmp_path / f"{case}.hf")  # as another process would
        session = opened.session(rho=1.0, queries=4)
        loss = LOGISTIC(radius=2.0)
        how: dict[str, Any] = {"rho": 0.01, "iterations": 20, "mechanism": "gaussian"}
        planned = plan_minimize(session, loss, **how)
        if case != "alone":
            late = slipping_in(opened, other.session(rho=1.0, queries=4))
            monkeypatch.setattr(opened.ledger, "reserve", late)
        if case == "careless":
            monkeypatch.setattr(Precondition, "check", lambda *_: None)
        found = minimize(session, loss, **how)
        assert (found.plan == planned) is (case != "raced")
        assert planned.fresh and found.plan.fresh is (case != "raced")
        certified[case] = found.excess
        assert not plan_minimize(session, loss, **how).fresh
    assert certified["alone"] == pytest.approx(certified["careless"], rel=0.01)
    assert certified["raced"] > 2 * certified["alone"]


def test_the_population_part_covers() -> None:
    """Uniform convergence over the ball, against the gap at the table's own optimum, which overfits most. It is the
    same gap if each person owns 1000 equal rows, and people, not rows, must be counted then."""
    n = 60
    loss = learn.logistic(
        hf.Schema(**{f"x{j}": hf.Real(-1.0, 1.0) for j in range(20)}, y=hf.Boolean()),
        [f"x{j}" for j in range(20)],
        "y = true",
        radius=10.0,
    )
    draw = np.random.default_rng(5)
    missed = naive = as_rows = 0
    for _ in range(40):
        x, y = draw.uniform(-1, 1, (n, 20)), draw.random(n) < 0.5  # nothing to learn
        source = hf.open({**{f"x{j}": x[:, j] for j in range(20)}, "y": y}, loss.schema)._source
        rows = loss.prepare(next(iter(source.scan(loss.columns))))
        theta = np.zeros(21)
        for _ in range(300):
            theta = loss.region.project(theta - 4 * loss.total(theta, rows) / n * loss.step)
        fresh = draw.uniform(-1, 1, (4000, 20))
        margin = (fresh @ theta[:-1] + theta[-1]) / loss.clip
        gap = float(np.logaddexp(0, margin).mean() + np.logaddexp(0, -margin).mean()) / 2
        gap -= float(loss.values(theta, rows).mean())
        missed += gap > loss.complexity(n, 0.05)
        as_rows += gap > loss.complexity(1000 * n, 0.05)  # the twin that counts rows
        naive += gap > 0.01  # the twin: the table's loss as if it were the population's
    assert missed <= stats.binom.ppf(1 - FALSE_ALARM, 40, 0.05)
    assert naive > 30 and as_rows > 30


def loss(**changed: Any) -> Any:
    region = SimpleNamespace(diameter=3.0, radius=1.7, reach=2.5)
    facts = {
        "dimension": 5,
        "region": region,
        "step": 0.25,
        "norm": 8,
        "penalty": 0.4,
        "strong": 0.4,
        "smooth": 3.0,
        "rounding": 0.001,
    }
    return SimpleNamespace(**(facts | changed))


POPULATION = Promise("population", 1e-4, population=0.1, slack=0.005)
OVERSHOT = Fraction(POPULATION.population + POPULATION.slack)


def test_by_transfer_no_number_is_rounded_down() -> None:
    """Twice G D (alpha + o) in exact arithmetic is a lower bound; the penalty is greatest at the farthest point."""
    beyond, chance = population_part(loss(), Footing(POPULATION, 300, 1, fresh=False))
    truth = 2 * Fraction(0.25 * 8 + 0.001) * 3 * OVERSHOT
    assert truth < Fraction(beyond) < truth * (1 + Fraction(1, 10**9))
    greatest = (2.001 * 3.0 + 0.4 / 2 * 2.5**2) / (2 * 2.001 * 3.0)
    assert chance == pytest.approx(POPULATION.allowance / greatest, rel=1e-12)


def test_on_a_fresh_table_no_number_is_rounded_down() -> None:
    """A class that converges at once leaves Hoeffding's term at the best point: G = 2.001 counts, not 1/G."""
    for uniform in (0.0, 0.125):
        fast = loss(complexity=lambda units, chance, uniform=uniform: uniform)
        beyond, chance = population_part(fast, Footing(POPULATION, 10**6, 1, fresh=True))
        assert chance == pytest.approx(POPULATION.allowance / float(OVERSHOT) / 3, rel=1e-12)
        with mp.workdps(40):
            best = (
                2 * mp.mpf(0.25 * 8 + 0.001) * mp.mpf(1.7) * mp.sqrt(mp.log(1 / mp.mpf(chance)) / (2 * 10**6))
            )
            assert uniform + best < mp.mpf(beyond) < (uniform + best) * (1 + mp.mpf(10) ** -9)


D, R, G, H, L, d, GRID = 3.0, 1.7, 0.25 * 8 + 0.4 * 2.5, 0.4, 3.0, 5, 0.001


def expected(rule: str, T: int, sigma: float, beta: float) -> tuple[float, float]:
    noise = sigma * (math.sqrt(d) + math.sqrt(2 * math.log(2 * T / beta)))
    likely = sigma * math.sqrt(2 * math.log(2 / beta))
    if rule == "convex":
        mean = 3 / 2 * D * (G + noise) / math.sqrt(T) + D * GRID
        return mean + D * likely / math.sqrt(T), mean
    if rule == "strongly-convex":
        sure = (G + noise) ** 2 / H * (1 + math.log(T)) / T + 2 * sigma**2 * math.log(2 / beta) / (H * T)
        return sure + D * GRID, (G**2 + d * sigma**2) / H * (1 + math.log(T)) / T + D * GRID
    if rule == "smooth-strong":
        error = noise + GRID
        p = [(1 - H / L) ** t * R + error / H for t in (T - 1, T)]
        return L / 2 * p[0] ** 2 + error * p[1], math.inf
    mean = L * R**2 / (2 * T) + d * sigma**2 / L + D * GRID
    sure = L * R**2 / (2 * T) + D * likely / math.sqrt(T) + noise**2 / L + D * GRID
    if rule == "smooth-last":
        mean += T * (math.sqrt(d) * sigma + GRID) ** 2 / (2 * L)
        sure += T * (noise + GRID) ** 2 / (2 * L)
    return sure, mean


@pytest.mark.parametrize("rule", ["convex", "strongly-convex", "smooth", "smooth-last", "smooth-strong"])
@pytest.mark.parametrize(("T", "sigma", "beta"), [(1, 0.3, 0.05), (17, 0.02, 0.3), (400, 1.5, 1e-6)])
def test_the_excess_on_the_rows_is_its_formula(rule: str, T: int, sigma: float, beta: float) -> None:
    found, truth = table_excess(loss(), rule, T, sigma, beta), expected(rule, T, sigma, beta)
    for one, other in zip(found, truth, strict=True):
        assert other <= one <= other * (1 + 1e-9)


def test_a_step_that_overshoots_does_not_shrink_below_nothing() -> None:
    """H may be declared above L; then a step lands within its error of the optimum, whatever T is."""
    steep = loss(strong=5.0, smooth=3.0)
    assert table_excess(steep, "smooth-strong", 9, 0.1, 0.05) == pytest.approx(
        (
            3 / 2 * (noise_norm(5, 9, 0.1, 0.05) + GRID) ** 2 / 25
            + (noise_norm(5, 9, 0.1, 0.05) + GRID) ** 2 / 5,
            math.inf,
        )
    )


def test_only_rules_whose_conditions_are_declared_are_tried() -> None:
    assert rules(loss()) == ("convex", "strongly-convex", "smooth", "smooth-last", "smooth-strong")
    assert rules(loss(strong=0.0)) == ("convex", "smooth", "smooth-last")
    assert rules(loss(smooth=None)) == ("convex", "strongly-convex")
    assert rules(loss(strong=0.0, smooth=None)) == ("convex",)


def test_slope_and_score_are_what_the_steps_and_the_choice_need() -> None:
    assert slope(loss()) == pytest.approx(G)
    assert score_unit(loss()) * SCORE == pytest.approx((0.25 * 8 + 0.001) * 1.7)
