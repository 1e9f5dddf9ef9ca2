"""Tests at level under adaptive choice: nothing depends on anything, and the analyst looks for what does.

python evidence/nulls.py            some minutes; writes evidence/nulls.md
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "nulls.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402  (the path must be set first)

import holdfast as hf  # noqa: E402
from holdfast.ledger import MemoryLedger  # noqa: E402

SESSIONS, ROWS, COLUMNS, CONFIDENCE = 200, 2000, 20, 0.8
NAMES = [f"x{i}" for i in range(COLUMNS)]
SCHEMA = hf.Schema(**dict.fromkeys([*NAMES, "y"], hf.Integer(0, 1)))


def played(seed: int, target: str, rho: float = 20.0) -> tuple[bool, bool]:
    """Whether the difference and the independence that the analyst picked were rejected. Both hold in the population.

    All columns are fair coins. The analyst asks how y differs by each, adds up the columns with the signs that were
    told, and tests whether y depends on that sum: the best that the answers can be turned against the rows.
    """
    draw = np.random.default_rng(seed)  # noqa: TID251  (simulated data)
    rows = {name: draw.integers(0, 2, ROWS) for name in [*NAMES, "y"]}
    opened = hf.open(rows, SCHEMA, ledger=MemoryLedger())
    session = opened.session(rho=rho, queries=COLUMNS + 2, target=target, confidence=CONFIDENCE)
    plus, minus = [], []
    for name in NAMES:
        found = session.difference(f"{name} = 1", f"{name} = 0", of="y")
        (plus if found.value > 0 else minus).append(name)
    score = " - ".join([" + ".join(plus) or "0", *minus])
    many = f"{score} > {(len(plus) - len(minus)) // 2}"
    differs = session.difference(many, f"NOT ({many})", of="y").differs
    depends = session.independence(f"CASE WHEN {many} THEN 1 ELSE 0 END", "y").differs
    return bool(differs), bool(depends)


def main() -> None:
    """Write the record."""
    allowed = SESSIONS * (1 - CONFIDENCE)
    lines = [
        "# Tests on true nulls",
        "",
        f"`python evidence/nulls.py`: {SESSIONS} sessions on {ROWS:,} rows of {COLUMNS + 1} fair coins, confidence "
        f"{CONFIDENCE:g}: at most {allowed:.0f} of them may reject anything on average. The analyst asks how y differs "
        "by each column, adds the columns up with the signs that were told, and tests y against that sum. The last "
        'line is the broken twin: the same test of the rows themselves (`target="table"`), where the choice was '
        "made on them.",
        "",
        "| session | difference rejected | independence rejected | either |",
        "|---|---|---|---|",
    ]
    for target, called in (("population", "about the population"), ("table", "about the table (twin)")):
        found = np.array([played(seed, target) for seed in range(SESSIONS)])
        lines.append(f"| {called} | {found[:, 0].sum()} | {found[:, 1].sum()} | {found.any(axis=1).sum()} |")
        print(lines[-1], flush=True)
    RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
