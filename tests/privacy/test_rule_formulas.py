"""Every rule against the formula of its theorem, in sixty digits: never below it, and hardly above."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath as mp
import pytest

from holdfast.errors import NoRuleError
from holdfast.privacy import events, zcdp
from holdfast.privacy.event import Event
from holdfast.privacy.rule import _RULES, Notion, value

Formula = Callable[[Event], mp.mpf]


def exact(number: Fraction | int) -> mp.mpf:
    return mp.mpf(Fraction(number).numerator) / Fraction(number).denominator


def as_zcdp(epsilon: mp.mpf) -> mp.mpf:
    return epsilon * mp.tanh(epsilon / 2)


def a_vote(event: events.Votes) -> mp.mpf:
    flip = exact(event.flip)
    return mp.log(1 + (1 - 2 * flip) / (flip * event.rows))


def votes_as_zcdp(event: events.Votes) -> mp.mpf:
    flip = exact(event.flip)
    moved = (1 - 2 * flip) / event.rows
    eta = mp.log((flip + moved) * (1 - flip) / (flip * (1 - flip - moved)))
    return event.votes * min(eta**2 / 8, as_zcdp(a_vote(event)))


def ranged(eta: mp.mpf) -> mp.mpf:
    """355/226 is just above pi/2: Theorem 290."""
    return mp.mpf(355) / 226 * eta**2 / 4


def votes_as_gdp(event: events.Votes) -> mp.mpf:
    flip = exact(event.flip)
    moved = (1 - 2 * flip) / event.rows
    eta = mp.log((flip + moved) * (1 - flip) / (flip * (1 - flip - moved)))
    return event.votes * ranged(min(eta, 2 * a_vote(event)))


def amplified(event: events.Subsampled) -> mp.mpf:
    inner = truth(event.event, "pure")
    return min(inner, mp.log(1 + (mp.mpf(event.rows) / event.of) * (mp.exp(inner) - 1)))


def drawn_again(event: events.SubsampledWithReplacement) -> mp.mpf:
    return event.rows * mp.log(1 + (mp.exp(truth(event.event, "pure")) - 1) / event.of)


def any_key(shown: Callable[[int], mp.mpf], keys: int, rows: int, scale: int) -> mp.mpf:
    """The chance that a key of one unit alone is shown: keys of equal weight, or rows in any of them."""
    if rows > 1:
        return min(mp.mpf(1), rows * max(shown(j * scale) / j for j in range(1, rows + 1)))
    return max(1 - (1 - shown(math.isqrt(scale**2 // t))) ** t for t in range(1, keys + 1))


def key_by_gaussian(event: events.KeysByGaussian) -> mp.mpf:
    """Q((j - 1/2)/s), moved by 2^-40 so that the float's error stays on the private side."""
    step = (1 - mp.mpf(2) ** -40) / mp.sqrt(2 * exact(event.variance))

    def shown(weight: int) -> mp.mpf:
        above = event.threshold - weight
        return mp.erfc((above - mp.mpf(1) / 2) * step) / 2 if above >= 1 else mp.mpf(1)

    return any_key(shown, event.keys, event.rows, event.scale)


def key_by_logistic(event: events.KeysByLogistic) -> mp.mpf:
    def shown(weight: int) -> mp.mpf:
        return 1 / (1 + mp.exp(-exact(event.rate) * (event.least - 1 + weight - event.threshold)))

    if event.rows > 1:
        return any_key(shown, 1, event.rows, 1)
    return 1 - (1 - shown(1)) ** event.keys


FORMULAS: dict[tuple[type, Notion], Formula] = {
    (events.KeysByGaussian, "zcdp"): lambda e: (e.rows * e.scale) ** 2 / exact(e.variance),
    (events.KeysByGaussian, "failure"): key_by_gaussian,
    (events.KeysByLogistic, "zcdp"): lambda e: max(e.keys, e.rows**2) * exact(e.rate) ** 2 / 4,
    (events.KeysByLogistic, "failure"): key_by_logistic,
    (events.Laplace, "pure"): lambda e: exact(e.sensitivity) / exact(e.scale),
    (events.Logistic, "pure"): lambda e: exact(e.sensitivity) / exact(e.scale),
    (events.Logistic, "zcdp"): lambda e: min(
        exact(e.sensitivity_squared) / (4 * exact(e.scale) ** 2),
        as_zcdp(exact(e.sensitivity) / exact(e.scale)),
    ),
    (events.Gaussian, "zcdp"): lambda e: exact(e.sensitivity_squared) / (2 * exact(e.variance)),
    (events.Gaussian, "gdp"): lambda e: exact(e.sensitivity_squared) / (exact(e.variance) - 4),
    (events.Votes, "gdp"): votes_as_gdp,
    (events.BoundedRange, "gdp"): lambda e: ranged(exact(e.epsilon)),
    (events.ApproxMechanism, "gdp"): lambda e: ranged(2 * exact(e.epsilon)),
    (events.KeysByGaussian, "gdp"): lambda e: 2 * exact((e.rows * e.scale) ** 2) / (exact(e.variance) - 4),
    (events.KeysByLogistic, "gdp"): lambda e: 2 * max(e.keys, e.rows**2) * ranged(exact(e.rate)),
    (events.Votes, "pure"): lambda e: e.votes * a_vote(e),
    (events.Votes, "squares"): lambda e: e.votes * a_vote(e) ** 2,
    (events.Votes, "zcdp"): votes_as_zcdp,
    (events.BoundedRange, "pure"): lambda e: exact(e.epsilon),
    (events.BoundedRange, "zcdp"): lambda e: min(exact(e.epsilon) ** 2 / 8, as_zcdp(exact(e.epsilon))),
    (events.PureMechanism, "pure"): lambda e: exact(e.epsilon),
    (events.ConcentratedMechanism, "zcdp"): lambda e: exact(e.rho),
    (events.ConcentratedMechanism, "failure"): lambda e: exact(e.delta),
    (events.ApproxMechanism, "zcdp"): lambda e: as_zcdp(exact(e.epsilon)),
    (events.ApproxMechanism, "squares"): lambda e: exact(e.epsilon) ** 2,
    (events.ApproxMechanism, "failure"): lambda e: exact(e.delta),
    (events.Subsampled, "pure"): amplified,
    (events.SubsampledWithReplacement, "pure"): drawn_again,
    (events.Group, "pure"): lambda e: e.size * truth(e.event, "pure"),
    (events.Group, "gdp"): lambda e: e.size**2 * truth(e.event, "gdp"),
    (events.Group, "squares"): lambda e: e.size**2 * truth(e.event, "squares"),
}
PURE = (events.Laplace, events.BoundedRange, events.PureMechanism, events.Subsampled)
PURE += (events.SubsampledWithReplacement, events.Logistic)


