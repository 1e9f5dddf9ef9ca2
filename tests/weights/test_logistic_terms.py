"""Weights on the meter: the plan against its theorem, an exact game of two looks, sessions and their broken twins."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.mechanisms import allocation
from holdfast.mechanisms.accuracy import laplace_reach
from holdfast.noise.logistic import exceeds
from holdfast.planning.recipe_information import told_by, units_told
from holdfast.query.region import GRID, region
from holdfast.validity.leave_out import LeaveOut, recorded_grid
from holdfast.validity.leave_out_charges import comparison_charge
from holdfast.validity.leave_out_tails import comparison_half_width
from holdfast.validity.told import comparison_told
from holdfast.weights import answerer, logistic_terms
from holdfast.weights.answerer import MultiplicativeWeights
from holdfast.weights.distribution import Weights
from holdfast.weights.logistic_terms import LogisticTerms

pytestmark = pytest.mark.usefixtures("replayed_noise")
ROWS = 20_000
_held = np.random.default_rng(3).random((ROWS, 4)) < np.array([0.05, 0.95, 0.05, 0.95])
DATA = {f"c{i}": _held[:, i] for i in range(4)}
SCHEMA = hf.Schema(**{name: hf.Boolean() for name in DATA})
CHANCE = {"c0": 0.05, "c1": 0.95, "c2": 0.05, "c3": 0.95}


def planned(**how: Any) -> LogisticTerms:
    settings: dict[str, Any] = {"secret": 0.0025, "most": 5.0, "pure": False, "within": None} | how
    return logistic_terms.logistic_terms(ROWS, 16, 1000, 0.0475, settings.pop("told", 0), **settings)


def fallen(plan: LogisticTerms, told: int, alarms: int) -> tuple[float, float]:
    """(what so many alarms take from the divergence, the reach after the last), alarm by alarm, by the theorem."""
    noise = allocation.pure(
        GRID, plan.run_epsilon, 1, monotone=False, numeric=False, share=Fraction(plan.threshold_share)
    )
    grid, rate = recorded_grid(ROWS), ROWS * GRID / float(noise.question)
    secret = laplace_reach(noise.threshold, 0.0025 / plan.alarms, False) / (ROWS * GRID)
    tells = units_told(comparison_told(ROWS, rate), ROWS)
    beta = 0.0475 / (2 * (1000 + plan.alarms))
    total = reach = 0.0
    for alarm in range(1, alarms + 1):
        charges = grid.charges(told_by(told + alarm * tells, ROWS))
        reach = comparison_half_width(grid, charges, rate, beta) + secret
        total += 2 * (plan.looks.threshold - reach) ** 2
    return total, reach


@pytest.mark.parametrize(
    "how", [{"most": 5.0}, {"most": 0.5, "told": 10**9}, {"most": 8.0, "pure": True}, {"within": 0.4}]
)
def test_the_planned_alarms_take_the_divergence_down_and_half_of_them_do_not(how: dict[str, Any]) -> None:
    plan = planned(**how)
    taken, reach = fallen(plan, how.get("told", 0), plan.alarms)
    assert taken + 2 * plan.within**2 >= math.log(16)
    assert plan.looks.threshold + reach <= plan.within <= (how.get("within") or 1)
    assert fallen(plan, how.get("told", 0), plan.alarms // 2)[0] + 2 * plan.within**2 < math.log(16)
    cost = plan.alarms * (float(plan.run_epsilon) if how.get("pure") else float(plan.run_epsilon) ** 2 / 2)
    assert cost <= how.get("most", 5.0) * 1.001


def test_more_budget_is_narrower_and_a_width_costs_no_more_than_its_budget() -> None:
    wide, narrow = planned(most=0.2), planned(most=2.0)
    assert narrow.within < wide.within
    kept = planned(most=50.0, within=wide.within * 1.02)
    assert kept.alarms * float(kept.run_epsilon) ** 2 / 2 < 0.3
    with pytest.raises(InputError, match="certify no within"):
        planned(within=0.05)
    with pytest.raises(InputError, match="no error below 1"):
        planned(most=1e-9)


@pytest.mark.parametrize("told", [0, 5 * 10**8, 10**10])
def test_silence_and_an_alarm_say_what_the_theorem_says(told: int) -> None:
    """T + tau + r, and T - tau - r, by hand; r is for the secret noise, which neither may forget."""
    looks, grid = planned().looks, recorded_grid(ROWS)
    tau = comparison_half_width(grid, grid.charges(told_by(told, ROWS)), looks.rate, looks.beta)
    assert looks.reach > 1e-3 and looks.beta == pytest.approx(0.0475 / (2 * (1000 + planned().alarms)))
    silence, alarm = looks.threshold + tau + looks.reach, looks.threshold - tau - looks.reach
    assert silence <= looks.half_width(told) <= silence * 1.01
    assert max(0.0, alarm - 0.01 * tau) <= looks.gain(told) <= max(0.0, alarm)


def test_weights_are_settled_from_where_no_question_can_be_off_by_more() -> None:
    """Pinsker: a gap of W means a divergence of 2 W^2 at least."""
    weights = opened()
    least = 2 * weights.within**2
    for potential, settled in ((least * (1 + 1e-9), False), (least, True), (4 * least, False)):
        weights.potential = potential
        assert weights.settled is settled


class Looks:
    """Rows that are yes or no with chance 1/2 each, and all that two adaptive looks with guesses can go wrong."""

    def __init__(self, rows: int, left_out: int, rate: float, beta: float) -> None:
        self.rows, self.rate, self.beta, self.left_out = rows, rate, beta, LeaveOut(rows, (left_out,))
        self.theta = comparison_charge(rows, left_out, rate)
        yes = np.arange(rows + 1)
        self.chance = np.array([math.comb(rows, k) for k in yes]) / 2**rows
        self.share = yes / rows

    def wrong(self, alarm_pays: float, stretch: float) -> float:
        """The chance that something is wrong, for the analyst who chooses both guesses, the second by the outcome."""

        def look(weight: np.ndarray, told: float, left: int) -> float:
            tau = stretch * comparison_half_width(self.left_out, (told,), self.rate, self.beta)
            return max(self._at(weight, told, left, tau, gap, alarm_pays, look) for gap in (0.0, 0.1, 0.45))

        return look(self.chance, 0.0, 2)

    def _at(
        self,
        weight: np.ndarray,
        told: float,
        left: int,
        tau: float,
        gap: float,
        pays: float,
        look: Any,
    ) -> float:
        """The guess is `gap` below the truth, the threshold tau: as in the weights, up is asked first, then down."""
        up = 1 / (1 + np.exp(-self.rate * (self.share - (0.5 - gap) - tau)))
        down = (1 - up) / (1 + np.exp(-self.rate * ((0.5 - gap) - self.share - tau)))
        silence = 1 - up - down
        # T = tau: silence means |q(P) - g| <= 2 tau, an alarm that q(P) is on its side of g
        failed = (silence if gap > 2 * tau else 0) + (up if gap <= 0 else 0) + down
        total = float(weight @ np.broadcast_to(failed, weight.shape))
        if left > 1:
            total += look(weight * silence, told, left - 1)
            total += look(weight * up, told + pays, left - 1) + look(weight * down, told + pays, left - 1)
        return total


@pytest.mark.parametrize(("rows", "left_out", "rate"), [(6, 2, 3.0), (10, 3, 6.0), (12, 8, 8.0)])
def test_two_adaptive_looks_are_wrong_no_more_often_than_they_say(
    rows: int, left_out: int, rate: float
) -> None:
    """Two ways to be wrong are open to a look; a sixth of tau is not enough."""
    game = Looks(rows, left_out, rate, 0.05)
    assert game.wrong(game.theta, 1.0) <= 2 * 2 * 0.05
    assert game.wrong(game.theta, 1 / 6) > 2 * 2 * 0.05


def opened(table: hf.Table | None = None, **how: Any) -> MultiplicativeWeights:
    table = table or hf.open(DATA, SCHEMA, ledger=MemoryLedger())
    session = table.session(**{"rho": 5.0} | how)
    return session.multiplicative_weights(list(DATA), queries=1000, rho=4.0)


def questions() -> list[tuple[str, float]]:
    """Conjunctions and their chance in the population, whose columns are independent."""
    found = []
    for size in (1, 2, 3, 4):
        for names in itertools.combinations(DATA, size):
            found.append((" AND ".join(names), math.prod(CHANCE[name] for name in names)))
    return found


def test_answers_hold_for_the_population_and_alarms_are_counted_on_the_meter() -> None:
    weights = opened()
    ledger, looks = weights._session._ledger, weights.terms.looks
    assert looks is not None and weights.terms.version == "logistic"
    for where, truth in questions():
        answer = weights.fraction(where)
        assert answer.low <= truth <= answer.high and answer.width <= weights.within + 1e-12
        assert answer.table_low <= float(np.mean(_held[:, [int(c[1]) for c in where.split(" AND ")]].all(1)))
    assert weights.updates >= 3
    falls = [math.log(weights.weights.support)]
    model = Weights(weights.universe)
    for note in (entry.note for entry in ledger.entries() if "question" in entry.key):
        if note["above"]:
            query, move = (
                region(weights.universe, note["query"]),
                answerer._sign(note["above"]) * note["gain"],
            )
            falls.append(-answerer._kl(p := model.fraction(query), move))
            model.tilt(query, math.copysign(answerer.projection(p, move, counting=True), move))
    left = math.fsum(falls)
    assert left < weights.potential < left + 1e-9, "what is left of the divergence is rounded up"
    runs = weights.updates + (weights._run is not None)
    assert ledger.totals().information == runs * looks.tells < UNCOVERED
    noise = allocation.logistic(
        allocation.pure(
            GRID,
            weights.terms.run_epsilon,
            1,
            monotone=False,
            numeric=False,
            share=Fraction(weights.terms.threshold_share or 0),
        )
    )
    assert looks.tells >= units_told(comparison_told(ROWS, ROWS * GRID / float(noise.question)), ROWS)
    assert weights._session.fraction("c0", within=0.2).met, "those who come later are still covered"


def test_a_twin_that_steps_to_the_wrong_side_is_wrong_of_the_population(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answerer, "_sign", lambda above: -1.0 if above == 1 else 1.0)
    weights, wrong = opened(), 0
    try:
        for where, truth in questions():
            answer = weights.fraction(where)
            wrong += not answer.low <= truth <= answer.high
    except BudgetError:  # it alarms until all updates are used up
        wrong += 1
    assert wrong


def test_a_twin_whose_comparisons_are_deaf_is_wrong_of_the_population(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four times the threshold: silence where the guess is off by more than is said."""
    monkeypatch.setattr(
        "holdfast.mechanisms.sparse_vector.exceeds",
        lambda distance, scale, bits=None: exceeds(distance - 10 * ROWS * GRID, scale, bits),
    )
    weights = opened()
    answers = [(weights.fraction(where), truth) for where, truth in questions()]
    assert any(not answer.low <= truth <= answer.high for answer, truth in answers)


