"""Theorem 76: the interval holds the statistic whenever the totals are in their box, tried on small tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.planning.question import (
    Difference,
    Fraction,
    Interval,
    Paired,
    Ratio,
    Regression,
    Spread,
    Total,
)
from holdfast.planning.sql_question import Sql
from holdfast.query import propagation
from holdfast.query.propagation import extremes, foreseen, propagated
from holdfast.query.statistic import LINES, Workload, workload

SCHEMA = hf.Schema(x=hf.Integer(-3, 4), y=hf.Real(0.0, 2.0), t=hf.Boolean())
N = 12
Columns = dict[str, Any]


def _share(columns: Columns) -> float:
    return float(columns["t"][columns["x"] > 0].mean())


ASKED: dict[str, tuple[Interval, Callable[[Columns], float]]] = {
    "share": (Fraction(where="t", given="x > 0"), _share),
    "mean of a truth value": (Total(kind="mean", column="t"), lambda c: c["t"].mean()),
    "ratio": (Ratio(column="x", divisor="y"), lambda c: c["x"].sum() / c["y"].sum()),
    "variance": (Spread(kind="variance", column="x"), lambda c: c["x"].var()),
    "variance of a real": (Spread(kind="variance", column="y"), lambda c: c["y"].var()),
    "sample variance": (Spread(kind="variance", column="x", sample=True), lambda c: c["x"].var(ddof=1)),
    "std": (Spread(kind="std", column="y"), lambda c: c["y"].std()),
    "covariance": (Paired(kind="covariance", column="x", other="y"), lambda c: np.cov(c["x"], c["y"], ddof=0)[0, 1]),
    "correlation": (Paired(kind="correlation", column="x", other="y"), lambda c: np.corrcoef(c["x"], c["y"])[0, 1]),
    "contrast": (
        Difference(where="t", other="NOT t", of="y"), lambda c: c["y"][c["t"]].mean() - c["y"][~c["t"]].mean()
    ),
    "contrast of shares": (
        Difference(where="x > 0", other="x < 2", of="t"), lambda c: _share(c) - c["t"][c["x"] < 2].mean()
    ),
}  # fmt: skip


def tables(count: int) -> list[Columns]:
    draw = np.random.default_rng(7)
    found = []
    for _ in range(count):
        shape = draw.uniform(0.2, 1.0)
        x = np.append(np.round(draw.normal(0.5, 2 * shape, N - 3)).clip(-3, 4), (1, 2, -1)).astype(int)
        y = np.append(draw.uniform(0, 2 * shape, N - 3), (0.3, 1.2, 1.9))
        found.append({"x": x, "y": y, "t": np.append(draw.random(N - 3) < shape, (True, False, False))})
    return found


def totals_of(made: Workload, columns: Columns) -> list[np.ndarray]:
    codes = {"x": (columns["x"] + 3).astype(np.uint8), "y": columns["y"], "t": columns["t"].astype(np.uint8)}
    return [measurement.totals(codes).astype(float) for measurement in made.measurements]


def misses(name: str, columns: Columns, half: float, seed: int, ends: Any = propagated) -> int:
    """How often the interval of totals that are off by up to their half-widths misses the statistic."""
    asked, truth = ASKED[name]
    made = workload(asked.read(SCHEMA).statistics[0], SCHEMA, N)
    exact, draw = totals_of(made, columns), np.random.default_rng(seed)
    halves = [half * scale for scale in made.scales]
    corners = list(itertools.product((-1.0, 1.0), repeat=len(exact)))
    pushes = np.vstack(
        [corners, draw.uniform(-1, 1, (16, len(exact)))]
    ).T  # all at once, as if they were groups
    told = [total + h * push for total, h, push in zip(exact, halves, pushes, strict=True)]
    low, high = ends(made, [(total - h, total + h) for total, h in zip(told, halves, strict=True)], N)
    true = truth(columns)
    return int(np.count_nonzero((true < low) | (true > high)))


@pytest.mark.parametrize("name", ASKED)
def test_it_holds_whenever_the_totals_are_in_their_box(name: str) -> None:
    for seed, columns in enumerate(tables(12)):
        for half in (0.01, 0.3, 1.0, 4.0):
            assert misses(name, columns, half, seed) == 0


COUNTED = hf.Schema(x=hf.Integer(-4, 4), y=hf.Integer(-4, 4))
SPREAD = {"x": np.array([4, 1, 1, 1, 1, 0]), "y": -np.array([4, 1, 1, 1, 1, 0])}


@pytest.mark.parametrize(
    ("asked", "truth"),
    [
        (Spread(kind="variance", column="x"), SPREAD["x"].var()),
        (Paired(kind="covariance", column="x", other="y"), -SPREAD["x"].var()),
    ],
)
def test_the_count_that_is_worst_may_lie_between_its_ends(
    asked: Interval, truth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums are known and the count is not: 6 rows vary more than 4 or 12 would. The twin tries the ends."""
    made = workload(asked.read(COUNTED).statistics[0], COUNTED, N)
    codes = {name: (held + 4).astype(np.uint8) for name, held in SPREAD.items()}
    box = [(total, total) for total in (m.totals(codes).astype(float) for m in made.measurements)]
    box[0] = np.array([4.0]), np.array([12.0])
    low, high = propagated(made, box, N)
    assert low[0] <= truth <= high[0]

    def at_the_ends(count: Any, linear: Any, square: Any) -> Any:
        places = 1 / np.array(count)
        return (linear * places - square * places**2).min(axis=0)

    monkeypatch.setattr(propagation, "_least", at_the_ends)
    low, high = propagated(made, box, N)
    assert not low[0] <= truth <= high[0]


