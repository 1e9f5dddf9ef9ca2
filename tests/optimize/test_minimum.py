"""Optimisation queries: exact gradients, one row's reach, the certificate against truth, charge before read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy import optimize, stats

import holdfast as hf
from holdfast import learn
from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.learn import link
from holdfast.learn.linear_loss import LinearLoss
from holdfast.optimize import descent as room
from holdfast.optimize import minimize, plan_minimize, table_excess
from holdfast.privacy.event import Gaussian, Repeat, Votes

SCHEMA = hf.Schema(a=hf.Real(-2.0, 2.0), b=hf.Integer(0, 9), sick=hf.Boolean(), cost=hf.Real(0.0, 100.0))
FEATURES = ["a", "b"]


def people(rows: int, seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    a, b = draw.uniform(-2, 2, rows), draw.integers(0, 10, rows)
    score = 1.5 * a - 0.4 * (b - 4.5)
    a[draw.random(rows) < 0.02] = np.nan
    return {
        "a": a,
        "b": b,
        "sick": draw.random(rows) < 1 / (1 + np.exp(-2 * score)),
        "cost": np.clip(50 + 10 * score + draw.normal(0, 5, rows), 0, 100),
    }


def table(rows: int, seed: int = 0, **options: Any) -> hf.Table:
    return hf.open(people(rows, seed), SCHEMA, **options)


LOSSES: dict[str, Callable[..., LinearLoss]] = {
    "logistic": lambda **how: learn.logistic(SCHEMA, FEATURES, "sick = true", **how),
    "hinge": lambda **how: learn.hinge(SCHEMA, FEATURES, "sick = true", **how),
    "squared": lambda **how: learn.squared(SCHEMA, FEATURES, "cost", **how),
    "huber": lambda **how: learn.huber(SCHEMA, FEATURES, "cost", threshold=0.2, **how),
    "quantile": lambda **how: learn.quantile(SCHEMA, FEATURES, "cost", rank=0.8, **how),
}


def own(region: Any = None) -> learn.OwnLoss:
    """The mean of two columns: |theta - (a, b/9)|^2/2 over a box."""
    region = region or learn.Box((-2.0, -1.0), (2.0, 1.0))

    def apart(theta: Any, rows: Any) -> Any:
        return np.nan_to_num(theta - rows / np.array([1.0, 9.0]), nan=0.0)

    return learn.OwnLoss(
        SCHEMA,
        FEATURES,
        value=lambda theta, rows: 0.5 * (apart(theta, rows) ** 2).sum(axis=1),
        gradient=apart,
        region=region,
        lipschitz=6.0,
        strong=0.9,  # a row with NULL has no curvature; 2% of them
        smooth=1.0,
    )


def block(rows: int = 500, seed: int = 1) -> Any:
    opened = table(rows, seed)
    return next(iter(opened._source.scan(list(SCHEMA))))


def objective(loss: Any, rows: Any) -> Callable[[Any], float]:
    return lambda theta: float(loss.values(theta, rows).mean() + loss.penalty / 2 * theta @ theta)


def least(loss: Any, rows: Any) -> float:
    """The slow truth: the least value in the region, by a solver with constraints, from several starts."""
    value, region = objective(loss, rows), loss.region
    if isinstance(region, learn.Box):
        limits: dict[str, Any] = {
            "bounds": list(zip(region.low, region.high, strict=True)),
            "method": "L-BFGS-B",
        }
    else:
        inside = {"type": "ineq", "fun": lambda theta: region.radius**2 - theta @ theta}
        limits = {"constraints": [inside], "method": "SLSQP"}
    found = [optimize.minimize(value, start, **limits) for start in (region.start, region.start + 0.1)]
    return min(value(region.project(one.x)) for one in found)


def session_of(rows: int, seed: int = 0, **how: Any) -> hf.Session:
    how = {"rho": 0.5, "queries": 10, "target": "table", **how}
    return table(rows, seed).session(**how)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_whole_bounded_and_right(name: str) -> None:
    loss = LOSSES[name](radius=3.0)
    rows = loss.prepare(block())
    draw = np.random.default_rng(2)
    d = loss.dimension
    for _ in range(20):
        theta = loss.region.project(draw.normal(size=d) * 3)
        units = np.stack([loss.units(theta, rows, np.full(500, j)) for j in range(d)], axis=1)
        squares = [sum(int(v) ** 2 for v in row) for row in units.tolist()]
        assert max(squares) <= loss.norm**2
        assert np.abs(units).max() <= loss.span
        assert loss.total(theta, rows).tolist() == [sum(map(int, column)) for column in units.T.tolist()]
        if name != "quantile":  # whose slope jumps
            steps = 1e-6 * np.eye(d)
            numeric = [(loss.values(theta + h, rows) - loss.values(theta - h, rows)) / 2e-6 for h in steps]
            apart = np.linalg.norm(units * loss.step - np.stack(numeric, axis=1), axis=1)
            assert apart.max() <= loss.rounding + 1e-5


def test_a_loss_without_clipping_is_caught() -> None:
    """The twin: features left as they come break the bound on a row's gradient."""
    loss = LOSSES["squared"](radius=3.0, clip=0.5)
    design = loss.prepare(block())
    raw = type(design)(design.features * 2, design.truth)
    theta = np.array([1.0, -1.0, 0.5])

    def longest(rows: Any) -> int:
        units = np.stack([loss.units(theta, rows, np.full(500, j)) for j in range(3)], axis=1)
        return max(sum(int(v) ** 2 for v in row) for row in units.tolist())

    assert longest(design) <= loss.norm**2 < longest(raw)


