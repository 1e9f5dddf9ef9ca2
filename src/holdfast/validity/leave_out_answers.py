"""Answers planned by the leave-out theorem: Gaussian noise or votes, falling by epochs, from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.falling import Schedule, falling_noise
from holdfast.validity.leave_out import LeaveOut, kappa
from holdfast.validity.leave_out_votes import vote_charge, votes_as_noisy, votes_half_width
from holdfast.validity.normal_quantile import upper_quantile
from holdfast.validity.option import EPOCHS, Epoch
from holdfast.validity.search import least

MOST_ANSWERS = 10**18
_MORE_VOTES = (1.0, 1.03, 1.1)
"""How many more votes than Gaussian noise of the same size asks for are tried."""
_A_LITTLE_NARROWER = (0.995, 0.98, 0.95, 0.9)
"""Votes that are as noisy as this share of a half-width allows keep the half-width."""
_HALVINGS = 9
_VOTES_A_ROW = 20
"""More votes than this for each row narrow nothing: what is left is the sampling error."""


def gaussian_epochs(
    rows: int,
    queries: int,
    beta: float,
    grid: int = 1,
    epochs: int = EPOCHS,
    within: float | None = None,
    wider: float = 1.0,
) -> tuple[Epoch, ...]:
    """The falling noise with the least common half-width, in squared steps of the grid; empty for none.

    With `within`, if it can be kept: the noise that spends the least information and keeps it. `wider` is for when no
    width is asked for: the most noise that so many times the least half-width allows.
    """
    if queries > MOST_ANSWERS:
        return ()
    found = falling_noise(rows, queries, beta, grid=grid, epochs=epochs, wider=wider)
    if found is None:
        return ()
    best = found.epochs
    if within is not None and found.half_width <= within:
        # No answer can be noisier than its half-width allows, so that these bounds hold the least information.
        low = math.log(queries * (upper_quantile(beta / (2 * queries)) / within) ** 2)
        high = max(low, math.log(found.information))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            tried = falling_noise(
                rows, queries, beta, grid=grid, epochs=epochs, most_information=math.exp(middle)
            )
            if tried is not None and tried.half_width <= within:
                best, high = tried.epochs, middle
            else:
                low = middle
    return best


def gaussian_epochs_width(rows: int, epochs: tuple[Epoch, ...], beta: float, grid: int = 1) -> float:
    """The half-width of the widest answer: within an epoch the last is.

    Guarantee: Pr[some |a_j - q_j(P)| > this] <= beta, for every adaptive analyst and at any stopping time.
    Requires: independent rows, and nothing told of them before; answers are means into [0,1] of values on the grid
    plus discrete Gaussian noise; noise and rows to leave out are those of the epoch, fixed before the first answer.
    Reference: docs/theorems.md, Theorem 23.
    """
    answers = sum(epoch.answers for epoch in epochs)
    return Schedule(rows, answers, beta, grid, epochs).half_width if epochs else math.inf


@lru_cache(maxsize=1024)
def votes_epochs(
    rows: int,
    queries: int,
    beta: float,
    flip: float,
    within: float | None = None,
    epochs: int = EPOCHS,
    wider: float = 1.0,
) -> tuple[Epoch, ...]:
    """The falling noise of `gaussian_epochs` by votes that are as noisy together, a few more where that is narrower.

    With `within`, if it can be kept: about the fewest votes that keep it. `wider` is that of `gaussian_epochs`.
    """
    if within is not None:
        for share in _A_LITTLE_NARROWER:
            noises = gaussian_epochs(rows, queries, beta, epochs=epochs, within=share * within)
            for more in _MORE_VOTES:
                found = _as_votes(rows, noises, flip, more)
                if votes_epochs_width(rows, found, beta, flip) <= within:
                    return found
    noises = gaussian_epochs(rows, queries, beta, epochs=epochs, wider=wider)
    tried = [_as_votes(rows, noises, flip, more) for more in _MORE_VOTES]
    return min(tried, key=lambda made: votes_epochs_width(rows, made, beta, flip))


def _as_votes(rows: int, noises: tuple[Epoch, ...], flip: float, more: float) -> tuple[Epoch, ...]:
    """Votes for each epoch, `more` times as many as are as noisy as it; none where votes have no charge."""
    if rows < 3:
        return ()
    found = []
    for epoch in noises:
        votes = min(more * votes_as_noisy(math.sqrt(epoch.noise) / rows, flip), _VOTES_A_ROW * rows)
        found.append(Epoch(epoch.answers, Fraction(math.ceil(votes)), _bearable(rows, epoch.left_out, flip)))
    return tuple(found)


def votes_epochs_width(rows: int, epochs: tuple[Epoch, ...], beta: float, flip: float) -> float:
    """The half-width of the widest answer by votes, `noise` of them for each answer of an epoch.

    Guarantee: Pr[some |a_j - q_j(P)| > this] <= beta, for every adaptive analyst and at any stopping time.
    Requires: as `gaussian_epochs_width`, with votes in the place of noise.
    Reference: docs/theorems.md, Theorem 27.
    """
    answers, votes, widest = sum(epoch.answers for epoch in epochs), 0, 0.0
    for epoch in epochs:
        each = int(epoch.noise)
        before = votes + (epoch.answers - 1) * each
        charged = (up(before * vote_charge(rows, epoch.left_out, flip)) if before else 0.0,)
        left_out = LeaveOut(rows, (epoch.left_out,))
        widest = max(widest, votes_half_width(left_out, charged, each, flip, down(beta) / answers))
        votes += epoch.answers * each
    return widest if epochs else math.inf


@lru_cache(maxsize=1024)
def leave_out(
    rows: int,
    queries: int,
    beta: float,
    standard_deviation: float | None = None,
    grid: int = 1,
    epochs: int = EPOCHS,
) -> float:
    """The half-width of falling Gaussian noise in so many epochs, or of one given noise, in steps of the grid.

    Reference: docs/theorems.md, Theorem 23.
    """
    if standard_deviation is None:
        return gaussian_epochs_width(rows, gaussian_epochs(rows, queries, beta, grid, epochs), beta, grid)
    variance = Fraction(standard_deviation) ** 2
    return _best_left_out(
        rows,
        queries,
        lambda m: gaussian_epochs_width(rows, (Epoch(queries, variance, m),), beta, grid),
    )


@lru_cache(maxsize=1024)
def leave_out_by_votes(
    rows: int,
    queries: int,
    beta: float,
    votes: int | None = None,
    flip: float = 0.25,
    epochs: int = EPOCHS,
) -> float:
    """The half-width of votes, ever more of them by epochs; or of one given number for every answer.

    Reference: docs/theorems.md, Theorem 27.
    """
    if votes is None:
        return votes_epochs_width(rows, votes_epochs(rows, queries, beta, flip, epochs=epochs), beta, flip)
    return _best_left_out(
        rows, queries, lambda m: votes_epochs_width(rows, (Epoch(queries, Fraction(votes), m),), beta, flip)
    )


def _bearable(rows: int, left_out: int, flip: float) -> int:
    """So many rows to leave out, or fewer where votes would charge a tenth more than noise does."""
    while left_out > 1 and not vote_charge(rows, left_out, flip) <= 1.1 * (1 - 2 * flip) ** 2 * kappa(
        rows, left_out
    ):
        left_out = left_out * 9 // 10
    return left_out


def _best_left_out(rows: int, queries: int, width: Callable[[int], float]) -> float:
    """The least width over numbers of rows to leave out."""
    if rows < 2 or queries > MOST_ANSWERS:
        return math.inf
    return least(lambda x: width(min(rows - 1, max(1, round(math.exp(x))))), 0.0, math.log(rows), 30)[0]
