"""Plant every fault of the listed functions and a share of the others, and write evidence/mutants.md.

python -m mutants                     all listed faults and one in fifty elsewhere: about an hour on two cores
python -m mutants --only privacy/rule the faults of some functions; nothing is written
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mutants.listed import LISTED, ROOMS, is_listed, reason
from mutants.plant import ROOT, SOURCES, Fault, faults, functions
from mutants.run import PATIENCE, Tests, Verdict, judge

LEFT = ("survived", "timed out", "unreached")
"""Outcomes that leave a fault unkilled; one that cannot be planted is no outcome."""

RECORD = ROOT / "evidence" / "mutants.md"
TESTED = (
    "laws",
    "privacy",
    "mechanisms",
    "query",
    "planning",
    "session",
    "weights",
    "optimize",
    "validity",
    "ledger",
    "learn",
    "synthesis",
    "holdout",
    "stream",
    "audit",
)
"""The folders of tests that are tried; those that start servers and browsers test other things."""


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 if every fault of the listed functions was killed, or has a reason."""
    options = _options(arguments)
    listed, drawn, all_others = _chosen(options.share, options.seed, options.only)
    with tempfile.TemporaryDirectory() as folder:
        touched = options.touched or Path(folder) / "touched"
        if options.touched is None:
            _touch(touched, options.processes)
        parts = list(touched.parent.glob(touched.name + ".*"))
        tests = Tests(parts, None if options.touched is None else _collected(parts))
    verdicts = _judged([*listed, *drawn], tests, options.processes, Kills(options.cache), options.patience)
    page, failed = report(verdicts, len(drawn), all_others, options.share, options.seed)
    if options.only:
        print(page)
    else:
        RECORD.write_text(page)
        print(f"wrote {RECORD.relative_to(ROOT)}")
    return int(failed)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=0.02, help="share of the faults elsewhere")
    parser.add_argument("--seed", default="holdfast", help="which of them")
    parser.add_argument(
        "--only", default="", help="functions whose name contains one of these, with commas between"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds before a run is timed out")
    parser.add_argument("--cache", type=Path, default=ROOT / ".evidence" / "mutants.json")
    parser.add_argument("--touched", type=Path, help="what an earlier run found out about the tests")
    return parser.parse_args(arguments)


def _chosen(share: float, seed: str, only: str) -> tuple[list[Fault], list[Fault], int]:
    """(faults of listed functions, those drawn elsewhere, how many there are elsewhere)."""
    listed, others = [], []
    for file in sorted(SOURCES.rglob("*.py")):
        for function in functions(file):
            if any(part in str(function) for part in only.split(",")):
                if is_listed(function):
                    listed += faults(function)
                elif file.relative_to(SOURCES).parts[0] in ROOMS:
                    others += faults(function)
    drawn = [fault for fault in others if _chance(f"{seed} {fault} {fault.number}") < share]
    return listed, drawn, len(others)


def _chance(text: str) -> float:
    """A number in [0, 1) that the text alone decides: the same draw on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _touch(record: Path, processes: int) -> None:
    print("seeing which tests reach which functions", flush=True)
    command = [sys.executable, "-m", "pytest", "-p", "mutants.touch", "-q", "-n", str(processes)]
    command += ["--dist", "loadfile", *(f"tests/{room}" for room in TESTED)]
    places = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"MUTANTS_TOUCHED": str(record), "PYTHONPATH": places}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


class Kills:
    """Which faults were killed before, while the file they were planted in is as it was; survivors are tried again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}

    def verdict(self, fault: Fault) -> Verdict | None:
        tests = self._known.get(self._key(fault))
        return None if tests is None else Verdict(fault, "killed", tests)

    def keep(self, verdict: Verdict) -> None:
        if verdict.outcome == "killed":
            self._known[self._key(verdict.fault)] = verdict.tests
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self._known))

    def _key(self, fault: Fault) -> str:
        text = f"{fault} {fault.number} {fault.function.file.read_text()}"
        return hashlib.sha256(text.encode()).hexdigest()


