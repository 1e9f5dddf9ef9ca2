"""A session on a gateway's table, with the methods and the results of one in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from holdfast.client.above_threshold import RemoteAboveThreshold
from holdfast.client.json_values import amount_of, answer_of, answers_of, key_of
from holdfast.client.questions import RemoteQuestions
from holdfast.client.remote_plan import RemotePlan, plan_of, price_of
from holdfast.client.weights import RemoteWeights
from holdfast.client.wire import Wire
from holdfast.errors import InputError, MechanismError, UndiscoveredError
from holdfast.ledger import Account
from holdfast.planning.budget import Amount, budget, budget_of
from holdfast.planning.keywords import Choice, Many, Synthesis, Threshold
from holdfast.planning.meter import Meter
from holdfast.planning.question import (
    DiscoverKeys,
    Interval,
    OpenSparseVector,
    OpenWeights,
    Question,
    Read,
    Sample,
    Select,
)
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS
from holdfast.query.calling import fitting
from holdfast.query.schema import Schema
from holdfast.query.universe import universe
from holdfast.session import Answer
from holdfast.session.above_threshold import check_terms
from holdfast.session.answer_table import AnswerTable
from holdfast.session.history import Release
from holdfast.session.keys import Keys, text_column, with_keys
from holdfast.session.price import Price
from holdfast.session.private_choice import Candidate, Selection, choice_of, conditions_of
from holdfast.session.report import Report

if TYPE_CHECKING:
    from holdfast.client.table import RemoteTable


class RemoteSession(RemoteQuestions[Answer]):
    """Ask, and be charged; see `holdfast.Session`, whose guarantees the gateway gives.

    Every charged call may be repeated by the network and counts once (`holdfast.client.wire`). With `confirm`
    questions that cost much of what is left are asked without a further word. Safe to share by threads.
    """

    def __init__(self, wire: Wire, table: RemoteTable, *, confirm: bool = False) -> None:
        self._wire, self._table, self._confirm = wire, table, confirm
        self._path, self._schema = f"/v1/datasets/{table.id}", table.schema
        account = self._account()
        if "limit" not in account:
            raise InputError(
                f"expected a budget for {table.id!r}, got none; you may see it, and an owner must admit you to ask it"
            )
        self._currency: str = account["currency"]
        self.name: str = wire.get("/v1/me")["id"]
        self.estimate = RemoteEstimate(self)

    @property
    def schema(self) -> Schema:
        """The columns that may be asked about."""
        return self._schema

    @property
    def confidence(self) -> float:
        """The probability with which all intervals hold."""
        return self._table.confidence

    @property
    def queries(self) -> int | None:
        """How many answers the intervals were planned for; None means any number."""
        promised: int | None = self._meter()["queries"]
        return promised

    @property
    def plan(self) -> str:
        """What each answer will be that says nothing of how exact it is to be, in one line."""
        return str(self._meter()["plan"])

    @property
    def meter(self) -> Meter | None:
        """How many answers are left, and how near the population each will be; None where no theorem counts them."""
        left = self._meter()["meter"]
        return None if left is None else Meter(left["answers"], left["width"], left["budget"])

    def close(self) -> None:
        """Answer nothing new, ever again; see `holdfast.Session.close`. An owner can only admit another person then."""
        self._wire.delete(f"{self._path}/analysts/{self.name}")

    @property
    def closed(self) -> bool:
        """Whether it was closed, by you or by an owner."""
        return bool(self._meter()["closed"])

    @property
    def currency(self) -> str:
        """What the budget is counted in: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu squared)."""
        return self._currency

    @property
    def limit(self) -> Amount:
        """The session's whole share."""
        return amount_of(self._account()["limit"])

    @property
    def spent(self) -> Amount:
        """What the answers so far have cost."""
        return amount_of(self._account()["spent"])

    @property
    def remaining(self) -> Amount:
        """What is left of the session's share, or of the table's limit if that is less."""
        return amount_of(self._account()["remaining"])

    @property
    def history(self) -> list[Answer | Release]:
        """Everything that was released, oldest first: answers, and what else was charged."""
        told = self._wire.get(f"{self._path}/answers")
        return [Release.from_parts(parts) if "released" in parts else answer_of(parts) for parts in told]

    def report(self) -> Report:
        """Budget and history, ready to print."""
        account, table = self._account(), self._table
        limit, spent, left = (amount_of(account[name]) for name in ("limit", "spent", "remaining"))
        own = budget_of(Account(self.name, account["currency"], round(limit * UNITS)))
        own = replace(own, delta=None if own.currency == "pure" else limit.delta)
        terms = Terms(
            table.schema, table.rows, table.rows_per_unit, own.filter, budget(**table.budget).filter,
            self.queries, table.confidence, table.target, part=table.part,
        )  # fmt: skip
        return Report(self.name, str(own), spent, left, terms, self.history, self.meter)

    @fitting
    def sample(self, where: str, *, key: str | None = None) -> bool:
        """The sampling counting query: one row is read, and its bit is told with probability 3/4.

        Asking again draws a fresh row and is charged again, unless it repeats a `key`.
        """
        asked = Sample(where=where)
        asked.read(self.schema, key)
        return bool(self._ask(asked, None if key is None else key_of("sample", key, where))["told"])

    @fitting
    def keys(self, column: str, *, rho: float | None = None, delta: float | None = None) -> Keys:
        """The keys of a text column, discovered: charged once, then public and free for everybody on the table.

        `by=` and `histogram` on such a column discover its keys first, as in process.
        """
        column, _ = text_column(self.schema, column)
        told = self._ask(DiscoverKeys(column=column, rho=rho, delta=delta))
        names = ("threshold", "rho", "delta", "mechanism")
        found = Keys(column, tuple(told["labels"]), **{name: told[name] for name in names})
        self._schema = with_keys(self._schema, {column: found.labels})
        return found

    def _read(self, asked: Interval) -> Read:
        try:
            return asked.read(self.schema)
        except UndiscoveredError as error:
            if error.tried:
                raise
            self.keys(error.column)
            return asked.read(self.schema)

    @fitting
    def select(
        self,
        candidates: Sequence[Candidate],
        scores: Sequence[Any] | None = None,
        *,
        sensitivity: None = None,
        **how: Unpack[Choice],
    ) -> Selection[Candidate]:
        """A candidate with a high score, chosen privately: `scores` are conditions, or the candidates are."""
        if sensitivity is not None:
            raise MechanismError(
                "numbers as scores are computed from the rows, which are at the gateway; give conditions"
            )
        told = self._ask(self._choice(candidates, scores, how))
        names = ("index", "candidates", "loss", "confidence", "epsilon", "mechanism")
        return Selection(candidates[told["index"]], **{name: told[name] for name in names})

    @fitting
    def sparse_vector(
        self, threshold: float, hits: int, *, name: str = "watch", **how: Unpack[Threshold]
    ) -> RemoteAboveThreshold:
        """Open (or come back to) a sparse vector: `.above(where)` tells whether a fraction is above.

        It is charged once, now: epsilon (pure, or with delta), or rho. `hits` answers may be "above".
        """
        return RemoteAboveThreshold(self, name, threshold, hits, **how)

    @fitting
    def multiplicative_weights(
        self, columns: Sequence[str], *, queries: int, **how: Unpack[Many]
    ) -> RemoteWeights:
        """An answerer for very many questions over a few columns: `.fraction(where)`; lazy rounds are free."""
        return RemoteWeights(self, columns, queries=queries, **how)

    @fitting
    def synthesize(
        self,
        columns: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        **how: Unpack[Synthesis],
    ) -> NoReturn:
        """Refused: a gateway offers `multiplicative_weights` for very many questions."""
        raise MechanismError(
            "synthetic tables are not made over a gateway; use multiplicative_weights for very many questions"
        )

    def __repr__(self) -> str:
        return f"<holdfast session on {self._table.id!r} at {self._wire.place.host}>"

    def put(self, asked: Read) -> list[Answer]:
        answers = answers_of(self._ask(asked.question))
        if (how := asked.arrangement) is None:
            return answers
        return AnswerTable(answers, how.names, how.shown)

    def _ask(self, question: Question | None, key: str | None = None) -> dict[str, Any]:
        """Put a charged question; the reply's parts."""
        assert question is not None, "a function of one's own was refused before"
        agreed = replace(question, confirm=self._confirm)
        told: dict[str, Any] = self._wire.charge(f"{self._path}/ask", agreed.to_json(), key)
        return told

    def _planned(self, question: Question | None) -> list[dict[str, Any]]:
        """Have a question planned; the plans' parts."""
        assert question is not None, "a function of one's own was refused before"
        plans: list[dict[str, Any]] = self._wire.post(f"{self._path}/estimate", question.to_json())["plans"]
        return plans

    def _account(self) -> dict[str, Any]:
        account: dict[str, Any] = self._wire.get(f"{self._path}/budget")
        return account

    def _meter(self) -> dict[str, Any]:
        meter: dict[str, Any] = self._wire.get(f"{self._path}/meter")
        return meter

    def _choice(self, candidates: Sequence[Any], scores: Sequence[Any] | None, how: Choice) -> Select:
        """A choice as it travels: the conditions only, since the candidates may be anything."""
        choice_of(self.currency, candidates, **how)
        conditions_of(self.schema, candidates, scores)
        return Select(candidates=list(candidates if scores is None else scores), **how)


