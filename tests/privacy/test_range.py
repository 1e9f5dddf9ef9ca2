"""What a mechanism whose loss lies in a range costs in mu squared: docs/theorems.md, Theorem 290."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm

from holdfast.privacy import Filter, events, gdp_delta
from holdfast.privacy.event import Event
from holdfast.privacy.rule import _HALF_PI, range_of_gdp, value

RANGES = (0.01, 0.1, 0.5, 1.0, 3.0)
SHARES = np.linspace(0.01, 0.99, 99)


def two_points(eta: float, share: Any) -> tuple[Any, Any]:
    """(the chances of the likelier outcome) of two laws whose losses are share * eta and (share - 1) * eta."""
    up, down = np.exp(share * eta), np.exp((share - 1) * eta)
    other = (1 - down) / (up - down)
    return other * up, other


def least_mu(eta: float) -> float:
    """The least mu of Gaussian noise under which no two laws within this range are told apart better.

    They are post-processed two-point laws; the trade-off of one is two segments, below a convex curve only at the bend.
    """
    one, other = two_points(eta, np.linspace(0.001, 0.999, 999))
    return float((norm.ppf(one) - norm.ppf(other)).max())


def beyond(epsilon: Any, mu_squared: float) -> Any:
    """E(1 - e^(epsilon - L))_+ for the loss L of Gaussian noise of mu^2; of none for 0."""
    if not mu_squared:
        return np.maximum(0.0, 1 - np.exp(np.minimum(epsilon, 1.0)))
    mu = mu_squared**0.5
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def worst_delta(count: int, eta: float, gaussian: float, epsilon: float) -> float:
    """delta of so many responses of this range, all split in the worst way, beside Gaussian noise of mu^2."""
    found, hits = 0.0, np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(hits + 1) - gammaln(count - hits + 1)
    for share in SHARES[::5]:
        one, _ = two_points(eta, share)
        chances = np.exp(ways + hits * np.log(one) + (count - hits) * np.log1p(-one))
        losses = hits * share * eta + (count - hits) * (share - 1) * eta
        found = max(found, float(chances @ beyond(epsilon - losses, gaussian)))
    return found


@pytest.mark.parametrize("eta", RANGES)
def test_a_range_costs_what_gaussian_noise_does_that_shows_as_much(eta: float) -> None:
    charged = float(value(events.BoundedRange(Fraction(eta)), "gdp"))
    assert least_mu(eta) ** 2 <= charged
    if eta < 0.2:
        assert charged <= least_mu(eta) ** 2 * 1.001
        # What rho charges for the same (twice eta^2/8) would be too little.
        assert eta**2 / 4 < 0.7 * least_mu(eta) ** 2


@pytest.mark.parametrize("eta", RANGES)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
def test_the_profile_of_what_was_charged_covers_the_worst_law(eta: float, epsilon: float) -> None:
    charged = float(value(events.BoundedRange(Fraction(eta)), "gdp"))
    assert worst_delta(1, eta, 0.0, epsilon) <= gdp_delta(epsilon, charged**0.5)


def test_half_pi_is_rounded_up_and_a_range_that_is_bought_is_rounded_down() -> None:
    assert np.pi / 2 < float(_HALF_PI) < np.pi / 2 * (1 + 1e-7)
    for cost in (1e-12, 0.03, 7.0):
        bought = range_of_gdp(Fraction(cost))
        assert cost * (1 - 1e-12) < value(events.BoundedRange(Fraction(bought)), "gdp") <= cost


@pytest.mark.parametrize("kind", [events.BoundedRange, events.PureMechanism])
def test_a_filter_that_took_ranges_and_gaussian_noise_keeps_its_promise(kind: type) -> None:
    """One response and Gaussian noise for the rest, whatever is left of the limit, at every epsilon.

    The twin charges a range what rho counts, eta^2/4, and breaks the promise.
    """
    limit, eta = Fraction(1, 16), 0.2
    event: Event = kind(Fraction(eta) / (1 if kind is events.BoundedRange else 2))
    after = Filter.gdp(limit).charge(event)
    grid = np.linspace(0.0, 0.8, 17)
    for gaussian in (0.0, after.remaining):
        for epsilon in grid:
            assert worst_delta(1, eta, gaussian, epsilon) <= gdp_delta(epsilon, 0.25)
    alone = Fraction(eta**2 / 4)
    assert worst_delta(1, eta, 0.0, 0.0) > gdp_delta(0.0, float(alone) ** 0.5)
    many = Filter.gdp(limit)
    while many.affords(event):
        many = many.charge(event)
    count = round(many.spent / after.spent)
    assert count == 3
    assert all(worst_delta(count, eta, 0.0, epsilon) <= gdp_delta(epsilon, 0.25) for epsilon in grid)


@pytest.mark.parametrize("eta", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("times", [1.05, 2.0, 5.0, 20.0, 100.0])
def test_beside_gaussian_noise_still_to_come_a_range_costs_nearly_what_rho_counts(
    eta: float, times: float
) -> None:
    """The second part of Theorem 290, at every threshold; its twin leaves the factor out."""
    spread = eta**2 / 4
    rest = times * spread
    cost = spread * rest / (rest - spread)
    thresholds = np.linspace(-10, 10, 801) * np.sqrt(rest + cost)

    def too_much(charged: float) -> float:
        most = -1.0
        for share in SHARES[::4]:
            one, _ = two_points(eta, share)
            with_it = one * beyond(thresholds - share * eta, rest)
            with_it += (1 - one) * beyond(thresholds - (share - 1) * eta, rest)
            most = max(most, float((with_it - beyond(thresholds, rest + charged)).max()))
        return most

    assert too_much(cost) <= 1e-12
    if times <= 5:
        assert too_much(spread) > 1e-7
