"""How a sparse vector divides its budget: one theorem, one function, known before any question is asked.

Letters: c hits, D the sensitivity in grid units, rho the threshold's noise, nu_i the noise of question i. A
question is above if q_i + nu_i >= T + rho. All noise is on the integers, where each proof only shifts rho by
D and the noise of each hit by 2D (by D if the questions are monotone), which are whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from holdfast.errors import InputError
from holdfast.mechanisms.values import round_down
from holdfast.privacy import events
from holdfast.privacy.composition import advanced_composition, optimal_composition
from holdfast.privacy.conversion import pure_to_zcdp

VALUE_SHARE = Fraction(1, 3)
"""The share of the budget that pays for numeric answers, where there are any."""

_LECTURE_VALUE_SHARE = Fraction(1, 9)
_MOST_HITS_SUMMED = 1 << 12


@dataclass(frozen=True, slots=True)
class Allocation:
    """Noise parameters in grid units: scales of Laplace noise, or variances of Gaussian noise. With "logistic" noise
    the questions' is logistic of that scale, the threshold's is Laplace noise.

    `redraw` says that every hit starts again with a fresh threshold. `questions` is the most questions that
    may be asked, None for any number. `value` is the noise of a numeric answer, if there are any.
    """

    noise: Literal["laplace", "gaussian", "logistic"]
    threshold: Fraction
    question: Fraction
    value: Fraction | None
    redraw: bool
    questions: int | None
    event: events.Event


def pure(
    D: int, epsilon: Fraction, c: int, *, monotone: bool, numeric: bool, share: Fraction | None = None
) -> Allocation:
    """One noisy threshold for all hits; epsilon_2/epsilon_1 = (2c)^(2/3), or c^(2/3) for monotone questions; or the
    threshold has the `share` of epsilon that is given.

    Guarantee: epsilon-DP for any number of questions with at most c hits.
    Reference: Lyu, Su and Li 2017, Algorithm 7, Theorems 4 and 5 (numeric: epsilon_3).
    """
    value = epsilon * VALUE_SHARE if numeric else Fraction(0)
    left = epsilon - value
    first, second = _split(left, c, monotone) if share is None else (share * left, (1 - share) * left)
    return Allocation(
        "laplace",
        D / first,
        (1 if monotone else 2) * c * D / second,
        c * D / value if numeric else None,
        False,
        None,
        events.PureMechanism(epsilon),
    )


def runs(D: int, each: Fraction, c: int, *, monotone: bool, numeric: bool) -> Allocation:
    """c runs of the one-hit sparse vector, each with a fresh threshold and its own epsilon.

    Guarantee: each run is `each`-DP, and the next one is chosen freely after it.
    Reference: Dwork and Roth 2014, Theorem 3.23 and section 3.6; the split inside a run as in `pure`, c = 1.
    """
    one = pure(D, each, 1, monotone=monotone, numeric=numeric)
    event = events.Repeat(events.PureMechanism(each), c)
    return Allocation("laplace", one.threshold, one.question, one.value, True, None, event)


def approximate(
    D: int, epsilon: Fraction, delta: Fraction, c: int, *, monotone: bool, numeric: bool
) -> Allocation:
    """The best of `pure` at epsilon and of `runs` that compose to (epsilon, delta).

    Guarantee: (epsilon, delta)-DP. The epsilon of a run is the largest found by bisection whose exact c-fold
    composition (Kairouz, Oh and Viswanath) stays within; advanced composition where c is too large for that.
    The choice looks at the noise of a question alone, which no data can move.
    """
    compose = optimal_composition if c <= _MOST_HITS_SUMMED else advanced_composition
    low, high = float(epsilon) / c, float(epsilon)
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if compose(middle, c, delta) <= epsilon else (low, middle)
    each = round_down(low)
    if compose(each, c, delta) > epsilon:
        each = epsilon / c
    restarted = runs(D, each, c, monotone=monotone, numeric=numeric)
    single = pure(D, epsilon, c, monotone=monotone, numeric=numeric)
    return min(single, restarted, key=lambda a: a.question)


def concentrated(D: int, rho: Fraction, c: int, *, monotone: bool, numeric: bool) -> Allocation:
    """The best of `pure` and `runs` under rho-zCDP: c * e tanh(e/2) <= rho for the epsilon e of a run.

    Guarantee: rho-zCDP. Reference: Bun and Steinke 2016, Proposition 1.4, where e = sqrt(2 rho/c) is the
    first-order form.
    """
    restarted = runs(D, _pure_within(rho / c), c, monotone=monotone, numeric=numeric)
    single = pure(D, _pure_within(rho), c, monotone=monotone, numeric=numeric)
    return min(single, restarted, key=lambda a: a.question)


def logistic(made: Allocation) -> Allocation:
    """The same with logistic noise on the questions, of which only the hits tell anything of the population.

    Guarantee: as `pure` and `runs`, whose event it keeps. Fix an outcome, and let the threshold's noise be D more for
    the neighbour. A question below is then no less likely to be below, and one above, whose distance to the threshold
    falls by 2D at most, is above with at least e^{-2D/B} of its chance: 1/(1 + e^-x) falls no faster than e^x. So
    every hit costs 2D/B (D/B if all questions move the same way), as with Laplace noise of scale B.
    Reference: docs/theorems.md, Theorem 32.
    """
    return replace(made, noise="logistic")


def lecture(D: int, epsilon: Fraction, delta: Fraction, c: int, *, numeric: bool) -> Allocation:
    """Sparse as it is usually taught, with its square root put right: rho ~ Lap(s), again after a hit, nu_i ~ Lap(2s).

    s = 2cD/epsilon for delta = 0 and sqrt(32 c ln(1/delta)) D/epsilon otherwise: c runs of epsilon_0 = 2D/s.
    Numeric answers take one ninth of the budget (the book takes less for delta > 0).
    Guarantee: epsilon-DP, or (epsilon, delta)-DP by composition of the runs, which is checked here.
    Reference: Dwork and Roth 2014, Algorithms 2 and 3, Theorems 3.25 and 3.28.
    """
    if delta:
        each = round_down(float(epsilon) / math.sqrt(8 * c * math.log(1 / delta)) * (1 - 2.0**-40))
        if advanced_composition(each, c, delta) > epsilon:
            raise InputError(
                "expected an epsilon for which Dwork and Roth's Theorem 3.28 holds (about 4 ln(1/delta)), "
                f"got {float(epsilon):g}; take less, or version='best'"
            )
        event: events.Event = events.Repeat(events.PureMechanism(each), c)
    else:
        each = epsilon / c
        event = events.PureMechanism(epsilon)
    value = each * _LECTURE_VALUE_SHARE if numeric else Fraction(0)
    s = 2 * D / (each - value)
    return Allocation("laplace", s, 2 * s, D / value if numeric else None, True, None, event)


def gaussian(
    D: int,
    epsilon: Fraction,
    delta: Fraction,
    c: int,
    k: int,
    *,
    monotone: bool,
    numeric: bool,
) -> Allocation:
    """Gaussian noise on one threshold and on at most k questions.

    Guarantee: (epsilon, delta)-DP. Fix an outcome, the places of at most c hits among k questions. Shifting
    rho by D and each hit's noise by 2D (D if monotone) makes it no less likely for the neighbour, and noise
    against shifted noise is R-zCDP with R = D^2/(2 s_1^2) + 2c D^2/s_2^2 (c D^2/(2 s_2^2) if monotone), so
    each outcome costs a delta of exp(-(epsilon-R)^2/(4R)); there are N = sum of C(k, j), j <= c, of them.
    With L = ln(N/delta) the largest R is (sqrt(L + epsilon) - sqrt(L))^2. The noises minimise s_1^2 + s_2^2.
    Reference: Zhu and Wang 2020, whose ln(k) for c = 1 leaves out the outcome without a hit (N = k + 1);
    Bun and Steinke 2016, Proposition 1.3.
    """
    log_outcomes = math.log(sum(math.comb(k, j) for j in range(min(c, k) + 1)))
    L = log_outcomes - math.log(delta)
    # (sqrt(L+e) - sqrt(L))^2 without the cancellation.
    root = float(epsilon) / (math.sqrt(L + float(epsilon)) + math.sqrt(L))
    R = round_down(root * root * (1 - 2.0**-40))
    value = R * VALUE_SHARE if numeric else Fraction(0)
    weight = (1 if monotone else 2) * math.sqrt(c)
    first = round_down(float(R - value) / (1 + weight))
    second = R - value - first
    return Allocation(
        "gaussian",
        D**2 / (2 * first),
        (1 if monotone else 4) * c * D**2 / (2 * second),
        c * D**2 / (2 * value) if numeric else None,
        False,
        k,
        events.ApproxMechanism(epsilon, delta),
    )


def _split(epsilon: Fraction, c: int, monotone: bool) -> tuple[Fraction, Fraction]:
    first = round_down(float(epsilon) / (1 + ((1 if monotone else 2) * c) ** (2 / 3)))
    if not first:
        raise InputError("expected enough epsilon for a sparse vector, got too little; take more or ask less")
    return first, epsilon - first


def _pure_within(rho: Fraction) -> Fraction:
    """The largest epsilon with epsilon tanh(epsilon/2) <= rho, or slightly less."""
    low, high = 0.0, math.sqrt(2 * float(rho)) + float(rho) + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle > 0 and pure_to_zcdp(middle) <= rho else (low, middle)
    if not low:
        raise InputError("expected enough rho for a sparse vector, got too little; take more or ask less")
    return round_down(low)
