"""How wide an answer will be, from a recipe and a promise. Public numbers only."""

from __future__ import annotations

import math
from dataclasses import replace

from holdfast.mechanisms.accuracy import (
    discrete_logistic_reach,
    gaussian_reach,
    laplace_reach,
    sample_reach,
    votes_reach,
)
from holdfast.planning.mean import MARGIN, aims, least_rows, mean_width
from holdfast.planning.plan import ADDED, DISAGREEMENT_NOISE, SELECTED, Recipe, Widths
from holdfast.planning.promise import Promise
from holdfast.planning.sum_width import RANKED, sum_reaches, sum_widths
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import down, up
from holdfast.query.distinct import DistinctMeasurement
from holdfast.query.propagation import extremes
from holdfast.query.statistic import Workload
from holdfast.validity.leave_out_intervals import mixed_difference_interval, rare_reach
from holdfast.validity.leave_out_logistic import TELLS_LIKE, logistic_half_width
from holdfast.validity.leave_out_tails import quantile_half_width
from holdfast.validity.leave_out_votes import votes_half_width
from holdfast.validity.normal_quantile import upper_quantile


def spans(totals: Workload) -> tuple[int, ...]:
    """For each measurement, how far apart the contributions of two rows can be."""
    return tuple(max(1, m.high - m.low) for m in totals.measurements)


def wished(totals: Workload, terms: Terms) -> float | None:
    """The half-width that a session planned for validity was opened for, on the statistic's own scale."""
    if terms.within is None or totals.joint is not None:
        return None
    many = 1 if totals.is_ratio else terms.rows
    return terms.within * many * spans(totals)[0] * totals.unit + totals.rounding


def range_length(totals: Workload, rows: int) -> float:
    """How far apart two answers can be, whatever the rows are, on the scale of `within`; of a quantile that is rank."""
    if totals.statistic.kind in (*RANKED, "independence"):
        return 1.0
    if totals.joint is not None and totals.sums is None:
        lowest, highest = extremes(totals)
        return highest - lowest
    measurement = totals.measurements[0]
    if isinstance(measurement, DistinctMeasurement):
        return measurement.most_values(rows)
    if totals.is_ratio:
        assert measurement.grid is not None
        return (measurement.grid.high - measurement.grid.low) * totals.unit
    return rows * (measurement.high - measurement.low) * totals.unit


def widths(
    totals: Workload, recipe: Recipe, promise: Promise, rows: int, qualifying: int | None = None
) -> Widths:
    """The half-widths that a recipe keeps under a promise: of a mean, if so many rows qualify (None: all)."""
    if recipe.mechanism in SELECTED:
        return _selection(totals, recipe, promise, rows)
    if totals.sums is not None:
        return sum_widths(totals, recipe, promise, rows)
    each = of_each(totals, recipe)
    reaches = [
        _reach(span, totals.size, own, promise, rows) for span, own in zip(spans(totals), each, strict=True)
    ]
    extra = promise.population + promise.slack
    in_units = tuple(r + extra * rows * span for r, span in zip(reaches, spans(totals), strict=True))
    span = spans(totals)[0]
    reach = reaches[0] / (rows * span)
    if promise.left_out is not None:  # what the noise alone would need; the rest is for the population
        alone = _noise_alone(span, each[0], promise.allowance / totals.size, rows)
        shares = _shares(recipe, alone, reach - min(alone, reach))
    else:
        shares = _shares(recipe, reach, extra)
    return _printed(totals, in_units, shares, rows * totals.most if qualifying is None else qualifying)


def stated(
    totals: Workload, recipe: Recipe, promise: Promise, terms: Terms, within: float | None
) -> tuple[Widths, int | None]:
    """The half-widths to state, and for a mean how many rows must qualify for them: the fewest for which `within`
    is certain, or a share of them where none was asked for. None where even all rows are too few."""

    def at(qualifying: int) -> Widths:
        return widths(totals, recipe, promise, terms.rows, qualifying)

    aim = aims(totals, terms.rows)[0]
    planned = at(aim)
    if not totals.depends:
        return planned, None
    if within is None:
        return planned, aim
    least = least_rows(totals, planned.totals, within, terms.rows)
    return at(least or terms.rows * totals.most), least


