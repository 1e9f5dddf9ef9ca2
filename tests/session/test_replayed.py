"""A session takes the system's bits and no others; what a test replays says so wherever it is kept."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from forking import LABELS, SESSION, Asked

import holdfast as hf
from holdfast.desk import desk as desk_module
from holdfast.desk import paid as paid_module
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.ledger import export, verify, verify_export
from holdfast.ledger.entry import is_replayed
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.session import session as session_module
from holdfast.synthesis import mwem, quality, small_database

CHARGED = sorted(
    set(SESSION) - {"a question asked before", "the same sparse vector", "another session", "limit"}
)
SCHEMA = hf.Schema(a=hf.Category("x", "y", "z"), b=hf.Boolean())
CELLS = [f"a = '{a}' AND {b}" for a in "xyz" for b in ("b", "NOT b")]


def new_plans(asked: Asked, action: str) -> list[str]:
    """What the ledger keeps of the charges that an action makes while noise is replayed."""
    before = len(list(asked.session._ledger.entries()))
    with replayed(ReplayedBits(3)):
        SESSION[action](asked)
    return [entry.plan for entry in asked.session._ledger.entries()][before:]


@pytest.mark.parametrize("action", CHARGED)
def test_every_charge_that_is_replayed_says_so(action: str) -> None:
    asked = Asked()
    plans = new_plans(asked, action)
    assert plans
    assert all(json.loads(plan)["replayed"] is True for plan in plans)
    ledger = asked.session._ledger
    assert verify(ledger).replayed == len(plans)
    charges = f"{len(plans)} charge{'' if len(plans) == 1 else 's'}"
    assert f"{charges} REPLAYED, not private" in str(verify(ledger))
    assert sum(
        each.replayed and "REPLAYED, not private" in str(each) for each in asked.session.history
    ) == len(plans)
    lines = list(export(ledger))
    assert str(verify_export(lines)) == str(verify(ledger))
    assert sum('"{\\"replayed\\": true' in line for line in lines) == len(plans)


def test_a_session_that_forgets_to_say_so_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin. A record for the unmarked entry is refused on top of that."""
    asked = Asked()
    monkeypatch.setattr(desk_module, "noted", lambda plan: plan)
    with pytest.raises(hf.LedgerError, match="real noise"):
        new_plans(asked, "a question")
    monkeypatch.setattr(paid_module, "refuse_to_replay", lambda entry: None)
    assert not any(map(is_replayed, new_plans(asked, "statistic")))


def test_what_is_not_replayed_does_not_say_so() -> None:
    asked = Asked()
    for action in CHARGED:
        SESSION[action](asked)
    assert verify(asked.session._ledger).replayed == 0
    assert "REPLAYED" not in str(verify(asked.session._ledger))
    assert not any("replayed" in line for line in export(asked.session._ledger))
    assert not any(answer.replayed for answer in asked.session.history)


def test_a_question_about_the_word_is_not_taken_for_it() -> None:
    schema = hf.Schema(a=hf.Category("x", '{"replayed": true, '))
    session = hf.open({"a": ["x", "x"]}, schema).session(rho=1.0, target="table")
    session.count("""a = '{"replayed": true, '""", rho=0.1)
    assert verify(session._ledger).replayed == 0


def test_replayed_answers_say_so_in_history_and_in_print() -> None:
    session = Asked().session
    with replayed(ReplayedBits(3)):
        answer = session.count("age > 12", rho=0.01)
    told = [each for each in session.history if isinstance(each, hf.Answer)]
    assert [each.replayed for each in told] == [False, True]
    for shown in (answer, told[1], session.count("age > 12", rho=0.01)):
        assert shown.replayed
        assert "REPLAYED, not private" in str(shown)
        assert "REPLAYED, not private" in shown._repr_html_()
    with replayed(ReplayedBits(3)):  # an older answer stays what it was
        assert not session.count("age > 50", rho=0.01).replayed
    assert not hf.Answer.from_json(told[0].to_json()).replayed


@pytest.mark.parametrize("mode", ["gaussian", "votes", "thresholdout"])
def test_replayed_looks_say_so(mode: str) -> None:
    holdout = ReusableHoldout(LABELS, queries=9, mode=mode)
    holdout.score(LABELS)
    with replayed(ReplayedBits(3)):
        holdout.score(LABELS)
    assert [answer.replayed for _, answer in holdout.history()] == [False, True]


