"""What may be asked over HTTP: one small model for each kind of question, and what each does to a session."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal
from weakref import WeakKeyDictionary

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from holdfast.desk import Steps
from holdfast.errors import QueryError
from holdfast.query.parse import parse_predicate
from holdfast.query.region import region
from holdfast.query.select import parse_select
from holdfast.query.universe import Universe, universe
from holdfast.query.wording import quoted
from holdfast.session import Answer, Plan, Session
from holdfast.session.above_threshold import AboveThreshold
from holdfast.session.asking import Agree, Asking
from holdfast.session.price import Price


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("printable", "expected printable characters only; leave the others out")
    return text


Printable = AfterValidator(_printable)
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Column = Annotated[str, Field(min_length=1, max_length=200)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S"), Printable]
"""What a caller calls something: people read it, and every database must be able to keep it."""
Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=1e-9, le=1e9)]
"""A budget. Ledgers count in units of 1e-9, and nobody means more than a milliard."""
Width = Annotated[float, Field(ge=1e-30, le=1e30)]
Chance = Annotated[float, Field(ge=1e-100, lt=1)]
Many = Annotated[int, Field(ge=1, le=10**15)]
Edges = Annotated[list[Number | Annotated[str, Field(max_length=40)]], Field(max_length=10_000)]
Columns = Annotated[list[Column], Field(min_length=1, max_length=64)]
Released = dict[str, Any]

BRIEF = 300
"""Conditions shorter than this are read at once."""
MOST_CELLS = 2**20
"""How many cells the weights of an analyst may have: they stay in the gateway's memory."""
WEIGHTS_KEPT = 4
_opened: WeakKeyDictionary[Session, dict[str, Any]] = WeakKeyDictionary()


