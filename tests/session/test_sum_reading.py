"""Running totals, several quantiles and independence in a session: they hold under one charge, or are refused."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.planning import recipe_information, sum_width
from holdfast.planning.cell_question import Independence
from holdfast.query.running import FINENESS, strategy
from holdfast.query.statistic import workload
from holdfast.session import sum_reading
from holdfast.session.sum_reading import read_sums

SCHEMA = hf.Schema(
    x=hf.Integer(0, 20),
    y=hf.Real(-5.0, 5.0),
    g=hf.Category("a", "b", "c"),
    t=hf.Boolean(),
    d=hf.Date("2020-01-01", "2020-03-31"),
)
SURE = {"confidence": 1 - 1e-11}
RANKS = [0.1, 0.5, 0.9]
DAYS = 91


def drawn(rows: int, seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 21, rows)
    days = draw.integers(0, DAYS, rows)
    return {
        "x": x,
        "y": np.clip(draw.normal(0, 1.5, rows), -5, 5),
        "g": draw.choice(["a", "b", "c"], rows),
        "t": draw.random(rows) < 0.1 + x / 30,
        "d": np.array([datetime.date(2020, 1, 1) + datetime.timedelta(int(day)) for day in days]),
    }


def opened(rows: int, seed: int) -> hf.Table:
    return hf.open(drawn(rows, seed), SCHEMA, ledger=MemoryLedger())


def up_to(columns: dict[str, Any], weights: Any) -> Any:
    """The running totals by day."""
    day = np.array([(d - datetime.date(2020, 1, 1)).days for d in columns["d"]])
    return np.cumsum(np.bincount(day, weights=weights, minlength=DAYS))


def dependence(columns: dict[str, Any], one: str, other: str) -> float:
    _, first = np.unique(columns[one], return_inverse=True)
    _, second = np.unique(columns[other], return_inverse=True)
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1 / len(first))
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2)


def missed(seed: int, target: str, **how: Any) -> list[bool]:
    """Which of the answers of a session on these rows do not hold what they are about."""
    held = drawn(4000, seed)
    session = opened(4000, seed).session(rho=4.0, target=target, queries=6, **how)
    many = {} if target == "table" else {"rho": 0.02}
    quantiles, counts = session.quantile("y", RANKS, **many), session.count(by="d", cumulative=True, **many)
    sums = session.sum("y", by="d", cumulative=True, **many)
    apart = session.independence("t", "floor(x / 7)", **many)
    ends = [(a.low, a.high) for a in (quantiles, counts, sums, apart)]
    if target == "population":
        ends += [(a.table_low, a.table_high) for a in (quantiles, counts, sums, apart)]
    truths = [
        np.quantile(held["y"], RANKS), up_to(held, np.ones(4000)), up_to(held, held["y"]),
        dependence(held | {"z": held["x"] // 7}, "t", "z"),
    ]  # fmt: skip
    if target == "population":
        law = [np.array(RANKS_OF_LAW), 4000 * np.arange(1, DAYS + 1) / DAYS, np.zeros(DAYS), DEPENDENCE]
        truths = [*law, *truths]
    return [
        bool(np.any((low > true + 1e-3) | (high < true - 1e-3)))
        for (low, high), true in zip(ends, truths, strict=True)
    ]


LAW = drawn(1_000_000, 99)
RANKS_OF_LAW = np.quantile(LAW["y"], RANKS).tolist()
DEPENDENCE = dependence(LAW | {"z": LAW["x"] // 7}, "t", "z")


@pytest.mark.parametrize("target", ["table", "population"])
def test_they_hold(target: str) -> None:
    """A smoke of six tables, so sure that no run will see a miss."""
    for seed in range(6):
        assert not any(missed(seed, target, **SURE)), seed


def test_reaches_that_are_too_short_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a fiftieth of every half-width."""
    true = sum_width._reach
    monkeypatch.setattr(sum_width, "_reach", lambda *given: true(*given) / 50)
    found = np.array([missed(seed, "table") for seed in range(6)])
    assert found[:, 1].sum() >= 5 and found[:, 2].sum() >= 5


