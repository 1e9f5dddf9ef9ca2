"""BLR: a small database, chosen by the exponential mechanism among all of its size.

A Markov chain that only approaches that law is not differentially private at any time it stops, so none is
offered: the choice is exact, or it is one of two relaxations with a theorem of their own, or it is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import exact_positive, one_of, positive, printable, whole
from holdfast.errors import InputError
from holdfast.mechanisms.selection import exponential
from holdfast.noise.bits import system_bits
from holdfast.privacy.event import BoundedRange, Event, Repeat
from holdfast.query.calling import fitting
from holdfast.query.universe import universe
from holdfast.synthesis.workload import Workload
from holdfast.weights.cell_counts import CellCounts
from holdfast.weights.distribution import Weights
from holdfast.weights.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.session.session import Session

MOST_WORK = 2**27
"""Databases times conditions that are compared one by one; some seconds."""

_SEARCHES = ("exact", "greedy", "candidates")
_BLOCK = 2**22


@fitting
def small_database(
    session: Session,
    columns: Sequence[str],
    queries: Sequence[str],
    *,
    epsilon: float,
    within: float | None = None,
    size: int | None = None,
    search: str = "exact",
    candidates: int = 10_000,
    edges: Mapping[str, Sequence[Any]] | None = None,
    nulls: Sequence[str] | None = None,
    name: str = "small-database",
) -> SyntheticTable:
    """A database of `size` rows (or of ln|Q|/within^2) whose answers are close to the table's.

    The score of a database y is -max over the conditions of |q(table) - q(y)|; as an integer it is
    -max |m count - n count_y|, of sensitivity m.
    "exact": one exponential mechanism over all multisets of that size. Guarantee: epsilon-DP, and error at
    most `exact_error` with the session's confidence, by itself: it uses up none of the session's queries, so
    it stands outside the joint promise of the session's intervals. Reference: Blum, Ligett and Roth
    2008; Dwork and Roth 2014, Proposition 4.1 and Theorem 4.5. Refused where the multisets are too many to be
    listed.
    "candidates": the same over so many databases drawn uniformly without looking at the rows. Guarantee:
    epsilon-DP (any public range, Dwork and Roth 2014, Theorem 3.10); close to the best of them only.
    "greedy": row by row, each by an exponential mechanism with epsilon/m. Guarantee: epsilon-DP by composition
    (Theorem 3.16); no theorem about its error.
    Cost: `BoundedRange(epsilon)`, or m times `BoundedRange(epsilon/m)`, charged before a row is read.
    """
    printable("name", name)
    made = universe(session.schema, columns, edges, nulls=nulls)
    work = Workload(made, queries)
    positive("epsilon", epsilon)
    rate = exact_positive("epsilon", epsilon)
    m = _size(len(work), within, size)
    one_of("search", search, _SEARCHES)
    points = made.points
    _refuse_long_lists(search, points, m, len(work), whole("candidates", candidates))
    event: Event = Repeat(BoundedRange(rate / m), m) if search == "greedy" else BoundedRange(rate)
    identity = json.dumps([made.identity(), work.queries, str(rate), m, search, candidates])
    words = f"small database {name!r} of {m} rows for {len(work)} conditions"
    paid = session.pay("small database", words, event, key=f"small database {name} {identity}")
    text = paid.outcome
    if text is None:
        counts = work.answers(CellCounts(paid, made).cells)
        answers = indicators(work)
        if search == "greedy":
            chosen = _greedy(answers, counts, session._terms.rows, m, rate / m)
        else:
            listed = databases(points, m) if search == "exact" else _drawn(points, m, candidates)
            score = scores(listed, answers, counts, session._terms.rows)
            chosen = listed[exponential(score, sensitivity=m, epsilon=rate)]
        text = paid.record(json.dumps(chosen.tolist()))
    rows = np.array(json.loads(text), dtype=np.int64)
    words = {
        "exact": f"exact exponential mechanism over {database_count(points, m):,} databases; error at most "
        f"{exact_error(session._terms.rows, points, m, len(work), float(rate), 1 - session.confidence):.3g} "
        f"with confidence {session.confidence:g}, by itself",
        "candidates": f"exponential mechanism over {candidates:,} databases drawn without the rows",
        "greedy": "row by row, composition of exponential mechanisms; its error has no theorem",
    }[search]
    explained = f"small database of {m} rows, {float(rate):g}-DP: {words}"
    return SyntheticTable(Weights.of_points(made, rows), "small-database", float(rate) ** 2 / 8, explained)


def database_count(points: int, size: int) -> int:
    """How many multisets of `size` rows there are."""
    return math.comb(points + size - 1, size)


def exact_error(rows: int, points: int, size: int, queries: int, epsilon: float, beta: float) -> float:
    """What the exact choice keeps with probability 1 - beta.

    sqrt(ln(2|Q|)/(2m)) is the error of the best database (Hoeffding and a union bound: one exists), and the
    exponential mechanism loses at most 2 (ln R + ln(1/beta))/(epsilon n) more, R the number of databases.
    Reference: Dwork and Roth 2014, Proposition 4.4 with m rows for log|Q|/alpha^2.
    """
    best = math.sqrt(math.log(2 * queries) / (2 * size))
    return best + 2 * (math.log(database_count(points, size)) + math.log(1 / beta)) / (epsilon * rows)


def databases(points: int, size: int) -> NDArray[np.int64]:
    """Every multiset of points, one a row, in lexicographic order."""
    count = database_count(points, size)
    flat = chain.from_iterable(combinations_with_replacement(range(points), size))
    return np.fromiter(flat, dtype=np.int64, count=count * size).reshape(count, size)


def indicators(work: Workload) -> NDArray[np.int64]:
    """For each point (the outside last, if there is one) and each condition, whether it holds."""
    cells = work.universe.size
    table = np.zeros((work.universe.points, len(work)), dtype=np.int64)
    for index, one in enumerate(work.regions):
        column = np.zeros(work.universe.shape, dtype=np.int64)
        if one.boxes is not None:
            for box in one.boxes:
                column[tuple(slice(*side) for side in box)] = 1
        else:
            assert one.steps is not None
            column += one.steps > 0
        table[:cells, index] = column.reshape(-1)
    return table


def scores(
    listed: NDArray[np.int64], answers: NDArray[np.int64], counts: NDArray[np.int64], rows: int
) -> NDArray[np.int64]:
    """-max over conditions of |m count - n count_y| for each database y: exact integers."""
    size = listed.shape[1]
    result = np.empty(len(listed), dtype=np.int64)
    step = max(1, _BLOCK // answers.shape[1])
    for first in range(0, len(listed), step):
        block = listed[first : first + step]
        held = sum(answers[block[:, j]] for j in range(size))
        result[first : first + step] = -np.abs(size * counts - rows * held).max(axis=1)
    return result


def _greedy(
    answers: NDArray[np.int64],
    counts: NDArray[np.int64],
    rows: int,
    size: int,
    each: Fraction,
) -> NDArray[np.int64]:
    held = np.zeros(answers.shape[1], dtype=np.int64)
    chosen = []
    for j in range(1, size + 1):
        score = np.empty(len(answers), dtype=np.int64)
        step = max(1, _BLOCK // answers.shape[1])
        for first in range(0, len(answers), step):
            trial = held + answers[first : first + step]
            score[first : first + step] = -np.abs(j * counts - rows * trial).max(axis=1)
        point = exponential(score, sensitivity=j, epsilon=each)
        held += answers[point]
        chosen.append(point)
    return np.array(chosen, dtype=np.int64)


def _drawn(points: int, size: int, count: int) -> NDArray[np.int64]:
    return system_bits().integers_below(points, count * size).reshape(count, size)


def _size(queries: int, within: float | None, size: int | None) -> int:
    if (within is None) == (size is None):
        raise InputError(
            "expected within= or size=, got neither or both; within= gives the size ln|Q|/within^2"
        )
    if size is not None:
        return whole("size", size)
    return max(1, math.ceil(math.log(max(3, queries)) / positive("within", within) ** 2))


def _refuse_long_lists(search: str, points: int, size: int, queries: int, candidates: int) -> None:
    length = {"exact": database_count(points, size), "greedy": points, "candidates": candidates}[search]
    if length * queries * (size if search == "greedy" else 1) <= MOST_WORK and length * size <= MOST_WORK:
        return
    log10 = math.log10(length)
    raise InputError(
        f"cannot search: {search} would compare 10^{log10:.1f} "
        f"{'rows' if search == 'greedy' else 'databases'} of {size} rows "
        f"on {queries} conditions, at most {MOST_WORK:,} comparisons are made; a Markov chain instead would not "
        'be private. Use fewer rows (size=), fewer cells, search="greedy", or method="mwem"'
    )
