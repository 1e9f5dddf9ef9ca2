"""Sessions planned for validity: one mechanism, one noise, the sharpest theorem."""

from __future__ import annotations

from fractions import Fraction

from holdfast.errors import MechanismError
from holdfast.mechanisms.values import round_down
from holdfast.mechanisms.votes import FLIP
from holdfast.session.request import one_of
from holdfast.session.terms import Fixed
from holdfast.validity.gaussian import gaussian_width, population_term
from holdfast.validity.odds import GaussianOdds, VotesOdds, gaussian_odds, gaussian_odds_noise, votes_odds
from holdfast.validity.planner import plan
from holdfast.validity.votes import votes_noise, votes_term, votes_width

RARE = 0.01
"""The frequency for which odds intervals are tuned."""


def odds_noise(rows: int, queries: int, confidence: float, only: str | None) -> Fixed:
    """The noise that makes odds intervals narrow for events of frequency 1%.

    Reference: docs/theorems.md, Theorems V (gaussian) and W (votes).
    """
    beta = 1 - confidence
    if _allowed(only) == "gaussian":
        return _gaussian(rows, queries, beta, gaussian_odds_noise(rows, queries, beta, RARE)[1], odds=True)
    return _votes(rows, queries, beta, votes_noise(rows, queries, beta, float(FLIP))[1], odds=True)


def fixed_noise(rows: int, queries: int, within: float, confidence: float, only: str | None) -> Fixed:
    """The noise that certifies `queries` adaptive answers to `within`, at the least cost.

    Votes, which read few rows, unless only Gaussian noise is allowed or only it can certify the request.
    Reference: docs/theorems.md, J0 with T1* (gaussian), L with J0 and T1* (votes).
    """
    _allowed(only)
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
    chosen = fitting[0]
    if chosen.votes is not None:
        return _votes(rows, queries, 1 - confidence, chosen.votes)
    assert chosen.standard_deviation is not None
    return _gaussian(rows, queries, 1 - confidence, chosen.standard_deviation)


def _allowed(only: str | None) -> str | None:
    return None if only is None else one_of("only", only, ("gaussian", "votes"))


def _votes(rows: int, queries: int, beta: float, count: int, odds: bool = False) -> Fixed:
    width = votes_width(rows, queries, beta, count, float(FLIP))
    if odds:
        width = _half_length(votes_odds(rows, queries, beta, count, float(FLIP)))
    population = votes_term(rows, queries * count, float(FLIP), beta)
    return Fixed("votes", Fraction(count), FLIP, width, min(population, width), odds)


def _gaussian(rows: int, queries: int, beta: float, deviation: float, odds: bool = False) -> Fixed:
    variance = round_down(deviation**2)
    width = gaussian_width(rows, queries, beta, float(variance) ** 0.5)
    if odds:
        width = _half_length(gaussian_odds(rows, queries, beta, float(variance) ** 0.5))
    population = population_term(beta, (queries / (float(variance) - 4)) ** 0.5)
    return Fixed("gaussian", variance, FLIP, width, min(population, width), odds)


def _half_length(limits: GaussianOdds | VotesOdds) -> float:
    """Half the length of an odds interval where it is longest."""
    low, high = limits(0.5)
    return (high - low) / 2
