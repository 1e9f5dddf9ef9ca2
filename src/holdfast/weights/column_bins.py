"""The bins of a column, made from its noisy counts: what is hard to tell from noise is put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.weights.smooth_counts import drawn_together, of_total, smoothed

Array = NDArray[np.float64]
CLEAR = 3.0
"""So many standard deviations of noise and more are a count that is there."""


@dataclass(frozen=True)
class Bins:
    """Which bin each group of a column is in, and what part of its bin it is. NULL is the last group."""

    places: NDArray[np.int64]
    shares: Array

    @property
    def size(self) -> int:
        return int(self.places.max()) + 1

    def together(self, counts: NDArray[Any]) -> Array:
        """Numbers of the groups, added up in each bin."""
        return np.bincount(self.places, weights=counts, minlength=self.size).astype(np.float64)

    @property
    def table(self) -> Array:
        """For each bin a line with the chances of all groups."""
        made = np.zeros((self.size, len(self.places)))
        made[self.places, np.arange(len(self.places))] = self.shares
        return made


def bins(noisy: Array, deviation: float, *, ordered: bool, most: int, rows: int) -> Bins:
    """Bins for the groups of a column from counts with noise of this deviation; a function of released numbers.

    Ordered groups are put together with their neighbours until a bin is clear of the noise and has about one part in
    `most`; of others the largest (at most `most`) are bins and the rest is one. NULL is a bin of its own where it
    is clear of the noise, and is in the last one otherwise. In a bin each group has the share of its smoothed count, of
    `rows` in all; where groups have no order, those that are not clear of the noise are drawn to each other instead. A
    NULL that is not clear of it has none.
    """
    values = noisy[:-1]
    places = _runs(values, deviation, most) if ordered else _largest(values, deviation, most)
    last = int(places.max())
    own = noisy[-1] >= (CLEAR + 1) * deviation
    places = np.append(places, last + 1 if own else last)
    clean = smoothed(values, deviation) if ordered else drawn_together(values, deviation, CLEAR)
    return Bins(places, _shares(of_total(np.append(clean, noisy[-1]), float(rows)), places))


def _runs(values: Array, deviation: float, most: int) -> NDArray[np.int64]:
    least = float(np.maximum(values, 0).sum()) / most
    places = np.zeros(len(values), dtype=np.int64)
    place, first, held = 0, 0, 0.0
    for i, value in enumerate(values):
        if i > first and value >= max(least, CLEAR * deviation):
            place, first, held = place + 1, i, 0.0
        places[i] = place
        held += float(value)
        if held >= max(least, CLEAR * deviation * np.sqrt(i + 1 - first)):
            place, first, held = place + 1, i + 1, 0.0
    # What is left at the end joins the bin before it, if there is one and it is not clear of the noise.
    if first < len(values) and place and held < CLEAR * deviation * np.sqrt(len(values) - first):
        places[first:] = place - 1
    return places


def _largest(values: Array, deviation: float, most: int) -> NDArray[np.int64]:
    clear = np.flatnonzero(values >= CLEAR * deviation)
    kept = np.sort(clear[np.argsort(-values[clear], kind="stable")[:most]])
    places = np.full(len(values), len(kept), dtype=np.int64)
    places[kept] = np.arange(len(kept))
    return places


def _shares(counts: Array, places: NDArray[np.int64]) -> Array:
    shares = np.zeros(len(counts))
    for place in range(int(places.max()) + 1):
        own = np.flatnonzero(places == place)
        if len(own) > 1:
            own = own[own < len(counts) - 1]  # a NULL that has no bin of its own is none
        total = float(counts[own].sum())
        shares[own] = counts[own] / total if total > 0 else 1 / len(own)
    return shares
