"""docs/stream.md is run from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_page_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "stream.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/stream.md", "exec"), names)  # noqa: S102 - our own page
    assert abs(names["visits"].total() - 90) < names["visits"].half_width(1e-9)  # type: ignore[attr-defined]
