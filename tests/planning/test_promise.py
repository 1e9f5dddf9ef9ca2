"""The next promise is the same for whoever makes it, and answers beyond it are refused in the same words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast import learn
from holdfast.errors import BudgetError
from holdfast.learn.finite_class import FiniteClass
from holdfast.ledger import Moment, Totals
from holdfast.mechanisms.accuracy import laplace_reach
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.planning.promise import (
    BY_LEVELS,
    LEFT_OUT,
    NOISE_ALONE,
    answered,
    grid_beta,
    left_out_beta,
    next_promises,
    noise_beta,
    promises,
    share,
    total_rho,
)
from holdfast.privacy.conversion import pure_to_zcdp
from holdfast.privacy.filter import UNITS
from holdfast.query.region import GRID
from holdfast.session.footing import footing, footing_after
from holdfast.validity.leave_out import LeaveOut, recorded_grid
from holdfast.validity.places import Places
from holdfast.validity.transfer import concentrated_term
from holdfast.weights.terms_choice import plan_weights

CLASS = FiniteClass(learn.Thresholds([30.0, 60.0]))
LOSS = learn.logistic(
    hf.Schema(age=hf.Integer(0, 99), insured=hf.Boolean()), ["age"], "insured = true", radius=2.0
)
SAID = re.compile(
    r"the intervals were promised for 4 queries on these rows; (\d) are answered and this needs ([\d,]+)\."
)

Asker = Callable[[hf.Session], object]
ASKERS: dict[str, tuple[int, Asker]] = {
    "a question": (1, lambda session: session.fraction("age < 50", rho=1e-5)),
    "an estimate": (1, lambda session: session.estimate.fraction("age < 50", rho=1e-5)),
    "minimize": (1, lambda session: session.minimize(LOSS, rho=1e-4, iterations=2)),
    "a learner": (2, lambda session: CLASS.learn_in(session, ["age"], "insured", epsilon=0.01)),
    "weights": (
        1000,
        lambda session: session.multiplicative_weights(["insured"], queries=1000, rho=0.1),
    ),
}


def asked_three_times(table: hf.Table, target: str) -> hf.Session:
    session = table.session(rho=1.0, queries=4, target=target)
    for limit in (10, 20, 30):
        session.fraction(f"age < {limit}", rho=1e-5)
    return session


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("name", ASKERS)
def test_answers_beyond_the_promise_are_refused_in_the_same_words(
    table: hf.Table, name: str, target: str
) -> None:
    needed, ask = ASKERS[name]
    session = asked_three_times(table, target)
    if needed == 1:
        session.fraction("age < 40", rho=1e-5)
    spent = session.spent
    with pytest.raises(BudgetError) as refused:
        ask(session)
    taken = 4 if needed == 1 else 3
    found = SAID.search(str(refused.value))
    assert found is not None
    assert found.groups() == (str(taken), f"{needed:,}")
    assert (refused.value.requested, refused.value.remaining) == (needed, 4 - taken)
    assert session.spent == spent


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("queries", [4, None])
def test_everybody_derives_the_same_promise(table: hf.Table, target: str, queries: int | None) -> None:
    """By hand: the share of the place, at the levels that the table's loss leaves."""
    session = table.session(rho=1.0, queries=queries, target=target)
    session.fraction("age < 10", rho=1e-4)
    moment, terms = session._moment(), session._terms
    spent = total_rho(moment.table.units, terms)
    assert spent == pytest.approx(1e-4, rel=1e-3)
    assert answered(moment, terms) == session._answered == 1

    def by_hand(place: int, rho: float) -> list[object]:
        beta = 1 - terms.confidence if target == "table" else 0.05 * BY_LEVELS
        return list(promises(target, terms.rows, beta, share(queries, place), rho))

    assert list(next_promises(moment, terms)) == by_hand(2, spent)
    assert session.promise() == by_hand(2, spent)[0]
    planned = session.estimate.fraction(
        "age < 20", rho=1e-5, **({} if target == "table" else {"mechanism": "laplace"})
    )
    assert planned.promise in by_hand(2, spent)
    assert footing_after(session, fresh=False).promise == by_hand(1, spent)[0]
    assert next(next_promises(moment, terms, place=3, spent=0.01)) == by_hand(3, 0.01)[0]
    together = next(next_promises(moment, terms, count=2))
    apart = next(next_promises(moment, terms)), next(next_promises(moment, terms, place=3))
    assert together.allowance == pytest.approx(sum(promise.allowance for promise in apart))


def chosen_by_a_check(left_out: LeaveOut, covered: float, alone: float) -> float:
    """How often a place fails, in units of its chance, exactly: 20 coins are checked once. After silence the place goes
    to a claim by these numbers of rows, whose failures are E exp(b D - exponent) times `covered`; after an alarm to one
    that fails by its noise, given the rows, with `alone`."""
    rows, rate, threshold, tilt = 20, 40.0, 0.35, 21.0
    ones = np.arange(rows + 1)
    chances = np.array([math.comb(rows, int(one)) for one in ones]) / 2.0**rows
    alarm = 1 / (1 + np.exp(-rate * (ones / rows - threshold)))
    exponent = left_out.exponent([0.0] * len(left_out.sizes), tilt)  # silence is free
    gained = np.exp(tilt * (0.5 - ones / rows) - exponent)
    return float((chances * ((1 - alarm) * gained * covered + alarm * alone)).sum())


