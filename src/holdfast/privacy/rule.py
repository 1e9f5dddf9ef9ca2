"""What an event costs: one theorem, one small function, chosen by (type of event, notion of loss).

    pure     epsilon of epsilon-DP
    zcdp     rho of zCDP
    gdp      mu squared of Gaussian differential privacy
    squares  sum of epsilon squared, what the (epsilon, delta) filter and the odometers add up
    failure  the delta that comes with zcdp and squares

Each notion adds up under fully adaptive choice, so `Sequence` and `Repeat` are written once. A leaf returns a
Fraction (exact) or a float (already rounded up); sums are taken in grains, exactly. A missing rule raises
NoRuleError: unknown means no.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

from holdfast.errors import NoRuleError
from holdfast.privacy import event as events
from holdfast.privacy import key_losses
from holdfast.privacy.conversion import pure_to_zcdp
from holdfast.privacy.event import Event
from holdfast.privacy.loss import Gdp, Pure, Zcdp
from holdfast.privacy.rounding import down, float_up, from_grains, grains, up
from holdfast.privacy.subsampling import subsampled, subsampled_with_replacement

Notion = Literal["pure", "zcdp", "gdp", "squares", "failure"]
Rule = Callable[[Any], Fraction | float]

_ZERO = Fraction(0)
_HALF_PI = Fraction(355, 226)  # just above
_RULES: dict[tuple[type, Notion], Rule] = {}


def theorem(kind: type, *notions: Notion) -> Callable[[Rule], Rule]:
    """Register a function as the rule of one type of event in the notions named."""

    def register(rule: Rule) -> Rule:
        for notion in notions:
            _RULES[kind, notion] = rule
        return rule

    return register


def amount(event: Event, notion: Notion) -> int:
    """The loss of an event in grains, rounded up: what budgets add."""
    return grains(value(event, notion))


def value(event: Event, notion: Notion) -> Fraction:
    """The loss of an event as a number: the one place where losses are added.

    Guarantee: exact for a leaf whose theorem is rational (and a Group of it); whole grains for sums, so that
    a repetition is equal to the sequence and no order matters. NoRuleError where no theorem applies.
    Cost: one rule per leaf of the event.
    """
    rule = _RULES.get((type(event), notion))
    if rule is not None:
        loss = rule(event)
        return loss if isinstance(loss, Fraction) else Fraction(loss)
    match event:
        case events.Nothing():
            return _ZERO
        case events.Sequence(parts):
            return from_grains(sum(amount(part, notion) for part in parts))
        case events.Repeat(inner, count):
            return from_grains(count * amount(inner, notion))
    raise NoRuleError(
        f"expected an event with a theorem for {notion}, got {type(event).__name__}; "
        "use another mechanism or another kind of budget"
    )


def pure(event: Event) -> Pure:
    """The event's epsilon-DP loss. NoRuleError if it has none."""
    return Pure(number(event, "pure"))


def zcdp(event: Event) -> Zcdp:
    """The event's zCDP loss, by the best rule we have. NoRuleError if it has none."""
    return Zcdp(number(event, "zcdp"), min(1.0, number(event, "failure")))


def gdp(event: Event) -> Gdp:
    """The event's Gaussian loss: of Gaussian noise its own, of other mechanisms by the range of their loss.

    NoRuleError for what has a delta of its own.
    """
    if value(event, "failure"):
        raise NoRuleError("expected an event without a delta, got one with; see `approx`")
    return Gdp(number(event, "gdp"))


def number(event: Event, notion: Notion) -> float:
    """`value` as a float, rounded up."""
    return float_up(value(event, notion))


@theorem(events.Laplace, "pure")
def _laplace(event: events.Laplace) -> Fraction:
    """Dwork, McSherry, Nissim and Smith 2006; discrete: Ghosh, Roughgarden and Sundararajan 2009."""
    return event.sensitivity / event.scale


@theorem(events.Logistic, "pure")
def _logistic(event: events.Logistic) -> Fraction:
    """docs/theorems.md, Theorem 100: the logarithm of the law moves by at most 1/scale a step."""
    return event.sensitivity / event.scale


