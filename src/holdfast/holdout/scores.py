"""From released means to an answer with its interval. Post-processing: it costs nothing."""

from __future__ import annotations

import math

from holdfast.holdout.design import FLIP, Design
from holdfast.holdout.measured import Reading
from holdfast.holdout.metric import Metric
from holdfast.privacy.rounding import down, up
from holdfast.session.answer import Answer


def as_planned(plan: Design, looks: int) -> Reading:
    """Of a mode that has one width and one price for every look."""
    return Reading(plan.width, looks * plan.rho / plan.queries, looks * plan.rows_read)


def single(plan: Design, metric: Metric, mean: float, told: Reading) -> Answer:
    """A mean over rows."""
    value, (low, high) = metric.on_scale(mean), map(metric.on_scale, ends(metric, mean, told.width))
    span = metric.high - metric.low if metric.power == 1.0 else (high - low) / (2.0 * told.width)
    return answer(plan, metric.name, span, told, value, low, high)


def difference(plan: Design, metric: Metric, mean: float, told: Reading) -> Answer:
    """The mean of (1 + first - second)/2, read as first - second."""
    low, high = ends(metric, mean, told.width)
    span = 2.0 * (metric.high - metric.low)
    value = min(1.0, max(0.0, mean)) - 0.5
    return answer(
        plan, f"{metric.name} of the first less the second", span, told,
        span * value, span * (low - 0.5), span * (high - 0.5),
    )  # fmt: skip


def ratio(plan: Design, metric: Metric, means: list[float], told: Reading) -> Answer:
    """a/(a+b) from two means: it grows with a and falls with b, so the ends come from opposite corners.

    Guarantee: whenever both means are within their half-widths, [low, high] holds the ratio; it is [0, 1]
    where a + b may be 0.
    """
    (a_low, a_high), (b_low, b_high) = (ends(metric, mean, told.width) for mean in means)
    a, b = (max(0.0, mean) for mean in means)
    low = down(a_low / (a_low + b_high)) if a_low > 0.0 else 0.0
    high = min(1.0, up(a_high / (a_high + b_low))) if a_high + b_low > 0.0 and b_low > 0.0 else 1.0
    value = a / (a + b) if a + b > 0.0 else 0.5
    value, low, high = (metric.on_scale(part) for part in (min(high, max(low, value)), low, high))
    return answer(plan, metric.name, (high - low) / (2.0 * told.width), told, value, low, high)


def ends(metric: Metric, mean: float, width: float) -> tuple[float, float]:
    """Both ends of the interval of a mean, inside [0,1]."""
    reach = width + metric.rounding
    low = math.nextafter(mean - reach, -math.inf)
    high = math.nextafter(mean + reach, math.inf)
    return min(1.0, max(0.0, low)), max(0.0, min(1.0, high))


def answer(
    plan: Design, name: str, span: float, told: Reading, value: float, low: float, high: float
) -> Answer:
    """An answer whose half-width is `span` times that of the means."""
    own = max(0.0, told.width - plan.population)
    sampling = own * (1 - 2 * float(FLIP)) ** 2 if plan.mode == "votes" else 0.0
    return Answer(
        question=name,
        value=value,
        low=low,
        high=high,
        confidence=plan.confidence,
        noise=span * (own - sampling),
        sampling=span * sampling,
        population=span * (told.width - own),
        target="population",
        rho=told.rho,
        epsilon=None,
        rows_read=told.rows_read,
        mechanism=plan.mode,
        explanation=f"one of {plan}",
    )
