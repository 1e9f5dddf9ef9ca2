"""Kill sessions at random moments and race them for the last unit, on both databases.

python evidence/crashes.py              1000 moments and 200 rounds each, 24 clients; writes evidence/crashes.md
python evidence/crashes.py --moments 10 a taste
python evidence/crashes.py --moments 250 --parts FILE   a part, kept in a file; the page is made of all parts there
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "crashes.md"
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from ledger.crashing import Job, Nursery, nursery, problems  # noqa: E402  (the path must be set first)
from ledger.homes import HOMES  # noqa: E402
from ledger.racing import rounds  # noqa: E402

from holdfast.ledger import failpoint  # noqa: E402
from holdfast.noise.bits import system_bits  # noqa: E402

LIVES = 50
"""So many lives share a ledger: the whole chain is walked after each."""
CLIENTS = 24
LONGEST = 0.1

Progress = Callable[[str, int], None]


def run(
    moments: int, races: int, progress: Progress = lambda what, done: None, parts: Path | None = None
) -> tuple[str, bool]:
    """The section of docs/evidence.md, and whether something was wrong; earlier parts count, and this one is added."""
    earlier = [] if parts is None or not parts.exists() else parts.read_text().splitlines()
    found: list[dict[str, Any]] = [json.loads(line) for line in earlier]
    with tempfile.TemporaryDirectory() as folder, nursery() as children:
        for kind in sorted(HOMES):
            place = Path(folder) / kind
            killed = _killed(kind, place, moments, children, progress)
            wrong = killed.wrong + _steps(kind, place, children)
            if not _twin(kind, place, children):
                wrong.append(f"{kind}: the swapped order was not caught")
            won, twin = _raced(kind, place, races, wrong)
            counted = killed.count | {"races": races, "won": won, "wrong": len(wrong)}
            found.append({"kind": kind, "count": counted, "twin": twin, "wrong": wrong})
    if parts is not None:
        parts.write_text("".join(json.dumps(part) + "\n" for part in found))
    wrong = [said for part in found for said in part["wrong"]]
    return _section(_command(moments, len(found) // len(HOMES)), found, wrong), bool(wrong)


def _command(moments: int, times: int) -> str:
    command = "`python evidence/crashes.py" + ("" if moments == 1000 else f" --moments {moments}")
    return f"{command}`" if times == 1 else f"{command} --parts FILE`, {times} times"


def _row(found: list[dict[str, Any]], kind: str, names: tuple[str, ...]) -> str:
    """What all parts counted together on one database."""
    count = sum((Counter(part["count"]) for part in found if part["kind"] == kind), Counter[str]())
    return f"| {kind} | " + " | ".join(f"{count[name]:,}" for name in names) + " |"


class _Killed:
    """What was counted over all lives on one database."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.wrong: list[str] = []


def _killed(kind: str, place: Path, moments: int, children: Nursery, progress: Progress) -> _Killed:
    found = _Killed()
    for first in range(0, moments, LIVES):
        folder = place / f"killed {first}"
        folder.mkdir(parents=True)
        home, known, charged = HOMES[kind](folder), set[str](), 0
        home.open().close()
        for number in range(min(LIVES, moments - first)):
            delay, warm = LONGEST * system_bits().below(10**6) / 10**6, number % 2 == 1
            job = Job(home.address, str(folder / "anchors"), number, CLIENTS, delay=delay, warm=warm)
            life = children.run(job)
            found.count += Counter(lives=life.killed, asked=len(life.asked), delivered=len(life.delivered))
            found.count["resumed"] -= len(life.delivered)
            found.wrong += [f"{kind}: {problem}" for problem in problems(job, life, known, charged)]
            found.count["resumed"] += len(life.delivered)
            charged = len(known)
            progress(f"{kind}: killed", 1)
        ledger = home.open()
        found.count["charges"] += ledger.totals().entries
        ledger.close()
    return found


