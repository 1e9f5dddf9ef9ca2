"""Answers as columns: what data frames, Arrow tables and pictures are made of."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import InputError
from holdfast.privacy.rounding import sure
from holdfast.query.time_reading import DAY, STEPS, clock_of, moment_of

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import polars
    import pyarrow
    from matplotlib.figure import Figure

    from holdfast.session.answer import Answer

PARTS = ("value", "low", "high", "noise", "sampling", "population", "too_few", "table_low", "table_high")
"""What an answer says of each group, under the names that its columns have."""


def columns(answer: Answer) -> dict[str, list[object]]:
    """One list a column, one place a group: the groups' labels, if there are groups, then `PARTS`."""
    size = len(answer)
    made = group_columns(answer)
    for name in PARTS:
        part = getattr(answer, name)
        made[name] = _list(part, size)
    return made


def group_columns(answer: Answer) -> dict[str, list[object]]:
    """The groups' labels: `group`, or a column for each of those that they are made of."""
    if answer.keys is not None and answer.by is not None:
        return {name: [key[place] for key in answer.keys] for place, name in enumerate(answer.by)}
    return {} if answer.labels is None else {"group": list(answer.labels)}


def table_columns(answers: Sequence[Answer], names: Sequence[str]) -> dict[str, list[object]]:
    """Several answers about the same groups, side by side: each by its name, `low_` and `high_` of it."""
    made = group_columns(answers[0]) if answers else {}
    for name, answer in zip(names, answers, strict=True):
        for prefix, part in (("", "value"), ("low_", "low"), ("high_", "high")):
            made[prefix + name] = _list(getattr(answer, part), len(answer))
    return made


def pandas_frame(made: dict[str, list[object]]) -> pandas.DataFrame:
    """A pandas DataFrame of columns."""
    needed("pandas", "pandas")
    import pandas

    return pandas.DataFrame(made)


def polars_frame(made: dict[str, list[object]]) -> polars.DataFrame:
    """A Polars DataFrame of columns."""
    needed("polars", "polars")
    import polars

    return polars.DataFrame(made)


def arrow_table(made: dict[str, list[object]]) -> pyarrow.Table:
    """An Arrow table of columns."""
    needed("pyarrow", "pyarrow")
    import pyarrow

    return pyarrow.table(made)


def picture(answer: Answer, path: Path | str | None = None) -> Figure:
    """A matplotlib figure: each group's value with its interval; written to `path`, if one is given."""
    needed("matplotlib", "holdfast[plot]")
    from matplotlib.figure import Figure

    made = columns(answer)
    labels = list(answer.labels or [""])
    value, low, high = (np.array([number(each) for each in made[name]]) for name in ("value", "low", "high"))
    shown = np.isfinite(low) & np.isfinite(high)
    figure = Figure(figsize=(6.4, 1.2 + 0.28 * len(labels)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(labels))[::-1]
    axes.hlines(places[shown], low[shown], high[shown], color="#2f7ed8", linewidth=4, alpha=0.5)
    few = np.array(made["too_few"], dtype=bool)
    axes.plot(value[shown & ~few], places[shown & ~few], "o", color="#2f7ed8")
    axes.set_yticks(places, labels)
    axes.set_ylim(-0.7, len(labels) - 0.3)
    axes.set_title(answer.question, loc="left", fontsize="medium", wrap=True)
    axes.set_xlabel(f"covers the {answer.target} at {sure(answer.confidence, percent=True)}")
    if isinstance(made["value"][0], datetime.date):
        axes.xaxis_date()
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _list(part: Any, size: int) -> list[object]:
    return list(part.tolist()) if np.ndim(part) else [part] * size


def number(value: Any) -> float:
    """A date by the day count that matplotlib uses; a time of day by its hours."""
    if isinstance(value, datetime.time):
        return (clock_of(value) or 0) / STEPS["hour"]
    if isinstance(value, datetime.date):
        return (moment_of(value) or 0) / DAY
    return math.nan if value is None else float(value)


def needed(module: str, what: str) -> None:
    try:
        import_module(module)
    except ImportError:
        raise InputError(f"expected {module}, got none installed; pip install '{what}'") from None
