"""docs/client.md runs from top to bottom against a real gateway."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from gateway import Running

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


def test_page_runs(
    house: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", house.url)
    monkeypatch.setenv("HOLDFAST_TOKEN", house.analyst)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102  the page is our own
    shown = capsys.readouterr().out
    assert "fraction where age >= 41" in shown
    assert "1 ann" in shown
    assert "fine" in shown
    assert "confirm=True agrees" in shown
    assert house.analyst not in shown
