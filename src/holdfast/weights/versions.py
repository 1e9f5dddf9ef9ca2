"""What private multiplicative weights promise, and what that takes: four versions, one record of terms.

Letters: n rows, N points, k questions, alpha the certified error on the table, alpha0 the least true gap of
an update, w how far the sparse vector's noise reaches, c the most updates. All noise is in steps of 1/GRID
row.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from holdfast.errors import InputError
from holdfast.mechanisms import allocation
from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach
from holdfast.mechanisms.values import round_down, round_up
from holdfast.privacy.conversion import pure_to_zcdp
from holdfast.privacy.event import Event, Gaussian, Laplace, PureMechanism, Sequence
from holdfast.query.region import GRID
from holdfast.weights.logistic_terms import Looks, logistic_terms

_SHARES = [0.06 + 0.016 * i for i in range(25)]
_ANSWER_PART = 0.02
_ROUNDING = 4  # steps: a fraction, a threshold and a noisy answer are each rounded to whole steps


@dataclass(frozen=True, slots=True)
class WeightsTerms:
    """All that a run of the weights rests on; public, fixed before a row is read.

    `threshold` and `answer_reach` are in steps, `answer_noise` is a variance ("gaussian") or a scale
    ("laplace") in steps. `eta` is the step of an update, or None for the projection on the certified gap.
    In the "logistic" version no noisy answer follows an alarm, and `looks` has what its comparisons rest on.
    """

    version: str
    within: float
    least_gap: float
    updates: int
    questions: int
    threshold: int
    run_epsilon: Fraction
    answer: str
    answer_noise: Fraction
    answer_reach: int
    eta: float | None = None
    looks: Looks | None = None
    threshold_share: float | None = None

    @property
    def event(self) -> Event:
        """What one update costs: a one-hit sparse vector, and the noisy answer that follows its hit."""
        if self.looks is not None:
            return PureMechanism(self.run_epsilon)
        noise: Event = Laplace(GRID, self.answer_noise)
        if self.answer == "gaussian":
            noise = Gaussian(GRID**2, self.answer_noise)
        return Sequence((PureMechanism(self.run_epsilon), noise))

    @property
    def rho(self) -> float:
        """The most that all updates can cost, in rho."""
        own = float(self.answer_noise)
        if self.looks is not None:
            return self.updates * pure_to_zcdp(self.run_epsilon)
        answer = GRID**2 / (2 * own) if self.answer == "gaussian" else pure_to_zcdp(GRID / own)
        return self.updates * (pure_to_zcdp(self.run_epsilon) + answer)

    @property
    def epsilon(self) -> float:
        """The most that all updates can cost, in pure epsilon; infinite with Gaussian answers."""
        if self.answer == "gaussian":
            return math.inf
        if self.looks is not None:
            return self.updates * float(self.run_epsilon)
        return self.updates * float(self.run_epsilon + GRID / self.answer_noise)

    def to_json(self) -> dict[str, Any]:
        return {k: str(v) if isinstance(v, Fraction) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_json(saved: dict[str, Any]) -> WeightsTerms:
        numbers = ("run_epsilon", "answer_noise")
        fields: dict[str, Any] = {k: Fraction(v) if k in numbers else v for k, v in saved.items()}
        fields["looks"] = fields["looks"] and Looks(**fields["looks"])
        return WeightsTerms(**fields)


def logistic(
    rows: int,
    points: int,
    questions: int,
    failure: float,
    told: int,
    *,
    secret: float,
    most: float,
    pure: bool,
    within: float | None = None,
) -> WeightsTerms:
    """The version for the population, on the meter of the leave-out theorem: see `logistic_terms`.

    Guarantee: with probability 1 - failure - secret every answer is within `within` of the population while nobody else
    is told anything of the rows, and within what it says in any case; at most c alarms are raised before the weights
    answer everything by themselves. Reference: docs/theorems.md, Theorem 60.
    Cost: c runs of one alarm each, charged when they begin; an alarm tells what a comparison tells.
    """
    plan = logistic_terms(
        rows, points, questions, failure, told, secret=secret, most=most, pure=pure, within=within
    )
    return WeightsTerms(
        "logistic",
        plan.within,
        plan.least_gain,
        plan.alarms,
        questions + plan.alarms,
        round(plan.looks.threshold * rows * GRID),
        plan.run_epsilon,
        "none",
        Fraction(0),
        0,
        None,
        plan.looks,
        plan.threshold_share,
    )


def best(
    rows: int, points: int, questions: int, within: float, failure: float, answer: str = "gaussian"
) -> WeightsTerms:
    """The version with the best constants.

    Guarantee: with probability 1 - failure, every one of `questions` answers is within `within` of the table,
    and at most floor(ln N/(2 alpha0^2)) updates happen. Proof: the sparse vector's noise stays within w, the
    answers' within e <= alpha0/2, except with probability `failure`. A lazy answer is off by at most
    T + w = alpha. An update has a true gap of at least T - w = alpha0, and its sign and the lower bound
    m = max(alpha0, |noisy gap| - e) are right; tilting until the query has moved by m lowers KL(table ||
    weights) by at least kl(p+m || p) >= 2 m^2 (Hoeffding's lemma, Pinsker), from at most ln N, never below 0.
    After that many updates no query has a gap of alpha0 left, so the weights answer everything.
    Reference: Hardt and Rothblum 2010; Dwork and Roth 2014, section 4.2.
    Cost: c runs of a one-hit sparse vector with Laplace noise and c noisy answers, each charged when it
    begins. The share w/alpha that costs least is searched on a grid.
    """
    return _cheapest(rows, points, questions, within, failure, answer, _SHARES)


def _cheapest(
    rows: int, points: int, questions: int, within: float, failure: float, answer: str, shares: list[float]
) -> WeightsTerms:
    """The least costly of the shares that can be certified; InputError if none can."""
    tried = (_best(rows, points, questions, within, failure, answer, share) for share in shares)
    options = [terms for terms in tried if terms is not None]
    if not options:
        raise InputError(
            f"cannot plan: within={within:g} is less than noise in steps of 1/{GRID:,} row can certify "
            f"on {rows:,} rows; ask "
            "for a wider promise"
        )
    return min(options, key=lambda t: t.rho if answer == "gaussian" else t.epsilon)


def _best(
    rows: int, points: int, questions: int, within: float, failure: float, answer: str, share: float
) -> WeightsTerms | None:
    """The terms with a reach of `share` of the width; None where that is less than rounding takes."""
    unit = rows * GRID
    reach = math.floor(share * within * unit)
    alpha0 = within - 2 * share * within
    farthest = math.floor(alpha0 / 2 * unit)
    if reach < _ROUNDING or farthest < 1:
        return None
    c = max(1, math.floor(math.log(points) / (2 * alpha0**2) * (1 + 1e-12)))
    epsilon = _run_epsilon(reach, c, questions, failure)
    noise, distance = _answer_noise(answer, epsilon, failure / (3 * c), farthest)
    threshold = math.floor(within * unit) - reach
    return WeightsTerms("best", within, alpha0, c, questions, threshold, epsilon, answer, noise, distance)


def _run_epsilon(reach: int, updates: int, questions: int, failure: float) -> Fraction:
    """About the least epsilon of a run whose noise stays within `reach` steps, at least `_ROUNDING`."""

    def fits(epsilon: Fraction) -> bool:
        return run_reach(epsilon, updates, questions, failure) <= reach

    high = Fraction(1)
    for _ in range(4):
        high = round_up(high * Fraction(run_reach(high, updates, questions, failure) + 1, max(1, reach)))
    # Far from rounding this is all but it, and one step of a thousandth suffices; near it the steps grow.
    low, step = high, Fraction(1001, 1000)
    while not fits(high):
        low, high, step = high, round_up(high * step), round_up(step**2)
    while high > low * Fraction(1002, 1000):
        middle = round_up((low + high) / 2)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def run_reach(epsilon: Fraction, updates: int, questions: int, failure: float) -> int:
    """How far, in steps, all noise of the sparse vectors stays, except with probability 2 failure/3."""
    one = allocation.runs(GRID, epsilon, 1, monotone=False, numeric=False)
    total = laplace_reach(one.threshold, failure / (3 * updates), False)
    return total + laplace_reach(one.question, failure / (3 * questions), False) + _ROUNDING


def _answer_noise(answer: str, epsilon: Fraction, allowance: float, most: int) -> tuple[Fraction, int]:
    """Noise that costs a small part of the run's epsilon, but never reaches farther than `most` steps."""
    if answer == "laplace":
        scale = round_down(GRID / (0.05 * float(epsilon)))
        while laplace_reach(scale, allowance, False) > most:
            scale = round_down(float(scale) * 0.9)
        return scale, laplace_reach(scale, allowance, False)
    variance = round_down(GRID**2 / (2 * _ANSWER_PART * pure_to_zcdp(epsilon)))
    while gaussian_reach(variance, allowance, False) > most:
        variance = round_down(float(variance) * 0.8)
    return variance, gaussian_reach(variance, allowance, False)


def best_within(
    rows: int,
    points: int,
    questions: int,
    failure: float,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
) -> WeightsTerms:
    """The terms of `best` with the smallest certified error that the budget affords; InputError if none."""
    answer = "laplace" if rho is None else "gaussian"

    def fits(within: float) -> bool:
        try:
            terms = _cheapest(rows, points, questions, within, failure, answer, _SHARES[::3])
        except InputError:  # too narrow for any budget
            return False
        return terms.rho <= rho if rho is not None else terms.epsilon <= (epsilon or 0)

    low, high = 1e-7, 1.0
    if not fits(high * (1 - 2.0**-20)):
        raise InputError(
            f"cannot plan: this budget certifies no error below 1 for {questions:,} questions on {rows:,} rows and "
            f"{points:,} points; give more budget, fewer columns, or ask independently"
        )
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return best(rows, points, questions, high, failure, answer)


def textbook(
    rows: int, points: int, questions: int, epsilon: float, delta: float, failure: float
) -> WeightsTerms:
    """Dwork and Roth's version: c = 4 ln N/alpha^2 updates, eta = alpha/2, error 3 alpha once alpha >= T.

    Guarantee: (epsilon, delta)-DP over all updates; error 3 alpha with probability 1 - failure, at the least
    alpha for which it is proved. Reference: Dwork and Roth 2014, Algorithm 6 and Theorems 4.13 to 4.15, with
    the denominator of 4.15 put right.
    """
    alpha = textbook_within(rows, points, questions, epsilon, delta, failure) / 3
    if 3 * alpha >= 1:
        raise InputError(
            f"cannot plan: the textbook's version certifies no error below 1 here (it proves "
            f"{3 * alpha:.3g}); take version='best'"
        )
    c = math.ceil(4 * math.log(points) / alpha**2)
    one = allocation.lecture(GRID, Fraction(epsilon), Fraction(delta), c, numeric=True)
    assert one.value is not None
    # The allocation's one run covers both the test and the answer; here they are two events.
    test = 2 * GRID / one.threshold
    threshold = math.floor(
        _textbook_threshold(alpha, rows, points, questions, epsilon, delta, failure) * rows * GRID
    )
    reach = laplace_reach(one.value, failure / (3 * c), False)
    return WeightsTerms(
        "textbook", 3 * alpha, alpha, c, questions, threshold, test, "laplace", one.value, reach, alpha / 2
    )


def textbook_within(
    rows: int, points: int, questions: int, epsilon: float, delta: float, failure: float
) -> float:
    """The error 3 alpha that Dwork and Roth's theorem certifies, at the least alpha >= T(alpha)."""
    low, high = 1e-9, 1e9
    for _ in range(80):
        alpha = math.sqrt(low * high)
        fits = alpha >= _textbook_threshold(alpha, rows, points, questions, epsilon, delta, failure)
        low, high = (low, alpha) if fits else (alpha, high)
    return 3 * high


def _textbook_threshold(
    alpha: float, rows: int, points: int, questions: int, epsilon: float, delta: float, failure: float
) -> float:
    c = 4 * math.log(points) / alpha**2
    if not delta:
        return 18 * c * (math.log(2 * questions) + math.log(4 * c / failure)) / (epsilon * rows)
    root = (2 + 32 * math.sqrt(2)) * math.sqrt(c * math.log(2 / delta))
    return root * (math.log(questions) + math.log(max(1.0, 4 * c) / failure)) / (epsilon * rows)


def lecture(
    rows: int, points: int, questions: int, epsilon: float, delta: float, failure: float
) -> WeightsTerms:
    """Hardt and Rothblum's version with sqrt(n)*epsilon below sigma, counting updates only.

    The step eta = ln^(1/4) N/sqrt(n), the threshold T = 4 sigma (ln k + ln(1/beta)) and the halt after
    n sqrt(ln N) updates are theirs. Their threshold has no noise and its privacy proof counts borderline
    rounds; here every update is a run of the sparse vector whose questions have noise of scale sigma, which
    is proved and charged by itself. Reference: Hardt and Rothblum 2010, Figure 1.
    """
    sigma = lecture_sigma(rows, points, epsilon, delta)
    unit = rows * GRID
    threshold = 4 * sigma * (math.log(questions) + math.log(1 / failure))
    c = math.floor(rows * math.sqrt(math.log(points)))
    run = round_down(2 * (1 + 2 ** (2 / 3)) / 2 ** (2 / 3) / (sigma * rows))
    within = threshold + run_reach(run, c, questions, failure) / unit
    if within >= 1:
        raise InputError(
            f"cannot plan: Hardt and Rothblum's version certifies no error below 1 here (it proves "
            f"{within:.3g}); take version='best'"
        )
    scale = round_down(sigma * unit)
    eta = math.log(points) ** 0.25 / math.sqrt(rows)
    reach = laplace_reach(scale, failure / (3 * c), False)
    return WeightsTerms(
        "lecture", within, 0.0, c, questions, math.floor(threshold * unit), run, "laplace", scale, reach, eta
    )


def lecture_sigma(rows: int, points: int, epsilon: float, delta: float) -> float:
    """10 ln(1/delta) ln^(1/4) N/(sqrt(n) epsilon): the scale of Hardt and Rothblum 2010, constants corrected."""
    if not 0 < delta < 1:
        raise InputError(f"expected delta between 0 and 1 for Hardt and Rothblum's version, got {delta!r}")
    return 10 * math.log(1 / delta) * math.sqrt(math.sqrt(math.log(points))) / (math.sqrt(rows) * epsilon)


def lecture_within(
    rows: int, points: int, questions: int, epsilon: float, delta: float, failure: float
) -> float:
    """The error T + sigma ln(k/beta) that their threshold and noise allow."""
    sigma = lecture_sigma(rows, points, epsilon, delta)
    return 5 * sigma * (math.log(questions) + math.log(1 / failure))


def independent_within(rows: int, questions: int, rho: float, failure: float) -> float:
    """The error of k independent Gaussian answers at the same budget, all at once."""
    return (
        gaussian_reach(round_up(Fraction(questions) / (2 * Fraction(rho))), failure / questions, False) / rows
    )


def mwem_within(rows: int, points: int, questions: int, epsilon: float) -> float:
    """Hardt, Ligett and McSherry's 2 sqrt(ln N/T) + 10 T ln k/(epsilon n) at its best T; in expectation."""
    best_rounds = max(
        1.0, (math.sqrt(math.log(points)) * epsilon * rows / (10 * math.log(questions))) ** (2 / 3)
    )
    errors: list[float] = [
        2 * math.sqrt(math.log(points) / t) + 10 * t * math.log(questions) / (epsilon * rows)
        for t in (math.floor(best_rounds), math.ceil(best_rounds))
    ]
    return min(errors)
