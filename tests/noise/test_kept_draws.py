"""Threads never get the same draw twice."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from holdfast.noise.bits import system_bits
from holdfast.noise.gaussian import gaussian, gaussian_vector
from holdfast.noise.kept_draws import DrawCache, KeptDraws
from holdfast.noise.laplace import laplace
from noise.truth import laplace_law

THREADS = 8
SCALE = Fraction(2**52)


@pytest.fixture(autouse=True)
def _impatient_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(draw: Callable[[], int], each: int) -> list[int]:
    with ThreadPoolExecutor(THREADS) as pool:
        parts = pool.map(lambda _: [draw() for _ in range(each)], range(THREADS))
    return [value for part in parts for value in part]


def test_no_draw_is_handed_out_twice() -> None:
    # 1200 draws spread over 2**53 values repeat by accident with probability below 1e-9.
    for draw in (lambda: laplace(SCALE), lambda: gaussian(SCALE**2), lambda: system_bits().below(2**60)):
        seen = together(draw, 150)
        assert len(set(seen)) == len(seen) == 1200


def test_vectors_do_not_overlap() -> None:
    seen = together(lambda: tuple(gaussian_vector(SCALE**2, 5).tolist()), 30)  # type: ignore[arg-type, return-value]
    flat = [v for row in seen for v in row]  # type: ignore[attr-defined]
    assert len(set(flat)) == len(flat)


def test_kept_draws_that_are_looked_at_before_they_are_taken_are_caught() -> None:
    class Careless(KeptDraws):
        def one(self) -> int:
            if not self._ready:
                self._refill()
            value = self._ready[-1] if self._ready else super().one()
            time.sleep(0)
            if self._ready:
                self._ready.pop()
            return value

    kept = Careless(laplace_law(SCALE))
    seen = together(kept.one, 500)
    assert len(set(seen)) < len(seen)


def test_old_laws_make_room_and_used_ones_stay() -> None:
    cache = DrawCache(laplace_law)  # type: ignore[arg-type]
    favourite = cache.of(Fraction(1, 7))
    for i in range(1000):
        cache.of(Fraction(i + 2))
        assert cache.of(Fraction(1, 7)) is favourite
    assert len(cache._kept) <= 128


def test_racing_for_a_new_law_keeps_its_draws_once() -> None:
    cache = DrawCache(laplace_law)  # type: ignore[arg-type]
    assert len(set(together(lambda: id(cache.of(Fraction(3, 7))), 50))) == 1
