"""The event of each recipe, written down once more: what is charged for is what is done."""

from __future__ import annotations

from fractions import Fraction

import pytest

import holdfast as hf
from holdfast.mechanisms.votes import FLIP
from holdfast.planning.plan import Recipe
from holdfast.planning.recipe_event import event_of, pure_epsilon
from holdfast.privacy import events
from holdfast.query.expression import Column
from holdfast.query.grouping import grouping
from holdfast.query.predicate import Always
from holdfast.query.statistic import Statistic, Workload, workload

SCHEMA = hf.Schema(age=hf.Integer(-10, 120), kind=hf.Category("a", "b", "c"))
ROWS = 1000
EIGHTH = Fraction(1, 8)


def totals_of(kind: str) -> Workload:
    """A fraction; a sum of span 130 and sensitivity 120; a mean, whose sum (span 130) and count weigh 65 each."""
    value = None if kind == "fraction" else Column("age")
    return workload(Statistic(kind, Always(), value), SCHEMA, ROWS)  # type: ignore[arg-type]


def test_a_vote_is_flipped_as_the_recipe_says_or_as_votes_are() -> None:
    own, usual = (Recipe("votes", Fraction(50), 50, flip) for flip in (EIGHTH, None))
    assert EIGHTH != FLIP
    assert event_of(totals_of("fraction"), own, ROWS) == events.Votes(ROWS, 50, EIGHTH)
    assert event_of(totals_of("fraction"), usual, ROWS) == events.Votes(ROWS, 50, FLIP)


def test_votes_are_cast_once_for_each_measurement() -> None:
    vote = events.Votes(ROWS, 50, EIGHTH)
    recipe = Recipe("votes", Fraction(50), 50, EIGHTH)
    assert len(totals_of("mean").measurements) == 2
    assert event_of(totals_of("mean"), recipe, ROWS) == events.Repeat(vote, 2)
    assert event_of(totals_of("sum"), recipe, ROWS) == vote


def test_a_variance_for_each_span_grows_with_its_square() -> None:
    """Sensitivity and noise of a mean's sum are those of contributions in [-65, 65], of its count in {0, 65}."""
    recipe = Recipe("gaussian", Fraction(9), ROWS, per_span=True)
    assert event_of(totals_of("sum"), recipe, ROWS) == events.Sequence(
        (events.Gaussian(130**2, Fraction(9 * 130**2)),)
    )
    assert event_of(totals_of("mean"), recipe, ROWS) == events.Sequence(
        (events.Gaussian(130**2, Fraction(9 * 130**2)), events.Gaussian(65**2, Fraction(9 * 65**2)))
    )
    assert event_of(totals_of("sum"), Recipe("gaussian", Fraction(9), ROWS), ROWS) == events.Gaussian(
        130**2, Fraction(9)
    )


def test_noise_and_sampling_are_as_the_recipe_says() -> None:
    full, sampled = Recipe("laplace", Fraction(9), ROWS), Recipe("subsampled-laplace", Fraction(9), 20)
    noise = events.Laplace(130, Fraction(9))
    assert event_of(totals_of("sum"), full, ROWS) == noise
    assert event_of(totals_of("sum"), sampled, ROWS) == events.Subsampled(noise, 20, ROWS)


@pytest.mark.parametrize(("groups", "selections"), [(1, 3), (3, 6)])
def test_a_quantile_is_three_selections_in_each_group_that_a_row_touches(
    groups: int, selections: int
) -> None:
    by = grouping(SCHEMA, "kind") if groups == 3 else None
    bins = grouping(SCHEMA, "age", [0, 30, 60])
    totals = workload(Statistic("quantile", Always(), by=by, rank=Fraction(1, 2), bins=bins), SCHEMA, ROWS)
    found = event_of(totals, Recipe("exponential", EIGHTH, ROWS), ROWS)
    assert found == events.Repeat(events.BoundedRange(EIGHTH), selections)


def test_gaussian_noise_has_no_pure_epsilon() -> None:
    assert pure_epsilon(events.Laplace(3, Fraction(4))) == pytest.approx(3 / 4)
    assert pure_epsilon(events.Gaussian(1, Fraction(1))) is None
