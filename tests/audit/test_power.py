"""What an audit says it would notice, it notices."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from holdfast.audit.epsilon import Audit, epsilon_lower_bound
from holdfast.audit.power import noticed
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.laplace import laplace_vector

CLAIM, RUNS, AUDITS = 2, 2000, 40
SURE = 1.0 - 1e-6


def audited(factor: float, seed: int) -> Audit:
    """A Laplace mechanism that loses `factor` times what it claims."""
    bits = ReplayedBits(seed)
    scale = Fraction(1, CLAIM) / Fraction(factor).limit_denominator(1000)

    def many(value: int, runs: int) -> np.ndarray:
        return value + laplace_vector(scale, runs, bits)

    return epsilon_lower_bound(None, 0, 1, runs=RUNS, confidence=SURE, many=many)


def refutations(factor: float) -> int:
    return sum(audited(factor, seed).violates(CLAIM) for seed in range(AUDITS))


def test_a_loss_of_that_many_times_the_claim_is_refuted_nine_times_in_ten() -> None:
    """With probability below 1e-9 fewer than 22 of 40 are, if each is with 9/10."""
    factor = noticed(audited(1.0, 100), CLAIM)
    assert 1.2 < factor < 2.0
    assert refutations(factor) >= 22


def test_a_factor_that_promises_too_much_is_not() -> None:
    """The broken twin says that a quarter of it is enough."""
    factor = noticed(audited(1.0, 100), CLAIM)
    assert refutations(1 + (factor - 1) / 4) < 22


def test_more_runs_notice_less() -> None:
    few = audited(1.0, 100)
    many = replace(few, hits=few.hits * 100, other_hits=few.other_hits * 100, tested=few.tested * 100)
    assert noticed(many, CLAIM) < 1.2 < noticed(few, CLAIM)


def test_an_event_that_tells_nothing_notices_nothing() -> None:
    blind = replace(audited(1.0, 100), hits=500, other_hits=500)
    assert noticed(blind, CLAIM) == math.inf


def test_a_claim_past_what_so_few_runs_can_show_is_never_refuted() -> None:
    assert noticed(audited(1.0, 100), 50.0) == math.inf


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_delta_makes_it_harder(delta: float) -> None:
    plain = audited(1.0, 100)
    assert noticed(replace(plain, delta=delta), CLAIM) >= noticed(plain, CLAIM)
