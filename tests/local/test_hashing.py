"""The hash functions, exhaustively at 8 bits; and the server's counting against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import holdfast.local as local
from holdfast.local.affine import LARGEST_DOMAIN, TOP, public_words, top_bits, word_bits
from holdfast.local.walsh import odd, transform
from holdfast.noise.bits import ReplayedBits

A, B = (part.ravel() for part in np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)))


def independent(first: int, second: int, top: int) -> bool:
    """Whether the hash values of two keys are uniform and independent, over all a and b of 8 bits."""
    x, y = (top_bits(A, B, np.full(A.size, key), top) for key in (first, second))
    joint = np.bincount(x << top | y, minlength=1 << 2 * top)
    return bool(np.all(joint == A.size >> 2 * top))


def test_pairs_are_independent_exactly() -> None:
    """8-bit words serve keys of w bits and hash values of l bits while w + l - 1 <= 8."""
    for top, width in ((1, 8), (3, 6), (5, 4)):
        pairs = list(itertools.combinations(range(1 << width), 2))[:: max(1, 2 ** (2 * width - 9))]
        assert all(independent(x, y, top) for x, y in pairs)
        # One bit more and the guarantee is gone, so the limits of the domain are needed.
        assert not independent(0, 1 << width, top)


def test_domains_stay_within_the_guarantee() -> None:
    for domain in (2, 1 << 16, (1 << 16) + 1, LARGEST_DOMAIN):
        assert (domain - 1).bit_length() + TOP - 1 <= word_bits(domain)


@pytest.mark.parametrize(
    "oracle", [local.LocalHashing(50, 1.0), local.LocalHashing(50, 2.0, 7), local.LocalHashing(10**9, 1.0)]
)
def test_counts_are_what_they_say(oracle: local.LocalHashing) -> None:
    reports = oracle.randomize(np.arange(500) % 50, ReplayedBits(1))
    items = np.array([0, 1, 7, 49])
    assert oracle.buckets is not None
    expected = [
        np.sum(
            (top_bits(reports["a"], reports["b"], np.full(500, v)) * oracle.buckets >> TOP) == reports["y"]
        )
        for v in items
    ]
    assert oracle.counts(reports, items).tolist() == expected
    assert oracle.counts(reports, items[::-1]).tolist() == expected[::-1]


def test_public_words_are_fixed() -> None:
    """A server of next year must read the sketches of today."""
    assert public_words(7, 2).tolist() == public_words(7, 4)[:2].tolist()
    assert public_words(7, 2).tolist() != public_words(8, 2).tolist()
    assert public_words(0, 1).tolist() == [PINNED]


PINNED = 7358433782355445022


def test_walsh() -> None:
    size = 16
    x, z = np.meshgrid(np.arange(size), np.arange(size))
    matrix = np.where(odd(x & z), -1, 1)
    assert np.array_equal(matrix @ matrix, size * np.eye(size, dtype=np.int64))
    vectors = np.arange(3 * size, dtype=np.int64).reshape(3, size) ** 2
    assert np.array_equal(transform(vectors), vectors @ matrix)
    assert odd(np.array([0, 1, 3, 7, 1 << 40, (1 << 62) - 1])).tolist() == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]
