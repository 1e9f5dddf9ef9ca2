"""How a gateway bears a ledger: its start, its lists, the whole chain walked and written out.

python evidence/large_ledger.py                              1e5 and 1e6 entries; writes evidence/large_ledger.md
python evidence/large_ledger.py --small 500 --large 2000     a taste
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "large_ledger.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

TIMES, AT_ONCE, LARGE = 200, 64, 1_000_000
_COOKIE = re.compile(r"holdfast=([0-9a-f]+)")
_TELLING = """
import atexit, sys
from holdfast.cli import main
atexit.register(lambda: sys.stderr.write(open("/proc/self/status").read()))
main()
"""
"""`holdfast`, which says at its end what it took. The system counts what its parent had as its own (`ru_maxrss`)."""


@dataclass(frozen=True)
class Measured:
    """Seconds of processor time and megabytes of one ledger. `answers` are those of one analyst."""

    entries: int
    start_s: float
    page_s: float
    budget_s: float
    answers_s: float
    answers_mb: float
    verify_s: float
    verify_mb: float
    export_s: float
    export_mb: float

    def allowed(self, name: str, small: Measured) -> float:
        """How much more than of a smaller ledger each may be."""
        if name.endswith("_mb"):
            return 1.5
        whole = name in ("answers_s", "verify_s", "export_s")
        return 1.5 * self.entries / small.entries if whole else 2.0

    def problems(self, small: Measured) -> list[str]:
        """What grew by more than that."""
        found = []
        for item in fields(self)[1:]:
            times = getattr(self, item.name) / getattr(small, item.name)
            if times > self.allowed(item.name, small):
                found.append(f"{item.name} grew {times:.1f} times over")
        return found


def grown(measured: Sequence[Measured]) -> str:
    """The table: what each ledger took, and the ratio of the last to the first."""
    small, large = measured[0], measured[-1]
    lines = ["| | " + " | ".join(f"{one.entries:,}" for one in measured) + " | ratio | allowed |"]
    lines.append("|---" * (len(measured) + 3) + "|")
    for item in fields(Measured)[1:]:
        name, unit = item.name.rsplit("_", 1)
        cells = " | ".join(f"{getattr(one, item.name):,.3g}" for one in measured)
        times = getattr(large, item.name) / getattr(small, item.name)
        named = f"{name}, {'seconds' if unit == 's' else 'MB'}"
        lines.append(f"| {named} | {cells} | {times:.2f} | {large.allowed(item.name, small):.2f} |")
    return "\n".join(lines)


def measure(folder: Path, owner: str, person: str) -> Measured:
    """Everything of the ledger of the table `people`; nothing else uses the folder."""
    ledger = next((folder / "data").rglob("*.sqlite"))
    with _serving(folder) as (port, process):
        tokens = f"/v1/people/{person}/tokens"
        token = json.loads(_fetch(port, "POST", tokens, owner, b"{}")[2])["token"]
        # Its charge is the first that this process makes: the ledger is open then.
        question = json.dumps({"kind": "fraction", "where": "age > 98 AND income > 1", "rho": 1e-7}).encode()
        _fetch(port, "POST", "/v1/datasets/people/ask", token, question)
        start = _processor(process)
        budget = _each(process, lambda: _fetch(port, "GET", "/v1/datasets/people/budget", token))
        cookie = _signed_in(port, token)
        page = _each(process, lambda: _fetch(port, "GET", "/tables/people/history", cookie=cookie))
        whole = _each(process, lambda: _fetch(port, "GET", "/v1/datasets/people/answers", token), 5)
        most = _most(Path(f"/proc/{process}/status").read_text())
        entries = json.loads(_fetch(port, "GET", "/v1/datasets/people/budget", owner)[2])["table"]["answers"]
    verify = _command("verify", ledger, folder)
    export = _command("export", ledger, folder)
    return Measured(entries, start, page, budget, whole, most, *verify, *export)


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[int, int]]:
    settings = {"HOLDFAST_ANCHORS": str(folder / "anchors"), "HOLDFAST_REQUESTS_PER_SECOND": "0"}
    flags = ["--folder", str(folder), "--port", "0", "--quantum", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "serve", *flags],
        env=os.environ | settings | {"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield int(re.findall(r":(\d+)  ", process.stdout.readline())[0]), process.pid
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _fetch(
    port: int, method: str, path: str, token: str = "", body: bytes = b"", cookie: str = ""
) -> tuple[int, str, bytes]:
    """(status, cookies, body); all of it is read, and must be fine."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    if cookie:
        headers["Cookie"] = cookie
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=600)) as line:
        line.request(method, path, body, headers)
        with line.getresponse() as reply:
            text = reply.read()
            if reply.status not in (200, 201, 303):
                raise RuntimeError(f"{method} {path}: {reply.status}")
            return reply.status, reply.getheader("Set-Cookie") or "", text


