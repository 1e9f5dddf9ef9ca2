"""Names are the field's words, and a file's name says what is in it without the name of its room."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES, TESTS = ROOT / "src" / "holdfast", ROOT / "tests"

STEMS = {
    "pen": "writer", "book": "reader", "wish": "commit", "ndjson": "export", "copy": "move", "stock": "kept_draws",
    "held": "public_times", "short": "fast_route", "rungs": "ladder_board", "watch": "above_threshold",
}  # fmt: skip
"""Names of files that only their author knew, and what they are called."""

NAMES = {
    "Pen": "Writer", "Book": "Reader", "Wish": "Commit", "While": "Precondition", "Stock": "KeptDraws",
    "Stocks": "DrawCache", "HeldLedger": "PublicTimesLedger", "ShortRoute": "FastRoute", "Rungs": "LadderBoard",
    "Watch": "AboveThreshold", "RemoteWatch": "RemoteAboveThreshold", "taken": "advance", "performed": "run",
}  # fmt: skip
"""The same for classes, types and functions."""

SHARED = {
    "__init__": "a room's door",
    "command": "the commands of a room",
    "open": "the door to what a room keeps",
    "postgres": "what a room keeps, in PostgreSQL",
    "gaussian": "a law in noise/, and its mechanism in mechanisms/",
    "laplace": "a law in noise/, and its mechanism in mechanisms/",
    "logistic": "a law in noise/, and its mechanism in mechanisms/",
    "session": "the same over HTTP in client/",
    "table": "the same over HTTP in client/",
    "questions": "the same over HTTP in client/",
    "above_threshold": "the same over HTTP in client/",
    "together": "what is done at once: measurements in query/, requests in service/",
}
"""Stems that stand in several rooms, and why each says enough."""


def imported(text: str) -> Iterator[str]:
    """What a file imports from the house: rooms, files and names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("holdfast"):
            yield from (*str(node.module).split("."), *(name.name for name in node.names))
        elif isinstance(node, ast.Import):
            yield from (
                part for name in node.names for part in name.name.split(".") if "holdfast" in name.name
            )


def defined(text: str) -> Iterator[str]:
    """The classes, functions and types of a file."""
    for node in ast.parse(text).body:
        yield from (name.id for name in getattr(node, "targets", []) if isinstance(name, ast.Name))
        yield getattr(node, "name", "")


def banned_in(folder: Path, *ways: Callable[[str], Iterable[str]]) -> set[str]:
    """Where the banned names are: of files, or in them."""
    found = set()
    for path in folder.rglob("*.py"):
        place, text = path.relative_to(folder).as_posix(), path.read_text()
        found |= {place} if path.stem.removeprefix("test_") in STEMS else set()
        found |= {f"{place}: {name}" for way in ways for name in way(text) if name in STEMS or name in NAMES}
    return found


def shared_stems(folder: Path) -> set[str]:
    """The stems of more than one file."""
    stems = Counter(path.stem for path in folder.rglob("*.py"))
    return {stem for stem, files in stems.items() if files > 1}


def test_nobody_uses_the_words_of_one_author() -> None:
    assert banned_in(SOURCES, imported, defined) == set()
    assert banned_in(TESTS, imported) == set()  # what tests call their own is their own


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ledger/pen.py", ""),
        ("ledger/test_wish.py", ""),
        ("ledger/writer.py", "class Pen: ..."),
        ("service/times.py", "class HeldLedger: ..."),
        ("noise/laplace.py", "from holdfast.noise import stock"),
        ("desk/steps.py", "def performed(): ..."),
        ("ledger/commit.py", "Wish = int | str"),
        ("session/session.py", "from holdfast.ledger import Charge, While"),
        ("session/session.py", "from holdfast.session.watch import level_of"),
        ("service/api.py", "import holdfast.service.short"),
    ],
)
def test_an_old_name_would_be_noticed(path: str, text: str, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(text)
    assert banned_in(tmp_path, imported, defined)


def test_other_words_are_free(tmp_path: Path) -> None:
    (tmp_path / "threshold.py").write_text(
        "from copy import copy\nclass Penalty: ...\ndef score(taken):\n    held = 1\nclass Taken: ...\n"
    )
    assert banned_in(tmp_path, imported, defined) == set()


def test_a_stem_in_two_rooms_has_a_reason_and_a_reason_two_rooms() -> None:
    assert shared_stems(SOURCES) == SHARED.keys()


def test_a_second_file_of_a_name_would_be_noticed(tmp_path: Path) -> None:
    for path in ("ledger/plan.py", "session/plan.py", "session/answer.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert shared_stems(tmp_path) == {"plan"}
