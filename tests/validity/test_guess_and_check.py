"""How far the mean of a holdout can be from the population's: Hoeffding's inequality, at the share of one look."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from holdfast.validity.guess_and_check import accept_slack, holdout_width


@pytest.mark.parametrize("rows", [1, 60, 10**6])
@pytest.mark.parametrize("log_share", [-0.1, math.log(0.05), -400.0])
def test_a_holdouts_width_is_hoeffdings_rounded_up(rows: int, log_share: float) -> None:
    with mp.workdps(40):
        truth = mp.sqrt(mp.log(2 / mp.exp(mp.mpf(log_share))) / (2 * rows))
        assert truth < mp.mpf(holdout_width(rows, log_share)) < truth * (1 + mp.mpf(10) ** -9)


def test_a_guess_stands_within_what_the_holdout_leaves_of_the_width() -> None:
    own = holdout_width(500, -7.0)
    assert accept_slack(own + 0.25, 500, -7.0) == pytest.approx(0.25, rel=1e-9)
    assert accept_slack(own + 0.25, 500, -7.0) <= 0.25
    assert accept_slack(own / 2, 500, -7.0) == 0
