"""The ends of a quantile hold it, also where few rows are selected or little is paid."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from session.numbers import open_rows

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.planning import recipe_information
from holdfast.query.grouping import declared_groups
from holdfast.session import quantile as quantile_room
from holdfast.session.quantile import select_bins
from holdfast.validity.leave_out_charges import quantile_charge


@pytest.mark.usefixtures("replayed_noise")
@pytest.mark.parametrize("selected", [0, 1, 10, 40, 200])
@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 1000), Fraction(99, 100)])
def test_quantile_ends_cover_when_few_rows_are_selected(selected: int, rank: Fraction) -> None:
    """Of 400 choices no more miss than are allowed; `test_without_outer_bins_the_ends_miss` is what they would be."""
    bins, allowed = 1024, 0.05
    epsilon = Fraction(1, 4)
    distance = math.ceil(2 * math.log(2 * (bins + 2) / allowed) / epsilon)
    counts = np.zeros(bins, dtype=np.int64)
    counts[300] = selected
    missed = 0
    for _ in range(400):
        _, first, last = select_bins(counts, rank, epsilon, distance, 10_000)
        missed += selected > 0 and not first <= 300 <= last
    assert missed <= 400 * allowed + 6 * math.sqrt(400 * allowed)


def test_without_outer_bins_the_ends_miss() -> None:
    """The broken twin: no bin scores 0 when the shifted target leaves the range."""
    counts = np.zeros(1024, dtype=np.int64)
    counts[300] = 10
    below = np.concatenate([[0], np.cumsum(counts)]).astype(float)
    epsilon, distance = 0.25, 80
    target = 5 - distance
    scores = -np.maximum(0, np.maximum(below[:-1] - target, target - below[1:]))
    weights = np.exp(epsilon / 2 * (scores - scores.max()))
    missed = weights[301:].sum() / weights.sum()
    assert missed > 0.2


def test_a_tiny_budget_for_a_quantile_is_answered_widely() -> None:
    table = open_rows(np.arange(1000))
    answer = table.session(epsilon=1.0, target="table").quantile("x", 0.123457, epsilon=1e-8)
    assert (answer.low, answer.high) == (0, 1023)


BINS = 3


def shown(table: tuple[int, ...], rank: Fraction, distance: int, rows: int) -> list[np.ndarray]:
    """What `select_bins` shows to its three choices, on a table of bins; -1 is a row that does not qualify."""
    counts = np.array([table.count(bin) for bin in range(BINS)], dtype=np.int64)
    seen: list[np.ndarray] = []

    def keep(first: np.ndarray, second: np.ndarray, rate: Fraction) -> int:
        seen.append(np.stack([first, second]) * float(rate))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile_room, "smoothed_choice", keep)
        select_bins(counts, rank, Fraction(2), distance, rows, smoothed=True)
    return seen


def log_law(exponents: np.ndarray) -> np.ndarray:
    logs = -np.logaddexp(0.0, np.logaddexp(*exponents))
    return logs - np.logaddexp.reduce(logs)


def worst_charge(m: int, rank: Fraction, distance: int, rate: float, plain: bool = False) -> float:
    """By how much the law on the rows that stay falls short at most, over all tables; lam = rate, on means.

    The rows that stay are shown as so many rows: lam times the mean over them, shifted by the same fraction.
    """
    n, worst = 4, 0.0
    for table in itertools.combinations_with_replacement(range(-1, BINS), n):
        laws = []
        for kept in [tuple(range(n)), *itertools.combinations(range(n), n - m)]:
            rows = tuple(table[i] for i in kept)
            # as if each row stood n/len(kept) times, so that a fraction of n is the same number of rows
            seen = shown(rows * n, rank, distance * len(rows), n * len(rows))
            scaled = [part * rate / (n * len(rows)) for part in seen]
            if plain:
                scores = [-np.maximum(0, np.maximum(*part)) for part in scaled]
                laws.append([score - np.logaddexp.reduce(score) for score in scores])
            else:
                laws.append([log_law(part) for part in scaled])
        for choice in range(len(laws[0])):
            stay = np.mean([law[choice] for law in laws[1:]], axis=0)
            worst = max(worst, float((laws[0][choice] - stay).max()))
    return worst


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("rate", [2.0, 8.0])
def test_each_selection_charges_what_is_counted_on_all_small_tables(
    m: int, rank: Fraction, rate: float
) -> None:
    """Shifted targets, outer bins and rows that do not qualify included."""
    assert worst_charge(m, rank, 1, rate) <= quantile_charge(4, m, rate, rate) + 1e-9


def test_a_fifth_of_the_charge_and_the_plain_score_break() -> None:
    charge = quantile_charge(4, 1, 1.0, 1.0)
    assert charge / 5 < worst_charge(1, Fraction(1, 2), 1, 1.0) <= charge
    assert worst_charge(1, Fraction(1, 2), 1, 1.0, plain=True) > 3 * charge, (
        "the absolute value is not covered"
    )


SCHEMA = hf.Schema(x=hf.Integer(0, 99), g=hf.Category("a", "b"))


def opened(n: int, seed: int = 1) -> hf.Table:
    draw = np.random.default_rng(seed)
    rows = {"x": draw.integers(0, 100, n), "g": draw.choice(["a", "b"], n)}
    return hf.open(rows, SCHEMA, ledger=MemoryLedger())


@pytest.mark.parametrize("how", [{}, {"by": "g"}, {"where": "x > 20"}, {"within": 0.2}, {"rho": 1e-3}])
def test_after_a_quantile_the_population_is_still_covered(how: dict) -> None:
    table = opened(50_000)
    session = table.session(rho=1.0, queries=20)
    assert session.quantile("x", 0.5, **how).mechanism == "smoothed"
    assert 0 < table.ledger.totals().information < UNCOVERED
    assert session.estimate.fraction("x < 3").promise.left_out is not None


@pytest.mark.parametrize(("by", "groups"), [(None, 1), ("g", 2)])
def test_a_quantile_tells_six_comparisons_for_each_group(
    by: str | None, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three selections of 2 theta, whose information is lam^2 at least. The twin counts one theta each."""

    def is_sound() -> bool:
        planned = opened(50_000).session(rho=1.0, queries=20).estimate.quantile("x", rho=1e-3, by=by)
        rate = float(planned.recipe.noise) * 50_000 / 2
        return planned.charge.information / 1e9 * 50_000 >= 6 * groups * rate**2

    assert is_sound()
    told = recipe_information.quantile_told
    monkeypatch.setattr(recipe_information, "quantile_told", lambda *given: told(*given) / 2)
    assert not is_sound()


