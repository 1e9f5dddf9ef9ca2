"""Statistics of several sums: how often their intervals miss, and how wide they are, for the table and the population.

python evidence/derived.py          about a minute; writes evidence/derived.md
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "derived.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402  (the path must be set first)

import holdfast as hf  # noqa: E402
from holdfast.ledger import MemoryLedger  # noqa: E402

SESSIONS, ROWS, CONFIDENCE = 200, 4000, 0.8
SCHEMA = hf.Schema(x=hf.Integer(0, 20), y=hf.Real(-5.0, 5.0), g=hf.Category("a", "b"), t=hf.Boolean())
Columns = dict[str, Any]
ASKED: dict[str, tuple[Callable[..., Any], Callable[[Columns], Any]]] = {
    "fraction given": (lambda s, h: s.fraction("t", given="x > 10", **h), lambda c: c["t"][c["x"] > 10].mean()),
    "mean of a truth value": (lambda s, h: s.mean("t", **h), lambda c: c["t"].mean()),
    "ratio": (lambda s, h: s.ratio("x + 1", "x + 2", **h), lambda c: (c["x"] + 1).mean() / (c["x"] + 2).mean()),
    "variance": (lambda s, h: s.variance("x", **h), lambda c: c["x"].var()),
    "std": (lambda s, h: s.std("y", **h), lambda c: c["y"].std()),
    "covariance": (lambda s, h: s.covariance("x", "y", **h), lambda c: np.cov(c["x"], c["y"], ddof=0)[0, 1]),
    "correlation": (lambda s, h: s.correlation("x", "y", **h), lambda c: np.corrcoef(c["x"], c["y"])[0, 1]),
    "difference of means": (
        lambda s, h: s.difference("t", "NOT t", of="x", **h), lambda c: c["x"][c["t"]].mean() - c["x"][~c["t"]].mean()
    ),
    "the middle of three quantiles": (
        lambda s, h: s.quantile("y", [0.25, 0.5, 0.75], **h)["0.5"], lambda c: np.quantile(c["y"], 0.5)
    ),
    "running count at 10": (
        lambda s, h: s.count(by="x", cumulative=True, **h)["10"],
        lambda c: (c["x"] <= 10).mean() * ROWS,
    ),
    "independence": (lambda s, h: s.independence("g", "t", **h), lambda c: dependence(c["g"], c["t"])),
    "slope": (lambda s, h: s.regression("y", ["x"], **h)["x"], lambda c: np.polyfit(c["x"], c["y"], 1)[0]),
}  # fmt: skip


def dependence(one: Any, other: Any) -> float:
    """Half the sum of the distances of the cells from the products of their shares."""
    cells = [((one == a) & (other == b)).mean() - (one == a).mean() * (other == b).mean()
             for a in np.unique(one) for b in np.unique(other)]  # fmt: skip
    return float(np.abs(cells).sum() / 2)


def drawn(rows: int, seed: int) -> Columns:
    """Rows of the population."""
    draw = np.random.default_rng(seed)  # noqa: TID251  (simulated data)
    x = draw.integers(0, 21, rows)
    y = np.clip(np.round((x / 4 - 2.5 + draw.normal(0, 1, rows)) * 2**16) / 2**16, -5, 5)
    return {"x": x, "y": y, "g": draw.choice(["a", "b"], rows), "t": draw.random(rows) < 0.1 + x / 30}


def played(name: str, population: float) -> tuple[int, int, float, float]:
    """(misses of the table, misses of the population, median half-widths of both) in so many sessions."""
    ask, truth = ASKED[name]
    missed, widths = [0, 0], ([], [])
    for seed in range(SESSIONS):
        columns = drawn(ROWS, seed)
        for place, (target, true) in enumerate((("table", truth(columns)), ("population", population))):
            table = hf.open(columns, SCHEMA, ledger=MemoryLedger())
            session = table.session(rho=1.0, target=target, queries=1, confidence=CONFIDENCE)
            answer = ask(session, {"rho": 0.05})
            missed[place] += not answer.low <= true <= answer.high
            widths[place].append(answer.width)
    return missed[0], missed[1], float(np.median(widths[0])), float(np.median(widths[1]))


def main() -> None:
    """Write the record."""
    whole = drawn(4_000_000, 10**6)
    lines = [
        "# Statistics of several sums",
        "",
        f"`python evidence/derived.py`: {SESSIONS} sessions of one question at rho 0.05 on {ROWS:,} rows each, at "
        f"a confidence of {CONFIDENCE:g}: at most {SESSIONS * (1 - CONFIDENCE):.0f} misses are allowed on average. "
        "Widths are medians. The population's value is that of four million rows.",
        "",
        "| statistic | value | table: misses | half-width | population: misses | half-width |",
        "|---|---|---|---|---|---|",
    ]
    for name in ASKED:
        value = float(ASKED[name][1](whole))
        table, population, own, wide = played(name, value)
        lines.append(f"| {name} | {value:.4g} | {table} | {own:.3g} | {population} | {wide:.3g} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "Misses are rare because an interval is all that a box of several sums leaves possible; the price is width.",
    ]
    RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
