"""docs/threats.md names a test and a broken twin for every threat, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SAME = "the same test"


def rows() -> dict[int, list[str]]:
    """The cells of every row, by its number."""
    lines = (ROOT / "docs" / "threats.md").read_text().splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)
    ]
    return {int(row[0]): row for row in cells}


def missing(text: str) -> list[str]:
    """Tests that are named and are not there."""
    return [
        f"{path}::{name}"
        for path, name in NAMED.findall(text)
        if not (ROOT / path).is_file() or f"def {name}(" not in (ROOT / path).read_text()
    ]


def test_every_threat_has_a_test_and_a_twin() -> None:
    table = rows()
    assert sorted(table) == list(range(1, max(32, len(table)) + 1))
    for number, (_, _, _, test, twin) in table.items():
        assert NAMED.search(test), f"row {number} names no test"
        assert NAMED.search(twin) or twin.startswith(SAME), f"row {number} names no twin"
        assert not missing(test + twin), f"row {number}"


def test_a_name_that_is_not_there_is_noticed() -> None:
    assert missing("`tests/docs/test_threats.py::test_that_was_renamed`")
    assert missing("`tests/nowhere.py::test`")
