"""Losses that are bounded on average: each against its definition, the theorem in small games, twins that break."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from holdfast.validity.leave_out import kappa
from holdfast.validity.leave_out_charges import gaussian_charge
from holdfast.validity.leave_out_losses import (
    bounded_loss,
    exponent_with_losses,
    laplace_half_width,
    laplace_loss,
    vote_loss,
)
from holdfast.validity.leave_out_votes import plain_vote_loss, vote_charge

SIZES = [(n, m) for n in (3, 5, 8) for m in range(1, n)]


def stays(n: int, m: int, yes: int) -> Iterator[tuple[float, float]]:
    """(number of yes among n - m rows that stay, its chance), `yes` of n rows saying yes."""
    for kept in range(max(0, yes - m), min(yes, n - m) + 1):
        yield kept, math.comb(yes, kept) * math.comb(n - yes, n - m - kept) / math.comb(n, n - m)


def laplace(t: float, reach: int) -> np.ndarray:
    """Discrete Laplace noise on -reach..reach."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / t)
    return weights * math.tanh(1 / (2 * t))


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("t", [0.4, 1.5, 6.0])
@pytest.mark.parametrize("hoelder", [1.05, 1.5, 3.0])
def test_a_discrete_laplace_answer_loses_what_is_said(n: int, m: int, t: float, hoelder: float) -> None:
    """The count of n rows has noise of scale t, so the mean has B = t/n and a step of 1/n."""
    reach = math.ceil(40 * t) + n
    law, places = laplace(t, reach), np.arange(-reach, reach + 1)
    lost = laplace_loss(n, m, t / n, hoelder, 1 / n)
    for yes in range(n + 1):
        loss = -np.abs(places) / t
        for kept, chance in stays(n, m, yes):
            loss = loss + chance * np.abs(places - (kept * n / (n - m) - yes)) / t
        assert loss.min() > -1e-9
        moment = float(law @ np.exp(loss / (hoelder - 1)))
        assert (hoelder - 1) / hoelder * math.log(moment) <= lost + 1e-9


def test_without_what_the_grid_adds_the_mean_loss_is_false() -> None:
    """The twin: coarse noise loses more than kappa v/B^2 on average, the figure of continuous noise."""
    n, m, t = 8, 1, 0.4
    law, places = laplace(t, 60), np.arange(-60, 61)
    worst = 0.0
    for yes in range(n + 1):
        moved = sum(c * np.abs(places - (kept * n / (n - m) - yes)) for kept, c in stays(n, m, yes))
        worst = max(worst, float(law @ (moved - np.abs(places))) / t)
    plain = kappa(n, m) / (4 * (t / n) ** 2)
    assert plain < worst <= plain + 1 / (8 * t * t)


@pytest.mark.parametrize("t", [0.3, 1.0, 5.0])
def test_the_tail_of_discrete_laplace_noise_needs_its_half_step(t: float) -> None:
    """Pr[N > y] <= exp(-(y - 1/2)/t)/2 for every y, below 0 too; without the half step it is false."""
    law, places = laplace(t, 400), np.arange(-400, 401)
    broken = 0
    for y in np.linspace(-3 * t, 6 * t, 181):
        beyond = float(law[places > y].sum())
        assert beyond <= math.exp(-(y - 0.5) / t) / 2 + 1e-12
        broken += beyond > math.exp(-y / t) / 2 + 1e-9
    assert broken > 0
    assert laplace_half_width(0.7, 0.1, 0.05, 0.01) == pytest.approx(0.1 * (math.log(20) + 0.7) + 0.005)


@pytest.mark.parametrize(("n", "m"), [(3, 1), (4, 2), (5, 4)])
@pytest.mark.parametrize(("t", "hoelder"), [(1.0, 1.5), (3.0, 1.2), (6.0, 2.0)])
def test_no_end_of_a_game_passes_the_theorem(n: int, m: int, t: float, hoelder: float) -> None:
    """One answer on a fair coin, then the side and the tilt that are worst for us."""
    assert best_moment(n, m, t, hoelder, laplace_loss(n, m, t / n, hoelder, 1 / n)) <= 1 + 1e-9


