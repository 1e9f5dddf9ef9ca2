"""Rare questions: how wide a session planned for them is, beside the plain path and the older odds intervals.

python evidence/rare.py             some seconds; writes evidence/rare.md
python evidence/rare.py play N K    asks K questions near 1% of N rows in a real session, and says what it saw
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "rare.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402  (the path must be set first)

import holdfast as hf  # noqa: E402
from holdfast.ledger import Moment, Totals  # noqa: E402
from holdfast.planning.budget import budget  # noqa: E402
from holdfast.planning.promise import LEFT_OUT  # noqa: E402
from holdfast.planning.session_plan import session_plan  # noqa: E402
from holdfast.planning.terms import Terms  # noqa: E402
from holdfast.privacy.filter import Filter  # noqa: E402
from holdfast.privacy.rounding import miss  # noqa: E402
from holdfast.validity.odds import _half, gaussian_odds, gaussian_odds_noise  # noqa: E402
from holdfast.validity.places import Places  # noqa: E402
from holdfast.validity.rare_events import rare_width  # noqa: E402

SIZES = ((10**4, 100), (10**5, 1000), (10**6, 1000), (10**6, 10**5), (10**7, 10**4))
SHARES = (0.5, 0.05, 0.01, 0.002)


def planned(rows: int, queries: int, *, rare: bool) -> Places:
    """What `table.session(epsilon=1, delta=1e-6, queries=k)` plans, or with intervals="rare"."""
    own = budget(epsilon=1.0, delta=1e-6)
    terms = Terms(
        schema=hf.Schema(x=hf.Integer(0, 1)), rows=rows, rows_per_unit=1, session=own.filter,
        table=Filter.zcdp(9e9), queries=queries, confidence=0.95, target="population",
    )  # fmt: skip
    places = session_plan(terms, Moment(Totals(), Totals()), rare=rare)
    assert places is not None and places.epochs
    return places


def widths(places: Places) -> list[float]:
    """The half-width at each frequency, after answers of the same frequency."""
    if not places.rare:
        return [places.width] * len(SHARES)
    return [rare_width(places, miss(0.95) * LEFT_OUT, share) for share in SHARES]


def odds(rows: int, queries: int) -> list[float]:
    """The older intervals (Theorem V), tuned for 1% and held to no budget of privacy."""
    _, deviation = gaussian_odds_noise(rows, queries, 0.05)
    found = gaussian_odds(rows, queries, 0.05, deviation)
    return [_half(found.reach, found.epsilon, share) for share in SHARES]


def table(sizes: tuple[tuple[int, int], ...] = SIZES) -> list[str]:
    lines = ["| n, k | intervals | .5 | .05 | .01 | .002 |", "|---|---|---|---|---|---|"]
    for rows, queries in sizes:
        plain = planned(rows, queries, rare=False)
        found = {
            "plain path" + (", read as rare events" if plain.rare else ""): widths(plain),
            "rare": widths(planned(rows, queries, rare=True)),
            "odds (no budget of privacy)": odds(rows, queries),
        }
        for name, row in found.items():
            lines.append(
                f"| {rows:.0e}, {queries:,} | {name} | " + " | ".join(f"{w:.3g}" for w in row) + " |"
            )
    return lines


def play(rows: int, queries: int, seed: int = 1) -> dict[str, Any]:
    """A real session: every question is met by about 1% of the rows, and the widest answer is reported."""
    draw = np.random.default_rng(seed)  # noqa: TID251  (rows to play with, not noise)
    schema = hf.Schema(a=hf.Integer(0, 9999), b=hf.Integer(0, 9999))
    opened = hf.open({"a": draw.integers(0, 10_000, rows), "b": draw.integers(0, 10_000, rows)}, schema)
    session = opened.session(epsilon=1, delta=1e-6, queries=queries, intervals="rare")
    widest = missed = 0.0
    for number in range(queries):
        name, first = "ab"[number % 2], number // 2 * 17 % 9900
        answer = session.fraction(f"{name} BETWEEN {first} AND {first + 99}")
        widest = max(widest, float(answer.width))
        missed += not answer.low <= 0.01 <= answer.high
    return {"plan": session.plan, "widest": widest, "missed": int(missed)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["play"]:
        print(play(int(float(sys.argv[2])), int(float(sys.argv[3]))))
    else:
        said = (
            "Written by `python evidence/rare.py`: half-widths of each of k answers under (1, 1e-6) at 95%, together,\n"
            "by the frequency of what is asked, if all answers before were of the same frequency."
        )
        text = "\n".join(["# Rare questions", "", said, "", *table(), ""])
        RECORD.write_text(text)
        print(text)
