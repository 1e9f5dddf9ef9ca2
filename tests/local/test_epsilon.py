"""Every oracle's loss, exactly: the worst ratio over all reports and all pairs of values."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import holdfast.local as local

from .clients import COINS, FREQUENCY, HASHED, RAPPOR, SKETCHES, Client, rappor_law
from .walking import law, worst_ratio

CLIENTS = [*FREQUENCY, *HASHED, *SKETCHES, *COINS]


def within(ratio: Fraction | float, epsilon: float) -> bool:
    """Whether the loss is at most e^epsilon, and no more than a hair (10^-12) less."""
    with mpmath.workdps(60):
        if isinstance(ratio, float):
            return False
        exact, claimed = mpmath.mpf(ratio.numerator) / ratio.denominator, mpmath.exp(mpmath.mpf(epsilon))
        return bool(exact <= claimed) and bool(mpmath.log(exact) >= epsilon * (1 - mpmath.mpf(10) ** -12))


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_loss_is_epsilon_exactly(client: Client) -> None:
    assert within(worst_ratio(client.laws()), client.oracle.epsilon)


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_twin_that_lies_half_as_often_is_caught(client: Client) -> None:
    ratio = worst_ratio(client.laws(client.twin))
    assert ratio > math.exp(client.oracle.epsilon) * 1.01
    assert not within(ratio, client.oracle.epsilon)


def test_warner() -> None:
    oracle = local.RandomizedResponse(truth=0.55)
    assert oracle.epsilon == pytest.approx(math.log(11 / 9), rel=1e-12)
    assert worst_ratio(COINS[0].laws()) == Fraction(11, 9)


def test_one_bit_mean() -> None:
    """The report of x is 1 with probability q + x/m (p - q); the ends of the range are the worst pair."""
    oracle = local.OneBitMean(10.0, 1.0)
    p, q = oracle.support.p, oracle.support.q

    def of(value: float, word: int, twin=lambda p: p) -> Fraction:  # type: ignore[no-untyped-def]
        found = law(lambda bits: int(oracle.randomize([value], _OneWord(bits, word))[0]), twin=twin)
        return found[1]

    # The word decides the rounding: 2.5 of 10 is rounded up for the first quarter of all 32-bit words.
    assert [of(2.5, word) for word in (0, 2**30 - 1, 2**30, 2**32 - 1)] == [p, p, q, q]
    assert {of(value, word) for value in (0.0, -3.0, math.nan) for word in (0, 2**32 - 1)} == {q}
    assert {of(value, word) for value in (10.0, 12.0, math.inf) for word in (0, 2**32 - 1)} == {p}
    assert within(p / q, 1.0)
    assert within((1 - q) / (1 - p), 1.0)
    lies_less = of(10.0, 0, lambda p: (1 + p) / 2) / of(0.0, 0, lambda p: (1 + p) / 2)
    assert not within(lies_less, 1.0)


class _OneWord:
    """A walker whose 32-bit words are given."""

    def __init__(self, bits, word: int) -> None:  # type: ignore[no-untyped-def]
        self.choose, self._word = bits.choose, word

    def chunks(self, count: int, width: int) -> np.ndarray:
        assert width == 32
        return np.full(count, self._word, dtype=np.uint32)


@pytest.mark.parametrize("client", RAPPOR, ids=str)
def test_rappor_permanent(client: Client) -> None:
    """The bits a client keeps lose at most epsilon, and so does everything made from them later."""
    oracle = client.oracle
    ratio = worst_ratio(client.laws(method="permanent"))
    one_flip = (2 - oracle.noise) / oracle.noise
    assert ratio == one_flip ** (2 * oracle.hashes)
    assert oracle.epsilon == pytest.approx(2 * oracle.hashes * math.log(one_flip), rel=1e-12)
    assert worst_ratio(client.laws(lambda p: p / 2, method="permanent")) > ratio


@pytest.mark.parametrize("client", RAPPOR, ids=str)
def test_rappor_once(client: Client) -> None:
    """One report, with both noises, loses epsilon_once, which is less."""
    oracle = client.oracle
    laws = [rappor_law(oracle, value, Fraction(1)) for value in client.values]
    assert within(worst_ratio(laws), oracle.epsilon_once)
    assert oracle.epsilon_once < oracle.epsilon
    broken = [rappor_law(oracle, value, Fraction(1, 2)) for value in client.values]
    assert not within(worst_ratio(broken), oracle.epsilon_once)
