"""Derived statistics in a session: they hold for the table and for the population, under one charge, adaptively."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError, InputError, QueryError
from holdfast.ledger import MemoryLedger
from holdfast.planning import recipe_information
from holdfast.query import propagation

SCHEMA = hf.Schema(
    x=hf.Integer(0, 20),
    y=hf.Real(-5.0, 5.0),
    g=hf.Category("a", "b"),
    t=hf.Boolean(),
    d=hf.Date("2020-01-01", "2020-12-31"),
)
Ask = Callable[[Any, dict[str, Any]], hf.Answer]
ASKED: dict[str, tuple[Ask, Callable[[dict[str, Any]], float]]] = {
    "fraction given": (lambda s, h: s.fraction("t", given="x > 10", **h), lambda c: c["t"][c["x"] > 10].mean()),
    "mean of a truth value": (lambda s, h: s.mean("t", "g = 'a'", **h), lambda c: c["t"][c["g"] == "a"].mean()),
    "mean of a condition": (lambda s, h: s.mean("x > 12", **h), lambda c: (c["x"] > 12).mean()),
    "ratio": (lambda s, h: s.ratio("y", "x", **h), lambda c: c["y"].mean() / c["x"].mean()),
    "variance": (lambda s, h: s.variance("x", **h), lambda c: c["x"].var()),
    "std": (lambda s, h: s.std("y", sample=True, **h), lambda c: c["y"].std()),
    "covariance": (lambda s, h: s.covariance("x", "y", **h), lambda c: np.cov(c["x"], c["y"], ddof=0)[0, 1]),
    "correlation": (lambda s, h: s.correlation("x", "y", **h), lambda c: np.corrcoef(c["x"], c["y"])[0, 1]),
    "difference of means": (
        lambda s, h: s.difference("t", "NOT t", of="x", **h), lambda c: c["x"][c["t"]].mean() - c["x"][~c["t"]].mean()
    ),
    "difference of shares": (
        lambda s, h: s.difference("g = 'a'", "x > 10", of="t", **h),
        lambda c: c["t"][c["g"] == "a"].mean() - c["t"][c["x"] > 10].mean(),
    ),
}  # fmt: skip


def drawn(rows: int, seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 21, rows)
    return {
        "x": x,
        "y": np.clip(x / 4 - 2.5 + draw.normal(0, 1, rows), -5, 5),
        "g": draw.choice(["a", "b"], rows),
        "t": draw.random(rows) < 0.1 + x / 30,
        "d": np.full(rows, np.datetime64("2020-05-01")),
    }


SURE = {"confidence": 1 - 1e-11}
TRUTH = drawn(2_000_000, 99)
"""The population, for numbers to three digits."""


def opened(rows: int, seed: int) -> hf.Table:
    return hf.open(drawn(rows, seed), SCHEMA, ledger=MemoryLedger())


@pytest.mark.parametrize("name", ASKED)
def test_it_holds_for_the_table_and_for_the_population(name: str) -> None:
    """A smoke of ten tables, so sure that no run will see a miss."""
    ask, truth = ASKED[name]
    wide = truth(TRUTH)
    for seed in range(10):
        table = opened(4000, seed)
        held = truth(drawn(4000, seed))
        answer = ask(table.session(rho=9.0, target="table", queries=4, **SURE), {})
        assert answer.low <= held * (1 + 1e-3) and answer.high >= held * (1 - 1e-3)
        assert answer.high - answer.low < 2.5 * abs(held)
        other = ask(opened(4000, seed).session(rho=1.0, queries=2, **SURE), {"rho": 0.01})
        assert other.low - 0.01 <= wide <= other.high + 0.01
        assert other.table_low <= held * (1 + 1e-3) and other.table_high >= held * (1 - 1e-3)


def test_a_reading_without_the_box_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: totals as if they were exact."""
    ask, truth = ASKED["variance"]
    read = propagation.propagated

    def exactly(totals: Any, box: Any, rows: int) -> Any:
        return read(totals, [((low + high) / 2,) * 2 for low, high in box], rows)

    monkeypatch.setattr("holdfast.session.readout.propagated", exactly)
    found = [ask(opened(4000, seed).session(rho=0.01, target="table", queries=4), {}) for seed in range(10)]
    missed = [not a.low <= truth(drawn(4000, seed)) <= a.high for seed, a in enumerate(found)]
    assert sum(missed) >= 5