def _collected(parts: Sequence[Path]) -> set[str]:
    """The tests that there are now in the files that an earlier run names: it may name others."""
    named = {name.split("::")[0] for part in parts for name in json.loads(part.read_text())}
    files = sorted(name for name in named if (ROOT / name).exists())
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:xdist", *files]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = ran.stdout.splitlines()
    return {*found, *(name.split("[")[0] for name in found)}


def _judged(
    planted: Sequence[Fault], tests: Tests, processes: int, kills: Kills, patience: float
) -> list[Verdict]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    found = [verdict for fault in planted if (verdict := kills.verdict(fault)) is not None]
    known = {verdict.fault for verdict in found}
    planted = [fault for fault in planted if fault not in known]
    with Progress(*columns) as progress:
        task = progress.add_task("faults", total=len(planted))
        for verdict in judge(planted, tests, processes, patience):
            found.append(verdict)
            kills.keep(verdict)
            progress.advance(task)
            if verdict.outcome != "killed" and reason(verdict.fault) is None:
                progress.console.print(
                    f"{verdict.outcome}: line {verdict.fault.line} of {verdict.fault}", soft_wrap=True
                )
    return found


def report(
    verdicts: Sequence[Verdict], drawn: int, all_others: int, share: float, seed: str
) -> tuple[str, bool]:
    """(a page, whether a listed fault was not killed). A run that was ended for its time is no kill."""
    listed = [verdict for verdict in verdicts if is_listed(verdict.fault.function)]
    others = [verdict for verdict in verdicts if not is_listed(verdict.fault.function)]
    alive = [verdict for verdict in listed if verdict.outcome in LEFT and reason(verdict.fault) is None]
    lines = [
        "## Planted faults",
        "",
        "Written by `make mutants`. A fault is one small change of a function: another operator, a turned",
        "comparison, a number off by one or doubled, `min` for `max`, a refusal that is left out. The tests that",
        "reach the function are run against it, the quickest first, up to a minute of them (`mutants/run.py`).",
        "Faults that change nothing promised are named in `mutants/listed.py` with the reason. Listed are",
        f"{len(LISTED)} patterns of functions: the rules of",
        "`privacy`, sensitivities, filters, losses, widths, promises, certificates and charges. Of the",
        f"{all_others:,} faults elsewhere in {', '.join(ROOMS)} a share of {share:g} was drawn (seed `{seed}`).",
        "",
        "| | faults | killed | harmless | survived | timed out | reached by no test |",
        "|---|---|---|---|---|---|---|",
        _row("listed functions", listed),
        _row("elsewhere, drawn", others),
        "",
    ]
    for title, some in (("listed functions", listed), ("elsewhere", others)):
        left = [verdict for verdict in some if verdict.outcome != "killed"]
        if left:
            lines += [f"What was not killed, {title}:", "", "| fault | outcome |", "|---|---|"]
            lines += [_left(verdict) for verdict in left] + [""]
    return "\n".join(lines), bool(alive)


def _row(title: str, verdicts: Sequence[Verdict]) -> str:
    killed = sum(verdict.outcome == "killed" for verdict in verdicts)
    left = [verdict for verdict in verdicts if verdict.outcome != "killed"]
    harmless = sum(reason(verdict.fault) is not None for verdict in left)
    rest = [
        sum(verdict.outcome == outcome and reason(verdict.fault) is None for verdict in left)
        for outcome in LEFT
    ]
    return " | ".join(
        [f"| {title}", *(f"{count:,}" for count in (len(verdicts), killed, harmless, *rest)), ""]
    )


def _left(verdict: Verdict) -> str:
    words = str(verdict.fault).replace("|", "\\|")
    if len(words) > 160:
        words = words[:157] + "..."
    return f"| `{words}` | {reason(verdict.fault) or verdict.outcome} |"


if __name__ == "__main__":
    raise SystemExit(main())
