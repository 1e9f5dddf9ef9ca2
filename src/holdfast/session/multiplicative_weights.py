"""Private multiplicative weights: a number of questions that is exponential in what is paid for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import BudgetError, InputError, LedgerError, MechanismError
from holdfast.ledger import Entry
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian
from holdfast.noise.laplace import laplace
from holdfast.privacy.event import Nothing
from holdfast.query.measurement import Measurement
from holdfast.query.predicate import Always
from holdfast.query.region import GRID, Region, factors, from_text, region
from holdfast.query.universe import MAX_CELLS, Universe, universe
from holdfast.session.answer import Answer
from holdfast.session.array_module import array_module
from holdfast.session.promise import promises, share
from holdfast.session.request import positive, whole
from holdfast.session.weights import Weights, views
from holdfast.session.weights_terms import WeightsTerms, best, best_within, lecture, textbook

if TYPE_CHECKING:
    from holdfast.data.source import Source
    from holdfast.session.session import Session

VERSIONS = ("best", "lecture", "textbook")
_BLOCK = 4096
_REMEMBERED = 1 << 16
_LEVELS = 40


class MultiplicativeWeights:
    """`fraction(where)`, any number of times up to `queries`; only updates are paid for.

    Guarantee: privacy as charged, whatever is asked: each update is one run of a sparse vector and one noisy
    answer, paid before the run's first question. Accuracy: with the session's confidence all answers are
    within `within` of the table (and within `within` plus the population part of the population), at once.
    Once the potential is used up (`settled`) the weights alone answer everything within that promise, for
    ever and for nothing.
    The secret histogram is counted once, at the opening. What was released, and the noisy threshold of the
    run under way, stand in the ledger (secret, beside the rows): coming back to the same name goes on from
    there and draws nothing again.
    Reference: `holdfast.session.weights_terms`.
    """

    def __init__(
        self,
        session: Session,
        columns: Sequence[str],
        *,
        queries: int,
        within: float | None = None,
        rho: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        edges: Mapping[str, Sequence[Any]] | None = None,
        version: str = "best",
        name: str = "weights",
        device: str = "numpy",
        bits: Bits | None = None,
    ) -> None:
        self._session, self._name, self._bits, self._lock = session, name, bits, RLock()
        self.universe: Universe = universe(
            session._schema, columns, edges, most=MAX_CELLS if device == "numpy" else 2**32
        )
        self.queries = whole("queries", queries)
        asked = {"universe": self.universe.identity(), "queries": self.queries, "version": version}
        asked |= {"within": within, "rho": rho, "epsilon": epsilon, "delta": delta}
        first = session._ledger.find(session.name, self._key("run", 0))
        if first is None:
            self.terms = self._plan(version, within, rho, epsilon, delta)
            self._refuse_if_it_cannot_finish()
        else:
            saved = json.loads(self._told(first, " opens: "))
            if saved["asked"] != json.loads(json.dumps(asked)):
                raise InputError(f"the weights {name!r} were opened on other terms; choose another name")
            self.terms = WeightsTerms.from_json(saved["terms"])
        self.weights = Weights(self.universe, array_module(device))
        self._opening = asked
        self._run: SparseVector | None = None
        self._updates, self._asked, self._granted = 0, 0, 0
        self.potential = math.log(self.weights.support)
        self._released: dict[str, float] = {}
        self._lazy: dict[str, float] = {}
        self._regions: dict[str, Region] = {}
        if first is None:
            self._open_run()
        self._secret = _histogram(session._source, self.universe)
        self._restore()

    @property
    def within(self) -> float:
        """The certified half-width on the table."""
        return self.terms.within

    @property
    def updates(self) -> int:
        """How many updates happened."""
        return self._updates

    @property
    def updates_left(self) -> int:
        """How many more may happen."""
        return self.terms.updates - self._updates

    @property
    def asked(self) -> int:
        """How many questions were compared with the rows (after a restart, rounded up)."""
        return self._asked

    @property
    def settled(self) -> bool:
        """Whether no question can be wrong by more than `within` any more: the rows are not looked at again.

        A gap d means a potential of at least 2 d^2 (Pinsker), and the potential that is left is known.
        """
        return self.terms.eta is None and (
            self.potential <= 2 * self.terms.within**2 or self._updates == self.terms.updates
        )

    def fraction(self, where: str) -> Answer:
        """The fraction of all rows whose columns here are all known and satisfy the condition."""
        known = self._regions.get(where) if isinstance(where, str) else None
        if known is None:
            known = region(self.universe, where)
            if len(self._regions) < _REMEMBERED:
                self._regions[where] = known
        return self._ask(known)

    def product(self, values: Mapping[str, Sequence[float]]) -> Answer:
        """The mean over all rows of a product of numbers in [0,1], given bin by bin for each column named."""
        return self._ask(factors(self.universe, values))

    def rows(self, count: int) -> dict[str, list[Any]]:
        """Synthetic rows drawn from the weights; costs nothing. See `holdfast.synthesis.SyntheticTable`."""
        from holdfast.session.weighted_rows import sample

        return sample(self.weights, count, self._bits)

    def _ask(self, query: Region) -> Answer:
        with self._lock:
            known = self._released.get(query.text)
            if known is not None:
                return self._answer(query, known, "the released answer, repeated", 0.0)
            if self.settled:
                return self._answer(
                    query, self.weights.fraction(query), "answered by the settled weights", 0.0
                )
            known = self._lazy.get(query.text)
            if known is not None:
                return self._answer(query, known, "answered by the weights, repeated", 0.0)
            return self._compare(query)

    def _compare(self, query: Region) -> Answer:
        """One round of the sparse vector: the weights' answer, or an update."""
        if self._asked >= self.terms.questions:
            raise BudgetError(
                f"the weights were opened for {self.terms.questions:,} questions, and all were asked; open others",
                requested=1,
                remaining=0,
            )
        self._catch_up()
        run = self._open_run()
        self._count()
        guess = self.weights.fraction(query)
        unit = self._session._terms.rows * GRID
        secret = self._total(query)
        if not run.above(abs(secret - round(guess * unit))):
            if len(self._lazy) < _REMEMBERED:
                self._lazy[query.text] = guess
            return self._answer(query, guess, "answered by the weights; nothing new was paid", 0.0)
        # The run is over from here on: the reservation says so before the answer is drawn.
        key = self._key("update", self._updates)
        entry = self._session.charge(f"weights {self._name!r} learns: {query.text}", Nothing(), key=key)
        if self._told(entry, " learns: ") != query.text:
            raise LedgerError(
                f"another process is using the weights {self._name!r}; let one at a time hold a name, and ask again"
            )
        steps = self._draw(query, entry)
        self._update(query, steps)
        value = min(1.0, max(0.0, steps / unit))
        return self._answer(
            query, value, "an update: a noisy answer, already paid", self.terms.rho / self.terms.updates
        )

    def _draw(self, query: Region, entry: Entry) -> int:
        """The noisy answer of an update, drawn once: what the ledger has stands."""
        noise = gaussian if self.terms.answer == "gaussian" else laplace
        drawn = self._total(query) + noise(self.terms.answer_noise, self._bits)
        return int(json.loads(self._session.record(entry, json.dumps(drawn))))

    def _update(self, query: Region, steps: int) -> None:
        """Tilt the weights towards a released answer. A function of public numbers only."""
        terms, unit = self.terms, self._session._terms.rows * GRID
        p = self.weights.fraction(query)
        gap = steps / unit - p
        sign = 1.0 if gap > 0 else -1.0
        eta = terms.eta
        if eta is None:
            moved = max(terms.least_gap, abs(gap) - (terms.answer_reach + 1) / unit)
            eta = projection(p, sign * moved, counting=query.is_counting)
            self.potential -= 2 * moved**2 if not query.is_counting else _kl(p, sign * moved)
        self.weights.tilt(query, sign * abs(eta))
        self._updates += 1
        self._run = None
        self._released[query.text] = min(1.0, max(0.0, steps / unit))
        self._lazy.clear()

    def _open_run(self) -> SparseVector:
        """The run under way, or the next one, which is charged first. BudgetError when none is left."""
        if self._run is not None:
            return self._run
        terms, session = self.terms, self._session
        if self._updates >= terms.updates:
            raise BudgetError(
                f"all {terms.updates:,} updates of these weights are used up; open others with more budget",
                requested=1,
                remaining=0,
            )
        key = self._key("run", self._updates)
        queries = self.queries if self._updates == 0 else 0
        label = f"weights {self._name!r} runs"
        if self._updates == 0:
            opening = {"asked": self._opening, "terms": terms.to_json()}
            label = f"weights {self._name!r} opens: {json.dumps(opening)}"
        entry = session.charge(label, terms.event, queries=queries, key=key)
        if entry.answer is None:
            vector = SparseVector(
                terms.threshold,
                sensitivity=GRID,
                epsilon=terms.run_epsilon,
                hits=1,
                version="lecture" if terms.version == "textbook" else "best",
                bits=self._bits,
            )
            text = session.record(entry, json.dumps(vector.to_json()))
        else:
            text = entry.answer
        self._run = SparseVector.from_json(json.loads(text), self._bits)
        return self._run

    def _count(self) -> None:
        """Count a question; the ledger learns of them in blocks, ahead of time, so that none is forgotten."""
        if self._asked >= self._granted:
            self._session.charge(
                f"weights {self._name!r} counts",
                Nothing(),
                key=self._key("questions", self._granted // _BLOCK),
            )
            self._granted += _BLOCK
        self._asked += 1

    def _restore(self) -> None:
        """Go through what was released, in order; finish an update that was begun; draw nothing else."""
        self._catch_up()
        find = self._session._ledger.find
        while find(self._session.name, self._key("questions", self._granted // _BLOCK)) is not None:
            self._granted += _BLOCK
        self._asked = self._granted

    def _catch_up(self) -> None:
        """Apply the updates that stand in the ledger and are not in the weights."""
        find = self._session._ledger.find
        while (entry := find(self._session.name, self._key("update", self._updates))) is not None:
            query = from_text(self.universe, self._told(entry, " learns: "))
            steps = self._draw(query, entry) if entry.answer is None else json.loads(entry.answer)
            self._update(query, int(steps))

    def _told(self, entry: Entry, verb: str) -> str:
        """What a ledger entry of ours says after its first words."""
        return str(json.loads(entry.plan)["question"])[len(f"weights {self._name!r}{verb}") :]

    def _answer(self, query: Region, value: float, words: str, rho: float) -> Answer:
        session, within = self._session, self.terms.within + (0 if query.steps is None else 1 / GRID)
        promise = session.promise()
        population = promise.population + promise.slack
        half = within + population
        return Answer(
            question=f"fraction where {query.text} (and none of the weights' columns is NULL)",
            value=value,
            low=max(0.0, value - half),
            high=min(1.0, value + half),
            confidence=session.confidence,
            noise=within,
            sampling=0.0,
            population=population,
            target=promise.target,
            rho=rho,
            epsilon=None,
            rows_read=0 if self.settled else session._terms.rows,
            mechanism="multiplicative-weights",
            explanation=f"{words} ({self.terms.version} version, {self._updates} of at most "
            f"{self.terms.updates} updates, {self.universe.size:,} cells)",
        )

    def _total(self, query: Region) -> int:
        """The exact sum over the rows, in steps. Secret."""
        return exact_total(self._secret, self.universe, query)

    def _plan(
        self,
        version: str,
        within: float | None,
        rho: float | None,
        epsilon: float | None,
        delta: float | None,
    ) -> WeightsTerms:
        session, failure = self._session, self._failure()
        n, points, k = session._terms.rows, self.universe.size + 1, self.queries
        if version not in VERSIONS:
            raise InputError(f"expected version as one of {', '.join(VERSIONS)}, got {version!r}")
        if session.currency == "gdp":
            raise MechanismError("the sparse vector is not Gaussian noise, and this session is Gaussian-only")
        if version != "best":
            if epsilon is None or within is not None or rho is not None:
                raise InputError(f"the {version} version is planned from epsilon= and delta=")
            budget = (positive("epsilon", epsilon), 0.0 if delta is None else positive("delta", delta))
            return (lecture if version == "lecture" else textbook)(n, points, k, *budget, failure)
        pure = session.currency == "pure"
        if within is not None and rho is None and epsilon is None:
            return best(n, points, k, _below_one(within), failure, "laplace" if pure else "gaussian")
        if within is None and (epsilon if pure else rho) is not None:
            if pure:
                return best_within(n, points, k, failure, epsilon=positive("epsilon", epsilon))
            return best_within(n, points, k, failure, rho=positive("rho", rho))
        raise InputError("give within=, or the budget of all updates: rho= (epsilon= in a pure session)")

    def _failure(self) -> float:
        """The chance of a miss on the table that the session's promise leaves for all these answers."""
        session = self._session
        terms, moment = session._terms, session._moment()
        answered = (moment.session if terms.target == "table" else moment.table).answers
        if terms.queries is not None and answered + self.queries > terms.queries:
            raise BudgetError(
                f"the intervals were promised for {terms.queries:,} queries, {answered:,} are answered and these "
                f"weights need {self.queries:,}; open a session with more queries, or with queries=None",
                requested=self.queries,
                remaining=terms.queries - answered,
            )
        weight = shares(terms.queries, answered + 1, self.queries)
        from holdfast.session.planner import total_rho

        spent = total_rho(moment.table.units, terms)
        beta = 1 - terms.confidence
        return min(
            p.allowance for p in islice(promises(terms.target, terms.rows, beta, weight, spent), _LEVELS)
        )

    def _refuse_if_it_cannot_finish(self) -> None:
        """All updates must be affordable at the start, so that the promise can be kept."""
        session, terms = self._session, self.terms
        cost = terms.updates * session._terms.session.cost(terms.event)
        left = float(session.remaining)
        if cost / 1e9 > left:
            raise BudgetError(
                f"{terms.updates:,} updates may cost {cost / 1e9:.4g} and {left:.4g} is left; ask for a wider "
                "promise, or give the budget and take the width that it affords",
                requested=cost / 1e9,
                remaining=left,
            )

    def _key(self, kind: str, number: int) -> str:
        return f"weights {self._name} {kind} {number}"


def projection(p: float, move: float, *, counting: bool) -> float:
    """The step |eta| that moves the mean of a 0/1 query from p to p + move; 4 |move| for other queries.

    Where p + move is no probability, which happens with the failure probability only, the second is taken.
    """
    if counting and 0 < p < 1 and 0 < p + move < 1:
        return abs(math.log((p + move) / (1 - p - move)) - math.log(p / (1 - p)))
    return 4 * abs(move)


def shares(queries: int | None, place: int, count: int) -> float:
    """The sum of `promise.share` over `count` places from `place` on."""
    if queries is not None:
        return count / queries
    total, end = 0.0, place + count
    while place < end:
        following = min(end, 1 << place.bit_length())
        total += (following - place) * share(None, place)
        place = following
    return total


def exact_total(histogram: NDArray[np.int64], universe: Universe, query: Region) -> int:
    """The sum of the query over the rows, in steps of 1/GRID; an exact integer."""
    if query.boxes is not None:
        return GRID * sum(int(v.sum()) for box in query.boxes for v in views(histogram, universe.shape, box))
    assert query.steps is not None
    unused = tuple(i for i, length in enumerate(query.steps.shape) if length == 1)
    marginal = histogram.reshape(universe.shape).sum(unused, keepdims=True)
    return int((marginal * query.steps).sum())


def _histogram(source: Source, universe: Universe) -> NDArray[np.int64]:
    """The rows in each cell: by the source's own totals, or block by block where there are many cells."""
    if universe.size <= 2**20:
        # A universe groups rows as a Grouping does; Measurement asks no more of it.
        measurement = Measurement(universe.schema, Always(), by=cast(Any, universe))
        return source.totals(measurement)
    histogram = np.zeros(universe.size, dtype=np.int64)
    for block in source.scan(universe.columns):
        cells = universe.groups(block)
        np.add.at(histogram, cells[cells >= 0], 1)
    return histogram


def _kl(p: float, move: float) -> float:
    """A lower bound on the fall of the potential: kl(p + move || p), at least 2 move^2."""
    q = p + move
    if not (0 < p < 1 and 0 < q < 1):
        return 2 * move**2
    return max(2 * move**2, q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p)))


def _below_one(within: object) -> float:
    number = positive("within", within)
    if number >= 1:
        raise InputError(f"expected within below 1, got {within!r}")
    return number