@pytest.mark.parametrize("name", ["fraction given", "variance", "correlation"])
def test_it_is_one_charge_of_what_its_theorem_says(name: str) -> None:
    """Theorem 75: rho is the squared distance over twice the variance, the information 4R^2 n^2 over it."""
    ask, _ = ASKED[name]
    table = opened(4000, 1)
    session = table.session(rho=1.0, queries=4)
    answer = ask(session, {"rho": 0.01})
    (entry,) = session._ledger.entries(session.name)
    assert answer.rho == pytest.approx(0.01, rel=1e-6)
    squared, radius = {"fraction given": (2, 1 / 2), "variance": (4, 1.125), "correlation": (8, 3.0)}[name]
    variance = squared / 2 / 0.01
    told = recipe_information.told_by(entry.charge.information, 4000)
    assert told == pytest.approx(4 * radius * 4000**2 / variance, rel=1e-4)


def test_by_groups_each_has_its_own() -> None:
    session = opened(4000, 3).session(rho=1.0, target="table", queries=5)
    held = drawn(4000, 3)
    for ask, truth in (
        (session.variance("y", by="g"), lambda c: c["y"].var()),
        (session.mean("t", by="g"), lambda c: c["t"].mean()),
        (session.correlation("x", "y", by="x", edges=[0, 10, 20]), None),
        (session.ratio("y", "x", by="g"), lambda c: c["y"].sum() / c["x"].sum()),
    ):
        assert ask.labels is not None and len(ask.value) == 2
        for label in ask.labels if truth is not None else ():
            own = {column: values[held["g"] == label] for column, values in held.items()}
            assert ask[label].low <= truth(own) * 1.001 and ask[label].high >= truth(own) * 0.999


def test_a_regression_has_an_interval_for_each_coefficient() -> None:
    held = drawn(40_000, 6)
    features = np.column_stack([np.ones(40_000), held["x"], held["x"] > 10])
    truth = np.linalg.lstsq(features, held["y"], rcond=None)[0]
    session = hf.open(held, SCHEMA, ledger=MemoryLedger()).session(rho=9.0, target="table", queries=4, **SURE)
    answer = session.regression("y", ["x", "CASE WHEN x > 10 THEN 1 ELSE 0 END"])
    assert answer.labels is not None and answer.labels[:2] == ("intercept", "x")
    assert (answer.low <= truth).all() and (answer.high >= truth).all()
    assert answer["x"].width < 0.1 and not answer.too_few.any()
    singular = session.regression("y", ["x", "2 * x + 1"])
    assert singular.too_few.all() and np.isinf(singular.high).all()
    other = hf.open(held, SCHEMA, ledger=MemoryLedger()).session(rho=1.0, queries=2, **SURE)
    wide = other.regression("y", ["x"], rho=0.1)
    assert wide["x"].low <= 0.25 <= wide["x"].high and wide["x"].width < 0.1


def test_the_top_is_the_largest_of_a_histogram_at_its_charge() -> None:
    """Theorem 79: nothing is charged for choosing, and asking for all groups tells the same."""
    session = opened(4000, 1).session(rho=1.0, target="table", queries=4)
    best = session.top("x", 3, edges=[0, 2, 15, 18, 20])
    spent = session.spent
    counts = session.histogram("x", [0, 2, 15, 18, 20])
    assert counts.repeated and session.spent == spent
    order = np.argsort(-counts.value)[:3]
    assert best.value.tolist() == counts.value[order].tolist()
    assert best.labels == tuple(counts.labels[place] for place in order)
    assert (best.low <= best.value).all() and session.top(
        "x", 1, edges=[0, 2, 15, 18, 20]
    ).labels == best.labels[:1]


def test_what_is_within_is_within() -> None:
    for name, within in (("variance", 8.0), ("covariance", 6.0), ("fraction given", 0.1)):
        session = opened(40_000, 5).session(rho=1.0, target="table", queries=4)
        answer = ASKED[name][0](session, {"within": within})
        assert answer.within == within and (answer.met or name == "fraction given")
        again = ASKED[name][0](session, {"within": 2 * within})
        assert again.repeated


