"""Private choice and the sparse vector, charged to a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM, binomial

import holdfast as hf
from holdfast.client.above_threshold import RemoteAboveThreshold
from holdfast.session.above_threshold import AboveThreshold
from holdfast.session.private_choice import Selection

CONDITIONS = ["age < 10", "age < 30", "age < 90", "age < 50"]


def test_the_best_condition_wins_when_it_is_far_ahead(table: hf.Table) -> None:
    session = table.session(rho=1.0)
    chosen = session.select(CONDITIONS, rho=0.1)
    assert chosen.candidate == "age < 90"
    assert chosen.index == 2
    assert chosen.mechanism == "exponential"
    assert "McSherry and Talwar 2007" in str(chosen)
    assert session.spent.rho == pytest.approx(0.1, rel=1e-5)
    again = session.select(CONDITIONS, rho=0.1)
    assert again == chosen
    assert session.spent.rho == pytest.approx(0.1, rel=1e-5)


def test_claims_outside_the_joint_promise_say_so(table: hf.Table) -> None:
    """Each spends the whole chance of a miss, however many answers the session promised, and speaks of the table."""
    few, many = (table.session(rho=1.0, queries=k, name=f"{k} queries") for k in (2, 1000))
    chosen = [session.select(CONDITIONS, rho=0.1) for session in (few, many)]
    watches = [session.sparse_vector(0.5, 2, rho=0.1) for session in (few, many)]
    assert chosen[0].loss == chosen[1].loss
    assert watches[0].half_width(10) == watches[1].half_width(10)
    assert "its score on the table is within" in str(chosen[0])
    assert "by itself and outside the session's joint promise" in str(chosen[0])
    for claim in (
        Selection.__doc__,
        AboveThreshold.half_width.__doc__,
        RemoteAboveThreshold.half_width.__doc__,
    ):
        words = " ".join(str(claim).split())
        assert "outside the joint promise of the session's intervals" in words
        assert "the table" in words and "by itself" in words


def test_candidates_may_have_other_names_than_their_conditions(table: hf.Table) -> None:
    chosen = table.session(epsilon=1.0).select(["few", "some", "most", "half"], CONDITIONS, epsilon=0.5)
    assert chosen.candidate == "most"
    assert chosen.mechanism == "permute-and-flip"
    assert chosen.loss < 100


def test_numbers_need_their_sensitivity(table: hf.Table) -> None:
    session = table.session(rho=1.0)
    with pytest.raises(hf.InputError, match="sensitivity"):
        session.select(["a", "b"], [1.0, 2.0], rho=0.1)
    chosen = session.select(["a", "b"], [0.0, 1000.0], sensitivity=1.0, rho=0.1)
    assert chosen.candidate == "b"


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.select([], rho=0.1),
        lambda s: s.select(["age < 1"]),
        lambda s: s.select(["age < 1"], rho=0.1, epsilon=0.1),
        lambda s: s.select(["age < 1"], ["age < 1", "age < 2"], rho=0.1),
        lambda s: s.select(["age < 1"], rho=-1),
        lambda s: s.select(["age < 1"], rho=0.1, mechanism="dice"),
        lambda s: s.select(["nothing < 1"], rho=0.1),
        lambda s: s.select(["a"], [[1.0]], sensitivity=1.0, rho=0.1),
        lambda s: s.select(["age < 1"], rho=100.0),
        lambda s: s.sparse_vector(0.5, 1),
        lambda s: s.sparse_vector(2.0, 1, rho=0.1),
        lambda s: s.sparse_vector(0.5, 0, rho=0.1),
        lambda s: s.sparse_vector(0.5, 1, rho=100.0),
    ],
)
def test_bad_choices_cost_nothing(table: hf.Table, ask: Any) -> None:
    session = table.session(rho=1.0)
    with pytest.raises(hf.HoldfastError):
        ask(session)
    assert session.spent == 0


def test_the_sparse_vector_answers_below_for_free(table: hf.Table) -> None:
    session = table.session(epsilon=2.0)
    watch = session.sparse_vector(0.5, hits=2, epsilon=1.0)
    charged = session.spent
    below = [watch.above(f"age < {age}") for age in range(1, 40)]
    assert not any(below)
    assert session.spent == charged == pytest.approx(1.0, rel=1e-6)
    assert [watch.above("age < 90"), watch.above("age < 80")] == [True, True]
    assert watch.halted
    assert session.spent == charged
    with pytest.raises(hf.BudgetError):
        watch.above("age < 70")
    assert watch.half_width(100) < 0.01


def test_the_noisy_threshold_survives_a_restart(table: hf.Table, tmp_path: Path) -> None:
    stored = table.save(tmp_path / "people.hf")
    session = stored.session(epsilon=2.0, name="mine")
    watch = session.sparse_vector(0.5, hits=3, epsilon=0.5, name="salaries")
    watch.above("age < 10")
    watch.above("age < 90")
    secret = watch._vector.to_json()
    spent = session.spent
    restarted = hf.open(tmp_path / "people.hf").session(name="mine")
    again = restarted.sparse_vector(0.5, hits=3, epsilon=0.5, name="salaries")
    assert again._vector.to_json() == secret
    assert (again.asked, again.hits_left) == (2, 2)
    assert restarted.spent == spent
    with pytest.raises(hf.InputError, match="other terms"):
        restarted.sparse_vector(0.4, hits=3, epsilon=0.5, name="salaries")


def test_a_restart_that_draws_anew_is_caught(table: hf.Table) -> None:
    """The broken twin forgets the state: its threshold is another one nearly always."""
    session = table.session(epsilon=10.0)
    first = session.sparse_vector(0.5, hits=3, epsilon=0.01, name="one")
    second = session.sparse_vector(0.5, hits=3, epsilon=0.01, name="another")
    thresholds = [json.dumps(w._vector.to_json()["secret"]) for w in (first, second)]
    assert thresholds[0] != thresholds[1]


@pytest.mark.usefixtures("replayed_noise")
def test_samples_are_votes(table: hf.Table, data: dict[str, Any]) -> None:
    """Flipped as often as is said, at a false-alarm rate of 1e-9; a tenth less and a tenth more are rejected."""
    session, votes, truth = table.session(epsilon=20.0), 30_000, np.mean(data["age"] < 1)
    bits = sum(session.sample("age < 1") for _ in range(votes))
    assert binomial(bits, votes, 0.25 + 0.5 * truth) > FALSE_ALARM
    for flip in (0.9 * 0.25, 1.1 * 0.25):
        assert binomial(bits, votes, flip + (1 - 2 * flip) * truth) < FALSE_ALARM
    each = hf.privacy.pure(hf.privacy.events.Votes(table.rows, 1, 0.25)).epsilon
    assert session.spent == pytest.approx(votes * each, rel=1e-4)
    assert {each.told for each in session.history} == {None}  # a vote without a key is told once
    poor = table.session(epsilon=3 * each)
    for _ in range(2):
        poor.sample("age < 50")
    with pytest.raises(hf.BudgetError):
        for _ in range(2):
            poor.sample("age < 50")
    with pytest.raises(hf.QueryError):
        session.sample("agee < 50")
    exact = table.session(epsilon=1.0, delta=1e-6, only="gaussian")
    exact.sample("age < 50")
    assert 0 < float(exact.spent) <= float(exact.limit)
