"""The chances of the claims about measured marginals, by hand: Theorems 43, 91 and 96."""

from __future__ import annotations

import pytest

from holdfast.mechanisms.accuracy import gaussian_reach
from holdfast.planning.promise import LEFT_OUT, NOISE_ALONE
from holdfast.planning.recipe_information import told_by
from holdfast.privacy.event import Gaussian
from holdfast.session.footing import Footing
from holdfast.synthesis import plan_marginals
from holdfast.synthesis.measured_marginals import intervals
from holdfast.validity.leave_out import GRID_SHARE, recorded_grid

from .test_marginal_plan import ROWS, opened


@pytest.mark.parametrize("queries", [8, None])
def test_each_number_has_its_part_of_a_place_on_both_sides(queries: int | None) -> None:
    """Noise and rows each over all numbers that there may be; rows on both sides of each."""
    session = opened(queries=queries)
    session.fraction("sick", rho=1e-3)
    made = session.synthesize(method="marginals", rho=0.1, rounds=2)
    planned = plan_marginals(session, rho=0.1, rounds=2)
    moment, found = session._moment(), intervals(session, planned)
    share = 1 / 8 if queries else 1 / (2 * 2 * 3)  # the second place
    assert moment.session.answers == 2 and found["table"] == pytest.approx(0.05 / planned.numbers)
    assert found["noise"] == pytest.approx(0.05 * share * NOISE_ALONE / planned.numbers)
    chance = 0.05 * share * LEFT_OUT * (GRID_SHARE if queries else 1.0) / planned.numbers
    grid = recorded_grid(ROWS)
    rows = grid.any_statistic(grid.charges(told_by(moment.table.information, ROWS)), chance)
    assert rows * (1 - 1e-9) <= found["rows"] <= rows * 1.02
    for one, noise in zip(made.measured, planned.columns, strict=False):
        assert isinstance(noise, Gaussian) and one.population is not None
        reach = gaussian_reach(noise.variance, found["noise"], overshoot=False) / ROWS
        assert one.population == pytest.approx(reach + found["rows"], rel=1e-9)
        assert one.within == pytest.approx(
            gaussian_reach(noise.variance, found["table"], overshoot=False) / ROWS
        )


def test_about_the_rows_themselves_it_is_the_chance_of_the_place() -> None:
    session = opened(target="table", queries=4)
    session.synthesize(method="marginals", rho=0.1, rounds=2)
    planned = plan_marginals(session, rho=0.1, rounds=2)
    assert intervals(session, planned) == {"table": pytest.approx(0.05 / 4 / planned.numbers)}


def test_one_side_of_a_claim_has_its_whole_chance() -> None:
    """`beyond` is one side of Corollary A; so a claim about both sides has half of the chance for each."""
    session = opened(queries=4)
    standing = Footing(session.promise(), ROWS, 1, False, 5.0, 0.01, 0.001)
    grid = recorded_grid(ROWS)
    assert grid.any_statistic(grid.charges(5.0), 0.02) <= standing.beyond(0.01)
    assert standing.beyond(0.01) <= 1.01 * grid.any_statistic(grid.charges(5.0), 0.02)
