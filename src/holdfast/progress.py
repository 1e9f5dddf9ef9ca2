"""Long work is seen while it goes on: a bar where somebody looks, on a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Progress = Callable[[int, int], None]
"""Is told (done, of)."""


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    """A progress bar for as long as the block lasts."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(file=sys.stderr)) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)


@contextmanager
def watched(title: str, told: Progress | None) -> Iterator[Progress]:
    """`told` itself; without it a bar where somebody looks, and nothing elsewhere."""
    if told is not None:
        yield told
    elif "ipykernel" in sys.modules or _is_terminal(sys.stderr):
        with bar(title) as shown:
            yield shown
    else:
        yield lambda done, of: None


def _is_terminal(place: TextIO | None) -> bool:
    """Whether somebody reads it at once. A process without a terminal may have no such place, or a closed one."""
    return place is not None and not place.closed and place.isatty()
