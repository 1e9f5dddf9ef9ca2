"""What each kind of release charges to the leave-out meter, for one number m of rows left out.

Every function returns an upper bound of a charge g in Theorem 24 (docs/theorems.md): a (p)-step with a reference law of
total mass at most 1 and E_J ln(reference on the n' rows that stay) >= ln(law on all rows) - g, whatever the rows are.
Charges of one transcript add up; `LeaveOut.exponent` takes the sum. All arguments are functions of the step's past.
"""

from __future__ import annotations

import math

from holdfast.privacy.rounding import up
from holdfast.validity.leave_out import kappa


def information_of(radius_squared: float, sigma: float) -> float:
    """The information of numbers released together, noise sigma each: 4 R^2/sigma^2, R the radius of the smallest ball
    that holds every row's vector; a scalar in [0,1] has R^2 = 1/4."""
    return up(4 * radius_squared / sigma**2)


def groups_radius_squared(groups: int, most: int = 1) -> float:
    """R^2 of sums in [0,1] by d groups, a row in at most t of them: t(1 - t/d), at most d/4."""
    t = min(most, groups / 2)
    return up(t * (1 - t / groups)) if groups > 1 else 0.25


def gaussian_charge(rows: int, left_out: int, sigma: float) -> float:
    """A scalar Gaussian answer, whatever it says: kappa/(4 sigma^2)."""
    return up(kappa(rows, left_out) / (4 * sigma**2))


def rare_charge(rows: int, left_out: int, sigma: float, answer: float) -> float:
    """A Gaussian answer a, read off the answer: kappa a(1-a)/sigma^2 plus what that reading costs.

    g = kappa a(1-a)/sigma^2 + ln(1/(1-2 kappa))/2 + kappa^2/(2 sigma^2 (1-2 kappa)), a clamped to [0,1] or raw.
    Requires: 2 kappa < 1 (m <= n-2); chosen instead of `gaussian_charge` before the answer, never by which is less.
    Reference: docs/theorems.md, Theorem 25 (3R).
    """
    k = kappa(rows, left_out)
    if not 2 * k < 1:
        return math.inf
    a = min(max(answer, 0.0), 1.0)
    spread = k * a * (1 - a) / sigma**2
    return up(spread - math.log1p(-2 * k) / 2 + k * k / (2 * sigma**2 * (1 - 2 * k)))


def tilted_share(rows: int, left_out: int) -> float:
    """F = 1 + (m n' - max(m, n'))/(n-1): by Lemma E E_J e^{lam zeta} <= e^{theta}, theta = lam^2 F/(8 n'^2)."""
    m, stay = left_out, rows - left_out
    return up(1 + (m * stay - max(m, stay)) / (rows - 1))


def comparison_charge(rows: int, left_out: int, rate: float) -> float:
    """An alarm q(S) + Logistic(1/rate) > T: theta(rate), the price of one Gaussian answer; quiet answers are free."""
    return up(rate**2 * tilted_share(rows, left_out) / (8 * (rows - left_out) ** 2))


def selection_charge(rows: int, left_out: int, rate: float) -> float:
    """The exponential mechanism with weight e^{rate * score} on row-wise means into [0,1]; rate = epsilon n/2.

    Requires: a finite base measure that does not depend on the rows.
    """
    return comparison_charge(rows, left_out, rate)


def quantile_charge(rows: int, left_out: int, rate: float, smoothing: float) -> float:
    """A quantile by the smoothed selection with rate lam and smoothing a: (1 + a/lam) theta(lam), for a <= lam."""
    if not 0 < smoothing <= rate:
        return math.inf
    return up((1 + smoothing / rate) * comparison_charge(rows, left_out, rate))
