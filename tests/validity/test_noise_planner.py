"""The planner is honest: what it chooses is the least certified width, and what it says can be checked."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest

from holdfast import validity
from holdfast.errors import InputError
from holdfast.validity.noise_plan import Plan
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Option, Request

CERTIFIED = [b for b in validity.bounds() if b.certified and b.private and b.adaptive]


def requests(count: int) -> list[tuple[int, int, float, float]]:
    rng = np.random.default_rng(1)
    out = []
    for _ in range(count):
        rows = int(10 ** rng.uniform(2.5, 8))
        queries = max(1, int(min(1e9, (rows * 0.01) ** 2 * 10 ** rng.uniform(-5, 1))))
        within = float(rng.choice([0.02, 0.05, 0.1, 0.3]))
        out.append((rows, queries, within, float(rng.choice([0.5, 0.9, 0.95, 0.999999]))))
    return out


def dishonest(plan: Plan) -> str | None:
    """What is wrong with a plan, if anything."""
    ask = {"rows": plan.rows, "queries": plan.queries, "confidence": plan.confidence}
    widths = {b.name: validity.width(b.name, **ask) for b in CERTIFIED}
    least = min(widths.values())
    if plan.possible != (least <= plan.within):
        return "possible where nothing is certified, or the reverse"
    private = [option for option in plan.options if option.private]
    if plan.chosen is not None and plan.chosen.narrowest > least * (1 + 1e-4):
        return "a certified bound is narrower than the choice"
    by_votes = min(widths[name] for name in ("votes", "t3", "t4v"))
    if any(option.name == "leave-out-votes" and option.narrowest > widths[option.name] for option in private):
        return "not the width of its own bound"
    for option in private:
        if option.name == "votes" and option.narrowest > by_votes * (1 + 1e-3):
            return "a certified bound for votes is narrower"
        if option.fits and not option.width <= plan.within:
            return "claims to fit and does not"
    return None


@pytest.mark.parametrize(("rows", "queries", "within", "confidence"), requests(4))
def test_the_choice_is_the_least_certified_width(
    rows: int, queries: int, within: float, confidence: float
) -> None:
    assert dishonest(validity.plan(rows=rows, queries=queries, within=within, confidence=confidence)) is None


def test_a_dishonest_plan_is_caught() -> None:
    plan = validity.plan(rows=10**6, queries=1000, within=0.05, confidence=0.95)
    assert plan.chosen is not None
    votes = next(option for option in plan.others if option.name == "votes")
    for wrong in (
        Plan(plan.rows, plan.queries, plan.within, plan.confidence, None, plan.options),
        Plan(plan.rows, plan.queries, plan.within, plan.confidence, votes, (plan.chosen,)),
        Plan(plan.rows, 10**7, plan.within, plan.confidence, plan.chosen, plan.others),
    ):
        assert dishonest(wrong) is not None


def test_noise_is_the_most_and_votes_the_fewest_that_fit() -> None:
    rows, queries, within, beta = 10**6, 2000, 0.05, 0.05
    plan = validity.plan(rows=rows, queries=queries, within=within, confidence=0.95)
    gaussian, votes = (next(o for o in plan.options if o.name == name) for name in ("gaussian", "votes"))
    assert plan.chosen is not None
    assert plan.chosen.name == "leave-out"
    assert gaussian.standard_deviation is not None
    assert votes.votes is not None
    s, m = gaussian.standard_deviation, votes.votes
    assert validity.gaussian_width(rows, queries, beta, s) <= within
    assert validity.gaussian_width(rows, queries, beta, s * 1.001) > within
    assert (
        validity.votes_width(rows, queries, beta, m)
        <= within
        < validity.votes_width(rows, queries, beta, m - 1)
    )
    assert gaussian.rho is not None
    assert math.isclose(gaussian.rho, queries / (2 * s * s), rel_tol=1e-6)
    assert votes.rows_per_answer == m < rows == gaussian.rows_per_answer
    few = validity.plan(rows=rows, queries=queries, within=within, confidence=0.95, prefer="rows")
    assert few.chosen is not None
    assert few.chosen.rows_per_answer == min(option.rows_per_answer for option in plan.options if option.fits)
    assert few.chosen.rows_per_answer <= m


def test_what_a_failing_option_needs_is_enough_and_no_more() -> None:
    ask = {"queries": 30_000, "within": 0.05, "confidence": 0.95}
    plan = validity.plan(rows=10**5, **ask)
    assert not plan.possible
    assert [option.name for option in plan.others[:3]] == ["leave-out", "leave-out-votes", "gaussian"]
    for option in plan.others:
        assert option.least_rows is not None
        enough = validity.width(option.name, rows=option.least_rows, queries=30_000, confidence=0.95)
        short = validity.width(
            option.name, rows=int(option.least_rows * 0.99), queries=30_000, confidence=0.95
        )
        assert enough <= 0.05 < short
        count = validity.most_queries(option.name, rows=10**5, within=0.05, confidence=0.95)
        assert option.most_queries == count


def computed(patch: pytest.MonkeyPatch) -> list[str]:
    """The options that are computed from here on."""
    names: list[str] = []
    table = sys.modules["holdfast.validity.noise_planner"]._OPTIONS  # type: ignore[attr-defined]
    for name, make in list(table.items()):

        def noted(asked: Request, name: str = name, make: Callable[[Request], Option] = make) -> Option:
            names.append(name)
            return make(asked)

        patch.setitem(table, name, noted)
    return names


def test_the_first_that_fits_is_chosen_and_no_other_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = computed(monkeypatch)
    assert choose(("votes", "gaussian"), Request(10**6, 100, 0.95, 0.05)).name == "votes"
    assert names == ["votes"]
    assert choose(("gaussian",), Request(10**6, 100, 0.95)).name == "gaussian"
    assert names == ["votes", "gaussian"]


def test_the_narrowest_is_chosen_where_none_fits_or_no_width_is_asked_for() -> None:
    for within in (None, 0.0001):
        asked = Request(10**4, 100, 0.95, within)
        each = [choose((name,), asked) for name in ("votes", "gaussian")]
        assert choose(("votes", "gaussian"), asked) == min(each, key=lambda option: option.width)
        assert all(option.fits == (within is None) for option in each)


def test_more_queries_than_any_noise_bears_are_no_mistake_of_the_caller() -> None:
    plan = validity.plan(rows=10, queries=10**13, within=0.1, confidence=0.95)
    assert not plan.possible
    assert "gaussian (J0 with T1*): certifies nothing" in str(plan)


def test_without_privacy_rounding_may_be_chosen() -> None:
    ask = {"rows": 50, "queries": 2, "within": 0.28, "confidence": 0.95}
    private = validity.plan(**ask).chosen
    assert private is not None and private.name == "leave-out"
    plan = validity.plan(**ask, private=False)
    assert plan.chosen is not None
    assert plan.chosen.name == "discretised"
    assert plan.chosen.rho is None


@pytest.mark.parametrize(("queries", "within"), [(1000, 0.05), (20_000, 0.025)])
def test_the_leave_out_options_spend_no_more_than_their_half_width_asks_for(
    queries: int, within: float
) -> None:
    plan = validity.plan(rows=10**6, queries=queries, within=within, confidence=0.95)
    by_name = {option.name: option for option in plan.options}
    for name, older in (("leave-out", "gaussian"), ("leave-out-votes", "votes")):
        option = by_name[name]
        assert option.fits
        assert within * 0.97 < option.width <= within
        assert sum(epoch.answers for epoch in option.epochs) == queries
        assert 0 <= option.population < option.width
        assert option.rho is not None
        if by_name[older].fits:
            assert option.rho < 1.05 * (by_name[older].rho or 0.0)
    assert by_name["leave-out-votes"].rows_per_answer < 10**6
    assert "falling to" in str(by_name["leave-out"])
    assert " to " in str(by_name["leave-out-votes"])


def test_a_plan_prints_what_matters() -> None:
    text = str(validity.plan(rows=10**6, queries=1000, within=0.05, confidence=0.95))
    assert "possible" in text
    assert "gaussian" in text
    assert "votes an answer" in text
    text = str(validity.plan(rows=1000, queries=1000, within=0.05, confidence=0.95))
    assert "not certified" in text
    assert "needs" in text


def test_bad_requests_are_refused() -> None:
    good = {"rows": 10**4, "queries": 10, "within": 0.05, "confidence": 0.95}
    for change in (
        {"rows": 0},
        {"rows": True},
        {"queries": -1},
        {"queries": 1.5},
        {"within": 0.0},
        {"within": 1.0},
        {"within": math.nan},
        {"confidence": 1.0},
        {"confidence": "0.95"},
        {"prefer": "luck"},
        {"flip": 0.5},
    ):
        with pytest.raises(InputError):
            validity.plan(**(good | change))
