"""How small an undercharge an audit would have noticed."""

from __future__ import annotations

import math

from holdfast.audit.binomial import least_proportion, loss_bound, most_proportion
from holdfast.audit.epsilon import Audit

SURE = 0.9
"""With this probability at least it would be noticed."""
_MOST = 1e3
_HALVINGS = 40


def noticed(audit: Audit, epsilon: float) -> float:
    """The least factor c for which a release that loses c times as much would have been refuted, infinite if none.

    What is meant by c times: the event of this audit, as likely as here on its likelier input, has c times its
    log-ratio ln((p - delta)/q). Hits on both inputs are binomial, and the claim of `epsilon` is refuted if their
    limits are past it when each count is at its 5% quantile on the unlucky side: with probability 9/10 at least.
    The event's own p and q are taken at their 95% limits on the unlucky side, so that nine times in ten the factor
    is not too small. An undercharge that opens another, better event may be noticed sooner; one that spares this
    event is not noticed by it at all.
    """
    tail = (1 - SURE) / 2
    p = float(least_proportion(audit.hits, audit.tested, tail))
    q = float(most_proportion(audit.other_hits, audit.tested, tail))
    if p - audit.delta <= q:
        return math.inf
    log_ratio = math.log((p - audit.delta) / q)

    def refuted(factor: float) -> bool:
        return _unlucky_bound(audit, p, (p - audit.delta) * math.exp(-factor * log_ratio), tail) > epsilon

    if not refuted(_MOST):
        return math.inf
    low, high = 0.0, math.log(_MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _unlucky_bound(audit: Audit, p: float, q: float, tail: float) -> float:
    """The bound on epsilon when both counts are as unlucky as `tail` lets them be."""
    from scipy.stats import binom

    hits, other_hits = binom.ppf(tail, audit.tested, p), binom.ppf(1 - tail, audit.tested, q)
    miss = (1 - audit.confidence) / 2
    return float(loss_bound(int(hits), int(other_hits), audit.tested, miss, audit.delta))
