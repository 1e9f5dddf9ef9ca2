"""The choice of a marginal: its law, what one row can do to it, and what it tells of the rows; with twins."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from holdfast.mechanisms.grid_scores import STEPS
from holdfast.synthesis import smoothed_choice
from holdfast.synthesis.smoothed_choice import SENSITIVITY, choose, in_parts, parts, smoothed
from holdfast.validity.leave_out import kappa, ladder
from holdfast.validity.told import selection_told, smoothed_choice_told

EPSILON = Fraction(3)


def law(tables: list[Any], rate: float) -> Any:
    """The chances of the candidates, each with counts less public numbers."""
    scores = np.array([smoothed(away, rate) for away in tables])
    made = np.exp(scores - scores.max())
    return made / made.sum()


def test_the_smoothed_error_is_a_mean_over_all_signs() -> None:
    away = np.array([3.0, -1.0, 0.0, 7.0])
    signs = np.array(list(product((-1, 1), repeat=4)))
    assert smoothed(away, 0.3) == pytest.approx(math.log(np.exp(0.3 * signs @ away).mean()))
    assert smoothed(np.array([4000.0]), 1.0) == pytest.approx(4000 - math.log(2))


def test_the_mechanism_gets_the_score_that_makes_this_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponents that `exponential` makes of the scores are the smoothed errors less the price, to the grid."""
    seen: dict[str, Any] = {}

    def exponential(scores: Any, *, sensitivity: Fraction, epsilon: Fraction) -> int:
        steps = np.rint(scores / float(sensitivity) * STEPS)
        seen["exponents"] = steps * float(epsilon) / (2 * (STEPS + 1))
        seen["rate"] = float(epsilon / (2 * sensitivity)) * STEPS / (STEPS + 1)
        return 1

    monkeypatch.setattr(smoothed_choice, "exponential", exponential)
    away = {(0, 1): np.array([5.0, -5.0]), (0, 2): np.array([90.0, -40.0])}
    price = {(0, 1): 0.0, (0, 2): 12.5}
    assert choose(list(away), away, price, EPSILON, 100) == (0, 2)
    expected = [smoothed(away[axes], seen["rate"]) - seen["rate"] * price[axes] for axes in away]
    assert seen["exponents"].tolist() == pytest.approx(expected, abs=float(EPSILON) / STEPS)
    assert seen["rate"] <= float(EPSILON) / 4


def counted(rows: Any, public: Any) -> list[Any]:
    """Two candidates: a row has a cell in each."""
    return [np.bincount([row[i] for row in rows], minlength=3) - public[i] for i in range(2)]


def widest(sensitivity: float) -> float:
    """The largest range of log-ratios of the law over all neighbours of tables of 3 rows."""
    kinds, rate, worst = list(product(range(3), repeat=2)), float(EPSILON) / (2 * sensitivity), 0.0
    public = [np.array([0, 40, -40]), np.array([40, 0, -40])]
    for rest in ((kinds[0], kinds[4]), (kinds[1], kinds[8])):
        laws = [np.log(law(counted([*rest, kind], public), rate)) for kind in kinds]
        worst = max(worst, max(float(np.ptp(a - b)) for a, b in combinations(laws, 2)))
    return worst


def test_one_row_moves_the_law_by_epsilon_and_no_more() -> None:
    """Where the errors are far from 0 a row moves one candidate up and another down by its whole sensitivity."""
    assert 0.999 * float(EPSILON) < widest(SENSITIVITY) <= float(EPSILON) * (1 + 1e-9)
    assert widest(SENSITIVITY / 2) > 1.9 * float(EPSILON)  # a twin of half of the sensitivity


def charged(rate: float, score: Any, theta: float, left_out: int) -> float:
    """How much more than theta a choice loses when rows are left out, at worst over its candidates: Theorem 95."""
    draw, worst, rows = np.random.default_rng(0), -math.inf, 8
    for _ in range(30):
        table = draw.integers(0, 3, (rows, 2))
        public = draw.normal(0, 2, (2, 3)) + rows / 3

        def chances(kept: Any, table: Any = table, public: Any = public) -> Any:
            part = table[list(kept)]
            scores = [
                score(np.bincount(part[:, i], minlength=3) * rows / len(part) - public[i], rate)
                for i in range(2)
            ]
            return np.array(scores) - np.logaddexp(*scores)

        whole = chances(range(rows))
        less = np.mean([chances(kept) for kept in combinations(range(rows), rows - left_out)], axis=0)
        worst = max(worst, float((whole - less).max()) - theta)
    return worst


def test_the_leave_out_theorem_covers_it_and_not_with_a_tenth_of_the_charge() -> None:
    """Every subset of small tables: E_J ln p(c|s_J) >= ln p(c|s) - theta. Theta is what a selection is charged."""
    rows = 8
    for rate, left_out in product((0.2, 0.6, 1.5), (1, 2, 4)):
        scale = 2 * rate * rows  # of a mean into [0,1]
        kept = rows - left_out
        spread = 1 + (left_out * kept - max(left_out, kept)) / (rows - 1)
        theta = scale**2 * spread / (8 * kept**2)
        assert charged(rate, smoothed, theta, left_out) <= 1e-9
    assert charged(0.6, smoothed, 0.1 * theta * (0.6 / 1.5) ** 2, 4) > 0


def test_what_it_tells_is_a_selection_and_its_rounding() -> None:
    for rows, epsilon in ((100, 0.5), (50_000, 0.03)):
        plain, told = selection_told(rows, epsilon), smoothed_choice_told(rows, epsilon)
        least = min(kappa(rows, m) for m in ladder(rows))
        assert plain + 8 * epsilon * 2.0**-20 / least <= told < 1.01 * plain + 1
    assert smoothed_choice_told(1, 1.0) == math.inf


def test_parts_are_few_in_order_and_keep_every_count() -> None:
    masses = np.random.default_rng(1).exponential(1, 40)
    for ordered, ways in product((True, False), (2, 3)):
        places = parts(masses, ordered, ways)
        assert places.max() + 1 <= round(64 ** (1 / ways))
        assert set(places.tolist()) == set(range(int(places.max()) + 1))
        assert not ordered or np.all(np.diff(places) >= 0)
    cells = np.arange(40 * 3).reshape(40, 3)
    made = in_parts(cells, [parts(masses, True, 2), np.arange(3)])
    assert made.sum(axis=0).tolist() == cells.sum(axis=0).tolist()
    assert made.dtype.kind == "i"
