"""Theorem D by exhaustive search over analysts, and the exact binomial tail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.validity.discretised import (
    binomial_tail,
    description_length,
    discretised,
    discretised_blocks,
)


def exact_tail(rows: int, w: float, distance: float) -> float:
    law = [math.comb(rows, j) * w**j * (1 - w) ** (rows - j) for j in range(rows + 1)]
    return sum(p for j, p in enumerate(law) if abs(j - rows * w) >= distance - 1e-12)


@pytest.mark.parametrize(("rows", "distance"), [(10, 3.5), (25, 6.0), (60, 12.5), (60, 1.0)])
def test_the_tail_is_a_supremum(rows: int, distance: float) -> None:
    truth = max(exact_tail(rows, float(w), distance) for w in np.linspace(0.0, 1.0, 2001))
    found = binomial_tail(rows, distance)
    assert min(truth, 1.0) <= found + 1e-12
    assert found <= 1.25 * truth + 1e-12 or found <= 2 * math.exp(-2 * distance**2 / rows) * (1 + 1e-9)
    assert found <= 2 * math.exp(-2 * distance**2 / rows) * (1 + 1e-9)


def worst_analyst(rows: int, queries: int, block: int, cells: int) -> float:
    """Pr[some miss], maximised over analysts who ask about independent fair bits or about the same bit again.

    Each query is a fresh fair bit of the rows (independent counts), so that the analyst's only art is to go
    on until one count is off; the exact probability is one minus the product.
    """
    alpha = cells * block / 2.0
    law = [math.comb(rows, j) / 2**rows for j in range(rows + 1)]
    miss = sum(p for j, p in enumerate(law) if abs(block * (j // block) + (block - 1) / 2 - rows / 2) > alpha)
    return 1.0 - (1.0 - miss) ** queries


def test_blocks_are_certified_honestly() -> None:
    rows, queries, block, cells = 400, 6, 26, 5
    alpha, miss = discretised_blocks(rows, queries, 0.05, block, cells)
    assert math.isclose(alpha, cells * block / (2 * rows))
    assert worst_analyst(rows, queries, block, cells) <= miss
    assert worst_analyst(rows, queries, block, 1) > miss


def test_the_number_of_live_cells_is_right_and_one_less_is_wrong() -> None:
    """An interval of means that is not yet a miss meets at most c blocks, and really c for some
    population."""
    for block in (1, 2, 5, 8):
        for cells in (2, 3, 6):
            distance = ((cells - 1) * block + 1) / 2
            most = 0
            for twice in range(40 * block, 44 * block):
                centre = twice / 2 + 0.25 * (twice % 2)
                counts = [a for a in range(60 * block) if abs(a - centre) < distance]
                most = max(most, len({a // block for a in counts}))
                for a in counts:
                    answer = block * (a // block) + (block - 1) / 2
                    assert abs(answer - centre) <= cells * block / 2
            assert most <= cells
            assert most > cells - 1


def test_the_formula_is_solved_on_the_safe_side() -> None:
    for rows, queries, beta in ((500, 3, 0.05), (10**4, 79, 0.05), (10**6, 2000, 1e-6)):
        alpha = discretised(rows, queries, beta)
        best = math.inf
        for c in range(2, 60):
            log_nodes = (
                queries * math.log(c) - math.log(c - 1) + math.log1p(-(c**-queries) if queries < 300 else 0.0)
            )
            best = min(best, math.sqrt((log_nodes + math.log(2 / beta)) / (2 * rows)) / (1 - 1 / c))
        assert best <= alpha <= best * (1 + 1e-9)
        assert discretised(rows, queries, beta) <= description_length(rows, queries, beta)
    assert description_length(100, 1, 0.05, cells=1) > 0.5


def test_counts_agree_with_the_formula() -> None:
    rows, queries = 6000, 46
    alpha = discretised(rows, queries, 0.05, cells=6)
    block = math.ceil(2 * rows * alpha / 6)
    found, miss = discretised_blocks(rows, queries, 0.05, block, 6)
    assert found >= alpha
    assert miss <= 0.05