def test_what_noise_does_by_itself_has_a_part_of_its_own_of_every_place(table: hf.Table) -> None:
    """Theorem 91: the true law is one more law beside those in which rows are left out. The twin gives each claim the
    whole chance of the place in its own law, and one check of 20 coins makes the place fail half again as often."""
    assert chosen_by_a_check(LeaveOut(20, (19,)), 1.0, 1.0) > 1.5, "the twin"
    assert chosen_by_a_check(LeaveOut(20, (19,)), LEFT_OUT, NOISE_ALONE) + BY_LEVELS <= 1
    assert Fraction(repr(LEFT_OUT)) + Fraction(repr(NOISE_ALONE)) + Fraction(repr(BY_LEVELS)) <= 1
    planned, later = table.session(rho=1.0, queries=9), table.session(rho=1.0)
    for session in (planned, later):
        terms, place = session._terms, 1
        assert terms.places is not None
        weights: dict[int, list[float]] = {}
        own = terms.places.left_out(place)
        for law, part in ((own, left_out_beta), (recorded_grid(terms.rows), grid_beta)):
            claim: dict[int, float] = {}
            for size, weight in zip(law.sizes, law.weights, strict=True):
                claim[size] = claim.get(size, 0.0) + weight * part(terms, place)
            for size, weight in claim.items():
                weights.setdefault(size, []).append(weight)
        by_rows = math.fsum(max(claims) for claims in weights.values())
        by_levels = next_promises(session._moment(), terms, place=place)
        spent = by_rows + noise_beta(terms, place) + 0.05 * BY_LEVELS * share(terms.queries, place)
        assert spent <= 0.05 * share(terms.queries, place) * (1 + 1e-12) and any(by_levels)
        stands = footing(session._moment(), terms, session.promise(), False, place=place)
        assert (stands.covered_chance, stands.noise_chance) == (
            grid_beta(terms, place),
            noise_beta(terms, place),
        )
        made = plan_weights(
            session, 3, 7, version=None, within=None, rho=0.5, epsilon=None, delta=None, after=1
        )
        assert made.looks is not None
        each = grid_beta(terms, 2, 7) / (2 * (7 + made.updates))
        assert made.looks.beta == pytest.approx(each, rel=1e-9) and made.looks.beta <= each
        drawn = SparseVector(
            made.threshold,
            sensitivity=GRID,
            epsilon=made.run_epsilon,
            hits=1,
            version="logistic",
            threshold_share=made.threshold_share,
        ).allocation.threshold
        hidden = laplace_reach(drawn, noise_beta(terms, 2, 7) / made.updates, False) / (terms.rows * GRID)
        assert hidden <= made.looks.reach <= hidden * 1.01 + 5 / (terms.rows * GRID)


def test_weights_stand_on_the_places_after_those_taken(table: hf.Table) -> None:
    """The twin plans for the first places of an unbounded promise, whose shares are larger, and certifies less."""
    how = {"version": "best", "within": None, "rho": 0.5, "epsilon": None, "delta": None}
    session = table.session(rho=1.0, target="table")
    for limit in range(1, 9):
        session.fraction(f"age < {limit}", rho=1e-5)
    honest = plan_weights(session, 3, 100, **how)
    assert honest == plan_weights(session, 3, 100, after=8, **how)
    assert plan_weights(session, 3, 100, after=0, **how).within < honest.within


def test_own_answers_take_places_about_the_table_and_in_a_plan() -> None:
    moment = Moment(Totals(2, 2, 7), Totals(5, 5, 9))

    def taken(target: str, places: Places | None) -> int:
        terms: Any = SimpleNamespace(target=target, places=places, part=None)
        return answered(moment, terms)

    planned = Places(100)
    assert taken("table", None) == taken("table", planned) == taken("population", planned) == 2
    assert taken("population", None) == 5


@pytest.mark.parametrize(
    ("currency", "rho"), [("zcdp", 0.5), ("pure", pure_to_zcdp(0.5))], ids=["zcdp", "pure"]
)
def test_a_tables_loss_is_read_in_its_own_currency(currency: str, rho: float) -> None:
    terms: Any = SimpleNamespace(table=SimpleNamespace(currency=currency))
    assert total_rho(UNITS // 2, terms) == rho > 0
    assert total_rho(0, terms) == 0


def test_shares_sum_to_at_most_one() -> None:
    total = Fraction(0)
    for place in range(1, 5000):
        total += Fraction(share(None, place))
    assert total < 1
    epoch_sums = [sum(share(None, p) for p in range(2**e, 2 ** (e + 1))) for e in range(12)]
    assert epoch_sums == pytest.approx([1 / ((e + 1) * (e + 2)) for e in range(12)])
    assert sum(share(40, place) for place in range(1, 41)) == pytest.approx(1)


def test_levels_spend_beta_once() -> None:
    n, beta, weight = 10_000, 0.05, 0.01
    levels = list(promises("population", n, beta, weight, 0.0))
    spent = 0.0
    for level, promise in enumerate(levels):
        beta_level = beta / ((level + 1) * (level + 2))
        spent += beta_level
        assert promise.most_rho == 2.0**level / (8 * n)
        assert promise.population == concentrated_term(beta_level, promise.most_rho)
        assert promise.allowance == pytest.approx(weight * beta_level * promise.slack)
    assert spent <= beta
    assert [p.population for p in levels] == sorted(p.population for p in levels)
    later = next(promises("population", n, beta, weight, levels[4].most_rho))
    assert later == levels[5]
    assert [p.target for p in promises("table", n, beta, weight, 1e9)] == ["table"]
