"""Keys of events that are found and lost, beside OpenDP's thresholded discovery with the same budget and data.

    python evidence/unit_keys.py            writes evidence/unit_keys.md

20,000 and 200,000 people with up to 8 rows each, whose texts follow Zipf's law (exponent 1.2, 5000 texts). One
discovery at (1, 1e-6), of which 1e-7 is the threshold's. Each person counts once for a key; at Holdfast one with t keys
1/sqrt(t) for each. OpenDP gets the counts, and the least noise and threshold that its own maps allow for the same
neighbours: a person is replaced by another, and up to 16 keys change. The last column is what is usual there: a person
comes or goes, and 8 change.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]
EPSILON, DELTA, KEYS_DELTA, MOST, TEXTS = 1.0, 1e-6, 1e-7, 8, 5000


def rows(people: int) -> dict[str, Any]:
    """Who, and the text of each of their rows."""
    rng = np.random.default_rng(people)  # noqa: TID251  (simulated data)
    share = 1 / np.arange(1, TEXTS + 1) ** 1.2
    who = np.repeat(np.arange(people), rng.integers(1, MOST + 1, people))
    texts = np.array([f"t{place:04d}" for place in range(TEXTS)])
    return {"person": who, "dest": rng.choice(texts, len(who), p=share / share.sum())}


def ours(data: dict[str, Any]) -> int:
    """How many keys a session with this budget shows."""
    import holdfast as hf
    from holdfast.ledger import MemoryLedger
    from holdfast.privacy.conversion import zcdp_to_approx

    low, high = 1e-4, 1.0
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if zcdp_to_approx(middle, DELTA - KEYS_DELTA) <= EPSILON else (low, middle)
    table = hf.open(
        data, hf.Schema(dest=hf.Text(8)), unit="person", rows_per_unit=MOST, ledger=MemoryLedger()
    )
    session = table.session(epsilon=EPSILON, delta=DELTA, keys_delta=KEYS_DELTA, target="table", queries=1)
    return len(session.keys("dest", rho=low, delta=KEYS_DELTA))


def counts(data: dict[str, Any]) -> dict[str, int]:
    """How many people have each text: nobody has more than MOST rows, so nothing is left out."""
    people = np.unique(np.rec.fromarrays([data["person"], data["dest"]]))
    texts, many = np.unique(people["f1"], return_counts=True)
    return dict(zip(texts.tolist(), many.tolist(), strict=True))


def theirs(many: dict[str, int], changed: int, gaussian: bool) -> int:
    """How many keys OpenDP shows, by the least noise for the budget and the least threshold for its delta, where
    neighbours differ in the counts of so many keys."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    power = dp.l02inf_distance if gaussian else dp.l01inf_distance
    space = (
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=float, nan=False)),
        power(dp.absolute_distance(T=float)),
    )
    moved = (changed, math.sqrt(changed) if gaussian else float(changed), 1.0)

    def made(scale: float, threshold: float) -> Any:
        if not gaussian:
            return dp.m.make_laplace_threshold(*space, scale=scale, threshold=threshold)
        return dp.c.make_zCDP_to_approxDP(
            dp.m.make_gaussian_threshold(*space, scale=scale, threshold=threshold)
        )

    def private(scale: float, threshold: float) -> bool:
        told = made(scale, threshold).map(moved)
        if not gaussian:
            return bool(told[0] <= EPSILON and told[1] <= KEYS_DELTA)
        curve, delta = told
        return bool(curve.epsilon(DELTA - KEYS_DELTA) <= EPSILON and delta <= KEYS_DELTA)

    scale = _least(lambda scale: private(scale, 1e9), 1.0, 1e4)
    threshold = _least(lambda threshold: private(scale, threshold), 2.0, 1e5)
    return len(made(scale, threshold)({key: float(count) for key, count in many.items()}))


def _least(holds: Any, low: float, high: float) -> float:
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def record(sizes: tuple[int, ...], runs: int) -> str:
    """The table."""
    lines = [
        "| people | keys of somebody | Holdfast | OpenDP, Gaussian | OpenDP, Laplace | OpenDP, Gaussian, one more |",
        "|---|---|---|---|---|---|",
    ]
    for people in sizes:
        data = rows(people)
        many = counts(data)
        found = [
            [ours(data) for _ in range(runs)],
            [theirs(many, 2 * MOST, True) for _ in range(runs)],
            [theirs(many, 2 * MOST, False) for _ in range(runs)],
            [theirs(many, MOST, True) for _ in range(runs)],
        ]
        means = " | ".join(
            f"{np.mean(each):.1f} found, {len(many) - np.mean(each):.0f} lost" for each in found
        )
        lines.append(f"| {people:,} | {len(many):,} | {means} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the record, or print that of few people."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few people, once; prints and writes nothing")
    if parser.parse_args().quick:
        print(record((2_000,), 1))
        return
    from importlib.metadata import version

    told = record((20_000, 200_000), 5)
    intro = (
        "## Keys of events, beside OpenDP\n\nPeople's texts follow Zipf's law (exponent 1.2, 5000 texts). "
    )
    intro += (
        f"One discovery at (1, 1e-6),\nup to 8 rows a person, OpenDP {version('opendp')}; means of 5 runs;\n"
    )
    intro += "all for a person who is replaced by another, and the last column for one more or one less\n"
    intro += "(`python evidence/unit_keys.py`).\n\n"
    (ROOT / "evidence" / "unit_keys.md").write_text(intro + told)
    print(told)


if __name__ == "__main__":
    main()