def _signed_in(port: int, token: str) -> str:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{port}"}
        line.request("POST", "/sign-in", f"token={token}", headers)
        with line.getresponse() as reply:
            found = _COOKIE.search(reply.getheader("Set-Cookie") or "")
            assert found is not None, reply.status
            return found[0]


def _processor(process: int) -> float:
    """The seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _each(process: int, work: Callable[[], object], times: int = TIMES) -> float:
    """The seconds that a process takes for something."""
    begun = _processor(process)
    for _ in range(times):
        work()
    return max(_processor(process) - begun, 1 / os.sysconf("SC_CLK_TCK")) / times


def _most(status: str) -> float:
    """The most megabytes that a process ever had."""
    return int(re.findall(r"^VmHWM:\s+(\d+)", status, re.MULTILINE)[0]) / 1024


def _command(verb: str, ledger: Path, folder: Path) -> tuple[float, float]:
    """The processor seconds of `holdfast ledger …`, and the most megabytes that it had; its output goes nowhere."""
    command = [
        sys.executable,
        "-c",
        _TELLING,
        "ledger",
        verb,
        str(ledger),
        "--anchors",
        str(folder / "anchors"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr as words:
        told = words.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"`holdfast ledger {verb}` ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, _most(told)


def fill(folder: Path, entries: int) -> None:
    """Have the analysts of the table `people` ask in turn until its ledger has so many answers, as a gateway does whose
    requests come in lists."""
    from holdfast.desk.steps import Done, advance
    from holdfast.planning.question import Fraction
    from holdfast.service.gateway import Gateway
    from holdfast.service.settings import Settings
    from holdfast.service.work import _all_taken

    with closing(Gateway(Settings(folder, anchors=folder / "anchors", quantum=0.0))) as gateway:
        ledger = gateway.tables.ledger("people")
        analysts = [person for person in gateway.catalog.people() if person.scope == "analyst"]
        for first in range(ledger.totals().entries, entries, AT_ONCE):
            taking = []
            for number in range(first, min(entries, first + AT_ONCE)):
                asked = Fraction(where=f"age > {number % 97} AND income <= {1000 + number}", rho=1e-7)
                steps = gateway.asking(analysts[number % len(analysts)], "people", asked)
                taking.append((steps, advance(steps, None), True))
            if not all(isinstance(one, Done) for one in _all_taken(taking, ledger)):
                raise RuntimeError("expected an answer to every question")


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if something grew by more than is allowed."""
    from evidence.soak import prepare

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--folder", type=Path, help="where the gateway's folder is made")
    parser.add_argument("--output", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    measured, begun = list[Measured](), time.process_time()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place) / "server"
        owner, people = prepare(folder)
        for entries in (options.small, options.large):
            fill(folder, entries - 1)  # a measurement asks one more
            measured.append(measure(folder, owner, people[0]))
            print(f"{time.process_time() - begun:.0f} s of processor time: {measured[-1]}", flush=True)
    wrong = measured[-1].problems(measured[0])
    sizes = "" if options.large == LARGE else f" --small {options.small} --large {options.large}"
    command = f"python evidence/large_ledger.py{sizes}"
    text = f"""
## {options.large:,} answers in one ledger

Written by `{command}`. One gateway over one folder, SQLite with full sync; 24 analysts ask a
table through its lists. In processor time: from the start of `holdfast serve` to its first answer; the page of the last
answers and the budget (each of {TIMES}); `GET …/answers` of one analyst, whole; `holdfast ledger verify` and `export`;
and the most memory that each had. Allowed: starts and pages twice as long; what reads all, half as much again as there
is more of it; memory half as much again. The machine had other work too: a load of {os.getloadavg()[2]:.1f} over the
last quarter of an hour.

{grown(measured)}

{"; ".join(wrong) + "." if wrong else "Nothing grew by more than that, and the chain holds."}
"""
    options.output.write_text(text)
    print(text)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