@theorem(events.Logistic, "zcdp")
def _logistic_zcdp(event: events.Logistic) -> Fraction:
    """docs/theorems.md, Theorem 100: as Gaussian noise of variance 2 scale^2; past epsilon = 4 pure DP is better."""
    squared = event.sensitivity_squared / (4 * event.scale**2)
    return min(squared, Fraction(pure_to_zcdp(event.sensitivity / event.scale)))


@theorem(events.Gaussian, "zcdp")
def _gaussian(event: events.Gaussian) -> Fraction:
    """Canonne, Kamath and Steinke 2020, section 2: sensitivity^2/(2 variance), as for continuous noise."""
    return event.sensitivity_squared / (2 * event.variance)


@theorem(events.Gaussian, "gdp")
def _gaussian_gdp(event: events.Gaussian) -> Fraction:
    """docs/theorems.md, Lemma 7: mu^2 = sensitivity^2/(variance - 4).

    Discrete Gaussian noise is, up to a factor 1 + 1e-33 on each probability, a continuous Gaussian of
    variance s^2 - 4 followed by a draw on the integers that sees only the sum: post-processing. The factor
    moves epsilon by less than 1e-33 a coordinate, which the margin of `up` in the profile covers. Requires:
    values and noise are integers, so a squared sensitivity that is not an integer is in other units and is
    refused.
    """
    if event.variance <= 4 or event.sensitivity_squared.denominator != 1:
        raise NoRuleError(
            "expected a discrete Gaussian in grid units, variance above 4, integer squared sensitivity, "
            "got another; use a finer grid, more noise, or a budget that counts rho"
        )
    return event.sensitivity_squared / (event.variance - 4)


@theorem(events.Votes, "pure")
def _votes(event: events.Votes) -> Fraction:
    """Fish, Reyzin and Rubinstein 2020, Algorithm 3, exactly: ln(1 + (1-2a)/(a n)) a vote."""
    return event.votes * Fraction(_vote(event))


@theorem(events.Votes, "squares")
def _votes_squares(event: events.Votes) -> Fraction:
    """Each vote is a charge of its own, so the squares of single votes add up."""
    return event.votes * Fraction(_vote(event)) ** 2


@theorem(events.Votes, "zcdp")
def _votes_zcdp(event: events.Votes) -> Fraction:
    """docs/theorems.md, Theorem 16: a vote is eta-bounded-range, eta = ln[(a+B)(1-a)/(a(1-a-B))] with B = (1-2a)/n.

    The ratio is 1 + B/(a(1-a-B)); with a = p/q both parts are whole numbers, so nothing cancels.
    """
    eta, epsilon = _vote_range(event), _vote(event)
    return event.votes * Fraction(up(min(eta * eta / 8, epsilon * math.tanh(epsilon / 2))))


@theorem(events.Votes, "gdp")
def _votes_gdp(event: events.Votes) -> Fraction:
    """docs/theorems.md, Theorems 16 and 290: each vote is eta-bounded-range, and epsilon-DP."""
    return event.votes * _range_to_gdp(min(Fraction(_vote_range(event)), 2 * Fraction(_vote(event))))


def _vote_range(event: events.Votes) -> float:
    """eta, rounded up."""
    p, q, n = event.flip.numerator, event.flip.denominator, event.rows
    return _log_one_plus(q * (q - 2 * p), p * ((q - p) * n - (q - 2 * p)))


def _vote(event: events.Votes) -> float:
    p, q = event.flip.numerator, event.flip.denominator
    return _log_one_plus(q - 2 * p, p * event.rows)


def _log_one_plus(numerator: int, denominator: int) -> float:
    """ln(1 + numerator/denominator), rounded up."""
    if numerator.bit_length() - denominator.bit_length() < 1000:
        return up(math.log1p(numerator / denominator))
    terms = math.log(numerator + denominator), -math.log(denominator)
    return up(sum(terms), sum(map(abs, terms)))


@theorem(events.BoundedRange, "pure")
@theorem(events.PureMechanism, "pure")
def _declared_pure(event: events.BoundedRange | events.PureMechanism) -> Fraction:
    """The declaration itself; epsilon-bounded-range implies epsilon-DP (Durfee and Rogers 2019)."""
    return event.epsilon


@theorem(events.BoundedRange, "zcdp")
def _bounded_range_zcdp(event: events.BoundedRange) -> Fraction:
    """Cesar and Rogers 2021: bounded range implies epsilon^2/8-zCDP; past epsilon = 8 pure DP is better."""
    return _range_to_zcdp(event.epsilon)


