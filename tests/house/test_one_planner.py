"""Noise for adaptive answers is planned in one room, and the next promise is derived in one file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[2] / "src" / "holdfast"
SOURCES = sorted(HOUSE.rglob("*.py"))

THEOREMS = {"gaussian_answers", "vote_answers", "discretised", "splitting"}
"""The files of `validity` whose functions turn noise into widths; whoever imports one plans by himself."""
TUNERS = {
    "gaussian_noise", "gaussian_width", "population_term", "votes_noise", "votes_width", "votes_term", "fewest_votes",
    "gaussian_odds_noise", "best_cells",
}  # fmt: skip
PROMISES = {"promises", "share", "shares"}
PLANNED_ELSEWHERE = {"validity", "audit"}
"""The planner's own room; and the opponent, who plays published mechanisms at noises of his choice."""


def plans_by_itself(path: Path) -> set[str]:
    """What a file uses of the theorems below the planner, under whatever name it imports them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast.validity"):
            names = {alias.name for alias in node.names}
            module = (node.module or "").removeprefix("holdfast.validity").removeprefix(".")
            found |= names if module in THEOREMS else names & (TUNERS | (set() if module else THEOREMS))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.rpartition(".")[2] in THEOREMS}
        elif isinstance(node, ast.Attribute):
            found |= {node.attr} & TUNERS
    return found


def calls(path: Path, names: set[str]) -> list[str]:
    """The calls of these names in a file, as functions or as attributes."""
    made = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    said = (f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in made)
    return [name for name in said if name in names]


def promises_made(path: Path) -> list[str]:
    """The calls of what derives a promise, as functions or through the module; a ledger's `shares` are accounts."""
    made = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    found = []
    for call in made:
        if isinstance(call, ast.Name):
            found.append(call.id)
        elif (
            isinstance(call, ast.Attribute)
            and isinstance(call.value, ast.Name)
            and call.value.id == "promise"
        ):
            found.append(call.attr)
    return [name for name in found if name in PROMISES]


def refusals(text: str) -> int:
    """How often a file refuses answers beyond the promise in its own words."""
    return len(re.findall(r"intervals were promised for \{", text))


def test_noise_for_adaptive_answers_is_planned_in_one_room() -> None:
    for path in SOURCES:
        if path.relative_to(HOUSE).parts[0] not in PLANNED_ELSEWHERE:
            assert not plans_by_itself(path), path


@pytest.mark.parametrize(
    "line",
    [
        "from holdfast.validity.gaussian_answers import gaussian_noise as best",
        "from holdfast.validity import votes_noise",
        "from holdfast.validity import gaussian_answers",
        "import holdfast.validity.vote_answers",
        "def f():\n    from holdfast import validity\n    return validity.gaussian_width(1, 1, 0.5, 9.0)",
    ],
)
def test_a_second_planner_would_be_noticed(line: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(line + "\n")
    assert plans_by_itself(bad)


def test_holdouts_are_made_from_an_option_by_one_function() -> None:
    places = [path.name for path in (HOUSE / "holdout").glob("*.py") for _ in calls(path, {"Design"})]
    assert places == ["design.py"]


def test_the_next_promise_is_derived_and_refused_in_one_file() -> None:
    for path in SOURCES:
        if not path.match("holdfast/planning/promise.py"):
            assert not promises_made(path), path
            assert refusals(path.read_text()) == 0, path
    assert refusals((HOUSE / "planning" / "promise.py").read_text()) == 1


def test_a_second_promise_would_be_noticed(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text('x = promise.promises("table", 1, share(2, 1), f"the intervals were promised for {2}")\n')
    assert sorted(promises_made(bad)) == ["promises", "share"]
    assert refusals(bad.read_text()) == 1