def best_moment(n: int, m: int, t: float, hoelder: float, lost: float) -> float:
    reach = math.ceil(30 * t) + n
    law = laplace(t, reach + n)
    yes = np.arange(n + 1)
    chance = np.array([math.comb(n, k) / 2**n for k in yes])
    total = 0.0
    for answer in range(-reach, n + reach + 1):
        seen = chance * law[answer - yes + reach + n]
        ends = []
        for sign, b in itertools.product((1, -1), (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)):
            exponent = exponent_with_losses(m, hoelder, 0.0, lost, b)
            ends.append(float(np.exp(sign * b * (yes / n - 0.5) - exponent) @ seen))
        total += max(ends)
    return total


def test_a_quarter_of_the_loss_breaks_in_these_games() -> None:
    full = laplace_loss(6, 3, 6.0 / 6, 1.5, 1 / 6)
    assert best_moment(6, 3, 6.0, 1.5, full) <= 1
    assert best_moment(6, 3, 6.0, 1.5, full / 4) > 1.002


def test_a_bounded_loss_is_what_a_law_on_two_points_loses() -> None:
    for mean, most, hoelder in ((0.01, 0.3, 1.5), (0.2, 0.5, 1.1), (1e-6, 1e-3, 2.0)):
        share = mean / most
        moment = (1 - share) + share * math.exp(most / (hoelder - 1))
        exact = (hoelder - 1) / hoelder * math.log(moment)
        assert bounded_loss(mean, most, hoelder) == pytest.approx(min(exact, most / hoelder), rel=1e-9)
    assert bounded_loss(0.1, 0.3, 1.0) == math.inf
    assert bounded_loss(0.1, 0.3, 1.0001) <= 0.3 / 1.0001 * (1 + 1e-9)


def test_the_exponent_asks_for_room_where_something_is_lost() -> None:
    assert exponent_with_losses(10, 1.0, 0.3, 0.0, 2.0) == pytest.approx(4 / 80 + 0.3)
    assert exponent_with_losses(10, 1.5, 0.3, 0.1, 2.0) == pytest.approx(1.5 * 4 / 80 + 0.2 + 0.1)
    assert exponent_with_losses(10, 1.0, 0.3, 0.1, 2.0) == math.inf
    assert exponent_with_losses(10, 0.5, 0.3, 0.0, 2.0) == math.inf


def test_laplace_costs_what_gaussian_noise_of_scale_b_costs_and_votes_lose_where_they_have_no_charge() -> (
    None
):
    n, m, hoelder = 1_000_000, 20_000, 1.2
    assert laplace_loss(n, m, 0.01, hoelder) == pytest.approx(gaussian_charge(n, m, 0.01) / hoelder, rel=0.05)
    assert vote_charge(100, 50, 1 / 16) == math.inf
    assert 0 < vote_loss(100, 50, 1 / 16, 2.0) < math.inf
    assert vote_loss(2, 1, 0.25, 2.0) == math.inf


@pytest.mark.parametrize(("rows", "left_out", "flip"), [(5, 1, 0.1), (6, 3, 0.25), (7, 2, 0.05)])
@pytest.mark.parametrize("hoelder", [1.2, 2.0])
def test_a_vote_loses_what_is_said(rows: int, left_out: int, flip: float, hoelder: float) -> None:
    lost, mean = vote_loss(rows, left_out, flip, hoelder), plain_vote_loss(rows, left_out, flip)
    for yes in range(rows + 1):
        p = flip + (1 - 2 * flip) * yes / rows
        one = zero = 0.0
        for kept, chance in stays(rows, left_out, yes):
            stay = flip + (1 - 2 * flip) * kept / (rows - left_out)
            one += chance * math.log(p / stay)
            zero += chance * math.log((1 - p) / (1 - stay))
        assert min(one, zero) >= -1e-12
        assert p * one + (1 - p) * zero <= mean + 1e-12
        assert max(one, zero) <= mean / (4 * flip * (1 - flip)) + 1e-12
        moment = p * math.exp(one / (hoelder - 1)) + (1 - p) * math.exp(zero / (hoelder - 1))
        assert (hoelder - 1) / hoelder * math.log(moment) <= lost + 1e-12
