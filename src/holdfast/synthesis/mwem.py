"""MWEM: weights fitted to the questions that are answered worst, chosen and measured privately."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive, printable, whole
from holdfast.errors import InputError
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.laplace import add_laplace
from holdfast.mechanisms.selection import exponential
from holdfast.mechanisms.values import round_down, round_up
from holdfast.privacy.event import BoundedRange, Event, Gaussian, Laplace, Repeat
from holdfast.privacy.event import Sequence as Both
from holdfast.query.calling import fitting
from holdfast.query.universe import Universe, universe
from holdfast.synthesis.workload import Workload
from holdfast.weights.cell_counts import CellCounts
from holdfast.weights.distribution import Weights
from holdfast.weights.marginals import Axes, marginals
from holdfast.weights.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.session.session import Session

_ROUNDS = 60
_LARGEST_MARGINAL = 4096
_PASSES = 2


@fitting
def mwem(
    session: Session,
    columns: Sequence[str],
    queries: Sequence[str] | Workload,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    rounds: int | None = None,
    edges: Mapping[str, Sequence[Any]] | None = None,
    nulls: Sequence[str] | None = None,
    name: str = "mwem",
) -> SyntheticTable:
    """Synthetic data fitted to a list of conditions (texts, or a `Workload` made from them before), over the
    `holdfast.query.universe` of the columns, their `edges` and `nulls`.

    Each round chooses the group of questions (all on the same columns) with the worst error by the
    exponential mechanism, and measures that group's whole marginal with Gaussian noise. The weights are
    projected on what was measured, and at the end several times on all of it: post-processing.
    Guarantee: rho-zCDP for `rho`: half of it for choosing (epsilon_0^2/8 a round), half for measuring (one
    row moves two cells by 1). With `epsilon`, Laplace noise and pure epsilon-DP. All draws are made and
    recorded at once, so that coming back to `name` repeats the release and draws nothing.
    Reference: Hardt, Ligett and McSherry 2012. It departs from the paper: zCDP, measuring marginals instead
    of single questions, projections instead of fixed steps. Their error bound is for the paper's form; ours
    comes without one, so look at `quality`.
    Cost: rounds times (choice + measurement), charged before a row is read.
    """
    printable("name", name)
    made = universe(session.schema, columns, edges, nulls=nulls)
    work = queries if isinstance(queries, Workload) else Workload(made, queries)
    if work.universe != made:
        raise InputError("expected a workload over these columns and edges, got one over others")
    _refuse_large_marginals(work)
    count = min(whole("rounds", _ROUNDS if rounds is None else rounds), len(work.groups))
    choosing, noise, event, amount = _budget(session, rho, epsilon, count)
    identity = json.dumps([made.identity(), work.queries, count, str(choosing), str(noise)])
    paid = session.pay(
        "mwem", f"mwem {name!r} on {len(work)} conditions", event, key=f"mwem {name} {identity}"
    )
    rows = session._terms.rows
    text = paid.outcome
    if text is None:
        counts = CellCounts(paid, made)
        drawn = _rounds(work, counts, _first(made, rows), rows, count, choosing, noise)
        text = paid.record(
            json.dumps([[list(axes), cells.ravel().tolist()] for axes, cells in drawn.items()])
        )
    weights = _fitted(made, _recorded(text, made), rows)
    words = (
        f"MWEM: {count} rounds, each an exponential mechanism at epsilon {float(choosing):.3g} and a noisy "
        f"marginal; {'zCDP by composition' if rho is not None else 'pure DP by composition'}"
    )
    return SyntheticTable(weights, "mwem", amount, words)


def _rounds(
    work: Workload,
    counts: CellCounts,
    weights: Weights,
    rows: int,
    rounds: int,
    choosing: Fraction,
    noise: Event,
) -> dict[Axes, NDArray[np.int64]]:
    """The measured marginals, in the order in which they were chosen. Only these leave."""
    shape = work.universe.shape
    secret = marginals(counts.cells.reshape(shape), work.groups)
    truth = work.read(secret)
    measured: dict[Axes, NDArray[np.int64]] = {}
    for _ in range(rounds):
        open_groups = [axes for axes in work.groups if axes not in measured]
        # Single precision is enough for a public guess, and half the memory to pass over.
        cells = np.asarray(weights.array(), dtype=np.float32).reshape(shape)
        guesses = np.rint(work.read(marginals(cells, open_groups)) / weights.total * rows).astype(np.int64)
        errors = np.abs(truth - guesses)
        # The worst error of a group moves by at most 1 when one row does.
        scores = np.array([errors[work.groups[axes]].max() for axes in open_groups], dtype=np.int64)
        axes = open_groups[exponential(scores, sensitivity=1, epsilon=choosing)]
        measured[axes] = _noisy(secret[axes], noise)
        _project(weights, axes, measured[axes], rows)
    return measured


def _first(made: Universe, rows: int) -> Weights:
    """Uniform weights on the values; a column is NULL in about one row of all, until it was measured."""
    weights = Weights(made)
    outside = weights.probabilities()[1]
    for place, axis in enumerate(made.axes):
        if axis.column in made.nulls:
            null = (1 - outside) / (rows + 1)
            values = np.full(axis.size, (1 - outside - null) / axis.size)
            weights.rescale((place,), np.append(values, null), outside)
    return weights


def _fitted(made: Universe, measured: dict[Axes, NDArray[np.int64]], rows: int) -> Weights:
    """The weights near to the first ones that have the measured marginals, by several passes over all of them.

    A function of what was recorded, so that a restart gives the same weights to the last bit.
    """
    weights = _first(made, rows)
    for _ in range(_PASSES):
        for axes, cells in measured.items():
            _project(weights, axes, cells, rows)
    return weights


def _project(weights: Weights, axes: Axes, cells: NDArray[np.int64], rows: int) -> None:
    """Fit the weights to a noisy marginal: no cell below half a row, no sum above 1. Where no row can lie outside,
    none does."""
    target = np.maximum(cells, 0.5) / rows
    outside = 0.0 if weights.universe.is_complete else max(1.0 - float(target.sum()), 0.5 / rows)
    total = float(target.sum()) + outside
    weights.rescale(axes, target / total, outside / total)


def _noisy(cells: NDArray[np.int64], noise: Event) -> NDArray[np.int64]:
    if isinstance(noise, Gaussian):
        return np.asarray(add_gaussian(cells, noise.variance))
    assert isinstance(noise, Laplace)
    return np.asarray(add_laplace(cells, noise.scale))


def _budget(
    session: Session, rho: float | None, epsilon: float | None, rounds: int
) -> tuple[Fraction, Event, Event, float]:
    """The choosing epsilon of a round, its measurement, the whole event, and its rho (or epsilon)."""
    if (rho is None) == (epsilon is None):
        raise InputError("expected either rho= or epsilon= (pure differential privacy), got both or neither")
    size = session._terms.rows_per_unit
    if rho is not None:
        each = positive("rho", rho) / size**2 / rounds / 2 * (1 - 2.0**-40)
        choosing = round_down(math.sqrt(8 * each))
        noise: Event = Gaussian(2, round_up(Fraction(1) / Fraction(each)))
        return choosing, noise, Repeat(Both((BoundedRange(choosing), noise)), rounds), float(rho)
    amount = positive("epsilon", epsilon)
    choosing = round_down(amount / size / rounds / 2)
    noise = Laplace(2, 2 / choosing)
    return choosing, noise, Repeat(Both((BoundedRange(choosing), noise)), rounds), amount


def _recorded(text: str, made: Universe) -> dict[Axes, NDArray[np.int64]]:
    found = {}
    for axes, cells in json.loads(text):
        shape = [made.shape[axis] for axis in axes]
        found[tuple(axes)] = np.array(cells, dtype=np.int64).reshape(shape)
    return found


def _refuse_large_marginals(work: Workload) -> None:
    for axes in work.groups:
        size = math.prod(work.universe.shape[axis] for axis in axes)
        if size > _LARGEST_MARGINAL:
            raise InputError(
                f"cannot measure: a condition asks about columns with {size:,} cells together; MWEM measures at most "
                f"{_LARGEST_MARGINAL:,} at once: use coarser edges, or multiplicative weights"
            )
