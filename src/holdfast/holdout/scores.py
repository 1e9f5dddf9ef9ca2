"""From released means to an answer with its interval. Post-processing: it costs nothing."""

from __future__ import annotations

import math

from holdfast.holdout.design import Design
from holdfast.holdout.metric import Metric
from holdfast.mechanisms.votes import FLIP
from holdfast.privacy.rounding import down, up
from holdfast.session.answer import Answer


def single(plan: Design, metric: Metric, mean: float) -> Answer:
    """A mean over rows."""
    low, high = _ends(plan, metric, mean)
    span = metric.high - metric.low
    return _answer(
        plan, metric.name, 1, span,
        metric.low + span * min(1.0, max(0.0, mean)), metric.low + span * low, metric.low + span * high,
    )  # fmt: skip


def difference(plan: Design, metric: Metric, mean: float) -> Answer:
    """The mean of (1 + first - second)/2, read as first - second."""
    low, high = _ends(plan, metric, mean)
    span = 2.0 * (metric.high - metric.low)
    value = min(1.0, max(0.0, mean)) - 0.5
    return _answer(
        plan, f"{metric.name} of the first less the second", 1, span,
        span * value, span * (low - 0.5), span * (high - 0.5),
    )  # fmt: skip


def ratio(plan: Design, metric: Metric, means: list[float]) -> Answer:
    """a/(a+b) from two means: it grows with a and falls with b, so the ends come from opposite corners.

    Guarantee: whenever both means are within their half-widths, [low, high] holds the ratio; it is [0, 1]
    where a + b may be 0.
    """
    (a_low, a_high), (b_low, b_high) = (_ends(plan, metric, mean) for mean in means)
    a, b = (max(0.0, mean) for mean in means)
    low = down(a_low / (a_low + b_high)) if a_low > 0.0 else 0.0
    high = min(1.0, up(a_high / (a_high + b_low))) if a_high + b_low > 0.0 and b_low > 0.0 else 1.0
    value = a / (a + b) if a + b > 0.0 else 0.5
    return _answer(
        plan, metric.name, 2, (high - low) / (2.0 * plan.width), min(high, max(low, value)), low, high
    )


def _ends(plan: Design, metric: Metric, mean: float) -> tuple[float, float]:
    reach = plan.width + metric.rounding
    low = math.nextafter(mean - reach, -math.inf)
    high = math.nextafter(mean + reach, math.inf)
    return min(1.0, max(0.0, low)), max(0.0, min(1.0, high))


def _answer(
    plan: Design, name: str, looks: int, span: float, value: float, low: float, high: float
) -> Answer:
    own = max(0.0, plan.width - plan.population)
    sampling = own * (1 - 2 * float(FLIP)) ** 2 if plan.mode == "votes" else 0.0
    return Answer(
        question=name,
        value=value,
        low=low,
        high=high,
        confidence=plan.confidence,
        noise=span * (own - sampling),
        sampling=span * sampling,
        population=span * plan.population,
        target="population",
        rho=looks * plan.rho,
        epsilon=None,
        rows_read=looks * plan.rows_read,
        mechanism=plan.mode,
        explanation=f"{looks} of {plan}",
    )
