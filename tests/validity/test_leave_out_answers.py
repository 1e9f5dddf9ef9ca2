"""Plans by the leave-out theorem: widths recomputed from the epochs alone, refusals, and what one noise gives."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from holdfast.validity.leave_out import LeaveOut, kappa
from holdfast.validity.leave_out_answers import (
    gaussian_epochs,
    gaussian_epochs_width,
    leave_out,
    leave_out_by_votes,
    votes_epochs,
    votes_epochs_width,
)
from holdfast.validity.leave_out_votes import vote_charge, votes_half_width
from holdfast.validity.option import Epoch


def test_the_last_answer_of_each_epoch_is_charged_for_all_before_it() -> None:
    rows, beta, grid = 1000, 0.05, 4
    epochs = (Epoch(3, Fraction(90_000), 300), Epoch(2, Fraction(40_000), 200))
    found = []
    for place, noise, left_out in ((3, 300.0, 300), (5, 200.0, 200)):
        before = sum((grid * rows / s) ** 2 for s in [300.0, 300.0, 300.0, 200.0, 200.0][: place - 1])
        chosen = LeaveOut(rows, (left_out,))
        charged = (kappa(rows, left_out) * before / 4,)
        sigma = noise / (grid * rows)
        found.append(chosen.half_width(charged, sigma, beta / 5, 1 / (grid * rows)))
    assert gaussian_epochs_width(rows, epochs, beta, grid) == pytest.approx(max(found), rel=1e-9)
    assert gaussian_epochs_width(rows, (), beta) == math.inf


def test_votes_are_charged_for_all_votes_before_them() -> None:
    rows, beta, flip = 1000, 0.05, 0.2
    epochs = (Epoch(3, Fraction(50), 300), Epoch(2, Fraction(80), 200))
    found = []
    for before, votes, left_out in ((100, 50, 300), (230, 80, 200)):
        charged = (before * vote_charge(rows, left_out, flip),)
        found.append(votes_half_width(LeaveOut(rows, (left_out,)), charged, votes, flip, beta / 5))
    assert votes_epochs_width(rows, epochs, beta, flip) == pytest.approx(max(found), rel=1e-9)
    assert votes_epochs_width(rows, (), beta, flip) == math.inf
    first = (Epoch(1, Fraction(50), rows - 1),)
    assert vote_charge(rows, rows - 1, flip) == math.inf
    assert 0 < votes_epochs_width(rows, first, beta, flip) < 1, "nothing was told before the first answer"
    assert votes_epochs_width(rows, (replace(first[0], answers=2),), beta, flip) == math.inf


@pytest.mark.parametrize("within", [0.03, 0.05])
def test_a_plan_for_a_half_width_keeps_it_and_spends_less_than_the_narrowest(within: float) -> None:
    rows, queries, beta = 100_000, 500, 0.05
    narrowest = gaussian_epochs(rows, queries, beta)
    wide = gaussian_epochs(rows, queries, beta, within=within)
    assert gaussian_epochs_width(rows, narrowest, beta) < gaussian_epochs_width(rows, wide, beta) <= within

    def information(epochs: tuple[Epoch, ...]) -> float:
        return sum(float(epoch.answers / epoch.noise) for epoch in epochs)

    assert information(wide) < information(narrowest) / 2
    votes = votes_epochs(rows, queries, beta, 1 / 16, within)
    assert votes_epochs_width(rows, votes, beta, 1 / 16) <= within
    assert max(epoch.noise for epoch in votes) < max(
        epoch.noise for epoch in votes_epochs(rows, queries, beta, 1 / 16)
    )


@pytest.mark.parametrize(("rows", "queries", "least"), [(10_000, 100, 0.7), (100_000, 1000, 0.83)])
def test_a_little_width_buys_much_of_the_privacy_that_the_last_places_cost(
    rows: int, queries: int, least: float
) -> None:
    """The narrowest plan, which is the twin, ends with next to no noise."""
    beta, epochs = 0.05, 64
    narrowest = gaussian_epochs(rows, queries, beta, epochs=epochs)
    plan = gaussian_epochs(rows, queries, beta, epochs=epochs, wider=1.002)
    widths = [gaussian_epochs_width(rows, made, beta) for made in (narrowest, plan)]
    assert widths[1] <= 1.003 * widths[0]
    told = [[float(epoch.answers / epoch.noise) for epoch in made] for made in (narrowest, plan)]
    assert sum(told[1]) < least * sum(told[0])
    assert told[1][-1] < 0.1 * sum(told[1])
    assert told[1][-1] < told[0][-1] / 5
    votes = [votes_epochs(rows, queries, beta, 1 / 16, epochs=epochs, wider=w) for w in (1.0, 1.002)]
    assert votes_epochs_width(rows, votes[1], beta, 1 / 16) < 1.003 * votes_epochs_width(
        rows, votes[0], beta, 1 / 16
    )
    assert votes[1][-1].noise < votes[0][-1].noise / 3, "and reads fewer rows"


def test_what_cannot_be_kept_leaves_the_narrowest() -> None:
    assert gaussian_epochs(1000, 50, 0.05, within=0.001) == gaussian_epochs(1000, 50, 0.05)
    assert votes_epochs(1000, 50, 0.05, 0.25, 0.001) == votes_epochs(1000, 50, 0.05, 0.25)


def test_one_noise_is_wider_than_falling_noise_and_its_best_is_found() -> None:
    rows, queries, beta = 10_000, 100, 0.05
    falling, one = leave_out(rows, queries, beta), leave_out(rows, queries, beta, epochs=1)
    by_noise = [leave_out(rows, queries, beta, standard_deviation=s) for s in (60.0, 120.0, 180.0, 240.0)]
    assert falling < one < min(by_noise) * 1.001
    assert falling == pytest.approx(0.0528, rel=0.03)
    assert min(leave_out_by_votes(rows, queries, beta, votes=v) for v in (1000, 3000, 9000)) == pytest.approx(
        one, rel=0.1
    )


def test_too_few_rows_or_too_many_answers_certify_nothing() -> None:
    for rows, queries in ((1, 1), (2, 10**19), (10**6, 10**30)):
        assert leave_out(rows, queries, 0.05) == math.inf
        assert leave_out(rows, queries, 0.05, standard_deviation=5.0) == math.inf
        assert leave_out_by_votes(rows, queries, 0.05) == math.inf
        assert leave_out_by_votes(rows, queries, 0.05, votes=9) == math.inf
    assert leave_out_by_votes(2, 1, 0.05) == math.inf
