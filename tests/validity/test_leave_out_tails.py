"""What comparisons and quantiles say about the population: exact small games over a menu, and twins that break."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from holdfast.validity.leave_out import LeaveOut
from holdfast.validity.leave_out_charges import comparison_charge, quantile_charge
from holdfast.validity.leave_out_tails import (
    comparison_half_width,
    quantile_half_width,
    secret_threshold_reach,
)


class Comparisons:
    """All analysts who put comparisons on three values: each next question and threshold by the bits before."""

    def __init__(self, rows: int, rate: float) -> None:
        population = (1 / 3, 1 / 3, 1 / 3)
        counts = [c for c in itertools.product(range(rows + 1), repeat=3) if sum(c) == rows]
        ways = [math.factorial(rows) / math.prod(math.factorial(k) for k in c) for c in counts]
        self.chance = np.array(ways) / 3**rows
        menu = ((0, 0, 1), (0, 1, 0), (0, 1, 1))
        self.shares = [np.array(counts) @ np.array(q) / rows for q in menu]
        self.truths = [float(np.dot(population, q)) for q in menu]
        self.alarms = [
            1 / (1 + np.exp(-rate * (share - threshold)))
            for share in self.shares
            for threshold in (0.2, 0.5, 0.8)
        ]

    def best(self, steps: int, quiet: float, alarm: float, ends: list[np.ndarray]) -> float:
        """The greatest expected end, e^{-charge} for each outcome; the end is chosen by all outcomes."""

        def value(weight: np.ndarray, left: int) -> float:
            found = max(float(end @ weight) for end in ends)
            if left:
                for p in self.alarms:
                    loud = value(weight * p * math.exp(-alarm), left - 1)
                    found = max(found, loud + value(weight * (1 - p) * math.exp(-quiet), left - 1))
            return found

        return value(self.chance, steps)

    def moments(self, left_out: int) -> list[np.ndarray]:
        return [
            np.exp(sign * b * (share - truth) - b * b / (8 * left_out))
            for share, truth in zip(self.shares, self.truths, strict=True)
            for sign, b in itertools.product((1, -1), (0.0, 0.2, 0.5, 1.0, 2.0))
        ]


@pytest.mark.parametrize(("rows", "left_out", "rate"), [(4, 1, 2.0), (5, 2, 4.0), (6, 1, 8.0), (6, 3, 3.0)])
def test_quiet_comparisons_are_free_and_alarms_pay_for_all_in_every_game(
    rows: int, left_out: int, rate: float
) -> None:
    game = Comparisons(rows, rate)
    theta = comparison_charge(rows, left_out, rate)
    assert game.best(3, 0.0, theta, game.moments(left_out)) <= 1 + 1e-12


def test_alarms_that_pay_nothing_break_it() -> None:
    game = Comparisons(6, 8.0)
    assert game.best(3, 0.0, 0.0, game.moments(1)) > 1.005


def missed(rows: int, rate: float, before: int, tau: float) -> float:
    """The greater of both chances: a last comparison is quiet and should not be, or alarms and should not."""
    game = Comparisons(rows, rate)
    worst = 0.0
    for quiet in (True, False):
        ends = []
        for share, truth in zip(game.shares, game.truths, strict=True):
            threshold = truth - tau * (1 + 1e-12) if quiet else truth + tau * (1 + 1e-12)
            loud = 1 / (1 + np.exp(-rate * (share - threshold)))
            ends.append(1 - loud if quiet else loud)
        worst = max(worst, game.best(before, 0.0, 0.0, ends))
    return worst


@pytest.mark.parametrize(("rows", "left_out", "rate"), [(4, 1, 2.0), (6, 1, 8.0), (6, 3, 20.0)])
@pytest.mark.parametrize("beta", [0.05, 0.3])
def test_a_comparison_is_right_up_to_its_half_width(
    rows: int, left_out: int, rate: float, beta: float
) -> None:
    """Charged as if both earlier comparisons had alarmed: what the analyst at least knows."""
    charged = (2 * comparison_charge(rows, left_out, rate),)
    tau = comparison_half_width(LeaveOut(rows, (left_out,)), charged, rate, beta)
    assert missed(rows, rate, 2, tau) <= beta


def test_a_third_of_the_half_width_is_not_enough() -> None:
    tau = comparison_half_width(LeaveOut(6, (5,)), (0.0,), 20.0, 0.05)
    assert missed(6, 20.0, 0, tau) <= 0.05 < missed(6, 20.0, 0, tau / 3)


def test_the_tilt_of_a_comparison_stays_below_its_rate() -> None:
    chosen, rate, beta = LeaveOut(10_000, (5_000,)), 30.0, 0.01
    found = comparison_half_width(chosen, (0.2,), rate, beta)
    by_hand = min((0.2 + b * b / 40_000 + math.log(100)) / b for b in (rate, rate / 2, rate / 4))
    assert found == pytest.approx(by_hand, rel=1e-9)
    free = comparison_half_width(chosen, (0.2,), 1e6, beta)
    assert free == pytest.approx(math.sqrt((0.2 + math.log(100)) / 10_000), rel=1e-6)


def test_a_secret_threshold_is_near_the_announced_one() -> None:
    for scale, beta in ((0.1, 0.05), (2.0, 0.5)):
        r = secret_threshold_reach(scale, beta)
        assert 2 / (1 + math.exp(r / scale)) <= beta * (1 + 1e-9)
        assert 2 / (1 + math.exp(0.99 * r / scale)) > beta
    assert secret_threshold_reach(1.0, 1.0) <= 1e-9


def quantile_misses(
    rows: int, law: tuple[float, ...], rank: float, rate: float, smoothing: float, tau: float
) -> float:
    """The chance that the chosen point is further than tau from the rank in the population; no question before it."""
    truth = np.cumsum(law)
    far = ((truth - np.array(law)) > rank + tau + 1e-12) | (truth < rank - tau - 1e-12)
    total = 0.0
    for counts in itertools.product(range(rows + 1), repeat=len(law)):
        if sum(counts) != rows:
            continue
        at_most = np.cumsum(counts) / rows
        below = at_most - np.array(counts) / rows
        soft = 1 + np.exp(smoothing * (rank - at_most)) + np.exp(smoothing * (below - rank))
        weights = soft ** (-rate / smoothing)
        ways = math.factorial(rows) / math.prod(math.factorial(k) for k in counts)
        chance = ways * math.prod(p**k for p, k in zip(law, counts, strict=True))
        total += chance * float(weights[far].sum() / weights.sum())
    return total


@pytest.mark.parametrize("law", [(0.25, 0.25, 0.25, 0.25), (0.7, 0.1, 0.1, 0.1), (0.05, 0.05, 0.05, 0.85)])
@pytest.mark.parametrize(("rate", "smoothing"), [(20.0, 20.0), (60.0, 20.0)])
@pytest.mark.parametrize("rank", [0.0, 0.3, 0.5, 1.0])
def test_a_quantile_is_right_up_to_its_half_width(
    law: tuple[float, ...], rate: float, smoothing: float, rank: float
) -> None:
    tau = quantile_half_width(LeaveOut(5, (4,)), (0.0,), rate, smoothing, 4, 0.3)
    assert quantile_misses(5, law, rank, rate, smoothing, tau) <= 0.3


def test_a_third_of_a_quantile_half_width_is_not_enough() -> None:
    tau = quantile_half_width(LeaveOut(30, (29,)), (0.0,), 20.0, 20.0, 3, 0.3)
    law = (0.4, 0.2, 0.4)
    assert (
        quantile_misses(30, law, 0.5, 20.0, 20.0, tau)
        <= 0.3
        < quantile_misses(30, law, 0.5, 20.0, 20.0, tau / 3)
    )


# Half-widths printed in the note of the theorem: each of k quantiles on 2^16 points.
PRINTED = [
    (100_000, 1, 0.0087),
    (100_000, 10, 0.029),
    (100_000, 100, 0.054),
    (1_000_000, 10, 0.0091),
    (1_000_000, 100, 0.017),
]


@pytest.mark.parametrize(("rows", "queries", "printed"), PRINTED)
def test_quantiles_reach_the_printed_half_widths(rows: int, queries: int, printed: float) -> None:
    widths = []
    for m in {min(rows - 1, round(rows * share)) for share in np.geomspace(1e-3, 1, 25)}:
        for rate in np.geomspace(50, 50_000, 40):
            charged = ((queries - 1) * quantile_charge(rows, m, rate, rate),)
            exponent = charged[0] + rate**2 / (8 * m) + math.log(3 * 65536 * queries / 0.05)
            widths.append((exponent / rate, m, rate))
    about, m, rate = min(widths)
    charged = ((queries - 1) * quantile_charge(rows, m, rate, rate),)
    found = quantile_half_width(LeaveOut(rows, (m,)), charged, rate, rate, 65536, 0.05 / queries)
    assert found <= about * (1 + 1e-9)
    assert found == pytest.approx(printed, rel=0.03)
    assert quantile_half_width(LeaveOut(rows, (m,)), charged, 1.0, 2.0, 65536, 0.05) == math.inf
