"""Logistic noise on the integers: its exact divergences against the losses that are charged (Theorem 100)."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from holdfast.privacy import events, pure, zcdp

SCALES = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(12))
ORDERS = (mp.mpf("1.001"), mp.mpf("1.5"), mp.mpf(2), mp.mpf(5), mp.mpf(20), mp.mpf(200))


def log_law(scale: Fraction) -> dict[int, mp.mpf]:
    """ln Pr[N = j], so far out that the rest is below 1e-60."""
    t = mp.mpf(scale.numerator) / scale.denominator
    reach = int(150 * scale) + 12
    logs = {j: -2 * mp.log(mp.cosh(j / (2 * t))) for j in range(-reach, reach + 1)}
    total = mp.log(mp.fsum(mp.exp(log) for log in logs.values()))
    return {j: log - total for j, log in logs.items()}


def losses(scale: Fraction, moved: int) -> tuple[mp.mpf, mp.mpf]:
    """(the worst ln of a ratio, the worst divergence over its order) between the law and the law moved."""
    law = log_law(scale)
    pairs = [(law[j], law[j - moved]) for j in law if j - moved in law]
    worst = max(abs(p - q) for p, q in pairs)
    divergences = [
        mp.log(mp.fsum(mp.exp(a * p + (1 - a) * q) for p, q in pairs)) / (a - 1) / a for a in ORDERS
    ]
    return worst, max(divergences)


@pytest.mark.parametrize("scale", SCALES, ids=float)
@pytest.mark.parametrize("moved", [1, 3])
def test_no_divergence_passes_what_is_charged(scale: Fraction, moved: int) -> None:
    event = events.Logistic(moved, moved**2, scale)
    worst, rho = losses(scale, moved)
    assert worst <= pure(event).epsilon * (1 + 1e-12)
    assert rho <= zcdp(event).rho * (1 + 1e-12)


def test_nine_tenths_of_epsilon_and_three_fifths_of_rho_are_noticed() -> None:
    for scale in (Fraction(1), Fraction(3), Fraction(12)):
        event = events.Logistic(1, 1, scale)
        worst, rho = losses(scale, 1)
        assert worst > 0.999 * pure(event).epsilon
        assert rho > 0.6 * zcdp(event).rho


@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_the_sum_is_largest_around_a_whole_number(scale: Fraction) -> None:
    """The normaliser, on which the charge for the meter and the zCDP rest; it is at least four scales."""
    t = mp.mpf(scale.numerator) / scale.denominator
    reach = int(100 * scale) + 10

    def total(centre: mp.mpf) -> mp.mpf:
        return mp.fsum(1 / mp.cosh((j - centre) / (2 * t)) ** 2 for j in range(-reach, reach + 1))

    whole = total(mp.mpf(0))
    assert whole >= 4 * t * (1 - mp.mpf(10) ** -12)
    assert all(total(mp.mpf(part) / 10) <= whole * (1 + mp.mpf(10) ** -12) for part in range(1, 10))


def test_several_totals_cost_their_moves_together() -> None:
    """L1 in pure epsilon; in zCDP the squares, or the pure loss where that is less."""
    assert pure(events.Logistic(2, 2, 10)).epsilon == pytest.approx(0.2)
    assert zcdp(events.Logistic(2, 2, 10)).rho == pytest.approx(2 / 400)
    assert zcdp(events.Logistic(2, 2, 10)).rho < zcdp(events.Laplace(2, 10)).rho / 3
    large = events.Logistic(1, 1, Fraction(1, 40))
    assert zcdp(large).rho == pytest.approx(40, rel=1e-6), "400 by the squares"
