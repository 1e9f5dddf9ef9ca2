"""A session: a share of a table's budget, spent on questions that may depend on earlier answers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.desk import Desk, Next, Paid, Steps, run
from holdfast.errors import InputError, LedgerError, UndiscoveredError
from holdfast.ledger import QUESTION, UNCOVERED, Charge, Ledger, Moment, Precondition, Stale, Survey
from holdfast.ledger.failpoint import reached
from holdfast.mechanisms.votes import FLIP, vote
from holdfast.offered import offered
from holdfast.planning.affordable import refuse_overspending
from holdfast.planning.budget import Amount, Budget, from_cap
from holdfast.planning.keywords import Choice, Descent, ManyFrom, Synthesis, Threshold
from holdfast.planning.meter import Meter, meter
from holdfast.planning.plan import Plan, recipe_from_text
from holdfast.planning.plan_line import plan_line
from holdfast.planning.planner import finish, holds, plan
from holdfast.planning.promise import (
    Promise,
    answered,
    counts_its_own,
    next_promises,
    refuse_beyond_the_promise,
)
from holdfast.planning.question import Interval, Read, Sample
from holdfast.planning.recipe_information import told_by_answer, units_told
from holdfast.planning.request import Request
from holdfast.planning.terms import Terms
from holdfast.privacy.event import Event, Group, Votes, to_json
from holdfast.privacy.filter import UNITS
from holdfast.query.calling import fitting
from holdfast.query.evaluate import compile_predicate
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import columns as predicate_columns
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic, workload
from holdfast.session.above_threshold import AboveThreshold, check_terms
from holdfast.session.answer import Answer
from holdfast.session.answer_table import arranged
from holdfast.session.certain import certain_answer, certain_plan, is_certain
from holdfast.session.closing import Closing
from holdfast.session.estimate import Estimate, Known
from holdfast.session.history import Release, history_of
from holdfast.session.kept_plans import KeptPlans
from holdfast.session.keys import Keys, discovered, known_keys, shared_keys, text_column, with_keys
from holdfast.session.looking_up import LookingUp, Widen, told_apart
from holdfast.session.price import priced, tells_of
from holdfast.session.private_choice import Candidate, Selection, select
from holdfast.session.questions import Questions
from holdfast.session.release import release
from holdfast.session.report import Report
from holdfast.session.standing_answers import question_key, standing_entry
from holdfast.session.uncovered import refuse_to_end
from holdfast.validity.told import votes_told

if TYPE_CHECKING:
    from holdfast.data.source import Source
    from holdfast.optimize import Loss, Minimum
    from holdfast.weights.answerer import MultiplicativeWeights
    from holdfast.weights.synthetic import SyntheticTable

Agree = Callable[[Charge, Moment], int | None]
"""Raises if a question shall not be charged, before it is; or says how many answers the session may have at most."""
_VOTES_KEPT = 4096
_VECTORS_KEPT = 16
_LETTERS = 32
"""So many letters of a question take about as long for each row as one comparison."""
_SAMPLED = json.dumps({"kind": "sample", "question": "sample"})
_SHORT = 500
"""Longer conditions are not kept: who writes them is anybody."""


class Session(Questions[Answer], Closing, LookingUp):
    """Ask, and be charged; see `Questions` for what can be asked.

    Guarantee: all answers of the session together satisfy its budget, however the questions were chosen
    (the filter's theorem, see `holdfast.privacy.filter`). The charge is committed before a row is read, and
    is never refunded. The intervals of all answers hold at once with probability `confidence`: the chance of
    a miss is divided equally among `queries` answers, or without `queries` over ever longer epochs.
    For the population the same holds by the transfer theorems (`holdfast.planning.promise`).
    The same question, at the same accuracy or a lesser one, returns the stored answer at no cost. Safe to share by
    threads.
    """

    def __init__(
        self, source: Source, ledger: Ledger, budget: Budget, terms: Terms, name: str | None, widen: Widen
    ) -> None:
        self.name = name or uuid.uuid4().hex
        self._desk = Desk(source, ledger, self.name)
        self._ledger, self._budget, self._terms, self._widen = ledger, budget, terms, widen
        self._lock = RLock()
        self._plans = KeptPlans(self._lock)
        self._vectors: dict[str, AboveThreshold] = {}
        self._anytime = Precondition(currency=terms.table.currency)
        self._vote = lru_cache(_VOTES_KEPT)(self._priced_vote)
        account = budget.account(self.name, terms.promised)
        ledger.open(
            replace(account, information=terms.information, table_information=terms.table_information)
        )
        self._schema = with_keys(terms.schema, known_keys(self))
        self.estimate, self.known = Estimate(self), Known(self)

    @property
    def schema(self) -> Schema:
        """The columns that may be asked about."""
        return self._schema

    @property
    def confidence(self) -> float:
        """The probability with which all intervals hold."""
        return self._terms.confidence

    @property
    def queries(self) -> int | None:
        """How many answers the intervals were planned for; None means any number."""
        return self._terms.queries

    @property
    def plan(self) -> str:
        """What each answer will be that says nothing of how exact it is to be, in one line."""
        if self.closed:
            return "Closed: nothing new is answered."
        return plan_line(self._terms, self._budget, self._moment())

    @property
    def meter(self) -> Meter | None:
        """How many answers are left, and how near the population each will be; None where no theorem counts them."""
        return None if self.closed else meter(self._terms, self._budget, self._moment())

    @property
    def currency(self) -> str:
        """What the budget is counted in: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu squared)."""
        return self._budget.currency

    @property
    def limit(self) -> Amount:
        """The session's whole share."""
        return self._budget.amount(self._budget.filter.limit_units)

    @property
    def spent(self) -> Amount:
        """What the answers so far have cost."""
        return self._budget.amount(self._ledger.totals(self.name).units)

    @property
    def remaining(self) -> Amount:
        """What is left of the session's share, or of the table's limit if that is less; nothing once it is closed."""
        return self._budget.amount(0 if self.closed else self._left(self._moment()))

    def left(self, moment: Moment) -> float:
        """What was left at a moment of its ledger."""
        return self._left(moment) / UNITS

    @property
    def history(self) -> list[Answer | Release]:
        """Everything that was released, oldest first: answers, and what else was charged."""
        return list(history_of(self._ledger.entries(self.name), self.currency))

    @fitting
    def sample(self, where: str, *, key: str | None = None) -> bool:
        """The sampling counting query: one row is read, and its bit is told with probability 3/4.

        Guarantee: a vote; ln(1 + 2/n)-DP. Reference: Fish, Reyzin, Rubinstein 2020, Algorithm 3.
        Cost: `events.Votes(n, 1, 1/4)`. It carries no interval, so it uses up none of the session's queries;
        asking again draws a fresh row and is charged again, unless it repeats a `key`.
        """
        test = compile_predicate(Sample(where=where).read(self.schema, key), self.schema)
        columns, text, charge = (self._vote if len(where) <= _SHORT else self._priced_vote)(where)
        name = None if key is None else json.dumps(["sample", key, where])
        paid = self._resumable(name, _SAMPLED, text, charge, self._anytime)
        if paid.outcome is not None:
            return bool(json.loads(paid.outcome))
        told = vote(bool(test(paid.one(columns))[0]))
        return told if key is None else bool(json.loads(paid.record(json.dumps(told))))

    @fitting
    def keys(self, column: str, *, rho: float | None = None, delta: float | None = None) -> Keys:
        """The keys of a text column, discovered: charged once, then public and free, in all sessions on the ledger.

        `by=` and `histogram` on such a column discover its keys first; see `holdfast.session.keys.discovered`.
        """
        found = discovered(self, column, rho, delta)
        with self._lock:
            self._schema = with_keys(self._schema, {found.column: found.labels})
        return found

    def _read(self, asked: Interval) -> Read:
        return self._read_by(asked, discover=True)

    def _read_by(self, asked: Interval, *, discover: bool) -> Read:
        """A question by keys that are public now, also if another session discovered them; or by fresh ones."""
        try:
            return told_apart(asked.read(self.schema), self._terms)
        except UndiscoveredError as error:
            column, _ = text_column(self.schema, error.column)
            if error.tried or not (discover or shared_keys(self, column) is not None):
                raise
            self.keys(column)
            return told_apart(asked.read(self.schema), self._terms)

    def opened(self, kind: str, name: str) -> bool:
        """Whether a sparse vector ("sparse vector") or weights ("weights") of this name were paid for."""
        key = json.dumps([kind, name, "opened"]) if kind == "sparse vector" else f"{kind} {name} round 0"
        return self._desk.find(key) is not None

    def __repr__(self) -> str:
        return f"<holdfast session {self.name!r}: {self.spent:.3g} of {self._budget} spent. {self.plan}>"

    def report(self) -> Report:
        """Budget and history, ready to print."""
        budget, left = str(self._budget), self.meter
        return Report(self.name, budget, self.spent, self.remaining, self._terms, self.history, left)

    def _priced_vote(self, where: str) -> tuple[tuple[str, ...], str, Charge]:
        """The columns that one vote reads, its event, and what it costs."""
        terms = self._terms
        event: Event = Votes(terms.rows, 1, FLIP)
        if terms.rows_per_unit > 1:
            event = Group(event, terms.rows_per_unit)
        read = predicate_columns(parse_predicate(where, self.schema))
        columns = self.schema.ordered(read) or tuple(self.schema)[:1]
        told = units_told(votes_told(terms.rows, 1, float(FLIP)), terms.rows)
        charge = Charge(terms.session.cost(event), terms.table.cost(event), 0, tells_of(terms, told))
        return columns, json.dumps(to_json(event)), charge

    @fitting
    def select(
        self,
        candidates: Sequence[Candidate],
        scores: Sequence[Any] | None = None,
        *,
        sensitivity: float | None = None,
        **how: Unpack[Choice],
    ) -> Selection[Candidate]:
        """A candidate with a high score, chosen privately; see `holdfast.session.private_choice.select`."""
        return select(self, candidates, scores, sensitivity=sensitivity, **how)

    @fitting
    def sparse_vector(
        self, threshold: float, hits: int, *, name: str = "watch", **how: Unpack[Threshold]
    ) -> AboveThreshold:
        """Open (or come back to) a sparse vector: `.above(where)` tells whether a fraction is above.

        It is charged once, now: epsilon (pure, or with delta), or rho. `hits` answers may be "above".
        The last few are kept, so that coming back reads only what was answered since.
        """
        check_terms(name, threshold, how)
        asked = repr((name, threshold, hits, sorted(how.items())))
        with self._lock:
            vector = self._vectors.pop(asked, None)
            if vector is not None:
                self._vectors[asked] = vector  # the last one used is the last to go
        if vector is not None:
            vector.catch_up()
            return vector
        vector = AboveThreshold(self, name, threshold, hits, **how)
        with self._lock:
            while len(self._vectors) >= _VECTORS_KEPT:
                del self._vectors[next(iter(self._vectors))]
            return self._vectors.setdefault(asked, vector)

    @fitting
    def multiplicative_weights(
        self, columns: Sequence[str], *, queries: int, device: str = "numpy", **how: Unpack[ManyFrom]
    ) -> MultiplicativeWeights:
        """An answerer for very many questions over a few columns: `.fraction(where)`; lazy rounds are free.

        See `holdfast.weights.answerer.MultiplicativeWeights`.
        """
        opened: MultiplicativeWeights = offered("multiplicative_weights")(
            self, columns, queries=queries, device=device, **how
        )
        return opened

    @fitting
    def minimize(self, loss: Loss, **how: Unpack[Descent]) -> Minimum:
        """The least average loss over a bounded set, by private gradient descent.

        See `holdfast.optimize.minimize`; losses are in `holdfast.learn`.
        """
        found: Minimum = offered("minimize")(self, loss, **how)
        return found

    @fitting
    def synthesize(
        self,
        columns: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        **how: Unpack[Synthesis],
    ) -> SyntheticTable:
        """A synthetic table that answers the queries (all pairs) of the columns (all but texts) about as the rows do.

        See `holdfast.synthesis.synthesize`: that room stands above this one, which the front door offers.
        """
        made: SyntheticTable = offered("synthesize")(self, columns, queries, **how)
        return made

    def pay(
        self,
        kind: str,
        words: str,
        event: Event,
        *,
        note: Any = None,
        queries: int = 0,
        key: str | None = None,
        fresh: bool = False,
        last: int | None = None,
        tells: int | None = None,
    ) -> Paid:
        """Commit the charge of a release that is made elsewhere in the house (selection, sparse vector, weights,
        learners): what it gives reaches the rows, and records the outcome. BudgetError before it would overspend.

        `kind` and `note` (JSON) are for programs, `words` for people.
        A `key` makes it resumable: a second call with the same key goes on with what was paid. `queries` is how many
        intervals the release promises; more than the session's are refused. Rows owned in groups are charged as
        groups. A mechanism with a delta of its own is refused: sessions count none.
        `fresh` says that it was planned for rows of which nothing was ever told, `last` for places of the promise up
        to that one: Stale if somebody was charged before, or others took these places or the key; plan again.
        `tells` is how much it tells of the rows (`holdfast.planning.recipe_information`); None is what no theorem
        bounds, which ends the leave-out theorem for all that is asked later. A charge of nothing then tells nothing:
        what it may tell was counted before.
        """
        assert key is None or not fresh, "what stands under a key may be older than what was told since"
        plan = json.dumps({"kind": kind, "question": words} | ({} if note is None else {"note": note}))
        text, cost = priced(self._terms, event, queries, tells)
        most = self._terms.queries
        if cost.information >= UNCOVERED and (key is None or self._desk.find(key) is None):
            refuse_to_end(cost, self._moment(), self._ledger, self.name, self._terms)
        if last is not None:
            return self._desk.paid(key, plan, text, cost, self._until(last if most is None else most))
        holds = replace(self._until(most if queries else None), fresh=fresh)
        return self._resumable(key, plan, text, cost, holds)

    def _resumable(self, key: str | None, plan: str, event: str, charge: Charge, holds: Precondition) -> Paid:
        """What was paid under this key, or a new charge."""
        while True:
            standing = None if key is None else self._desk.find(key)
            if standing is not None:
                if standing.entry.event != event:
                    raise InputError(
                        "expected the terms that it was opened on, got other terms; choose another name"
                    )
                return standing
            try:
                return self._desk.paid(key, plan, event, charge, holds)
            except Stale:
                # Too many intervals are refused here; otherwise the key was reserved meanwhile, and is found.
                refuse_beyond_the_promise(charge.queries, self._answered, self._terms)
                if holds.fresh:
                    raise

    @property
    def _answered(self) -> int:
        """How many places of the promise are taken: by the session's answers, or by all on the table."""
        return answered(self._moment(), self._terms)

    def _until(self, last: int | None) -> Precondition:
        """While no place of the promise after `last` is needed."""
        terms = self._terms
        return Precondition(
            session_answers=last if counts_its_own(terms) else None,
            table_answers=None if counts_its_own(terms) else last,
            currency=terms.table.currency,
        )

    def promise(self) -> Promise:
        """What one more answer may promise at this moment: see `holdfast.planning.promise`."""
        return next(next_promises(self._moment(), self._terms))

    def put(self, asked: Read) -> list[Answer]:
        if len(asked.statistics) > 1:
            self._refuse_unless_all_fit(asked.statistics, asked.request)
        steps = (self._steps(statistic, asked.request) for statistic in asked.statistics)
        return arranged([run(each, self._ledger) for each in steps], asked.arrangement)

    def _steps(self, statistic: Statistic, request: Request, agree: Agree | None = None) -> Steps[Answer]:
        """Plan, charge, read and release, record; or what stands."""
        if is_certain(statistic):
            return certain_answer(statistic, self._terms)
        key = question_key(statistic, request)
        while True:
            surveyed = yield Survey(self.name, key[:QUESTION])
            entry = standing_entry(self, statistic, request, key) if surveyed.asked else None
            if entry is not None and entry.answer is not None:
                answer = Answer.from_json(entry.answer, repeated=True)
                wished = request.within if answer.within is not None else None  # a quantile's is in rank
                return answer if wished is None else replace(answer, within=wished)
            try:
                if entry is None:
                    try:
                        planned, holding = self._agreed(statistic, request, surveyed.moment, agree)
                    except Exception:
                        if surveyed.expected:
                            continue
                        raise
                    paid = yield from self._desk.pay(
                        key, planned.text, planned.event_text, planned.charge, holding
                    )
                else:
                    paid, planned = self._resume(statistic, key)
            except Stale:
                continue
            reached("after reserve")
            yield Next(planned.rows * (1 + len(planned.question) // _LETTERS))
            answer = release(planned, paid, self._terms)
            text = answer.to_json()
            reached("after draw")
            told = told_by_answer(planned, answer, self.schema)
            standing = yield from paid.recording(text, told=told)
            reached("after record")
            return answer if standing == text else Answer.from_json(standing)

    def _agreed(
        self, statistic: Statistic, request: Request, moment: Moment, agree: Agree | None
    ) -> tuple[Plan, Precondition]:
        """The plan of a question, and for how long it holds; its charge has to be committed before a row is read."""
        with self._lock:
            planned, holding = self._planned(statistic, request, moment)
            refuse_overspending(planned, moment, self._terms)
        refuse_to_end(planned.charge, moment, self._ledger, self.name, self._terms)
        most = None if agree is None else agree(planned.charge, moment)
        if most is not None:
            holding = replace(holding, session_answers=min(most, holding.session_answers or most))
        return planned, holding

    def _resume(self, statistic: Statistic, key: str) -> tuple[Paid, Plan]:
        """A charge whose answer was lost in a crash is computed once more, with the noise that was paid for."""
        paid = self._desk.find(key)
        if paid is None or paid.outcome is not None:
            raise Stale("it was answered meanwhile")
        totals = workload(statistic, self._terms.schema, self._terms.rows)
        recipe, promise, within = recipe_from_text(paid.entry.plan, self._terms.rows)
        planned = finish(totals, recipe, promise, self._terms, within)
        if planned.event_text != paid.entry.event:
            raise LedgerError(
                "this table was opened on other terms than when the answer was paid for; open it as then"
            )
        return paid, planned

    def _left(self, moment: Moment) -> int:
        """The units that are left of the session's share, or of the table's limit if that is less."""
        left, cap = self._budget.filter.limit_units - moment.session.units, moment.cap
        if cap is not None:
            left = min(left, from_cap(cap.limit - moment.table.units, cap.currency, self._budget.currency))
        return max(0, left)

    def _moment(self) -> Moment:
        return self._ledger.moment(self.name)

    def _planned(self, statistic: Statistic, request: Request, moment: Moment) -> tuple[Plan, Precondition]:
        """The plan for this moment, and for how long it would be the same; kept until then.

        It does not depend on which rows are chosen, so one plan serves all conditions.
        """
        if is_certain(statistic):
            return certain_plan(statistic, self._terms), self._anytime
        shape = workload(statistic, self._terms.schema, self._terms.rows).shape, request
        known = self._plans.find(shape, moment)
        if known is not None:
            return known[1].about(statistic), known[0]
        planned = plan(statistic, request, moment, self._terms)
        holding = holds(planned, moment, self._terms)
        self._refuse_beyond_the_promise(planned, moment)
        self._plans.keep(shape, planned, holding, moment.table.information)
        return planned, holding

    def _refuse_beyond_the_promise(self, planned: Plan, moment: Moment) -> None:
        """The intervals were promised for a number of answers."""
        refuse_beyond_the_promise(planned.charge.queries, answered(moment, self._terms), self._terms)

    def _refuse_unless_all_fit(self, statistics: list[Statistic], request: Request) -> None:
        """Several questions at once are charged all or none (unless others spend in between)."""
        moment = self._moment()
        for statistic in statistics:
            if standing_entry(self, statistic, request, question_key(statistic, request)) is None:
                planned, _ = self._planned(statistic, request, moment)
                refuse_overspending(planned, moment, self._terms)
                moment = moment.after(planned.charge)


def read_free(session: Session, asked: Interval) -> Read:
    """A question by what is public now; nothing is charged."""
    return session._read_by(asked, discover=False)


def in_steps(session: Session, asked: Read, agree: Agree) -> list[Steps[Answer]]:
    """What `put` gives, each answer in steps (charge, rows, record) and charged for itself."""
    return [session._steps(statistic, asked.request, agree) for statistic in asked.statistics]
