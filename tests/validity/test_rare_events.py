"""Sessions for rare events: their plans, and a game in which every answer's charge is read off it."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from oracles.leave_out_game import MENU, Game, discrete_gaussian

from holdfast.validity.falling import falling_noise
from holdfast.validity.leave_out import each_of, kappa, ladder, planned_sizes
from holdfast.validity.leave_out_charges import rare_charge
from holdfast.validity.leave_out_intervals import rare_interval, rare_reach
from holdfast.validity.places import Places, by_gaussian, places_from_json
from holdfast.validity.rare_events import AT, FREQUENCIES, as_rare, rare_noise, rare_width
from holdfast.validity.told import difference_told, gaussian_told, rare_told

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "rare.py"


def planned(rows: int, queries: int) -> Places:
    schedule = rare_noise(rows, queries, 0.0475, most_information=0.056 * rows**2)
    assert schedule is not None
    return as_rare(by_gaussian(schedule), 0.0475, AT)


def test_questions_near_one_in_a_hundred_are_narrow() -> None:
    """The goal: n = 1e6, k = 1e5, under (1, 1e-6): about .009, where the plain path has .032."""
    places = planned(10**6, 10**5)
    assert rare_width(places, 0.0475, 0.01) < 0.0094
    assert rare_width(places, 0.0475, 0.002) < 0.0084 < places.width
    flat = falling_noise(10**6, 10**5, 0.0475, most_information=0.056 * 10**12)
    assert flat is not None and flat.half_width > 0.03


def test_a_plan_is_kept_as_it_is_and_spends_no_more_than_it_may() -> None:
    places = planned(50_000, 300)
    assert places_from_json(50_000, places.to_json()) == places
    assert sum(epoch.answers for epoch in places.epochs) == 300
    spent = sum(epoch.answers * 50_000**2 / float(epoch.noise) for epoch in places.epochs)
    assert spent <= 0.056 * 50_000**2
    for place in (1, 150, 300):
        sizes = planned_sizes(50_000, places.left_out(place))
        assert 1 <= len(sizes) <= 1 + len(FREQUENCIES) and set(sizes) <= set(ladder(50_000))
    with pytest.raises(IndexError):
        places.left_out(301)


@pytest.mark.parametrize(("rows", "queries"), [(10**6, 10**5), (10**4, 10**3), (10**4, 10**5), (2_000, 50)])
def test_no_answer_is_further_from_an_end_of_its_interval_than_the_plan_says(rows: int, queries: int) -> None:
    """Twin: half of the interval at one half, where wide intervals are cut off at 0 and 1, is too little."""
    flat = falling_noise(rows, queries, 0.0475, most_information=0.04 * rows**2)
    assert flat is not None
    places = as_rare(by_gaussian(flat), 0.0475)
    epoch, left_out = places.epochs[-1], places.left_out(queries)
    charged = left_out.charges(places.told_before(queries))
    sigma, step = math.sqrt(epoch.noise) / rows, 1 / rows

    def furthest(answer: float) -> float:
        low, high = rare_interval(left_out, charged, sigma, answer, 0.0475 / queries, step)
        return max(high - answer, answer - low)

    most = max(furthest(float(answer)) for answer in np.linspace(0, 1, 401))
    stated = rare_reach(left_out, charged, sigma, 0.0475 / queries, step)
    assert 0.998 * stated < most <= stated <= places.width
    assert furthest(0.5) < most and (queries <= rows or furthest(0.5) < 0.8 * most)


def test_a_handful_of_rows_has_no_plan() -> None:
    few = falling_noise(5, 2, 0.05)
    assert few is not None and math.isinf(as_rare(by_gaussian(few), 0.05).width)
    assert rare_noise(1, 2, 0.05, most_information=1.0) is None


@pytest.mark.parametrize("answer", [0.0, 0.01, 0.3, 0.5, 0.9])
def test_what_is_told_pays_for_every_rung(answer: float) -> None:
    """One number for the whole ladder; a thousandth less does not pay for its largest rung."""
    rows, sigma = 10_000, 0.004
    told = rare_told(rows, sigma, answer)
    owed = [4 * rare_charge(rows, m, sigma, answer) / kappa(rows, m) for m in ladder(rows)]
    assert max(owed) <= told <= 1.001 * max(owed)
    assert told <= rare_told(rows, sigma, 0.5) <= 1.02 * gaussian_told(0.25, sigma)
    assert difference_told(rows, -5.0, 2 * sigma, sigma, 0.05) == 0.0


def miss_rate(sizes: tuple[int, ...], beta: float, charge_scale: float, width_scale: float) -> float:
    """The chance that the interval of a third answer misses: two answers before it, charged as they came out, and every
    question the worst for us."""
    rows, s, last = 4, 1.0, 0.5
    game, sigma = Game(rows, (0.1, 0.85, 0.05)), s / rows
    noise = discrete_gaussian(last)
    reach, wide = (len(noise) - 1) // 2, (len(discrete_gaussian(s)) - 1) // 2
    left_out = each_of(rows, sizes)
    third = {q: np.array(game._laws(q, last)) for q in range(len(MENU))}

    def end(weight: np.ndarray, told: list[float]) -> float:
        charged = [charge_scale * sum(rare_charge(rows, m, sigma, a) for a in told) for m in sizes]
        worst = 0.0
        ends = [
            rare_interval(left_out, charged, last / rows, after / rows, beta, 1 / rows)
            for after in range(-reach, rows + reach + 1)
        ]
        for q, truth in enumerate(game.true):
            far = [abs(truth - sum(e) / 2) > width_scale * (e[1] - e[0]) / 2 + 1e-12 for e in ends]
            worst = max(worst, float((third[q][np.array(far)] @ weight).sum()))
        return worst

    best = 0.0
    for first in range(len(MENU)):
        total = 0.0
        for a, law in zip(range(-wide, rows + wide + 1), game._laws(first, s), strict=True):
            weight = game.chance * law
            if weight.sum() < 1e-4:
                continue
            total += max(
                sum(
                    end(weight * later, [a / rows, b / rows])
                    for b, later in zip(range(-wide, rows + wide + 1), game._laws(second, s), strict=True)
                    if (weight * later).sum() > 1e-4
                )
                for second in range(0, len(MENU), 2)
            )
        best = max(best, total)
    return best


def test_no_analyst_makes_the_third_answer_miss_too_often() -> None:
    """Twin: a third of the width misses more often than it may."""
    assert miss_rate((2, 1), 0.2, 1.0, 1.0) <= 0.2 < miss_rate((2, 1), 0.2, 1.0, 0.3)


def test_the_evidence_is_made_by_its_command() -> None:
    """A smoke run of evidence/rare.py, its table and its session."""
    spec = importlib.util.spec_from_file_location("rare_evidence", EVIDENCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = module.table(((10**4, 100),))
    assert len(lines) == 5 and "| rare | " in lines[3]
    seen = module.play(3_000, 30)
    assert seen["missed"] == 0 and "near 1%" in seen["plan"]
