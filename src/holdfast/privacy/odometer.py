"""The odometer: how much has been lost so far, a bound that is true at every time at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.check import Number, exact_positive, integer, one_of, probability
from holdfast.errors import NoRuleError
from holdfast.privacy.event import Event
from holdfast.privacy.rounding import float_up, from_grains, up
from holdfast.privacy.rule import amount

Kind = Literal["mixture", "filter", "stitched"]
_KINDS = ("mixture", "filter", "stitched")


@dataclass(frozen=True, slots=True, init=False)
class Odometer:
    """Pure charges chosen adaptively, with no limit set beforehand; immutable, a charge returns the next
    odometer.

    Guarantee: with V the sum of epsilon squared, the transcript up to any moment, chosen after the fact or
    not, has privacy loss at most `epsilon` but for probability delta (over all moments together). The kinds
    are three curves over V: "filter" a line, best near one V and poor far from it; "mixture" good over a wide
    range around it; "stitched" of the least order as V grows without end.
    Requires: pure charges (probabilistic DP). The realised value is not a budget: stopping when it reaches a
    target is what Filter is for.
    Reference: Whitehouse et al. 2023. `around` is the epsilon near which the curve is
    tightest.
    Cost: O(1) a charge.
    """

    delta: float
    kind: Kind
    around: float
    spent: int

    def __init__(
        self, delta: Number, kind: Kind = "mixture", *, around: Number = 1.0, spent: int = 0
    ) -> None:
        object.__setattr__(self, "delta", probability("delta", delta))
        object.__setattr__(self, "kind", one_of("kind", kind, _KINDS))
        object.__setattr__(self, "around", float(exact_positive("around", around)))
        object.__setattr__(self, "spent", integer("spent", spent, 0))

    def charge(self, event: Event) -> Odometer:
        """The odometer after this event. NoRuleError if the event is not pure."""
        if amount(event, "failure"):
            raise NoRuleError("expected an event without a delta in an odometer, got one with; use a Filter")
        return replace(self, spent=self.spent + amount(event, "squares"))

    @property
    def epsilon(self) -> float:
        """The loss so far, rounded up; 0 before the first charge."""
        if self.spent == 0:
            return 0.0
        v, log_delta = float_up(from_grains(self.spent)), -math.log(self.delta)
        root = math.sqrt(2.0 * log_delta)
        centre = (2.0 * self.around / (root + math.sqrt(root * root + 2.0 * self.around))) ** 2
        return up(_CURVES[self.kind](v, centre, log_delta) + v / 2)


def _line(v: float, centre: float, log_delta: float) -> float:
    """sqrt(2 y ln(1/delta)) (1 + V/y)/2: the tangent of the filter's curve at y = centre."""
    return math.sqrt(2.0 * centre * log_delta) * (1.0 + v / centre) / 2


def _mixture(v: float, centre: float, log_delta: float) -> float:
    """sqrt(2 (V+g) ln(sqrt((V+g)/g)/delta)), any g > 0; this g is near the best one at V = centre."""
    g = centre / (2.0 * log_delta + math.log1p(2.0 * log_delta) + 1.0)
    return math.sqrt(2.0 * (v + g) * (log_delta + math.log1p(v / g) / 2))


def _stitched(v: float, centre: float, log_delta: float) -> float:
    """1.7 sqrt(V (ln ln(2V/v0) + 0.72 ln(5.2/delta))), V >= v0 = centre/100; before that its value at v0."""
    v0 = centre / 100
    v = max(v, v0)
    return 1.7 * math.sqrt(v * (math.log(math.log(2.0 * v / v0)) + 0.72 * (math.log(5.2) + log_delta)))


_CURVES = {"filter": _line, "mixture": _mixture, "stitched": _stitched}
