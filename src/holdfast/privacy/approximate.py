"""(epsilon, delta)-DP of an event: the least epsilon that any of our theorems gives."""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.check import Number, probability
from holdfast.errors import NoRuleError
from holdfast.privacy import event as events
from holdfast.privacy.conversion import gdp_epsilon, zcdp_to_approx
from holdfast.privacy.event import Event
from holdfast.privacy.group import group_delta
from holdfast.privacy.loss import Approx
from holdfast.privacy.rounding import float_down, float_up, up
from holdfast.privacy.rule import attempt, value
from holdfast.privacy.subsampling import subsampled


def approx(event: Event, delta: Number) -> Approx:
    """The event's (epsilon, delta)-DP loss at this delta, the least epsilon that any of our theorems gives.

    Guarantee: each candidate holds on its own: basic composition, zCDP by the tight conversion, the exact
    Gaussian profile, and amplification of an approximate loss; taking the least of proved bounds is proved.
    """
    d = probability("delta", delta)
    candidates = [_basic_epsilon, _zcdp_epsilon, _gdp_epsilon, _amplified_epsilon]
    found = [epsilon for candidate in candidates if (epsilon := candidate(event, d)) is not None]
    if not found:
        raise NoRuleError(
            f"expected an event with a theorem for (epsilon, {d:g})-DP, got {type(event).__name__}; "
            "raise delta or use another mechanism"
        )
    return Approx(min(found), d)


def _basic_epsilon(event: Event, delta: float) -> float | None:
    try:
        epsilon, failure = _basic(event)
    except NoRuleError:
        return None
    return float_up(epsilon) if failure <= Fraction(delta) else None


def _basic(event: Event) -> tuple[Fraction, Fraction]:
    """(sum of epsilon, sum of delta): basic composition, which holds for approximate mechanisms too."""
    match event:
        case events.ApproxMechanism(epsilon, delta):
            return epsilon, delta
        case events.Sequence(parts):
            pairs = [_basic(part) for part in parts]
            return sum((p[0] for p in pairs), Fraction(0)), sum((p[1] for p in pairs), Fraction(0))
        case events.Repeat(inner, count):
            epsilon, delta = _basic(inner)
            return count * epsilon, count * delta
        case events.Group(inner, size):
            epsilon, delta = _basic(inner)
            failure = group_delta(float_up(epsilon), size, float_up(delta)) if delta else 0.0
            return size * epsilon, Fraction(failure)
        case events.Subsampled(inner, rows, of):
            epsilon, delta = _basic(inner)
            return Fraction(subsampled(epsilon, rows, of)), Fraction(rows, of) * delta
    return value(event, "pure"), Fraction(0)


def _zcdp_epsilon(event: Event, delta: float) -> float | None:
    rho, failure = attempt(event, "zcdp"), attempt(event, "failure")
    if rho is None or failure is None or not failure < Fraction(delta):
        return None
    return zcdp_to_approx(rho, float_down(Fraction(delta) - failure))


_LARGEST = 10**12
"""Gaussian noise of a larger mu^2 hides nothing, and its profile would leave the floats."""


def _gdp_epsilon(event: Event, delta: float) -> float | None:
    mu_squared, failure = attempt(event, "gdp"), attempt(event, "failure")
    if mu_squared is None or failure is None or not failure < Fraction(delta) or mu_squared > _LARGEST:
        return None
    rest = float_down(Fraction(delta) - failure)
    return gdp_epsilon(up(math.sqrt(float_up(mu_squared))), rest) if mu_squared else 0.0


def _amplified_epsilon(event: Event, delta: float) -> float | None:
    """(e, d)-DP inside gives (ln(1 + q(exp(e) - 1)), q d)-DP outside, q = rows/of: Balle, Barthe and Gaboardi 2018."""
    if not isinstance(event, events.Subsampled):
        return None
    inner_delta = float_down(Fraction(delta) * event.of / event.rows)
    try:
        inner = approx(event.event, min(inner_delta, 0.5))
    except NoRuleError:
        return None
    return subsampled(inner.epsilon, event.rows, event.of)
