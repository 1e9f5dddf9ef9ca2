"""Synthetic data of many columns: noisy marginals, chosen where the model is wrong, and the model that fits them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive, printable, shown
from holdfast.errors import InputError, NoRuleError
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.laplace import add_laplace
from holdfast.noise.bits import system_bits
from holdfast.privacy.event import Event, Gaussian, Laplace
from holdfast.progress import Progress, watched
from holdfast.query.calling import fitting
from holdfast.query.schema import Integer, Real, Temporal, Text
from holdfast.query.universe import Universe, universe
from holdfast.session.price import cost_of
from holdfast.synthesis.marginal_plan import (
    LAST_STEPS,
    ORDERED_BINS,
    STEPS,
    MarginalPlan,
    deviation,
    ordered,
    plan_marginals,
)
from holdfast.synthesis.measured_marginals import Measured, intervals
from holdfast.synthesis.smoothed_choice import choose, in_parts, parts
from holdfast.synthesis.workload import Workload
from holdfast.weights.array_module import ArrayModule, array_module
from holdfast.weights.binned_model import BinnedModel
from holdfast.weights.cell_counts import marginal_counts
from holdfast.weights.column_bins import Bins, bins
from holdfast.weights.junction_tree import junction_tree
from holdfast.weights.likely_pair import likely
from holdfast.weights.low_rank import denoised
from holdfast.weights.marginal_fit import Fitted, NoisyMarginal, fit
from holdfast.weights.marginals import Axes
from holdfast.weights.smooth_counts import of_total
from holdfast.weights.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.desk import Paid
    from holdfast.session.session import Session

Counts = NDArray[np.int64]
_GROUPS = 256
_SCORED = 400
"""So many candidates are compared in a round; of more, a random part."""
_MOST_WAYS = 6
_KEPT = 0.9
"""What is spent of the session's budget if nothing is said: the rest is for a look at the quality."""
_TRIES, _NEARLY = 64, 0.999


@fitting
def from_marginals(
    session: Session,
    columns: Sequence[str] | None = None,
    queries: Sequence[str] | Workload | None = None,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    rounds: int | None = None,
    bins: int = ORDERED_BINS,
    edges: Mapping[str, Sequence[Any]] | None = None,
    memory: int | None = None,
    name: str = "marginals",
    progress: Progress | None = None,
    device: str = "numpy",
) -> SyntheticTable:
    """Synthetic data of any number of columns (all but texts, unless named), for all pairs of them or for `queries`.

    The counts of each column are measured, and made into bins; then marginals, each chosen by how wrong the model is
    on it less what its noise would add, as far as a junction tree within `memory` bytes can carry them. The model has
    the largest entropy among those that fit best; values are drawn inside the bins as the column has them.
    Guarantee: rho-zCDP for `rho` (without it nine tenths of what is left to the session), discrete Gaussian noise and
    the exponential mechanism; with `epsilon` Laplace noise and pure epsilon-DP. Everything is charged at once, before
    a row is read, and recorded at once: coming back to `name` repeats the release. `measured` has an interval for
    every number that was measured; the table as a whole comes without an error bound: look at `quality`.
    Reference: McKenna, Mullins, Sheldon and Miklau 2022 (AIM) for the idea; docs/theorems.md, Theorems 95 and 96.
    Cost: two passes over the rows; `progress(done, of)` is told of each round and of the last fit; without it there
    is a bar on a terminal and in a notebook. The model is fitted on `device`.
    """
    printable("name", name)
    arrays = array_module(device)
    planned = plan(
        session,
        columns,
        queries,
        rho=rho,
        epsilon=epsilon,
        rounds=rounds,
        bins=bins,
        edges=edges,
        memory=memory,
    )
    made = planned.universe
    identity = json.dumps(
        [made.identity(), sorted(planned.candidates.items()), planned.rounds, planned.bins, planned.memory]
    )
    paid = session.pay(
        "marginals",
        f"synthetic data {name!r}: {planned}",
        planned.event,
        queries=1,
        key=f"marginals {name} {identity}",
        tells=planned.tells,
    )
    of = planned.rounds + 1
    with watched(f"fitting {name!r}", progress) as advance:
        text = paid.outcome
        if text is None:
            told = _release(planned, paid, lambda done: advance(done, of), arrays)
            text = paid.record(json.dumps(told | {"beyond": intervals(session, planned)}))
        advance(planned.rounds, of)
        told = json.loads(text)
        model, binned = _modelled(planned, told, LAST_STEPS, None, arrays)
        advance(of, of)
    left_out = [column for column in session.schema if column not in made.columns]
    words = f"{planned}. Every step is a composition under zCDP" + (
        " (pure)" if isinstance(planned.columns[0], Laplace) else ""
    )
    if columns is None and left_out:
        words += f". Left out, as texts: {', '.join(left_out)}"
    weights = BinnedModel(made, model.model, binned, _outside(planned, told, model))
    return SyntheticTable(weights, "marginals", planned.amount, words, Measured.of(planned, told, binned))