def truth(event: Event, notion: Notion) -> mp.mpf:
    """The loss by the theorem; KeyError where there is none."""
    kind = type(event)
    if (kind, notion) in FORMULAS:
        return FORMULAS[kind, notion](event)
    if notion == "failure":
        return mp.mpf(0)
    if notion == "squares" and kind in PURE:
        return truth(event, "pure") ** 2
    if notion == "gdp" and kind in PURE:
        return ranged(2 * truth(event, "pure"))
    if notion == "zcdp" and kind in (events.Laplace, events.PureMechanism, events.SubsampledWithReplacement):
        return as_zcdp(truth(event, "pure"))
    if notion == "zcdp" and kind in (events.Subsampled, events.Group):
        scale = event.size**2 if kind is events.Group else 1
        ways = [scale * truth(event.event, "zcdp")]
        with contextlib.suppress(KeyError):
            ways.append(as_zcdp(truth(event, "pure")))
        return min(ways)
    raise KeyError(notion)


def cases() -> Iterator[Event]:
    third = Fraction(1, 3)
    yield from (events.Laplace(2, 7), events.Laplace(5, third))
    yield from (events.Logistic(3, 5, 7), events.Logistic(5, 25, third))
    yield from (events.Gaussian(1, 9), events.Gaussian(12, Fraction(2001, 10)))
    long = Fraction(2**520 - 2**501 + 1, 2**521)  # near 1/2, and of numbers that are large themselves
    for flip in (Fraction(1, 4), Fraction(1, 64), Fraction(1, 2**1010), long):
        yield from (events.Votes(1, 3, flip), events.Votes(2, 5, flip), events.Votes(1000, 7, flip))
    yield from (events.BoundedRange(third), events.BoundedRange(12), events.PureMechanism(Fraction(7, 3)))
    yield from (
        events.ConcentratedMechanism(third, Fraction(1, 10**6)),
        events.ApproxMechanism(3, Fraction(1, 99)),
    )
    for inner in (events.PureMechanism(3), events.BoundedRange(Fraction(1, 2)), events.Laplace(1, 3)):
        yield from (events.Subsampled(inner, 3, 50), events.Subsampled(inner, 49, 50))
        yield events.SubsampledWithReplacement(inner, 4, 30)
        yield events.Group(inner, 3)
    yield events.Subsampled(events.Gaussian(1, 9), 3, 50)
    yield events.Group(events.Gaussian(1, 9), 4)
    for keys, rows in ((1, 1), (5, 1), (1, 4)):
        yield events.KeysByGaussian(keys, rows, 16, Fraction(2001, 10), 120)
        yield events.KeysByLogistic(keys, rows, 30, Fraction(1, 5), 90)


@pytest.mark.parametrize("event", list(cases()), ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("notion", ["pure", "zcdp", "gdp", "squares", "failure"])
def test_a_rule_is_its_theorem(event: Event, notion: Notion) -> None:
    with mp.workdps(60 if "Votes" not in str(event) else 800):
        try:
            expected = truth(event, notion)
        except KeyError:
            with pytest.raises(NoRuleError):
                value(event, notion)
            return
        charged = exact(value(event, notion))
        assert expected * (1 - mp.mpf(10) ** -50) <= charged <= expected * (1 + mp.mpf(2) ** -40)


def test_every_rule_has_a_case() -> None:
    """A new rule cannot skip this file."""
    tried = set()
    for event in cases():
        for notion in ("pure", "zcdp", "gdp", "squares", "failure"):
            try:
                value(event, notion)
                tried.add((type(event), notion))
            except NoRuleError:
                pass
    assert set(_RULES) <= tried


def test_what_fails_surely_fails_with_chance_one() -> None:
    often = events.Repeat(events.ApproxMechanism(1, Fraction(3, 10)), 4)
    assert zcdp(often).delta == 1.0


def test_a_gaussian_that_is_too_small_or_between_the_integers_has_no_gaussian_profile() -> None:
    for event in (events.Gaussian(1, 4), events.Gaussian(Fraction(1, 2), 9)):
        with pytest.raises(NoRuleError, match="variance above 4"):
            value(event, "gdp")
    assert value(events.Gaussian(1, Fraction(9, 2)), "gdp") == 2


def test_deltas_inside_a_subset_or_a_group_are_refused() -> None:
    leaky = events.ApproxMechanism(1, Fraction(1, 100))
    for event in (events.Subsampled(leaky, 1, 2), events.Group(leaky, 2)):
        with pytest.raises(NoRuleError, match="without a delta"):
            value(event, "failure")
