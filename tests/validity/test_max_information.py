"""Max-information against the exact value for randomized response, and Freedman's paradox in small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.errors import InputError
from holdfast.validity import corrected_level, max_information


def excess(rows: int, epsilon: float, information: float) -> float:
    """The least b with Pr[(S,Y) in O] <= e^I Pr[S x Y in O] + b: randomized response on uniform bits,
    exactly."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    total = 0.0
    for kept in range(rows + 1):
        log = kept * math.log(2 * truth) + (rows - kept) * math.log(2 * (1 - truth))
        chance = math.comb(rows, kept) * truth**kept * (1 - truth) ** (rows - kept)
        total += chance * max(0.0, 1.0 - math.exp(information - log))
    return total


@pytest.mark.parametrize(("rows", "epsilon"), [(50, 0.1), (200, 0.05), (400, 0.3)])
def test_the_bound_holds_for_randomized_response_and_a_third_of_it_does_not(
    rows: int, epsilon: float
) -> None:
    for failure in (0.01, 0.001):
        information = max_information(rows=rows, epsilon=epsilon, failure=failure)
        assert excess(rows, epsilon, information) <= failure
        assert excess(rows, epsilon, information / 3) > failure


def test_the_formula_and_its_cap() -> None:
    n, eps, b = 1000, 0.02, 0.01
    formula = eps**2 * n / 2 + eps * math.sqrt(n * math.log(2 / b) / 2)
    assert math.isclose(max_information(rows=n, epsilon=eps, failure=b), formula, rel_tol=1e-9)
    assert math.isclose(max_information(rows=10, epsilon=5.0, failure=b), 50.0, rel_tol=1e-9)


def test_the_corrected_level_is_the_best_of_its_family() -> None:
    best = corrected_level(0.05, rows=10_000, epsilon=0.01)
    for b in (1e-6, 1e-3, 0.01, 0.03):
        single = corrected_level(0.05, rows=10_000, epsilon=0.01, failure=b)
        information = max_information(rows=10_000, epsilon=0.01, failure=b)
        assert math.isclose(single, (0.05 - b) * math.exp(-information), rel_tol=1e-9)
        assert single <= best * (1 + 1e-3)
    assert 0.0 < best < 0.05
    assert corrected_level(0.05, rows=10**6, epsilon=1.0) == 0.0


def test_freedmans_paradox_the_uncorrected_test_is_wrong_and_the_corrected_one_is_not() -> None:
    """Private answers pick the most correlated of 200 useless features; its p-value is then computed on the
    rows."""
    rng = np.random.default_rng(12)
    rows, features, runs, level = 400, 200, 400, 0.05
    epsilon = 0.02
    corrected = corrected_level(level, rows=rows, epsilon=epsilon)
    naive = fair = greedy = 0
    for _ in range(runs):
        counts = rng.binomial(rows, 0.5, features)
        for private in (True, False):
            noise = rng.gumbel(0.0, 2.0 / epsilon, features) if private else 0.0
            chosen = counts[np.argmax(counts + noise)]
            p = 0.5 * math.erfc((chosen - 0.5 - rows / 2) / math.sqrt(rows / 2))
            if private:
                naive += p <= level
                fair += p <= corrected
            else:
                greedy += p <= level
    assert greedy > 0.9 * runs  # without privacy the test is nearly always wrong
    assert naive > fair
    assert fair <= level * runs + 4 * math.sqrt(level * runs)


def test_bad_arguments_are_refused() -> None:
    for change in ({"rows": 0}, {"epsilon": 0.0}, {"failure": 0.0}, {"failure": 1.0}, {"epsilon": math.nan}):
        with pytest.raises(InputError):
            max_information(**({"rows": 10, "epsilon": 0.1, "failure": 0.01} | change))
    with pytest.raises(InputError):
        corrected_level(0.05, rows=10, epsilon=0.1, failure=0.05)
    with pytest.raises(InputError):
        corrected_level(0.0, rows=10, epsilon=0.1)
