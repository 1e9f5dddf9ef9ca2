"""docs/holdout.md runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "holdout.md"


def test_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102  the page is our own
    shown = capsys.readouterr().out
    assert "500 looks at 100,000 rows by votes" in shown
    assert "'red' has 0 looks left" in shown
    assert "rank" in shown
