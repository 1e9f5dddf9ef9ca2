"""Notebooks as scripts: cells begin with `# %%`. They are run into pages of the book."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A notebook that was run: its text, and its pictures by name."""

    title: str
    text: str
    pictures: dict[str, bytes] = field(default_factory=dict)


def scripts() -> list[Path]:
    """All notebooks, in the order of their names."""
    return sorted(FOLDER.glob("*.py"))


def cells(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it is words, the cell) for each cell."""
    parts = _CELL.split(text)
    for kind, body in zip(parts[1::2], parts[2::2], strict=True):
        words = "[markdown]" in kind
        yield words, re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE) if words else body.strip()


def title(script: Path) -> str:
    """The first heading of a notebook."""
    return (
        next(text for words, text in cells(script.read_text(encoding="utf-8")) if words)
        .splitlines()[0]
        .removeprefix("# ")
    )


def run(script: Path) -> Page:
    """Run all cells in one namespace; what a cell prints and draws stands below it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names: dict[str, Any] = {"__name__": script.stem}
    parts, pictures = list[str](), dict[str, bytes]()
    for words, cell in cells(script.read_text(encoding="utf-8")):
        if words:
            parts.append(cell)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(cell, str(script), "exec"), names)  # noqa: S102  the notebooks are our own
        parts.append(f"```python\n{cell}\n```")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
        for number in plt.get_fignums():
            picture = io.BytesIO()
            plt.figure(number).savefig(picture, format="png", dpi=110, bbox_inches="tight")
            name = f"{script.stem}-{len(pictures)}.png"
            pictures[name] = picture.getvalue()
            parts.append(f"![{script.stem.replace('_', ' ')}]({name})")
        plt.close("all")
    return Page(title(script), "\n\n".join(parts) + "\n", pictures)
