"""The width of a mean depends on how many rows qualify: the plan says how many, the answer says where it failed."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import holdfast as hf
from holdfast.planning.mean import aims, least_rows, mean_width
from holdfast.query.expression import Column
from holdfast.query.grid import Grid
from holdfast.query.grouping import grouping
from holdfast.query.measurement import Measurement
from holdfast.query.predicate import Always
from holdfast.query.statistic import Statistic, Workload, workload
from holdfast.session import Answer, display
from holdfast.session.readout import read

SIZES = {"a": 100_000, "b": 50_000, "c": 30_000, "d": 15_000, "e": 4_950, "f": 50, "g": 0}
ROWS = sum(SIZES.values())
SCHEMA = hf.Schema(delay=hf.Integer(-60, 300), carrier=hf.Category(*SIZES))


def flights(sizes: dict[str, int]) -> dict[str, Any]:
    """Delays of carriers with so many flights each."""
    draw = np.random.default_rng(7)
    carrier = np.repeat(list(sizes), list(sizes.values()))
    return {
        "delay": np.clip(draw.normal(10, 30, len(carrier)), -60, 300).astype(int),
        "carrier": draw.permuted(carrier),
    }


FLIGHTS = flights(SIZES)


@pytest.fixture(params=["table", "population"])
def session(request: pytest.FixtureRequest) -> hf.Session:
    return opened(request.param)


def opened(target: str, data: dict[str, Any] = FLIGHTS) -> hf.Session:
    return hf.open(data, SCHEMA).session(rho=1.0, queries=100, target=target, confidence=1 - 1e-6)


def half(answer: Answer) -> Any:
    return (answer.high - answer.low) / 2


# The theorem


def of_mean(low: int, high: int, rows: int) -> Workload:
    schema = hf.Schema(x=hf.Integer(low, high), c=hf.Category("u", "v", "w"))
    return workload(Statistic("mean", Always(), Column("x")), schema, rows)


def widest(totals: Workload, rows: int, qualifying: int, sums: int, count: int) -> float:
    """The widest interval over every noisy sum, and every noisy count that is at least `qualifying` minus its
    half-width, `count` rows."""
    weight = totals.measurements[1].weight
    reach = rows * weight + 2 * sums
    found = 0.0
    for counted in range(qualifying - count, rows + count + 1):
        noisy = np.arange(-reach, reach + 1)
        reading = read(totals, (noisy, np.full(len(noisy), counted * weight)), (sums, count * weight), rows)
        found = max(found, float(np.max(reading.high - reading.low)) / 2)
    return found


def exceeds(width: Callable[..., float]) -> bool:
    """Whether any interval is wider than `width` says, on small tables of every shape."""
    rows = 12
    shapes = itertools.product(
        [(0, 6), (-2, 9), (5, 5), (-1, 0)], range(1, rows + 1), (0, 1, 4, 11), (0, 1, 3)
    )
    for (low, high), qualifying, sums, count in shapes:
        totals = of_mean(low, high, rows)
        in_units = (float(sums), float(count * totals.measurements[1].weight))
        if widest(totals, rows, qualifying, sums, count) > width(totals, in_units, qualifying):
            return True
    return False


def test_no_interval_of_a_mean_is_wider_than_its_qualifying_rows_promise() -> None:
    assert not exceeds(mean_width)


def test_a_width_that_forgets_the_noise_of_the_count_is_caught() -> None:
    """The broken twin: the sum's half-width over the rows."""
    assert exceeds(lambda totals, in_units, m: mean_width(totals, (in_units[0], 0.0), m))


def test_the_least_number_of_rows_is_the_least() -> None:
    totals = of_mean(-2, 9, 10_000)
    for in_units, within in itertools.product([(500.0, 300.0), (7.0, 0.0), (1e5, 1e5)], [0.01, 0.5, 3.0]):
        least = least_rows(totals, in_units, within, 10_000)
        if least is None:
            assert mean_width(totals, in_units, 10_000) > within
        else:
            assert mean_width(totals, in_units, least) <= within < mean_width(totals, in_units, least - 1)


