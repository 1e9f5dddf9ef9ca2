"""A session: a share of a table's budget, spent on questions that may depend on earlier answers."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Entry, Ledger, Stale, Totals
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.laplace import add_laplace
from holdfast.privacy.filter import UNITS
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic, workload
from holdfast.session.answer import Answer
from holdfast.session.budget import AMOUNT, Amount, Budget
from holdfast.session.plan import Plan
from holdfast.session.planner import Terms, affordable, finish, plan
from holdfast.session.quantile import read_bins, select_bins
from holdfast.session.questions import Questions
from holdfast.session.readout import read
from holdfast.session.report import Report
from holdfast.session.request import Request

if TYPE_CHECKING:
    from holdfast.data.source import Source

_PLANS_KEPT = 4096


class Session(Questions[Answer]):
    """Ask, and be charged; see `Questions` for what can be asked.

    Guarantee: all answers of the session together satisfy its budget, however the questions were chosen
    (the filter's theorem, see `holdfast.privacy.filter`). The charge is committed before a row is read, and
    is never refunded. The intervals of all answers hold at once with probability `confidence`: the chance of
    a miss is divided equally among `queries` answers, or without `queries` as beta/(j(j+1)) for the j-th.
    The same question at the same accuracy returns the stored answer at no cost. Safe to share by threads.
    """

    def __init__(self, source: Source, ledger: Ledger, budget: Budget, terms: Terms, name: str | None) -> None:
        self.name = name or uuid.uuid4().hex
        self._source, self._ledger, self._budget, self._terms = source, ledger, budget, terms
        self._lock = RLock()
        self._plan_of: Callable[[Statistic, Request, float], Plan] = lru_cache(_PLANS_KEPT)(
            lambda statistic, request, beta: plan(statistic, request, beta, terms)
        )
        ledger.open(budget.account(self.name))
        self.estimate = Estimate(self)

    @property
    def _schema(self) -> Schema:
        return self._terms.schema

    @property
    def confidence(self) -> float:
        """The probability with which all intervals hold."""
        return self._terms.confidence

    @property
    def queries(self) -> int | None:
        """How many answers the intervals were planned for; None means any number."""
        return self._terms.queries

    @property
    def currency(self) -> str:
        """What the budget is counted in: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu squared)."""
        return self._budget.currency

    @property
    def spent(self) -> Amount:
        """What the answers so far have cost."""
        return self._budget.amount(self._ledger.totals(self.name).units)

    @property
    def remaining(self) -> Amount:
        """What is left of the session's share, or of the table's limit if that is less."""
        left = self._budget.filter.limit_units - self._ledger.totals(self.name).units
        cap = self._ledger.limit()
        if cap is not None and cap.currency == self._budget.currency:
            left = min(left, cap.limit - self._ledger.totals().units)
        return self._budget.amount(max(0, left))

    @property
    def history(self) -> list[Answer]:
        """Every answer that was given, oldest first."""
        entries = self._ledger.entries(self.name)
        return [Answer.from_json(entry.answer) for entry in entries if entry.answer is not None]

    def report(self) -> Report:
        """Budget and history, ready to print."""
        return Report(self.name, str(self._budget), self.spent, self.remaining, self._terms, self.history)

    def _put(self, statistics: list[Statistic], request: Request) -> list[Answer]:
        if len(statistics) > 1:
            self._refuse_unless_all_fit(statistics, request)
        return [self._answer(statistic, request) for statistic in statistics]

    def _answer(self, statistic: Statistic, request: Request) -> Answer:
        key = question_key(statistic, request)
        while True:
            entry = self._ledger.find(self.name, key)
            if entry is not None and entry.answer is not None:
                return Answer.from_json(entry.answer, repeated=True)
            try:
                planned, entry = self._reserve(statistic, request, key) if entry is None else self._resume(statistic, entry)
            except Stale:
                continue
            answer = release(planned, self._source, self._terms)
            return Answer.from_json(self._ledger.record(entry.id, answer.to_json()))

    def _reserve(self, statistic: Statistic, request: Request, key: str) -> tuple[Plan, Entry]:
        """Plan and charge, in that order and before a row is read."""
        with self._lock:
            totals = self._ledger.totals(self.name)
            planned = self._planned(statistic, request, totals)
            self._refuse_overspending(planned, totals)
            return planned, self._ledger.reserve(
                self.name, key, planned.text, planned.event_text, planned.charge, totals.answers
            )

    def _resume(self, statistic: Statistic, entry: Entry) -> tuple[Plan, Entry]:
        """A charge whose answer was lost in a crash is computed once more, with the noise that was paid for."""
        kept = json.loads(entry.plan)
        planned = finish(statistic, kept["mechanism"], Fraction(kept["noise"]), kept["beta"], self._terms)
        if planned.event_text != entry.event:
            raise LedgerError("this table was opened on other terms than when the answer was paid for")
        return planned, entry

    def _planned(self, statistic: Statistic, request: Request, totals: Totals) -> Plan:
        queries, beta = self._terms.queries, 1 - self._terms.confidence
        if queries is not None and totals.answers >= queries:
            raise BudgetError(
                f"the session was opened for {queries} queries and has answered them; its intervals hold for no "
                "more. Open another session.",
                requested=1,
                remaining=0,
            )
        place = totals.answers + 1
        return self._plan_of(statistic, request, beta / queries if queries else beta / (place * (place + 1)))

    def _refuse_overspending(self, planned: Plan, totals: Totals) -> None:
        """The ledger would refuse as well; here the message can say what is affordable."""
        remaining = self._budget.filter.limit_units - totals.units
        if planned.charge.session <= remaining:
            return
        within = affordable(planned.statistic, planned.beta, self._terms, remaining)
        advice = "nothing more can be asked" if within is None else f"within={within:.4g} is still affordable"
        raise BudgetError(
            f"this answer costs {AMOUNT[self.currency]} {planned.cost:.4g} and {remaining / UNITS:.4g} is left; {advice}",
            requested=planned.cost,
            remaining=remaining / UNITS,
            within=within,
        )

    def _refuse_unless_all_fit(self, statistics: list[Statistic], request: Request) -> None:
        """Several questions at once are charged all or none (unless others spend in between)."""
        totals = self._ledger.totals(self.name)
        for statistic in statistics:
            if self._ledger.find(self.name, question_key(statistic, request)) is None:
                planned = self._planned(statistic, request, totals)
                self._refuse_overspending(planned, totals)
                totals = Totals(totals.answers + 1, totals.units + planned.charge.session)


class Estimate(Questions[Plan]):
    """The same questions, planned only: no data is read and nothing is charged."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def _schema(self) -> Schema:
        return self._session._schema

    def _put(self, statistics: list[Statistic], request: Request) -> list[Plan]:
        totals = self._session._ledger.totals(self._session.name)
        return [self._session._planned(statistic, request, totals) for statistic in statistics]


