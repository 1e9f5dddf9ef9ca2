"""Laws that hold for every event, and each rule against the exact loss of its mechanism."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.privacy_loss import binomial, discrete_gaussian, gaussian_profile, max_log_ratio, renyi

from holdfast.errors import NoRuleError
from holdfast.privacy import Approx, Gdp, Pure, Zcdp, approx, events, gdp, gdp_delta, pure, zcdp
from holdfast.privacy.conversion import pure_to_zcdp, zcdp_to_approx
from holdfast.privacy.event import Event
from holdfast.privacy.rounding import grains
from holdfast.privacy.rule import amount

from . import strategies
from .strategies import all_events, concentrated_events, gaussian_events, pure_events

NOTIONS = ("pure", "zcdp", "gdp", "squares", "failure")
ORDERS = (1.0, 1.01, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
QUARTER = Fraction(1, 4)


def outcome(event: Event, notion: str) -> int | None:
    try:
        return amount(event, notion)  # type: ignore[arg-type]
    except NoRuleError:
        return None


def breaks_repeat(measure, event: Event, count: int) -> bool:  # type: ignore[no-untyped-def]
    repeated = measure(events.Repeat(event, count))
    return repeated != measure(events.Sequence((event,) * count))


@given(all_events, st.integers(1, 30))
def test_repeat_is_a_sequence(event: Event, count: int) -> None:
    for notion in NOTIONS:
        assert not breaks_repeat(lambda e, notion=notion: outcome(e, notion), event, count)


def test_the_repeat_law_catches_a_rule_that_forgets_the_count() -> None:
    def forgetful(event: Event) -> int:
        """A mutant with the flaw of dp-accounting: the count of a repeated event is ignored."""
        if isinstance(event, events.Repeat):
            return forgetful(event.event)
        if isinstance(event, events.Sequence):
            return sum(forgetful(part) for part in event.events)
        return amount(event, "zcdp")

    assert breaks_repeat(forgetful, events.BoundedRange(1), 10)


@given(st.lists(all_events, max_size=5), st.randoms(use_true_random=False))
def test_order_and_grouping_do_not_matter(parts: list[Event], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = parts[:]
    random.shuffle(shuffled)
    cut = random.randint(0, len(parts))
    nested = events.Sequence((events.Sequence(tuple(shuffled[:cut])), *shuffled[cut:]))
    for notion in NOTIONS:
        assert outcome(events.Sequence(tuple(parts)), notion) == outcome(nested, notion)


@given(all_events)
def test_nothing_costs_nothing_and_touching_rows_costs_something(event: Event) -> None:
    touched = not all(isinstance(leaf, events.Nothing) for leaf in leaves(event))
    for notion in NOTIONS:
        total = outcome(event, notion)
        assert total == outcome(events.Sequence((event, events.Nothing())), notion)
        if total is not None and notion != "failure":
            assert (total > 0) == touched


def leaves(event: Event) -> list[Event]:
    if isinstance(event, events.Sequence):
        return list(itertools.chain.from_iterable(leaves(part) for part in event.events))
    return leaves(event.event) if hasattr(event, "event") else [event]


@given(pure_events, st.floats(1e-9, 0.4))
def test_a_tighter_notion_never_reports_more(event: Event, delta: float) -> None:
    """At a delta <= pure; at a delta <= what zCDP converts to; zCDP <= what pure converts to."""
    epsilon, rho = pure(event).epsilon, zcdp(event).rho
    at_delta = approx(event, delta)
    assert at_delta.epsilon <= epsilon
    assert at_delta.epsilon <= zcdp_to_approx(rho, delta)
    assert rho <= pure_to_zcdp(epsilon) * (1 + 1e-12)


@given(gaussian_events, st.floats(1e-9, 0.4))
def test_the_exact_profile_is_within_its_grid_correction_of_zcdp(event: Event, delta: float) -> None:
    at_delta = approx(event, delta)
    assert at_delta.epsilon <= zcdp_to_approx(zcdp(event).rho, delta)
    assert gdp(event).mu_squared >= 2 * zcdp(event).rho * (1 - 1e-12)


@given(
    strategies.epsilon,
    strategies.epsilon,
    st.integers(1, 1000),
    st.sampled_from(["laplace", "gaussian", "votes", "range", "pure"]),
)
def test_more_noise_never_costs_more(first: Fraction, second: Fraction, size: int, kind: str) -> None:
    less, more = sorted((first, second))
    makers = {
        "laplace": lambda x: events.Laplace(size, x),
        "gaussian": lambda x: events.Gaussian(size, 4 + x),
        "votes": lambda x: events.Votes(size, size, x / 11),
        "range": lambda x: events.BoundedRange(1 / x),
        "pure": lambda x: events.PureMechanism(1 / x),
    }
    quiet, loud = makers[kind](less), makers[kind](more)
    wrapped = (
        lambda e: e,
        lambda e: events.Group(e, 3),
        lambda e: events.Subsampled(e, 1, 3),
        lambda e: events.SubsampledWithReplacement(e, 3, 3),
    )
    for wrap in wrapped:
        for notion in NOTIONS:
            a, b = outcome(wrap(quiet), notion), outcome(wrap(loud), notion)
            assert (a is None) == (b is None)
            assert b is None or b <= a * (1 + 1e-13)


@given(concentrated_events)
def test_losses_are_rounded_up_and_hardly(event: Event) -> None:
    exact = amount(event, "zcdp")
    reported = grains(zcdp(event).rho)
    assert exact <= reported <= exact * (1 + 2**-50) + 2**90


def test_amplifying_and_grouping_pull_in_their_directions() -> None:
    event = events.Laplace(1, 2)
    assert pure(events.Subsampled(event, 1, 100)) <= pure(event) <= pure(events.Group(event, 2))
    assert pure(events.Subsampled(event, 100, 100)) == pure(event)
    assert zcdp(events.Subsampled(events.Gaussian(1, 10), 1, 2)) == zcdp(events.Gaussian(1, 10))
    assert zcdp(events.Group(events.Gaussian(1, 10), 3)) == Zcdp(0.45)
    assert gdp(events.Group(events.Gaussian(1, 13), 3)) == Gdp(1.0)  # 9/9: no rounding inside a group
    assert approx(events.Subsampled(events.Gaussian(1, 10), 1, 1000), 1e-6).epsilon < 0.01


def test_views_by_example() -> None:
    assert pure(events.Laplace(1, 10)) == Pure(0.1)
    assert zcdp(events.Gaussian(2, 10)) == Zcdp(0.1)
    assert gdp(events.Gaussian(2, 14)) == Gdp(0.2)
    assert zcdp(events.BoundedRange(2)) == Zcdp(0.5)
    assert zcdp(events.BoundedRange(100)).rho == pytest.approx(100)
    assert zcdp(events.ConcentratedMechanism(Fraction(1, 8), Fraction(1, 64))) == Zcdp(0.125, 0.015625)
    assert approx(events.ApproxMechanism(1, Fraction(1, 1024)), Fraction(1, 1024)) == Approx(1.0, 1 / 1024)
    grouped = approx(events.Group(events.ApproxMechanism(Fraction(1, 2), Fraction(1, 10**6)), 3), 1e-4)
    assert grouped == Approx(1.5, 1e-4)
    assert (
        approx(events.Sequence((events.Laplace(1, 1), events.ApproxMechanism(1, 1e-9))), 1e-6).epsilon == 2.0
    )
    assert pure(events.Sequence(())) == Pure(0.0)


@pytest.mark.parametrize(
    ("view", "event"),
    [
        (pure, events.Gaussian(1, 10)),
        (pure, events.ConcentratedMechanism(1)),
        (pure, events.ApproxMechanism(1, 1e-6)),
        (pure, events.Subsampled(events.Gaussian(1, 10), 1, 2)),
        (zcdp, events.SubsampledWithReplacement(events.Gaussian(1, 10), 1, 2)),
        (zcdp, events.Group(events.ApproxMechanism(1, 1e-6), 2)),
        (zcdp, events.Subsampled(events.ConcentratedMechanism(1, 1e-6), 1, 2)),
        (gdp, events.ConcentratedMechanism(1)),
        (gdp, events.ApproxMechanism(1, 1e-6)),
        (gdp, events.Subsampled(events.Gaussian(1, 10), 1, 2)),
        (gdp, events.Gaussian(1, 4)),
        (gdp, events.Gaussian(Fraction(1, 2), 100)),
        (lambda e: approx(e, 1e-9), events.ApproxMechanism(1, 1e-6)),
        (lambda e: approx(e, 1e-9), events.SubsampledWithReplacement(events.Gaussian(1, 10), 1, 2)),
    ],
)
def test_unknown_means_no(view, event: Event) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(NoRuleError):
        view(event)
    with pytest.raises(NoRuleError):
        view(events.Sequence((events.Nothing(), event)))


def vote_laws(rows: int, ones: int, votes: int, flip: Fraction) -> list[float]:
    """The law of the number of ones among the votes, which is sufficient."""
    return [float(p) for p in binomial(votes, flip + (1 - 2 * flip) * Fraction(ones, rows))]


def vote_losses(rows: int, votes: int, flip: Fraction) -> tuple[float, float]:
    """The exact pure loss and the largest divergence per order over all neighbouring tables."""
    epsilon = rho = 0.0
    for ones in range(rows):
        pair = vote_laws(rows, ones, votes, flip), vote_laws(rows, ones + 1, votes, flip)
        epsilon = max(epsilon, max_log_ratio(*pair))
        rho = max([rho, *(renyi(p, q, a) / a for a in ORDERS for p, q in (pair, pair[::-1]))])
    return epsilon, rho


@pytest.mark.parametrize("flip", [Fraction(1, 20), QUARTER, Fraction(2, 5)])
@pytest.mark.parametrize(("rows", "votes"), [(1, 1), (2, 3), (5, 1), (5, 7), (20, 4)])
def test_votes_by_enumeration(rows: int, votes: int, flip: Fraction) -> None:
    event = events.Votes(rows, votes, flip)
    epsilon, rho = vote_losses(rows, votes, flip)
    assert epsilon <= pure(event).epsilon <= epsilon * (1 + 1e-9)
    assert rho <= zcdp(event).rho
    if rows > 2 and flip >= QUARTER:
        assert zcdp(event).rho <= rho * 1.5
    twin_epsilon, twin_rho = vote_losses(
        rows, votes, flip / 2
    )  # the mechanism flips half as often as declared
    assert twin_epsilon > pure(event).epsilon
    assert twin_rho > zcdp(event).rho


@given(
    st.integers(1, 10**300), st.fractions(Fraction(1, 10**300), Fraction(499, 1000)), st.integers(1, 10**9)
)
def test_votes_against_mpmath(rows: int, flip: Fraction, votes: int) -> None:
    """The formulas of docs/theorems.md as printed, with digits enough for what cancels in them."""
    event = events.Votes(rows, votes, flip)
    with mp.workdps(1000):
        a = mp.mpf(flip.numerator) / flip.denominator
        b = (1 - 2 * a) / rows
        epsilon = mp.log1p(b / a)
        eta = mp.log((a + b) * (1 - a) / (a * (1 - a - b)))
        rho = min(eta**2 / 8, epsilon * mp.tanh(epsilon / 2))
        for ours, truth in ((pure(event).epsilon, votes * epsilon), (zcdp(event).rho, votes * rho)):
            assert truth <= ours
            assert ours <= truth * (1 + mp.mpf(10) ** -11) or ours < 1e-290


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0])
def test_pure_and_bounded_range_against_their_worst_pairs(epsilon: float) -> None:
    high = 1 / (1 + math.exp(-epsilon))
    pair = [high, 1 - high], [1 - high, high]
    divergences = [renyi(*pair, a) / a for a in ORDERS]
    rho = zcdp(events.PureMechanism(epsilon)).rho
    assert max(divergences) <= rho * (1 + 1e-11)  # the divergences are plain floats
    assert divergences[0] == pytest.approx(rho, rel=1e-11)
    if epsilon < 8:  # the twin: bounded range claimed for randomized response
        assert max(divergences) > epsilon * epsilon / 8

    claimed = zcdp(events.BoundedRange(epsilon)).rho
    worst = 0.0
    for top in (i * epsilon / 50 for i in range(1, 50)):
        # Two outcomes with log-ratios top and top - epsilon; the masses are fixed by summing to one.
        q = (1 - math.exp(top - epsilon)) / (math.exp(top) - math.exp(top - epsilon))
        first, second = [q * math.exp(top), 1 - q * math.exp(top)], [q, 1 - q]
        worst = max([worst, *(renyi(first, second, a) / a for a in ORDERS)])
    assert worst <= claimed
    assert worst > claimed / 1.21 or epsilon > 3  # a claim 1.1 times tighter in epsilon would be caught


@pytest.mark.parametrize("variance", [0.5, 5.0, 30.0])
def test_discrete_gaussian_divergences(variance: float) -> None:
    first, second = discrete_gaussian(variance, 0, 120), discrete_gaussian(variance, 1, 120)
    with mp.workdps(60):
        for alpha in (1.5, 2.0, 5.0, 10.0):
            total = mp.fsum(p**alpha * q ** (1 - mp.mpf(alpha)) for p, q in zip(first, second, strict=True))
            divergence = float(mp.log(total) / (alpha - 1))
            assert divergence <= alpha * zcdp(events.Gaussian(1, variance)).rho * (1 + 1e-12)
            if alpha == 2.0:  # integer orders are attained; variance x 1.1 would claim too little
                assert divergence > alpha * zcdp(events.Gaussian(1, variance * 1.1)).rho


@pytest.mark.parametrize("variance", [4.5, 6.0, 10.0, 30.0])
def test_discrete_gaussian_profile_needs_its_correction(variance: float) -> None:
    """The profile of the discrete law lies below mu^2 = 1/(s^2 - 4); it exceeds the continuous 1/s^2."""
    first, second = discrete_gaussian(variance, 1, 120), discrete_gaussian(variance, 0, 120)
    mu = math.sqrt(gdp(events.Gaussian(1, variance)).mu_squared)
    twin_fails = False
    for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0, 2.0):
        with mp.workdps(60):
            parts = [p - mp.exp(mp.mpf(epsilon)) * q for p, q in zip(first, second, strict=True)]
            delta = mp.fsum(part for part in parts if part > 0)
        assert delta <= gdp_delta(epsilon, mu)
        twin_fails |= bool(delta > gaussian_profile(epsilon, variance**-0.5))
    assert twin_fails


def test_the_two_stage_sample_is_as_close_as_the_rule_says() -> None:
    """sum_k exp(-(k-c)^2/8) hardly depends on c: the factor 1 + 1e-33 in the Gaussian rule."""
    with mp.workdps(60):
        sums = [
            mp.fsum(mp.exp(-((k - mp.mpf(c) / 8) ** 2) / 8) for k in range(-80, 81)) / mp.sqrt(8 * mp.pi)
            for c in range(9)
        ]
        assert max(abs(s - 1) for s in sums) < mp.mpf("2e-34")


@pytest.mark.parametrize("size", [2, 5])
def test_group_of_approximate_against_the_exact_gaussian(size: int) -> None:
    mu = 0.3
    for epsilon in (0.1, 0.5, 1.0):
        delta = gaussian_profile(epsilon, mu)
        single = events.ApproxMechanism(epsilon, float(delta))
        truth = gaussian_profile(size * epsilon, size * mu)
        bound = approx(events.Group(single, size), 0.9)
        assert bound.epsilon <= size * epsilon * (1 + 1e-12)
        # The group's delta may be used at this epsilon only from the formula's value on.
        formula = float(delta * (mp.exp(size * epsilon) - 1) / (mp.exp(epsilon) - 1))
        assert truth <= formula
        with pytest.raises(NoRuleError):
            approx(events.Group(single, size), formula * 0.99)


@pytest.mark.parametrize(
    "event", [events.PureMechanism(Fraction(10) ** 200), events.Laplace(1, Fraction(1, 10**160))]
)
def test_a_loss_that_hides_nothing_is_told_by_its_own_theorem(event: Event) -> None:
    """Its mu squared would leave the floats."""
    assert approx(event, 1e-6).epsilon == pytest.approx(pure(event).epsilon)