def test_what_was_charged_for_real_noise_gets_no_replayed_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge whose answer was lost is resumed by real noise only."""
    asked = Asked()

    def lost(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as crash, pytest.raises(KeyboardInterrupt):
        crash.setattr(session_module, "release", lost)
        asked.session.count("age > 33", rho=0.01)
    with replayed(ReplayedBits(3)), pytest.raises(hf.LedgerError, match="real noise"):
        asked.session.count("age > 33", rho=0.01)
    assert not asked.session.count("age > 33", rho=0.01).replayed


def test_noise_that_is_known_beforehand_gives_the_rows_away() -> None:
    """Why there is no such argument: a dummy table of the same length under the same seed shows the noise."""

    def released(data: dict[str, Any]) -> np.ndarray[Any, Any]:
        session = hf.open(data, SCHEMA).session(rho=1.0, target="table")
        with replayed(ReplayedBits(7)):
            session.synthesize(["a", "b"], CELLS, rho=1e-6, nulls=[])
        (entry,) = session._ledger.entries()
        assert is_replayed(entry.plan)
        return np.array(json.loads(entry.answer or "")[0][1])

    generator = np.random.default_rng(3)
    secret = {"a": generator.choice(["x", "y", "z"], 5000), "b": generator.random(5000) < 0.37}
    dummy = {"a": np.array(["x"] * 5000), "b": np.zeros(5000, bool)}
    truth = [int(((secret["a"] == a) & (secret["b"] == b)).sum()) for a in "xyz" for b in (False, True)]
    assert (released(secret) - released(dummy) + np.array([5000, 0, 0, 0, 0, 0])).tolist() == truth


BITS = ReplayedBits(7)
CALLS: dict[str, Any] = {
    "synthesize": lambda s, made: s.synthesize(["smoker"], ["smoker"], rho=0.01, bits=BITS),
    "small database": lambda s, made: s.synthesize(
        ["smoker"], ["smoker"], epsilon=0.1, size=2, method="small-database", bits=BITS
    ),
    "mwem": lambda s, made: mwem(s, ["smoker"], ["smoker"], rho=0.01, bits=BITS),
    "small_database": lambda s, made: small_database(
        s, ["smoker"], ["smoker"], epsilon=0.1, size=2, bits=BITS
    ),
    "quality": lambda s, made: quality(s, made, ["smoker"], rho=0.01, bits=BITS),
    "weights": lambda s, made: s.multiplicative_weights(["smoker"], queries=9, within=0.2, bits=BITS),
    "minimize": lambda s, made: s.minimize(
        hf.learn.logistic(s.schema, ["age"], "smoker"), rho=0.5, bits=BITS
    ),
    "learn_in": lambda s, made: hf.learn.FiniteClass(hf.learn.Thresholds([20.0])).learn_in(
        s, ["age"], "smoker", epsilon=0.5, bits=BITS
    ),
    "count": lambda s, made: s.count("smoker", rho=0.01, bits=BITS),
    "select": lambda s, made: s.select(["smoker", "age > 3"], epsilon=0.1, bits=BITS),
    "sample": lambda s, made: s.sample("smoker", bits=BITS),
    "sparse vector": lambda s, made: s.sparse_vector(0.5, 1, epsilon=0.1, bits=BITS),
    "holdout": lambda s, made: ReusableHoldout(LABELS, queries=9, bits=BITS),
    "leaderboard": lambda s, made: Leaderboard(LABELS, queries=9, bits=BITS),
}


@pytest.mark.parametrize("call", CALLS)
def test_nobody_can_give_a_session_bits(call: str) -> None:
    asked = Asked()
    before = list(asked.session._ledger.entries())
    with pytest.raises((TypeError, hf.InputError), match="bits"):
        CALLS[call](asked.session, asked.synthetic)
    assert list(asked.session._ledger.entries()) == before


def test_no_code_of_ours_opens_the_door() -> None:
    """Only tests import it by its name, and no public module has it."""
    from holdfast.noise import _replay

    holders = [
        name
        for name, module in list(sys.modules.items())
        if name.startswith("holdfast")
        and module is not _replay
        and any(value is _replay.replayed for value in vars(module).values())
    ]
    assert holders == []
