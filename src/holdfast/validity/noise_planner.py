"""Which mechanism and theorem can carry a request, with how much noise; from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from holdfast.check import one_of, probability
from holdfast.privacy.rounding import down, round_down
from holdfast.validity.discretised import best_cells
from holdfast.validity.gaussian_answers import gaussian_noise, gaussian_width, population_term
from holdfast.validity.guess_and_check import checked, failure_share, holdout_width
from holdfast.validity.leave_out_answers import (
    gaussian_epochs,
    gaussian_epochs_width,
    votes_epochs,
    votes_epochs_width,
)
from holdfast.validity.noise_plan import Plan
from holdfast.validity.odds import gaussian_odds, gaussian_odds_noise, votes_odds
from holdfast.validity.option import Epoch, Option, Request
from holdfast.validity.registry import bound, most_within
from holdfast.validity.search import first, first_within, most
from holdfast.validity.splitting import splitting
from holdfast.validity.vote_answers import fewest_votes, votes_noise, votes_term, votes_width

_PLANNED = ("leave-out", "leave-out-votes", "gaussian", "votes", "discretised", "splitting")
_WIDER = 1.002
"""Where no width is asked for, falling noise is the most that keeps this many times the least: two thousandths of the
width are up to a third of the privacy loss, most of it that of the last place."""
_FAILURES = 20
"""How many guesses may fail where nobody says how many."""


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
    asked = Request(rows, queries, confidence, probability("within", within), flip=flip).checked()
    one_of("prefer", prefer, ("width", "rows"))
    found = [choose((name,), asked) for name in _PLANNED]
    options = [option if option.fits else needs(option) for option in found]
    fitting = [option for option in options if option.fits and (option.private or not private)]
    fitting.sort(key=lambda option: option.rows_per_answer if prefer == "rows" else option.narrowest)
    others = [option for option in options if not fitting or option is not fitting[0]]
    others.sort(key=lambda option: (not option.private and private, not option.fits, option.narrowest))
    chosen = fitting[0] if fitting else None
    return Plan(asked.rows, asked.queries, float(within), asked.confidence, chosen, tuple(others))


def choose(names: Sequence[str], asked: Request) -> Option:
    """The first of these that keeps `within`; the narrowest, where none does or no width is asked for.

    Guarantee: with probability `confidence` all answers are within `width` of their population values, for every
    adaptive analyst, by the theorem that is named and under what `bounds()` says it assumes. Each is at its least
    width, or has the most noise, or the fewest votes, that keep `within`. Those after the first that fits are not
    computed.
    """
    tried = []
    for name in names:
        tried.append(_OPTIONS[name](asked))
        if asked.within is not None and tried[-1].fits:
            return tried[-1]
    return min(tried, key=lambda option: option.width)


def needs(short: Option) -> Option:
    """The option with what would make it fit: fewer queries on these rows, or more rows for these queries."""
    theorem, asked = bound(short.name), short.request
    tuned: dict[str, Any] = {
        name: getattr(asked, name) for name in ("grid", "flip", "epochs") if name in theorem.parameters
    }

    goal = asked.within or 0.0
    least_rows = (
        first_within(lambda n: theorem.compute(n, asked.queries, asked.beta, **tuned), goal, asked.rows)
        if theorem.slow
        else first(lambda n: theorem.compute(n, asked.queries, asked.beta, **tuned) <= goal, asked.rows)
    )
    queries = most_within(theorem, asked.rows, goal, asked.beta, tuned)
    return replace(short, most_queries=queries, least_rows=least_rows)


def _gaussian(asked: Request) -> Option:
    n, k, beta, g = asked.rows, asked.queries, asked.beta, asked.grid
    narrowest, deviation = gaussian_noise(n, k, beta, g)
    if math.isinf(narrowest):
        return Option(asked, "gaussian", "gaussian", "J0 with T1*", math.inf, math.inf, math.inf, n)

    def width(s: float) -> float:
        return gaussian_width(n, k, beta, math.sqrt(round_down(s * s)), g)

    if asked.within is not None and narrowest <= asked.within:
        # Above the best noise the width grows: bisect for the most noise that fits, and keep the safe side.
        high = deviation + g * n
        for _ in range(60):
            middle = (deviation + high) / 2.0
            deviation, high = (middle, high) if width(middle) <= asked.within else (deviation, middle)
    variance = round_down(deviation * deviation)
    return _noisy(asked, "gaussian", "J0 with T1*", variance, width(deviation), narrowest)


def _gaussian_odds(asked: Request) -> Option:
    n, k, beta = asked.rows, asked.queries, asked.beta
    variance = round_down(gaussian_odds_noise(n, k, beta)[1] ** 2)
    low, high = gaussian_odds(n, k, beta, math.sqrt(variance))(0.5)
    return _noisy(asked, "gaussian", "V", variance, (high - low) / 2, (high - low) / 2)


def _votes(asked: Request) -> Option:
    n, k, beta, a = asked.rows, asked.queries, asked.beta, asked.flip
    narrowest, count = votes_noise(n, k, beta, a)
    if asked.within is not None:
        count = fewest_votes(n, k, beta, asked.within, a) or count
    width = votes_width(n, k, beta, count, a)
    return _noisy(asked, "votes", "L with J0 and T1*", Fraction(count), width, narrowest)


def _votes_odds(asked: Request) -> Option:
    n, k, beta, a = asked.rows, asked.queries, asked.beta, asked.flip
    count = votes_noise(n, k, beta, a)[1]
    low, high = votes_odds(n, k, beta, count, a)(0.5)
    return _noisy(asked, "votes", "W", Fraction(count), (high - low) / 2, (high - low) / 2)


def _leave_out(asked: Request) -> Option:
    n, beta, g = asked.rows, asked.beta, asked.grid
    least = bound("leave-out").compute(n, asked.queries, beta, grid=g, epochs=asked.epochs)
    made = gaussian_epochs(n, asked.queries, beta, g, asked.epochs, asked.within, _wider(asked))
    found = Option(asked, "leave-out", "gaussian", "Theorem 23", least, math.inf, math.inf, n)
    return _in_epochs(found, made, lambda epochs: gaussian_epochs_width(n, epochs, beta, g))


def _leave_out_votes(asked: Request) -> Option:
    n, beta, a = asked.rows, asked.beta, asked.flip
    least = bound("leave-out-votes").compute(n, asked.queries, beta, flip=a, epochs=asked.epochs)
    made = votes_epochs(n, asked.queries, beta, a, asked.within, asked.epochs, _wider(asked))
    read = max((int(epoch.noise) for epoch in made), default=n)
    found = Option(asked, "leave-out-votes", "votes", "Theorem 27", least, math.inf, math.inf, read)
    return _in_epochs(found, made, lambda epochs: votes_epochs_width(n, epochs, beta, a))


def _wider(asked: Request) -> float:
    return _WIDER if asked.within is None else 1.0


def _in_epochs(found: Option, made: tuple[Epoch, ...], width: Callable[[tuple[Epoch, ...]], float]) -> Option:
    """The option with its epochs; the part of its width that one answer alone would not have is adaptivity's."""
    if not found.narrowest < 1:
        return replace(found, narrowest=math.inf)
    at, alone = width(made), width((replace(made[-1], answers=1, left_out=found.request.rows - 1),))
    return replace(found, epochs=made, width=at, population=max(0.0, at - alone))


