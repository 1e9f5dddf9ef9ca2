"""Which mechanism and theorem can carry a request, with how much noise; from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from holdfast.errors import InputError
from holdfast.privacy import event, rule
from holdfast.validity.argument import miss, proportion, whole
from holdfast.validity.gaussian import gaussian_noise, gaussian_width
from holdfast.validity.plan import Option, Plan
from holdfast.validity.registry import Bound, bounds
from holdfast.validity.search import first, most
from holdfast.validity.votes import fewest_votes, votes_noise, votes_width

_THEOREMS = {
    "gaussian": "J0 with T1*",
    "votes": "L with J0 and T1*",
    "discretised": "D",
    "splitting": "splitting",
}


def plan(
    *,
    rows: int,
    queries: int,
    within: float,
    confidence: float,
    prefer: str = "width",
    private: bool = True,
    flip: float = 0.25,
) -> Plan:
    """Can `queries` adaptive answers be certified to a half-width of `within`, by what, and at what price?

    Guarantee: depends on these public numbers only. Each option is the least certified width of its mechanism
    (for a fixed mechanism the minimum over theorems is free), and its noise is the largest, or its votes the
    fewest, that still keep `within`: the least privacy loss and the fewest rows.
    `prefer`: "width" chooses the option that can be narrowest, "rows" the one that fits and reads the fewest
    rows. `private=False` lets rounding and splitting be chosen, which release exact statistics.
    """
    n, k = whole("rows", rows), whole("queries", queries)
    goal, beta = proportion("within", within), miss(confidence)
    a = proportion("flip", flip, 0.5)
    if prefer not in ("width", "rows"):
        raise InputError(f"prefer must be 'width' or 'rows', got {prefer!r}; choose one")
    options = (
        _gaussian(n, k, goal, beta),
        _votes(n, k, goal, beta, a),
        _exact("discretised", n, k, goal, beta),
        _exact("splitting", n, k, goal, beta),
    )
    allowed = [option for option in options if option.private or not private]
    fitting = [option for option in allowed if option.fits]
    if prefer == "rows":
        fitting.sort(key=lambda option: option.rows_per_answer)
    else:
        fitting.sort(key=lambda option: option.narrowest)
    others = [option for option in options if not fitting or option is not fitting[0]]
    others.sort(key=lambda option: (not option.private and private, not option.fits, option.narrowest))
    return Plan(n, k, goal, float(confidence), fitting[0] if fitting else None, tuple(others))


def _gaussian(rows: int, queries: int, within: float, beta: float) -> Option:
    narrowest, best = gaussian_noise(rows, queries, beta)
    fits = narrowest <= within
    noise = best
    if fits:
        # Above the best noise the width grows: bisect for the most noise that fits, and keep the safe side.
        low, high = best, best + rows
        for _ in range(60):
            middle = (low + high) / 2.0
            good = gaussian_width(rows, queries, beta, middle) <= within
            low, high = (middle, high) if good else (low, middle)
        noise = low
    rho = rule.zcdp(event.Repeat(event.Gaussian(1, noise * noise), queries)).rho
    return Option(
        name="gaussian",
        mechanism="gaussian",
        theorem=_THEOREMS["gaussian"],
        private=True,
        narrowest=narrowest,
        width=gaussian_width(rows, queries, beta, noise),
        fits=fits,
        rows_per_answer=rows,
        standard_deviation=noise,
        rho=rho,
        **({} if fits else _needs(lambda n, k: gaussian_noise(n, k, beta)[0] <= within, rows, queries)),
    )


def _votes(rows: int, queries: int, within: float, beta: float, flip: float) -> Option:
    narrowest, best = votes_noise(rows, queries, beta, flip)
    fewest = fewest_votes(rows, queries, beta, within, flip)
    fits = fewest is not None
    count = best if fewest is None else fewest
    rho = rule.zcdp(event.Repeat(event.Votes(rows, count, flip), queries)).rho if rows > 1 else math.inf
    return Option(
        name="votes",
        mechanism="votes",
        theorem=_THEOREMS["votes"],
        private=True,
        narrowest=narrowest,
        width=votes_width(rows, queries, beta, count, flip),
        fits=fits,
        rows_per_answer=count,
        votes=count,
        flip=flip,
        rho=rho,
        **({} if fits else _needs(lambda n, k: votes_noise(n, k, beta, flip)[0] <= within, rows, queries)),
    )


def _exact(name: str, rows: int, queries: int, within: float, beta: float) -> Option:
    theorem = _named(name)
    value = theorem.compute(rows, queries, beta)
    value = value if value < 1.0 else math.inf
    fits = value <= within
    return Option(
        name=name,
        mechanism=theorem.mechanism,
        theorem=_THEOREMS[name],
        private=False,
        narrowest=value,
        width=value,
        fits=fits,
        rows_per_answer=rows if name == "discretised" else max(1, rows // queries),
        **({} if fits else _needs(lambda n, k: theorem.compute(n, k, beta) <= within, rows, queries)),
    )


def _needs(holds: Callable[[int, int], bool], rows: int, queries: int) -> dict[str, Any]:
    """What would make a request fit: fewer queries on these rows, or more rows for these queries."""
    return {
        "most_queries": most(lambda k: holds(rows, k)),
        "least_rows": first(lambda n: holds(n, queries), rows),
    }


def _named(name: str) -> Bound:
    return next(theorem for theorem in bounds() if theorem.name == name)
