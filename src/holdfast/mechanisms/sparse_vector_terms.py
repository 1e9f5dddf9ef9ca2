"""The terms of a sparse vector: what its opener declares, checked, and which theorem they call for."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal

from holdfast.check import exact_positive, integer, probability, refusal, shown
from holdfast.errors import InputError
from holdfast.mechanisms import allocation
from holdfast.mechanisms.allocation import Allocation
from holdfast.mechanisms.grid_scores import STEPS

Version = Literal["best", "logistic", "lecture", "gaussian"]
Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Terms:
    """Public facts about a sparse vector. `integers` says that values are compared without a finer grid."""

    threshold: Fraction
    sensitivity: Fraction
    epsilon: Fraction | None
    rho: Fraction | None
    hits: int
    delta: Fraction
    monotone: bool
    numeric: bool
    version: Version
    questions: int | None
    integers: bool
    threshold_share: Fraction | None = None
    """The part of a pure epsilon that is for the threshold; None for what is best for privacy."""

    @property
    def step(self) -> Fraction:
        """The grid: whole numbers, or 2^20 steps to a sensitivity."""
        return Fraction(1) if self.integers else self.sensitivity / STEPS

    def allocate(self) -> Allocation:
        """The noise and the event, by the theorem that the version names."""
        if self.version == "logistic":
            return allocation.logistic(replace(self, version="best").allocate())
        if self.threshold_share is not None and (
            self.version != "best" or self.rho is not None or self.delta
        ):
            raise InputError("expected threshold_share= beside epsilon alone, got other terms; leave it out")
        D, c, delta = math.ceil(self.sensitivity / self.step), self.hits, self.delta
        match self.version, self.epsilon, self.rho, self.questions:
            case "best", None, Fraction() as rho, None if not delta:
                return allocation.concentrated(D, rho, c, monotone=self.monotone, numeric=self.numeric)
            case "best", Fraction() as epsilon, None, None if delta:
                return allocation.approximate(
                    D, epsilon, delta, c, monotone=self.monotone, numeric=self.numeric
                )
            case "best", Fraction() as epsilon, None, None:
                share = self.threshold_share
                return allocation.pure(
                    D, epsilon, c, monotone=self.monotone, numeric=self.numeric, share=share
                )
            case "lecture", Fraction() as epsilon, None, None if not self.monotone:
                return allocation.lecture(D, epsilon, delta, c, numeric=self.numeric)
            case "gaussian", Fraction() as epsilon, None, int() as k if delta:
                return allocation.gaussian(
                    D, epsilon, delta, c, k, monotone=self.monotone, numeric=self.numeric
                )
        raise InputError(
            "expected version 'best' or 'logistic' with epsilon, with epsilon and delta, or with rho, 'lecture' with "
            "epsilon or epsilon and delta, not monotone, or 'gaussian' with epsilon, delta and questions, "
            "got another mixture"
        )

    def to_json(self) -> dict[str, Any]:
        """A dictionary that JSON can hold; fractions as text."""
        return {k: str(v) if isinstance(v, Fraction) else v for k, v in asdict(self).items()}


def terms(
    *,
    threshold: Number,
    sensitivity: Number,
    epsilon: Number | None,
    rho: Number | None,
    hits: int,
    delta: Number,
    monotone: bool,
    numeric: bool,
    version: Version,
    questions: int | None,
    integers: bool | None = None,
    threshold_share: Number | None = None,
) -> Terms:
    """Terms, checked one by one; floats are taken as the exact fractions they are."""
    if not is_number(threshold) or not math.isfinite(threshold):
        raise InputError(f"expected a finite number for threshold, got {shown(threshold)}")
    if not is_number(delta) or not 0 <= delta < 1:
        raise refusal("a number from 0 to below 1", "delta", delta, "1e-6 is usual")
    for name, flag in (("monotone", monotone), ("numeric", numeric)):
        if not isinstance(flag, bool):
            raise InputError(f"expected True or False for {name}, got {shown(flag)}")
    return Terms(
        Fraction(threshold),
        exact_positive("sensitivity", sensitivity),
        None if epsilon is None else exact_positive("epsilon", epsilon),
        None if rho is None else exact_positive("rho", rho),
        integer("hits", hits),
        Fraction(delta),
        monotone,
        numeric,
        version,
        None if questions is None else integer("questions", questions),
        is_int(threshold) and is_int(sensitivity) if integers is None else bool(integers),
        None if threshold_share is None else Fraction(probability("threshold_share", threshold_share)),
    )


def from_json(saved: dict[str, Any]) -> Terms:
    """What `Terms.to_json` wrote."""
    numbers = ("threshold", "sensitivity", "epsilon", "rho", "delta", "threshold_share")
    given: dict[str, Any] = {
        k: Fraction(v) if k in numbers and v is not None else v for k, v in saved.items()
    }
    return terms(**given)


def units(value: Number, step: Fraction) -> int:
    """A finite number in grid steps, rounded half up in integers, so that whole shifts commute with it."""
    p, q = value.as_integer_ratio()
    double = 2 * q * step.numerator
    return (2 * p * step.denominator + double // 2) // double


def is_int(value: object) -> bool:
    """An integer, not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """An integer, a fraction or a float, not a truth value."""
    return isinstance(value, float | Rational) and not isinstance(value, bool)
