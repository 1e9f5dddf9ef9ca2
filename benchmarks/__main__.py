"""Run benchmarks and write docs/benchmarks.md.

python -m benchmarks                    everything
python -m benchmarks answers scans      only these; the other sections stay as they are
python -m benchmarks --quick            small sizes where a benchmark has them; prints, writes nothing
"""

from __future__ import annotations

import argparse
import inspect
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from benchmarks.page import Section, merged, table  # noqa: E402  (the path must be set first)

HELPERS = ("__main__", "commits", "learn_sets", "load", "page", "stores")


def names() -> list[str]:
    """Every benchmark, in alphabetical order."""
    found = iter_modules([str(Path(__file__).resolve().parent)])
    return sorted(module.name for module in found if module.name not in HELPERS)


def run(name: str, quick: bool, data: Path, figures: Path | None) -> Section:
    """One benchmark's section. A peer that the whole benchmark needs may be missing."""
    module = import_module(f"benchmarks.{name}")
    if not hasattr(module, "rows"):  # the tests forbid it; the others should run all the same
        return Section(name, module.__doc__ or "", [{"not run": "it has no rows()"}], [])
    offered: dict[str, Any] = {"quick": quick, "data": data}
    wanted = inspect.signature(module.rows).parameters
    try:
        rows = module.rows(**{key: value for key, value in offered.items() if key in wanted})
    except ModuleNotFoundError as missing:
        return Section(name, module.__doc__ or "", [{"not run": f"{missing.name} is not installed"}], [])
    drawn = module.plot(rows, figures) if figures is not None and hasattr(module, "plot") else []
    return Section(name, module.__doc__ or "", rows, drawn)


def main(arguments: list[str] | None = None) -> int:
    """Run what was named, with a progress line, and keep the sections of the rest."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="measure, side by side")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="small sizes; prints and writes nothing")
    parser.add_argument("--data", type=Path, default=ROOT / "build" / "bench", help="where large files go")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="where the page and figures go")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(names())
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    wanted = options.names or names()
    page = options.output / "benchmarks.md"
    console = Console()
    line = (TextColumn("{task.description:<14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*line, console=console) as progress:
        task = progress.add_task("", total=len(wanted))
        for name in wanted:
            progress.update(task, description=name)
            section = run(name, options.quick, options.data, None if options.quick else options.output)
            console.print(f"\n{name}\n{table(section.rows)}", markup=False, highlight=False, soft_wrap=True)
            if not options.quick:
                # After each benchmark, so that an interrupted run keeps what it has.
                standing = page.read_text(encoding="utf-8") if page.exists() else ""
                page.write_text(merged(standing, section), encoding="utf-8")
            progress.advance(task)
    return 0


if __name__ == "__main__":
    sys.exit(main())
