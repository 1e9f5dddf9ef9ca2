"""Every metric of a holdout attacked: the models that scored well are put together, on labels that nothing predicts.

python evidence/metrics.py             200 runs of each: about ten minutes; writes evidence/metrics.md
python evidence/metrics.py --runs 10   a taste
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "metrics.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from holdout.climbing import LOOKS, METRICS, ROWS, Climb, Metered, climb  # noqa: E402  (the path must be set first)


def line(name: str, case: Metered, found: list[Climb]) -> str:
    """A row of the table."""
    ordinary = str(sum(one.ordinary for one in found)) if case.kind.plain else "-"
    missed, narrow = (
        sum(count > 0 for count in each) for each in zip(*((c.false, c.narrow) for c in found), strict=True)
    )
    half, bias = (
        float(np.mean(each)) for each in zip(*((c.halves, c.last_error) for c in found), strict=True)
    )
    return f"| {name} | {missed} | {half:.3f} | {bias:.3f} | {narrow} | {ordinary} |"


def table(runs: int) -> str:
    """The section of docs/evidence.md."""
    lines = [
        "## Metrics of holdouts under attack",
        "",
        f"Written by `python evidence/metrics.py`. {ROWS:,} rows with labels that nothing predicts, {LOOKS} looks at",
        "random models; the last model puts those together that scored better than the median. At confidence 95%, in",
        f"{runs} runs: those in which some interval is false, the mean half-width on the metric's own scale, how much",
        "better than the truth the last score is; runs with a false interval, were all a quarter as wide; and runs in",
        "which the last interval of an ordinary holdout (exact scores, Hoeffding's inequality and a union over the",
        "looks) is false after the same attack on it.",
        "",
        "| metric | false | half-width | last, too good by | a quarter as wide | ordinary |",
        "|---|---|---|---|---|---|",
    ]
    for name, case in METRICS.items():
        found = [climb(case, np.random.default_rng([18, run])) for run in range(runs)]
        lines.append(line(name, case, found))
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    made = table(runs)
    if runs >= 200:
        RECORD.write_text(made, encoding="utf-8")