@theorem(events.BoundedRange, "gdp")
def _bounded_range_gdp(event: events.BoundedRange) -> Fraction:
    """docs/theorems.md, Theorem 290."""
    return _range_to_gdp(event.epsilon)


@theorem(events.Laplace, "gdp")
@theorem(events.Logistic, "gdp")
@theorem(events.PureMechanism, "gdp")
@theorem(events.Subsampled, "gdp")
@theorem(events.SubsampledWithReplacement, "gdp")
def _pure_gdp(event: Event) -> Fraction:
    """docs/theorems.md, Theorem 290: the loss lies between -epsilon and epsilon."""
    return _range_to_gdp(2 * value(event, "pure"))


@theorem(events.ApproxMechanism, "gdp")
def _approximate_gdp(event: events.ApproxMechanism) -> Fraction:
    """As `_approximate_zcdp`: but for an event of chance delta, the loss lies between -epsilon and epsilon."""
    return _range_to_gdp(2 * event.epsilon)


def _range_to_gdp(eta: Fraction) -> Fraction:
    """mu^2 = (pi/2) (eta/2)^2: what lies in a range of eta tells two tables apart no better (Theorem 290)."""
    return _HALF_PI * eta**2 / 4


def range_of_gdp(mu_squared: Fraction) -> float:
    """The widest range that costs no more than this: `_range_to_gdp` the other way, rounded down."""
    return down(2 * math.sqrt(mu_squared / _HALF_PI))


def _range_to_zcdp(eta: Fraction) -> Fraction:
    return min(eta * eta / 8, Fraction(pure_to_zcdp(eta)))


@theorem(events.ConcentratedMechanism, "zcdp")
def _declared_zcdp(event: events.ConcentratedMechanism) -> Fraction:
    """The declaration itself."""
    return event.rho


@theorem(events.ApproxMechanism, "zcdp")
def _approximate_zcdp(event: events.ApproxMechanism) -> float:
    """An (epsilon, delta)-DP pair is, but for an event of chance delta, post-processed randomized response.

    Kairouz, Oh and Viswanath 2015; Bun and Steinke 2016, section 8, with the tight pure conversion.
    """
    return pure_to_zcdp(event.epsilon)


@theorem(events.ApproxMechanism, "squares")
def _approximate_squares(event: events.ApproxMechanism) -> Fraction:
    """Whitehouse et al. 2023: the filter takes (epsilon, delta)-DP charges; delta is counted apart."""
    return event.epsilon**2


@theorem(events.ApproxMechanism, "failure")
@theorem(events.ConcentratedMechanism, "failure")
def _declared_failure(event: events.ApproxMechanism | events.ConcentratedMechanism) -> Fraction:
    """The declared delta."""
    return event.delta


@theorem(events.KeysByGaussian, "zcdp")
def _gaussian_keys(event: events.KeysByGaussian) -> Fraction:
    """`key_losses.gaussian_keys_rho`."""
    return key_losses.gaussian_keys_rho(event)


@theorem(events.KeysByGaussian, "failure")
def _gaussian_keys_failure(event: events.KeysByGaussian) -> float:
    """`key_losses.gaussian_keys_delta`."""
    return key_losses.gaussian_keys_delta(event)


@theorem(events.KeysByLogistic, "zcdp")
def _logistic_keys(event: events.KeysByLogistic) -> Fraction:
    """`key_losses.logistic_keys_rho`."""
    return key_losses.logistic_keys_rho(event)


@theorem(events.KeysByLogistic, "failure")
def _logistic_keys_failure(event: events.KeysByLogistic) -> float:
    """`key_losses.logistic_keys_delta`."""
    return key_losses.logistic_keys_delta(event)


@theorem(events.KeysByGaussian, "gdp")
def _gaussian_keys_gdp(event: events.KeysByGaussian) -> Fraction:
    """As `key_losses.gaussian_keys_rho`: given that no key of one unit alone is shown, Gaussian noise."""
    return value(events.Gaussian(2 * (event.rows * event.scale) ** 2, event.variance), "gdp")


@theorem(events.KeysByLogistic, "gdp")
def _logistic_keys_gdp(event: events.KeysByLogistic) -> Fraction:
    """As `key_losses.logistic_keys_rho`, whose ranges cost eta^2/8 each in zCDP."""
    return 8 * _range_to_gdp(Fraction(1)) * key_losses.logistic_keys_rho(event)