class RemoteEstimate(RemoteQuestions[RemotePlan]):
    """The same questions, planned only: no data is read and nothing is charged."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    @property
    def schema(self) -> Schema:
        """The columns that may be asked about."""
        return self._session.schema

    def put(self, asked: Read) -> list[RemotePlan]:
        return [plan_of(parts) for parts in self._session._planned(asked.question)]

    @fitting
    def keys(self, column: str, *, rho: float | None = None, delta: float | None = None) -> Price:
        """What the discovery of `RemoteSession.keys` would cost."""
        text_column(self.schema, column)
        return self._price(DiscoverKeys(column=column, rho=rho, delta=delta))

    @fitting
    def sample(self, where: str) -> Price:
        """What `RemoteSession.sample` would cost."""
        asked = Sample(where=where)
        asked.read(self.schema)
        return self._price(asked)

    @fitting
    def select(
        self, candidates: Sequence[str], scores: Sequence[Any] | None = None, **how: Unpack[Choice]
    ) -> Price:
        """What `RemoteSession.select` among conditions would cost."""
        return self._price(self._session._choice(candidates, scores, how))

    @fitting
    def sparse_vector(self, threshold: float, hits: int, **how: Unpack[Threshold]) -> Price:
        """What opening `RemoteSession.sparse_vector` would cost."""
        check_terms("watch", threshold, how)
        return self._price(OpenSparseVector(threshold=threshold, hits=hits, **how))

    @fitting
    def multiplicative_weights(self, columns: Sequence[str], *, queries: int, **how: Unpack[Many]) -> Price:
        """What all updates of `RemoteSession.multiplicative_weights` may cost."""
        universe(self.schema, columns, how.get("edges"), nulls=how.get("nulls"))
        return self._price(OpenWeights(columns=columns, queries=queries, **how))

    def _price(self, question: Question) -> Price:
        return price_of(self._session._planned(question)[0])
