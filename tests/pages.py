"""The pages as programs: the python blocks of a page, and the one runner for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)[ \t]*\{?py", re.MULTILINE | re.IGNORECASE)


def blocks(text: str) -> list[str]:
    """The python blocks of a page, in order. A fence that would be passed over is an error."""
    found = _BLOCK.findall(text)
    assert len(found) == len(_FENCE.findall(text)), "begin python blocks with ```python at the margin"
    return found


def with_python(root: Path) -> dict[str, int]:
    """The pages that have python blocks, with how many."""
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    counted = {str(page.relative_to(root)): len(blocks(page.read_text(encoding="utf-8"))) for page in pages}
    return {page: count for page, count in sorted(counted.items()) if count}


def run(page: str, names: dict[str, Any] | None = None, only: str = "") -> dict[str, Any]:
    """What a page's blocks (those with `only` in them) leave behind, run from top to bottom in one namespace."""
    found = [block for block in blocks((ROOT / page).read_text(encoding="utf-8")) if only in block]
    return run_blocks(found, page, {} if names is None else names)


def run_blocks(found: Sequence[str], page: str, names: dict[str, Any]) -> dict[str, Any]:
    """The same for blocks at hand."""
    assert found, f"{page} has no such block"
    for block in found:
        exec(compile(block, page, "exec"), names)  # noqa: S102  the pages are our own
    return names
