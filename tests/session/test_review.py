"""What an independent review found, each with the example that showed it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.mechanisms.accuracy import sample_reach
from holdfast.session import table as table_module
from holdfast.session.quantile import select_bins
from holdfast.session.watch import Watch

SCHEMA = hf.Schema(x=hf.Integer(0, 1023))


def open_rows(values: Any) -> hf.Table:
    return hf.open({"x": np.asarray(values)}, SCHEMA)


def test_two_holders_of_one_sparse_vector_share_its_hits() -> None:
    session = open_rows(np.ones(5000, dtype=int)).session(epsilon=2.0)
    hits = 0
    for _ in range(20):
        watch = Watch(session, "w", 0.3, 1, epsilon=1.0)
        try:
            watch.above("x = 0 AND x = 1")
            hits += watch.above("x = 1")
        except hf.BudgetError:
            break
    assert hits == 1
    late = session.sparse_vector(0.3, 1, epsilon=1.0, name="w")
    assert late.halted


def test_interleaved_holders_never_tell_each_others_answers() -> None:
    session = open_rows(np.arange(5000) % 1024).session(epsilon=5.0)
    first, second = (Watch(session, "w", 0.5, 3, epsilon=2.0) for _ in range(2))
    assert [
        first.above("x < 10"),
        second.above("x < 1000"),
        first.above("x < 20"),
        second.above("x < 900"),
    ] == [
        False,
        True,
        False,
        True,
    ]
    assert first.asked == 3 or first.hits_left <= 2
    assert second.hits_left == 1


def test_names_of_sparse_vectors_do_not_collide_with_their_questions() -> None:
    session = open_rows(np.arange(5000) % 1024).session(epsilon=100.0)
    watch = session.sparse_vector(0.5, 3, epsilon=1.0, name="w")
    watch.above("x < 10")
    before = session.spent
    session.sparse_vector(0.5, 3, epsilon=50.0, name="w 0")
    assert session.spent - before == pytest.approx(50.0)


def test_a_standing_charge_is_not_reused_for_another_event() -> None:
    session = open_rows(np.arange(100)).session(epsilon=100.0)
    session.pay("test", "one", hf.privacy.events.PureMechanism(1), key="k")
    with pytest.raises(hf.InputError, match="other terms"):
        session.pay("test", "another", hf.privacy.events.PureMechanism(50), key="k")


def test_a_mechanism_with_its_own_delta_is_refused() -> None:
    session = open_rows(np.arange(100)).session(epsilon=5.0, delta=1e-6)
    with pytest.raises(hf.MechanismError, match="delta"):
        session.sparse_vector(0.5, 1, epsilon=0.5, delta=0.9, version="gaussian", questions=10)
    assert session.spent == 0


def test_saving_leaves_one_budget(tmp_path: Path) -> None:
    table = open_rows(np.arange(1000))
    table.limit(rho=1.0)
    session = table.session(rho=1.0, target="table")
    session.count("x < 5", rho=0.4)
    saved = table.save(tmp_path / "a.hf")
    with pytest.raises(hf.LedgerError, match="saved"):
        session.count("x < 6", rho=0.1)
    for holder in (table, saved, hf.open(tmp_path / "a.hf")):
        assert holder.spent == pytest.approx(0.4, rel=1e-5)
    table.session(rho=1.0, target="table").count("x < 7", rho=0.5)
    with pytest.raises(hf.BudgetError):
        saved.session(rho=1.0, target="table").count("x < 8", rho=0.5)


def test_a_store_is_never_there_without_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_rows(np.arange(1000))
    table.limit(rho=1.0)
    session = table.session(rho=1.0, target="table")
    session.count("x < 5", rho=0.4)

    def power_cut(*ledgers: object) -> None:
        raise OSError("power cut")

    monkeypatch.setattr(table_module, "copy_ledger", power_cut)
    with pytest.raises((OSError, hf.HoldfastError)):
        table.save(tmp_path / "a.hf")
    assert not (tmp_path / "a.hf").exists()
    session.count("x < 6", rho=0.1)  # and the table in memory goes on


def test_overwriting_does_not_forget(tmp_path: Path) -> None:
    first = open_rows(np.arange(1000)).save(tmp_path / "a.hf")
    first.session(rho=1.0, target="table").count("x < 5", rho=0.4)
    with pytest.raises(hf.LedgerError, match="forget"):
        open_rows(np.arange(1000)).save(tmp_path / "a.hf", overwrite=True)
    again = first.save(tmp_path / "a.hf", overwrite=True)
    assert again.spent == pytest.approx(0.4, rel=1e-5)


def test_a_limit_in_another_currency_stops_every_path() -> None:
    table = open_rows(np.arange(1000))
    sessions = [table.session(epsilon=50.0, target="table"), table.session(rho=50.0, target="table")]
    table.limit(epsilon=1.0)
    for session, budget in zip(sessions, ({"epsilon": 0.1}, {"rho": 0.1}), strict=True):
        for ask in (
            lambda s, b=budget: s.count("x < 5", **b),
            lambda s, b=budget: s.select(["x < 5", "x < 6"], **b),
            lambda s: s.sample("x < 5"),
        ):
            with pytest.raises(hf.LedgerError, match="counted"):
                ask(session)
    assert table.spent == 0


def test_a_validity_session_cannot_be_reopened_on_other_terms() -> None:
    table = open_rows(np.arange(20_000) % 1024)
    table.session(rho=1000.0, name="a", queries=2).count("x < 5", rho=1.0)
    with pytest.raises(hf.LedgerError):
        table.session(within=0.45, queries=2, name="a")
    other = open_rows(np.arange(20_000) % 1024)
    other.session(within=0.25, queries=2, name="b").fraction("x < 5")
    with pytest.raises(hf.LedgerError):
        other.session(within=0.45, queries=2, name="b")


def test_a_validity_session_takes_no_samples() -> None:
    session = open_rows(np.arange(20_000) % 1024).session(within=0.25, queries=2, rho=1000.0)
    with pytest.raises(hf.MechanismError):
        session.sample("x < 5")


def test_odds_sessions_answer_no_means() -> None:
    session = open_rows(np.arange(20_000) % 1024).session(queries=2, intervals="odds")
    with pytest.raises(hf.MechanismError, match="odds"):
        session.mean("x")


@pytest.mark.parametrize("selected", [0, 1, 10, 40, 200])
@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 1000), Fraction(99, 100)])
def test_quantile_ends_cover_when_few_rows_are_selected(selected: int, rank: Fraction) -> None:
    """The exact chance that an end misses, from the weights of the selection itself."""
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


def test_subsampled_laplace_knows_the_grid_of_its_noise() -> None:
    """Noise of scale 10 on a sum of contributions up to 100 is not noise of scale 1/10 on a sum of bits."""
    sampling = sample_reach(50, 100, Fraction(1, 1000), 0.002, False)
    reach = sample_reach(50, 100, Fraction(10), 0.002, False, span=100) - sampling
    noise = np.abs(hf.mechanisms.laplace(np.zeros(100_000, dtype=np.int64), epsilon=0.1)) / (50 * 100)
    assert np.mean(noise > reach) <= 0.002
    twin = sample_reach(50, 100, Fraction(1, 10), 0.002, False) - sampling
    assert np.mean(noise > twin) > 0.5


def test_a_total_on_the_edge_of_a_level_is_answered() -> None:
    """At n = 10^6 the level 0.001024 is no float; landing on it once looped for ever."""
    session = open_rows(np.zeros(10**6, dtype=int)).session(rho=1.0, queries=10)
    assert session.fraction("x = 1", rho=0.00102400001).rho <= 0.00102400001
    assert session.fraction("x = 2", rho=0.001024).rho <= 0.001024


def test_a_tiny_budget_for_a_quantile_is_answered_widely() -> None:
    table = open_rows(np.arange(1000))
    answer = table.session(epsilon=1.0, target="table").quantile("x", 0.123457, epsilon=1e-8)
    assert (answer.low, answer.high) == (0, 1023)


def test_charges_with_intervals_stay_within_the_promise() -> None:
    session = open_rows(np.arange(100)).session(epsilon=10.0, queries=1)
    session.pay("test", "one", hf.privacy.events.PureMechanism(1), queries=1)
    with pytest.raises(hf.BudgetError, match="1 queries"):
        session.pay("test", "two", hf.privacy.events.PureMechanism(1), queries=1)
    session.pay("test", "without an interval", hf.privacy.events.PureMechanism(1))
    assert session.spent == pytest.approx(2.0)
