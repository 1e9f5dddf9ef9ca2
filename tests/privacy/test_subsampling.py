"""Amplification against exact enumeration; the false formulas of the literature are the broken twins."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.privacy_loss import (
    general_with_replacement_bound,
    sampled_laplace_loss,
    worst_mechanism_with_replacement,
)

from holdfast.errors import InputError
from holdfast.privacy import (
    events,
    group,
    pure,
    subsampled,
    subsampled_with_replacement,
)
from holdfast.privacy.loss import Approx

CASES = [(10, 10, 1.0), (10, 4, 1.0), (4, 3, 0.5), (5, 2, 2.0), (3, 6, 1.0), (20, 1, 1.0), (1, 3, 0.7)]


def false_proposition_7(epsilon: float, rows: int, of: int) -> float:
    """Fish et al., Prop. 7: the chance to be drawn at all in place of the share; no multiplicities."""
    return math.log1p((1 - (1 - 1 / of) ** rows) * math.expm1(epsilon))


@pytest.mark.parametrize(("of", "rows", "epsilon"), CASES)
def test_with_replacement_is_exact_for_laplace(of: int, rows: int, epsilon: float) -> None:
    truth = sampled_laplace_loss(of, rows, epsilon, replace=True)
    ours = subsampled_with_replacement(epsilon, rows, of)
    assert truth <= ours * (1 + 1e-15)
    assert ours == pytest.approx(truth, rel=1e-9)
    assert pure(events.SubsampledWithReplacement(events.PureMechanism(epsilon), rows, of)).epsilon == ours


def test_the_published_formulas_are_false_with_replacement() -> None:
    truth = sampled_laplace_loss(10, 10, 1.0, replace=True)
    assert truth == pytest.approx(1.5857, abs=1e-4)
    assert truth > false_proposition_7(1.0, 10, 10) == pytest.approx(0.751, abs=1e-3)
    assert truth > subsampled(1.0, 10, 10)


@pytest.mark.parametrize(("of", "rows", "epsilon"), [(2, 3, 1.0), (5, 3, 0.3), (2, 2, 3.0), (1, 2, 1.0)])
def test_with_replacement_is_exact_over_all_mechanisms(of: int, rows: int, epsilon: float) -> None:
    """The linear program over every epsilon-DP mechanism: the formula needs no condition on its size."""
    worst = worst_mechanism_with_replacement(of, rows, epsilon)
    assert worst == pytest.approx(subsampled_with_replacement(epsilon, rows, of), rel=1e-6)
    assert worst <= general_with_replacement_bound(of, rows, epsilon) * (1 + 1e-6)
    if rows > 1:
        assert worst > false_proposition_7(epsilon, rows, of) * (1 + 1e-6)


@pytest.mark.parametrize(("of", "rows", "epsilon"), [case for case in CASES if case[1] <= case[0]])
def test_without_replacement_is_exact_for_laplace(of: int, rows: int, epsilon: float) -> None:
    truth = sampled_laplace_loss(of, rows, epsilon, replace=False)
    ours = subsampled(epsilon, rows, of)
    assert truth <= ours * (1 + 1e-15)
    assert ours == pytest.approx(truth, rel=1e-9)
    if rows < of:
        assert truth > rows / of * epsilon  # the twin: linear amplification


@given(st.floats(1e-9, 1e3), st.integers(1, 10**6), st.integers(1, 10**6))
def test_amplification_never_hurts_without_replacement(epsilon: float, first: int, second: int) -> None:
    rows, of = sorted((first, second))
    assert 0.0 < subsampled(epsilon, rows, of) <= epsilon
    assert subsampled(epsilon, rows, of) <= subsampled_with_replacement(epsilon, rows, of) * (1 + 1e-9)
    assert subsampled_with_replacement(epsilon, rows, of) <= rows * epsilon * (1 + 1e-9)


def test_extremes() -> None:
    assert subsampled(0, 1, 2) == subsampled_with_replacement(0, 1, 2) == 0.0
    assert subsampled(1e6, 1, 10**6) == pytest.approx(1e6 - math.log(1e6), rel=1e-12)
    assert subsampled_with_replacement(1e6, 2, 10) == pytest.approx(2 * (1e6 - math.log(10)), rel=1e-12)
    assert subsampled(1e-300, 1, 10**300) > 0.0


def test_group() -> None:
    assert group(0.25, 4) == 1.0
    assert group(0.1, 3) >= 0.1 * 3
    single = group(0.5, 3, 1e-6)
    assert isinstance(single, Approx)
    assert single.epsilon == 1.5
    assert single.delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-9)
    assert single.delta > 3e-6  # the twin: delta times size
    assert group(1e-301, 3, 1e-6).delta == pytest.approx(3e-6, rel=1e-9)  # type: ignore[union-attr]
    assert group(1000, 3, 1e-6).delta == 1.0  # type: ignore[union-attr]


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, "1", True, None, 5e-324])
def test_bad_epsilons(bad: object) -> None:
    for function in (subsampled, subsampled_with_replacement):
        with pytest.raises(InputError):
            function(bad, 1, 2)  # type: ignore[arg-type]
    for call in (lambda x: group(x, 2), lambda x: group(1, 2, x)):
        with pytest.raises(InputError):
            call(bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, None, "2"])
def test_bad_sizes(bad: object) -> None:
    for function in (subsampled, subsampled_with_replacement):
        with pytest.raises(InputError):
            function(1, bad, 2)  # type: ignore[arg-type]
        with pytest.raises(InputError):
            function(1, 1, bad)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        group(1, bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fewer rows"):
        subsampled(1, 3, 2)
