"""The meter: every planned look finds a place, and none is answered in a place that its charges have passed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InputError
from holdfast.holdout.design import DIFFERENCE_NOISE, DISAGREEMENT_NOISE, KNOWN_NOISE, Design, design
from holdfast.holdout.look_meter import (
    Charges,
    Difference,
    Lost,
    Means,
    Meter,
    Pair,
    Place,
    Told,
    told_from_json,
    told_to_json,
)
from holdfast.holdout.metric import GRID
from holdfast.privacy.rounding import miss
from holdfast.validity.leave_out import LeaveOut
from holdfast.validity.leave_out_votes import votes_half_width


def pair(plan: Design, place: Place, shown: float, guess: float) -> Pair:
    scale = guess * place.sigma**2
    doubt = math.sqrt(DISAGREEMENT_NOISE * (1 - guess) * scale)
    return Pair(shown, doubt, math.sqrt(DIFFERENCE_NOISE * scale), guess)


def known(plan: Design, place: Place, share: float) -> Difference:
    return Difference(share, math.sqrt(KNOWN_NOISE * max(share, plan.expect)) * place.sigma)


def true_width(plan: Design, place: Place, charged: Charges) -> float:
    """The theorem itself, without the plan."""
    left_out, share = LeaveOut(plan.rows, (place.epoch.left_out,)), place.chance
    told = (charged[place.index],)
    if plan.mode == "votes":
        return votes_half_width(left_out, told, int(place.epoch.noise), 1 / 16, share)
    return left_out.half_width(told, place.sigma, share, 1 / (GRID * plan.rows))


@pytest.mark.parametrize("mode", ["gaussian", "votes"])
@pytest.mark.parametrize(("rows", "queries"), [(1000, 7), (10_000, 300)])
def test_plain_looks_take_all_places_in_order(mode: str, rows: int, queries: int) -> None:
    meter = Meter(design(rows=rows, queries=queries, mode=mode))
    charged = meter.nothing
    for number in range(1, queries + 1):
        assert (meter.next_place(charged, number - 1), meter.left(charged, number - 1)) == (
            number,
            queries - number + 1,
        )
        place = meter.place(number)
        assert place.number == number
        charged = meter.after(charged, Means(1, place.index))
    assert meter.next_place(charged, queries) is None
    assert meter.left(charged, queries) == 0
    with pytest.raises(InputError, match="fewer looks"):
        meter.place(queries + 1)


def test_a_place_is_taken_once_however_little_was_told() -> None:
    """So no epoch's noise, number of rows or chance is used more often than was planned before the first look."""
    plan = design(rows=10_000, queries=100, mode="gaussian")
    meter = Meter(plan)
    told = meter.after(meter.nothing, pair(plan, meter.place(1), 0.5, plan.expect))
    jump = meter.next_place(told, 1)
    assert jump is not None
    assert jump > 6
    assert [meter.next_place(told, used) for used in (jump - 1, jump, 90)] == [jump, jump + 1, 91]
    for used in range(3, 100):
        found = meter.next_place(meter.nothing, used)
        assert found == used + 1


@pytest.mark.parametrize("numbers", [1, 2, 4])
def test_the_chances_of_an_epoch_are_shared_by_what_is_told_in_it(numbers: int) -> None:
    """Numbers told together that reach into the next epoch: at each number of rows no more than its places have."""
    plan = design(rows=10_000, queries=100, mode="gaussian")
    meter = Meter(plan)
    each = miss(plan.confidence) / plan.queries
    for shift in range(numbers):
        spent = [0.0] * len(plan.epochs)
        for first in range(1 + shift, 102 - numbers, numbers):
            place = meter.place(first, numbers)
            spent[place.index] += numbers * place.chance
            assert place.whole == (meter.place(first + numbers - 1).index == place.index)
            planned = meter.half_width(meter.nothing, place)
            assert planned == (plan.width if place.whole else true_width(plan, place, meter.nothing))
        for epoch, chance in zip(plan.epochs, spent, strict=True):
            assert chance <= epoch.answers * each * (1 + 1e-12)


