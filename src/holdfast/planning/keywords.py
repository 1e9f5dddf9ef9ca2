"""The keywords of what may be asked: what a type checker, `help()` and the refusal of a misspelt one know of them.

What each means, and what it is where it is left out, is said where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from holdfast.mechanisms.sparse_vector_terms import Version


class Accuracy(TypedDict, total=False):
    """How exactly a statistic is to be answered: see `holdfast.planning.request.Request`."""

    within: float | None
    rho: float | None
    epsilon: float | None
    mechanism: str | None
    rows: int | None


class Grouped(Accuracy, total=False):
    """The same for each declared group of a column or of several, or between the edges."""

    by: str | Sequence[str] | None
    edges: Sequence[Any] | Mapping[str, Sequence[Any]] | None


class Descent(Accuracy, total=False):
    """How a loss is to be minimised: see `holdfast.learn.plan_minimize`."""

    iterations: int | None
    runs: int


class Choice(TypedDict, total=False):
    """The budget of a private choice: see `Session.select`."""

    epsilon: float | None
    rho: float | None
    mechanism: str | None


class Threshold(TypedDict, total=False):
    """The terms of a sparse vector: see `Session.sparse_vector`."""

    epsilon: float | None
    rho: float | None
    delta: float
    version: Version | None
    questions: int | None


class Cells(TypedDict, total=False):
    """The universe of some columns, and the name under which it is kept: see `holdfast.query.universe`."""

    edges: Mapping[str, Sequence[Any]] | None
    nulls: Sequence[str] | None
    name: str


class Many(Cells, total=False):
    """The terms of an answerer for many questions: see `Session.multiplicative_weights`."""

    within: float | None
    rho: float | None
    epsilon: float | None
    delta: float | None
    version: str | None
    stop: str | None


class ManyFrom(Many, total=False):
    """The same, in process only: where the answerer begins, a released `holdfast.synthesis.SyntheticTable`; and the
    memory of one over more cells than can be listed."""

    start: Any
    uniform: float
    memory: int | None


class Synthesis(Cells, total=False):
    """How synthetic data are to be made: see `holdfast.synthesis.from_marginals`, `mwem` and `small_database`."""

    method: str | None
    bins: int
    memory: int | None
    progress: Callable[[int, int], None] | None
    device: str
    rho: float | None
    epsilon: float | None
    rounds: int | None
    within: float | None
    size: int | None
    search: str
    candidates: int
