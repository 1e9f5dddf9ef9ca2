"""How a fresh process grows while it answers from the largest store.

Anonymous memory is the process's own. Mapped pages of the store are the system's cache: they count as
resident, are shared by all processes, and go when the system needs the room.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

from benchmarks import stores
from benchmarks.answers import LARGEST, ask, goal, session
from holdfast.data.store import StoreSource

_ROOT = Path(__file__).resolve().parent.parent


def rows(quick: bool = False, data: Path = Path("build/bench")) -> list[dict[str, object]]:
    """Megabytes, against the goal of a few hundred."""
    calls, n = (20, 4 * 10**5) if quick else (2_000, LARGEST)
    path = stores.store(data, n, stores.AGE).path
    code = (
        f"import sys; sys.path[:0] = [{str(_ROOT)!r}, {str(_ROOT / 'src')!r}]; "
        f"from benchmarks.memory import growth; print(*growth({str(path.resolve())!r}, {calls}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    start, own, mapped = map(float, done.stdout.split())
    return [
        {"measured": "resident before the store is opened", "value": start, "unit": "MB"},
        goal(f"growth of own memory over {calls:,} answers, n = {n:.0e}", own, 300, "MB"),
        goal("growth of all that is resident, the store's pages included", own + mapped, 300, "MB"),
    ]


def growth(path: str, calls: int) -> tuple[float, float, float]:
    """Resident megabytes at the start; and by how much anonymous and mapped memory grew until the last answer."""
    before = _resident()
    asked = session(StoreSource(path))
    for text in islice(stores.new_texts["one clause"], calls):
        ask(asked, text)
    after = _resident()
    return sum(before), after[0] - before[0], after[1] - before[1]


def _resident() -> tuple[float, float]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own, mapped = (int(status[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile"))
    return own, mapped
