"""Published bounds: their premises are met where we say so, and fail where they are only printed."""

from __future__ import annotations

import itertools
import math

import pytest

from holdfast.privacy import advanced_composition, gdp_delta, subsampled
from holdfast.validity.bnsssu import bnsssu
from holdfast.validity.dfhprr import dfhprr
from holdfast.validity.fish import fish, fish_printed
from holdfast.validity.guess_and_check import (
    accept_slack,
    failure_share,
    guess_and_check,
    holdout_width,
)
from holdfast.validity.hoeffding import hoeffding
from holdfast.validity.information import blanc, gaussian_information, rogers, russo_zou, second_moment
from holdfast.validity.jlnrss import jlnrss, jlnrss_exact
from holdfast.validity.ladder_bound import _log_transcripts, ladder
from holdfast.validity.normal_quantile import two_sided_quantile, upper_tail
from holdfast.validity.splitting import known_rounds, splitting


def fish_premise(rows: float, queries: int, alpha: float, beta: float, drawn: float, inner: float) -> bool:
    """Is the sub-sampled Laplace mechanism (alpha/64, alpha beta/32)-DP and (alpha/8, alpha beta/16) on the
    sample?"""
    delta, miss = alpha * beta / 32, alpha * beta / 16
    step = subsampled(inner, math.floor(drawn), math.floor(rows))
    private = advanced_composition(step, queries, delta) <= alpha / 64
    sampling = math.sqrt(math.log(2 * queries / (miss / 2)) / (2 * drawn))
    noise = math.log(queries / (miss / 2)) / (drawn * inner)
    return private and sampling + noise <= alpha / 8 * (1 + 1e-6)


@pytest.mark.parametrize(("queries", "alpha"), [(1, 0.1), (50, 0.1), (1000, 0.03)])
def test_fish_meets_the_theorem_it_invokes_and_the_printed_size_does_not(queries: int, alpha: float) -> None:
    beta = 0.05
    x = alpha * beta
    rows = 2048 * math.sqrt(2 * queries * math.log(32 / x)) * math.log(32 * queries / x) / alpha**2
    assert math.isclose(fish(math.ceil(rows), queries, beta), alpha, rel_tol=1e-6)
    drawn = math.ceil(128 * math.log(64 * queries / x) / alpha**2)
    inner = 16 * math.log(32 * queries / x) / (alpha * drawn)
    assert fish_premise(rows, queries, alpha, beta, drawn, inner)
    printed = 512 * math.sqrt(2 * queries * math.log(32 / x)) * math.log(2 * queries / beta) / alpha**2
    assert math.isclose(fish_printed(math.ceil(printed), queries, beta), alpha, rel_tol=1e-6)
    few = 2 * math.log(4 * queries / beta) / alpha**2
    epsilon = alpha / 64 * printed / (4 * few * math.sqrt(2 * queries * math.log(32 / x)))
    assert not fish_premise(printed, queries, alpha, beta, few, epsilon)


def test_dfhprr_meets_its_premise() -> None:
    rows, queries, beta = 10**7, 100, 0.05
    for s in (1.2e5, 2e5):
        width = dfhprr(rows, queries, beta, s)
        assert width < 0.2
        t = width - s * two_sided_quantile(beta / 2, queries) / rows
        assert t >= math.sqrt(48 * math.log(8 / beta) / rows) * (1 - 1e-9)
        mu = math.sqrt(queries) / s
        log_delta = -4 * math.log(16 / beta) / t
        # ln delta <= ln Q(eps/mu - mu/2), the first of its two terms, by the classical tail
        a = t / 4 / mu - mu / 2
        assert -a * a / 2 - math.log(a * math.sqrt(2 * math.pi)) <= log_delta * (1 - 0.02)
    assert dfhprr(200, 1, 0.05) == math.inf


def test_the_free_constants_are_tuned_not_invented() -> None:
    """Each tuned bound is reached by its formula at explicit constants, and no grid point beats it."""
    rows, queries, beta, s = 10**6, 1000, 0.05, 6000.0
    sigma, mu = s / rows, math.sqrt(queries) / s
    grid = [10.0**e for e in (-9, -8, -7, -6, -5, -4, -3.5, -3, -2.5, -2, -1.5)]
    epsilons = [mu * x for x in (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6)]
    transfer = min(
        sigma * two_sided_quantile(beta / 2 * c, queries)
        + math.expm1(e)
        + c
        + 2 * gdp_delta(e, mu) / (beta / 2)
        for c, e in itertools.product(grid, epsilons)
    )
    tuned = jlnrss_exact(rows, queries, beta, s)
    assert transfer * 0.9 < tuned < transfer
    monitor = min(
        (sigma * two_sided_quantile(b, queries) + 2 * m * b + math.expm1(e) + m * gdp_delta(e, mu))
        / -math.expm1(m * math.log1p(-beta))
        for b, e, m in itertools.product(grid, epsilons, (10, 20, 40, 60, 100, 200))
    )
    assert monitor * 0.9 < bnsssu(rows, queries, beta, s) < monitor
    assert jlnrss(rows, queries, beta, s) > tuned


