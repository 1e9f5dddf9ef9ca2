"""An option says all its numbers, and they agree with the theorem that it names."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from holdfast import validity
from holdfast.errors import InputError
from holdfast.privacy import event, rule
from holdfast.validity import Epoch, Option, Request
from holdfast.validity.gaussian_answers import population_term
from holdfast.validity.guess_and_check import checked
from holdfast.validity.noise_planner import choose
from holdfast.validity.vote_answers import votes_term

ASKED = Request(20_000, 100, 0.95, 0.1, grid=8)
BETA = ASKED.beta


@pytest.mark.parametrize("within", [None, 0.1])
def test_a_gaussian_option_agrees_with_its_theorem(within: float | None) -> None:
    found = choose(("gaussian",), replace(ASKED, within=within))
    (epoch,) = found.epochs
    s = found.standard_deviation
    assert s is not None and found.mu is not None and found.rho is not None
    assert (epoch.answers, epoch.left_out, Fraction(s**2)) == (100, 0, pytest.approx(epoch.noise))
    assert found.width == validity.gaussian_width(20_000, 100, BETA, s, 8)
    assert found.rho == pytest.approx(100 * 64 / (2 * s * s))
    assert found.mu == pytest.approx(8 * math.sqrt(100 / (s * s - 4)))
    assert found.mu**2 >= 64 * 100 / (epoch.noise - 4)
    assert found.population == pytest.approx(population_term(BETA, found.mu))
    assert 0 < found.population < found.width
    assert (found.private, found.odds, found.votes, found.rows_per_answer) == (True, False, None, 20_000)
    if within is not None:
        assert found.fits and found.width <= within < validity.gaussian_width(20_000, 100, BETA, s * 1.001, 8)


def test_an_option_of_votes_agrees_with_its_theorem() -> None:
    found = choose(("votes",), ASKED)
    assert found.votes == found.rows_per_answer == found.epochs[0].noise
    assert found.width == validity.votes_width(20_000, 100, BETA, found.votes)
    assert found.population == pytest.approx(votes_term(20_000, 100 * found.votes, 0.25, BETA))
    told = event.Repeat(event.Votes(20_000, found.votes, Fraction(1, 4)), 100)
    assert found.rho == pytest.approx(rule.zcdp(told).rho)
    assert found.mu is None and found.standard_deviation is None and found.private


@pytest.mark.parametrize(("name", "theorem"), [("gaussian-odds", "V"), ("votes-odds", "W")])
def test_an_option_of_odds_is_half_as_wide_as_its_longest_interval(name: str, theorem: str) -> None:
    found = choose((name,), Request(20_000, 100, 0.95))
    if found.votes is not None:
        limits = validity.votes_odds(20_000, 100, BETA, found.votes)(0.5)
    else:
        assert found.standard_deviation is not None
        limits = validity.gaussian_odds(20_000, 100, BETA, found.standard_deviation)(0.5)
    assert found.width == (limits[1] - limits[0]) / 2
    assert (found.theorem, found.odds, found.private) == (theorem, True, True)


@pytest.mark.parametrize("name", ["discretised", "splitting", "guess-and-check"])
def test_exact_answers_have_no_noise_and_no_loss_that_could_be_counted(name: str) -> None:
    found = choose((name,), Request(20_000, 100, 0.95, 0.1))
    assert (found.private, found.epochs, found.rho, found.mu) == (False, (), None, None)
    assert 0 < found.population <= found.width
    assert "not private" in str(found)


def test_splitting_into_parts_too_small_to_tell_anything_has_no_width() -> None:
    assert choose(("splitting",), Request(100, 50, 0.95)).narrowest == math.inf
    assert choose(("splitting",), Request(100, 2, 0.95)).narrowest < 1


def test_guesses_may_fail_as_often_as_the_width_bears() -> None:
    for queries, failures, bears in ((100, None, 20), (5, None, 4), (100, 3, 3)):
        found = choose(("guess-and-check",), Request(20_000, queries, 0.95, failures=failures))
        assert found.failures == bears and found.width == checked(20_000, queries, BETA, bears)[0]
    for within in (0.03, 0.05):
        asked = Request(20_000, 100, 0.95, within)
        bears = choose(("guess-and-check",), asked).failures
        assert bears is not None and checked(20_000, 100, BETA, bears)[0] <= within
        assert bears == 99 or checked(20_000, 100, BETA, bears + 1)[0] > within


def falling() -> Option:
    """A plan as the leave-out theorem makes it: less and less noise, and its own rows to leave out in each epoch."""
    epochs = Epoch(60, Fraction(40_000), 300), Epoch(40, Fraction(10_000), 200)
    return Option(ASKED, "leave-out", "gaussian", "leave m rows out", 0.05, 0.05, 0.02, 20_000, epochs)


def test_an_option_holds_noise_that_falls() -> None:
    """The loss of all answers is the sum over the epochs, in zCDP and in mu squared."""
    found = falling()
    assert found.rho == pytest.approx(64 * (60 / 40_000 + 40 / 10_000) / 2)
    assert found.mu is not None
    assert found.mu**2 == pytest.approx(64 * (60 / 39_996 + 40 / 9_996))
    assert found.standard_deviation == 200
    assert found.told(found.epochs[1]) == event.Gaussian(64, 10_000)


def test_a_loss_that_forgets_an_epoch_is_caught() -> None:
    found = falling()
    forgetful = replace(found, epochs=(Epoch(100, found.epochs[0].noise),))
    assert forgetful.rho is not None and found.rho is not None
    assert forgetful.rho < 0.5 * found.rho


@pytest.mark.parametrize(
    "bad",
    [
        {"rows": 0},
        {"queries": 1.5},
        {"confidence": 1.0},
        {"within": 0.0},
        {"grid": 0},
        {"flip": 0.5},
        {"failures": -1},
    ],
)
def test_bad_requests_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        replace(ASKED, **bad).checked()  # type: ignore[arg-type]


def test_whole_floats_are_welcome() -> None:
    assert replace(ASKED, rows=2e4, queries=1e2).checked() == ASKED  # type: ignore[arg-type]
