"""The questions in SmartNoise's SQL."""

from __future__ import annotations

import math
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from snsql import Privacy, from_connection  # type: ignore[import-not-found,unused-ignore]
from snsql.sql.odometer import OdometerHeterogeneous  # type: ignore[import-not-found,unused-ignore]

EPSILON, DELTA, QUESTIONS = 1.0, 1e-6, 60

WHEN = "CASE WHEN dep_delay < 0 THEN 'early' WHEN dep_delay < 15 THEN 'fine' ELSE 'late' END"
ASKED = {
    1: "sql('SELECT AVG(dep_delay) FROM t.flights')",
    2: "sql('SELECT carrier, AVG(dep_delay) FROM t.flights GROUP BY carrier')",
    3: "sql('SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY dep_delay) FROM t.flights')",
    4: "sql('SELECT MEDIAN(dep_delay) FROM t.flights')",
    5: "sql('SELECT carrier, MEDIAN(dep_delay) FROM t.flights GROUP BY carrier')",
    6: "sql('SELECT CORR(dep_delay, arr_delay) FROM t.flights')",
    7: "sql('SELECT AVG(dep_delay * arr_delay) FROM t.flights')",
    8: "sql('SELECT dest, COUNT(*) AS n FROM t.flights GROUP BY dest ORDER BY n DESC LIMIT 10')",
    9: "sql('SELECT dest, COUNT(*) FROM t.flights GROUP BY dest')",
    10: "sql('SELECT place, COUNT(*) FROM t.flights GROUP BY place')",
    11: "sql('SELECT month_, COUNT(*) FROM t.flights GROUP BY month_')",
    12: "sql(\"SELECT COUNT(*) FROM t.flights WHERE dep_delay > 30 AND origin = 'JFK'\") / ROWS",
    13: "sql('SELECT SUM(distance) / SUM(air_time) FROM t.flights')",
    14: "both = \"SELECT COUNT(*) FROM t.flights WHERE dep_delay > 30 AND origin = 'JFK'\"\n"
        "jfk = \"SELECT COUNT(dep_delay) FROM t.flights WHERE origin = 'JFK'\"\n"
        "sql(both, 1 / 2) / sql(jfk, 1 / 2)",
    15: "sql('SELECT VARIANCE(dep_delay) FROM t.flights')",
    16: "sql('SELECT STDDEV(dep_delay) FROM t.flights')",
    17: "sql('SELECT AVG(dep_delay * dep_delay) FROM t.flights')",
    18: "sql('SELECT COUNT(DISTINCT tailnum) FROM t.flights')",
    19: "sql('SELECT COUNT(dep_delay) FROM t.flights')",
    20: "1 - sql('SELECT COUNT(dep_delay) FROM t.flights') / ROWS",
    21: "sql('SELECT MAX(dep_delay) FROM t.flights')",
    22: "sql('SELECT date_, COUNT(*) FROM t.flights GROUP BY date_')",
    23: "sql(\"SELECT COUNT(*) FROM t.flights WHERE date_ >= '2013-07-01' AND date_ <= '2013-07-31'\")",
    24: "sql(\"SELECT COUNT(*) FROM t.flights WHERE dest LIKE 'S%'\")",
    25: "sql(\"SELECT COUNT(*) FROM t.flights WHERE carrier IN ('AA', 'UA', 'DL')\")",
    26: f"sql(\"SELECT {WHEN} AS c, COUNT(*) FROM t.flights GROUP BY {WHEN}\")",
    27: "sql('SELECT carrier, COUNT(*) AS n FROM t.flights GROUP BY carrier HAVING n > 300')",
    28: "sql('SELECT origin, month_, COUNT(*) FROM t.flights GROUP BY origin, month_')",
    29: "a = sql('SELECT COUNT(*) FROM t.flights WHERE hour_ < 12', 1 / 3)\n"
        "b = sql('SELECT AVG(dep_delay) FROM t.flights', 1 / 3)\n"
        "c = sql('SELECT SUM(distance) FROM t.flights', 1 / 3)\n"
        "{'0': a, '1': b, '2': c}",
    30: "sql('SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY distance) FROM t.flights')",
    31: "sql('SELECT AVG(dep_delay) FROM t.flights JOIN t.weather USING (origin, date_, hour_) WHERE wind_speed > 20')",
    32: "sql('SELECT AVG(dep_delay) FROM t.flights WHERE distance > 1000')",
    33: "sql('SELECT FLOOR(dep_delay / 60) AS h, COUNT(*) FROM t.flights GROUP BY FLOOR(dep_delay / 60)')",
    34: "sql('SELECT AVG(distance / air_time) FROM t.flights')",
    35: "sql(\"SELECT AVG(dep_delay) FROM t.flights WHERE origin = 'EWR'\")",
    36: "sql('SELECT COUNT(*) FROM t.flights')",
    37: "sql('SELECT origin, AVG(dep_delay) AS m FROM t.flights GROUP BY origin ORDER BY m DESC')",
    38: "sql('SELECT carrier, COUNT(*) AS n FROM t.flights GROUP BY carrier ORDER BY n DESC LIMIT 1')",
    39: "sql('SELECT AVG(dep_delay) FROM t.flights WHERE dep_delay >= -15 AND dep_delay <= 60')",
    41: "by = sql('SELECT smoker, AVG(visits) FROM t.survey GROUP BY smoker')\nby['1',] - by['0',]",
    42: "sql('SELECT REGR_SLOPE(visits, age) FROM t.survey')",
    43: "by = sql('SELECT smoker, region, COUNT(*) FROM t.survey GROUP BY smoker, region')\n"
        "cells = np.array([by[key] for key in sorted(by)]).reshape(2, 3) / ROWS\n"
        "abs(cells - np.outer(cells.sum(axis=1), cells.sum(axis=0))).sum() / 2",
}  # fmt: skip

