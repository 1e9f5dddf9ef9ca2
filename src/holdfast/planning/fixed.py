"""Sessions with odds intervals: one mechanism, one noise."""

from __future__ import annotations

from fractions import Fraction

from holdfast.check import one_of
from holdfast.planning.terms import Fixed
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Option, Request


def odds_noise(rows: int, queries: int, confidence: float, only: str | None) -> Fixed:
    """The noise that makes odds intervals narrow for events of frequency 1%.

    Reference: docs/theorems.md, Theorems V (gaussian) and W (votes).
    """
    return _made_from(choose((f"{_allowed(only)[0]}-odds",), Request(rows, queries, confidence).checked()))


def _allowed(only: str | None) -> tuple[str, ...]:
    return ("votes", "gaussian") if only is None else (one_of("only", only, ("gaussian", "votes")),)


def _made_from(option: Option) -> Fixed:
    """The planner's option as a session keeps it."""
    (epoch,) = option.epochs
    flip = Fraction(option.request.flip)
    return Fixed(option.mechanism, epoch.noise, flip, option.width, option.population, option.odds)
