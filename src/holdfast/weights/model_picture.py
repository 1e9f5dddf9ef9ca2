"""What was measured of each column, beside the model that was fitted to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.errors import InputError
from holdfast.session.answer_columns import needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from holdfast.weights.synthetic import SyntheticTable

_ACROSS = 3


def picture(made: SyntheticTable, path: Path | str | None = None) -> Figure:
    """A panel for each column: the released shares with their intervals, and the model's; NULL is the last place."""
    alone = [one for one in made.measured if len(one.columns) == 1]
    if not alone:
        raise InputError(
            f"cannot plot what {made.method!r} made: it measures no columns; use quality(), which needs budget"
        )
    needed("matplotlib", "holdfast[plot]")
    from matplotlib.figure import Figure

    lines = -(-len(alone) // _ACROSS)
    figure = Figure(figsize=(3.4 * _ACROSS, 2.2 * lines), layout="constrained")
    chances = made.weights.marginals([(axis,) for axis in range(len(alone))])
    for place, one in enumerate(alone):
        axes = figure.add_subplot(lines, _ACROSS, place + 1)
        places = np.arange(one.values.size)
        axes.fill_between(
            places, one.values - one.within, one.values + one.within, color="#2f7ed8", alpha=0.3, step="mid"
        )
        axes.step(places, one.values, where="mid", color="#2f7ed8", label="measured")
        axes.step(places, chances[place,], where="mid", color="#d8572f", label="model")
        axes.set_title(one.columns[0], loc="left", fontsize="medium")
        if not place:
            axes.legend(fontsize="small")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
