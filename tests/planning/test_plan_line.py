"""The line of a plan, and the rule that nothing private at the same budget is narrower but what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from session.numbers import open_rows

import holdfast as hf

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


def test_the_check_notices_a_plan_that_says_nothing_and_one_that_is_too_wide(widths: ModuleType) -> None:
    """Twins: without the words; and 5% wider."""
    assert (1_000, 300) in unsaid(widths, lambda rows, queries: (widths.plain(rows, queries)[0], ""))
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
        (
            1_000,
            {"epsilon": 1, "delta": 1e-6, "queries": 300},
            '; by Gaussian answers alone (only="gaussian") within',
        ),
    ],
)
def test_what_the_line_says_can_be_had(
    widths: ModuleType, rows: int, how: dict[str, float], words: str
) -> None:
    session = open_rows(np.arange(rows)).session(**how)
    assert words in session.plan
    said = widths.offered(session.plan)
    more = {"only": "gaussian"} if "only=" in words else {"delta": None}
    other = open_rows(np.arange(rows)).session(**{**how, **more})
    assert other._terms.places is not None
    assert other._terms.places.width == pytest.approx(said, rel=0.005)
    if other._terms.places.width < 1 and session.meter is not None and session.meter.answers:
        session.fraction("x < 5")
        assert widths.offered(session.plan) is None, "once it has answered, it is no longer a choice"
