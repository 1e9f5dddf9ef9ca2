"""A plan that a gateway made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.session.price import Price


@dataclass(frozen=True, slots=True, repr=False)
class RemotePlan:
    """What would be done to answer, and what it would cost: the public part of `holdfast.Plan`."""

    question: str
    mechanism: str
    cost: float
    explanation: str
    rows_read: int
    rho: float
    epsilon: float | None
    width: float
    noise: float
    sampling: float
    population: float
    target: str
    confidence: float
    within: float | None
    qualifying: int | None

    def explain(self) -> str:
        """What was chosen, and why, in plain words."""
        return self.explanation

    def __str__(self) -> str:
        return self.explanation

    __repr__ = __str__


def plan_of(parts: dict[str, Any]) -> RemotePlan:
    """The plan of a question with an interval."""
    return RemotePlan(**{name: parts[name] for name in RemotePlan.__slots__})


def price_of(parts: dict[str, Any]) -> Price:
    """The price of another release."""
    return Price(parts["question"], parts["mechanism"], parts["cost"], parts["explanation"], parts["answers"])