def release(planned: Plan, source: Source, terms: Terms) -> Answer:
    """Measure, add the noise that the plan names, and read the result.

    Requires: the plan's charge has been committed.
    """
    statistic = planned.statistic
    totals = workload(statistic, terms.schema, terms.rows)
    secret = np.concatenate([source.totals(measurement) for measurement in totals.measurements])
    if planned.mechanism == "exponential":
        value, low, high = _select(planned, secret)
        width: Any = planned.noise
    else:
        add = add_gaussian if planned.mechanism == "gaussian" else add_laplace
        noisy = np.asarray(add(secret, planned.noise_parameter))
        reading = read(totals, noisy, planned.half_width, terms.rows)
        value, low, high = reading.value, reading.low, reading.high
        width = (high - low) / 2 if statistic.kind == "mean" else planned.noise
    vector = statistic.by is not None
    if not vector:
        value, low, high = value.item(), low.item(), high.item()
        width = float(np.max(width))
    return Answer(
        question=str(statistic),
        value=value,
        low=low,
        high=high,
        confidence=planned.confidence,
        noise=width,
        sampling=planned.sampling,
        population=planned.population,
        target=planned.target,
        rho=planned.rho,
        epsilon=planned.epsilon,
        rows_read=planned.rows_read,
        mechanism=planned.mechanism,
        explanation=planned.explain(),
        labels=statistic.by.labels if statistic.by is not None else None,
    )


def _select(planned: Plan, secret: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """One quantile for each group."""
    statistic = planned.statistic
    assert statistic.bins is not None and statistic.rank is not None
    chosen = [
        read_bins(
            statistic.bins, select_bins(counts, statistic.rank, planned.noise_parameter, planned.half_width)
        )
        for counts in secret.reshape(-1, statistic.bins.size)
    ]
    dates = not isinstance(statistic.bins.starts[0], int | float)
    value, low, high = (np.array(column, dtype=object if dates else float) for column in zip(*chosen, strict=True))
    return value, low, high


def question_key(statistic: Statistic, request: Request) -> str:
    """Equal for equal questions at equal accuracy, and for no others."""
    return hashlib.blake2b(f"{statistic.identity} {request}".encode(), digest_size=16).hexdigest()
