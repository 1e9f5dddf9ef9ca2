"""Play all games, audit all mechanisms, write docs/evidence.md and its figures.

python evidence/run.py              everything: about twenty minutes on two cores, resumable
python evidence/run.py --scale 0.01 a taste
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

# Before NumPy is imported: two processes, one thread each.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "evidence" / "diffprivlib.md"
MUTANTS = ROOT / "evidence" / "mutants.md"
WIDTHS = ROOT / "evidence" / "widths.md"
ATTACKS = ROOT / "evidence" / "attacks.md"
LEARNERS = ROOT / "evidence" / "learners.md"
METRICS = ROOT / "evidence" / "metrics.md"
SOAK = ROOT / "evidence" / "soak.md"
LARGE_LEDGER = ROOT / "evidence" / "large_ledger.md"
UNITS = tuple(ROOT / "evidence" / f"unit_{name}.md" for name in ("keys", "times"))
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from evidence import crashes, gateway, plots, tables  # noqa: E402  (the path must be set first)
from evidence.cache import Cache  # noqa: E402
from evidence.cells import Job, cells, jobs, run  # noqa: E402
from evidence.summary import Summary, verdicts  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 if naive answers failed, no other claim was refuted, and the audit found nothing."""
    options = _options(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    wanted = [cell for cell in cells(options.scale) if options.only in cell.key]
    cache = Cache(options.cache, ROOT / "src" / "holdfast")
    todo = jobs(wanted)
    _play([job for job in todo if cache.get(job) is None], cache, options.processes)
    summaries = [
        Summary.of(cell, [game for job in todo if job.cell == cell for game in cache.get(job) or []])
        for cell in wanted
    ]
    audit, audit_failed = _audit(options.audit, options.output)
    if PEERS.exists():
        audit += "\n" + PEERS.read_text()
    command = "make evidence" if options.scale == 1.0 else f"python evidence/run.py --scale {options.scale:g}"
    killed, crashes_failed = _crashes(options)
    attacked, gateway_failed = _gateway(options)
    page = f"{tables.document(summaries, audit, command).rstrip()}\n\n{killed.rstrip()}\n{attacked}"
    for record in (SOAK, LARGE_LEDGER, WIDTHS, ATTACKS, METRICS, LEARNERS, MUTANTS, *UNITS):
        if record.exists():
            page = f"{page.rstrip()}\n\n{record.read_text()}"
    (options.output / "evidence.md").write_text(page)
    coverage = [s for s in summaries if s.cell.experiment == "coverage"]
    breaking = [s for s in summaries if s.cell.experiment == "breaking"]
    if coverage:
        plots.coverage(coverage, options.output / "evidence-coverage.png")
    if breaking:
        plots.breaking(breaking, options.output / "evidence-breaking.png")
    problems = verdicts(coverage)
    for problem in problems:
        print(problem)
    print(f"wrote {options.output / 'evidence.md'}: {len(summaries)} cells, {len(problems)} problems")
    return int(bool(problems) or audit_failed or crashes_failed or gateway_failed)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of games")
    parser.add_argument(
        "--audit", type=float, default=1.0, help="share of the full number of audit runs, 0 for none"
    )
    parser.add_argument(
        "--only", default="", help="only cells whose name contains this; nobody is killed then"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs")
    parser.add_argument("--cache", type=Path, default=ROOT / ".evidence")
    return parser.parse_args(arguments)


def _play(todo: list[Job], cache: Cache, processes: int) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns) as progress, ProcessPoolExecutor(processes, get_context("fork")) as pool:
        task = progress.add_task("games", total=sum(job.count for job in todo))
        futures = {pool.submit(run, job): job for job in todo}
        for future in as_completed(futures):
            job = futures[future]
            cache.put(job, future.result())
            progress.update(task, advance=job.count, description=f"{job.cell.attack} / {job.cell.answerer}")


def _audit(effort: float, output: Path) -> tuple[str, bool]:
    """The audit's table, and whether something was wrong. Nothing is run with effort 0."""
    if not effort:
        return "Not run this time.\n", False
    from rich.progress import Progress

    from holdfast.audit.audit_report import run_all

    with Progress() as progress:
        task = progress.add_task("audit", total=None)
        report = run_all(
            lambda name, done, total: progress.update(
                task, description=name or "audit", completed=done, total=total
            ),
            effort=effort,
        )
    report.plot(output / "evidence-audit.png")
    return report.to_markdown(), bool(report.exit_status)


def _crashes(options: argparse.Namespace) -> tuple[str, bool]:
    """The section on kills and races, and whether something was wrong; the last one where none is run."""
    if options.only:
        return crashes.RECORD.read_text() if crashes.RECORD.exists() else "", False
    text, failed = crashes.run(max(4, round(1000 * options.scale)), max(4, round(200 * options.scale)))
    if options.scale == 1.0:
        crashes.RECORD.write_text(text)
    return text, failed


def _gateway(options: argparse.Namespace) -> tuple[str, bool]:
    """The section on the gateway, and whether something was wrong; only a whole run attacks it anew."""
    if options.only or options.scale < 1.0:
        return gateway.RECORD.read_text() if gateway.RECORD.exists() else "", False
    text, failed = gateway.run(gateway.REQUESTS, gateway.EXAMPLES)
    gateway.RECORD.write_text(text)
    return text, failed


if __name__ == "__main__":
    sys.exit(main())
