"""The questions with diffprivlib's functions of arrays, by whoever holds the rows."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from diffprivlib import BudgetAccountant, models, tools  # type: ignore[import-not-found,unused-ignore]

DELAY, SQUARE, PRODUCT = "bounds=(-60, 300)", "bounds=(0, 90000)", "bounds=(-27000, 90000)"
KNOWN = "x = f.dep_delay.dropna()"
COUNTS = "{{k: tools.count_nonzero(f.{0} == k, epsilon=E) for k in keys('{0}')}}"

ASKED = {
    1: f"tools.nanmean(f.dep_delay, epsilon=E, {DELAY})",
    2: f"by = f.groupby('carrier').dep_delay\n{{c: tools.nanmean(by.get_group(c), epsilon=E, {DELAY}) for c in keys('carrier')}}",
    3: f"tools.quantile(f.dep_delay.dropna(), 0.9, epsilon=E, {DELAY})",
    4: f"tools.median(f.dep_delay.dropna(), epsilon=E, {DELAY})",
    5: f"by = f.dropna(subset='dep_delay').groupby('carrier').dep_delay\n"
       f"{{c: tools.median(by.get_group(c), epsilon=E, {DELAY}) for c in keys('carrier')}}",
    6: "g = f.dropna(subset=['dep_delay', 'arr_delay'])\nx, y = g.dep_delay, g.arr_delay\n"
       f"xy = tools.mean(x * y, epsilon=E / 5, {PRODUCT})\n"
       f"mx, my = tools.mean(x, epsilon=E / 5, {DELAY}), tools.mean(y, epsilon=E / 5, bounds=(-90, 300))\n"
       f"sx, sy = tools.std(x, epsilon=E / 5, {DELAY}), tools.std(y, epsilon=E / 5, bounds=(-90, 300))\n"
       "(xy - mx * my) / (sx * sy)",
    7: f"tools.nanmean(f.dep_delay * f.arr_delay, epsilon=E, {PRODUCT})",
    8: f"by = {COUNTS.format('dest')}\ndict(sorted(by.items(), key=lambda each: each[1])[-10:])",
    9: COUNTS.format("dest"),
    11: COUNTS.format("month"),
    12: "tools.count_nonzero((f.dep_delay > 30) & (f.origin == 'JFK'), epsilon=E) / len(f)",
    13: "a = tools.sum(f.distance, epsilon=E / 2, bounds=(0, 5000))\n"
        "b = tools.nansum(f.air_time, epsilon=E / 2, bounds=(20, 700))\na / b",
    14: "jfk = f[(f.origin == 'JFK') & f.dep_delay.notna()]\ntools.mean(jfk.dep_delay > 30, epsilon=E, bounds=(0, 1))",
    15: f"tools.nanvar(f.dep_delay, epsilon=E, {DELAY})",
    16: f"tools.nanstd(f.dep_delay, epsilon=E, {DELAY})",
    17: f"tools.nanmean(f.dep_delay ** 2, epsilon=E, {SQUARE})",
    19: "tools.count_nonzero(f.dep_delay.notna(), epsilon=E)",
    20: "tools.count_nonzero(f.dep_delay.isna(), epsilon=E) / len(f)",
    21: f"tools.quantile(f.dep_delay.dropna(), 0.999, epsilon=E, {DELAY})",
    22: COUNTS.format("date"),
    23: "tools.count_nonzero(f.date.between('2013-07-01', '2013-07-31'), epsilon=E)",
    24: "tools.count_nonzero(f.dest.str.startswith('S'), epsilon=E)",
    25: "tools.count_nonzero(f.carrier.isin(['AA', 'UA', 'DL']), epsilon=E)",
    26: "kind = np.select([f.dep_delay < 0, f.dep_delay < 15], ['early', 'fine'], 'late')\n"
        "{k: tools.count_nonzero(kind == k, epsilon=E) for k in ('early', 'fine', 'late')}",
    27: f"by = {COUNTS.format('carrier')}\n{{k: n for k, n in by.items() if n > 300}}",
    28: "pairs = [(o, m) for o in keys('origin') for m in keys('month')]\n"
        "{(o, m): tools.count_nonzero((f.origin == o) & (f.month == m), epsilon=E) for o, m in pairs}",
    29: "a = tools.count_nonzero(f.hour < 12, epsilon=E / 3)\n"
        f"b = tools.nanmean(f.dep_delay, epsilon=E / 3, {DELAY})\n"
        "c = tools.sum(f.distance, epsilon=E / 3, bounds=(0, 5000))\n"
        "{'0': a, '1': b, '2': c}",
    30: "tools.quantile(f.distance, 0.25, epsilon=E, bounds=(0, 5000))",
    31: "g = f.merge(weather, on=['origin', 'date', 'hour'])\n"
        f"tools.nanmean(g.dep_delay[g.wind_speed > 20], epsilon=E, {DELAY})",
    32: f"tools.nanmean(f.dep_delay[f.distance > 1000], epsilon=E, {DELAY})",
    33: "bins = np.floor(f.dep_delay / 60)\n{h: tools.count_nonzero(bins == h, epsilon=E) for h in range(-1, 6)}",
    34: "tools.nanmean(f.distance / f.air_time, epsilon=E, bounds=(0, 250))",
    35: f"tools.nanmean(f.dep_delay[f.origin == 'EWR'], epsilon=E, {DELAY})",
    36: "len(f)",
    37: f"by = f.groupby('origin').dep_delay\n{{o: tools.nanmean(by.get_group(o), epsilon=E, {DELAY}) for o in keys('origin')}}",
    38: f"by = {COUNTS.format('carrier')}\ndict([max(by.items(), key=lambda each: each[1])])",
    39: "tools.mean(f.dep_delay[f.dep_delay.between(-15, 60)], epsilon=E, bounds=(-15, 60))",
    41: "means = [tools.mean(f.visits[f.smoker == s], epsilon=E, bounds=(0, 20)) for s in (True, False)]\nmeans[0] - means[1]",
    42: "low, high = [18, 0], [90, 100]\n"
        "fit = models.LinearRegression(epsilon=E, bounds_X=(low, high), bounds_y=(0, 20)).fit(f[['age', 'income']], f.visits)\n"
        "dict(zip(('intercept', 'age', 'income'), (fit.intercept_, *fit.coef_)))",
    43: "pairs = [(s, r) for s in (False, True) for r in keys('region')]\n"
        "counts = [tools.count_nonzero((f.smoker == s) & (f.region == r), epsilon=E) for s, r in pairs]\n"
        "cells = np.array(counts).reshape(2, 3) / len(f)\n"
        "abs(cells - np.outer(cells.sum(axis=1), cells.sum(axis=0))).sum() / 2",
}  # fmt: skip

NOT = {10: "keys that nobody declared have no function", 18: "distinct values have no function"}


def version() -> str:
    """Which diffprivlib answers."""
    return version_of("diffprivlib")


def names(folder: str, number: int) -> dict[str, Any]:
    """The rows, and E: what diffprivlib's accountant gives to each of sixty questions."""
    rows = _rows(folder, "survey" if number in (41, 42, 43) else "flights")
    weather = _rows(folder, "weather")
    declared = {"carrier": 16, "dest": 105}

    def keys(column: str) -> list[Any]:
        assert column not in declared or rows[column].nunique() <= declared[column]
        found: list[Any] = sorted(rows[column].unique())
        return found

    return {
        "f": rows,
        "weather": weather,
        "keys": keys,
        "tools": tools,
        "models": models,
        "np": np,
        "E": _each(),
    }


@cache
def _each() -> float:
    found: float = BudgetAccountant(1.0, 1e-6, slack=9e-7).remaining(60)[0]
    return found


@cache
def _rows(folder: str, name: str) -> Any:
    return pd.read_csv(Path(folder) / f"{name}.csv")


def pairs(said: Any) -> Any:
    """Numbers and dictionaries are said already."""
    return said