def of_each(totals: Workload, recipe: Recipe) -> list[Recipe]:
    """The recipe of each measurement: noise in its own scale, where totals are told together."""
    if totals.joint is None or recipe.per_span or recipe.mechanism not in ADDED:
        return [recipe] * len(totals.measurements)
    return [replace(recipe, noise=recipe.stretched(scale)) for scale in totals.scales]


def _reach(span: int, size: int, recipe: Recipe, promise: Promise, rows: int) -> float:
    """What noise and sampling may move one total by, in its units; by the leave-out theorem, the whole half-width."""
    if promise.left_out is not None:
        return rows * span * _left_out(span, size, recipe, promise, rows)
    overshoot = promise.target == "population"
    each = promise.allowance / size
    match recipe.mechanism:
        case "gaussian":
            return gaussian_reach(recipe.noise, each * rows * span if overshoot else each, overshoot)
        case "laplace":
            return laplace_reach(recipe.noise, each * rows * span if overshoot else each, overshoot)
        case "logistic":
            return discrete_logistic_reach(recipe.noise, each * rows * span if overshoot else each, overshoot)
        case "votes":
            assert recipe.flip is not None
            return rows * span * votes_reach(int(recipe.noise), recipe.flip, each, overshoot)
        case "subsampled-laplace":
            return rows * span * sample_reach(recipe.rows, rows, recipe.noise, each, overshoot, span)
    raise AssertionError(recipe.mechanism)


def table_reaches(totals: Workload, recipe: Recipe, promise: Promise, terms: Terms) -> tuple[float, ...]:
    """How far each total of an answer for the population may be from that of the rows themselves, in its units.

    Guarantee: noise and sampling alone, missed with a chance of at most the answer's share of beta, so that all
    intervals of a session for the table hold together with probability `confidence`; likewise all for the population.
    Both together: 1 - 2 beta.
    """
    # A level's allowance is an overshoot: its share of beta times the slack.
    chance = promise.allowance if promise.left_out is not None else promise.allowance / promise.slack
    on_the_table = Promise("table", min(chance, 1.0))
    if totals.sums is not None:
        return sum_reaches(totals, recipe, on_the_table, terms.rows)
    return tuple(
        _reach(
            span,
            totals.size,
            replace(own, noise=own.of_span(span), per_span=False),
            on_the_table,
            terms.rows,
        )
        for span, own in zip(spans(totals), of_each(totals, recipe), strict=True)
    )


def _left_out(span: int, size: int, recipe: Recipe, promise: Promise, rows: int) -> float:
    """The half-width of one total by Theorem 23, 27 or 102, on the scale of a mean of numbers in [0,1]."""
    left_out = promise.left_out
    assert left_out is not None
    charged = left_out.charges(up(promise.information / UNITS * rows))
    beta = promise.allowance / size
    sigma = deviation(span, recipe, rows)
    if recipe.expect is not None:  # its interval is longest around 0
        far = float(recipe.expect) + 2 * span * sigma * math.sqrt(DISAGREEMENT_NOISE)
        return up(disagreement_interval(recipe, promise, rows, far, 0.0)[1] / span)
    if promise.rare:  # and a rare event is furthest from an end of its interval near one half
        return rare_reach(left_out, charged, sigma, beta, 1 / (rows * span))
    if recipe.mechanism == "votes":
        assert recipe.flip is not None
        return votes_half_width(left_out, charged, int(recipe.noise), float(recipe.flip), beta)
    if recipe.mechanism == "logistic":
        scale = up(sigma / TELLS_LIKE)
        return logistic_half_width(left_out, charged, scale, beta, 1 / (rows * span))
    return left_out.half_width(charged, sigma, beta, 1 / (rows * span))


def _noise_alone(span: int, recipe: Recipe, beta: float, rows: int) -> float:
    """The half-width that the noise of a total would need by itself, on the scale of a mean of numbers in [0,1]."""
    sigma = deviation(span, recipe, rows)
    if recipe.mechanism == "logistic":
        return sigma / TELLS_LIKE * math.log(2 / beta - 1)
    return upper_quantile(beta / 2) * sigma


