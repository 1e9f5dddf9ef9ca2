"""Factors on a GPU, through the same code: weights of many columns, and the fit of a synthetic table.

python benchmarks/gpu_factors.py [--device torch] [--questions 100] [--groups 64] [--cells 24] [--rows 100000]

Beside it, in the same run, the same by NumPy on this machine: milliseconds for each question of weights over 40 columns
of `--groups` groups (64^40 cells; the questions are on three columns next to each other, so that the cliques have 64^3
cells), and seconds for 20 steps of a fit whose largest clique has 2^`--cells` cells. Answers and models are compared.
Needs NumPy, SciPy, cryptography, sqlglot and the device's library.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import holdfast as hf
from holdfast.noise._replay import replayed
from holdfast.noise.bits import ReplayedBits
from holdfast.weights.array_module import array_module
from holdfast.weights.junction_tree import junction_tree
from holdfast.weights.marginal_fit import NoisyMarginal, fit

COLUMNS = 40
WIDTH = 32


def rows(quick: bool = True) -> list[dict[str, str]]:
    """As `python -m benchmarks` calls it: small, on what is at hand."""
    cells, questions, groups = (10, 10, 4) if quick else (20, 50, 32)
    return [weights("numpy", questions, 20_000, groups)[0], fitted("numpy", cells)[0]]


def weights(device: str, questions: int, count: int, groups: int) -> tuple[dict[str, str], list[float]]:
    """A session with weights over more cells than anybody can list, kept as factors on a device."""
    draw = np.random.default_rng(1)
    found = [draw.integers(0, groups, count)]
    for _ in range(COLUMNS - 1):
        found.append(np.where(draw.random(count) < 0.8, found[-1], draw.integers(0, groups, count)))
    data = {f"c{i}": column for i, column in enumerate(found)}
    schema = hf.Schema(**dict.fromkeys(data, hf.Integer(0, groups - 1)))
    session = hf.open(data, schema).session(rho=2.0, queries=questions, target="table")
    told, truths = [], []
    with replayed(ReplayedBits(1)):
        held = session.multiplicative_weights(
            list(data),
            queries=questions,
            within=0.05,
            nulls=[],
            device=device,
            memory=2**30,
            stop="when spent",
        )
        start = time.perf_counter()
        for i in range(questions):
            first, cut = i % (COLUMNS - 2), groups // 2 + (i // (COLUMNS - 2)) % (groups // 2)
            told.append(held.fraction(f"c{first} < {cut} AND c{first + 1} < {cut} AND c{first + 2} < {cut}"))
    seconds = time.perf_counter() - start
    for i in range(questions):
        first, cut = i % (COLUMNS - 2), groups // 2 + (i // (COLUMNS - 2)) % (groups // 2)
        three = [found[first + j] < cut for j in range(3)]
        truths.append(float(np.mean(three[0] & three[1] & three[2])))
    values = [float(one.value) for one in told]
    worst = max(abs(one - truth) for one, truth in zip(values, truths, strict=True))
    assert worst <= held.within, (worst, held.within)
    line = {
        "what": f"weights, {COLUMNS} columns of {groups}",
        "device": device,
        "questions": str(questions),
        "updates": str(held.updates),
        "ms a question": f"{1000 * seconds / questions:.2f}",
        "worst": f"{worst:.3f} of {held.within:.3f}",
    }
    return line, values


def fitted(device: str, cells: int) -> tuple[dict[str, str], Any]:
    """A fit to all pairs in a clique of 2^`cells` cells, and one pair beside it."""
    arrays, draw = array_module(device), np.random.default_rng(2)
    shape, left = [], cells
    while left:
        shape.append(2 ** min(5, left))
        left -= min(5, left)
    shape.append(WIDTH)
    inside = range(len(shape) - 1)
    sets = [(i, j) for i in inside for j in inside if i < j] + [(len(shape) - 2, len(shape) - 1)]
    sides = {axis: draw.dirichlet(np.ones(size)) for axis, size in enumerate(shape)}
    measured = []
    for i, j in sets:
        chances = np.outer(sides[i], sides[j]) * (1 + 0.3 * draw.standard_normal((shape[i], shape[j])))
        counts = 1e6 * np.maximum(chances, 0.0) / np.maximum(chances, 0.0).sum()
        measured.append(NoisyMarginal((i, j), counts, np.full(counts.shape, 50.0**2)))
    tree = junction_tree(shape, [tuple(inside), *sets])
    fit(tree, measured, 1_000_000, steps=1, arrays=arrays)  # warm
    start = time.perf_counter()
    made = fit(tree, measured, 1_000_000, steps=20, arrays=arrays)
    seconds = time.perf_counter() - start
    found = made.model.marginals(sets)
    assert all(abs(float(one.sum()) - 1) < 1e-6 for one in found.values())
    line = {
        "what": f"fit of {len(sets)} pairs, a clique of 2^{cells}",
        "device": device,
        "questions": "",
        "updates": "20 steps",
        "ms a question": "",
        "worst": "",
        "seconds": f"{seconds:.2f}",
        "model (MiB)": f"{tree.memory(sets) / 2**20:,.0f}",
    }
    return line, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="torch", choices=("numpy", "torch", "cupy"))
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--groups", type=int, default=64)
    parser.add_argument("--cells", type=int, default=24)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    for name, make in (
        ("weights", lambda device: weights(device, given.questions, given.rows, given.groups)),
        ("fit", lambda device: fitted(device, given.cells)),
    ):
        (here, mine), (there, other) = make("numpy"), make(given.device)
        for line in (here, there):
            print("  ".join(f"{key}: {value}" for key, value in line.items() if value), flush=True)
        if name == "weights":
            away = max(abs(a - b) for a, b in zip(mine, other, strict=True))
        else:
            away = max(float(np.abs(mine[axes] - other[axes]).max()) for axes in mine)
        print(f"{name}: the two differ by at most {away:.2g}", flush=True)
        assert away < 1e-6, away
