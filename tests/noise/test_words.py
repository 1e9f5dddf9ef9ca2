"""Uniform integers from uniform words: enumerated at small widths, compared with Python's at full."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import statistics

from holdfast.errors import InputError
from holdfast.noise import words
from holdfast.noise.bits import ReplayedBits, SystemBits

word = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 64, 100, 255, 256])
def test_every_id_owns_the_same_number_of_words(n: int) -> None:
    kept = words.narrow_lemire(np.arange(256, dtype=np.uint64), n, 8)
    assert set(Counter(kept.tolist()).values()) == {256 // n}
    assert set(kept.tolist()) == set(range(n))


def test_the_enumeration_catches_modulo_bias() -> None:
    biased = Counter((np.arange(256) % 100).tolist())
    assert len(set(biased.values())) > 1


@given(st.lists(word, min_size=1, max_size=20), st.integers(1, 2**63))
def test_wide_products_are_those_of_python(drawn: list[int], n: int) -> None:
    array = np.array(drawn, dtype=np.uint64)
    assert words.high_product(array, np.uint64(n)).tolist() == [w * n >> 64 for w in drawn]
    kept = [w * n >> 64 for w in drawn if w * n % 2**64 >= 2**64 % n]
    assert words.wide_lemire(array, n).tolist() == kept


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20), st.integers(1, 2**32))
def test_narrow_products_are_those_of_python(drawn: list[int], n: int) -> None:
    kept = [w * n >> 32 for w in drawn if w * n % 2**32 >= 2**32 % n]
    assert words.narrow_lemire(np.array(drawn, dtype=np.uint64), n, 32).tolist() == kept


@pytest.mark.parametrize("n", [3, 10**8, 2**30 - 3 * 2**26, 2**30])
@pytest.mark.parametrize("count", [0, 1, 20, 40_000])
def test_ids_are_the_first_that_are_kept(n: int, count: int) -> None:
    """However the words are fetched: all that are thrown away lie between those that are used."""
    fetched: list[int] = []

    def feed(size: int) -> NDArray[np.uint64]:
        drawn = generator.integers(0, 2**64, size, dtype=np.uint64)
        fetched.append(size)
        kept.extend(w * n >> 32 for w in drawn.view(np.uint32).tolist() if w * n % 2**32 >= 2**32 % n)
        return drawn

    generator, kept = np.random.default_rng(5), list[int]()
    ids = words.integers_below(feed, n, count)
    assert ids.size == count
    assert len(fetched) == -(-count // words._BATCH)
    if count <= words._BATCH:
        assert ids.tolist() == kept[:count]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8, 11])
def test_below_takes_each_pattern_of_bits_once(n: int) -> None:
    width = (n - 1).bit_length()
    answers = []
    for pattern in range(1 << width):
        feed = iter([pattern << (64 - width) | 5, 0])  # a rejected pattern is followed by zeros
        value = words.below(lambda feed=feed: next(feed), n)  # type: ignore[misc]
        answers.append(value if pattern < n else None)
        assert value == (pattern if pattern < n else 0)
    assert answers[:n] == list(range(n))


def test_below_of_many_words() -> None:
    n = (1 << 130) + 12345
    feed = iter([2**64 - 1] * 3 + [1 << 61, 7, 9])
    # Three words hold 192 bits; 131 are wanted. All ones are too many, so a second attempt is made.
    assert words.below(lambda: next(feed), n) == (1 << 61 << 128 | 7 << 64 | 9) >> 61


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64])
def test_chunks_have_their_width(width: int) -> None:
    drawn = SystemBits().chunks(4096, width)
    assert drawn.shape == (4096,)
    assert drawn.dtype == words.container(width)
    assert int(drawn.max()) < 1 << width
    assert int(drawn.max()) >> (width - 1) == 1  # the top bit is used
    assert statistics.binomial(int((drawn & drawn.dtype.type(1)).sum()), 4096, 0.5) > statistics.FALSE_ALARM
    drawn[:] = 0  # the array belongs to the caller


@pytest.mark.parametrize(
    "n", [1, 2, 7, 1000, 2**24 + 1, 2**30, 2**30 + 1, 3 * 2**30, 2**32, 10**12 + 7, 2**62 + 1, 2**63]
)
def test_ids_are_in_range_and_uniform(n: int) -> None:
    ids = ReplayedBits(7).integers_below(n, 100_000)
    assert ids.dtype == np.int64
    assert 0 <= int(ids.min()) <= int(ids.max()) < n
    cells = min(n, 50)
    counts = np.bincount([int(i) * cells // n for i in ids[:20_000]], minlength=cells)
    sizes = [(-(-(c + 1) * n // cells) - -(-c * n // cells)) / n for c in range(cells)]
    assert statistics.chi_square(counts, sizes) > statistics.FALSE_ALARM


def test_small_n_through_the_whole_door() -> None:
    for n, seed in product((3, 10), (1, 2)):
        counts = np.bincount(ReplayedBits(seed).integers_below(n, 300_000), minlength=n)
        assert statistics.uniform(counts) > statistics.FALSE_ALARM
    lopsided = np.bincount(np.minimum(ReplayedBits(1).integers_below(11, 300_000), 9), minlength=10)
    assert statistics.uniform(lopsided) < statistics.FALSE_ALARM


@pytest.mark.parametrize(
    "source", [SystemBits(), ReplayedBits(3), ReplayedBits(choices=[])], ids=["system", "seed", "list"]
)
def test_bad_requests_are_refused(source: SystemBits | ReplayedBits) -> None:
    for wrong in (0, -1, 1.5, True, None):
        with pytest.raises(InputError, match="for n,"):
            source.below(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="for n,"):
            source.integers_below(wrong, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="for n,"):
        source.integers_below(2**63 + 1, 3)
    for wrong in (-1, 2.0, False):
        with pytest.raises(InputError, match="count"):
            source.words(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="count"):
            source.chunks(wrong, 8)  # type: ignore[arg-type]
    for wrong in (0, 65):
        with pytest.raises(InputError, match="width"):
            source.chunks(4, wrong)
    assert source.words(0).size == source.integers_below(5, 0).size == source.chunks(0, 3).size == 0