def disagreement_interval(
    recipe: Recipe, promise: Promise, rows: int, disagreement: float, difference: float
) -> tuple[float, float]:
    """The interval of a difference, given the noisy disagreement and the noisy difference (Theorem 37)."""
    left_out = promise.left_out
    assert left_out is not None
    charged = left_out.charges(up(promise.information / UNITS * rows))
    sigma = 2 * deviation(2, recipe, rows)
    spread = sigma * math.sqrt(DISAGREEMENT_NOISE)
    return mixed_difference_interval(
        left_out, charged, disagreement, spread, difference, sigma, promise.allowance, 1 / rows
    )


def deviation(span: int, recipe: Recipe, rows: int) -> float:
    """The noise of a total, on the scale of a mean of numbers in [0,1]; of votes, that of their sum; of logistic noise,
    that of Gaussian noise which tells as much."""
    if recipe.mechanism == "votes":
        return 1 / (2 * (1 - 2 * float(recipe.flip or 0)) * math.sqrt(recipe.noise))
    noise = float(recipe.noise) * TELLS_LIKE if recipe.mechanism == "logistic" else math.sqrt(recipe.noise)
    return noise / (rows * (1 if recipe.per_span else span))


def _shares(recipe: Recipe, reach: float, extra: float) -> tuple[float, float, float]:
    """How the half-width divides into noise, sampling and population, of which `extra` is the last."""
    own = reach / (reach + extra) if reach else 0.0
    if recipe.mechanism == "votes":
        assert recipe.flip is not None
        sampling = (1 - 2 * float(recipe.flip)) ** 2
    elif recipe.mechanism == "subsampled-laplace":
        sampling = 0.5
    else:
        sampling = 0.0
    return own * (1 - sampling), own * sampling, 1 - own if extra else 0.0


def _printed(
    totals: Workload, in_units: tuple[float, ...], shares: tuple[float, float, float], qualifying: int
) -> Widths:
    """On the statistic's own scale; a mean is read as if so many rows qualified."""
    if totals.depends:
        whole = mean_width(totals, in_units, qualifying)
    else:
        whole = (in_units[0] * totals.unit + totals.rounding) * MARGIN
    noise, sampling, population = (whole * share if share else 0.0 for share in shares)
    return Widths(in_units, noise, sampling, population, shares)


def _selection(totals: Workload, recipe: Recipe, promise: Promise, rows: int) -> Widths:
    """For a quantile: by how many rows the chosen bins may miss their rank.

    Each end misses by more than d rows with chance at most bins*exp(-epsilon d/2) (Dwork and Roth 2014,
    Theorem 3.11), three times that if it is smoothed, so its expected overshoot is at most that times 2/epsilon. By the
    leave-out theorem it misses the population's with the same chance (docs/theorems.md, Theorem 33). A unit moves as
    many rows as it may have, and all of this is so many times as much.
    """
    epsilon = float(recipe.noise)
    each = promise.allowance / 2
    groups = 1 if totals.statistic.by is None else totals.statistic.by.size
    candidates = totals.size + 2 * groups  # two outer bins for each group
    if recipe.mechanism == "smoothed":
        candidates *= 3
    if promise.left_out is not None:
        charged = promise.left_out.charges(up(promise.information / UNITS * rows))
        # A tilt below the rate is as valid, and so large a one is never the best: it would only leave the floats.
        rate = min(down(epsilon * rows / 2), 1e5 * math.sqrt(rows))
        tau = quantile_half_width(promise.left_out, charged, rate, rate, candidates // 3, each)
        tau = tau if tau < 2.0 else 2.0  # nothing is known of a rate whose square is no number
        distance = math.floor(up(tau * rows)) + 1  # the ends are beyond the rank, not at it
        alone = min(distance, math.ceil(2 * math.log(candidates / each) / epsilon))
        return Widths((distance * totals.most,), 2 * alone / rows, 0.0, 2 * (distance - alone) / rows)
    if promise.target == "population":
        log_tail = math.log(candidates * 2 / epsilon / (each * rows))
    else:
        log_tail = math.log(candidates / each)
    distance = math.ceil(max(1.0, 2 * log_tail / epsilon * MARGIN))
    extra = math.ceil((promise.population + promise.slack) * rows)
    return Widths(((distance + extra) * totals.most,), 2 * distance / rows, 0.0, 2 * extra / rows)