def plan(
    session: Session,
    columns: Sequence[str] | None = None,
    queries: Sequence[str] | Workload | None = None,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    rounds: int | None = None,
    bins: int = ORDERED_BINS,
    edges: Mapping[str, Sequence[Any]] | None = None,
    memory: int | None = None,
) -> MarginalPlan:
    """What `from_marginals` would measure, with which noise and memory. Known without a row; charges nothing."""
    if columns is None:
        columns = [name for name, kind in session.schema.items() if not isinstance(kind, Text)]
        if not columns:
            raise InputError("expected a column that is no text, got none; declare one as a Category")
    made = _universe(session, columns, edges)
    if rho is None and epsilon is None:
        left = _KEPT * float(session.remaining)
        if not left > 0:
            raise InputError("expected a session with budget left, got one that has spent it; open another")
        half = left / 2 if session.currency == "gdp" else left
        rho, epsilon = (None, left) if session.currency == "pure" else (half, None)
    candidates = _candidates(made, queries)

    def planned(rho: float | None) -> MarginalPlan:
        return plan_marginals(
            session,
            made,
            candidates,
            rho=rho,
            epsilon=epsilon,
            rounds=rounds,
            bins=bins,
            memory=memory,
            named=queries is not None,
        )

    return planned(rho) if rho is None or session.currency != "gdp" else _within(session, rho, planned)


def _within(session: Session, rho: float, planned: Callable[[float], MarginalPlan]) -> MarginalPlan:
    """The plan that costs at most twice rho where mu squared is counted: choices and little noise cost more there."""
    amount, best = positive("rho", rho), None
    for _ in range(_TRIES):
        found = planned(amount)
        try:
            used = cost_of(session, found.event) / (2 * rho)
        except NoRuleError:  # so little noise that mu squared does not count it
            used = 2.0
        if used > 1:
            amount *= (1 - 1e-6) / used
            continue
        best = found
        if used > _NEARLY:
            break
        amount /= math.sqrt(used)
    if best is None:
        raise InputError(f"expected a budget that can be planned for, got rho={rho:g}; give another")
    return replace(best, amount=rho)


