"""The filter refuses before it overspends, exactly, and forgets nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BudgetError, HoldfastError, InputError, NoRuleError
from holdfast.privacy import Filter, events
from holdfast.privacy.event import Event
from holdfast.privacy.filter import DELTA_UNITS, UNITS

from . import strategies

UNIT = Fraction(1, UNITS)
MAKERS: dict[str, Callable[[object], Filter]] = {"pure": Filter.pure, "zcdp": Filter.zcdp, "gdp": Filter.gdp}  # type: ignore[dict-item]


def true_cost(event: Event, currency: str) -> Fraction:
    """The exact cost of the few events whose theorem is rational, written again from the textbook."""
    if isinstance(event, events.PureMechanism):
        return event.epsilon**2 if currency == "approx" else event.epsilon
    if isinstance(event, events.ConcentratedMechanism):
        return event.rho
    assert isinstance(event, events.Gaussian)
    return event.sensitivity_squared / (event.variance - 4)


def overspends(
    charge: Callable[[Filter, Event], Filter], start: Filter, asked: list[Event], limit: Fraction
) -> bool:
    """Spend until refused, and compare what was really spent with the limit."""
    state, spent = start, Fraction(0)
    for event in asked:
        try:
            state = charge(state, event)
        except BudgetError:
            continue
        spent += true_cost(event, start.currency)
    return spent > limit


tiny = st.fractions(min_value=Fraction(1, 10**14), max_value=Fraction(1, 10))
limits = st.one_of(st.floats(1e-9, 2.0), st.fractions(min_value=Fraction(1, 10**9), max_value=2))


@given(st.sampled_from(["pure", "zcdp", "gdp"]), limits, st.lists(tiny, min_size=1, max_size=30))
def test_never_more_than_the_limit(currency: str, limit: float | Fraction, amounts: list[Fraction]) -> None:
    make = {
        "pure": events.PureMechanism,
        "zcdp": events.ConcentratedMechanism,
        "gdp": lambda x: events.Gaussian(1, 4 + 1 / x),
    }[currency]
    meant = Fraction(repr(limit)) if isinstance(limit, float) else limit
    start = MAKERS[currency](limit)
    assert start.limit_units <= meant * UNITS < start.limit_units + 1
    assert not overspends(lambda f, e: f.charge(e), start, [make(x) for x in amounts], meant)


def test_the_law_catches_rounding_down() -> None:
    def cheap(state: Filter, event: Event) -> Filter:
        """A mutant: costs are rounded to the unit below."""
        return state.charge_units(math.floor(true_cost(event, state.currency) * UNITS))

    asked: list[Event] = [events.ConcentratedMechanism(UNIT * Fraction(19, 10))] * 20
    assert overspends(cheap, Filter.zcdp(UNIT * 10), asked, UNIT * 10)
    assert not overspends(lambda f, e: f.charge(e), Filter.zcdp(UNIT * 10), asked, UNIT * 10)


@given(st.floats(0.01, 20), st.floats(1e-12, 0.4), st.sampled_from([0.0, 0.5]))
def test_the_approximate_filter_solves_its_inequality(epsilon: float, delta: float, share: float) -> None:
    """sqrt(2 ln(1/d) V) + V/2 <= epsilon at the limit, and not two units later (Whitehouse et al.)."""
    reserve = share * delta
    state = Filter.approx(epsilon, delta, reserve=reserve)
    with mp.workdps(40):
        d = mp.mpf(delta) - mp.mpf(reserve)

        def loss(units: int) -> mp.mpf:
            v = mp.mpf(units) / UNITS
            return mp.sqrt(2 * mp.log(1 / d) * v) + v / 2

        assert loss(state.limit_units) <= epsilon * (1 + 1e-15)
        assert loss(state.limit_units + 2) > epsilon * (1 - 1e-12)
    assert state.delta_limit_units <= reserve * DELTA_UNITS * (1 + 1e-12)


def test_the_approximate_filter_adds_squares_of_single_charges() -> None:
    state = Filter.approx(1, 1e-6)
    single = events.PureMechanism(Fraction(1, 100))
    assert state.cost(single) == UNITS // 10**4
    assert state.cost(events.Repeat(single, 7)) == 7 * state.cost(single)  # not 49 times
    assert state.cost(events.Group(single, 3)) == 9 * state.cost(single)
    assert state.cost(events.Votes(1000, 50, Fraction(1, 4))) < state.cost(
        events.PureMechanism(Fraction(1, 10))
    )
    with pytest.raises(NoRuleError):
        state.charge(events.Gaussian(1, 100))


def test_ten_tenths_fit_and_an_eleventh_does_not() -> None:
    state = Filter.pure(1.0)
    event = events.Laplace(1, 10)
    for _ in range(10):
        assert state.affords(event)
        state = state.charge(event)
    assert (state.spent, state.remaining, state.limit) == (1.0, 0.0, 1.0)
    assert not state.affords(event)
    with pytest.raises(BudgetError) as caught:
        state.charge(event)
    assert (caught.value.requested, caught.value.remaining) == (0.1, 0.0)
    assert "epsilon" in str(caught.value)
    three = Filter.pure(0.3)
    for _ in range(3):
        three = three.charge(event)
    assert three.remaining == 0.0


def test_a_refusal_changes_nothing_and_smaller_charges_still_fit() -> None:
    state = Filter.zcdp(0.5).charge(events.Gaussian(1, 2))
    before = state.to_json()
    with pytest.raises(BudgetError):
        state.charge(events.Gaussian(1, 1))
    assert state.to_json() == before
    assert state.charge(events.Gaussian(1, 4)).spent == 0.375


def test_tiny_charges_never_vanish() -> None:
    least = events.ConcentratedMechanism(Fraction(1, 10**300))
    state = Filter.zcdp(1.0)
    assert state.cost(least) == 1
    assert state.cost(events.Votes(10**12, 1, Fraction(1, 4))) == 1
    assert state.cost(events.Nothing()) == state.cost(events.Sequence(())) == 0
    for _ in range(100_000):
        state = state.charge(least)
    assert state.spent_units == 100_000
    full = Filter.zcdp(4e9).charge_units(4 * 10**18 - 1)
    assert full.charge(least).remaining == 0.0
    with pytest.raises(BudgetError):
        full.charge(least).charge(least)
    assert 4e9 + 1e-9 == 4e9  # the twin: a float would have forgotten every one of these charges


def test_a_hundred_thousand_units_are_as_many() -> None:
    state = Filter.pure(Fraction(100_000, UNITS))
    for _ in range(100_000):
        state = state.charge_units(1)
    assert state.spent_units == state.limit_units == 100_000
    with pytest.raises(BudgetError):
        state.charge_units(1)


def test_a_limit_of_delta_is_rounded_down() -> None:
    for units, whole in ((Fraction(3, 2), 1), (Fraction(2), 2), (Fraction(1, 2), 0)):
        assert Filter.zcdp(1, units / DELTA_UNITS).delta_limit_units == whole


def test_deltas_are_counted_apart() -> None:
    state = Filter.zcdp(1, delta=3e-6)
    keys = events.ApproxMechanism(Fraction(1, 100), Fraction(1, 10**6))
    assert state.delta_cost(keys) == 10**12
    assert state.delta_cost(events.ConcentratedMechanism(1, Fraction(1, 10**30))) == 1
    for _ in range(3):
        state = state.charge(keys)
    with pytest.raises(BudgetError, match="delta"):
        state.charge(keys)
    assert state.affords(events.Gaussian(1, 100))
    with pytest.raises(BudgetError, match="delta"):
        Filter.zcdp(1).charge(keys)
    with pytest.raises(NoRuleError):
        Filter.pure(1).charge(keys)
    mixed = Filter.approx(1, 1e-6, reserve=5e-7)
    assert mixed.affords(events.ApproxMechanism(Fraction(1, 100), Fraction(5, 10**7)))
    assert not mixed.affords(events.ApproxMechanism(Fraction(1, 100), Fraction(6, 10**7)))


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (Filter.pure(1), events.Gaussian(1, 100)),
        (Filter.gdp(1), events.ConcentratedMechanism(Fraction(1, 100))),
        (Filter.gdp(1), events.Subsampled(events.Gaussian(1, 100), 1, 2)),
        (Filter.gdp(1), events.Gaussian(1, 3)),
        (Filter.zcdp(1), events.SubsampledWithReplacement(events.Gaussian(1, 100), 1, 2)),
    ],
)
def test_a_currency_takes_only_what_it_can_price(state: Filter, event: Event) -> None:
    for call in (state.cost, state.affords, state.charge):
        with pytest.raises(NoRuleError):
            call(event)


@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, -1.0, 0, 0.0, True, None, "1", 5e-324, 1e-10, Fraction(1, 10**10), 1e10, 10**400],
)
def test_bad_limits_are_refused(bad: object) -> None:
    for make in (Filter.pure, Filter.zcdp, Filter.gdp, lambda x: Filter.approx(x, 1e-6)):
        with pytest.raises(InputError):
            make(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, True, None, "1", 5e-324, 1, 1.0, 2])
def test_bad_deltas_are_refused(bad: object) -> None:
    for make in (
        lambda x: Filter.zcdp(1, x),
        lambda x: Filter.approx(1, x),
        lambda x: Filter.approx(1, 0.1, reserve=x),
    ):
        with pytest.raises(InputError):
            make(bad)
    for delta, reserve in ((0.0, 0.0), (1e-6, 1e-6), (1e-6, 1e-5)):
        with pytest.raises(InputError, match="reserve"):
            Filter.approx(1, delta, reserve=reserve)


@pytest.mark.parametrize("bad", [-1, 1.0, True, None, math.nan])
def test_bad_units_are_refused(bad: object) -> None:
    with pytest.raises(InputError):
        Filter.pure(1).charge_units(bad)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Filter.pure(1).charge_units(1, bad)  # type: ignore[arg-type]


def test_a_huge_charge_is_refused_not_overflowed() -> None:
    for event in (events.PureMechanism(10**300), events.Laplace(10**300, Fraction(1, 10**300))):
        with pytest.raises(BudgetError) as caught:
            Filter.pure(1).charge(event)
        assert caught.value.requested is not None
        assert caught.value.requested >= 1e290


@given(st.sampled_from(["pure", "zcdp", "gdp", "approx"]), limits, st.data())
def test_json_round_trip(currency: str, limit: float | Fraction, data: st.DataObject) -> None:
    state = Filter.approx(limit, 1e-6, reserve=1e-7) if currency == "approx" else MAKERS[currency](limit)
    state = state.charge_units(data.draw(st.integers(0, state.limit_units)))
    assert Filter.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_foreign_records_are_refused() -> None:
    good = Filter.zcdp(1, 1e-6).charge_units(5).to_json()
    assert Filter.from_json(good).spent_units == 5
    changes: list[dict[str, object]] = [
        {"currency": "gold"}, {"currency": ["zcdp"]}, {"spent_units": -1}, {"spent_units": 1.0},
        {"spent_units": True}, {"spent_units": 10**9 + 1}, {"delta_spent_units": 10**12 + 1},
        {"limit_units": "9"}, {"promise": None}, {"promise": {"epsilon": 1.0}}, {"extra": 1},
        {"promise": {"rho": -1.0, "delta": 0.0}}, {"promise": {"rho": 1.0, "delta": 2.0}},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(InputError):
            Filter.from_json({**good, **change})
    for record in (None, [], {}, {k: v for k, v in good.items() if k != "promise"}):
        with pytest.raises(InputError):
            Filter.from_json(record)


@given(strategies.concentrated_events)
def test_a_filter_charges_whole_units_from_above(event: Event) -> None:
    from holdfast.privacy.rule import value

    state = Filter.zcdp(1)
    try:
        exact = value(event, "zcdp") * UNITS
    except HoldfastError:
        return
    assert state.cost(event) - 1 < exact <= state.cost(event)
