"""Blocks are picked with exactly their probabilities, whatever the size of the table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.choice_tree import Law as Walked
from oracles.choice_tree import walk

from holdfast.noise import inversion_table
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.inversion_table import InversionTable
from holdfast.noise.law import Law
from noise.truth import block_probabilities, gaussian_law, geometric_law, laplace_law, pairs

LAWS = [laplace_law(Fraction(7)), gaussian_law(Fraction(71, 3)), geometric_law(Fraction(1, 9))]


def pick(table: InversionTable) -> Walked:
    return walk(lambda bits: int(table.pick(1, bits)[0]), floor=2**-18)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("step", [2, 8])
def test_blocks_have_the_weight_of_their_edges(law: Law, step: int) -> None:
    walked = pick(InversionTable(law, step, 8, width=6, guide=3))
    assert walked.leftover < 1e-3
    assert walked.contradicts(block_probabilities(law, step)) is None


@pytest.mark.parametrize(("width", "guide"), [(3, 1), (6, 1), (6, 5)])
@pytest.mark.parametrize("blocks", [1, 4, 20])
def test_the_sizes_do_not_matter(width: int, guide: int, blocks: int) -> None:
    law = gaussian_law(Fraction(3))
    walked = pick(InversionTable(law, 1, blocks, width=width, guide=guide))
    assert walked.leftover < 1e-3
    assert walked.contradicts(block_probabilities(law, 1)) is None


def test_two_picks_are_independent() -> None:
    law = geometric_law(Fraction(2))
    table = InversionTable(law, 1, 4, width=4, guide=2)
    walked = walk(lambda bits: tuple(table.pick(2, bits).tolist()), floor=2**-18)
    assert walked.leftover < 1e-2
    assert walked.contradicts(pairs(block_probabilities(law, 1))) is None


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_thresholds_at_full_size(law: Law) -> None:
    """One below a threshold means this block, two above it the next one; in between further bits decide."""
    table = InversionTable(law, 1, 40)
    truth = block_probabilities(law, 1)
    reached = 0.0
    for block, threshold in enumerate(table._thresholds.tolist()):
        reached += truth[block]
        assert abs(threshold / 2**64 - reached) < 1e-12
        for number, expected in ((threshold - 1, block), (threshold + 2, block + 1)):
            if block + 1 < 40:
                choices = [number >> 48, number & (1 << 48) - 1]
                assert table.pick(1, ReplayedBits(choices=choices)).tolist() == [expected]
        # On the threshold the answer needs further bits: at the two ends they say this block and the next.
        ends = {
            int(table.pick(1, ReplayedBits(choices=[n >> 48, n & (1 << 48) - 1, more]))[0])
            for n, more in ((threshold, 0), (threshold + 1, 2**64 - 1))
        }
        assert ends == {block, block + 1}


def test_a_number_past_the_last_threshold_is_resolved_beyond_the_table() -> None:
    table = InversionTable(laplace_law(Fraction(7)), 1, 2)
    assert table.pick(1, ReplayedBits(choices=[65535, 2**48 - 1, 5])).item() > 300


def test_a_table_that_trusts_its_rounding_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law = gaussian_law(Fraction(3))
    table = InversionTable(law, 1, 8, width=5, guide=3)

    def trusting(head: int, width: int, cumulative: object, bits: object) -> int:
        return min(int(np.searchsorted(table._thresholds, head, side="right")), table.blocks - 1)

    monkeypatch.setattr(inversion_table, "invert", trusting)
    assert pick(table).contradicts(block_probabilities(law, 1)) is not None


def test_a_guide_that_ignores_thresholds_is_caught() -> None:
    law = gaussian_law(Fraction(3))
    table = InversionTable(law, 1, 8, width=5, guide=3)
    table._guide = np.searchsorted(table._thresholds, np.arange(8) << 2, side="right").astype(np.int16)
    assert pick(table).contradicts(block_probabilities(law, 1)) is not None
