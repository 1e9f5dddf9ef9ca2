"""Members of a block are kept with exactly the quotient of weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.choice_tree import ChoiceBits, walk

from holdfast.noise import rejection as rejection_module
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.law import Law
from holdfast.noise.rejection import Rejection
from noise.truth import exp, gaussian_law, geometric_law, laplace_law

LAWS = [
    laplace_law(Fraction(7)),
    gaussian_law(Fraction(20)),
    gaussian_law(Fraction(71, 3)),
    geometric_law(Fraction(1, 9)),
]
BLOCKS = 6


def members(law: Law, shift: int, blocks: int) -> list[tuple[int, int, float]]:
    """(member, block, chance to stay) at some places of every block."""
    found = []
    for block in range(blocks):
        edge = law.edge(block, 1 << shift)
        for place in sorted({0, 1, (1 << shift) // 2, (1 << shift) - 1}):
            sign = -1 if law.two_sided and block % 2 else 1
            found.append((sign * (edge + place), block, exp(law.exponent(edge + place) - law.exponent(edge))))
    return found


def contradictions(rejection: Rejection, shift: int, blocks: int, floor: float = 2**-18) -> list[str]:
    """What the walked coin of every member says against its true chance. `blocks` may run past the table."""
    found = []
    for x, block, chance in members(rejection.law, shift, blocks):

        def keep(bits: ChoiceBits, x: int = x, block: int = block) -> bool:
            return bool(rejection.keep(np.array([x]), np.array([block]), bits)[0])

        walked = walk(keep, floor=floor)
        assert walked.leftover < 0.01
        against = walked.contradicts({True: chance, False: 1 - chance})
        if against:
            found.append(f"{x}: {against}")
    return found


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("shift", "gate", "fraction"), [(1, 3, 6), (2, 4, 5), (4, 1, 3), (4, 3, 6)])
def test_members_stay_with_the_quotient_of_weights(law: Law, shift: int, gate: int, fraction: int) -> None:
    rejection = Rejection(law, shift, BLOCKS, gate=gate, fraction=fraction)
    assert contradictions(rejection, shift, BLOCKS + 2) == []


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [1, 10**3, 10**12])
def test_the_full_size_comparison_turns_at_the_right_number(law: Law, scale: int) -> None:
    """At 30 bits the answer is monotone in the number drawn: bisection finds its chance to 2**-29."""
    stretched = Law(
        law.linear, law.quadratic, law.denominator * scale ** (2 if law.quadratic else 1), law.two_sided
    )
    shift = max(1, scale.bit_length() - 1)
    rejection = Rejection(stretched, shift, 40)
    for x, block, chance in members(stretched, shift, 42):

        def keep(number: int, x: int = x, block: int = block) -> bool:
            bits = ReplayedBits(choices=[number >> 14, number & (1 << 14) - 1, *[1 << 29] * 4])
            return bool(rejection.keep(np.array([x]), np.array([block]), bits)[0])

        low, high = 0, 1 << 30
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if keep(middle) else (low, middle)
        assert abs(low / 2**30 - chance) < 2**-29


def test_a_gate_left_open_is_caught() -> None:
    wrong = Rejection(LAWS[1], 1, BLOCKS, gate=3, fraction=6)
    wrong._gate_limit = 1 << 3
    assert contradictions(wrong, 1, BLOCKS)


def test_a_rounded_decision_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rejection = Rejection(LAWS[0], 2, BLOCKS, gate=1, fraction=5)
    assert not contradictions(rejection, 2, BLOCKS)
    monkeypatch.setattr(rejection_module, "is_below", lambda *_: True)
    assert contradictions(rejection, 2, BLOCKS)


def test_a_gate_that_forgets_the_blocks_past_the_end_is_caught() -> None:
    class Forgetful(Rejection):
        def keep(self, drawn: NDArray[np.int64], blocks: NDArray[np.int64], bits: Any) -> NDArray[np.bool_]:
            return super().keep(drawn, np.minimum(blocks, BLOCKS - 1), bits)

    assert not contradictions(Rejection(LAWS[2], 1, BLOCKS, gate=3, fraction=6), 1, BLOCKS + 12)
    assert contradictions(Forgetful(LAWS[2], 1, BLOCKS, gate=3, fraction=6), 1, BLOCKS + 12)