def _noisy(
    asked: Request, mechanism: str, theorem: str, noise: Fraction, width: float, least: float
) -> Option:
    """One noise for all answers, with the part of its width that T1* and its kin give to adaptivity."""
    n, k, beta = asked.rows, asked.queries, down(asked.beta)
    read = int(noise) if mechanism == "votes" else n
    found = Option(asked, mechanism, mechanism, theorem, least, width, width, read, (Epoch(k, noise),))
    term = votes_term(n, k * read, asked.flip, beta) if found.mu is None else population_term(beta, found.mu)
    return replace(found, population=min(term, width))


def _discretised(asked: Request) -> Option:
    n = asked.rows
    width, cells = best_cells(n, asked.queries, asked.beta)
    least = width if width < 1.0 else math.inf
    return Option(asked, "discretised", "rounded", "D", least, width, width * (1 - 1 / cells), n, cells=cells)


def _splitting(asked: Request) -> Option:
    n, k = asked.rows, asked.queries
    width = splitting(n, k, asked.beta)
    least = width if width < 1.0 else math.inf
    return Option(asked, "splitting", "exact", "splitting", least, width, width, max(1, n // k))


def _guess_and_check(asked: Request) -> Option:
    """With `within` as many failures as it can bear; otherwise a width that bears `failures` (20)."""
    n, k, beta, goal = asked.rows, asked.queries, asked.beta, asked.within
    wanted = min(k - 1, _FAILURES if asked.failures is None else asked.failures)
    if goal is not None and asked.failures is None:
        # most() counts from 1, and so does the first look, which no failure precedes.
        wanted = max(0, most(lambda f: f <= k and checked(n, k, beta, f - 1)[0] <= goal) - 1)
    least, cells = checked(n, k, beta, wanted)
    width = goal if goal is not None and least <= goal else least
    known = min(width, holdout_width(n, failure_share(beta, k, wanted, cells)))
    made = Option(asked, "guess-and-check", "holdout", "Guess-and-Check", least, width, known, n)
    return replace(made, cells=cells, failures=wanted)


_OPTIONS: dict[str, Callable[[Request], Option]] = {
    "leave-out": _leave_out,
    "leave-out-votes": _leave_out_votes,
    "gaussian": _gaussian,
    "gaussian-odds": _gaussian_odds,
    "votes": _votes,
    "votes-odds": _votes_odds,
    "discretised": _discretised,
    "splitting": _splitting,
    "guess-and-check": _guess_and_check,
}
