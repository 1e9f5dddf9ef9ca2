"""What a question does to a session, and what of it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from holdfast.check import printable
from holdfast.desk import Steps
from holdfast.errors import QueryError
from holdfast.planning import question
from holdfast.planning.question import Interval, OpenSparseVector, OpenWeights, Question, Sample, Select
from holdfast.query.parse import parse_predicate
from holdfast.query.region import region
from holdfast.query.universe import universe
from holdfast.query.wording import quoted
from holdfast.session import Answer, Plan, Session
from holdfast.session.keys import shared_keys, text_column
from holdfast.session.price import Price
from holdfast.session.private_choice import conditions_of
from holdfast.session.session import Agree, in_steps, read_free

Released = dict[str, Any]
Kind = TypeVar("Kind", bound=Question)

BRIEF = 300
"""Conditions shorter than this are read at once."""
MOST_CELLS = 2**20
"""How many cells the weights of an analyst may have: they stay in the gateway's memory."""
WEIGHTS_KEPT = 4
_opened: WeakKeyDictionary[Session, dict[str, Any]] = WeakKeyDictionary()


def brief(asked: Question) -> bool:
    """Whether its plan is certainly made in less than a millisecond or so."""
    return (
        isinstance(asked, question.Fraction | question.Count)
        and asked.by is None
        and len(asked.where or "") < BRIEF
    )


class Answering(ABC, Generic[Kind]):
    """A question before a session, read once: QueryError or InputError before anything else."""

    def __init__(self, asked: Kind, session: Session, table: str) -> None:
        self.asked, self.session = asked, session

    @abstractmethod
    def put(self, call: str) -> Released:
        """Ask, and be charged. `call` names this request: a repeated one gets the same answer."""

    @abstractmethod
    def plans(self) -> list[Plan | Price]:
        """What it would cost."""

    def known(self) -> bool:
        """Whether it was asked before, so that it costs nothing."""
        return False

    def leaves(self) -> bool:
        """Whether it leaves an entry in the ledger, be it for nothing."""
        return not self.known()

    def steps(self, agree: Agree) -> Steps[Answer] | None:
        """The same as `put` in steps, if it is one answer; `agree` hears of its charge before."""
        return None

    def _given(self, *others: str) -> dict[str, Any]:
        """Its terms, but for those that a session is given otherwise, or not at all."""
        parts = self.asked.to_json()
        return {name: parts[name] for name in parts if name not in ("kind", "confirm", "where", *others)}


class Measuring(Answering[Interval]):
    """Questions with an interval."""

    def __init__(self, asked: Interval, session: Session, table: str) -> None:
        super().__init__(asked, session, table)
        self._read = read_free(session, asked)
        called = self._read.table
        if called is not None and called.lower() not in (table, "t"):
            raise QueryError(
                f"this was sent to the table {table!r}, and FROM names {quoted(called)}; write FROM t"
            )

    def put(self, call: str) -> Released:
        return released(self.session.put(self._read))

    def plans(self) -> list[Plan | Price]:
        return [*self.session.estimate.put(self._read)]

    def known(self) -> bool:
        return all(self.session.known.put(self._read))

    def steps(self, agree: Agree) -> Steps[Answer] | None:
        if self._read.arrangement is not None and self._read.arrangement.changes:
            return None
        steps = in_steps(self.session, self._read, agree)
        return steps[0] if len(steps) == 1 else None


class Discovering(Answering[question.DiscoverKeys]):
    """The keys of a text column. Where somebody was told them already, they cost nothing."""

    def __init__(self, asked: question.DiscoverKeys, session: Session, table: str) -> None:
        super().__init__(asked, session, table)
        text_column(session.schema, asked.column)

    def put(self, call: str) -> Released:
        found = self.session.keys(**self._given())
        names = ("column", "labels", "threshold", "rho", "delta", "mechanism")
        return {"kind": "keys"} | {name: getattr(found, name) for name in names}

    def known(self) -> bool:
        found = shared_keys(self.session, text_column(self.session.schema, self.asked.column)[0])
        return found is not None and self.asked.rho is None and self.asked.delta is None

    def plans(self) -> list[Plan | Price]:
        return [self.session.estimate.keys(**self._given())]


class Sampling(Answering[Sample]):
    """One row, one noisy bit."""

    def put(self, call: str) -> Released:
        return {"kind": "sample", "told": self.session.sample(self.asked.where, key=call)}

    def plans(self) -> list[Plan | Price]:
        return [self.session.estimate.sample(self.asked.where)]