def mixed_widths(meter: Meter, kept: type[Meter]) -> float:
    """The widest answer, by the theorem, of a run of all kinds of looks whose places `kept` chooses."""
    plan, generator = meter.plan, np.random.default_rng(2)
    chooser, counted, charged, widest, used = kept(plan), meter.nothing, meter.nothing, 0.0, 0
    while (number := chooser.next_place(counted, used)) is not None:
        place = chooser.place(number)
        widest = max(widest, true_width(plan, place, charged))
        told: Told
        match generator.integers(4):
            case 0:
                told = Means(1, place.index)
            case 1:
                told, number = Means(2, place.index), number + 1
            case 2:
                told = known(plan, place, float(generator.uniform(0.0, 0.3)))
            case _:
                shown = float(generator.uniform(0.0, 0.2))
                told = pair(plan, place, shown, plan.expect)
        counted, charged, used = chooser.after(counted, told), meter.after(charged, told), number
    return widest


class Forgetful(Meter):
    """The broken twin: what a pair says of the disagreement is not counted."""

    def charges(self, told: Told) -> Charges:
        found = super().charges(told)
        return tuple(charge / 3 for charge in found) if isinstance(told, Pair) else found


@pytest.mark.parametrize("mode", ["gaussian", "votes"])
def test_no_answer_is_wider_than_the_design_says_whatever_is_asked(mode: str) -> None:
    plan = design(rows=10_000, queries=200, mode=mode)
    assert mixed_widths(Meter(plan), Meter) <= plan.width
    assert mixed_widths(Meter(plan), Forgetful) > 1.01 * plan.width


@pytest.mark.parametrize("mode", ["gaussian", "votes"])
@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_comparisons_as_expected_take_one_look_each(mode: str, rows: int) -> None:
    plan = design(rows=rows, queries=50, mode=mode)
    meter = Meter(plan)
    for share in (0.0, 0.02, 0.05, 0.4, 1.0):
        charged, count = meter.nothing, 0
        while (number := meter.next_place(charged, count)) is not None:
            count += 1
            assert number == count, "a known disagreement never tells more than its place"
            charged = meter.after(charged, known(plan, meter.place(number), share))
        assert count == 50
    first = meter.place(1)
    costs = [
        max(
            a / b
            for a, b in zip(
                meter.charges(pair(plan, first, shown, 0.05)), meter.charges(Means(1, 0)), strict=True
            )
        )
        for shown in (0.03, 0.05, 0.2)
    ]
    assert costs[0] < 0.75 < costs[1] < 1.1 < 3 < costs[2]


def test_a_look_that_is_late_has_the_width_that_it_is_worth() -> None:
    """More was told than planned (several were under way at once): no longer the design's width."""
    plan = design(rows=10_000, queries=100, mode="gaussian")
    meter = Meter(plan)
    place = meter.place(1)
    assert meter.half_width(meter.nothing, place) == plan.width
    told = meter.nothing
    for _ in range(200):
        told = meter.after(told, Means(1, len(plan.epochs) - 1))
    wide = meter.half_width(told, place)
    assert wide == true_width(plan, place, told) > 1.5 * plan.width


def test_what_was_lost_is_charged_as_the_costliest() -> None:
    plan = design(rows=10_000, queries=100)
    meter = Meter(plan)
    last = meter.place(100)
    lost = meter.charges(Lost(1))
    for told in (Means(1, last.index), known(plan, last, 1.0), pair(plan, last, 0.2, plan.expect)):
        assert all(a <= b for a, b in zip(meter.charges(told), lost, strict=True))
    assert meter.charges(Lost(3)) == pytest.approx([3 * charge for charge in lost])


@pytest.mark.parametrize("told", [Means(2, 3), Difference(0.1, 0.02), Pair(0.1, 0.2, 0.3, 0.4), Lost(2)])
def test_what_was_told_survives_json(told: Any) -> None:
    assert told_from_json(told_to_json(told)) == told