def _universe(
    session: Session, columns: Sequence[str], edges: Mapping[str, Sequence[Any]] | None
) -> Universe:
    """Every column with a group for NULL; those without edges value by value, or in 256 equal groups."""
    given = dict(edges) if isinstance(edges, Mapping) else {}
    schema = session.schema
    for column in columns if not isinstance(columns, str) and isinstance(columns, Sequence) else ():
        kind = schema.get(column) if isinstance(column, str) else None
        if column in given:
            continue
        if isinstance(kind, Real):
            given[column] = np.linspace(kind.lo, kind.hi, _GROUPS + 1).tolist()
        elif isinstance(kind, Integer | Temporal) and kind.codes > _GROUPS:
            stride = -(-kind.codes // _GROUPS)
            starts = [kind.value(code) for code in range(0, kind.codes - 1, stride)]
            given[column] = [*starts, kind.value(kind.codes - 1)]
    if edges is not None and not isinstance(edges, Mapping):
        given = edges
    return universe(schema, columns, given, most=10 ** (20 * len(columns)))


def _candidates(made: Universe, queries: Sequence[str] | Workload | None) -> dict[Axes, float]:
    """All pairs alike; or the columns of the conditions, by how many of the conditions ask about them."""
    d = len(made.axes)
    if queries is None:
        return dict.fromkeys(combinations(range(d), 2), 1.0)
    work = queries if isinstance(queries, Workload) else Workload(made, queries)
    if work.universe != made:
        raise InputError("expected a workload over these columns and edges, got one over others")
    asked = {axes: float(len(found)) for axes, found in work.groups.items() if len(axes) > 1}
    if any(len(axes) > _MOST_WAYS for axes in asked):
        raise InputError(
            f"expected conditions on at most {_MOST_WAYS} columns each, got {shown(max(map(len, asked)))}; split them"
        )
    most = max(asked.values(), default=1.0)
    return {axes: math.sqrt(count / most) for axes, count in asked.items()}


def _noisy(counts: Counts, noise: Event) -> Counts:
    if isinstance(noise, Gaussian):
        return np.asarray(add_gaussian(counts, noise.variance))
    assert isinstance(noise, Laplace)
    return np.asarray(add_laplace(counts, noise.scale))


def _release(
    planned: MarginalPlan, paid: Paid, advance: Callable[[int], None], arrays: ArrayModule
) -> dict[str, Any]:
    """The noisy counts of the columns and of the chosen marginals, in their order. Only these leave."""
    made, d = planned.universe, len(planned.universe.axes)
    alone = marginal_counts(paid, made, [(axis,) for axis in range(d)])
    columns = [_noisy(alone[axis,], noise) for axis, noise in enumerate(planned.columns)]
    told: dict[str, Any] = {"columns": [counts.tolist() for counts in columns], "marginals": []}
    if not planned.rounds:
        return told
    binned = _binned(planned, columns)
    assert planned.noise is not None
    secret = marginal_counts(paid, made, planned.candidates, binned)
    if planned.choosing is None:
        told["marginals"] = [[list(a), _noisy(secret[a], planned.noise).ravel().tolist()] for a in secret]
        return told
    model: Fitted | None = None
    for done in range(planned.rounds):
        advance(done)
        if model is None or done % planned.every == 0:
            start = None if model is None else model.factors
            model = None  # one at a time
            model, _ = _modelled(planned, told, STEPS, start, arrays)
        axes = _chosen(planned, told, secret, model, binned, columns, done)
        told["marginals"].append([list(axes), _noisy(secret[axes], planned.noise).ravel().tolist()])
    if planned.rest is not None:
        chosen = {tuple(axes) for axes, _ in told["marginals"]}
        others = [axes for axes in planned.candidates if axes not in chosen][: planned.left]
        told["marginals"] += [[list(a), _noisy(secret[a], planned.rest).ravel().tolist()] for a in others]
    return told


def _chosen(
    planned: MarginalPlan,
    told: dict[str, Any],
    secret: Mapping[Axes, Counts],
    model: Fitted,
    binned: Sequence[Bins],
    columns: Sequence[Counts],
    done: int,
) -> Axes:
    assert planned.choosing is not None
    candidates = _affordable(planned, told, tuple(own.size for own in binned), done)
    guesses = model.model.marginals(candidates)
    away, price = {}, {}
    for axes in candidates:
        split = [
            parts(binned[axis].together(columns[axis]), ordered(planned.universe, axis), len(axes))
            for axis in axes
        ]
        errors = secret[axes] - np.rint(guesses[axes] * planned.rows).astype(np.int64)
        away[axes] = in_parts(errors, split) * planned.candidates[axes]
        price[axes] = planned.price(secret[axes].size) * planned.candidates[axes]
    return choose(candidates, away, price, planned.choosing, planned.rows)


def _affordable(planned: MarginalPlan, told: dict[str, Any], shape: tuple[int, ...], done: int) -> list[Axes]:
    """The candidates that the model could carry, whose share of the memory grows with the rounds; those that were
    measured already only where no other is left. Known without the rows: of many, a random part."""
    measured = [tuple(axes) for axes, _ in told["marginals"]]
    left = [axes for axes in planned.candidates if axes not in measured]
    if len(left) > _SCORED:
        order = np.argsort(system_bits().words(len(left)), kind="stable")[:_SCORED]
        left = [left[place] for place in sorted(order.tolist())]
    tree, share = junction_tree(shape, measured), (done + 1) / planned.rounds
    room = max(share * planned.memory, tree.memory(measured))
    kept = []
    for axes in left:
        if tree.holder(axes) is None:
            grown = junction_tree(shape, [*measured, axes])
            small = all(len(clique) <= len(axes) for clique in grown.cliques)
            if not planned.affords([*measured, axes], grown) or (
                grown.memory([*measured, axes]) > room and not small
            ):
                continue
        kept.append(axes)
    return kept or measured or list(planned.candidates)[:1]


def _binned(planned: MarginalPlan, columns: Sequence[Counts]) -> list[Bins]:
    return [
        bins(
            counts.astype(np.float64),
            deviation(planned.columns[axis]),
            ordered=ordered(planned.universe, axis),
            most=planned.bins if ordered(planned.universe, axis) else 4 * ORDERED_BINS,
            rows=planned.rows,
        )
        for axis, counts in enumerate(columns)
    ]


def _modelled(
    planned: MarginalPlan,
    told: dict[str, Any],
    steps: int,
    start: Mapping[Axes, Any] | None,
    arrays: ArrayModule,
) -> tuple[Fitted, list[Bins]]:
    """The model that fits what was told: a function of it, so that a restart gives the same."""
    columns = [np.array(counts, dtype=np.int64) for counts in told["columns"]]
    binned = _binned(planned, columns)
    shape = tuple(own.size for own in binned)
    noisy = [
        NoisyMarginal(
            (axis,),
            own.together(counts.astype(np.float64)),
            own.together(np.full(len(counts), deviation(planned.columns[axis]) ** 2)),
        )
        for axis, (own, counts) in enumerate(zip(binned, columns, strict=True))
    ]
    alone = [np.maximum(one.counts, 0.0) for one in noisy]
    alone = [counts * (planned.rows / max(float(counts.sum()), 1.0)) for counts in alone]
    tree = junction_tree(shape, [axes for axes, _, _ in _told(planned, told, shape)[: planned.rounds]])
    for axes, counts, noise in _told(planned, told, shape):
        if tree.holder(axes) is None:
            continue
        if len(axes) == 2:
            counts = _read(counts, alone[axes[0]], alone[axes[1]], noise, _ordered(planned, axes))
        noisy.append(NoisyMarginal(axes, counts, np.full(counts.shape, noise**2)))
    return fit(tree, noisy, planned.rows, start=start, steps=steps, arrays=arrays), binned


def _read(
    pair: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    noise: float,
    alike: tuple[bool, bool],
) -> NDArray[np.float64]:
    """A noisy pair without most of its noise: the mean of what is likely if neighbours are alike and of what is of low
    rank, each blind for what the other one sees. Its sums over each column are as measured: the fit weighs them."""
    even = np.outer(first, second) / max(float(first.sum()), 1.0)
    away = pair - even
    sums = away.mean(axis=0) + away.mean(axis=1, keepdims=True) - away.mean()
    expected = likely(pair, even, noise, alike) + denoised(pair, first, second, noise)
    return np.asarray(sums + expected / 2)


def _outside(planned: MarginalPlan, told: dict[str, Any], fitted: Fitted) -> dict[Axes, Any]:
    """The chances of measured pairs that no clique has, as they are to be expected given the model and the counts."""
    tree, found = fitted.model.tree, {}
    others = [one for one in _told(planned, told, tree.shape) if tree.holder(one[0]) is None]
    chances = fitted.model.marginals([axes for axes, _, _ in others])
    for axes, counts, noise in others:
        guess = chances[axes] * planned.rows
        expected = likely(counts, guess, noise, _ordered(planned, axes))
        found[axes] = of_total(expected, float(planned.rows)) / planned.rows
    return found


def _told(
    planned: MarginalPlan, told: dict[str, Any], shape: Sequence[int]
) -> list[tuple[Axes, NDArray[np.float64], float]]:
    """The marginals that were measured so far, and the deviation of each one's noise."""
    return [
        (tuple(axes), np.array(cells, dtype=np.float64).reshape([shape[a] for a in axes]), deviation(noise))
        for (axes, cells), noise in zip(told["marginals"], planned.noises, strict=False)
    ]


def _ordered(planned: MarginalPlan, axes: Axes) -> tuple[bool, bool]:
    first, second = (ordered(planned.universe, axis) for axis in axes)
    return first, second
