"""Logistic answers on the leave-out meter: the tail, all analysts of a menu on small tables, and twins that break."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles.leave_out_game import MENU, Floats, Game

from holdfast.validity.falling import falling_noise
from holdfast.validity.leave_out import LeaveOut, kappa, recorded_grid
from holdfast.validity.leave_out_logistic import TELLS_LIKE, logistic_half_width, logistic_told
from holdfast.validity.places import Places, by_gaussian, by_logistic, places_from_json
from holdfast.validity.told import gaussian_told

POPULATIONS = ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.5, 0.0), (0.2, 0.5, 0.3), (0.02, 0.08, 0.9))
SCALES = (0.05, 0.2, 0.4, 1.0, 3.0, 17.3)


def discrete_logistic(t: float) -> Floats:
    """The law on -r..r, r so large that the rest is below 1e-13."""
    reach = math.ceil(32 * t) + 1
    logs = -2 * np.log(np.cosh(np.minimum(np.abs(np.arange(-reach, reach + 1)) / (2 * t), 300)))
    law: Floats = np.exp(logs) / np.exp(logs).sum()
    return law


class LogisticGame(Game):
    """The same games, with logistic noise of scale s rows."""

    @staticmethod
    def noise(s: float) -> Floats:
        return discrete_logistic(s)


# The charge.


def moment(game: Game, noises: list[float], tilt: float, left_out: int, price: float = 1.0) -> float:
    """E exp(b D - sum of charges - b^2/(8m)) for the best analyst; `price` scales what an answer costs."""
    k = kappa(game.rows, left_out) * price

    def step(question: int, scale: float) -> np.ndarray:
        return np.exp(-k * game.variance(question) / (TELLS_LIKE * scale) ** 2)

    gaps = np.exp(tilt * np.array([game.gap(question) for question in range(len(MENU))]))

    def end(weight: np.ndarray) -> float:
        return float((gaps @ weight).max()) * math.exp(-tilt * tilt / (8 * left_out))

    return game.value(noises, step, end)


SETTINGS = [
    (rows, population, [noise], left_out, tilt)
    for rows, left_out in ((2, 1), (3, 1), (4, 2))
    for population in POPULATIONS
    for noise, tilt in ((0.3, 3.0), (0.8, 1.0), (3.0, 0.2))
] + [(3, POPULATIONS[0], [0.3, 0.5], 1, 3.0)]


def test_no_analyst_passes_the_charge() -> None:
    values = [moment(LogisticGame(r, p), noises, b, m) for r, p, noises, m, b in SETTINGS]
    assert max(values) <= 1 + 1e-9
    assert max(values) > 0.99, "the games are too easy to tell anything"


def test_the_same_games_break_a_quarter_of_the_charge() -> None:
    broken = [moment(LogisticGame(r, p), noises, b, m, 0.25) > 1.001 for r, p, noises, m, b in SETTINGS[:24]]
    assert sum(broken) >= 4


@pytest.mark.parametrize("rows", [2, 5, 12])
@pytest.mark.parametrize("left_out", [1, 2, 9])
def test_the_charge_pays_for_every_answer_on_every_table_and_nine_tenths_do_not(
    rows: int, left_out: int
) -> None:
    """E_J ln reference >= ln law - charge, exactly over all subsets: 0/1 rows, so hypergeometric counts."""
    if left_out >= rows:
        return
    stay, short = rows - left_out, 0
    for t in (0.2, 1.0, 4.0):
        charge = kappa(rows, left_out) * logistic_told(0.25, t / rows) / 4
        for ones in range(rows + 1):
            answers = np.arange(-math.ceil(30 * t), rows + math.ceil(30 * t) + 1)

            def log_density(centre: float, t: float = t, answers: np.ndarray = answers) -> np.ndarray:
                x = np.abs(answers - centre) / (2 * t)
                return -2 * (x + np.log1p(np.exp(-2 * x)))

            mean = np.zeros(len(answers))
            for kept in range(max(0, ones - left_out), min(ones, stay) + 1):
                chance = math.comb(ones, kept) * math.comb(rows - ones, stay - kept) / math.comb(rows, stay)
                mean += chance * log_density(rows * kept / stay)
            lost = log_density(ones) - mean
            assert lost.max() <= charge * (1 + 1e-9)
            short += lost.max() > 0.9 * charge
    assert short or rows > 2, "the charge is attained where half of the rows are ones"


def test_logistic_noise_tells_what_gaussian_noise_of_its_size_tells() -> None:
    for radius_squared, scale in ((0.25, 0.01), (0.9, 3.0)):
        told = logistic_told(radius_squared, scale)
        assert told == pytest.approx(gaussian_told(radius_squared, TELLS_LIKE * scale), rel=1e-12)
        assert told >= 2 * radius_squared / scale**2


# The tail and the width.


@pytest.mark.parametrize("t", SCALES)
def test_the_tail_lies_below_every_bound(t: float) -> None:
    """Half a step from r = 1/2 on, a whole one for any r; without the step it does not."""
    noise = discrete_logistic(t)
    reach = (len(noise) - 1) // 2
    j = np.arange(-reach, reach + 1)
    tail = noise[::-1].cumsum()[::-1]
    counts = tail > 1e-12

    def above(r: float, step: float) -> float:
        entropy = -(r * math.log(r) + ((1 - r) * math.log(1 - r) if r < 1 else 0.0))
        return float((np.log(tail[counts]) + entropy + r * (j[counts] - step) / t).max())

    for r in (0.5, 0.6, 0.8, 0.99, 1.0):
        assert above(r, 0.5) <= 1e-9
    for r in (0.001, 0.05, 0.2, 0.4, 0.6, 1.0):
        assert above(r, 1.0) <= 1e-9
    if t >= 0.4:
        assert max(above(r, 0.0) for r in (0.5, 0.6, 0.8)) > 1e-3, "without its half step it is false"


def misses(game: Game, first: float, second: float, width: float) -> float:
    """The chance that the second answer is further than `width` from the truth, for the best second question."""
    noise = discrete_logistic(second)
    reach = (len(noise) - 1) // 2
    off = (np.arange(-reach, reach + 1)[:, None] + 0.0) / game.rows
    chances = [
        (noise[:, None] * (np.abs(off + game.gap(question)[None, :]) > width * (1 + 1e-12))).sum(axis=0)
        for question in range(len(MENU))
    ]
    return game.value([first], lambda *_: np.ones(()), lambda weight: max(float(c @ weight) for c in chances))


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("scales", [(0.4, 0.6), (0.7, 0.3), (0.3, 1.5)])
@pytest.mark.parametrize("beta", [0.05, 0.3])
def test_no_analyst_makes_the_second_answer_miss_too_often(
    rows: int, scales: tuple[float, float], beta: float
) -> None:
    first, second = scales
    for population in POPULATIONS:
        game = LogisticGame(rows, population)
        for left_out in (1, rows - 1):
            chosen = LeaveOut(rows, (left_out,))
            charged = chosen.charges(logistic_told(0.25, first / rows))
            width = logistic_half_width(chosen, charged, second / rows, beta, 1 / rows)
            assert misses(game, first, second, width) <= beta


def test_a_third_of_the_width_is_missed_in_these_games() -> None:
    """The twin: the games do reach misses, so that a width that is much too small is noticed."""
    rows, beta = 4, 0.05
    chosen = LeaveOut(rows, (rows - 1,))
    width = logistic_half_width(
        chosen, chosen.charges(logistic_told(0.25, 0.4 / rows)), 0.4 / rows, beta, 1 / rows
    )
    assert misses(LogisticGame(rows, POPULATIONS[0]), 0.4, 0.4, width / 3) > beta


@pytest.mark.parametrize("told", [0.0, 1e4, 1e7])
def test_a_more_precise_answer_is_hardly_wider_and_ends_at_corollary_a(told: float) -> None:
    for chosen in (LeaveOut(10_000, (2_000,)), recorded_grid(10_000)):
        charged = chosen.charges(told)
        widths = [
            logistic_half_width(chosen, charged, scale, 0.001) for scale in (0.1, 0.01, 1e-3, 1e-4, 1e-7)
        ]
        end = chosen.any_statistic(charged, 0.001)
        assert widths[0] > widths[1] and widths[-1] == pytest.approx(end, rel=1e-3)
        assert all(width <= 1.06 * before for before, width in itertools.pairwise(widths))
        by_hand = min(
            (
                chosen.exponent(charged, r / 0.01)
                + math.log(2 / 0.001)
                + r * math.log(r)
                + (1 - r) * math.log(1 - r)
            )
            * 0.01
            / r
            for r in np.linspace(1e-3, 1 - 1e-6, 5000)
        )
        assert by_hand * (1 - 1e-5) <= widths[1] <= by_hand * (1 + 1e-3)


def test_discrete_noise_adds_half_a_step_from_one_half_on_and_a_whole_one_below() -> None:
    """By hand, over all r; noise of a few steps, so that a step that is forgotten, or halved for a small r, is seen."""
    shares = np.concatenate([np.geomspace(1e-4, 0.5, 400)[:-1], np.linspace(0.5, 1 - 1e-9, 400)])
    entropy, sides = -(shares * np.log(shares) + (1 - shares) * np.log1p(-shares)), set()
    for rows, t, beta, told in itertools.product((3, 40, 2000), (0.4, 3.0, 40.0), (0.01, 0.4), (0.0, 30.0)):
        chosen, scale = LeaveOut(rows, (max(1, rows // 2),)), t / rows
        charged = chosen.charges(told)
        exponents = np.array([chosen.exponent(charged, r / scale) for r in shares])
        moved = np.where(shares >= 0.5, 0.5, 1.0) / rows
        by_hand = (exponents + math.log(2 / beta) - entropy) * scale / shares + moved
        best = int(by_hand.argmin())
        sides.add(bool(shares[best] >= 0.5))
        width = logistic_half_width(chosen, charged, scale, beta, 1 / rows)
        assert by_hand[best] * (1 - 1e-3) <= width <= by_hand[best] * (1 + 1e-3)
    assert sides == {False, True}


# Schedules and places.


@pytest.mark.parametrize(("rows", "queries"), [(1_000, 7), (10_000, 50), (100_000, 400)])
def test_a_schedule_of_logistic_noise_is_within_what_it_says(rows: int, queries: int) -> None:
    beta = 0.05
    schedule = falling_noise(rows, queries, beta, law="logistic")
    gaussian = falling_noise(rows, queries, beta)
    assert schedule is not None and gaussian is not None
    places = by_logistic(schedule)
    assert places.mechanism == "logistic" and sum(epoch.answers for epoch in places.epochs) == queries
    noises = [epoch.noise for epoch in places.epochs]
    assert noises == sorted(noises, reverse=True), "the noise falls"
    # The places have the grid beside their rows to leave out, which is a little wider.
    assert schedule.half_width <= places.width <= 1.03 * schedule.half_width
    assert by_gaussian(gaussian).width <= places.width <= 1.3 * by_gaussian(gaussian).width
    assert places.told_by_itself <= schedule.information * (1 + 1e-5)
    limited = falling_noise(rows, queries, beta, law="logistic", most_information=schedule.information / 4)
    assert limited is not None and limited.information <= schedule.information / 4 * (1 + 1e-6)
    assert by_logistic(limited).width > places.width


def test_what_is_kept_of_places_is_read_back() -> None:
    schedule = falling_noise(5_000, 20, 0.05, law="logistic", mixed=True, begun=3.0)
    assert schedule is not None
    places = by_logistic(schedule)
    assert places_from_json(5_000, places.to_json()) == places
    assert isinstance(places, Places) and places.mixed and places.begun == 3.0
