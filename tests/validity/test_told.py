"""One number for all that is told: it bounds every charge, on every rung of the ladder."""

from __future__ import annotations

import math

import pytest

from holdfast.validity.leave_out import kappa, ladder, planned_place, recorded_grid
from holdfast.validity.leave_out_charges import (
    comparison_charge,
    gaussian_charge,
    quantile_charge,
    selection_charge,
)
from holdfast.validity.leave_out_votes import vote_charge
from holdfast.validity.told import (
    comparison_told,
    gaussian_told,
    quantile_told,
    selection_told,
    votes_told,
)

ROWS = 200_000


def covers(told: float, charge: object) -> bool:
    """Whether kappa told/4 is at least the charge, whatever is left out."""
    return all(kappa(ROWS, m) * told / 4 >= charge(m) for m in ladder(ROWS))  # type: ignore[operator]


def test_what_is_told_pays_for_every_rung() -> None:
    """Each twin tells a little less, and some rung is not paid for."""
    cases = [
        (gaussian_told(0.25, 0.01), lambda m: gaussian_charge(ROWS, m, 0.01)),
        (votes_told(ROWS, 500, 0.125), lambda m: 500 * vote_charge(ROWS, m, 0.125)),
        (quantile_told(ROWS, 0.01), lambda m: quantile_charge(ROWS, m, 0.01 * ROWS / 2, 0.01 * ROWS / 2)),
        (comparison_told(ROWS, 50.0), lambda m: comparison_charge(ROWS, m, 50.0)),
        (selection_told(ROWS, 0.01), lambda m: selection_charge(ROWS, m, 0.01 * ROWS / 2)),
    ]
    for told, charge in cases:
        assert covers(told * (1 + 1e-12), charge)
        assert not covers(told * 0.999, charge)


def test_votes_tell_about_what_noise_of_their_size_tells() -> None:
    noise = 1 / (2 * (1 - 0.25) * math.sqrt(500))
    assert 1 <= votes_told(10**8, 500, 0.125) / gaussian_told(0.25, noise) < 1.01


def test_where_a_rung_has_no_bound_nothing_is_claimed() -> None:
    assert votes_told(2, 1, 0.25) == math.inf
    assert votes_told(1000, 1, 1 / 64) == math.inf
    assert votes_told(10**7, 1, 1 / 64) < math.inf


@pytest.mark.parametrize("rows", [2, 3, 10, 1000, 10**9])
def test_the_grid_and_the_ladder_are_functions_of_the_rows(rows: int) -> None:
    grid, rungs = recorded_grid(rows), ladder(rows)
    assert set(grid.sizes) <= set(rungs)
    assert all(1 <= m < rows for m in rungs) and list(rungs) == sorted(set(rungs), reverse=True)
    assert 0.999 < math.fsum(grid.weights) <= 1
    mine = planned_place(rows, rungs[0])
    assert mine.sizes[0] == rungs[0] and 0.999 < math.fsum(mine.weights) <= 1


def test_a_place_is_never_much_wider_than_by_the_grid_alone() -> None:
    """The twin leaves its own rows out and nothing else: what others were told makes it useless."""
    from holdfast.validity.leave_out import LeaveOut

    grid, own = recorded_grid(ROWS), ladder(ROWS)[0]
    told, widths = 500.0 * ROWS, []
    for left_out in (planned_place(ROWS, own), LeaveOut(ROWS, (own,)), grid):
        widths.append(left_out.half_width(left_out.charges(told), 0.004, 1e-4, 1 / ROWS))
    mine, twin, mixture = widths
    assert mine < 1.2 * mixture
    assert twin > 10 * mixture
