"""Private choice among candidates, charged to a session."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import numpy as np

from holdfast.check import exact_positive, one_of, positive, shown
from holdfast.errors import InputError, MechanismError
from holdfast.mechanisms.selection import exponential, permute_and_flip, selection_loss
from holdfast.mechanisms.values import round_down
from holdfast.planning.keywords import Choice
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import BoundedRange, Event, PureMechanism
from holdfast.privacy.rule import range_of_gdp
from holdfast.query.calling import fitting
from holdfast.query.grouping import is_list
from holdfast.query.measurement import Measurement
from holdfast.query.parse import condition_of
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Schema
from holdfast.validity.told import selection_told

if TYPE_CHECKING:
    from holdfast.session.session import Session

Candidate = TypeVar("Candidate")


@dataclass(frozen=True, slots=True)
class Selection(Generic[Candidate]):
    """The chosen candidate. With probability `confidence` its score is at most `loss` below the best one.

    This speaks of the scores on the table, also in a session for the population, and by itself: it spends the
    whole chance of a miss, and stands outside the joint promise of the session's intervals.
    """

    candidate: Candidate
    index: int
    candidates: int
    loss: float
    confidence: float
    epsilon: float
    mechanism: str

    def __str__(self) -> str:
        return (
            f"{self.candidate} (chosen privately among {self.candidates:,} by {self.mechanism}, epsilon "
            f"{self.epsilon:.3g}; its score on the table is within {self.loss:,.4g} of the best with confidence "
            f"{self.confidence:g}, by itself and outside the session's joint promise: McSherry and Talwar 2007)"
        )


@fitting
def select(
    session: Session,
    candidates: Sequence[Candidate],
    scores: Sequence[Any] | None = None,
    *,
    sensitivity: float | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    mechanism: str | None = None,
) -> Selection[Candidate]:
    """A candidate with a high score, and nothing else about the scores.

    `scores` are conditions, one a candidate, whose score is the number of rows that satisfy them (without
    scores the candidates themselves are the conditions); or numbers with the `sensitivity` that one row has
    on each of them, for scores computed elsewhere on the same rows.
    Guarantee: epsilon-DP; by default the exponential mechanism (bounded range, epsilon^2/8-zCDP) where the
    session counts rho, permute-and-flip in a pure session.
    """
    each, wanted = choice_of(session.currency, candidates, epsilon=epsilon, rho=rho, mechanism=mechanism)
    counted = sensitivity is None
    if not counted:
        exact_positive("sensitivity", sensitivity)
    conditions = conditions_of(session.schema, candidates, scores) if counted else None
    numbers = None if counted else _numbers(candidates, scores)
    event: Event = BoundedRange(each) if wanted == "exponential" else PureMechanism(each)
    key = None if conditions is None else _key(conditions, candidates, each, wanted)
    tells = None
    if counted and wanted == "exponential":
        tells = units_told(selection_told(session._terms.rows, float(each)), session._terms.rows)
    words = f"select among {len(candidates)} candidates"
    paid = session.pay("select", words, event, key=key, tells=tells)
    outcome = paid.outcome
    if outcome is None:
        if conditions is not None:
            rows = [paid.totals(Measurement(session.schema, c))[0] for c in conditions]
            numbers = np.array(rows, dtype=np.int64)
        choose = exponential if wanted == "exponential" else permute_and_flip
        assert numbers is not None
        index = choose(numbers, sensitivity=sensitivity or 1, epsilon=each)
        outcome = paid.record(json.dumps(index))
    index = json.loads(outcome)
    loss = selection_loss(
        len(candidates),
        sensitivity=sensitivity or 1,
        epsilon=each,
        beta=1 - session.confidence,
        rounded=not counted,
    )
    return Selection(candidates[index], index, len(candidates), loss, session.confidence, float(each), wanted)


def was_chosen(
    session: Session, candidates: Sequence[Any], scores: Sequence[Any] | None = None, **how: Unpack[Choice]
) -> bool:
    """Whether this choice among conditions was made before, so that it costs nothing."""
    each, wanted = choice_of(session.currency, candidates, **how)
    key = _key(conditions_of(session.schema, candidates, scores), candidates, each, wanted)
    return session._desk.find(key) is not None


def _key(conditions: list[Any], candidates: Sequence[Any], epsilon: Fraction, mechanism: str) -> str:
    """Equal for equal choices among conditions."""
    identity = f"select {[str(c) for c in conditions]} {candidates} {epsilon} {mechanism}"
    return blake2b(identity.encode(), digest_size=16).hexdigest()


def _refuse_no_list(candidates: Sequence[Any]) -> None:
    """InputError unless there is something to choose from."""
    if isinstance(candidates, str):
        raise InputError(
            f"expected a list of candidates, got the text {shown(candidates)}; write [...] around it"
        )
    if not is_list(candidates):
        raise InputError(f"expected a list of candidates, got {shown(candidates)}")
    if not len(candidates):
        raise InputError("expected at least one candidate, got none")


@fitting
def choice_of(
    currency: str,
    candidates: Sequence[Any],
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    mechanism: str | None = None,
) -> tuple[Fraction, str]:
    """The epsilon and the mechanism of a choice, if a session that counts so may make it."""
    if (epsilon is None) == (rho is None):
        raise InputError(
            "expected either epsilon= or rho=, got both or neither; give the budget of this choice"
        )
    _refuse_no_list(candidates)
    wanted = "permute-and-flip" if currency == "pure" else "exponential"
    if mechanism is not None:
        wanted = one_of("mechanism", mechanism, ("exponential", "permute-and-flip"))
    return _epsilon(epsilon, rho, wanted, currency), wanted


def _epsilon(epsilon: float | None, rho: float | None, mechanism: str, currency: str) -> Fraction:
    if epsilon is not None:
        return exact_positive("epsilon", epsilon)
    if mechanism != "exponential":
        raise MechanismError("permute-and-flip is counted in epsilon, not rho; give epsilon=")
    amount = positive("rho", rho)
    if currency == "gdp":
        return round_down(range_of_gdp(2 * Fraction(amount)))
    return round_down(math.sqrt(8) * math.sqrt(amount) * (1 - 2.0**-40))


def conditions_of(schema: Schema, candidates: Sequence[Any], scores: Sequence[Any] | None) -> list[Predicate]:
    """The conditions of a choice: the scores, or the candidates themselves."""
    texts = candidates if scores is None else scores
    if not is_list(texts):
        raise InputError(f"expected a list of scores, got {shown(texts)}")
    if len(texts) != len(candidates):
        raise InputError(f"expected a score for each of {len(candidates)} candidates, got {len(texts)}")
    if not all(isinstance(text, str | Predicate) for text in texts):
        raise InputError(
            "expected sensitivity= with numbers as scores, got none; say how far one row can move each of them"
        )
    return [condition_of(text, schema) for text in texts]


def _numbers(candidates: Sequence[Any], scores: Sequence[Any] | None) -> Any:
    array = np.asarray(scores)
    if scores is None or array.shape != (len(candidates),) or array.dtype.kind not in "iuf":
        raise InputError(f"expected one number as score for each of {len(candidates)} candidates, got others")
    return array
