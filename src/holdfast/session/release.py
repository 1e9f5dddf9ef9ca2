"""Measure and release: what was paid for is read, and leaves with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.laplace import add_laplace
from holdfast.mechanisms.logistic import add_logistic
from holdfast.mechanisms.values import Integers
from holdfast.mechanisms.votes import FLIP, unbiased, votes
from holdfast.noise.subset import without_replacement
from holdfast.planning.plan import DISAGREEMENT_NOISE, SELECTED, Plan, Recipe
from holdfast.planning.terms import Terms
from holdfast.planning.width import deviation, disagreement_interval, of_each, spans
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import up
from holdfast.query.difference import DifferenceMeasurement
from holdfast.query.distinct import DistinctMeasurement
from holdfast.query.function import FunctionMeasurement
from holdfast.query.measurement import Measurement
from holdfast.query.statistic import Workload, workload
from holdfast.query.together import together
from holdfast.session.answer import Answer
from holdfast.session.quantile import read_bins, select_bins
from holdfast.session.readout import Reading, Totals, read, read_between, too_few
from holdfast.session.sum_reading import nothing_known, read_sums
from holdfast.validity.leave_out_intervals import rare_interval

if TYPE_CHECKING:
    from holdfast.desk import Paid

Measured = Measurement | FunctionMeasurement | DifferenceMeasurement


def release(planned: Plan, paid: Paid, terms: Terms) -> Answer:
    """Measure, add the noise that the plan names, and read the result."""
    statistic = planned.statistic
    totals = workload(statistic, terms.schema, terms.rows)
    parts: tuple[Any, ...] = (planned.noise, planned.sampling, planned.population)
    disagreement = None
    if planned.mechanism in SELECTED:
        reading = _select(planned, _totals(paid, totals)[0], totals.most)
    else:
        if planned.recipe.expect is not None:
            disagreement = _disagreement(planned, paid, terms)
        noisy = _noisy(totals, planned.recipe, paid, terms)
        if disagreement is not None:
            reading = _by_disagreement(totals, noisy, disagreement, planned)
        elif planned.promise.rare:
            reading = _as_rare(totals, noisy, planned)
        else:
            reading = _read(totals, noisy, planned.widths.totals, terms.rows)
        own = disagreement is not None or planned.promise.rare
        if totals.depends or statistic.cells is not None or own:
            half = (reading.high - reading.low) / 2
            parts = tuple(half * share if share else np.zeros_like(half) for share in planned.widths.divided)
    few = too_few(totals, reading) if totals.sums is None else nothing_known(totals, reading)
    ends: tuple[Any, ...] = (reading.value, reading.low, reading.high, few)
    if planned.on_the_rows is not None:
        of_the_rows = _read(totals, noisy, planned.on_the_rows, terms.rows)
        ends += of_the_rows.low, of_the_rows.high
    if statistic.labels is None:
        ends = tuple(end.item() for end in ends)
        parts = tuple(part if isinstance(part, float) else float(np.max(part)) for part in parts)
    return Answer(
        question=planned.question,
        value=ends[0],
        low=ends[1],
        high=ends[2],
        confidence=planned.confidence,
        noise=parts[0],
        sampling=parts[1],
        population=parts[2],
        target=planned.target,
        rho=planned.rho,
        epsilon=planned.epsilon,
        currency=planned.currency,
        rows_read=planned.rows_read,
        mechanism=planned.mechanism,
        explanation=planned.explanation,
        labels=statistic.labels,
        keys=statistic.keys,
        by=statistic.key_names,
        within=planned.within,
        too_few=ends[3],
        ends_theorem=planned.ends_theorem,
        disagreement=disagreement,
        table_low=ends[4] if len(ends) > 4 else None,
        table_high=ends[5] if len(ends) > 4 else None,
    )


def _read(totals: Workload, noisy: Totals, half_widths: tuple[float, ...], rows: int) -> Reading:
    if totals.sums is not None:
        return read_sums(totals, noisy[0], half_widths, rows)
    return read(totals, noisy, half_widths, rows)


def _noisy(totals: Workload, recipe: Recipe, paid: Paid, terms: Terms) -> Totals:
    """The totals of every measurement, released."""
    if recipe.mechanism == "votes":
        count, flip = int(recipe.noise), recipe.flip or FLIP
        return tuple(_by_votes(m, count, flip, paid, terms.rows) for m in totals.measurements)
    if recipe.mechanism == "subsampled-laplace":
        (measurement,) = totals.measurements
        ids = without_replacement(terms.rows, recipe.rows)
        secret = measurement.totals(paid.gather(_columns(measurement), ids))
        return (np.asarray(add_laplace(secret, recipe.noise)) * (terms.rows / recipe.rows),)
    return with_noise(totals, recipe, _totals(paid, totals))


def with_noise(totals: Workload, recipe: Recipe, secrets: Sequence[NDArray[Any]]) -> Totals:
    """The exact totals of every measurement with noise, each in its own scale; sums are encoded first."""
    add = {"gaussian": add_gaussian, "laplace": add_laplace, "logistic": add_logistic}[recipe.mechanism]
    if totals.sums is not None:
        secrets = [totals.sums.encoded(secret) for secret in secrets]
    each = zip(secrets, spans(totals), of_each(totals, recipe), strict=True)
    return tuple(_added(add, secret, own.of_span(span)) for secret, span, own in each)


def _added(add: Callable[[Any, Fraction], Integers], secret: NDArray[Any], noise: Fraction) -> NDArray[Any]:
    """A total with noise; a single one without arrays on the way."""
    if secret.size != 1:
        return np.asarray(add(secret, noise))
    return np.array([add(secret.item(), noise)]).reshape(secret.shape)


def _by_votes(measurement: Measured, count: int, flip: Any, paid: Paid, rows: int) -> NDArray[Any]:
    """What `count` votes say of a total. A row's contribution, from low to high, is the mean of its bit."""
    block = paid.draw(_columns(measurement), count)
    span = max(1, measurement.high - measurement.low)
    values = measurement.contributions(block)
    if measurement.low:  # truth values stay as they are
        values = values - measurement.low
    mean = unbiased(votes(values, flip=flip, levels=span), count, flip)
    return np.array([rows * (measurement.low + span * mean)])