def test_they_are_as_near_as_they_are_said_to_be() -> None:
    session = opened(4000, 1).session(rho=4.0, target="table", queries=6)
    answer = session.quantile("x", RANKS)
    assert answer.labels == ("0.1", "0.5", "0.9") and np.all(answer.high - answer.low <= 2)
    assert np.all(session.count(by="d", cumulative=True).width < 40)
    plan = session.estimate.quantile("y", RANKS, within=0.05)
    assert plan.width <= 0.05 and session.quantile("y", RANKS, within=0.05).rho == plan.rho


def test_several_quantiles_cost_what_one_line_of_running_counts_does() -> None:
    """Whatever their number; the meter counts 4R^2 n^2 over the variance."""
    session = opened(4000, 1).session(rho=1.0, queries=8)
    few, many = (
        session.quantile("x", ranks, rho=0.01) for ranks in ([0.5], [k / 100 for k in range(1, 100)])
    )
    assert few.rho == many.rho == pytest.approx(0.01, rel=1e-6)
    made = strategy(21)
    for entry in session._ledger.entries(session.name):
        told = recipe_information.told_by(entry.charge.information, 4000)
        assert told == pytest.approx(4 * made.longest * 4000**2 / (made.apart / 0.02), rel=1e-4)
    assert made.longest > FINENESS**2


def test_by_groups_there_is_one_for_each_group_and_rank() -> None:
    held, session = drawn(4000, 2), opened(4000, 2).session(rho=4.0, target="table", queries=4, **SURE)
    answer = session.quantile("x", [0.5, 0.9], by="g")
    assert answer.by == ("g", "rank") and len(answer) == 6
    for group in "abc":
        for rank in (0.5, 0.9):
            one = answer[group, rank]
            true = np.quantile(held["x"][held["g"] == group], rank, method="inverted_cdf")
            assert one.low <= true <= one.high
    (told,) = session.sql("SELECT g, quantile_cont(x, [0.5, 0.9]) FROM t GROUP BY g")
    assert told.repeated and told.value.tolist() == answer.value.tolist()


def test_where_no_row_qualifies_everything_is_possible() -> None:
    session = opened(4000, 1).session(rho=4.0, target="table", queries=4)
    answer = session.quantile("d", [0.2, 0.5], "x > 3 AND x < 4 AND t AND g = 'a'")
    assert answer.too_few.all()
    assert answer.low[0] == datetime.date(2020, 1, 1) and answer.high[1] == datetime.date(2020, 3, 31)
    apart = session.independence("t", "g", "x > 3 AND x < 4")
    assert (apart.low, apart.high, apart.too_few) == (0.0, 1.0, True)


def test_running_counts_do_not_fall_and_are_no_counts_by_groups() -> None:
    session = opened(4000, 1).session(rho=4.0, target="table", queries=6)
    running, plain = session.count(by="d", cumulative=True, rho=0.1), session.count(by="d", rho=0.1)
    assert running.question == "running count by d" and not plain.repeated
    assert np.all(np.diff(running.low) >= 0) and np.all(np.diff(running.high) >= 0)
    (told,) = session.sql("SELECT d, sum(count(*)) OVER (ORDER BY d) FROM t GROUP BY d", rho=0.1)
    assert told.repeated
    two = session.sum("x", by=["g", "date_trunc('month', d)"], cumulative=True)
    assert len(two) == 9 and two.by == ("g", "d")


