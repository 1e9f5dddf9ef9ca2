"""The validity filter of a session that mixes Gaussian answers, votes and other small private steps."""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.validity.search import least
from holdfast.validity.small_steps import NearGaussian, filter_profile
from holdfast.validity.transfer import sharp_term


@lru_cache(maxsize=4096)
def mixture_term(beta: float, budget: float, largest: float, ratio: float) -> tuple[float, NearGaussian]:
    """(alpha_*, profile) under the sure cap sum of v_t <= budget: T1* on Theorem L′, T0 tuned from these
    numbers.

    Guarantee: E[q~(S) - q~(P) | E] <= alpha_* for events and queries that are functions of the transcript.
    Requires: as `filter_profile`; budget, largest step and ratio are fixed when the session opens. One coarse
    step is expensive here: beside it, `concentrated_term` on the total zCDP loss may be the smaller.
    Reference: docs/theorems.md, Theorems 5 and 10. Cost: under a millisecond, then cached.
    """

    def bound(log_extra: float) -> float:
        profile = filter_profile(budget, largest, ratio, largest + budget * math.exp(log_extra))
        return sharp_term(beta, profile.mu, profile.err) if profile.err < beta else 1.0 + profile.err

    value, place = least(bound, math.log(1e-9), math.log(30.0), 24)
    return min(1.0, value), filter_profile(budget, largest, ratio, largest + budget * math.exp(place))
