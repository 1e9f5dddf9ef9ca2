"""Counters and the pan-private density: everything that leaves, on streams that differ in one arrival."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.audit.case import DELTA, Case, one_by_one
from holdfast.privacy.conversion import zcdp_to_approx
from holdfast.stream import Counter, HistogramCounter, PanPrivateDensity, UnboundedCounter

_RUNS = 20_000


def streams() -> list[Case]:
    """Every total that was released, as one output."""
    quiet, loud = (0, 0, 0, 0), (1, 0, 0, 0)
    approximate = zcdp_to_approx(0.5, DELTA)
    tree, root = partial(Counter, 4, epsilon=4.0), partial(Counter, 4, rho=0.5)
    endless = partial(UnboundedCounter, epsilon=8.0)
    named = partial(HistogramCounter, ("a", "b"), 2, epsilon=4.0)
    return [
        Case("counter, tree", one_by_one(partial(_totals, tree)), quiet, loud, 4.0, runs=_RUNS),
        Case(
            "counter, root", one_by_one(partial(_totals, root)), quiet, loud, approximate, DELTA, _RUNS // 4
        ),
        Case("counter, unbounded", one_by_one(partial(_endless, endless)), quiet, loud, 8.0, runs=_RUNS),
        Case("histogram over time", one_by_one(partial(_histogram, named)), "aa", "ba", 4.0, runs=_RUNS),
        Case("pan-private state", one_by_one(partial(_intruded, told=False)), (), (0,), 1.0, runs=_RUNS),
        Case(
            "pan-private state and answer",
            one_by_one(partial(_intruded, told=True)),
            (),
            (0,),
            2.0,
            runs=_RUNS,
        ),
    ]


def _totals(make: Callable[[], Counter], stream: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(make().extend(stream).tolist())


def _endless(make: Callable[[], UnboundedCounter], stream: tuple[int, ...]) -> tuple[int, ...]:
    counter = make()
    totals = []
    for value in stream:
        counter.add(value)
        totals.append(counter.total())
    return tuple(totals)


def _histogram(make: Callable[[], HistogramCounter], stream: str) -> tuple[int, ...]:
    counter = make()
    totals: list[int] = []
    for name in stream:
        counter.add(name)
        totals += counter.totals().values()
    return tuple(totals)


def _intruded(users: tuple[int, ...], *, told: bool) -> tuple[Any, ...]:
    density = PanPrivateDensity(2, epsilon=1.0)
    for user in users:
        density.see(user)
    return (*density.state, round(4 * density.density())) if told else density.state
