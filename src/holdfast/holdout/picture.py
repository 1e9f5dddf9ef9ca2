"""The attack demo as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from holdfast.holdout.race import Race

_ORDINARY, _GUARDED, _TRUTH = "#c2410c", "#0f766e", "#64748b"


def draw(races: Sequence[Race], path: Path) -> None:
    """Write a PNG: best score shown against submissions, the certified band, and fresh data at the end.

    Needs matplotlib (the extra `plot`). No window is opened.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(races), 3.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, race in zip(figure.subplots(1, len(races), sharey=True, squeeze=False)[0], races, strict=True):
        guarded = np.array(race.guarded)
        steps = np.arange(1, len(guarded) + 1)
        axes.fill_between(
            steps, guarded - race.width, guarded + race.width, color=_GUARDED, alpha=0.15, linewidth=0,
            label="certified, all at once",
        )  # fmt: skip
        axes.plot(race.ordinary, color=_ORDINARY, label="ordinary board")
        axes.plot(steps, guarded, color=_GUARDED, label="guarded board")
        axes.axhline(0.5, color=_TRUTH, linestyle="--", linewidth=1, label="the truth")
        end = len(race.ordinary)
        axes.plot(end, race.ordinary_fresh, "o", color=_ORDINARY, clip_on=False, label="ordinary, fresh data")
        axes.plot(end, race.guarded_fresh, "s", color=_GUARDED, clip_on=False, label="guarded, fresh data")
        axes.set(title=race.attack.replace("-", " "), xlabel="submissions", xlim=(0, end), ylim=(0.3, 1.0))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    first = figure.axes[0]
    first.set_ylabel("best accuracy shown")
    first.legend(loc="upper left", frameon=False, fontsize=8)
    figure.savefig(path, format="png")