def test_own_gradients_are_shortened() -> None:
    loss = own()
    wild = learn.OwnLoss(
        SCHEMA,
        FEATURES,
        value=lambda theta, rows: rows[:, 0],
        gradient=lambda theta, rows: np.where(np.arange(rows.size).reshape(rows.shape) % 5, 1e300, np.nan),
        region=learn.Ball(2, 1.0),
        lipschitz=1.0,
    )
    for kind in (loss, wild):
        rows = kind.prepare(block())
        theta = np.array([0.5, -0.5])
        units = np.stack([kind.units(theta, rows, np.full(500, j)) for j in range(2)], axis=1)
        assert max(sum(int(v) ** 2 for v in row) for row in units.tolist()) <= kind.norm**2
        assert kind.total(theta, rows).tolist() == units.sum(axis=0).tolist()
    assert np.abs(units).max() > 0


def test_links_are_convex_and_as_steep_as_they_say() -> None:
    s = np.linspace(-4, 4, 4001)
    for kind in (link.Logistic(), link.Hinge(0.3), link.Squared(), link.Huber(0.4), link.Quantile(0.3)):
        for y in (-1.0, 1.0):
            truth = np.full_like(s, y)
            slope = kind.slope(s, truth)
            assert (np.diff(slope) >= -1e-12).all()
            assert np.abs(slope).max() <= kind.steepness(4.0) + 1e-12
            assert np.abs(slope).max() > 0.2 * kind.steepness(4.0)
            numeric = np.gradient(kind.value(s, truth), s)
            assert np.median(np.abs(numeric - slope)) < 1e-3
            if kind.curvature is not None:
                assert (np.diff(slope) / np.diff(s)).max() <= kind.curvature + 1e-9


@pytest.mark.parametrize("region", [learn.Ball(3, 2.0), learn.Box((-1.0, 0.0, 2.0), (1.0, 3.0, 2.5))])
def test_projection_is_the_nearest_point(region: Any) -> None:
    draw = np.random.default_rng(0)
    inside = [region.project(region.start + draw.normal(size=3) * 3) for _ in range(200)]
    for theta in draw.normal(size=(50, 3)) * 4:
        nearest = region.project(theta)
        assert all(
            np.linalg.norm(theta - nearest) <= np.linalg.norm(theta - other) + 1e-9 for other in inside
        )
    for other in inside:
        assert np.linalg.norm(other - region.start) <= region.radius + 1e-9
        assert np.linalg.norm(other) <= region.reach + 1e-9
        assert all(np.linalg.norm(other - one) <= region.diameter + 1e-9 for one in inside[:20])