@theorem(events.Laplace, "zcdp")
@theorem(events.PureMechanism, "zcdp")
@theorem(events.SubsampledWithReplacement, "zcdp")
def _pure_zcdp(event: Event) -> float:
    """epsilon-DP implies epsilon tanh(epsilon/2)-zCDP."""
    return pure_to_zcdp(value(event, "pure"))


@theorem(events.Laplace, "squares")
@theorem(events.Logistic, "squares")
@theorem(events.BoundedRange, "squares")
@theorem(events.PureMechanism, "squares")
@theorem(events.Subsampled, "squares")
@theorem(events.SubsampledWithReplacement, "squares")
def _pure_squares(event: Event) -> Fraction:
    """One charge of its pure epsilon."""
    return value(event, "pure") ** 2


@theorem(events.Laplace, "failure")
@theorem(events.Logistic, "failure")
@theorem(events.Gaussian, "failure")
@theorem(events.Votes, "failure")
@theorem(events.BoundedRange, "failure")
@theorem(events.PureMechanism, "failure")
def _never_fails(event: Event) -> Fraction:
    """Nothing but the loss itself."""
    return _ZERO


@theorem(events.Subsampled, "pure")
def _subsampled(event: events.Subsampled) -> float:
    """`subsampling.subsampled`."""
    return subsampled(number(event.event, "pure"), event.rows, event.of)


@theorem(events.SubsampledWithReplacement, "pure")
def _subsampled_with_replacement(event: events.SubsampledWithReplacement) -> float:
    """`subsampling.subsampled_with_replacement`."""
    return subsampled_with_replacement(number(event.event, "pure"), event.rows, event.of)


@theorem(events.Subsampled, "zcdp")
def _subsampled_zcdp(event: events.Subsampled) -> Fraction:
    """The amplified pure loss, or the inner zCDP loss as it is: Rényi divergences are jointly quasi-convex
    (van Erven and Harremoës 2014, Thm 13), and given the subset the inner tables are equal or neighbours.
    """
    inner = attempt(event.event, "zcdp")
    through_pure = attempt(event, "pure")
    found = [] if inner is None else [inner]
    found += [] if through_pure is None else [Fraction(pure_to_zcdp(through_pure))]
    if not found:
        raise NoRuleError("expected a subsampled event with a pure or zCDP loss inside, got one with neither")
    return min(found)


@theorem(events.Subsampled, "failure")
@theorem(events.SubsampledWithReplacement, "failure")
@theorem(events.Group, "failure")
def _inner_never_fails(
    event: events.Subsampled | events.SubsampledWithReplacement | events.Group,
) -> Fraction:
    """These theorems are for losses without a delta; with one they would need another formula."""
    if value(event.event, "failure"):
        raise NoRuleError(
            f"expected an event without a delta inside {type(event).__name__}, got one with; "
            "charge it by `approx`, or take the delta outside"
        )
    return _ZERO


@theorem(events.Group, "pure")
def _group_pure(event: events.Group) -> Fraction:
    """size * epsilon: `group.group`."""
    return event.size * value(event.event, "pure")


@theorem(events.Group, "zcdp")
def _group_zcdp(event: events.Group) -> Fraction:
    """size^2 * rho (Bun and Steinke 2016, Prop. 1.9), or through the group's pure loss if that is less."""
    squared = event.size**2 * value(event.event, "zcdp")
    through_pure = attempt(event, "pure")
    return squared if through_pure is None else min(squared, Fraction(pure_to_zcdp(through_pure)))


@theorem(events.Group, "gdp")
def _group_gdp(event: events.Group) -> Fraction:
    """mu-GDP is (size * mu)-GDP for groups (Dong, Roth and Su 2019, Thm 2.14)."""
    return event.size**2 * value(event.event, "gdp")


@theorem(events.Group, "squares")
def _group_squares(event: events.Group) -> Fraction:
    """Every single charge's epsilon is multiplied by size."""
    return event.size**2 * value(event.event, "squares")


def attempt(event: Event, notion: Notion) -> Fraction | None:
    """`value`, or None where no theorem applies."""
    try:
        return value(event, notion)
    except NoRuleError:
        return None
