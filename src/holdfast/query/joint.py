"""How far the totals of several measurements can move together, each counted in its own scale.

Noise of the recipe's size times `scales[i]` is added to the totals of measurement i; so sensitivities and the ball that
holds what one row adds are those of the totals divided by their scales. Proofs: docs/theorems.md, Theorem 75.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_PARTS = 32
"""The centre of a ball is looked for on a grid of so many steps; every centre is right."""


@dataclass(frozen=True, slots=True)
class Joint:
    """What one row can do to all totals at once, in multiples of their scales.

    `l1` and `l2_squared` are how far its replacement moves them; a ball of `radius_squared` holds what any row adds.
    """

    scales: tuple[int, ...]
    l1: Fraction
    l2_squared: Fraction
    radius_squared: Fraction

    def times(self, most: int) -> Joint:
        """For units of at most so many rows: their vectors lie in `most` times the convex hull of a row's and 0."""
        return Joint(self.scales, self.l1 * most, self.l2_squared * most**2, self.radius_squared * most**2)

    def twice(self) -> Joint:
        """The same for two conditions, both of which a row may satisfy: its vector, or 0, for each of them."""
        return Joint(self.scales * 2, 2 * self.l1, 2 * self.l2_squared, 2 * self.radius_squared)

    def apart(self) -> Joint:
        """What was made for two groups, as measurements of two conditions that no row satisfies together."""
        return Joint(self.scales * 2, self.l1, self.l2_squared, self.radius_squared)


def shares(groups: int) -> Joint:
    """Two counts, of which one row is in one, in one of the groups; or in none."""
    return Joint((1, 1), Fraction(2), Fraction(2), 1 - Fraction(1, 2 * groups))


def sums(spreads: tuple[int, ...], scales: tuple[int, ...], groups: int) -> Joint:
    """Sums of numbers that have nothing in common: a row's vector lies in a box that holds 0."""
    sides = [Fraction(spread, scale) for spread, scale in zip(spreads, scales, strict=True)]
    l1, l2 = sum(sides, Fraction()), sum((side**2 for side in sides), Fraction())
    if groups == 1:
        return Joint(scales, l1, Fraction(math.ceil(l2)), l2 / 4)  # whole: Lemma 7 counts whole squares
    many = Fraction(len(scales))  # from one group to another, at full length in both; all in a ball around 0
    return Joint(scales, max(l1, 2 * many), Fraction(math.ceil(max(l2, 2 * many))), many)


def moments(reaches: tuple[int, ...], groups: int, *, squares: bool, products: bool) -> Joint:
    """The count, the sums of d numbers in [-reach, reach], perhaps of their squares, and of products of two of them.

    Each in units of its greatest size: vectors (1, z, z_i^2, z_i z_j) with z in the cube [-1,1]^d.
    """
    d = len(reaches)
    scales = (1, *reaches)
    scales += tuple(reach**2 for reach in reaches) if squares else ()
    scales += tuple(reaches[i] * reaches[j] for i in range(d) for j in range(i + 1, d)) if products else ()
    many = len(scales)
    flips = [k * (1 + (d - k if products else 0)) for k in range(1, d + 1)]
    l1, l2 = max(many, 2 * max(flips)), max(many, 4 * max(flips))
    if groups == 1:
        return Joint(scales, Fraction(l1), Fraction(l2), _radius_squared(d, squares, products))
    return Joint(scales, Fraction(max(l1, 2 * many)), Fraction(max(l2, 2 * many)), many - Fraction(1, groups))


@lru_cache(maxsize=64)
def _radius_squared(d: int, squares: bool, products: bool) -> Fraction:
    """R^2 of the best of some balls around (a, 0, s, 0) that hold 0 and every (1, z, z_i^2, z_i z_j)."""
    places = [Fraction(step, _PARTS) for step in range(_PARTS + 1)]
    return min(
        max(
            a**2 + (d * s**2 if squares else 0),
            *(
                (1 - a) ** 2 + k
                + (k * (1 - s) ** 2 + (d - k) * s**2 if squares else 0)
                + (k * (k - 1) // 2 if products else 0)
                for k in range(d + 1)
            ),
        )
        for a in places
        for s in (places if squares else places[:1])
    )  # fmt: skip