def _totals(paid: Paid, totals: Workload) -> list[NDArray[np.int64]]:
    """The exact totals of every measurement.

    A Python function cannot be pushed down to a database. It is called once for each block, so that both totals are
    of the same values whatever it does.
    """
    functions = [m for m in totals.measurements if isinstance(m, FunctionMeasurement)]
    if not functions:
        if (joined := together(totals.measurements)) is not None:
            return joined.apart(paid.totals(joined))
        return [_total(paid, m) for m in totals.measurements if not isinstance(m, FunctionMeasurement)]
    found = [np.zeros(1, dtype=np.int64) for _ in functions]
    for block in paid.scan(functions[0].columns):
        values = functions[0].values(block)
        for total, measurement in zip(found, functions, strict=True):
            total += measurement.units(values).sum(dtype=np.int64)
    return found


def _total(paid: Paid, measurement: Measurement | DifferenceMeasurement) -> NDArray[np.int64]:
    if isinstance(measurement, DistinctMeasurement):
        return measurement.counted(paid.scan(measurement.columns))
    return paid.totals(measurement)


def _columns(measurement: Measured) -> tuple[str, ...]:
    """What has to be read; at least one column, because a block must know its length."""
    return measurement.columns or tuple(measurement.schema)[:1]


def _disagreement(planned: Plan, paid: Paid, terms: Terms) -> float:
    """The noisy share of the rows on which the conditions of a difference disagree. It is told raw: clamped to [0,1]
    the theorem would not hold."""
    statistic, recipe = planned.statistic, planned.recipe
    assert statistic.other is not None
    counted = DifferenceMeasurement(terms.schema, statistic.where, statistic.other, disagreement=True)
    span = 2 if recipe.per_span else 1
    noisy = add_gaussian(paid.totals(counted), DISAGREEMENT_NOISE * recipe.noise * span**2)
    return float(np.asarray(noisy)[0]) / terms.rows


def _by_disagreement(totals: Workload, noisy: Totals, disagreement: float, planned: Plan) -> Reading:
    """The interval of a difference, by Theorem 37."""
    value = noisy[0] * totals.unit
    low, high = disagreement_interval(
        planned.recipe, planned.promise, planned.rows, disagreement, float(value[0])
    )
    ends = np.array([low]), np.array([high])
    return Reading(np.clip(value, *ends), *ends)


def _as_rare(totals: Workload, noisy: Totals, planned: Plan) -> Reading:
    """The interval of an answer as a rare event: Theorem 28 (3R) on the scale of [0,1]."""
    promise, rows, measurement = planned.promise, planned.rows, totals.measurements[0]
    assert promise.left_out is not None
    (span,) = spans(totals)
    charged = promise.left_out.charges(up(promise.information / UNITS * rows))
    mean = float(noisy[0][0] / rows - measurement.low) / span
    sigma = deviation(span, planned.recipe, rows)
    ends = rare_interval(promise.left_out, charged, sigma, mean, promise.allowance, 1 / (rows * span))
    low, high = (np.array([rows * (measurement.low + span * end)]) for end in ends)
    return read_between(totals, noisy, (low,), (high,), rows)


def _select(planned: Plan, secret: NDArray[np.int64], most: int) -> Reading:
    """One quantile for each group. A unit moves a score by as many rows as it may have."""
    statistic = planned.statistic
    assert statistic.bins is not None and statistic.rank is not None
    distance = int(planned.widths.totals[0])
    chosen = [
        read_bins(
            statistic.bins,
            select_bins(
                counts,
                statistic.rank,
                planned.noise_parameter / most,
                distance,
                planned.rows * most,
                smoothed=planned.mechanism == "smoothed",
            ),
        )
        for counts in secret.reshape(-1, statistic.bins.size)
    ]
    kind = float if isinstance(statistic.bins.starts[0], int | float) else object
    return Reading(*(np.array(column, dtype=kind) for column in zip(*chosen, strict=True)))
