"""Attack a gateway with a stop-watch, and fuzz all of its API.

python evidence/gateway.py                 2000 requests each way and 60 examples; writes evidence/gateway.md
python evidence/gateway.py --requests 100  a taste
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "gateway.md"
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

OWNED = 1_000_000
QUANTUM = 0.5
LINES = 2
MOST_LATE = 0.01
"""A run with more late replies than this had too small a multiple, or too busy a host, to show anything."""
REQUESTS = 2000
EXAMPLES = 60


def run(requests: int, examples: int) -> tuple[str, bool]:
    """The section of docs/evidence.md, and whether something was wrong."""
    from service.clockwatch import advantage, two_tables, watch

    _anchors()
    rows: list[str] = []
    wrong: list[str] = []
    for quantum, lines, together in ((QUANTUM, LINES, False), (QUANTUM, LINES, True), (0.0, 1, False)):
        with two_tables(quantum, OWNED) as started:
            seen = watch(started, requests, lines=lines, together=together)
        area, otherwise = advantage(seen)
        patient, _ = advantage(seen, patience=5)
        late = sum(one.seconds > 1.5 * quantum for one in seen) if quantum else 0
        rows.append(
            _row(
                quantum,
                f"{lines}, all to one table" if together else str(lines),
                len(seen),
                late,
                area,
                patient,
                otherwise,
            )
        )
        if otherwise or (area >= 0.55 if quantum else area <= 0.9):
            wrong.append(f"quantum {quantum:g}: AUC {area:.3f}")
        if late > MOST_LATE * requests:
            wrong.append(
                f"quantum {quantum:g}: {late} late, so that this run shows nothing; use a calmer host"
            )
    fuzzed = [_fuzzed(who, examples, wrong) for who in ("analyst", "owner", "auditor")]
    command = "python evidence/gateway.py" + ("" if requests == REQUESTS else f" --requests {requests}")
    return _section(command, rows, fuzzed, wrong), bool(wrong)


def _anchors() -> None:
    """Anchors of tables that go away do not stay in the user's folder."""
    if "HOLDFAST_ANCHORS" not in os.environ:
        os.environ["HOLDFAST_ANCHORS"] = tempfile.mkdtemp(prefix="holdfast-anchors-")
        atexit.register(shutil.rmtree, os.environ["HOLDFAST_ANCHORS"], ignore_errors=True)


def _row(
    quantum: float, lines: str, requests: int, late: int, area: float, patient: float, otherwise: bool
) -> str:
    padding, differs = f"{quantum:g} s" if quantum else "off", "yes" if otherwise else "no"
    return f"| {padding} | {lines} | {requests:,} | {late} | {area:.3f} | {patient:.3f} | {differs} |"


def _fuzzed(who: str, examples: int, wrong: list[str]) -> str:
    from service.site import site
    from service.test_fuzz import fuzz

    with site() as here:
        here.started.register_board("digits")
        here.started.register_board("held", "holdout")
        problems, statuses = fuzz(here, getattr(here.started, who), examples)
    wrong += problems
    seen = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
    return f"| {who} | {sum(statuses.values()):,} | {seen} | {len(problems)} |"


def _section(command: str, rows: list[str], fuzzed: list[str], wrong: list[str]) -> str:
    clock, requests, load = "\n".join(rows), "\n".join(fuzzed), os.getloadavg()[2]
    return f"""
## The gateway under attack

Written by `{command}` (part of `make evidence`). Two neighbouring tables, Parquet files which are
read for every question; one person owns {OWNED:,} of their {2 * OWNED:,} rows, all alike in one table and each
with a long word of its own in the other, which takes longer to read. An attacker asks them over HTTP in an order
of chance, each time something new, and tells them apart by arrival time. The AUC is that of one reply, and of the
quickest of five; 0.5 is a guess, 1 is certainty, and whichever side is larger is shown. *Late* counts replies that
took more than one multiple, for what takes longer is told in whole multiples: choose it so that there are none,
on a host with time to spare. *Otherwise* says whether status, headers or the body's shape differ. With padding
the AUC must stay below 0.55, with no more than 1% late; without it must exceed 0.9. The host had {os.cpu_count()}
processors and a load of {load:.1f} over the last quarter of an hour. A host without time to spare does not keep its
times: in earlier runs at a load of 3 to 8, up to 23% of the replies were late, and the AUC was 0.53 to 0.68.

| replies leave at multiples of | lines | requests | late | AUC | quickest of five | otherwise |
|---|---|---|---|---|---|---|
{clock}

Schemathesis over /openapi.json, with right and wrong data for every operation: no 5xx, nothing that the document
does not declare, nothing charged by a request that is refused.

| token | requests | statuses | problems |
|---|---|---|---|
{requests}

{"; ".join(wrong) if wrong else "Nothing went wrong."}
"""


def main() -> int:
    """Exit status 1 if something was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    options = parser.parse_args()
    text, wrong = run(options.requests, options.examples)
    print(text)
    if options.requests == REQUESTS:
        RECORD.write_text(text)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
