"""The line of a plan, and the rule that nothing private at the same budget is narrower but what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from session.numbers import open_rows

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.planning import session_plan

GRID = [(n, k) for n in (10, 100, 1_000, 10_000) for k in (1, 10, 300)]
_NEAR = 1.011
"""A hundredth is not worth a word; what is printed has three digits."""


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2])
    from evidence import widths

    return widths


def unsaid(widths: ModuleType, width: Callable[[int, int], tuple[float, str]]) -> list[tuple[int, int]]:
    """Where another private session at the same budget is narrower and the plan does not say so."""
    found = []
    for rows, queries in GRID:
        own, words = width(rows, queries)
        least = min(widths.private(rows, queries).values())
        said = widths.offered(words)
        if min(own, 1.0) > _NEAR * least and (said is None or said > _NEAR * least):
            found.append((rows, queries))
    return found


def test_no_private_session_of_the_same_budget_is_narrower_but_what_the_plan_says(
    widths: ModuleType,
) -> None:
    assert unsaid(widths, widths.plain) == []


def test_the_check_notices_a_plan_in_the_wrong_currency_and_one_that_is_too_wide(
    widths: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twins: rho where mu squared is narrower; and 5% wider."""
    with monkeypatch.context() as patched:
        patched.setattr(session_plan, "is_narrower", lambda made, places: False)
        assert (1_000, 300) in unsaid(widths, widths.plain)
    assert len(unsaid(widths, lambda rows, queries: (1.05 * widths.plain(rows, queries)[0], ""))) > 7


def test_the_plain_path_is_as_narrow_as_the_theorem_at_any_budget_where_the_budget_allows_it(
    widths: ModuleType,
) -> None:
    """Within 3% of the least of ours; one answer of 1,000 rows is narrower than splitting gives."""
    for rows, queries in ((1_000, 1), (10_000, 10), (10_000, 100), (1_000_000, 1_000)):
        own = widths.plain(rows, queries)[0]
        ours = [
            hf.validity.width(name, rows=rows, queries=queries, confidence=0.95)
            for name in ("leave-out", "leave-out-votes", "gaussian", "votes")
        ]
        assert own <= 1.03 * min(ours)
    assert widths.plain(1_000, 1)[0] < hf.validity.width("splitting", rows=1_000, queries=1, confidence=0.95)


@pytest.mark.parametrize(
    ("rows", "how", "words"),
    [
        (10, {"epsilon": 1, "delta": 1e-6, "queries": 1}, "; without delta= (pure epsilon) within 0.558"),
    ],
)
def test_what_the_line_says_can_be_had(
    widths: ModuleType, rows: int, how: dict[str, float], words: str
) -> None:
    session = open_rows(np.arange(rows)).session(**how)
    assert words in session.plan
    said = widths.offered(session.plan)
    other = open_rows(np.arange(rows)).session(**{**how, "delta": None})
    assert other._terms.places is not None
    assert other._terms.places.width == pytest.approx(said, rel=0.005)
    if other._terms.places.width < 1 and session.meter is not None and session.meter.answers:
        session.fraction("x < 5")
        assert widths.offered(session.plan) is None, "once it has answered, it is no longer a choice"


def small(rows: int) -> hf.Table:
    return hf.open({"x": np.arange(rows) % 10}, hf.Schema(x=hf.Integer(0, 99)), ledger=MemoryLedger())


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("how", [{"epsilon": 1, "delta": 1e-6}, {"epsilon": 1}, {"rho": 0.02}])
def test_a_handful_of_units_is_answered_or_refused_with_the_nearest_uncharged(
    rows: int, how: dict[str, float]
) -> None:
    """Either an interval that tells something, or words for what could be had; and never a charge with a refusal."""
    session = small(rows).session(**how, queries=1)
    if "each within" in session.plan:
        answer = session.fraction("x < 5")
        assert answer.width <= float(re.search(r"each within ([0-9.]+)", session.plan)[1]) < 1  # type: ignore[index]
        return
    nearest = r"could be within|takes (rho|epsilon)|target=\"table\"|without delta="
    assert re.search(nearest, session.plan)
    with pytest.raises(hf.InputError, match=nearest):
        session.fraction("x < 5")
    assert session.spent == 0 and session.history == []
    assert small(rows).session(**how, queries=1, target="table").fraction("x < 5", epsilon=0.01).width <= 1


def test_a_million_million_answers_are_refused_with_how_many_there_could_be() -> None:
    table = small(2_000)
    session = table.session(epsilon=1, delta=1e-6, queries=10**12)
    assert re.search(r"\d+ answers could be within 0\.\d+: open a session for fewer", session.plan)
    with pytest.raises(hf.InputError, match="could be within"):
        session.fraction("x < 5")
    assert session.spent == 0
    with pytest.raises(hf.InputError, match="could be within"):
        table.session(epsilon=1, delta=1e-6, queries=10**12, intervals="rare")
    with pytest.raises(hf.MechanismError, match=r"for [0-9,]+ answers it can be") as refused:
        table.session(within=0.1, queries=10**12)
    many = int(re.search(r"for ([0-9,]+) answers", str(refused.value))[1].replace(",", ""))  # type: ignore[index]
    assert table.session(within=0.1, queries=many).queries == many > 1


@pytest.mark.parametrize(("confidence", "words"), [(0.5, "at 0.5,"), (1 - 1e-12, "at 1 - 1e-12,")])
def test_a_confidence_is_kept_and_never_said_to_be_more(confidence: float, words: str) -> None:
    session = small(1_000).session(epsilon=1, delta=1e-6, queries=10, confidence=confidence)
    assert words in session.plan
    answer = session.fraction("x < 5")
    assert answer.low <= 0.5 <= answer.high and answer.confidence == confidence
    assert "100%" not in str(answer) and words[3:-1] in f"{answer} {session.report()}"


def test_a_width_that_nothing_certifies_names_one_that_can_be_had() -> None:
    table = small(1_000)
    with pytest.raises(hf.MechanismError, match=r"0\.0\d+ can be") as refused:
        table.session(within=1e-9, queries=10)
    nearest = float(re.search(r"; ([0-9.]+) can be", str(refused.value))[1])  # type: ignore[index]
    assert table.session(within=nearest * 1.01, queries=10).fraction("x < 5").width <= nearest * 1.01
    session = small(1_000).session(epsilon=1, delta=1e-6, queries=10)
    with pytest.raises(hf.InputError, match="can be, for 1 answer") as narrow:
        session.fraction("x < 5", within=1e-9)
    assert session.spent == 0
    nearest = float(re.search(r"within=([0-9.]+) can be", str(narrow.value))[1])  # type: ignore[index]
    rich = small(1_000).session(rho=10, queries=10)
    assert rich.fraction("x < 5", within=nearest * 1.01).width <= nearest * 1.01
