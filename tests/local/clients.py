"""Every oracle at a size where its law can be walked, and a twin of each that lies too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import holdfast.local as local

from .walking import Law, Twin, law


def lies_less(p: Fraction) -> Fraction:
    """Half the chance of a lie, where p is the chance of the truth."""
    return (1 + p) / 2


def flips_less(p: Fraction) -> Fraction:
    """Half the chance of a flip, where p is the chance of a flip; truths are left alone."""
    return p / 2 if p < Fraction(1, 2) else p


@dataclass(frozen=True)
class Client:
    oracle: Any
    values: Sequence[Any]
    twin: Twin
    words: tuple[int, ...] = ()

    def laws(self, twin: Twin = lambda p: p, method: str = "randomize") -> list[Law]:
        return [law(self._one(value, method), words=self.words, twin=twin) for value in self.values]

    def report(self, outcome: bytes) -> np.ndarray:
        """The report array that an outcome of the law stands for."""
        empty = self.oracle.randomize(np.array(self.values)[:0])
        return np.frombuffer(outcome, dtype=empty.dtype).reshape(-1, *empty.shape[1:])

    def _one(self, value: Any, method: str) -> Callable[[Any], bytes]:
        return lambda bits: getattr(self.oracle, method)(np.array([value]), bits).tobytes()

    def __str__(self) -> str:
        return local.to_json(self.oracle)


# Words for hash functions (a, b): one that separates some of the small values and joins others.
HASH32 = (0x9E3779B9, 0x7F4A7C15)
HASH64 = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)

FREQUENCY = [
    *(
        Client(local.KaryResponse(k, e), range(k), lies_less)
        for k, e in ((2, 1.0), (5, 0.1), (9, 3.5), (4, 12.0))
    ),
    *(Client(local.SymmetricUnary(k, e), range(k), flips_less) for k, e in ((2, 1.0), (5, 0.3), (7, 4.0))),
    *(Client(local.OptimisedUnary(k, e), range(k), flips_less) for k, e in ((2, 1.0), (5, 0.3), (7, 4.0))),
    *(
        Client(local.HadamardResponse(k, e), range(k), lies_less)
        for k, e in ((2, 1.0), (3, 0.2), (4, 3.0), (7, 1.0))
    ),
    *(
        Client(local.SubsetSelection(k, e), range(k), lies_less)
        for k, e in ((2, 1.0), (5, 0.1), (6, 0.2), (7, 1.0), (6, 5.0))
    ),
]
HASHED = [
    Client(local.LocalHashing(9, 1.0), range(9), lies_less, HASH32),
    Client(local.LocalHashing(9, 0.2), range(9), lies_less, HASH32),
    Client(local.LocalHashing(70000, 2.0), range(0, 70000, 9000), lies_less, HASH64),
    Client(local.LocalHashing(9, 1.0, buckets=7), range(9), lies_less, HASH32),
]
SKETCHES = [
    Client(local.CountMeanSketch(1.0, width=4, hashes=3, seed=5), (0, 1, 2, 77, 2**40), flips_less),
    Client(local.CountMeanSketch(3.0, width=2, hashes=2, seed=6), (0, 1, 2, 3), flips_less),
    Client(local.HadamardSketch(1.0, width=4, hashes=3, seed=5), (0, 1, 2, 77, 2**40), lies_less),
    Client(local.HadamardSketch(0.3, width=8, hashes=2, seed=6), (0, 1, 2, 3, 4), lies_less),
]
COINS = [
    Client(local.RandomizedResponse(0.55), (False, True), lies_less),
    Client(local.RandomizedResponse(Fraction(3, 4)), (0, 1, 7), lies_less),
]
RAPPOR = [
    Client(local.Rappor(0.5, 0.5, 0.75, width=4, hashes=1, cohorts=2, seed=9), (0, 1, 2, 3), flips_less),
    Client(local.Rappor(0.25, 0.4, 0.6, width=4, hashes=2, cohorts=1, seed=9), (0, 1, 2, 3), flips_less),
]


def rappor_law(oracle: local.Rappor, value: int, noise: Fraction = Fraction(1)) -> Law:
    """The law of one report: permanent bits, with this share of their noise, walked and then reported."""
    found: Law = {}
    for state, mass in law(
        lambda bits: oracle.permanent([value], bits).tobytes(), twin=lambda p: p * noise
    ).items():
        for report, chance in _reported(oracle, state).items():
            found[report] = found.get(report, Fraction(0)) + mass * chance
    return found


@cache
def _reported(oracle: local.Rappor, state: bytes) -> Law:
    array = np.frombuffer(state, dtype=oracle.permanent(np.zeros(0, dtype=np.int64)).dtype)
    return law(lambda bits: oracle.report(array, bits).tobytes())
