"""What an interval is promised to cover, and what that leaves for the noise.

Two targets. The *table*: every answer is within its half-width of the value on the rows, all answers at once,
with probability 1 - beta; each answer gets a share w of beta. The *population*: the same for the law that the
rows were drawn from, however the questions were chosen.

For the population (docs/theorems.md, "Levels"): let rho_l = 2^l/(8n) and beta_l = beta/((l+1)(l+2)). An answer
given while the table's total loss, its own included, is at most rho_l is promised within

    h + o_l + alpha_l,    alpha_l = T1° at (rho_l, beta_l),    o_l = alpha_l/20,

where h satisfies E(|error on the table| - h)_+ <= w beta_l o_l and the shares w of all answers sum to at most 1.

A session that fixed its places when it was opened does better (docs/theorems.md, Theorem 31): each answer
that the leave-out theorem covers is missed with a chance of at most w times 19/20 of beta, after what was told before
it. What the noise of a learner or of weights may do by itself has w times beta/100 (Theorem 91). What the theorem does
not cover ends it for all that come later on these rows; they have the last beta/25, by the levels above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import BudgetError
from holdfast.ledger import UNCOVERED
from holdfast.privacy.conversion import pure_to_zcdp
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import miss
from holdfast.validity.leave_out import GRID_SHARE, LeaveOut
from holdfast.validity.transfer import concentrated_term

if TYPE_CHECKING:
    from holdfast.ledger import Moment
    from holdfast.planning.terms import Terms

_MOST_LEVELS = 64
_SLACK = 1 / 20
LEFT_OUT = 19 / 20
"""The part of beta for answers that the leave-out theorem covers, in a session that fixed its places."""
NOISE_ALONE = 1 / 100
"""The part for what the noise of a claim may do given the rows, where that is no part of the leave-out theorem's bound:
that is a chance in the true law, not in one where rows are left out, so it has its own part of a place
(docs/theorems.md, Theorem 91)."""
BY_LEVELS = 1 / 25
"""The part for what the leave-out theorem does not cover, in such a session."""
_STEP = 1.01
"""What was told is rounded up to the next power of this, so that a plan holds for more than one answer."""


@dataclass(frozen=True, slots=True)
class Promise:
    """How an answer's half-width is to be computed.

    `population` and `slack` are widths on the scale of a mean of numbers in [0,1]. With `population` 0 and
    `slack` 0 the target is the table and `allowance` is the chance of a miss on it; otherwise `allowance` is
    the expected overshoot that the noise may have, on the same scale.
    """

    target: str
    allowance: float
    population: float = 0.0
    slack: float = 0.0
    most_rho: float = math.inf
    """The table's total loss, this answer included, up to which the promise holds."""
    left_out: LeaveOut | None = None
    """The rows that the leave-out theorem leaves out; then `allowance` is the chance of a miss of the population."""
    rare: bool = False
    """Whether the interval is that of rare events, each number of rows with its share; what the answer tells is then
    read off it."""
    information: int = 0
    """What may have been told of the table before this answer, in the ledger's units."""


def share(queries: int | None, place: int) -> float:
    """The part of beta for the answer in this place (from 1): 1/queries, or an unbounded series of epochs.

    In epoch e the places 2^e .. 2^(e+1)-1 share 1/((e+1)(e+2)) equally; the sum over all places is 1.
    """
    if queries is not None:
        return 1 / queries
    epoch = place.bit_length() - 1
    return 1 / ((1 << epoch) * (epoch + 1) * (epoch + 2))


def own_share(place: int) -> float:
    """The share of one of any number of claims that stand outside the session's joint promise."""
    return share(None, place)


def left_out_beta(terms: Terms, place: int, count: int = 1) -> float:
    """How surely the answer in this place holds by the leave-out theorem, or several from it on: the chance that one
    does not."""
    return miss(terms.confidence) * LEFT_OUT * shares(terms.queries, place, count)


def grid_beta(terms: Terms, place: int, count: int = 1) -> float:
    """The same for claims by the recorded grid: in a plan that leaves out rows of its own the grid has a small part of
    a place's chance, and they have no more (docs/theorems.md, Theorem 91)."""
    by_the_grid = terms.places is None or terms.places.mixed
    return left_out_beta(terms, place, count) * (1.0 if by_the_grid else GRID_SHARE)