def test_a_correlation_of_a_constant_column_is_honestly_wide() -> None:
    held = drawn(4000, 1) | {"x": np.full(4000, 7)}
    table = hf.open(held, SCHEMA, ledger=MemoryLedger())
    answer = table.session(rho=1.0, target="table", queries=4).correlation("x", "y")
    assert (answer.low, answer.high) == (-1.0, 1.0) and answer.too_few


def test_a_divisor_that_may_be_zero_leaves_every_number() -> None:
    session = opened(4000, 1).session(rho=1.0, target="table", queries=4)
    answer = session.ratio("x", "y", rho=1e-7)
    assert (answer.low, answer.high) == (-math.inf, math.inf) and answer.too_few
    assert hf.Answer.from_json(answer.to_json()) == answer
    assert "ratio" in str(answer)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a variance of a constant": (lambda s: s.variance("x", "x = 3"), "the same number"),
    "a correlation with itself": (lambda s: s.correlation("x", "x"), "one number twice"),
    "a divisor that is always 0": (lambda s: s.ratio("x", "y * 0"), "always"),
    "a variance of categories": (lambda s: s.variance("g"), "not a number"),
    "a variance of dates": (lambda s: s.variance("d"), "not a number"),
    "a ratio of truth values": (lambda s: s.ratio("t", "x"), "not a number"),
    "a correlation within": (lambda s: s.correlation("x", "y", within=0.1), "depends on the rows"),
    "a ratio within": (lambda s: s.ratio("x", "y", within=0.1), "depends on the rows"),
    "a variance within all of it": (lambda s: s.variance("x", within=200.0), "would tell nothing"),
    "a difference of the same": (lambda s: s.difference("t", "t", of="x"), "are the same"),
    "a regression by itself": (lambda s: s.regression("y", ["x", "x"]), "given twice"),
    "a regression by nothing": (lambda s: s.regression("y", []), "between 1 and 16"),
    "a regression by a category": (lambda s: s.regression("y", ["g"]), "not a number"),
    "a regression within": (lambda s: s.regression("y", ["x"], within=0.1), "depends on the rows"),
    "the top of none": (lambda s: s.top("g", 0), "k"),
    "more than there are": (lambda s: s.top("g", 3), "k"),
    "a guess with groups": (lambda s: s.difference("t", "NOT t", of="x", expect=0.1), "no expect="),
    "a mean of categories": (lambda s: s.mean("g"), "not a number"),
    "a share given nothing known": (lambda s: s.fraction("t", given="z > 1"), "z"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_questions_are_refused_before_the_charge(name: str) -> None:
    ask, words = REFUSED[name]
    session = opened(100, 1).session(rho=1.0, target="table", queries=4)
    with pytest.raises((InputError, QueryError), match=words) as refused:
        ask(session)
    assert isinstance(refused.value, HoldfastError) and session.spent == 0


def test_a_difference_says_whether_there_is_one() -> None:
    session = opened(4000, 1).session(rho=1.0, queries=4)
    assert session.difference("t", "NOT t", of="x", rho=0.01).differs
    assert not session.difference("g = 'a'", "g = 'b'", of="x").differs
    by_group = session.covariance("x", "y", by="g").differs
    assert isinstance(by_group, np.ndarray) and by_group.shape == (2,)


def test_no_difference_is_claimed_of_what_is_none_however_it_is_looked_for() -> None:
    """Theorem 77 on true nulls: an analyst who looks at every earlier answer for the next group to try. Ten sessions of
    twenty tests; with intervals of a tenth of the width (the twin) differences are found."""
    claims, planted = 0, 0
    for seed in range(10):
        draw = np.random.default_rng(seed)
        held = drawn(2000, seed) | {"t": draw.random(2000) < 0.5}  # nothing depends on t
        session = hf.open(held, SCHEMA, ledger=MemoryLedger()).session(epsilon=1, delta=1e-6, queries=20)
        best = "x >= 0"
        for step in range(20):
            where = f"{best} AND x <> {step}"
            answer = session.difference(f"({where}) AND t", f"({where}) AND NOT t", of="y > 0")
            claims += bool(answer.differs)
            planted += abs(answer.value) > answer.width / 10
            best = where if answer.value > 0 else best
    assert claims == 0 and planted > 20
