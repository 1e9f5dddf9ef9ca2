"""What the discovery of keys by logistic noise charges to the leave-out meter (Theorem 50 of docs/theorems.md)."""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.privacy.event import KeysByLogistic
from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import kappa, ladder

_PRIOR = 1e-12
"""The weight of all possible keys together, in the reference law."""
_LETTERS = 1_112_063
"""Code points of a text: no surrogates, no NUL."""


def keys_charge(rows: int, left_out: int, event: KeysByLogistic, longest: int) -> float:
    """A (p)-step: eps + tR + ta + (keys that can be shown)(m/n)^M0 (ln(1/eps_e) - lam T)^+, for keys so long.

    With lam = rate n, T = threshold/n and M0 = `least`: R = max over 1 <= j < M0 of (n/j) e^{lam(j/n - T)};
    a = lam - mu, where mu + m(e^{-mu/n'} - 1 + mu/n') = lam; eps_e = eps N^-length/(longest + 1).
    Requires: independent units, each with at most t = `keys` keys; `rows` of the event is 1.
    Reference: docs/theorems.md, Theorem 50.
    """
    if event.rows > 1 or event.least < 2:
        return math.inf
    rate, least, n = float(event.rate), event.least, rows
    beyond = rate * event.threshold
    ends = (math.log(n / j) + rate * j - beyond for j in (1, least - 1))
    crowd = max(up(math.exp(min(700.0, up(end, beyond)))) for end in ends)
    hidden = max(
        0.0, up(math.log(longest + 1) + longest * math.log(_LETTERS) - math.log(_PRIOR)) - down(beyond)
    )
    absent = up(math.exp(least * math.log(left_out / n)))
    most = event.keys * n / least
    return up(_PRIOR + event.keys * (crowd + _tilted(n, left_out, rate * n)) + most * absent * hidden)


def _tilted(rows: int, left_out: int, lam: float) -> float:
    """a = lam - mu for the largest mu with mu + m(e^{-mu/n'} - 1 + mu/n') <= lam, rounded up."""
    stay = rows - left_out

    def reached(mu: float) -> float:
        share = mu / stay
        return up(mu + left_out * (math.expm1(-share) + share), mu + left_out * share)

    low, high = 0.0, lam
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) <= lam else (low, middle)
    return up(lam - low)


@lru_cache(maxsize=64)
def keys_told(rows: int, event: KeysByLogistic, longest: int) -> float:
    """The information of a discovery: for each m of the ladder it charges at most kappa I/4.

    Reference: docs/theorems.md, Theorem 50.
    """
    if rows < 2:
        return math.inf
    return max(up(4 * keys_charge(rows, m, event, longest) / down(kappa(rows, m))) for m in ladder(rows))
