"""Sessions planned for validity: one mechanism, one noise, the sharpest theorem."""

from __future__ import annotations

from fractions import Fraction

from holdfast.errors import InputError, MechanismError
from holdfast.mechanisms.values import round_down
from holdfast.mechanisms.votes import FLIP
from holdfast.session.terms import Fixed
from holdfast.validity.gaussian import gaussian_width, population_term
from holdfast.validity.planner import plan
from holdfast.validity.votes import votes_term, votes_width


def fixed_noise(
    rows: int, queries: int, within: float, confidence: float, only: str | None, odds: bool
) -> Fixed:
    """The noise that certifies `queries` adaptive answers to `within`, at the least cost.

    Votes, which read few rows, unless only Gaussian noise is allowed or only it can certify the request.
    Reference: docs/theorems.md, J0 with T1* (gaussian), L with J0 and T1* (votes).
    """
    if only not in (None, "gaussian", "votes"):
        raise InputError(f'expected only="gaussian" or "votes" or nothing, got {only!r}')
    planned = plan(rows=rows, queries=queries, within=within, confidence=confidence, prefer="rows")
    options = {option.mechanism: option for option in planned.options if option.private}
    wanted = [options[only]] if only is not None else [options["votes"], options["gaussian"]]
    fitting = [option for option in wanted if option.fits]
    if not fitting:
        best = min(wanted, key=lambda option: option.narrowest)
        raise MechanismError(
            f"within={within:g} cannot be certified for {queries:,} queries on {rows:,} rows: "
            f"{best.name} certifies {best.narrowest:.4g}, or {best.most_queries:,} queries within {within:g}"
        )
    beta = 1 - confidence
    chosen = fitting[0]
    if chosen.votes is not None:
        width = votes_width(rows, queries, beta, chosen.votes, float(FLIP))
        population = votes_term(rows, queries * chosen.votes, float(FLIP), beta)
        return Fixed("votes", Fraction(chosen.votes), FLIP, width, population, odds)
    assert chosen.standard_deviation is not None
    variance = round_down(chosen.standard_deviation**2)
    deviation = float(variance) ** 0.5
    width = gaussian_width(rows, queries, beta, deviation)
    population = population_term(beta, (queries / (deviation**2 - 4)) ** 0.5)
    return Fixed("gaussian", variance, FLIP, width, min(population, width), odds)
