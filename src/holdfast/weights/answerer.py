"""Private multiplicative weights: a number of questions that is exponential in what is paid for."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from holdfast.check import one_of, positive, printable, probability, whole
from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED, Stale
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.sparse_vector_terms import Version
from holdfast.noise.gaussian import gaussian
from holdfast.noise.laplace import laplace
from holdfast.privacy.event import Nothing
from holdfast.privacy.rounding import up
from holdfast.query.calling import fitting
from holdfast.query.region import GRID, Region, factors, region
from holdfast.query.universe import MAX_CELLS, WIDE, Universe, universe
from holdfast.session.answer import Answer
from holdfast.session.price import cost_of
from holdfast.weights.array_module import array_module
from holdfast.weights.cell_counts import CellCounts
from holdfast.weights.distribution import Weights
from holdfast.weights.factored_weights import FactoredWeights
from holdfast.weights.fitted_start import UNIFORM, begin
from holdfast.weights.row_groups import RowGroups, by_rows
from holdfast.weights.terms_choice import STOPS, VERSIONS, plan_weights
from holdfast.weights.versions import WeightsTerms

if TYPE_CHECKING:
    from holdfast.desk import Paid
    from holdfast.session.session import Session
    from holdfast.weights.synthetic import SyntheticTable

_REMEMBERED, _REGIONS = 1 << 16, 1 << 13
_INSIDE = " (and in the weights' universe)"
_SHORT = 500
"""Longer conditions are not remembered: who writes them is anybody."""


class MultiplicativeWeights:
    """`fraction(where)`, any number of times up to `queries`; only updates are paid for.

    Guarantee: privacy as charged, whatever is asked: each update is one run of a sparse vector and one noisy
    answer, paid before the run's first question. Accuracy: with the session's confidence all answers are
    within `within` of the table (and within `within` plus the population part of the population), at once.
    In a session whose places the leave-out theorem covers, where no version is named, the comparisons have logistic
    noise and `within` is about the population: silence tells nothing, an alarm what one answer tells, no noisy answer
    follows it, and the question is asked again (`holdfast.weights.logistic_terms`). If others are told more than was
    planned for, answers are wider, as they say.
    Once the potential is used up (`settled`) the weights alone answer everything within that promise, for
    ever and for nothing.
    With stop="when spent" the budget need not cover every update that could be needed: answers go on, each with its
    promise, until there is no room for the next one, and `updates_left` says for how many there is. `start`, a
    synthetic table that was released, is where the weights begin: mixed with a part `uniform` of the uniform table, so
    that no cell is impossible (docs/theorems.md, Theorem 150). Fewer updates are then needed if it is near, and a few
    more at the worst.
    With `memory=` in bytes the columns may be as many as they like: the weights are a product of factors, one on the
    columns of each update, summed exactly on a junction tree within that memory, with the same updates and the same
    potential (Theorem 280). A question whose update would not fit is refused before anything is charged for it.
    The secret histogram is counted once, at the opening. What was released, and the noisy threshold of the
    run under way, stand in the ledger (secret, beside the rows): coming back to the same name goes on from
    there and draws nothing again.
    Several holders may share a name. Each comparison, above or below alike, is committed as the next one of a
    common sequence before it is told, and one that was overtaken is forgotten, whatever it was: so a run tells
    one hit, and a ledger that cannot be written tells nothing.
    Reference: `holdfast.weights.versions`.
    Cost: besides the charge, one ledger entry for each question that is compared.
    """

    @fitting
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
        nulls: Sequence[str] | None = None,
        version: str | None = None,
        stop: str | None = None,
        name: str = "weights",
        device: str = "numpy",
        start: SyntheticTable | None = None,
        uniform: float = UNIFORM,
        memory: int | None = None,
    ) -> None:
        self._session, self._name, self._lock = session, printable("name", name), RLock()
        self._holder, arrays = uuid.uuid4().hex, array_module(device)
        most = MAX_CELLS if device == "numpy" else WIDE
        if memory is not None:
            _refuse_beside_memory(start)
            most = 10 ** (20 * len(columns))
        self.universe: Universe = universe(session.schema, columns, edges, nulls=nulls, most=most)
        self.queries = whole("queries", queries)
        amounts = {"within": within, "rho": rho, "epsilon": epsilon, "delta": delta}
        wanted: dict[str, Any] = {
            "version": None if version is None else one_of("version", version, VERSIONS)
        } | {given: None if amount is None else positive(given, amount) for given, amount in amounts.items()}
        if stop is not None:
            wanted["stop"] = one_of("stop", stop, STOPS)
        asked = {"universe": self.universe.identity(), "queries": self.queries} | wanted
        self.weights: Weights | FactoredWeights
        if memory is None:
            self.weights = Weights(self.universe, arrays)
        else:
            self.weights = FactoredWeights(self.universe, whole("memory", memory), arrays)
            asked["memory"] = memory
        self._points = self.universe.points
        part = probability("uniform", uniform)
        if start is not None:
            assert isinstance(self.weights, Weights)
            asked["start"] = begin(self.weights, start, part)
            self._points = math.ceil(self._points / part)
        self._opening = json.loads(json.dumps(asked))
        first = self._open(**wanted)
        self.terms = self._opened(first)
        self._run: SparseVector | None = None
        self._updates, self._asked = 0, 0
        self.potential = up(math.log(self._points))
        self._released: dict[str, float] = {}
        self._lazy: dict[str, tuple[float, float]] = {}
        """What the weights answered since the last update, and within what."""
        self._regions: dict[str, Region] = {}
        if first.outcome is None:
            self._open_run()
        by_row = memory is not None or by_rows(self.universe, session._terms.rows)
        self._secret: CellCounts | RowGroups = (RowGroups if by_row else CellCounts)(first, self.universe)
        self._catch_up()

    def __repr__(self) -> str:
        return weights_text(self._name, self.universe, self.queries, self.within)

    @property
    def within(self) -> float:
        """The certified half-width: on the table, or in the "logistic" version of the population."""
        return self.terms.within

    @property
    def updates(self) -> int:
        """How many updates happened."""
        return self._updates

    @property
    def updates_left(self) -> int:
        """How many more may happen; where they stop when the budget is spent, how many it has room for now."""
        left = self.terms.updates - self._updates
        if self._opening.get("stop") != STOPS[1]:
            return left
        begun = self._session._desk.find(self._key("round", self._updates)) is not None
        room = math.floor(float(self._session.remaining) / cost_of(self._session, self.terms.event))
        return min(left, room + begun)

    @property
    def asked(self) -> int:
        """How many questions were compared with the rows, by all holders of the name together."""
        return self._asked

    @property
    def settled(self) -> bool:
        """Whether no question can be wrong by more than `within` any more: the rows are not looked at again.

        A gap d means a potential of at least 2 d^2 (Pinsker), and the potential that is left is known.
        """
        used_up = self.terms.looks is None and self._updates == self.terms.updates
        return self.terms.eta is None and (self.potential <= 2 * self.terms.within**2 or used_up)

    def fraction(self, where: str | Region) -> Answer:
        """The fraction of all rows that satisfy the condition; those outside the universe satisfy none."""
        if isinstance(where, Region):  # it was read on its way
            return self._ask(where)
        known = self._regions.get(where) if isinstance(where, str) else None
        if known is None:
            known = region(self.universe, where)
            if _is_small(where, known) and len(self._regions) < _REGIONS:
                self._regions[where] = known
        return self._ask(known)

    def product(self, values: Mapping[str, Sequence[float]]) -> Answer:
        """The mean over all rows of a product of numbers in [0,1], given bin by bin for each column named."""
        return self._ask(factors(self.universe, values))

    def rows(self, count: int) -> dict[str, list[object]]:
        """Synthetic rows drawn from the weights; costs nothing. See `holdfast.synthesis.SyntheticTable`."""
        from holdfast.weights.weighted_rows import sample

        return sample(self.weights, count)

    def _ask(self, query: Region) -> Answer:
        with self._lock:
            answer = self._free(query)
            while answer is None:
                self._catch_up()
                answer = self._free(query)
                if answer is None:
                    self._refuse_large(query)
                    answer = self._compare(query)
            return answer

    def _free(self, query: Region) -> Answer | None:
        """An answer that follows from what was told already."""
        within, released = self.within, self._released.get(query.text)
        if released is not None:
            return self._answer(query, released, "the released answer, repeated", within)
        if self.settled:
            self._refuse_large(query)
            return self._answer(
                query, self.weights.fraction(query), "answered by the settled weights", within
            )
        known = self._lazy.get(query.text)
        if known is not None:
            return self._answer(query, known[0], "answered by the weights, repeated", known[1])
        return None

    def _refuse_large(self, query: Region) -> None:
        if isinstance(self.weights, FactoredWeights):
            self.weights.refuse_large(query)

    def _compare(self, query: Region) -> Answer | None:
        """One round of the sparse vector: the weights' answer, or an update; None if another holder's
        question was committed first, which says nothing about this one."""
        if self._asked >= self.terms.questions:
            raise BudgetError(
                f"the weights were opened for {self.terms.questions:,} questions, all of which were asked; "
                "open others",
                requested=1,
                remaining=0,
            )
        # Unless "below" is committed, the run is read again from the ledger: what was not told did not happen.
        run, self._run = self._open_run(), None
        guess = self.weights.fraction(query)
        within, gain = self._promised()
        unit = self._session._terms.rows * GRID
        above = self._beyond(run, self._total(query) - round(guess * unit))
        # One digit: an entry is as long for "above" as for "below".
        told = {"by": self._holder, "above": above, "query": query.text, "factors": query.factors}
        if gain is not None:
            told["gain"] = gain
        key = self._key("question", self._asked)
        turn = self._session.pay(
            "weights", f"weights {self._name!r}: {query.text}", Nothing(), note=told, key=key
        )
        if turn.entry.note != told:
            return None
        if not above:
            self._asked, self._run = self._asked + 1, run
            if len(query.text) <= _SHORT and len(self._lazy) < _REMEMBERED:
                self._lazy[query.text] = guess, within
            return self._answer(query, guess, "answered by the weights; nothing new was paid", within)
        # Counted when it is complete: a draw that fails is left to the next _catch_up.
        if gain is not None:
            self._move(query, _sign(above), gain)
            self._asked += 1
            return None  # and ask again: only silence answers
        steps = self._draw(query, turn)
        self._update(query, steps)
        self._asked += 1
        value = min(1.0, max(0.0, steps / unit))
        rho = self.terms.rho / self.terms.updates
        return self._answer(query, value, "an update: a noisy answer, already paid", within, rho)

    def _promised(self) -> tuple[float, float | None]:
        """Within what silence answers at this moment; and what an alarm is sure of, where that is all that it says."""
        looks = self.terms.looks
        if looks is None:
            return self.within, None
        told = self._session._moment().table.information
        within, gain = (looks.half_width(told), looks.gain(told)) if told < UNCOVERED else (1.0, 0.0)
        if gain <= 0:
            raise BudgetError(
                "so much was told of these rows that an alarm would say nothing; open other weights with a wider "
                "promise",
                requested=1,
                remaining=0,
            )
        return within, gain

    def _beyond(self, run: SparseVector, gap: int) -> int:
        """0 if the guess is near, else an alarm; where sides are told apart, 1 if it is too small, 2 if too large."""
        if self.terms.looks is None:
            return int(run.above(abs(gap)))
        return 1 if run.above(gap) else 2 * run.above(-gap)

    def _draw(self, query: Region, turn: Paid) -> int:
        """The noisy answer of an update, drawn once: what the ledger has stands."""
        noise = gaussian if self.terms.answer == "gaussian" else laplace
        drawn = self._total(query) + noise(self.terms.answer_noise)
        return int(json.loads(turn.record(json.dumps(drawn))))

    def _update(self, query: Region, steps: int) -> None:
        """Tilt the weights towards a released answer. A function of public numbers only."""
        terms, unit = self.terms, self._session._terms.rows * GRID
        p = self.weights.fraction(query)
        gap = steps / unit - p
        sign = 1.0 if gap > 0 else -1.0
        eta = terms.eta
        if eta is None:
            self._move(query, sign, max(terms.least_gap, abs(gap) - (terms.answer_reach + 1) / unit))
        else:
            self._tilt(query, sign * abs(eta))
        self._released[query.text] = min(1.0, max(0.0, steps / unit))

    def _move(self, query: Region, sign: float, moved: float) -> None:
        """Tilt the weights until the query has moved by what it is sure to be off."""
        p = self.weights.fraction(query)
        eta = projection(p, sign * moved, counting=query.is_counting)
        fall = 2 * moved**2 if not query.is_counting else _kl(p, sign * moved)
        self.potential = up(self.potential - fall, self.potential)  # what is left is never understated
        self._tilt(query, sign * abs(eta))

    def _tilt(self, query: Region, eta: float) -> None:
        self.weights.tilt(query, eta)
        self._updates += 1
        self._run = None
        self._lazy.clear()

    def _open(self, **wanted: Any) -> Paid:
        """The opening of this name that stands, or a new one, charged with its first run.

        It takes the next places of the session's promise. If others took them meanwhile it is planned again,
        with ever more room for them, so that a busy table does not keep it waiting for ever.
        """
        session, key, room = self._session, self._key("round", 0), 0
        while (standing := session._desk.find(key)) is None:
            after = session._answered + (room if session.queries is None else 0)
            terms = plan_weights(session, self._points, self.queries, after=after, **wanted)
            try:
                return session.pay(
                    "weights",
                    f"weights {self._name!r} open",
                    terms.event,
                    note={"asked": self._opening, "terms": terms.to_json()},
                    queries=self.queries,
                    key=key,
                    last=after + self.queries,
                    tells=None if terms.looks is None else terms.looks.tells,
                )
            except Stale:
                room = 2 * room + 4
        return standing

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
        key = self._key("round", self._updates)
        tells = None if terms.looks is None else terms.looks.tells
        paid = session.pay("weights", f"weights {self._name!r} run", terms.event, key=key, tells=tells)
        if paid.outcome is None:
            versions: dict[str, Version] = {"textbook": "lecture", "logistic": "logistic"}
            vector = SparseVector(
                terms.threshold,
                sensitivity=GRID,
                epsilon=terms.run_epsilon,
                hits=1,
                version=versions.get(terms.version, "best"),
                threshold_share=terms.threshold_share,
            )
            text = paid.record(json.dumps(vector.to_json()), secret=True)
        else:
            text = paid.outcome
        self._run = SparseVector.from_json(json.loads(text))
        return self._run

    def _opened(self, paid: Paid) -> WeightsTerms:
        """The terms of the opening that stands. InputError if it is not the one that is asked for here."""
        saved = paid.entry.note
        if saved["asked"] != self._opening:
            raise InputError(
                f"expected the terms of the weights {self._name!r}, got other terms; choose another name"
            )
        return WeightsTerms.from_json(saved["terms"])

    def _catch_up(self) -> None:
        """Go through what was told since, in order; finish an update that was begun; draw nothing else."""
        find = self._session._desk.find
        while (turn := find(self._key("question", self._asked))) is not None:
            told = turn.entry.note
            if told["above"]:
                text = told["query"]
                query = (
                    region(self.universe, text)
                    if told["factors"] is None
                    else factors(self.universe, json.loads(text))
                )
                if "gain" in told:
                    self._move(query, _sign(told["above"]), told["gain"])
                else:
                    steps = self._draw(query, turn) if turn.outcome is None else json.loads(turn.outcome)
                    self._update(query, int(steps))
            self._asked += 1

    def _answer(self, query: Region, value: float, words: str, within: float, rho: float = 0.0) -> Answer:
        # The numbers of a product, and the product after each of them but the first, move by half a step.
        session, moved, looks = self._session, (query.factors or 0) / GRID, self.terms.looks
        if looks is None:
            promise = session.promise()
            noise, population, table = within + moved, promise.population + promise.slack, None
        else:
            # Settled weights are near the population by what was told of it, which says nothing of the table.
            table = None if self.settled else looks.table_reach + moved
            noise = within + moved if table is None else min(table, within + moved)
            population = within + moved - noise
        half = noise + population
        return Answer(
            question=f"fraction where {query.text}{'' if self.universe.is_complete else _INSIDE}",
            value=value,
            low=max(0.0, value - half),
            high=min(1.0, value + half),
            confidence=session.confidence,
            noise=noise,
            sampling=0.0,
            population=population,
            target=session._terms.target,
            rho=rho,
            epsilon=None,
            rows_read=0 if self.settled else session._terms.rows,
            mechanism="multiplicative-weights",
            explanation=f"{words} ({self.terms.version} version, {self._updates} of at most "
            f"{self.terms.updates} updates, {self.universe.size:,} cells)",
            table_low=None if table is None else max(0.0, value - table),
            table_high=None if table is None else min(1.0, value + table),
        )

    def _total(self, query: Region) -> int:
        """The exact sum over the rows, in steps. Secret."""
        return self._secret.steps(query)

    def _key(self, kind: str, number: int) -> str:
        return f"weights {self._name} {kind} {number}"


def weights_text(name: str, over: Universe, queries: int, within: float) -> str:
    """Weights in one line."""
    return f"weights {name!r} over {', '.join(over.columns)}: {queries:,} questions within {within:.3g}"


def _refuse_beside_memory(start: object) -> None:
    if start is not None:
        raise InputError("expected memory= without start=, got start=: a mixture is no product of factors")


def _sign(above: int) -> float:
    """On which side of the guess an alarm was raised."""
    return 1.0 if above == 1 else -1.0


def _is_small(where: object, known: Region) -> bool:
    """Whether a condition may be kept; one with a value for each cell is as large as the weights."""
    return (
        isinstance(where, str) and len(where) <= _SHORT and known.boxes is not None and len(known.boxes) <= 8
    )


def projection(p: float, move: float, *, counting: bool) -> float:
    """The step |eta| that moves the mean of a 0/1 query from p to p + move; 4 |move| for other queries.

    Where p + move is no probability, which happens with the failure probability only, the second is taken.
    """
    if counting and 0 < p < 1 and 0 < p + move < 1:
        return abs(math.log((p + move) / (1 - p - move)) - math.log(p / (1 - p)))
    return 4 * abs(move)


def _kl(p: float, move: float) -> float:
    """A lower bound on the fall of the potential: kl(p + move || p), at least 2 move^2."""
    q = p + move
    if not (0 < p < 1 and 0 < q < 1):
        return 2 * move**2
    return max(2 * move**2, q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p)))
