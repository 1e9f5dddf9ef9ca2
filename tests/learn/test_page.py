"""docs/learn.md runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "learn.md"


def test_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102  the page is our own
    shown = capsys.readouterr().out
    assert "wrong on 0.0" in shown
    assert "excess loss on the population at most" in shown
    assert "1000 rounds: training error 0.0000" in shown
    assert "EXPOSED" in shown
