"""What `import holdfast` adds to NumPy's own import, and what is loaded by then; each in fresh processes.

The goal is 0.25 s beyond NumPy, with nothing heavy imported until it is used.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

HEAVY = ("duckdb", "sqlglot", "scipy", "cryptography", "rich")
GOAL = 0.25
_SOURCE = str(Path(__file__).resolve().parent.parent / "src")
_ANSWER = (
    "t = hf.open({'age': numpy.arange(100)}, hf.Schema(age=hf.Integer(0, 120)));"
    "t.session(rho=1, target='table').fraction('age > 40', within=0.2)"
)
_STEPS = {
    "import numpy": ("pass", "import numpy"),
    "import holdfast, after numpy": ("import numpy", "import holdfast"),
    "and its sessions (hf.open)": ("import numpy", "import holdfast; holdfast.open"),
    "and a first answer in memory": ("import numpy", f"import holdfast as hf; {_ANSWER}"),
}


def rows(quick: bool = False) -> list[dict[str, object]]:
    """One row per step: seconds, and which heavy packages are loaded after it."""
    turns = 1 if quick else 9
    seconds: dict[str, list[float]] = {step: [] for step in _STEPS}
    loaded: dict[str, str] = {}
    for _ in range(turns):
        for step, (before, what) in _STEPS.items():
            spent, *heavy = _fresh(before, what)
            seconds[step].append(float(spent))
            loaded[step] = ", ".join(heavy) or "none"
    goals = {"import holdfast, after numpy": GOAL}
    found: list[dict[str, object]] = []
    for step, times in seconds.items():
        row: dict[str, object] = {
            "step": step,
            "seconds": median(times),
            "heavy packages loaded": loaded[step],
        }
        if step in goals:
            row |= {"goal": f"< {GOAL} s, none", "met": median(times) < GOAL and loaded[step] == "none"}
        found.append(row)
    return found


def _fresh(before: str, what: str) -> list[str]:
    """Run in a new interpreter: the seconds that `what` took, then the heavy packages it left loaded."""
    program = (
        f"import sys, time; sys.path.insert(0, {_SOURCE!r}); {before}; start = time.perf_counter(); {what}; "
        f"print(time.perf_counter() - start, *(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return done.stdout.split()