def _steps(kind: str, place: Path, children: Nursery) -> list[str]:
    """Each step of an answer, when it is reached for the first to fourth time."""
    wrong = []
    for number, step in enumerate(f"{name}:{times}" for name in failpoint.PLACES for times in range(1, 5)):
        folder = place / f"step {number}"
        folder.mkdir(parents=True)
        home = HOMES[kind](folder)
        home.open().close()
        job = Job(home.address, str(folder / "anchors"), 0, failpoint=step)
        life = children.run(job)
        wrong += [f"{kind}, {step}: {problem}" for problem in problems(job, life, set(), 0)]
        if not life.killed:
            wrong.append(f"{kind}, {step}: the step was not reached")
    return wrong


def _twin(kind: str, place: Path, children: Nursery) -> bool:
    """Whether delivering first and charging afterwards is caught, ten times out of ten."""
    caught = 0
    for number in range(10):
        folder = place / f"twin {number}"
        folder.mkdir(parents=True)
        home = HOMES[kind](folder)
        home.open().close()
        job = Job(
            home.address, str(folder / "anchors"), 0, CLIENTS, delay=0.01 * number, warm=True, mutant=True
        )
        caught += any("without its" in problem for problem in problems(job, children.run(job), set(), 0))
    return caught == 10


TWINS = {"sqlite": "no lock", "postgres": "trusts memory"}


def _raced(kind: str, place: Path, races: int, wrong: list[str]) -> tuple[int, str]:
    """How many rounds had one winner, and when the broken twin was caught."""
    seen = []
    for name, mutant in (("race", ""), ("race of a twin", TWINS[kind])):
        folder = place / name
        folder.mkdir(parents=True)
        home = HOMES[kind](folder)
        home.open().close()
        seen.append(rounds(home.address, folder / "racers", races, mutant))
    found, twin = seen
    wrong += [f"{kind}: {problem}" for problem in found]
    if not twin:
        wrong.append(f"{kind}: the race did not catch the broken twin")
    return races - len(found), twin[0] if twin else "not caught"


def _section(command: str, found: list[dict[str, Any]], wrong: list[str]) -> str:
    kinds = sorted(HOMES)
    killed = [
        _row(found, kind, ("lives", "asked", "delivered", "resumed", "charges", "wrong")) for kind in kinds
    ]
    twins = {part["kind"]: part["twin"] for part in found}
    raced = [f"{_row(found, kind, ('races', 'won'))} {twins[kind]} |" for kind in kinds]
    steps = 4 * len(failpoint.PLACES)
    problems_found = "".join(f"- {problem}\n" for problem in wrong) or "Nothing went wrong.\n"
    return f"""## Killed and raced

Written by {command} (part of `make evidence`). A child with {CLIENTS} threads, each a client, asks a table and
delivers to a pipe; it gets SIGKILL at a random moment up to {LONGEST:g} s after it began or first answered; the
next one goes on from what it left. After each life: every delivered answer is stored, byte for byte, under a
committed charge; totals are the sums of the charges; the chain and the anchor agree; what was reserved is
answered when asked again, at no further cost, and a second time with the same answer. *Resumed* counts what was
asked and not delivered, and then answered on retry. The same holds at each of {steps} steps (every failpoint, first
to fourth time). A twin that delivers first and charges afterwards was tried ten times on each database and must be
caught each time.

| database | kills | asked | delivered | resumed | charges | problems |
|---|---|---|---|---|---|---|
{chr(10).join(killed)}

Two processes with 32 threads each, with anchors of their own, want the last unit of a table. The twin on SQLite
reads its totals before it has the lock (`BEGIN DEFERRED`); the one on PostgreSQL, where the unique places of the
chain would make up for a missing lock, goes on with the totals that it remembers though others have written since.

| database | rounds | with one winner | the twin |
|---|---|---|---|
{chr(10).join(raced)}

{problems_found}"""


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 if nothing went wrong and every twin was caught."""
    from rich.progress import Progress as Bar

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--moments", type=int, default=1000)
    parser.add_argument("--races", type=int, default=200)
    parser.add_argument("--parts", type=Path, help="where parts are kept")
    parser.add_argument("--output", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    with Bar() as bar:
        task = bar.add_task("killed", total=options.moments * len(HOMES))
        text, failed = run(
            options.moments,
            options.races,
            lambda what, done: bar.update(task, advance=done, description=what),
            options.parts,
        )
    options.output.write_text(text)
    print(text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
