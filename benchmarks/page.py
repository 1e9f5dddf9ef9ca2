"""The page of results: one section for each benchmark, with its command, date and machine."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "duckdb", "polars", "opendp", "diffprivlib", "python-dp")
_PART = "part"
HEAD = """# Benchmarks

Written by `make bench` (`python -m benchmarks`); do not edit. Times on a small shared machine are noise:
compare ratios inside one table, where all systems took turns. Goals that were missed are shown as missed.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """What one benchmark found. `about` is its module's docstring."""

    name: str
    about: str
    rows: list[dict[str, Any]]
    figures: list[str]

    def __str__(self) -> str:
        pictures = "".join(f"\n![{figure}]({figure})\n" for figure in self.figures)
        return (
            f"## {self.name}\n\n{self.about.strip()}\n\n`python -m benchmarks {self.name}`, "
            f"{datetime.date.today().isoformat()}; {machine()}\n\n{table(self.rows)}\n{pictures}"
        )


def merged(page: str, section: Section) -> str:
    """The page with this section put in or replaced, in alphabetical order; the others stay."""
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    known = {part.partition("\n")[0].strip(): f"## {part.rstrip()}\n" for part in parts}
    known[section.name] = f"{str(section).rstrip()}\n"
    return "\n".join([HEAD, *(known[name] for name in sorted(known))])


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown; a row without a column leaves it blank, and one whose first column has another name starts
    another table. So does another `part`, which is told above its table. Columns of numbers are set to the right."""
    parts = groupby(rows, key=lambda row: (next(iter(row)), row.get(_PART)))
    return "\n\n".join(_headed(part, list(found)) for (_, part), found in parts)


def titled(play: Callable[..., object]) -> str:
    """A part's name, and what it says of itself."""
    about = " ".join((play.__doc__ or "").split())
    return f"**{play.__name__.replace('_', ' ')}**: {about}"


def _headed(part: str | None, rows: list[dict[str, Any]]) -> str:
    if part is None:
        return _table(rows)
    return f"{part}\n\n{_table([{name: row[name] for name in row if name != _PART} for row in rows])}"


def _table(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_shown(row.get(name)) for name in names] for row in rows]
    rules = ["---:" if all(_numeric(row.get(name)) for row in rows) else "---" for name in names]
    return "\n".join(f"| {' | '.join(line)} |" for line in [names, rules, *cells])


def _numeric(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value).replace("|", "\\|")


def machine() -> str:
    """Cores, how busy they are, Python, and the versions of the peers."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"model name\s*: (.*)", cpuinfo.read_text())):
        processor = found[1]
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    # A scan on all cores suffers more from other people's work than an answer on one.
    load = f"load {os.getloadavg()[0]:.1f} at the end"
    return f"{os.cpu_count()} cores ({processor}), {load}, Python {platform.python_version()}, {versions}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
