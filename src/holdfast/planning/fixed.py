"""Sessions planned for validity: one mechanism, one noise, the sharpest theorem."""

from __future__ import annotations

from fractions import Fraction

from holdfast.check import one_of
from holdfast.errors import MechanismError
from holdfast.planning.terms import Fixed
from holdfast.validity.noise_planner import choose, needs
from holdfast.validity.option import Option, Request


def odds_noise(rows: int, queries: int, confidence: float, only: str | None) -> Fixed:
    """The noise that makes odds intervals narrow for events of frequency 1%.

    Reference: docs/theorems.md, Theorems V (gaussian) and W (votes).
    """
    return _made_from(choose((f"{_allowed(only)[0]}-odds",), Request(rows, queries, confidence).checked()))


def fixed_noise(rows: int, queries: int, within: float, confidence: float, only: str | None) -> Fixed:
    """The noise that certifies `queries` adaptive answers to `within`, at the least cost.

    Votes, which read few rows, unless only Gaussian noise is allowed or only it can certify the request.
    Reference: docs/theorems.md, J0 with T1* (gaussian), L with J0 and T1* (votes).
    """
    chosen = choose(_allowed(only), Request(rows, queries, confidence, within).checked())
    if not chosen.fits:
        raise MechanismError(
            f"within={within:g} cannot be certified for {queries:,} queries on {rows:,} rows: {chosen.name} "
            f"certifies {chosen.width:.4g}, or {needs(chosen).most_queries:,} queries within {within:g}"
        )
    return _made_from(chosen)


def _allowed(only: str | None) -> tuple[str, ...]:
    return ("votes", "gaussian") if only is None else (one_of("only", only, ("gaussian", "votes")),)


def _made_from(option: Option) -> Fixed:
    """The planner's option as a session keeps it."""
    (epoch,) = option.epochs
    flip = Fraction(option.request.flip)
    return Fixed(option.mechanism, epoch.noise, flip, option.width, option.population, option.odds)