def noise_beta(terms: Terms, place: int, count: int = 1) -> float:
    """What the noise of a claim in this place, or in several from it on, may do by itself: see `NOISE_ALONE`."""
    return miss(terms.confidence) * NOISE_ALONE * shares(terms.queries, place, count)


def shares(queries: int | None, place: int, count: int) -> float:
    """The sum of `share` over `count` places from `place` on."""
    if queries is not None:
        return count / queries
    total, end = 0.0, place + count
    while place < end:
        following = min(end, 1 << place.bit_length())
        total += (following - place) * share(None, place)
        place = following
    return total


def answered(moment: Moment, terms: Terms) -> int:
    """How many places of the promise are taken: by the session's answers, or by all on the table."""
    return (moment.session if counts_its_own(terms) else moment.table).answers


def counts_its_own(terms: Terms) -> bool:
    """Whether the places of the promise are the session's own, not the table's."""
    apart = terms.part == "aside"  # what others are told of the rest is no claim about these units
    return terms.target == "table" or terms.places is not None or apart


def total_rho(units: int, terms: Terms) -> float:
    """The table's loss so far as zCDP, from the units of its own currency."""
    amount = units / UNITS
    return amount if terms.table.currency == "zcdp" else pure_to_zcdp(amount) if units else 0.0


def next_promises(
    moment: Moment, terms: Terms, *, place: int | None = None, count: int = 1, spent: float | None = None
) -> Iterator[Promise]:
    """What the next answer may promise, the narrowest first; or `count` answers together, from `place` on.

    `spent` is the table's loss before them; if it is not given, what the ledger knew at that moment.
    """
    weight = shares(terms.queries, answered(moment, terms) + 1 if place is None else place, count)
    rho = total_rho(moment.table.units, terms) if spent is None else spent
    beta = 1 - terms.confidence if terms.places is None else miss(terms.confidence) * BY_LEVELS
    return promises(terms.target, terms.rows, beta, weight, rho)


def left_out_promises(
    moment: Moment, terms: Terms, planned: int = 0, rare: bool = False
) -> Iterator[Promise]:
    """What the next answer may promise by the leave-out theorem, if that still holds: for a while, or just now.

    `planned` is what the session's own plan lets be told before this answer; it is promised for at least that. `rare`
    asks for an interval that is narrow near 0 and 1.
    """
    told, place = moment.table.information, moment.session.answers + 1
    if terms.places is None or told >= UNCOVERED or terms.rows_per_unit > 1:
        return
    share_of_beta = miss(terms.confidence) * LEFT_OUT * share(terms.queries, place)
    for bound in dict.fromkeys((planned if told <= planned else rounded(told), told)):
        left_out = terms.places.left_out(place)
        yield Promise(terms.target, share_of_beta, left_out=left_out, rare=rare, information=bound)


def rounded(told: int) -> int:
    """The next of the steps at which promises are made."""
    return told and max(
        told, math.ceil(_STEP ** math.ceil(math.log(told) / math.log(_STEP) - 1e-9) * (1 + 1e-12))
    )


def refuse_beyond_the_promise(asked: int, taken: int, terms: Terms) -> None:
    """BudgetError if the intervals were promised for fewer answers than those taken and those asked for."""
    if asked and terms.queries is not None and taken + asked > terms.queries:
        raise BudgetError(
            f"the intervals were promised for {terms.queries:,} queries on these rows; {taken:,} are answered and "
            f"this needs {asked:,}. Open a session for more queries.",
            requested=asked,
            remaining=terms.queries - taken,
        )


def promises(target: str, rows: int, beta: float, weight: float, rho: float) -> Iterator[Promise]:
    """The promises that may be made when the table's loss so far is `rho`, the narrowest first."""
    if target == "table":
        yield Promise(target, beta * weight)
        return
    for level in range(_MOST_LEVELS):
        most_rho = 2.0**level / (8 * rows)
        if most_rho > rho:
            beta_level = beta / ((level + 1) * (level + 2))
            population = concentrated_term(beta_level, most_rho)
            slack = population * _SLACK
            yield Promise(target, weight * beta_level * slack, population, slack, most_rho)
