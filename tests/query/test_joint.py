"""Theorem 75: what one row does to all totals at once, tried on every pair of rows of small grids."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from holdfast.query import joint
from holdfast.query.joint import Joint

Vector = tuple[Fraction, ...]


def row(z: tuple[int, ...], reaches: tuple[int, ...], squares: bool, products: bool) -> Vector:
    """(1, z, z_i^2, z_i z_j), each over its scale."""
    one = [Fraction(a, reach) for a, reach in zip(z, reaches, strict=True)]
    pairs = itertools.combinations(one, 2)
    return (
        Fraction(1),
        *one,
        *([a * a for a in one] if squares else []),
        *([a * b for a, b in pairs] if products else []),
    )


def rows(reaches: tuple[int, ...], squares: bool, products: bool) -> list[Vector]:
    cube = itertools.product(*(range(-reach, reach + 1) for reach in reaches))
    found = [row(z, reaches, squares, products) for z in cube]
    return [*found, tuple(Fraction() for _ in found[0])]


def in_groups(vectors: list[Vector], groups: int) -> list[Vector]:
    nothing = vectors[-1]
    return [
        tuple(itertools.chain(*(one if place == group else nothing for place in range(groups))))
        for one in vectors
        for group in range(groups)
    ]


def for_two(vectors: list[Vector]) -> list[Vector]:
    """A row that satisfies both of two conditions, one of them, or none."""
    nothing = vectors[-1]
    return [a + b for one in vectors for a in (one, nothing) for b in (one, nothing)]


def worst(vectors: Iterable[Vector]) -> tuple[Fraction, Fraction]:
    """The greatest distance of two vectors: L1, and L2 squared."""
    pairs = [
        [abs(a - b) for a, b in zip(one, other, strict=True)]
        for one, other in itertools.combinations(list(vectors), 2)
    ]
    return max(sum(pair, Fraction()) for pair in pairs), max(
        sum((a * a for a in pair), Fraction()) for pair in pairs
    )


CASES: dict[str, tuple[Joint, list[Vector]]] = {
    "a variance": (joint.moments((4,), 1, squares=True, products=False), rows((4,), True, False)),
    "a variance by groups": (
        joint.moments((3,), 3, squares=True, products=False),
        in_groups(rows((3,), True, False), 3),
    ),
    "a covariance": (joint.moments((3, 2), 1, squares=False, products=True), rows((3, 2), False, True)),
    "a correlation": (joint.moments((3, 2), 1, squares=True, products=True), rows((3, 2), True, True)),
    "three numbers": (joint.moments((2, 1, 1), 1, squares=True, products=True), rows((2, 1, 1), True, True)),
    "a correlation by groups": (
        joint.moments((2, 1), 2, squares=True, products=True),
        in_groups(rows((2, 1), True, True), 2),
    ),
    "two means, of conditions that overlap": (
        joint.moments((3,), 1, squares=False, products=False).twice(),
        for_two(rows((3,), False, False)),
    ),
    "two means, of conditions that do not": (
        joint.moments((3,), 2, squares=False, products=False).apart(),
        in_groups(rows((3,), False, False), 2),
    ),
    "shares by groups": (
        joint.shares(3),
        [tuple(Fraction(place == one) for place in range(6)) for one in range(7)],
    ),
    "shares that overlap": (
        joint.shares(1).twice(),
        for_two([(Fraction(1), Fraction()), (Fraction(), Fraction(1)), (Fraction(), Fraction())]),
    ),
    "a ratio": (
        joint.sums((5, 3), (3, 3), 1),
        [(Fraction(a, 3), Fraction(b, 3)) for a in range(-2, 4) for b in range(4)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_two_rows_are_further_apart_than_is_charged(name: str) -> None:
    """And some are as far as that: in L2 always (a ratio's is rounded up to a whole number)."""
    made, vectors = CASES[name]
    l1, l2 = worst(vectors)
    assert l1 <= made.l1
    assert l2 <= made.l2_squared < l2 + 1


def test_a_smaller_sensitivity_is_noticed() -> None:
    """The twin: what a count, a sum and a sum of squares move one by one, at the ends of a range."""
    made, vectors = CASES["a variance"]
    twin = replace(made, l2_squared=Fraction(3))  # of a row that comes or goes
    assert worst(vectors)[1] > twin.l2_squared


@pytest.mark.parametrize("name", ["a variance", "a covariance", "a correlation", "three numbers", "a ratio"])
def test_a_ball_of_that_radius_holds_every_row(name: str) -> None:
    """Around one of the centres of the proof: 0 where a number has both signs. No ball is less than half as wide as two
    rows are apart."""
    made, exact = CASES[name]
    vectors = np.array(exact, dtype=float)
    signed = vectors.min(axis=0) < 0
    middle, top = (vectors.min(axis=0) + vectors.max(axis=0)) / 2, vectors.max(axis=0)
    found = []
    for count, other in itertools.product(np.arange(33) / 32, repeat=2):
        share = np.where(np.arange(len(top)) == 0, count, other)
        centre = np.where(signed, middle, share * top)
        found.append(((vectors - centre) ** 2).sum(axis=1).max())
    assert min(found) <= made.radius_squared + 1e-9
    assert worst(exact)[1] / 4 <= made.radius_squared


@pytest.mark.parametrize(
    ("name", "centre"),
    [
        ("a variance by groups", (Fraction(1, 3), Fraction(), Fraction()) * 3),
        ("a correlation by groups", (Fraction(1, 2), *(Fraction(),) * 5) * 2),
        ("two means, of conditions that overlap", (Fraction(1), Fraction()) * 2),
        ("two means, of conditions that do not", (Fraction(1, 2), Fraction()) * 2),
        ("shares by groups", (Fraction(1, 6),) * 6),
        ("shares that overlap", (Fraction(1, 2),) * 4),
    ],
)
def test_a_ball_around_the_centre_of_the_proof_holds_every_row(name: str, centre: Vector) -> None:
    made, vectors = CASES[name]
    far = max(sum(((a - c) ** 2 for a, c in zip(one, centre, strict=True)), Fraction()) for one in vectors)
    assert far <= made.radius_squared
    assert far > made.radius_squared - Fraction(1, 10)  # a ball of nine tenths would be noticed


def test_units_of_several_rows_move_so_many_times_as_far() -> None:
    one = joint.shares(1)
    assert one.times(3) == Joint((1, 1), 3 * one.l1, 9 * one.l2_squared, 9 * one.radius_squared)
