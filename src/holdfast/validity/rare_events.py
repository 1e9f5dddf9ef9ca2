"""Sessions whose answers are read as rare events: what an answer tells is read off it, and so is its interval."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from holdfast.privacy.rounding import round_up
from holdfast.validity.falling import Schedule
from holdfast.validity.leave_out import LeaveOut, ladder, planned_place, recorded_grid
from holdfast.validity.leave_out_intervals import rare_interval, rare_reach
from holdfast.validity.normal_quantile import hazard, upper_quantile
from holdfast.validity.option import EPOCHS, Epoch
from holdfast.validity.places import Places
from holdfast.validity.told import rare_told

FREQUENCIES = (0.5, 0.05, 0.002)
"""One number of rows to leave out serves one size of event well; each of these has one beside the planned one."""
AT = 0.01
"""The frequency for which the noise of a session for rare events is planned."""
_WHOLE_UNITS = 1 + 1e-6
_POINTS = 4000


@lru_cache(maxsize=256)
def as_rare(places: Places, beta: float, planned: float = 0.5) -> Places:
    """The same places with the same noise, each answer read as a rare event; most of its chance is for `planned`.

    Guarantee: as `Places`, each answer within an interval of its own; `width` is the most that an end can be away from
    its answer, whichever that is, after answers that were all of one half.
    Requires: Gaussian noise; made before the table's first answer, or `mixed`: then every rung of the recorded grid has
    its share. The numbers of rows are a function of the plan alone.
    Reference: docs/theorems.md, Theorem 38.
    """
    each = beta / sum(epoch.answers for epoch in places.epochs)
    if not math.isfinite(rare_told(places.rows, 1.0, 0.5)):
        return replace(places, width=math.inf)
    sizes = tuple(
        tuple(dict.fromkeys(_best(places, at, frequency, each) for frequency in (planned, *FREQUENCIES)))
        for at in range(len(places.epochs))
    )
    made = replace(places, rare=sizes)
    widest, last = 0.0, 0
    for at, epoch in enumerate(made.epochs):
        last += epoch.answers
        widest = max(widest, rare_half_width(made, last, _told(made, at, 0.5), each))
    return replace(made, width=widest * _WHOLE_UNITS)


def rare_half_width(places: Places, place: int, told: float, beta: float) -> float:
    """The most that an answer in this place can be away from an end of its interval, after so much was told."""
    epoch, left_out = places.epoch_of(place)[0], places.left_out(place)
    sigma = math.sqrt(epoch.noise) / places.rows
    return rare_reach(left_out, left_out.charges(told), sigma, beta, 1 / places.rows)


def rare_width(places: Places, beta: float, frequency: float) -> float:
    """Half the longest interval of an answer of this frequency, if all answers before it were of the same."""
    each = beta / sum(epoch.answers for epoch in places.epochs)
    widest = 0.0
    for at, sizes in enumerate(places.rare):
        left_out = recorded_grid(places.rows) if places.mixed else planned_place(places.rows, *sizes)
        widest = max(widest, _half(places, at, frequency, left_out, each))
    return widest * _WHOLE_UNITS


def _best(places: Places, at: int, frequency: float, each: float) -> int:
    """The rung of the ladder that is about best for events of a frequency, in an epoch: in leading order the interval
    reaches A/b + b v/(2m) beyond the noise. Any rung is valid."""
    sizes = np.array(ladder(places.rows), float)
    z = upper_quantile(each / 2)
    tilt = hazard(z) * places.rows / math.sqrt(places.epochs[at].noise)
    charged = sizes / (8 * (places.rows - sizes) * (places.rows - 1)) * _told(places, at, frequency)
    reach = charged / tilt + tilt * frequency * (1 - frequency) / (2 * sizes)
    return int(sizes[reach.argmin()])


def _half(places: Places, at: int, frequency: float, left_out: LeaveOut, each: float) -> float:
    """Half of the interval of the last answer of an epoch, all before it of one frequency."""
    sigma = math.sqrt(places.epochs[at].noise) / places.rows
    charged = left_out.charges(_told(places, at, frequency))
    low, high = rare_interval(left_out, charged, sigma, frequency, each, 1 / places.rows)
    return max(high - frequency, frequency - low) if frequency < 0.5 else (high - low) / 2


@lru_cache(maxsize=1024)
def _told(places: Places, at: int, frequency: float) -> float:
    """What answers of a frequency have told before the last of an epoch; noise makes a rare one look less so."""
    told = places.begun
    for number, epoch in enumerate(places.epochs[: at + 1]):
        sigma = math.sqrt(epoch.noise) / places.rows
        count = epoch.answers - (number == at)
        told += count * rare_told(places.rows, sigma, min(0.5, frequency + 0.4 * sigma))
    return told


@lru_cache(maxsize=256)
def rare_noise(
    rows: int,
    queries: int,
    beta: float,
    *,
    most_information: float,
    least_noise: float = 0.0,
    begun: float = 0.0,
    mixed: bool = False,
) -> Schedule | None:
    """Noise for events of about 1%: the least common half-width, spending at most so much information.

    In leading order an answer of variance v is within sigma z + v sqrt(I)/n + v z/(2 n sigma) after I was told. Any
    noise is valid; this one is chosen by that, so nothing rests on it.
    """
    if rows < 2:
        return None
    z = upper_quantile(beta / (2 * queries))
    epochs = min(EPOCHS, queries)
    counts = np.diff(np.linspace(0, queries, epochs + 1).round().astype(int)).tolist()
    noises = np.geomspace(max(least_noise, 1e-3 / math.sqrt(rows)), 1.0, _POINTS)
    variance = AT * (1 - AT) + 0.4 * noises
    own = noises * z + variance * z / (2 * rows * noises)

    def schedule(width: float) -> list[float] | None:
        found, told = [], 0.0  # of answers of this variance: the sum of v^2/sigma^2
        spent = 0.0
        for count in counts:
            fits = np.flatnonzero(
                own + np.sqrt(told + (count - 1) * (variance / noises) ** 2) / rows <= width
            )
            if not fits.size:
                return None
            s = float(noises[fits[-1]])
            told += count * (float(variance[fits[-1]]) / s) ** 2
            spent += count / s**2
            found.append(s)
        return found if spent <= most_information else None

    low, high = float(own.min()), 2.0
    best = schedule(high)
    if best is None:
        return None
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        made = schedule(middle)
        low, high, best = (low, middle, made) if made is not None else (middle, high, best)
    # The ladder's middle stands where no answer is read as a rare event.
    left_out = ladder(rows)[len(ladder(rows)) // 4]
    made_of = tuple(
        Epoch(count, round_up(Fraction((s * rows) ** 2)), left_out)
        for count, s in zip(counts, best, strict=True)
    )
    return Schedule(rows, queries, beta, 1, made_of, begun, mixed)