SETTINGS = {
    "smooth gaussian": (LOSSES["logistic"], {"radius": 2.0}, {"rho": 0.05, "mechanism": "gaussian"}),
    "convex gaussian": (LOSSES["quantile"], {"radius": 2.0}, {"rho": 0.05, "mechanism": "gaussian"}),
    "ridge gaussian": (
        LOSSES["huber"],
        {"radius": 2.0, "penalty": 1.0},
        {"rho": 0.05, "mechanism": "gaussian"},
    ),
    "smooth votes": (LOSSES["hinge"], {"radius": 2.0}, {"rho": 0.05, "mechanism": "votes"}),
    "convex votes": (LOSSES["quantile"], {"radius": 2.0}, {"rho": 0.05, "mechanism": "votes"}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_excess_stays_below_the_certificate(name: str) -> None:
    """80 runs. How tight the certificate can be: see the next test."""
    make, shape, how = SETTINGS[name]
    loss = make(**shape)
    opened = table(400, seed=3)
    rows = loss.prepare(next(iter(opened._source.scan(loss.columns))))
    best, value = least(loss, rows), objective(loss, rows)
    excesses, certified = [], 0.0
    for _ in range(80):
        session = opened.session(rho=0.1, queries=1, target="table")
        found = minimize(session, loss, iterations=24, **how)
        certified = found.excess
        excesses.append(value(found.theta) - best)
        assert math.isfinite(certified)
    allowed = stats.binom.ppf(1 - FALSE_ALARM, 80, 0.05)
    assert sum(e > certified for e in excesses) <= allowed
    assert min(excesses) > -1e-6


def slide(slope: float) -> learn.OwnLoss:
    """A slope that is the same everywhere: the worst case for steps that were made for steeper ones."""
    return learn.OwnLoss(
        SCHEMA,
        ["b"],
        value=lambda theta, rows: np.full(len(rows), slope * theta[0]),
        gradient=lambda theta, rows: np.full((len(rows), 1), slope),
        region=learn.Ball(1, 1.0),
        lipschitz=1.0,
        smooth=1.0,
    )


def rows_of(session: hf.Session) -> Any:
    """The rows, as if they were paid for."""
    return session._desk.for_the_owner()


@pytest.mark.parametrize(("rule", "slope", "slack"), [("smooth", 1 / 50, 2.2), ("convex", 1 / 28, 40.0)])
def test_the_certificate_is_not_idle(rule: str, slope: float, slack: float) -> None:
    """An instance near the worst, almost without noise: a certificate `slack` times smaller would be false."""
    loss = slide(slope)
    session = session_of(100, rho=1e6)
    plan = plan_minimize(session, loss, rho=1e5, iterations=50, mechanism="gaussian")
    certified = table_excess(loss, rule, 50, plan.sigma, 0.005)[0]
    made = dataclasses.replace(plan, rule=rule)
    theta = room.descend(
        rows_of(session),
        loss,
        made,
        room.steepness(loss, made, 0.005),
        room.blocks_of(rows_of(session), loss),
    )
    excess = slope * (float(theta[0]) + 1)
    assert certified / slack < excess <= certified


def test_every_rule_is_certified() -> None:
    """All rules at the same noise, run directly: none exceeds its bound in 25 runs each."""
    loss = LOSSES["squared"](radius=1.0, penalty=0.8)
    opened = table(400, seed=4)
    rows = loss.prepare(next(iter(opened._source.scan(loss.columns))))
    best, value = least(loss, rows), objective(loss, rows)
    session = opened.session(rho=0.5, queries=1, target="table")
    plan = plan_minimize(session, loss, iterations=30, rho=0.02, mechanism="gaussian")
    for rule in ("convex", "strongly-convex", "smooth", "smooth-last", "smooth-strong"):
        made = dataclasses.replace(plan, rule=rule)
        sure, expected = table_excess(loss, rule, 30, made.sigma, 0.05)
        steep = room.steepness(loss, made, 0.05)
        runs = [
            value(room.descend(rows_of(session), loss, made, steep, room.blocks_of(rows_of(session), loss)))
            - best
            for _ in range(25)
        ]
        assert max(runs) <= sure
        assert np.mean(runs) <= expected
        assert expected <= sure or rule == "smooth-strong"


def test_the_plan_says_what_is_run_and_charged() -> None:
    session = session_of(1000)
    loss = LOSSES["logistic"](radius=2.0)
    plan = plan_minimize(session, loss, rho=0.01, iterations=10, mechanism="gaussian")
    assert plan.event == Repeat(Gaussian(4 * loss.norm**2, plan.noise), 10)
    assert Fraction(4 * loss.norm**2) / (2 * plan.noise) * 10 <= Fraction("0.01")
    assert plan.sigma == pytest.approx(math.sqrt(plan.noise) * loss.step / 1000)
    assert session.spent == 0
    found = minimize(session, loss, rho=0.01, iterations=10, mechanism="gaussian")
    assert float(session.spent) == pytest.approx(plan.cost) and plan.cost <= 0.01
    assert found.plan == plan
    assert found.excess == pytest.approx(plan.excess)
    assert str(plan).startswith(f"1 x 10 {plan.rule} steps by gaussian, 1,000 rows each; cost 0.00")
    votes = plan_minimize(session, loss, rho=0.01, iterations=10, mechanism="votes", rows=300)
    assert votes.event == Repeat(Votes(1000, 300, Fraction(1, 4)), 10)
    assert (votes.rows_per_iteration, votes.rows_read) == (300, 3000)


def test_the_noise_is_the_noise_of_the_plan() -> None:
    """One step from the start tells mean + noise: its spread must be sigma, and neither 0.9 nor 1.1 of it."""
    loss = own(learn.Ball(2, 1000.0))
    session = session_of(50, rho=1e6)
    plan = plan_minimize(session, loss, rho=1.0, iterations=1, mechanism="gaussian")
    plan = dataclasses.replace(plan, rule="smooth")
    blocks = room.blocks_of(rows_of(session), loss)
    mean = loss.total(loss.region.start, next(iter(blocks()))) / 50 * loss.step
    drawn = np.array([room.descend(rows_of(session), loss, plan, 1.0, blocks) + mean for _ in range(3000)])
    statistic = float((drawn**2).sum()) / plan.sigma**2  # smooth rule: the step is 1/L = 1
    for factor in (1.0, 0.9, 1.1):
        p = stats.chi2.cdf(statistic / factor**2, drawn.size)
        assert (min(p, 1 - p) > FALSE_ALARM) == (factor == 1.0)


def test_votes_are_unbiased_and_sub_gaussian() -> None:
    loss = LOSSES["huber"](radius=2.0)
    session = session_of(300)
    theta = np.array([0.3, -0.5, 0.2])
    rows = loss.prepare(next(iter(session._desk._source.scan(loss.columns))))
    truth = loss.total(theta, rows) / 300
    drawn = np.array([room.by_votes(rows_of(session), loss, theta, 40) for _ in range(2000)])
    sigma = 2 * loss.span / (2 * 0.5 * math.sqrt(40))
    assert (np.abs(drawn.mean(axis=0) - truth) < 6.5 * sigma / math.sqrt(2000)).all()
    assert (drawn.std(axis=0) <= sigma * 1.1).all()
    assert (drawn.std(axis=0) > 0.5 * sigma).all()


def test_votes_read_the_same_rows_whatever_n_is() -> None:
    loss = LOSSES["logistic"](radius=2.0)
    plans = [
        plan_minimize(session_of(n), loss, within=1.0, iterations=20, mechanism="votes")
        for n in (20_000, 200_000)
    ]
    assert plans[0].rows_per_iteration == plans[1].rows_per_iteration < 20_000
    assert plans[1].cost < plans[0].cost


def test_within_is_kept_and_less_costs_less() -> None:
    session, loss = session_of(20_000), LOSSES["logistic"](radius=2.0)
    close, far = (plan_minimize(session, loss, within=w) for w in (0.05, 0.2))
    assert close.excess <= 0.05 and far.excess <= 0.2
    assert far.cost < close.cost
    people_session = session_of(20_000, target="population")
    wide = plan_minimize(people_session, loss, within=0.5)
    assert wide.excess <= 0.5 and wide.target == "population"
    assert wide.excess > wide.on_table
    with pytest.raises(InputError, match="cannot be certified for the population"):
        plan_minimize(people_session, loss, within=0.01)


def test_repeated_runs_are_chosen_privately() -> None:
    loss, session = LOSSES["logistic"](radius=2.0), session_of(2000)
    plan = plan_minimize(session, loss, rho=0.05, iterations=20, runs=4, mechanism="gaussian")
    assert plan.selecting is not None and plan.runs == 4 and plan.cost <= 0.05
    found = minimize(session, loss, rho=0.05, iterations=20, runs=4, mechanism="gaussian")
    assert float(session.spent) <= 0.05
    rows = loss.prepare(next(iter(session._desk._source.scan(loss.columns))))
    assert objective(loss, rows)(found.theta) - least(loss, rows) <= found.excess
    good, bad = found.theta, -found.theta
    picks = [
        room.choose(loss, [bad, good], Fraction(4), room.blocks_of(rows_of(session), loss)) for _ in range(50)
    ]
    assert picks == [1] * 50
    with pytest.raises(InputError, match="expected a budget"):
        plan_minimize(session, loss, within=0.1, runs=2)


def test_the_charge_comes_first_and_is_kept() -> None:
    loss, session = LOSSES["logistic"](radius=2.0), session_of(500)

    def broken(*_: Any) -> Any:
        raise OSError("the disk is gone")

    session._desk._source.scan = broken  # type: ignore[method-assign]
    plan = plan_minimize(session, loss, rho=0.1, mechanism="gaussian")  # reads nothing
    with pytest.raises(OSError, match="gone"):
        minimize(session, loss, rho=0.1, mechanism="gaussian")
    assert float(session.spent) == pytest.approx(plan.cost)
    with pytest.raises(BudgetError):  # and an unaffordable one reads nothing
        minimize(session, loss, rho=0.45, mechanism="gaussian")


def test_noise_that_cannot_be_drawn_is_refused_before_the_charge() -> None:
    loss, session = LOSSES["logistic"](radius=2.0), session_of(500)
    with pytest.raises(BudgetError, match="does not pay for a single step"):
        minimize(session, loss, rho=1e-9, mechanism="gaussian", iterations=10_000)
    assert session.spent == 0
    rough = plan_minimize(session_of(2_000_000), loss, within=50.0, mechanism="gaussian", iterations=2)
    assert rough.noise <= 2**100


def test_a_plan_knows_only_public_numbers() -> None:
    loss = LOSSES["squared"](radius=2.0)
    first, second = (plan_minimize(session_of(300, seed), loss, rho=0.02) for seed in (1, 2))
    assert first == second


def test_queries_are_counted_and_capped() -> None:
    loss, session = own(), session_of(300, queries=2)
    for _ in range(2):
        minimize(session, loss, rho=0.01, iterations=3)
    with pytest.raises(BudgetError, match="promised for 2 queries"):
        minimize(session, loss, rho=0.01, iterations=3)


def test_currencies_and_groups() -> None:
    loss = LOSSES["logistic"](radius=2.0)
    pure = table(5000).session(epsilon=1.0, queries=2, target="table")
    assert plan_minimize(pure, loss, iterations=5).mechanism == "votes"
    assert plan_minimize(pure, loss, iterations=5).cost <= 0.5
    with pytest.raises(MechanismError):
        plan_minimize(pure, loss, mechanism="gaussian")
    with pytest.raises(InputError, match="give epsilon="):
        plan_minimize(pure, loss, rho=0.1)
    exact = table(5000).session(epsilon=1.0, delta=1e-6, only="gaussian", queries=1, target="table")
    mixed = table(5000).session(epsilon=1.0, delta=1e-6, queries=1, target="table")
    how: dict[str, Any] = {"iterations": 5, "mechanism": "gaussian"}
    assert plan_minimize(exact, loss, **how).sigma < plan_minimize(mixed, loss, **how).sigma
    families = table(5000, rows_per_unit=3).session(epsilon=1.0, delta=1e-6, queries=1, target="table")
    ratio = plan_minimize(families, loss, **how).sigma / plan_minimize(mixed, loss, **how).sigma
    assert 2.9 < ratio < 3.1


def test_sums_that_do_not_fit_64_bits_are_not_planned() -> None:
    """2^31 rows of gradients up to 2^32 steps would wrap around; votes add up a few rows."""
    loss, session = LOSSES["logistic"](radius=2.0), session_of(100)
    terms = session._terms
    session._terms = dataclasses.replace(terms, rows=2**30 - 1)
    assert plan_minimize(session, loss, rho=0.1, iterations=2, mechanism="gaussian").mechanism == "gaussian"
    for rows in (2**30, 2**31):
        session._terms = dataclasses.replace(terms, rows=rows)
        assert rows * loss.norm >= 2**62
        assert plan_minimize(session, loss, rho=0.1, iterations=2).mechanism == "votes"
        with pytest.raises(InputError, match="sums of gradients below 2\\^62"):
            plan_minimize(session, loss, rho=0.1, iterations=2, mechanism="gaussian")
    session._terms = dataclasses.replace(terms, rows=10**6)
    steep = LOSSES["logistic"](radius=2.0, penalty=1e9)
    with pytest.raises(InputError, match="say runs=1"):
        plan_minimize(session, steep, rho=0.1, iterations=2, runs=2)


def test_coefficients_predict_in_the_columns_own_units() -> None:
    loss = LOSSES["squared"](radius=5.0)
    session = table(50_000, seed=6).session(rho=5.0, queries=1, target="table")
    found = minimize(session, loss, iterations=300, mechanism="gaussian")
    slopes, intercept = loss.coefficients(found.theta)
    assert slopes == pytest.approx([15.0, -4.0], abs=0.7)  # cost = 50 + 15 a - 4 (b - 4.5), clipped a little
    assert intercept == pytest.approx(68.0, abs=2.0)


def test_bad_input_is_refused() -> None:
    session = session_of(100)
    for how in (
        {"radius": 0.0},
        {"radius": math.nan},
        {"penalty": -1.0},
        {"clip": 0},
        {"radius": True},
    ):
        with pytest.raises(InputError):
            LOSSES["logistic"](**how)
    with pytest.raises(InputError):
        learn.squared(SCHEMA, ["a", "a"], "cost")
    with pytest.raises(InputError):
        learn.squared(SCHEMA, ["missing"], "cost")
    loss = LOSSES["logistic"](radius=1.0)
    for bad in (
        {"rho": 0.1, "within": 0.1},
        {"rho": -1.0},
        {"rho": math.nan},
        {"within": 0},
        {"iterations": 0},
        {"runs": 1.5},
        {"mechanism": "laplace"},
        {"rows": -3, "mechanism": "votes", "rho": 0.1},
    ):
        with pytest.raises(InputError):
            minimize(session, loss, **bad)
    assert session.spent == 0


def test_a_replaced_row_moves_the_sum_by_at_most_twice_the_norm_and_nearly_that() -> None:
    """Replace one row and its label: the event's 4 norm^2 is needed, norm^2 (the twin) would be too little."""
    schema = hf.Schema(x=hf.Real(-1.0, 1.0), y=hf.Boolean())
    loss = learn.logistic(schema, ["x"], "y = true", radius=30.0)
    theta = np.array([0.0, 30.0])

    def total(label: bool, x: float) -> Any:
        rows = {"x": np.array([x, 0.2, -0.4]), "y": np.array([label, True, False])}
        return loss.total(theta, loss.prepare(next(iter(hf.open(rows, schema)._source.scan(["x", "y"])))))

    moved = [int(((total(False, 1.0) - total(True, x)).astype(object) ** 2).sum()) for x in (-1.0, 0.0, 1.0)]
    assert max(moved) <= 4 * loss.norm**2
    theta = np.zeros(2)  # both labels pull with half of the greatest slope, in opposite directions
    half = int(((total(False, 1.0) - total(True, 1.0)).astype(object) ** 2).sum())
    assert half == pytest.approx(loss.norm**2, rel=1e-3)
    squared_loss = learn.squared(
        hf.Schema(x=hf.Real(-1.0, 1.0), z=hf.Real(-1.0, 1.0)), ["x"], "z", radius=0.01
    )

    def steep(x: float, z: float) -> Any:
        opened = hf.open({"x": np.array([x]), "z": np.array([z])}, squared_loss.schema)
        return squared_loss.total(
            np.zeros(2), squared_loss.prepare(next(iter(opened._source.scan(["x", "z"]))))
        )

    far = int(((steep(1.0, 1.0) - steep(1.0, -1.0)).astype(object) ** 2).sum())
    assert squared_loss.norm**2 < 3.8 * squared_loss.norm**2 < far <= 4 * squared_loss.norm**2


def test_a_penalty_makes_the_certificate_shrink_geometrically() -> None:
    loss = LOSSES["squared"](radius=3.0, penalty=0.2)
    early, late = (table_excess(loss, "smooth-strong", steps, 1e-6, 0.05)[0] for steps in (10, 40))
    assert late < early / 1000
    assert late < table_excess(loss, "smooth", 40, 1e-6, 0.05)[0] / 1000
