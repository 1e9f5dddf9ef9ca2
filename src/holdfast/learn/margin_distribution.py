"""Margins of a voting classifier: their distribution as boosting goes on, and every bound that they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer, probability
from holdfast.errors import InputError
from holdfast.learn.ensemble import Voters, voters
from holdfast.learn.margin_bounds import breiman_bound, kth_margin_bound, schapire_bound

Vector = NDArray[np.float64]

ROUNDS = (5, 100, 1000)


@dataclass(frozen=True, slots=True)
class MarginBound:
    """A bound on the error of new rows; `value` 1 says nothing, and `note` says why."""

    name: str
    value: float
    note: str

    @property
    def vacuous(self) -> bool:
        return self.value >= 1.0


@dataclass(frozen=True, slots=True)
class Margins:
    """Margins of the training rows after several numbers of rounds, and bounds after the last of them.

    Each bound holds with probability `confidence` on its own.
    """

    rounds: tuple[int, ...]
    margins: tuple[Vector, ...] = field(repr=False)
    """Sorted, one array for each entry of `rounds`."""
    bounds: tuple[MarginBound, ...]
    confidence: float
    log_hypotheses: float | None

    @property
    def minimum(self) -> float:
        """The smallest margin after the last round."""
        return float(self.margins[-1][0])

    @property
    def training_errors(self) -> tuple[float, ...]:
        """The share of rows with a margin of at most 0, for each number of rounds."""
        return tuple(float(np.mean(values <= 0)) for values in self.margins)

    def plot(self, ax: Any = None) -> Any:
        """Draw the distributions of the margins (needs matplotlib, the extra "plot"); returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        n = len(self.margins[0])
        for count, values in zip(self.rounds, self.margins, strict=True):
            ax.step(
                [-1, *values, 1], [0, *(np.arange(1, n + 1) / n), 1], where="post", label=f"{count} rounds"
            )
        ax.axvline(0, linewidth=0.5, color="grey")
        ax.set(xlim=(-1, 1), ylim=(0, 1), xlabel="margin", ylabel="share of rows with at most this margin")
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        """The same drawing as inline SVG, without any dependency."""
        n, lines = len(self.margins[0]), []
        for place, (count, values) in enumerate(zip(self.rounds, self.margins, strict=True)):
            picked = values[np.linspace(0, n - 1, min(n, 200)).astype(int)]
            heights = np.linspace(1 / n, 1, len(picked))
            path = " ".join(
                f"{150 + 150 * m:.1f},{200 - 200 * h:.1f}" for m, h in zip(picked, heights, strict=True)
            )
            colour = f"hsl({place * 110},60%,45%)"
            lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
            lines.append(
                f'<text x="5" y="{15 + 15 * place}" font-size="11" fill="{colour}">{count} rounds</text>'
            )
        frame = '<path d="M0,200 H300 M150,0 V200" stroke="grey" stroke-width="0.5"/>'
        return f'<svg viewBox="0 0 300 215" width="450" role="img" aria-label="margins">{frame}{"".join(lines)}</svg>'

    def __str__(self) -> str:
        lines = [
            f"{count:>6} rounds: training error {error:.4f}, smallest margin {values[0]:+.4f}, "
            f"median {np.median(values):+.4f}"
            for count, error, values in zip(self.rounds, self.training_errors, self.margins, strict=True)
        ]
        lines.append(f"bounds on the error of new rows, each with probability {self.confidence:g}:")
        for bound in self.bounds:
            said = f"vacuous at n = {len(self.margins[0]):,}" if bound.vacuous else f"{bound.value:.4f}"
            lines.append(f"  {bound.name}: {said}{f' ({bound.note})' if bound.note else ''}")
        return "\n".join(lines)


def margins(
    ensemble: Any,
    rows: ArrayLike,
    truth: ArrayLike,
    *,
    rounds: Sequence[int] = ROUNDS,
    hypotheses: int | None = None,
    confidence: float = 0.95,
) -> Margins:
    """The margins of an ensemble on the rows that it was trained on, voting weights normalised to 1.

    `hypotheses` is |H|, the size of the class of members, fixed before the rows were seen; ours know it, and
    for scikit-learn's trees it is counted from their leaves. Not private: `rows` are in the hands of the caller.
    """
    found = voters(ensemble, rows, truth)
    if not len(rounds):
        raise InputError("expected at least one number for rounds, got none")
    delta = 1 - probability("confidence", confidence)
    log_h = found.log_hypotheses
    if hypotheses is not None:
        log_h = math.log(integer("hypotheses", hypotheses, 2, None))
    most = len(found.weights) - found.before
    counts = tuple(sorted({min(integer("rounds", count), most) for count in rounds}))
    values = tuple(_ranked(found, found.before + count) for count in counts)
    return Margins(counts, values, _bounds(values[-1], log_h, delta), 1 - delta, log_h)


def _ranked(found: Voters, count: int) -> Vector:
    """The margins after some members, sorted."""
    weights = found.weights[:count]
    return np.sort(found.signs * (found.votes[:, :count] @ weights) / weights.sum())


def _bounds(ranked: Vector, log_h: float | None, delta: float) -> tuple[MarginBound, ...]:
    names = ("Schapire-Freund-Bartlett-Lee", "k-th margin", "Breiman, smallest margin")
    if log_h is None:
        note = "the size of the class is unknown; give hypotheses="
        return tuple(MarginBound(name, 1.0, note) for name in names)
    kth, k = kth_margin_bound(ranked, log_h, delta)
    breiman, why = breiman_bound(float(ranked[0]), len(ranked), log_h, delta)
    return (
        MarginBound(names[0], schapire_bound(ranked, log_h, delta), ""),
        MarginBound(names[1], kth, f"k = {k}" if kth < 1 else ""),
        MarginBound(names[2], breiman, why),
    )