NOT: dict[int, str] = {}
"""All were tried: what cannot be asked is refused by SmartNoise itself."""


def version() -> str:
    """Which SmartNoise SQL answers."""
    return version_of("smartnoise-sql")


def names(folder: str, number: int) -> dict[str, Any]:
    """`sql` spends a sixtieth of the budget, as SmartNoise's own odometer counts it."""
    name = "survey" if number in (41, 42, 43) else "flights"
    rows = _rows(folder, name)

    def sql(statement: str, share: float = 1.0) -> Any:
        given = _each()
        cost, _ = _reader(folder, name, given).get_privacy_cost(statement)
        head, *found = _reader(folder, name, given * given / cost * share).execute(statement)
        if len(head) == 1:
            return found[0][0]
        return {tuple(str(part) for part in row[:-1]): row[-1] for row in found}

    return {"sql": sql, "np": np, "ROWS": len(rows)}


@cache
def _each() -> float:
    """The epsilon of one of sixty questions."""
    low, high = 0.0, EPSILON
    for _ in range(50):
        middle = (low + high) / 2
        odometer = OdometerHeterogeneous(Privacy(epsilon=EPSILON, delta=DELTA))
        for _ in range(QUESTIONS):
            odometer.spend(Privacy(epsilon=middle, delta=DELTA / 2 / QUESTIONS))
        low, high = (middle, high) if odometer.spent[0] <= EPSILON else (low, middle)
    return low


@cache
def _rows(folder: str, name: str) -> Any:
    rows = pd.read_csv(Path(folder) / f"{name}.csv")
    reserved = {"date": "date_", "month": "month_", "hour": "hour_"}
    return rows.rename(columns=reserved).astype({"smoker": int} if name == "survey" else {})


RANGES = {
    "month_": (1, 12), "hour_": (0, 23), "dep_delay": (-60, 300), "arr_delay": (-90, 300), "distance": (0, 5000),
    "air_time": (20, 700), "age": (18, 90), "income": (0, 100), "visits": (0, 20),
}  # fmt: skip


def _reader(folder: str, name: str, epsilon: float) -> Any:
    rows = _rows(folder, name)
    table: dict[str, Any] = {
        "row_privacy": True,
        "rows": len(rows),
        "clamp_counts": False,
        "censor_dims": True,
    }
    for column in rows:
        numeric = column in RANGES and column not in ("month_", "hour_")
        table[column] = {"type": "string"}
        if column in ("month_", "hour_", "smoker"):
            table[column] = {"type": "int"}
        if numeric:
            low, high = RANGES[column]
            kind = "float" if math.isnan(rows[column].min()) or rows[column].dtype.kind == "f" else "int"
            table[column] = {"type": kind, "lower": low, "upper": high}
    privacy = Privacy(epsilon=epsilon, delta=DELTA / 2 / QUESTIONS)
    return from_connection(rows, privacy=privacy, metadata={"": {"t": {name: table}}})


def pairs(said: Any) -> Any:
    """`sql` says numbers and groups already."""
    return said