@pytest.mark.parametrize("name", ["share", "variance", "covariance", "correlation", "contrast"])
def test_a_linear_reading_is_noticed(name: str) -> None:
    """The twin: the value, and to first order what one total at a time can change in it, added up as if independent."""

    def linear(made: Workload, box: Any, rows: int) -> Any:
        told = [((low + high) / 2,) * 2 for low, high in box]
        value = np.mean(propagated(made, told, rows), axis=0)
        squared = 0.0
        for place, (low, high) in enumerate(box):
            moved = [
                np.mean(propagated(made, [*told[:place], (end, end), *told[place + 1 :]], rows), axis=0)
                for end in (low, high)
            ]
            squared = squared + ((moved[1] - moved[0]) / 2) ** 2
        return value - np.sqrt(squared), value + np.sqrt(squared)

    found = sum(misses(name, columns, 1.0, seed, linear) for seed, columns in enumerate(tables(12)))
    assert found > 20


@pytest.mark.parametrize("name", [name for name in ASKED if name not in ("ratio", "correlation")])
def test_the_width_that_is_foreseen_is_kept(name: str) -> None:
    """Of a table on which every row qualifies; of a contrast, half of them in each of the two."""
    asked, _ = ASKED[name]
    if name == "share":
        asked = Fraction(where="t", given="x IS NOT NULL")
    if name == "contrast of shares":
        asked = Difference(where="t", other="NOT t", of="x > 0")
    made = workload(asked.read(SCHEMA).statistics[0], SCHEMA, N)
    draw = np.random.default_rng(3)
    for columns in tables(12):
        columns["t"] = columns["t"] if "contrast" not in name else np.arange(N) % 2 == 0
        exact = totals_of(made, columns)
        for half in (0.01, 0.2, 0.5):
            halves = tuple(half * scale for scale in made.scales)
            promised = foreseen(made, halves, N // 2 if "contrast" in name else N)
            pushes = draw.uniform(-1, 1, (len(exact), 16))
            told = [total + h * push for total, h, push in zip(exact, halves, pushes, strict=True)]
            low, high = propagated(
                made, [(total - h, total + h) for total, h in zip(told, halves, strict=True)], N
            )
            assert ((high - low) / 2 <= promised * (1 + 1e-9)).all()


def test_what_tells_nothing_is_all_that_it_can_be() -> None:
    """No row may qualify; a constant column has no correlation; a divisor may be 0."""
    for name in ASKED:
        made = workload(ASKED[name][0].read(SCHEMA).statistics[0], SCHEMA, N)
        wide = [(np.array([-1e9]), np.array([1e9])) for _ in made.measurements]
        ends = propagated(made, wide, N)
        assert (ends[0][0], ends[1][0]) == pytest.approx(extremes(made))
    constant = tables(1)[0] | {"x": np.full(N, 1)}
    made = workload(ASKED["correlation"][0].read(SCHEMA).statistics[0], SCHEMA, N)
    box = [(total - 0.1, total + 0.1) for total in totals_of(made, constant)]
    assert [end[0] for end in propagated(made, box, N)] == [-1.0, 1.0]
    assert extremes(workload(ASKED["ratio"][0].read(SCHEMA).statistics[0], SCHEMA, N)) == (
        -math.inf,
        math.inf,
    )


def test_a_box_that_holds_no_table_tells_nothing() -> None:
    made = workload(ASKED["variance"][0].read(SCHEMA).statistics[0], SCHEMA, N)
    impossible = [
        np.array([float(N)]),
        np.array([40.0]),
        np.array([1.0]),
    ]  # the squares of a mean of 3.3 add up to 1
    ends = propagated(made, [(total, total) for total in impossible], N)
    assert (ends[0][0], ends[1][0]) == extremes(made)


def test_kinds_without_a_foreseen_width_have_none() -> None:
    asked = {kind: question for kind, (question, _) in ASKED.items()}
    asked["regression"] = Regression(column="y", features=["x"])
    lines: dict[str, Any] = {kind: Sql(text=f"SELECT regr_{kind}(y, x) FROM t") for kind in LINES}
    asked |= lines
    for kind in propagation.UNFORESEEN:
        made = workload(asked[kind].read(SCHEMA).statistics[0], SCHEMA, N)
        assert foreseen(made, (0.0,) * len(made.measurements), N) == math.inf


COARSE = hf.Schema(y=hf.Real(0.0, 2.0, step=0.5), t=hf.Boolean())


def of_samples() -> int:
    """How many sample deviations of two or three rows are outside of what their exact totals on a coarse grid allow."""
    values, missed = (0.0, 0.2499, 0.25, 0.7499, 0.75, 1.2499, 1.25, 1.7499, 1.75, 2.0), 0
    for n in (2, 3):
        made = workload(Spread(kind="std", column="y", sample=True).read(COARSE).statistics[0], COARSE, n)
        rows = np.array(list(itertools.combinations_with_replacement(values, n)))
        totals = [
            np.array([float(m.totals({"y": row, "t": row > 9})[0]) for row in rows])
            for m in made.measurements
        ]
        low, high = propagated(made, [(total, total) for total in totals], n)
        true = rows.std(axis=1, ddof=1)
        missed += int(np.count_nonzero((true < low - 1e-12) | (true > high + 1e-12)))
    return missed


def test_what_rounding_moves_is_a_sample_s_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows half a step off each, in opposite ways, have a sample deviation of 1/sqrt(2) steps more, not of 1/2. The
    twin adds half a step to a sample as to its rows."""
    assert of_samples() == 0
    rounded = propagation._rounded

    def like_its_rows(ends: Any, grid: Any) -> Any:
        return rounded(ends, grid)[0], np.sqrt(ends[1]) + 0.5 / math.sqrt(2)

    monkeypatch.setattr(propagation, "_rounded", like_its_rows)
    assert of_samples() > 10


def of_rare_rows() -> int:
    """Misses under laws of the population of which hardly a row qualifies."""
    made = workload(Spread(kind="variance", column="x", where="t").read(SCHEMA).statistics[0], SCHEMA, N)
    missed = 0
    for chance in (1e-2, 1e-6, 1e-12, 1e-16):
        law = chance * np.array([0.3, 0.7])  # -3 and 4, where t holds
        codes = {"x": np.array([0, 7], np.uint8), "y": np.zeros(2), "t": np.ones(2, np.uint8)}
        totals = [np.array([N * float(law @ m.contributions(codes))]) for m in made.measurements]
        low, high = propagated(made, [(total, total) for total in totals], N)
        missed += int(not low[0] <= 49 * 0.21 <= high[0])
    return missed


def test_a_count_of_less_than_a_row_is_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes a billionth of a row for the least."""
    assert of_rare_rows() == 0
    least = propagation._least
    monkeypatch.setattr(
        propagation, "_least", lambda count, *rest: least((np.maximum(count[0], 1e-9), count[1]), *rest)
    )
    assert of_rare_rows() > 0
