"""The figures of docs/evidence.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evidence.cells import BETA, BREAKING_ROWS
from evidence.summary import Summary
from evidence.tables import gain

_COLOURS = {"naive": "#c1666b", "gaussian": "#2a6f97", "votes": "#e09f3e"}


def coverage(summaries: list[Summary], path: Path) -> None:
    """For each attack and mechanism the share of games with a miss, against the allowed one."""
    from matplotlib.figure import Figure

    attacks = list(dict.fromkeys(s.cell.attack for s in summaries))
    names = list(dict.fromkeys(s.cell.answerer for s in summaries))
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    for place, name in enumerate(names):
        found = {s.cell.attack: s for s in summaries if s.cell.answerer == name}
        x = np.arange(len(attacks)) + (place - len(names) / 2) * 0.1
        rate = np.array([found[a].misses / found[a].runs for a in attacks])
        span = np.array([[found[a].low, found[a].high] for a in attacks]).T
        gaps = np.maximum(0.0, np.array([rate - span[0], span[1] - rate]))
        axes.errorbar(x, rate, yerr=gaps, fmt="o", markersize=3, label=name, color=_COLOURS.get(name))
    axes.axhline(BETA, color="black", linewidth=0.8, linestyle="--", label="allowed")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(-0.001, 1.3)
    axes.set_xticks(np.arange(len(attacks)), attacks, rotation=20, ha="right", fontsize=8)
    axes.set_ylabel("games with a miss")
    figure.legend(loc="outside upper center", fontsize=7, ncols=len(names) + 1)
    figure.savefig(path, dpi=120)


def breaking(summaries: list[Summary], path: Path) -> None:
    """The last error of the single-adaptive analyst, and what each mechanism claims."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(s.cell.answerer for s in summaries):
        row = sorted((s for s in summaries if s.cell.answerer == name), key=lambda s: s.cell.queries)
        k, colour = [s.cell.queries for s in row], _COLOURS[name]
        axes.errorbar(
            k, [s.last for s in row], [2 * s.last_error for s in row], fmt="o-", color=colour, label=name
        )
        axes.plot(k, [s.width for s in row], linestyle=":", color=colour, label=f"{name}: claimed width")
    grid = np.geomspace(min(s.cell.queries for s in summaries), max(s.cell.queries for s in summaries), 50)
    axes.plot(
        grid, [gain(k / BREAKING_ROWS) for k in grid], color="black", linewidth=0.8, label="theory, naive"
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"questions k (n = {BREAKING_ROWS})")
    axes.set_ylabel("error of the last answer")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)