class Asked(BaseModel):
    """Every question. `confirm` agrees to a cost above the share that the owner lets pass unasked."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    confirm: bool = False

    @abstractmethod
    def put(self, session: Session, call: str) -> Released:
        """Ask, and be charged. `call` names this request: a repeated one gets the same answer."""

    @abstractmethod
    def plans(self, session: Session) -> list[Plan | Price]:
        """What it would cost."""

    def known(self, session: Session) -> bool:
        """Whether it was asked before, so that it costs nothing."""
        return False

    def refuse_other_tables(self, session: Session, name: str) -> None:
        """QueryError if it names another table than the one it was sent to."""

    def steps(self, session: Session, agree: Agree) -> Steps[Answer] | None:
        """The same as `put` in steps, if it is one answer; `agree` hears of its charge before."""
        return None

    @property
    def brief(self) -> bool:
        """Whether its plan is certainly made in less than a millisecond or so."""
        return False


class Statistic(Asked):
    """Questions with an interval. Give one of `within`, `rho` and `epsilon`, or none."""

    within: Width | None = None
    rho: Amount | None = None
    epsilon: Amount | None = None
    mechanism: Annotated[str, Field(max_length=40)] | None = None
    rows: Many | None = None

    @abstractmethod
    def of(self, questions: Any) -> Any:
        """The same question put to a session, to its estimate, or to what it knows."""

    def _how(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("within", "rho", "epsilon", "mechanism", "rows")}

    def put(self, session: Session, call: str) -> Released:
        return released(_listed(self.of(session)))

    def plans(self, session: Session) -> list[Plan | Price]:
        return _listed(self.of(session.estimate))

    def known(self, session: Session) -> bool:
        return all(_listed(self.of(session.known)))

    def steps(self, session: Session, agree: Agree) -> Steps[Answer] | None:
        steps = _listed(self.of(Asking(session, agree)))
        return steps[0] if len(steps) == 1 else None


class Grouped(Statistic):
    """Statistics that may be taken for each group of a column."""

    where: Text | None = None
    by: Column | None = None
    edges: Edges | None = None

    def _groups(self) -> dict[str, Any]:
        return {"by": self.by, "edges": self.edges} | self._how()


class Fraction(Grouped):
    """The fraction of rows which satisfy a condition."""

    kind: Literal["fraction"]
    where: Text

    @property
    def brief(self) -> bool:
        return self.by is None and len(self.where) < BRIEF

    def of(self, questions: Any) -> Any:
        return questions.fraction(self.where, **self._groups())


class Count(Grouped):
    """The number of rows which satisfy a condition."""

    kind: Literal["count"]

    @property
    def brief(self) -> bool:
        return self.by is None and len(self.where or "") < BRIEF

    def of(self, questions: Any) -> Any:
        return questions.count(self.where, **self._groups())


class Total(Grouped):
    """The sum or the mean of a number over the rows which satisfy a condition."""

    kind: Literal["sum", "mean"]
    column: Text

    def of(self, questions: Any) -> Any:
        put = questions.sum if self.kind == "sum" else questions.mean
        return put(self.column, self.where, **self._groups())


class Histogram(Statistic):
    """The number of rows in each declared category, or between the edges."""

    kind: Literal["histogram"]
    column: Column
    edges: Edges | None = None
    where: Text | None = None

    def of(self, questions: Any) -> Any:
        return questions.histogram(self.column, self.edges, self.where, **self._how())


class Quantile(Grouped):
    """The value below which a fraction `rank` of the rows lies."""

    kind: Literal["quantile"]
    column: Column
    rank: Chance = 0.5

    def of(self, questions: Any) -> Any:
        return questions.quantile(self.column, self.rank, self.where, **self._groups())


class Sql(Statistic):
    """A SELECT with aggregates and at most one group."""

    kind: Literal["sql"]
    text: Text

    def of(self, questions: Any) -> Any:
        return questions.sql(self.text, **self._how())

    def refuse_other_tables(self, session: Session, name: str) -> None:
        called = parse_select(self.text, session.schema).table
        if called.lower() not in (name, "t"):
            raise QueryError(
                f"this was sent to the table {name!r}, and FROM names {quoted(called)}; write FROM t"
            )


class Sample(Asked):
    """The sampling counting query: one row, one noisy bit."""

    kind: Literal["sample"]
    where: Text

    def put(self, session: Session, call: str) -> Released:
        return {"kind": "sample", "told": session.sample(self.where, key=call)}

    def plans(self, session: Session) -> list[Plan | Price]:
        return [session.estimate.sample(self.where)]


class Select(Asked):
    """A private choice among conditions: about the one that most rows satisfy."""

    kind: Literal["select"]
    candidates: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    epsilon: Amount | None = None
    rho: Amount | None = None
    mechanism: Annotated[str, Field(max_length=40)] | None = None

    def _how(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "rho": self.rho, "mechanism": self.mechanism}

    def put(self, session: Session, call: str) -> Released:
        chosen = session.select(self.candidates, **self._how())
        names = ("candidate", "index", "candidates", "loss", "confidence", "epsilon", "mechanism")
        return {"kind": "selection"} | {name: getattr(chosen, name) for name in names}

    def known(self, session: Session) -> bool:
        return session.known.select(self.candidates, **self._how())

    def plans(self, session: Session) -> list[Plan | Price]:
        return [session.estimate.select(self.candidates, **self._how())]


class OpenSparseVector(Asked):
    """Open a sparse vector under a name, or come back to it. Charged once, at the opening."""

    kind: Literal["sparse-vector"]
    name: Name = "vector"
    threshold: Annotated[float, Field(ge=1e-100, le=1)]
    hits: Annotated[int, Field(ge=1, le=100_000)]
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    version: Annotated[str, Field(max_length=40)] = "best"
    questions: Many | None = None

    def _how(self) -> dict[str, Any]:
        names = ("epsilon", "rho", "delta", "version", "questions")
        return {name: getattr(self, name) for name in names}

    def put(self, session: Session, call: str) -> Released:
        return {"kind": "sparse-vector", "name": self.name} | _state(self._vector(session))

    def known(self, session: Session) -> bool:
        return session.opened("sparse vector", self.name)

    def plans(self, session: Session) -> list[Plan | Price]:
        return [session.estimate.sparse_vector(self.threshold, self.hits, **self._how())]

    def _vector(self, session: Session) -> AboveThreshold:
        return session.sparse_vector(self.threshold, self.hits, name=self.name, **self._how())


class Above(OpenSparseVector):
    """Is a fraction above the threshold of an open sparse vector? Its terms are repeated, to come back to it."""

    kind: Literal["above"]  # type: ignore[assignment]
    where: Text

    def plans(self, session: Session) -> list[Plan | Price]:
        parse_predicate(self.where, session.schema)
        return super().plans(session)

    def put(self, session: Session, call: str) -> Released:
        parse_predicate(self.where, session.schema)  # before the opening is charged
        vector = self._vector(session)
        return {"kind": "above", "above": vector.above(self.where, call=call)} | _state(vector)


class OpenWeights(Asked):
    """Open multiplicative weights under a name, or come back to them. Updates are charged as they happen."""

    kind: Literal["multiplicative-weights"]
    name: Name = "weights"
    columns: Columns
    queries: Annotated[int, Field(ge=1, le=10**6)]
    within: Annotated[float, Field(ge=1e-6, lt=1)] | None = None
    rho: Amount | None = None
    epsilon: Amount | None = None
    delta: Chance | None = None
    edges: dict[Column, Edges] | None = None
    nulls: Annotated[list[Column], Field(max_length=64)] | None = None
    version: Annotated[str, Field(max_length=40)] = "best"

    def _how(self) -> dict[str, Any]:
        names = ("queries", "within", "rho", "epsilon", "delta", "edges", "nulls", "version")
        return {name: getattr(self, name) for name in names}

    def known(self, session: Session) -> bool:
        return session.opened("weights", self.name)

    def put(self, session: Session, call: str) -> Released:
        weights = _weights(session, self)
        return {
            "kind": "multiplicative-weights", "name": self.name, "within": weights.within,
            "asked": weights.asked, "updates": weights.updates, "updates_left": weights.updates_left,
        }  # fmt: skip

    def plans(self, session: Session) -> list[Plan | Price]:
        _refuse_too_large(session, self)
        return [session.estimate.multiplicative_weights(self.columns, **self._how())]


class Weigh(OpenWeights):
    """A fraction by open multiplicative weights. Their terms are repeated, to come back to them."""

    kind: Literal["weigh"]  # type: ignore[assignment]
    where: Text

    def plans(self, session: Session) -> list[Plan | Price]:
        region(_refuse_too_large(session, self), self.where)
        return super().plans(session)

    def put(self, session: Session, call: str) -> Released:
        if not self.known(session):  # before the opening is charged
            region(_refuse_too_large(session, self), self.where)
        return released([_weights(session, self).fraction(self.where)])


Question = Annotated[
    Fraction | Count | Total | Histogram | Quantile | Sql | Sample | Select | OpenSparseVector | Above
    | OpenWeights | Weigh,
    Field(discriminator="kind"),
]  # fmt: skip


def released(answers: list[Answer]) -> Released:
    """Answers as they leave, and which of them had been given before."""
    return {"kind": "answers", "repeated": [answer.repeated for answer in answers], "answers": answers}


def _state(vector: AboveThreshold) -> Released:
    """Where a sparse vector stands; all of it follows from its answers."""
    return {"halted": vector.halted, "hits_left": vector.hits_left, "asked": vector.asked}


def _listed(results: Any) -> list[Any]:
    return results if isinstance(results, list) else [results]


def _weights(session: Session, asked: OpenWeights) -> Any:
    """Weights are large and slow to open, so the last few of a session are kept."""
    _refuse_too_large(session, asked)
    opened = _opened.setdefault(session, {})
    terms = asked.model_dump_json(exclude={"kind", "where", "confirm"})
    weights = opened.get(terms)
    if weights is None:
        weights = session.multiplicative_weights(asked.columns, name=asked.name, **asked._how())
        for oldest in list(opened)[: max(0, len(opened) - WEIGHTS_KEPT + 1)]:
            opened.pop(oldest, None)
        opened[terms] = weights
    return weights


def _refuse_too_large(session: Session, asked: OpenWeights) -> Universe:
    """What the weights would be over."""
    return universe(session.schema, asked.columns, asked.edges, nulls=asked.nulls, most=MOST_CELLS)
