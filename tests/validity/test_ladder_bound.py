"""The Ladder's width, against transcripts that are counted here by their binomials."""

from __future__ import annotations

import math

import pytest

from holdfast.validity.ladder_bound import ladder


def by_hand(rows: int, k: int, beta: float, cells: int) -> float:
    transcripts = sum(math.comb(k, j + 1) * math.comb(cells + 1, j) for j in range(min(k, cells + 2)))
    return 1 / cells + math.sqrt(math.log(2 * transcripts / beta) / (2 * rows))


@pytest.mark.parametrize("beta", [0.05, 0.5])
@pytest.mark.parametrize(("rows", "k", "cells"), [(1000, 6, 4), (10**6, 1, 50), (200, 40, 3), (5000, 30, 90)])
def test_the_width_of_given_cells_is_the_theorems(rows: int, k: int, cells: int, beta: float) -> None:
    truth = by_hand(rows, k, beta, cells)
    assert truth <= ladder(rows, k, beta, cells) <= truth * (1 + 1e-9)


@pytest.mark.parametrize(("rows", "k"), [(1000, 20), (10**5, 100)])
def test_tuned_cells_are_about_the_best_cells(rows: int, k: int) -> None:
    best = min(by_hand(rows, k, 0.05, cells) for cells in range(1, 400))
    assert best <= ladder(rows, k, 0.05) <= best * 1.01