def test_the_ends_of_a_quantile_hold_it_in_the_population() -> None:
    """The law is uniform on 0..99, so that the rank r is at 100 r; three quantiles a table, all with what was told."""
    missed, narrow = 0, 0
    for seed in range(5):
        session = opened(4_000, seed).session(rho=5.0, queries=20)
        for limit in range(5):
            session.fraction(f"x < {limit}", rho=1e-3)
        for rank in (0.25, 0.5, 0.9):
            answer = session.quantile("x", rank, rho=0.02)
            missed += not answer.low <= 100 * rank <= answer.high + 1
            narrow += answer.high - answer.low < 70
    assert missed == 0 and narrow == 15


def test_the_plain_score_is_for_the_table_and_by_name() -> None:
    table = opened(2_000)
    assert table.session(rho=1.0, target="table").estimate.quantile("x", rho=0.1).mechanism == "exponential"
    session = table.session(rho=1.0)
    assert session.estimate.quantile("x", rho=0.1).charge.information < UNCOVERED
    named = session.quantile("x", rho=0.1, mechanism="exponential")
    assert named.mechanism == "exponential" and table.ledger.totals().information == UNCOVERED
    assert session.estimate.quantile("x", rho=0.1).mechanism == "exponential", "nothing is left to be kept"


@pytest.mark.usefixtures("replayed_noise")
@pytest.mark.parametrize("column", ["x", "y", "d"])
def test_rows_beyond_the_edges_are_below_or_above_all_the_same(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine tenths of the rows are below the first edge. The twin takes the quantile of the others."""
    values = np.concatenate([np.full(900, 1), np.full(50, 25), np.full(50, 35)])
    days = np.datetime64("2020-01-01") + values
    rows, edges = {"x": values, "y": values / 2.0, "d": days}, {"x": [20, 30, 40], "y": [10.0, 20.0]}
    schema = hf.Schema(x=hf.Integer(0, 100), y=hf.Real(0, 50), d=hf.Date("2020-01-01", "2020-04-09"))
    edges["d"] = ["2020-01-21", "2020-02-01"]
    true = rows[column][0]
    if column == "d":
        true = true.item()

    def missed() -> int:
        session = hf.open(rows, schema, ledger=MemoryLedger()).session(rho=40.0, target="table")
        one = session.quantile(column, 0.5, edges=edges[column], rho=10.0)
        few = session.quantile(column, [0.5, 0.96], edges=edges[column], rho=10.0)
        return int(not one.low <= true <= one.high) + int(not few.low[0] <= true <= few.high[0])

    assert missed() == 0
    monkeypatch.setattr("holdfast.planning.quantile_question.bins_of_all", declared_groups)
    assert missed() > 0
