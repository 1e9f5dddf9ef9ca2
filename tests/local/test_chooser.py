"""The chooser against brute force, and the theory's rule of thumb."""

from __future__ import annotations

import math

import pytest

import holdfast.local as local
from holdfast.local.chooser import candidates


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("domain", [2, 3, 8, 50, 1000, 10**5, 10**9])
@pytest.mark.parametrize("report_bits", [None, 144])
def test_least_variance_or_near_it_and_short(domain: int, epsilon: float, report_bits: int | None) -> None:
    best = local.best(domain, epsilon, report_bits=report_bits)
    fitting = [o for o in candidates(domain, epsilon) if o.report_bits <= (report_bits or 10**9)]
    least = min(o.support.variance() for o in fitting)
    assert best in fitting
    assert best.support.variance() <= 1.02 * least
    assert not any(o.report_bits < best.report_bits and o.support.variance() <= 1.02 * least for o in fitting)


def test_examples() -> None:
    assert isinstance(local.best(2, 1.0), local.KaryResponse)
    assert isinstance(local.best(20, 4.0), local.KaryResponse)
    assert isinstance(local.best(16, 1.0), local.SubsetSelection)
    assert isinstance(local.best(10**5, 2.0), local.LocalHashing)
    assert isinstance(local.best(10**5, 0.1), local.HadamardResponse)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_kary_beats_unary_below_3e_plus_2(epsilon: float) -> None:
    edge = 3 * math.exp(epsilon) + 2
    for k in (math.floor(edge - 0.01), math.ceil(edge + 0.01)):
        better = (
            local.KaryResponse(k, epsilon).support.variance()
            < local.OptimisedUnary(k, epsilon).support.variance()
        )
        assert better == (k < edge)