@pytest.mark.parametrize(("low", "high", "farthest"), [(-9, 2, 9), (-2, 9, 9), (-4, 4, 4)])
def test_a_width_is_that_of_its_farthest_contribution_and_of_its_grid(
    low: int, high: int, farthest: int
) -> None:
    """On a grid of step 1/8 that moves the mean by up to 1/16: (10 + farthest 3)/(40 - 3) steps, and the grid."""
    schema = hf.Schema(x=hf.Real(-2.0, 2.0))
    statistic = Statistic("mean", Always(), Column("x"))
    total = Measurement(schema, Always(), Column("x"), Grid(0.0, 1 / 8, low, high, exact=False))
    totals = Workload(statistic, (total, Measurement(schema, Always(), weight=5)), 1 / 8, 1 / 16)
    expected = Fraction(10 + farthest * 3, 40 - 3) / 8 + Fraction(1, 16)
    found = mean_width(totals, (10.0, 15.0), 40)
    assert expected < Fraction(found) < expected * (1 + Fraction(1, 10**9))


# The plan


def test_a_plan_says_how_many_rows_must_qualify(session: hf.Session) -> None:
    plan = session.estimate.mean("delay", "carrier = 'a'", within=20)
    assert plan.within == 20 and plan.width <= 20
    assert plan.qualifying is not None and ROWS * 0.9 < plan.qualifying <= ROWS
    by = session.estimate.mean("delay", by="carrier", within=100)
    assert by.qualifying is not None and by.qualifying <= -(-ROWS // 7)
    assert f"in groups of at least {by.qualifying:,} of the {ROWS:,} rows" in by.explain()
    assert session.estimate.fraction("carrier = 'a'", within=0.1).qualifying is None


def test_a_plan_knows_nothing_of_the_groups() -> None:
    other = flights({"a": 0, "b": ROWS - 1, "c": 1, "d": 0, "e": 0, "f": 0, "g": 0})
    plans = [
        opened("population", data).estimate.mean("delay", by="carrier", within=40)
        for data in (FLIGHTS, other)
    ]
    assert plans[0].text == plans[1].text and plans[0].explain() == plans[1].explain()


def test_where_small_groups_cannot_be_promised_the_smallest_that_can_are_planned_for() -> None:
    session = opened("population")
    least = {
        within: session.estimate.mean("delay", by="carrier", within=within).qualifying
        for within in (15, 30, 90)
    }
    assert all(least.values())
    assert least[90] <= ROWS // 7 + 1 < least[30] < least[15] <= ROWS
    totals = workload(Statistic("mean", Always(), Column("delay"), grouping(SCHEMA, "carrier")), SCHEMA, ROWS)
    assert aims(totals, ROWS) == [28_572, 57_144, 114_288, ROWS]


def test_large_groups_keep_the_width_and_small_ones_are_named(session: hf.Session) -> None:
    within = 40
    plan = session.estimate.mean("delay", by="carrier", within=within)
    answer = session.mean("delay", by="carrier", within=within)
    assert answer.labels == tuple(SIZES)
    for label, size in SIZES.items():
        if size >= plan.qualifying:
            assert answer[label].met, label
    assert answer["a"].met and not answer["f"].met and not answer["g"].met
    assert answer["g"].too_few and not answer["a"].too_few


def test_a_plan_for_all_rows_at_once_would_miss_the_large_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: plan as if every group held every row."""
    monkeypatch.setattr("holdfast.planning.planner.aims", lambda totals, rows: [rows])
    answer = opened("table").mean("delay", by="carrier", within=40)
    assert not np.any(answer.met)


def test_a_mean_of_chosen_rows_is_kept_if_enough_qualify(session: hf.Session) -> None:
    plan = session.estimate.mean("delay", "carrier != 'g'", within=20)
    assert plan.qualifying is not None and plan.qualifying <= ROWS
    assert session.mean("delay", "carrier != 'g'", within=20).met is True
    few = session.mean("delay", "carrier = 'e'", within=20)
    assert few.met is False and half(few) > 20


# The answer


def flags_are_exact(answers: list[Answer]) -> bool:
    """Whether the flag is false exactly where the printed half-width is larger than asked for."""
    return all(
        bool(met) == (width <= answer.within * (1 + 1e-9))
        for answer in answers
        for met, width in zip(np.atleast_1d(answer.met), np.atleast_1d(half(answer)), strict=True)
    )


def asked(session: hf.Session) -> list[Answer]:
    by = [session.mean("delay", by="carrier", within=within) for within in (20, 30, 45, 70)]
    chosen = [session.mean("delay", f"carrier = '{label}'", within=30) for label in "aef"]
    rest = [
        session.fraction("delay > 3", within=0.1),
        session.sum("delay", within=9e6),
        session.count("delay > 3", by="carrier", within=2e4),
    ]
    return [*by, *chosen, *rest]


def test_the_flag_is_false_exactly_where_the_half_width_is_larger(session: hf.Session) -> None:
    answers = asked(session)
    assert flags_are_exact(answers)
    assert {bool(met) for answer in answers for met in np.atleast_1d(answer.met)} == {True, False}
    assert all(np.all(answer.met) for answer in answers[-3:])


def test_a_flag_that_is_always_set_is_caught(session: hf.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: what is promised to all is told to all."""
    monkeypatch.setattr(Answer, "met", property(lambda self: np.ones(np.shape(self.low), dtype=bool)))
    assert not flags_are_exact(asked(session))


def test_without_a_wish_there_is_nothing_to_keep(session: hf.Session) -> None:
    assert session.mean("delay", by="carrier", rho=1e-6).met is None
    assert session.quantile("delay", within=0.3).met is None


def test_sql_and_json_tell_it_too(session: hf.Session) -> None:
    answer = session.sql_one("SELECT carrier, avg(delay) FROM flights GROUP BY carrier", within=40)
    told = json.loads(answer.to_json())
    assert told["within"] == 40
    assert told["met"] == {"array": answer.met.tolist()}
    assert told["too_few"] == {"array": answer.too_few.tolist()}
    back = Answer.from_json(answer.to_json())
    assert np.all(back.met == answer.met) and np.all(back.too_few == answer.too_few)
    assert {True, False} == set(answer.met.tolist())


def test_an_answer_that_was_lost_comes_back_with_its_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened("table")
    with monkeypatch.context() as broken:
        broken.setattr("holdfast.session.session.release", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.mean("delay", by="carrier", within=40)
    answer = session.mean("delay", by="carrier", within=40)
    assert not answer.repeated and answer.within == 40
    assert session.estimate.mean("delay", by="carrier", within=40).explain().startswith(answer.explain())


def test_a_session_planned_for_validity_has_one_wish_for_all_its_answers() -> None:
    session = hf.open(FLIGHTS, SCHEMA).session(within=0.05, queries=20)
    for answer in (session.fraction("delay > 3"), session.count("delay > 3"), session.sum("delay")):
        assert answer.met is True
    assert session.sum("delay").within == pytest.approx(0.05 * ROWS * 360)
    few = session.mean("delay", "carrier = 'd'")
    assert few.within == pytest.approx(0.05 * 360) and few.met is False
    plan = session.estimate.mean("delay")
    assert plan.qualifying is None and "cannot be promised" in plan.explain()


# In print


def test_what_was_not_kept_is_printed(session: hf.Session) -> None:
    answer = session.mean("delay", by="carrier", within=40)
    text = str(answer).splitlines()
    assert f"within 40 in {np.count_nonzero(answer.met)} of 7 groups" in text[0]
    assert answer.too_few.any() == ("too few rows for this noise: ask with within=" in text[-1])
    for line, label in zip(text[1 : 1 + len(SIZES)], SIZES, strict=True):
        assert ("not within 40" in line) == (not answer[label].met)
        assert ("too few rows [-60, 300]" in line) == bool(answer[label].too_few)
    screen = io.StringIO()
    Console(file=screen, width=200).print(answer, session.report())
    for shown in (
        screen.getvalue(),
        answer._repr_html_(),
        str(session.report()),
        session.report()._repr_html_(),
    ):
        assert "not within 40" in shown or "within 40 in" in shown
        assert "too few rows" in shown


def test_one_value_that_was_not_kept_is_printed(session: hf.Session) -> None:
    few = session.mean("delay", "carrier = 'g'", within=20)
    assert "too few rows [-60, 300] (not within 20, " in str(few)
    kept = session.fraction("delay > 3", within=0.1)
    assert display.kept(kept) == "" and "within" not in str(kept)
    screen = io.StringIO()
    Console(file=screen, width=200).print(session.report())
    assert "[-60, 300] not within 20" in screen.getvalue()


def test_a_mean_that_is_known_is_refused_before_the_charge() -> None:
    session = hf.open({"x": np.full(100, 5)}, hf.Schema(x=hf.Integer(5, 5))).session(rho=1.0, target="table")
    with pytest.raises(hf.InputError, match="the same number whatever the rows are"):
        session.mean("x", rho=0.5)
    assert session.spent == 0
