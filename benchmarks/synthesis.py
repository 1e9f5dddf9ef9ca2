"""Many questions: when weights pay, and how quick they are.

Certified max error on the table at (1, 1e-6)-DP and confidence 0.95, for k questions known to number k. `weights` is
ours, `gaussian` answers each question by itself, `textbook` and `lecture` are the published versions with their
constants put right, `mwem` its authors' bound in expectation; blank means that nothing below 1 is certified.
`measured` is the max error of our weights, planned for k, over the first questions asked (3-way conjunctions of
binary columns). Speeds are processor time, beside a dense reference that keeps one 0/1 vector a question, in the same
run; on 2^20 cells it ran two rounds, times 15.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import holdfast as hf
from holdfast.privacy import approx_to_zcdp
from holdfast.query.region import Region, region
from holdfast.query.universe import universe
from holdfast.synthesis import Workload, mwem
from holdfast.weights.answerer import MultiplicativeWeights
from holdfast.weights.cell_counts import CellCounts
from holdfast.weights.distribution import Weights
from holdfast.weights.terms_choice import compare

RHO = approx_to_zcdp(1, 1e-6)
ROUNDS = 30


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Errors first, then MWEM beside the dense reference, then one conjunction on a large universe."""
    counts = (10**3, 10**6, 10**8) if quick else (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
    sizes = (10**5,) if quick else (10**5, 10**6, 10**7)
    found = [_certified(n, cells, k) for n in sizes for cells in (2**16, 2**20) for k in counts]
    for n in () if quick else (10**5, 10**6):
        for k in (10**4, 10**8):
            measured = _measured(n, 16, k)
            for row in found:
                if (row["rows"], row["cells"], row["questions"]) == (n, 2**16, k):
                    row["measured"] = measured
    found += [
        _mwem(d, reference_rounds=2 if quick or d == 20 else ROUNDS)
        for d in ((12,) if quick else (12, 16, 20))
    ]
    return found + _conjunctions(20 if quick else 26)


def plot(found: list[dict[str, Any]], figures: Path) -> list[str]:
    """Certified max error against the number of questions, one panel for each number of rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picked = [row for row in found if row.get("cells") == 2**16 and "questions" in row]
    sizes = sorted({row["rows"] for row in picked})
    figure, axes = plt.subplots(1, len(sizes), figsize=(4 * len(sizes), 3.4), sharey=True, squeeze=False)
    for axis, n in zip(axes[0], sizes, strict=True):
        own = [row for row in picked if row["rows"] == n]
        for name in ("gaussian", "weights", "textbook", "mwem"):
            line = [(row["questions"], row[name]) for row in own if row[name] is not None]
            if line:
                axis.loglog(*zip(*line, strict=True), marker="o", markersize=3, label=name)
        axis.set_title(f"{n:,} rows, 2^16 cells")
        axis.set_xlabel("questions")
    axes[0][0].set_ylabel("certified max error")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(figures / "synthesis.svg")
    plt.close(figure)
    return ["figures/synthesis.svg"] if figures.name == "figures" else ["synthesis.svg"]


def _certified(n: int, cells: int, k: int) -> dict[str, Any]:
    found = compare(rows=n, cells=cells, queries=k, rho=RHO)
    shown = {name: None if e is None else float(f"{e:.3g}") for name, e in found.errors.items()}
    return {"rows": n, "cells": cells, "questions": k, **shown, "winner": found.winner, "measured": None}


def _binary(n: int, columns: int) -> tuple[hf.Schema, dict[str, NDArray[np.bool_]]]:
    draw = np.random.default_rng(5)
    hidden = draw.random(n)
    data = {f"c{i}": draw.random(n) < 0.1 + 0.8 * hidden * (i % 3) / 2 for i in range(columns)}
    return hf.Schema(**{name: hf.Boolean() for name in data}), data


def _questions(columns: int, groups: int) -> list[str]:
    draw = np.random.default_rng(6)
    triples = list(combinations(range(columns), 3))
    chosen = draw.choice(len(triples), min(groups, len(triples)), replace=False)
    signs = [[(code >> j) & 1 for j in range(3)] for code in range(8)]
    return [
        " AND ".join(f"c{c}" if bit else f"NOT c{c}" for c, bit in zip(triples[i], sign, strict=True))
        for i in chosen
        for sign in signs
    ]


def _measured(n: int, columns: int, k: int) -> float:
    schema, data = _binary(n, columns)
    session = hf.open(data, schema).session(rho=RHO * 1.01, target="table", queries=k)
    weights = MultiplicativeWeights(session, list(schema), queries=k, rho=RHO, nulls=[])
    queries = _questions(columns, 125)
    truth = (
        Workload(weights.universe, queries).answers(
            CellCounts(session._desk.for_the_owner(), weights.universe).cells
        )
        / n
    )
    return max(
        abs(weights.fraction(query).value - float(true)) for query, true in zip(queries, truth, strict=True)
    )


def _mwem(columns: int, reference_rounds: int) -> dict[str, Any]:
    n = 100_000
    schema, data = _binary(n, columns)
    queries = _questions(columns, 125)
    session = hf.open(data, schema).session(rho=10 * RHO, target="table")
    work = Workload(universe(schema, list(schema), nulls=[]), queries)
    start = time.process_time()
    made = mwem(session, list(schema), work, rho=RHO, rounds=ROUNDS, nulls=[])
    ours = time.process_time() - start
    counts = CellCounts(session._desk.for_the_owner(), made.universe)
    truth = work.answers(counts.cells) / n
    error = np.abs(work.answers(made.weights.probabilities()[0]) - truth)
    theirs, dense_error = _dense_mwem(work, counts.cells / n, reference_rounds)
    return {
        "mwem, 1000 conjunctions, 30 rounds": f"2^{columns} cells",
        "ours s": round(ours, 2),
        "dense reference s": round(theirs * ROUNDS / reference_rounds, 1),
        "times": round(theirs * ROUNDS / reference_rounds / ours, 1),
        "our max error": float(f"{error.max():.2g}"),
        "its max error, without noise": float(f"{dense_error:.2g}") if reference_rounds == ROUNDS else None,
    }


def _dense_mwem(work: Workload, truth: NDArray[np.float64], rounds: int) -> tuple[float, float]:
    """The textbook loop on 0/1 vectors, without noise (which costs it nothing here): seconds, max error."""
    # A float for each cell and question; on large universes the first vectors stand in for all, for the time.
    kept = max(1, min(len(work), 2**26 // truth.size))
    vectors = []
    for one in work.regions[:kept]:
        mask = np.zeros(work.universe.shape)
        for box in one.boxes or ():
            mask[tuple(slice(*side) for side in box)] = 1.0
        vectors.append(mask.reshape(-1))
    questions = [vectors[i % kept] for i in range(len(work))]
    answers = np.array([vector @ truth for vector in vectors])[np.arange(len(work)) % kept]
    weights = np.full(truth.size, 1 / truth.size)
    average = np.zeros(truth.size)
    start = time.process_time()
    for _ in range(rounds):
        guesses = np.array([vector @ weights for vector in questions])
        worst = int(np.argmax(np.abs(answers - guesses)))
        gap = answers[worst] - guesses[worst]
        weights = weights * np.exp(questions[worst] * gap / 2)
        weights /= weights.sum()
        average += weights / rounds
    spent = time.process_time() - start
    return spent, float(np.abs(answers - [vector @ average for vector in questions]).max())


def _conjunctions(bits: int) -> list[dict[str, Any]]:
    """Answer and update one conjunction, by views and by dense vectors."""
    wide = 2 ** (bits - 12)
    schema = hf.Schema(a=hf.Integer(0, 63), b=hf.Integer(0, 63), c=hf.Integer(0, wide))
    found = []
    for title, columns in (
        ("leading columns fixed", ["a", "b", "c"]),
        ("last columns fixed", ["c", "a", "b"]),
    ):
        made = universe(schema, columns, {"c": range(wide + 1)}, nulls=[])
        one = region(made, "a = 3 AND b BETWEEN 8 AND 11")
        ours = _timed(Weights(made), one)
        found.append((f"{made.size:,} cells, {title}", ours, made.size, one, made.shape))
    several = universe(
        hf.Schema(**{f"c{i}": hf.Boolean() for i in range(bits)}), [f"c{i}" for i in range(bits)], nulls=[]
    )
    three = region(several, f"c1 AND NOT c{bits // 2} AND c{bits - 3}")
    ours = _timed(Weights(several), three)
    found.append(
        (
            f"{several.size:,} cells, 3 of {bits} binary columns fixed",
            ours,
            several.size,
            three,
            several.shape,
        )
    )
    result = []
    for title, ours, size, one, shape in found:
        vector = np.zeros(shape)
        for box in one.boxes or ():
            vector[tuple(slice(*side) for side in box)] = 1.0
        dense = _Dense(size, vector.reshape(-1))
        theirs = _best_of(2, dense.step)
        result.append(
            {
                "one conjunction": title,
                "ours ms": round(ours * 1e3, 3),
                "dense ms": round(theirs * 1e3, 1),
                "times": round(theirs / ours),
            }
        )
    return result


class _Dense:
    """Answer, update and normalise with one vector of the universe's size for the question."""

    def __init__(self, size: int, vector: NDArray[np.float64]) -> None:
        self.weights, self.vector = np.full(size, 1 / size), vector

    def step(self) -> float:
        answer = float(self.vector @ self.weights)
        self.weights *= np.exp(0.01 * self.vector)
        self.weights /= self.weights.sum()
        return answer


def _timed(weights: Weights, one: Region) -> float:
    return _best_of(5, lambda: (weights.fraction(one), weights.tilt(one, 0.01)))


def _best_of(times: int, act: Callable[[], Any]) -> float:
    spent = []
    for _ in range(times):
        start = time.process_time()
        act()
        spent.append(time.process_time() - start)
    return min(spent)


if __name__ == "__main__":
    for row in rows():
        print("  ".join(f"{key} {value}" for key, value in row.items()))