def beyond_their_boxes() -> int:
    """Dependences of tables and of laws, of which hardly a row may qualify, that are outside what is read off noisy
    counts whose every statement is just within its half-width."""
    asked = Independence(column="t", other="g").read(SCHEMA).statistics[0]
    draw, misses = np.random.default_rng(3), 0
    for rows in range(1, 9):
        made = workload(asked, SCHEMA, rows)
        for trial in range(200):
            law = draw.dirichlet(np.full(7, (0.05, 0.3, 1.0)[trial % 3]))
            held = (rows * law if trial % 2 else draw.multinomial(rows, law).astype(float))[:-1].reshape(2, 3)
            if held.sum() == 0:
                continue
            moved = draw.normal(0, (0.01, 0.2, 1.0, 3.0)[trial // 2 % 4], (2, 3))
            line, column = (moved.sum(axis=axis, keepdims=True) - moved for axis in (1, 0))
            parts = (moved, line, column, moved.sum() - moved - line - column, moved.sum())
            reaches = tuple(float(np.abs(part).max()) * (1 + 1e-9) for part in parts)
            read = read_sums(made, (held + moved).ravel(), reaches, rows)
            shares = held / held.sum()
            true = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
            misses += not read.low[0] - 1e-9 <= true <= read.high[0] + 1e-9
    return misses


def test_the_dependence_lies_in_its_box_even_of_less_than_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes one row for the least that a law can have."""
    assert beyond_their_boxes() == 0
    true = sum_reading._greatest
    monkeypatch.setattr(
        sum_reading, "_greatest", lambda far, few: true(far, max(few, 1.0) if few > 0 else 0.0)
    )
    assert beyond_their_boxes() > 0


def test_independent_columns_are_seldom_called_dependent() -> None:
    """A smoke of true nulls: each session looks at all pairs of 6 columns and asks again about the most suspect one.
    Dependent columns are found."""
    rows, names = 20_000, [f"c{i}" for i in range(6)]
    schema = hf.Schema.from_mapping(
        {name: hf.Category("u", "v", "w") for name in names} | {"z": hf.Boolean()}
    )
    for seed in range(6):
        draw = np.random.default_rng(seed)
        columns: dict[str, Any] = {name: draw.choice(["u", "v", "w"], rows) for name in names}
        columns["z"] = (columns["c0"] == "u") ^ (draw.random(rows) < 0.05)
        session = hf.open(columns, schema, ledger=MemoryLedger()).session(
            rho=8.0, queries=30, confidence=1 - 1e-9
        )
        pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
        found = {pair: session.independence(*pair) for pair in pairs}
        suspect = max(found, key=lambda pair: found[pair].value)
        again = session.independence(*suspect, "z OR NOT z")
        assert not again.differs and not any(one.differs for one in found.values())
        assert session.independence("c0", "z").differs


REFUSED: dict[str, Any] = {
    "a rank twice": (lambda s: s.quantile("x", [0.5, 0.5]), "different ranks"),
    "no rank": (lambda s: s.quantile("x", []), "different ranks"),
    "a rank of 1": (lambda s: s.quantile("x", [0.5, 1.0]), "strictly between 0 and 1"),
    "a rank that would be 0": (lambda s: s.quantile("x", [1e-7, 0.5]), "a millionth"),
    "one rank that would be 1": (lambda s: s.quantile("x", 1 - 1e-7), "a millionth"),
    "no order": (lambda s: s.quantile("t", [0.5]), "no quantiles"),
    "too many lines": (lambda s: s.quantile("y", [0.5], by=["x", "d", "g"]), "coarser edges"),
    "nothing to run over": (lambda s: s.count(cumulative=True), "expected by="),
    "no order to run over": (lambda s: s.count(by=["d", "g"], cumulative=True), "no order"),
    "no flag": (lambda s: s.sum("x", by="d", cumulative="yes"), "True or False"),
    "a running mean": (lambda s: s.sql("SELECT d, sum(avg(x)) OVER (ORDER BY d) FROM t GROUP BY d"), "count and sum"),
    "a window without groups": (lambda s: s.sql("SELECT sum(count(*)) OVER (ORDER BY d) FROM t"), "GROUP BY"),
    "one column twice": (lambda s: s.independence("g", "g"), "different columns"),
    "a real column without edges": (lambda s: s.independence("g", "y"), "expected edges="),
    "one group": (lambda s: s.independence("g", "x", edges={"x": [0, 20]}), "one group"),
    "a width": (lambda s: s.independence("g", "t", within=0.1), "depends on the rows"),
    "too many cells": (lambda s: s.independence("d", "y", edges={"y": np.linspace(-5, 5, 1001).tolist()}), "at most"),
    "by groups": (lambda s: s.sql("SELECT g, independence(t, x) FROM t GROUP BY g"), "without GROUP BY"),
    "by laplace": (lambda s: s.quantile("x", [0.5], epsilon=0.1), "use gaussian"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_before_the_charge(name: str) -> None:
    ask, words = REFUSED[name]
    session = opened(100, 1).session(rho=1.0, target="table", queries=4)
    with pytest.raises(hf.HoldfastError, match=words):
        ask(session)
    assert session.spent == 0


def test_a_pure_session_says_what_to_do() -> None:
    session = opened(100, 1).session(epsilon=1.0, target="table", queries=4)
    for ask in (REFUSED["a width"][0], lambda s: s.quantile("x", [0.5]), lambda s: s.independence("g", "t")):
        with pytest.raises(hf.HoldfastError, match=r"delta= or rho=|depends on the rows"):
            ask(session)
    assert session.spent == 0
