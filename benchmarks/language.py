"""Every statistic on 1e6 rows in memory beside its plain DuckDB query, which has no noise; in turns, in one run.

Each question is new (its threshold was never asked), planned, charged, answered and stored. *Times* is the ratio of the
best calls; *processor* the ratio of processor time over all threads, which a busy machine does not distort, and which
the goal of 10 is about. Regression by several numbers and tests are apart: DuckDB has no word for them.

The second table is of a session that reads at most 20,000 rows for an answer (`rows=20_000`; fewer where there are
few), on 1e5 to 1e8 rows in memory: microseconds of a new question, the median of forty, in the best of three turns.
A scan of ten times the rows takes ten times as long. At 1e6 rows the columns fit in a cache, so the goal of being flat
is about 1e8 rows against 1e7, as in *answers*.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from statistics import median
from typing import Any

import numpy as np

import holdfast as hf

ROWS, TURNS, GOAL = 10**6, 5, 10.0
SIZES, SAMPLED_TURNS, CALLS, FLAT = (10**5, 10**6, 10**7, 10**8), 3, 40, 1.5
READ = 20_000
WHERE = "age > {k}"
ASKED = {
    "count": ("s.count('{w}')", "SELECT count(*) FROM t WHERE {w}"),
    "fraction": ("s.fraction('{w} AND visits < 4')", "SELECT avg(({w} AND visits < 4)::int) FROM t"),
    "share": ("s.fraction('smoker', given='{w}')", "SELECT avg(smoker::int) FROM t WHERE {w}"),
    "sum": ("s.sum('visits', '{w}')", "SELECT sum(visits) FROM t WHERE {w}"),
    "mean of whole numbers": ("s.mean('visits', '{w}')", "SELECT avg(visits) FROM t WHERE {w}"),
    "mean of real numbers": ("s.mean('cost', '{w}')", "SELECT avg(cost) FROM t WHERE {w}"),
    "mean by groups": (
        "s.mean('visits', '{w}', by='region')", "SELECT region, avg(visits) FROM t WHERE {w} GROUP BY region"
    ),
    "ratio": ("s.ratio('cost', 'visits', '{w}')", "SELECT sum(cost) / sum(visits) FROM t WHERE {w}"),
    "variance": ("s.variance('cost', '{w}')", "SELECT variance(cost) FROM t WHERE {w}"),
    "std by groups": (
        "s.std('visits', '{w}', by='region')", "SELECT region, stddev(visits) FROM t WHERE {w} GROUP BY region"
    ),
    "covariance": ("s.covariance('age', 'cost', '{w}')", "SELECT covar_pop(age, cost) FROM t WHERE {w}"),
    "correlation": ("s.correlation('visits', 'cost', '{w}')", "SELECT corr(visits, cost) FROM t WHERE {w}"),
    "line": (
        "s.sql('SELECT regr_slope(cost, visits) FROM t WHERE {w}')",
        "SELECT regr_slope(cost, visits) FROM t WHERE {w}",
    ),
    "difference": ("s.difference('smoker', '{w}')", "SELECT avg(smoker::int) - avg(({w})::int) FROM t"),
    "difference of means": (
        "s.difference('{w}', 'NOT ({w})', of='cost')",
        "SELECT avg(cost) FILTER (WHERE {w}) - avg(cost) FILTER (WHERE NOT ({w})) FROM t",
    ),
    "largest groups": (
        "s.top('visits', 3, where='{w}', edges=list(range(21)))",
        "SELECT visits, count(*) FROM t WHERE {w} GROUP BY visits ORDER BY 2 DESC LIMIT 3",
    ),
    "median": ("s.quantile('cost', 0.5, '{w}')", "SELECT median(cost) FROM t WHERE {w}"),
    "median by groups": (
        "s.quantile('visits', 0.5, '{w}', by='region')",
        "SELECT region, median(visits) FROM t WHERE {w} GROUP BY region",
    ),
    "three quantiles": (
        "s.quantile('cost', [0.25, 0.5, 0.75], '{w}')", "SELECT quantile_cont(cost, [0.25, 0.5, 0.75]) FROM t WHERE {w}"
    ),
    "greatest": ("s.max('cost', '{w}')", "SELECT quantile_disc(cost, 0.999) FROM t WHERE {w}"),
    "distinct values": ("s.distinct('visits', '{w}')", "SELECT count(DISTINCT visits) FROM t WHERE {w}"),
    "running count": (
        "s.count('{w}', by='visits', cumulative=True)",
        "SELECT visits, sum(count(*)) OVER (ORDER BY visits) FROM t WHERE {w} GROUP BY visits",
    ),
}  # fmt: skip
SAMPLED = (
    "count", "fraction", "share", "sum", "mean of whole numbers", "mean of real numbers", "ratio", "variance",
    "covariance", "correlation", "difference", "difference of means",
)  # fmt: skip
"""Those that a sample answers: one number each, and no quantile."""


def rows(quick: bool = False) -> list[dict[str, object]]:
    """One row for each statistic beside DuckDB, then one for each that is sampled."""
    return beside_duckdb(quick) + flat(
        *(((10**3, 10**4, 10**5), 1, 2) if quick else (SIZES, SAMPLED_TURNS, CALLS))
    )


def flat(sizes: tuple[int, ...], turns: int, calls: int) -> list[dict[str, object]]:
    """Sampled statistics by the number of rows: microseconds, and the largest table's time over the smaller ones'."""
    asked = {n: _sampling_session(n, turns * calls * len(SAMPLED)) for n in sizes}
    texts = (f"age > {30 + place % 40} AND cost < {500 + place / 4}" for place in count())  # each is new
    spent: dict[tuple[str, int], list[float]] = {}
    for _ in range(turns):
        for name in SAMPLED:
            for n, session in asked.items():
                spent.setdefault((name, n), []).append(_microseconds(name, session, texts, calls))
    return [_flat_row(name, {n: min(spent[name, n]) for n in sizes}) for name in SAMPLED]


def _microseconds(name: str, session: hf.Session, texts: Iterator[str], calls: int) -> float:
    """The median time of a question."""
    times = []
    for _ in range(calls):
        python = ASKED[name][0].format(w=next(texts))
        start = time.perf_counter()
        answer = eval(python, {"s": session})  # noqa: S307  # the lines above
        times.append(time.perf_counter() - start)
        assert answer.rows_read <= READ, f"{name} read {answer.rows_read:,} rows"
    return median(times) * 1e6


def _flat_row(name: str, times: dict[int, float]) -> dict[str, object]:
    *_, small, middle, large = times.values()
    return {
        "sampled": name,
        **{f"n = {n:.0e}": spent for n, spent in times.items()},
        "largest / hundredth": large / small,
        "largest / tenth": large / middle,
        "goal": f"<= {FLAT:g}",
        "met": large / middle <= FLAT,
    }


def _sampling_session(n: int, queries: int) -> hf.Session:
    """A session that reads a sample, on `n` rows: a million people, as often as it takes."""
    frame, schema = _people(min(n, 10**6))
    names = [name for name in frame if name != "region"]
    columns = {name: np.tile(frame[name].to_numpy(), n // len(frame)) for name in names}
    table = hf.open(columns, hf.Schema(**{name: schema[name] for name in names}))
    return table.session(epsilon=1, delta=1e-6, queries=queries, rows=READ)


def beside_duckdb(quick: bool) -> list[dict[str, object]]:
    """One row for each statistic: milliseconds, and both ratios."""
    columns, schema = _people(10**4 if quick else ROWS)
    duckdb: Any = import_module("duckdb")
    connection = duckdb.connect()
    connection.register("given", columns)
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    session = hf.open(columns, schema).session(rho=1e6, queries=10_000, target="table")
    return [_row(name, session, connection, 1 if quick else TURNS) for name in ASKED]


def _row(name: str, session: hf.Session, connection: Any, turns: int) -> dict[str, object]:
    ours, theirs = ASKED[name]
    spent: dict[str, list[tuple[float, float]]] = {"holdfast": [], "duckdb": []}
    for turn in range(turns + 1):
        where = WHERE.format(k=30 + turn)
        python = ours.format(w=where)[:-1] + ", rho=0.01)"
        statement = theirs.format(w=where)
        pair = (
            _timed(lambda: eval(python, {"s": session})),  # noqa: B023, S307  # the lines above
            _timed(lambda: connection.sql(statement).fetchall()),  # noqa: B023
        )
        if turn:  # the first touches every page
            spent["holdfast"].append(pair[0])
            spent["duckdb"].append(pair[1])
    (wall, cpu), (their_wall, their_cpu) = (
        (min(each[0] for each in times), min(each[1] for each in times)) for times in spent.values()
    )
    return {
        "statistic": name,
        "holdfast ms": wall * 1e3,
        "duckdb ms": their_wall * 1e3,
        "times": wall / their_wall,
        "processor": cpu / their_cpu,
        "goal": f"<= {GOAL:g}",
        "met": cpu / their_cpu <= GOAL,
    }


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, max(time.process_time() - cpu, 1e-6)


def _people(n: int) -> tuple[Any, hf.Schema]:
    pandas: Any = import_module("pandas")
    draw = np.random.default_rng(3)
    age = draw.integers(18, 90, n)
    visits = np.clip(draw.poisson(1 + age / 30), 0, 20)
    frame = pandas.DataFrame({
        "age": age,
        "visits": visits,
        "smoker": draw.random(n) < 0.3,
        "cost": np.clip(60.0 * visits + draw.normal(0, 40, n), 0, 2000),
        "region": draw.choice(["north", "south", "west"], n),
    })  # fmt: skip
    schema = hf.Schema(
        age=hf.Integer(18, 90),
        visits=hf.Integer(0, 20),
        smoker=hf.Boolean(),
        cost=hf.Real(0, 2000),
        region=hf.Category("north", "south", "west"),
    )
    return frame, schema
