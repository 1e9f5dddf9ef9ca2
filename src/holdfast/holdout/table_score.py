"""A score that is a function of one table of the rows, told at once."""

from __future__ import annotations

from holdfast.holdout.label_release import Cells, noisy_table
from holdfast.holdout.look_meter import Charges, Means, Meter, Place
from holdfast.holdout.measured import Reading
from holdfast.holdout.metric import Metric
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.scores import answer
from holdfast.holdout.table_metric import TABLE_LOOKS


def tabled(
    meter: Meter, metric: Metric, rows: Cells, classes: int, place: Place, charged: Charges
) -> Outcome:
    """The metric with its interval, and what the table told.

    Guarantee: with probability 1 - 4 `place.chance` the interval holds the metric of the population.
    Requires: as `Meter`; gaussian noise; the metric is fixed before the look.
    Reference: docs/theorems.md, Theorem 54. Cost: all rows, four looks.
    """
    plan, table = meter.plan, metric.table
    assert table is not None
    share = TABLE_LOOKS * place.chance / table.statements(classes)
    held = noisy_table(plan, place.epoch, rows, table.cells(classes))
    value, low, high = table.read(
        held, lambda norm: meter.sum_reach(charged, place, norm, share) + metric.rounding
    )
    told = Reading(meter.half_width(charged, place), TABLE_LOOKS * meter.rho(place), plan.rows)
    low, high = min(low, value), max(high, value)
    span = (high - low) / (2.0 * told.width)
    made = answer(plan, metric.name, span, told, value, low, high)
    return Outcome(made, told=(Means(TABLE_LOOKS, place.index),))
