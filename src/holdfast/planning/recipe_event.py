"""The privacy loss of a recipe, as an event."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from holdfast.errors import NoRuleError
from holdfast.mechanisms.votes import FLIP
from holdfast.planning.plan import Recipe
from holdfast.planning.width import spans
from holdfast.privacy.event import (
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    Logistic,
    Repeat,
    Sequence,
    Subsampled,
    Votes,
)
from holdfast.privacy.rule import pure
from holdfast.query.statistic import Sensitivity, Workload

SELECTIONS = 3
"""A quantile is three selections: the value, and the two ends of its interval."""


def event_of(totals: Workload, recipe: Recipe, rows: int) -> Event:
    """What a recipe does to the rows of a workload, as an event."""
    sensitivity = totals.sensitivity()
    match recipe.mechanism:
        case "exponential" | "smoothed":
            return Repeat(BoundedRange(recipe.noise), selections(totals))
        case "laplace":
            return Laplace(sensitivity.l1, recipe.noise)
        case "subsampled-laplace":
            return Subsampled(Laplace(sensitivity.l1, recipe.noise), recipe.rows, rows)
        case "votes":
            vote = Votes(rows, int(recipe.noise), recipe.flip or FLIP)
            return vote if len(totals.measurements) == 1 else Repeat(vote, len(totals.measurements))
    if recipe.per_span:
        parts = [replace(totals, measurements=(m,), joint=None) for m in totals.measurements]
        return Sequence(
            tuple(
                _smooth(recipe.mechanism, part.sensitivity(), recipe.of_span(span))
                for part, span in zip(parts, spans(totals), strict=True)
            )
        )
    return _smooth(recipe.mechanism, sensitivity, recipe.noise)


def _smooth(mechanism: str, sensitivity: Sensitivity, noise: Fraction) -> Event:
    """Noise that the leave-out theorem covers."""
    if mechanism == "logistic":
        return Logistic(sensitivity.l1, sensitivity.l2_squared, noise)
    return Gaussian(sensitivity.l2_squared, noise)


def selections(totals: Workload) -> int:
    """How many selections a row can touch: replacing it changes one group, or two if there are several."""
    return SELECTIONS if totals.statistic.by is None else 2 * SELECTIONS


def pure_epsilon(event: Event) -> float | None:
    """The pure epsilon of an event, if it has one."""
    try:
        return pure(event).epsilon
    except NoRuleError:
        return None