def test_information_bounds_follow_their_formulas() -> None:
    rows, queries, beta, s = 10**5, 40, 0.05, 1500.0
    information = rows * queries / (8 * s * s)
    assert math.isclose(gaussian_information(rows, queries, s), information, rel_tol=1e-9)
    tail = s / rows * math.sqrt(2 * math.log(4 * queries / beta))
    rho = 1 / (8 * s * s)
    assert math.isclose(tail, math.sqrt(math.log(4 * queries / beta) / rho) / (2 * rows), rel_tol=1e-12)
    best = min((2 * information - math.log1p(-x / 1000)) / (x / 1000) for x in range(1, 1000))
    assert math.isclose(
        second_moment(rows, beta, information), math.sqrt(best / (2 * rows * beta)), rel_tol=1e-4
    )
    assert math.isclose(
        rogers(rows, queries, beta, s), tail + math.sqrt(best / (2 * rows * beta)), rel_tol=1e-4
    )
    bias = 2 / beta * math.sqrt((information + math.log(2)) / (2 * rows))
    assert math.isclose(russo_zou(rows, queries, beta, s), tail + bias, rel_tol=1e-9)
    m = 700
    votes = math.sqrt(math.log(4 * queries / beta) / (2 * m)) + second_moment(
        rows, beta, 4 * queries * m / rows
    )
    assert math.isclose(blanc(rows, queries, beta, m), votes, rel_tol=1e-9)
    # The noise read with the zCDP rho = 1/(2 s^2) would be half of what the Gaussian tail needs.
    halved = math.sqrt(math.log(4 * queries / beta) * 2 * s * s) / (2 * rows)
    assert 2 * queries * upper_tail(halved * rows / s) > beta / 2


def test_shares_of_guess_and_check_sum_to_beta() -> None:
    beta, cells = 0.05, 7
    total = 0.0
    for i in range(1, 40):
        for f in range(i):
            total += math.comb(i - 1, f) * cells**f * math.exp(failure_share(beta, i, f, cells))
    assert 0.6 * beta < total <= beta
    assert holdout_width(1000, math.log(0.01)) >= hoeffding(1000, 1, 0.01) * (1 - 1e-12)
    assert accept_slack(0.01, 1000, math.log(0.01)) == 0.0
    widths = [guess_and_check(10**5, 1000, beta, failures=f) for f in (0, 3, 100, 999)]
    assert widths == sorted(widths)
    assert widths[-1] == guess_and_check(10**5, 1000, beta)


def ladder_nodes(queries: int, cells: int) -> int:
    """Every prefix of every transcript that a ladder with values 0..cells can show before query k."""
    nodes, layer = 0, {(): 1}
    for _ in range(queries):
        nodes += len(layer)
        grown = {}
        for prefix in layer:
            shown = [v for v in prefix if v is not None]
            last = shown[-1] if shown else cells + 1
            for value in (None, *range(last)):
                grown[(*prefix, value)] = 1
        layer = grown
    return nodes


def test_the_ladder_counts_all_its_transcripts() -> None:
    for queries, cells in ((1, 3), (3, 2), (4, 3), (6, 2)):
        exact = ladder_nodes(queries, cells)
        assert exact <= math.exp(_log_transcripts(queries, cells)) <= exact * (1 + 1e-9)
        without_places = sum(math.comb(queries, j) for j in range(cells + 2))  # the twin forgets the values
        assert queries == 1 or without_places < exact
    assert ladder(1000, 50, 0.05, cells=10) >= ladder(1000, 50, 0.05)


def test_rounds_lie_between_splitting_and_hoeffding() -> None:
    rows, queries, beta = 10**5, 100, 0.05
    assert known_rounds(rows, queries, beta) == splitting(rows, queries, beta)
    assert known_rounds(rows, queries, beta, 1) == hoeffding(rows, queries, beta)
    assert known_rounds(rows, queries, beta, 10**9) == splitting(rows, queries, beta)
    assert splitting(50, 51, beta) == math.inf