class Choosing(Answering[Select]):
    """A private choice among conditions."""

    def __init__(self, asked: Select, session: Session, table: str) -> None:
        super().__init__(asked, session, table)
        self._choice = self._given() | {"scores": conditions_of(session.schema, asked.candidates, None)}

    def put(self, call: str) -> Released:
        chosen = self.session.select(**self._choice)
        names = ("candidate", "index", "candidates", "loss", "confidence", "epsilon", "mechanism")
        return {"kind": "selection"} | {name: getattr(chosen, name) for name in names}

    def known(self) -> bool:
        return self.session.known.select(**self._choice)

    def plans(self) -> list[Plan | Price]:
        return [self.session.estimate.select(**self._choice)]


class Watching(Answering[OpenSparseVector]):
    """A sparse vector, opened; and perhaps asked. A condition is read before the opening is charged."""

    def __init__(self, asked: OpenSparseVector, session: Session, table: str) -> None:
        super().__init__(asked, session, table)
        printable("name", asked.name)
        if isinstance(asked, question.Above):
            self._condition = parse_predicate(asked.where, session.schema)

    def put(self, call: str) -> Released:
        vector = self.session.sparse_vector(**self._given())
        if isinstance(self.asked, question.Above):
            compared = vector.compare(self._condition, call=call)
            told: Released = {"kind": "above", "above": compared.above, "within": compared.within}
        else:
            told = {"kind": "sparse-vector", "name": self.asked.name}
        # Where it stands: all of it follows from its answers.
        return told | {"halted": vector.halted, "hits_left": vector.hits_left, "asked": vector.asked}

    def known(self) -> bool:
        return self.session.opened("sparse vector", self.asked.name)

    def leaves(self) -> bool:
        return isinstance(self.asked, question.Above) or not self.known()

    def plans(self) -> list[Plan | Price]:
        return [self.session.estimate.sparse_vector(**self._given("name"))]


class Weighing(Answering[OpenWeights]):
    """Multiplicative weights, opened; and perhaps asked. A condition is read before the opening is charged."""

    def __init__(self, asked: OpenWeights, session: Session, table: str) -> None:
        super().__init__(asked, session, table)
        printable("name", asked.name)
        over = universe(session.schema, asked.columns, asked.edges, nulls=asked.nulls, most=MOST_CELLS)
        if isinstance(asked, question.Weigh):
            self._region = region(over, asked.where)

    def put(self, call: str) -> Released:
        weights = self._weights()
        if isinstance(self.asked, question.Weigh):
            return released([weights.fraction(self._region)])
        return {
            "kind": "multiplicative-weights", "name": self.asked.name, "within": weights.within,
            "asked": weights.asked, "updates": weights.updates, "updates_left": weights.updates_left,
        }  # fmt: skip

    def known(self) -> bool:
        return self.session.opened("weights", self.asked.name)

    def leaves(self) -> bool:
        return isinstance(self.asked, question.Weigh) or not self.known()

    def plans(self) -> list[Plan | Price]:
        return [self.session.estimate.multiplicative_weights(**self._given("name"))]

    def _weights(self) -> Any:
        """Weights are large and slow to open, so the last few of a session are kept."""
        opened, terms = _opened.setdefault(self.session, {}), repr(self._given())
        weights = opened.get(terms)
        if weights is None:
            weights = self.session.multiplicative_weights(**self._given())
            for oldest in list(opened)[: max(0, len(opened) - WEIGHTS_KEPT + 1)]:
                opened.pop(oldest, None)
            opened[terms] = weights
        return weights


_KINDS: dict[type[Question], type[Answering[Any]]] = {
    Interval: Measuring, question.DiscoverKeys: Discovering, Sample: Sampling,
    Select: Choosing, OpenSparseVector: Watching, OpenWeights: Weighing,
}  # fmt: skip


def answering(asked: Question, session: Session, table: str) -> Answering[Any]:
    """A question that was sent to a table, before an analyst's session on it."""
    return next(_KINDS[kind] for kind in type(asked).__mro__ if kind in _KINDS)(asked, session, table)


def released(answers: list[Answer]) -> Released:
    """Answers as they leave, and which of them had been given before."""
    return {"kind": "answers", "repeated": [answer.repeated for answer in answers], "answers": answers}
