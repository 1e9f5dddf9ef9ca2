"""Exact epsilon and delta of a mechanism whose law can be computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.audit.choice_tree import Law, walk


@dataclass(frozen=True, slots=True)
class ExactAudit:
    """Two laws, compared.

    `epsilon` is exact when `leftover` is 0; otherwise it is a lower bound, because mass that was not walked
    is given to whichever side makes the ratio smaller. `worst` is an output that attains it.
    """

    epsilon: float
    worst: Hashable
    leftover: Fraction
    first: Law
    second: Law

    def delta(self, epsilon: float) -> float:
        """The least delta at this epsilon, over both directions; a lower bound when mass is left over."""
        ratio = Fraction(math.exp(epsilon))
        return max(_excess(self.first, self.second, ratio), _excess(self.second, self.first, ratio))

    def __str__(self) -> str:
        sign = "=" if not self.leftover else ">="
        return f"epsilon {sign} {self.epsilon:.6f}, attained at {self.worst!r}"


def exact_epsilon(
    mechanism: Callable[..., Hashable],
    first: Any,
    second: Any,
    *,
    runs: int = 200_000,
    tolerance: Fraction = Fraction(0),
) -> ExactAudit:
    """Epsilon of `mechanism(input, bits=bits)` on two neighbouring inputs, by walking its choice tree.

    Guarantee: the supremum over outputs and directions of the log-ratio of probabilities, infinite where an
    output is possible under one input only. Exact when the walk leaves no mass.
    Requires: all randomness comes through `bits`, in small integers (see `choice_tree`).
    Cost: one run for each choice, at most `runs` for each input.
    """

    def law(value: Any) -> Law:
        return walk(lambda bits: mechanism(value, bits=bits), runs=runs, tolerance=tolerance)

    return compare(law(first), law(second))


def compare(first: Law, second: Law) -> ExactAudit:
    """The audit of two laws that are already known."""
    outputs = first.probabilities.keys() | second.probabilities.keys()
    worst = max(
        (
            (_log_ratio(a, b, output), output)
            for a, b in ((first, second), (second, first))
            for output in outputs
        ),
        key=lambda pair: pair[0],
    )
    leftover = max(first.leftover, second.leftover)
    return ExactAudit(max(0.0, worst[0]), worst[1], leftover, first, second)


def _log_ratio(likely: Law, unlikely: Law, output: Hashable) -> float:
    p = likely.probabilities.get(output, Fraction(0))
    q = unlikely.probabilities.get(output, Fraction(0)) + unlikely.leftover
    if not p:
        return -math.inf
    return math.log(p / q) if q else math.inf


def _excess(likely: Law, unlikely: Law, ratio: Fraction) -> float:
    total = sum(
        (
            max(Fraction(0), p - ratio * unlikely.probabilities.get(output, Fraction(0)))
            for output, p in likely.probabilities.items()
        ),
        Fraction(0),
    )
    return float(max(Fraction(0), total - ratio * unlikely.leftover))
