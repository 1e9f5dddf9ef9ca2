"""The questions in OpenDP's language: Polars, with `dp` where noise is added."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found,unused-ignore]
import polars as pl

dp.enable_features("contrib", "honest-but-curious")
RHO, DELTA, QUESTIONS = 0.02436, 1e-6, 60
"""What a session of epsilon 1 at delta 1e-6 has; OpenDP counts the same rho for adding or removing a row."""

KNOWN = "known = pl.col.dep_delay.fill_null(0).fill_nan(0)"
DELAYED = "query().filter(pl.col.dep_delay.is_not_null())"
MEAN = "select(pl.col.dep_delay.fill_null(0).fill_nan(0).dp.mean((-60, 300)))"
QUANTILE = "fill_null(0).fill_nan(0).dp.quantile({rank}, candidates=list(range({low}, {high})))"
MEDIAN = f"pl.col.dep_delay.{QUANTILE.format(rank=0.5, low=-60, high=301)}"
SQUARE = "(pl.col.dep_delay * pl.col.dep_delay).fill_null(0).fill_nan(0).alias('square').dp.sum((0, 90000))"
PRODUCT = "(pl.col.dep_delay * pl.col.arr_delay).fill_null(0).fill_nan(0).alias('xy').dp.sum((-27000, 90000))"
SUM = "pl.col.dep_delay.fill_null(0).fill_nan(0).dp.sum((-60, 300))"
VARIANCE = f"n, sx, sxx = {DELAYED}.select(dp.len(), {SUM}, {SQUARE}).release().collect().row(0)\n(sxx - sx * sx / n) / (n - 1)"

ASKED = {
    1: f"{DELAYED}.{MEAN}",
    2: f"{DELAYED}.group_by('carrier').agg({MEAN[7:-1]}).with_keys(keys('carrier'))",
    3: f"{DELAYED}.select(pl.col.dep_delay.{QUANTILE.format(rank=0.9, low=-60, high=301)})",
    4: f"{DELAYED}.select({MEDIAN})",
    5: f"{DELAYED}.group_by('carrier').agg({MEDIAN}).with_keys(keys('carrier'))",
    6: "both = query().filter(pl.col.dep_delay.is_not_null()).filter(pl.col.arr_delay.is_not_null())\n"
       f"y = pl.col.arr_delay.fill_null(0).fill_nan(0)\n"
       f"yy = (pl.col.arr_delay * pl.col.arr_delay).fill_null(0).fill_nan(0).alias('yy').dp.sum((0, 90000))\n"
       f"five = both.select(dp.len(), {SUM}, y.dp.sum((-90, 300)), {SQUARE}, yy, {PRODUCT})\n"
       "n, sx, sy, sxx, syy, sxy = five.release().collect().row(0)\n"
       "(sxy - sx * sy / n) / ((sxx - sx * sx / n) * (syy - sy * sy / n)) ** 0.5",
    7: "both = query().filter(pl.col.dep_delay.is_not_null()).filter(pl.col.arr_delay.is_not_null())\n"
       f"n, sxy = both.select(dp.len(), {PRODUCT}).release().collect().row(0)\nsxy / n",
    8: "query().group_by('dest').agg(dp.len()).with_keys(keys('dest')).release().collect().sort('len').tail(10)",
    9: "query().group_by('dest').agg(dp.len()).with_keys(keys('dest'))",
    10: "query().group_by('place').agg(dp.len())",
    11: "query().group_by('month').agg(dp.len()).with_keys(keys('month'))",
    12: "query().filter(pl.col.dep_delay > 30).filter(pl.col.origin == 'JFK').select(dp.len()).release().collect().item() / ROWS",
    13: "n = pl.col.air_time.fill_null(0).fill_nan(0).dp.sum((0, 700))\n"
        "a, b = query().select(pl.col.distance.fill_null(0).dp.sum((0, 5000)), n).release().collect().row(0)\na / b",
    14: "jfk = query().filter(pl.col.origin == 'JFK').filter(pl.col.dep_delay.is_not_null())\n"
        "jfk.select((pl.col.dep_delay > 30).cast(int).fill_null(0).dp.mean((0, 1)))",
    15: VARIANCE,
    16: VARIANCE.replace("(sxx", "((sxx") + ") ** 0.5",
    17: f"n, sxx = {DELAYED}.select(dp.len(), {SQUARE}).release().collect().row(0)\nsxx / n",
    18: "query().select(pl.col.tailnum.n_unique().dp.noise())",
    19: f"{DELAYED}.select(dp.len())",
    20: "query().filter(pl.col.dep_delay.is_null()).select(dp.len()).release().collect().item() / ROWS",
    21: f"{DELAYED}.select(pl.col.dep_delay.{QUANTILE.format(rank=0.999, low=-60, high=301)})",
    22: "query().group_by('date').agg(dp.len()).with_keys(keys('date'))",
    23: "query().filter(pl.col.date >= '2013-07-01').filter(pl.col.date <= '2013-07-31').select(dp.len())",
    25: "query().filter((pl.col.carrier == 'AA') | (pl.col.carrier == 'UA') | (pl.col.carrier == 'DL')).select(dp.len())",
    26: "bins = pl.col.dep_delay.cut([0, 15], labels=['early', 'fine', 'rest'], left_closed=True)\n"
        "by = {a: n for a, n in query().group_by(bins).agg(dp.len()).release().collect().iter_rows()}\n"
        "{'early': by['early'], 'fine': by['fine'], 'late': by['rest'] + by.get(None, 0)}",
    27: "query().group_by('carrier').agg(dp.len()).with_keys(keys('carrier')).release().collect().filter(pl.col.len > 300)",
    28: "query().group_by('origin', 'month').agg(dp.len()).with_keys(keys('origin', 'month'))",
    29: "a = query(1 / 3).filter(pl.col.hour < 12).select(dp.len()).release().collect().item()\n"
        f"b = query(1 / 3).filter(pl.col.dep_delay.is_not_null()).{MEAN}.release().collect().item()\n"
        "c = query(1 / 3).select(pl.col.distance.fill_null(0).dp.sum((0, 5000))).release().collect().item()\n"
        "{'0': a, '1': b, '2': c}",
    30: f"query().select(pl.col.distance.{QUANTILE.format(rank=0.25, low=0, high=5001).replace('.fill_nan(0)', '')})",
    32: f"query().filter(pl.col.distance > 1000).filter(pl.col.dep_delay.is_not_null()).{MEAN}",
    33: "bins = pl.col.dep_delay.cut([0, 60, 120, 180, 240, 300], labels=[str(h) for h in range(-1, 6)], left_closed=True)\n"
        f"{DELAYED}.group_by(bins).agg(dp.len())",
    34: "known = query().filter(pl.col.air_time.is_not_null())\n"
        "known.select((pl.col.distance / pl.col.air_time).fill_null(0).fill_nan(0).dp.mean((0, 250)))",
    35: f"query().filter(pl.col.origin == 'EWR').filter(pl.col.dep_delay.is_not_null()).{MEAN}",
    36: "query().select(dp.len())",
    37: f"{DELAYED}.group_by('origin').agg({MEAN[7:-1]}).with_keys(keys('origin')).release().collect().sort('dep_delay')",
    38: "query().group_by('carrier').agg(dp.len()).with_keys(keys('carrier')).release().collect().sort('len').tail(1)",
    39: "near = query().filter(pl.col.dep_delay >= -15).filter(pl.col.dep_delay <= 60)\n"
        "near.select(pl.col.dep_delay.fill_null(0).fill_nan(0).dp.mean((-15, 60)))",
    41: "by = query().group_by('smoker').agg(pl.col.visits.fill_null(0).dp.mean((0, 20))).with_keys(keys('smoker'))\n"
        "means = dict(by.release().collect().iter_rows())\nmeans[True] - means[False]",
    42: "a, i, v = (pl.col(name).fill_null(0) for name in ('age', 'income', 'visits'))\n"
        "pairs = [(a * a, 8100), (a * i, 9000), (i * i, 10000), (a * v, 1800), (i * v, 2000), (a, 90), (i, 100), (v, 20)]\n"
        "sums = [pair.alias(f'p{j}').dp.sum((0, high)) for j, (pair, high) in enumerate(pairs)]\n"
        "n, aa, ai, ii, av, iv, sa, si, sv = query().select(dp.len(), *sums).release().collect().row(0)\n"
        "found = np.linalg.solve([[n, sa, si], [sa, aa, ai], [si, ai, ii]], [sv, av, iv])\n"
        "dict(zip(('intercept', 'age', 'income'), found))",
    43: "by = query().group_by('smoker', 'region').agg(dp.len()).with_keys(keys('smoker', 'region'))\n"
        "cells = np.array(by.release().collect().sort('smoker', 'region')['len']).reshape(2, 3) / ROWS\n"
        "abs(cells - np.outer(cells.sum(axis=1), cells.sum(axis=0))).sum() / 2",
}  # fmt: skip
NOT = {
    24: "no string functions in conditions",
    31: "no joins behind the context",
    40: "Polars' own error",
}


def version() -> str:
    """Which OpenDP answers."""
    return version_of("opendp")


def names(folder: str, number: int) -> dict[str, Any]:
    """What the lines may use: a fresh context with a sixtieth of the budget, and declared keys."""
    rows = _rows(folder, "survey" if number in (41, 42, 43) else "flights")
    count = rows.height

    def query(share: float = 1.0) -> Any:
        loss = dp.loss_of(rho=RHO / QUESTIONS * share, delta=DELTA / QUESTIONS / 2 * share)
        margin = dp.polars.Margin(by=[], max_length=count, max_groups=1)
        unit = dp.unit_of(contributions=1)
        return dp.Context.compositor(
            data=rows.lazy(), privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=[margin]
        ).query()

    def keys(*columns: str) -> Any:
        found = pl.LazyFrame({columns[0]: _declared(rows, columns[0])})
        for column in columns[1:]:
            found = found.join(pl.LazyFrame({column: _declared(rows, column)}), how="cross")
        return found

    return {"query": query, "keys": keys, "dp": dp, "pl": pl, "np": np, "ROWS": count}


@cache
def _rows(folder: str, name: str) -> Any:
    return pl.read_csv(Path(folder) / f"{name}.csv", infer_schema_length=None)


def _declared(rows: Any, column: str) -> list[Any]:
    """The keys that an owner would declare; those in the rows are all that the truth has."""
    found: list[Any] = rows[column].unique().sort().to_list()
    return found


def pairs(said: Any) -> Any:
    """A release, or a frame that came of one: the last column by the others."""
    frame = said.release().collect() if hasattr(said, "release") else said
    if not hasattr(frame, "iter_rows"):
        return frame
    if frame.width == 1:
        return frame.item()
    last = [name for name in frame.columns if name in ("len", "dep_delay")][-1]
    keyed = frame.select([name for name in frame.columns if name != last] + [last])
    return {tuple(row[:-1]): row[-1] for row in keyed.iter_rows()}
