"""The places of a session under attack: noise as planned, widths as promised."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np

from holdfast.validity.falling import falling_noise
from holdfast.validity.places import Places, by_gaussian, by_votes, places_from_json

ROWS, QUERIES, BETA = 2000, 500, 0.05


def planned(**how: float) -> Places:
    schedule = falling_noise(ROWS, QUERIES, BETA, **how)  # type: ignore[arg-type]
    assert schedule is not None
    return by_gaussian(schedule)


def worst_errors(places: Places, games: int, exact: bool = False) -> np.ndarray:
    """The error of the last answer: a vote of the features that looked predictive, which are coins."""
    draw = np.random.default_rng(7)
    found = []
    for _ in range(games):
        features = draw.integers(0, 2, (ROWS, QUERIES - 1))
        labels = draw.integers(0, 2, ROWS)
        weights = np.empty(QUERIES - 1)
        for place in range(1, QUERIES):
            sigma = 0.0 if exact else float(places.epoch_of(place)[0].noise) ** 0.5 / ROWS
            agreement = np.mean(features[:, place - 1] == labels) + sigma * draw.standard_normal()
            weights[place - 1] = (agreement - 0.5) / (sigma**2 + 0.25 / ROWS)
        guess = (features - 0.5) @ weights > 0
        sigma = 0.0 if exact else float(places.epoch_of(QUERIES)[0].noise) ** 0.5 / ROWS
        found.append(np.mean(guess == labels) + sigma * draw.standard_normal() - 0.5)
    return np.array(found)


def test_the_last_answer_holds_under_attack_and_exact_answers_do_not() -> None:
    """The twin tells exact values, and the same attack leaves the interval in most games."""
    places = planned()
    assert (worst_errors(places, 40) > places.width).sum() <= 6  # 2 are allowed on average
    assert (worst_errors(places, 40, exact=True) > places.width).mean() > 0.5


def test_widths_grow_within_an_epoch_and_the_widest_is_promised() -> None:
    places = planned()
    for place in range(1, QUERIES + 1):
        epoch, last = places.epoch_of(place)
        told = places.told_before(place)
        assert places.half_width(epoch, places.left_out(place), told, BETA / QUERIES) <= places.width
        assert told <= places.told_before(last)
    assert places.width == places.widest(BETA)


def test_later_places_are_wider_and_votes_nearly_as_narrow() -> None:
    first = planned()
    later = by_gaussian(falling_noise(ROWS, QUERIES, BETA, begun=first.told_before(QUERIES), mixed=True))  # type: ignore[arg-type]
    assert later.mixed and later.width > first.width
    large = falling_noise(10**7, 1000, BETA)
    assert large is not None
    votes, noise = by_votes(large, Fraction(1, 8)), by_gaussian(large)
    assert noise.width < votes.width < 1.02 * noise.width


def test_what_a_ledger_keeps_comes_back() -> None:
    for places in (planned(), Places(ROWS), by_votes(falling_noise(10**7, 20, BETA), Fraction(1, 8))):  # type: ignore[arg-type]
        kept = json.loads(json.dumps(places.to_json()))
        again = places_from_json(places.rows, kept)
        assert again == places or (places.width == np.inf and again.epochs == ())
