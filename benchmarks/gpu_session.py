"""A session whose weights stand on 2^30 cells of a GPU: opened, asked adaptively, charged, like any other.

python benchmarks/gpu_session.py [--columns 30] [--device torch] [--questions 300] [--rows 1000000]

Beside it, in the same run, the same session on 2^24 cells by NumPy: seconds for each question, by cells. Needs NumPy,
SciPy, cryptography, sqlglot and the device's library, nothing else of ours.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import holdfast as hf

SMALL = 24


def people(columns: int, rows: int) -> dict[str, np.ndarray]:
    """Rows of yes and no, of which each column follows the last one most of the time."""
    draw = np.random.default_rng(1)
    found = [draw.random(rows) < 0.5]
    for _ in range(columns - 1):
        found.append(np.where(draw.random(rows) < 0.8, found[-1], draw.random(rows) < 0.3))
    return {f"c{i}": column for i, column in enumerate(found)}


def rows(quick: bool = True) -> list[dict[str, str]]:
    """As `python -m benchmarks` calls it: both sessions small, on what is at hand."""
    questions, device = (20, "numpy") if quick else (200, "numpy")
    return [run(columns, 100_000, questions, device) for columns in (16, 20)]


def run(columns: int, rows: int, questions: int, device: str) -> dict[str, str]:
    """One session: its opening, its questions, and how far its answers were from the rows."""
    data = people(columns, rows)
    schema = hf.Schema(**dict.fromkeys(data, hf.Boolean()))
    started = time.perf_counter()
    session = hf.open(data, schema).session(rho=0.5, queries=questions, target="table")
    weights = session.multiplicative_weights(
        list(data), queries=questions, within=0.05, nulls=[], device=device, stop="when spent"
    )
    opened = time.perf_counter() - started
    worst, started, asked = 0.0, time.perf_counter(), 0
    for first, second in itertools.islice(itertools.combinations(range(columns), 2), questions):
        told = weights.fraction(f"c{first} AND c{second}")
        truth = float(np.mean(data[f"c{first}"] & data[f"c{second}"]))
        worst, asked = max(worst, abs(told.value - truth)), asked + 1
    seconds = time.perf_counter() - started
    assert worst <= weights.within, (worst, weights.within)
    return {
        "cells": f"2^{columns}",
        "device": _name(device),
        "opening (s)": f"{opened:.1f}",
        "questions": str(asked),
        "updates": str(weights.updates),
        "ms a question": f"{1000 * seconds / asked:.1f}",
        "ns a cell, an update": f"{1e9 * seconds / max(1, weights.updates) / 2**columns:.3f}",
        "within": f"{weights.within:.3f}",
        "worst": f"{worst:.3f}",
        "rho": f"{float(session.spent):.4f} of 0.5",
        "memory (GiB)": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f}, {_held(device)} there",
    }


def _name(device: str) -> str:
    if device != "torch":
        return device
    import torch  # type: ignore[import-not-found, unused-ignore]

    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else "torch, CPU"


def _held(device: str) -> str:
    if device != "torch":
        return "none"
    import torch

    return f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if torch.cuda.is_available() else "none"


def table(columns: int, rows: int, questions: int, device: str) -> str:
    """Both sessions as a small table."""
    found = [run(SMALL, rows, questions, "numpy"), run(columns, rows, questions, device)]
    lines = ["| " + " | ".join(found[0]) + " |", "|" + "---|" * len(found[0])]
    return "\n".join([*lines, *("| " + " | ".join(one.values()) + " |" for one in found)]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--device", default="torch", choices=("numpy", "torch", "cupy"))
    given = parser.parse_args()
    print(table(given.columns, given.rows, given.questions, given.device), flush=True)
