"""Words are for people. Every sentence that a session writes is said otherwise here, and all goes on as before."""

from __future__ import annotations

import ast
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from laws import releases
from laws.judge import judged
from laws.releases import BASE, KINDS, Release

import holdfast as hf
from holdfast.ledger import Entry
from holdfast.planning.plan import Plan
from holdfast.session.answer import Answer
from holdfast.session.session import Session
from holdfast.synthesis import mwem

WORDS = '{"recipe": "weights above opens compares smooth", "kind": 7}'
"""Such as nobody writes, and full of what somebody might look for."""


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of charges, questions in the ledger, reasons of plans and explanations of answers are all these words."""
    pay, answer = Session.pay, Answer.__init__

    def said_otherwise(self: Answer, *parts: Any, **named: Any) -> None:
        answer(self, *parts, **named | {"explanation": WORDS})

    reasons = cached_property(lambda plan: WORDS)
    reasons.__set_name__(Plan, "_reasons")
    numbers = lambda plan: f'{{"kind": "statistic", "question": {json.dumps(WORDS)}, {plan._numbers[1:]}'  # noqa: E731
    monkeypatch.setattr(
        Session, "pay", lambda self, kind, words, *what, **how: pay(self, kind, WORDS, *what, **how)
    )
    monkeypatch.setattr(Answer, "__init__", said_otherwise)
    monkeypatch.setattr(Plan, "_reasons", reasons)
    monkeypatch.setattr(Plan, "text", property(numbers))


OTHERS = [one for one in releases.others() if one.currency in ("zcdp", "pure")]
ANSWERED = [
    one for *_, one in releases.answered() if one.name.startswith(("fraction,", "quantile,", "mean by,"))
]


@pytest.mark.usefixtures("reworded")
@pytest.mark.parametrize("release", [*OTHERS, *ANSWERED], ids=lambda release: release.name)
def test_what_was_charged_is_what_was_done_in_any_words(release: Release) -> None:
    found = judged(release)
    assert found is None or found.overcharge <= release.slack


def course(rows: tuple[Any, ...]) -> list[Any]:
    """What a session tells that is left and taken up again: weights, a sparse vector, a choice, synthetic data."""
    session = Release("", lambda s: None, "zcdp", {"target": "table", "confidence": 0.5}).opened(rows)
    session.multiplicative_weights(["g", "t"], queries=12, within=0.2).fraction("t")
    session.multiplicative_weights(["g", "t"], queries=12, within=0.2).product({"g": [1.0, 0.0, 0.1]})
    told: list[Any] = []
    for _ in range(2):
        weights = session.multiplicative_weights(["g", "t"], queries=12, within=0.2)
        watch = session.sparse_vector(0.5, 1, epsilon=1e4)
        watch.above("x < -1", call="first")
        chosen = session.select(["x > 0", "x < 0"], epsilon=1e4)
        made = mwem(session, ["g", "t"], ["g = 'a'", "t"], rho=100.0)
        counted = session.count("t", rho=10.0)
        told.append(
            [
                weights._released, weights.updates, weights.asked, weights.weights.probabilities()[0].tolist(),
                watch.asked, chosen.index, made.weights.probabilities()[0].tolist(), counted.value,
                session.known.count("t", rho=10.0),
                [each.value for each in session.history if isinstance(each, hf.Answer)],
            ]
        )  # fmt: skip
        session._vectors.clear()
    return told


@pytest.mark.usefixtures("reworded")
def test_what_is_left_is_taken_up_again_in_any_words() -> None:
    before, after = course(KINDS[:1] * 40)
    assert before == after
    released, updates, asked, *_, known, history = after
    assert (updates, asked, len(released)) == (2, 2, 2)
    assert known is True and len(history) == 1


@pytest.mark.usefixtures("reworded")
def test_a_lost_answer_is_resumed_in_any_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.session import session as room

    session = Release("", lambda s: None, "zcdp", {"target": "table"}).opened(BASE)
    with monkeypatch.context() as crash, pytest.raises(KeyboardInterrupt):
        crash.setattr(room, "release", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        session.count("t", rho=10.0)
    assert session.history == []
    assert session.count("t", rho=10.0).value == session.history[0].value


def test_a_history_that_searches_for_words_would_be_noticed(
    reworded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: what the house once did. A choice whose words look like a recipe is taken for an answer."""
    session = Release("", lambda s: None, "zcdp", {"target": "table"}).opened(BASE)
    session.select(["x > 0", "x < 0"], epsilon=1.0)
    assert [type(each).__name__ for each in session.history] == ["Release"]
    searched = property(lambda entry: "statistic" if "recipe" in entry.plan else "")
    monkeypatch.setattr(Entry, "kind", searched)
    with pytest.raises((TypeError, KeyError, ValueError, AttributeError)):
        assert session.history


def searches(text: str) -> list[str]:
    """Facts that are looked for in the words of plans, labels and explanations."""
    found = []
    for node in ast.walk(ast.parse(text)):
        words = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            inside = ast.unparse(node.comparators[-1])
            found += [words] if inside.rpartition(".")[2] in PROSE and "." in inside else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value).rpartition(".")[2]
            found += (
                [words]
                if node.func.attr in ("startswith", "endswith", "find", "index") and owner in PROSE
                else []
            )
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            owner = ast.unparse(node.value).rpartition(".")[2]
            found += [words] if owner in PROSE else []
    return found


PROSE = {"plan", "explanation", "question", "label", "words", "text"}
ROOMS = ("desk", "planning", "session", "weights", "optimize", "synthesis", "learn")


def test_no_fact_of_a_session_is_looked_for_in_words() -> None:
    house = Path(hf.__file__).parent
    found = {
        one for room in ROOMS for path in (house / room).rglob("*.py") for one in searches(path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize(
    "line",
    [
        """'"recipe"' in entry.plan""",
        "answer.explanation.startswith('stands')",
        "self._only in answer.explanation",
        "query.text.startswith('{')",
        "entry.question[len('weights'):]",
    ],
)
def test_a_fact_in_words_would_be_noticed(line: str) -> None:
    assert searches(line)
