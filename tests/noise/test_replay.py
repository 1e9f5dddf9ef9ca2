"""The door for tests: noise repeats itself inside, in one thread, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from oracles import repeated_noise

from holdfast.errors import InputError
from holdfast.noise._replay import replayed, replaying
from holdfast.noise.bernoulli import bernoulli_vector
from holdfast.noise.bits import ReplayedBits, source, system_bits
from holdfast.noise.choice import choice
from holdfast.noise.gaussian import gaussian, gaussian_vector
from holdfast.noise.geometric import geometric, geometric_vector
from holdfast.noise.laplace import laplace, laplace_vector
from holdfast.noise.subset import with_replacement, without_replacement

WIDE = Fraction(2**50)
DRAWS: dict[str, Callable[[], object]] = {
    "system bits": lambda: system_bits().below(2**60),
    "source": lambda: source(None).words(2).tolist(),
    "laplace": lambda: laplace(WIDE),
    "laplace vector": lambda: laplace_vector(WIDE, 20).tolist(),
    "a short laplace vector": lambda: laplace_vector(WIDE, 2).tolist(),
    "gaussian": lambda: gaussian(WIDE**2),
    "gaussian vector": lambda: gaussian_vector(WIDE**2, 20).tolist(),
    "geometric": lambda: geometric(1 / WIDE),
    "geometric vector": lambda: geometric_vector(1 / WIDE, 20).tolist(),
    "choice": lambda: choice(np.zeros(10**5, dtype=np.int64), 1),
    "ids": lambda: with_replacement(2**60, 2).tolist(),
    "distinct ids": lambda: without_replacement(2**60, 2).tolist(),
    "coins": lambda: bernoulli_vector(Fraction(1, 3), 100).tolist(),
}
"""Two draws of any of these are equal by accident with probability below 1e-4 (choice), mostly 1e-15."""


@pytest.mark.parametrize("kind", DRAWS)
def test_noise_repeats_itself_inside_and_not_outside(kind: str) -> None:
    draw, inside = DRAWS[kind], []
    for _ in range(2):
        with replayed(ReplayedBits(5)):
            assert replaying()
            inside.append([draw(), draw()])
        assert not replaying()
    assert inside[0] == inside[1]
    assert inside[0][0] != inside[0][1]
    assert [draw(), draw()] not in inside


def test_the_system_draws_nothing_that_was_replayed() -> None:
    """What was made ahead before the door opened stays, and nothing of the replay is left over for later."""
    with replayed(ReplayedBits(5)):
        inside = {laplace(WIDE) for _ in range(20)}
    assert not inside & {laplace(WIDE) for _ in range(200)}


def test_other_threads_keep_the_systems_bits() -> None:
    found: list[object] = []
    with replayed(ReplayedBits(5)):
        mine = laplace(WIDE)
        thread = threading.Thread(target=lambda: found.extend([replaying(), laplace(WIDE)]))
        thread.start()
        thread.join()
    assert found[0] is False
    assert found[1] != mine


def test_the_door_closes_after_an_error_and_doors_nest() -> None:
    with pytest.raises(ZeroDivisionError), replayed(ReplayedBits(1)):
        1 / 0
    assert not replaying()
    outer = ReplayedBits(1)
    with replayed(outer):
        with replayed(ReplayedBits(2)):
            assert system_bits() is not outer
        assert system_bits() is outer


def test_production_has_no_such_door(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = ReplayedBits(1)
    monkeypatch.setenv("HOLDFAST_ENV", "production")
    with pytest.raises(InputError, match="production"), replayed(bits):
        pytest.fail("it opened")
    assert not replaying()


def test_a_test_draws_the_same_noise_at_every_run() -> None:
    def drawn(name: str | None) -> list[object]:
        repeated_noise.begin(name)
        return [draw() for draw in DRAWS.values()]

    assert drawn("a") == drawn("a")
    assert drawn("a") != drawn("b")
    assert drawn(None) != drawn(None)