def test_coming_back_goes_on_with_the_same_weights(tmp_path: Path) -> None:
    hf.open(DATA, SCHEMA, ledger=MemoryLedger()).save(tmp_path / "rows.hf").close()
    table = hf.open(tmp_path / "rows.hf")
    weights = opened(table, name="ann")
    told = {where: weights.fraction(where).value for where, _ in questions()}
    asked, updates, spent = weights.asked, weights.updates, float(weights._session.spent)
    table.close()
    again = opened(hf.open(tmp_path / "rows.hf"), name="ann")
    assert (again.asked, again.updates, float(again._session.spent)) == (asked, updates, spent)
    np.testing.assert_array_equal(again.weights.probabilities()[0], weights.weights.probabilities()[0])
    assert abs(again.fraction("c0").value - told["c0"]) < weights.within


def test_what_others_are_told_widens_answers_and_at_last_refuses() -> None:
    """A silent answer keeps what it said; the next one says more, and none is given that would say nothing."""
    table = hf.open(DATA, SCHEMA, ledger=MemoryLedger())
    weights = opened(table)
    first = weights.fraction("c0 AND c1 AND c2")
    other = table.session(rho=1e4)
    other.fraction("c1", rho=3e-3)
    second = weights.fraction("c0 AND c1 AND c3")
    assert second.width > first.width
    assert weights.fraction("c0 AND c1 AND c2").width == first.width
    other.fraction("c2", rho=1e3)
    spent = weights._session.spent
    with pytest.raises(BudgetError, match="an alarm would say nothing"):
        weights.fraction("c2 AND c3")
    assert weights._session.spent == spent


def test_the_version_follows_the_session_and_is_refused_where_no_theorem_covers_it() -> None:
    table = hf.open(DATA, SCHEMA, ledger=MemoryLedger())
    of_table = table.session(rho=9.0, target="table").multiplicative_weights(
        list(DATA), queries=9, within=0.3
    )
    assert of_table.terms.version == "best"
    after = table.session(rho=9.0)
    assert after.estimate.multiplicative_weights(list(DATA), queries=9, within=0.3).cost > 0
    with pytest.raises(InputError, match="take version='best'"):
        after.multiplicative_weights(list(DATA), queries=9, within=0.3, version="logistic", name="w")
