"""Oracles as JSON, and what they refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast.local as local
from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits

from .clients import COINS, FREQUENCY, HASHED, RAPPOR, SKETCHES

ALL = [
    *(client.oracle for client in [*FREQUENCY, *HASHED, *RAPPOR, *SKETCHES, *COINS]),
    local.OneBitMean(7, 0.1, lower=-0.3),
    local.CountMeanSketch(1.0),
    local.HeavyHitters(20, 2.0, keep=8),
]


@pytest.mark.parametrize("oracle", ALL, ids=lambda oracle: type(oracle).__name__)
def test_round_trip(oracle: Any) -> None:
    """The same oracle comes back: equal, and with the same reports from the same bits."""
    copy = local.from_json(local.to_json(oracle))
    assert copy == oracle
    assert type(copy) is type(oracle)
    first, second = (each.randomize(np.arange(5) % 2, ReplayedBits(4)) for each in (oracle, copy))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != oracle.randomize(np.arange(5) % 2, ReplayedBits(6)).tobytes() or first.size < 6


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"oracle": "Nothing"}',
        '{"oracle": ["KaryResponse"]}',
        '{"oracle": "KaryResponse", "domain": 3}',
        '{"oracle": "KaryResponse", "domain": 3, "epsilon": 1.0, "more": 1}',
        '{"oracle": "KaryResponse", "domain": 3, "epsilon": NaN}',
        '{"oracle": "KaryResponse", "domain": 3.5, "epsilon": 1.0}',
        '{"oracle": "KaryResponse", "domain": true, "epsilon": 1.0}',
        '{"oracle": "RandomizedResponse", "truth": "1/0"}',
        '{"oracle": "RandomizedResponse", "truth": "x"}',
    ],
)
def test_other_documents_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        local.from_json(text)


def test_what_is_no_oracle_is_not_written() -> None:
    with pytest.raises(InputError, match="oracle"):
        local.to_json("KaryResponse")  # type: ignore[arg-type]
    assert json.loads(local.to_json(COINS[0].oracle)) == {"oracle": "RandomizedResponse", "truth": "11/20"}


MAKERS: list[Callable[[Any], Any]] = [
    lambda e: local.KaryResponse(5, e),
    lambda e: local.SymmetricUnary(5, e),
    lambda e: local.OptimisedUnary(5, e),
    lambda e: local.LocalHashing(5, e),
    lambda e: local.HadamardResponse(5, e),
    lambda e: local.SubsetSelection(5, e),
    lambda e: local.CountMeanSketch(e),
    lambda e: local.HadamardSketch(e),
    lambda e: local.OneBitMean(1.0, e),
    lambda e: local.HeavyHitters(8, e),
    lambda e: local.best(5, e),
]
BAD_NUMBERS = [math.nan, math.inf, -1.0, 0, 0.0, 1e-300, 33.0, True, "1", None, 1 + 0j]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("epsilon", BAD_NUMBERS, ids=repr)
def test_bad_epsilon(make: Callable[[Any], Any], epsilon: Any) -> None:
    with pytest.raises(InputError, match="epsilon"):
        make(epsilon)


@pytest.mark.parametrize("make", MAKERS)
def test_epsilon_may_be_any_number(make: Callable[[Any], Any]) -> None:
    assert make(1).epsilon == make(Fraction(1)).epsilon == make(np.float64(1.0)).epsilon == 1.0
    assert make(Fraction(1, 3)).epsilon <= Fraction(1, 3)


@pytest.mark.parametrize("make", [MAKERS[i] for i in range(6)])
@pytest.mark.parametrize("domain", [1, 0, -3, True, 2.0, "2", None, 1 << 60], ids=repr)
def test_bad_domain(make: Callable[[Any], Any], domain: Any) -> None:
    with pytest.raises(InputError, match="domain"):
        type(make(1.0))(domain, 1.0)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda t=t: local.RandomizedResponse(t) for t in (0.5, 0.4, 1.0, 0, math.nan, True, "0.6", None)),
        *(lambda b=b: local.LocalHashing(5, 1.0, b) for b in (1, 0, 2.0, True, 5000)),
        *(lambda w=w: local.CountMeanSketch(1.0, width=w) for w in (3, 1, 0, True, 2.0, 1 << 17)),
        *(lambda h=h: local.HadamardSketch(1.0, hashes=h) for h in (0, -1, True, 1.0, 1 << 17)),
        *(lambda s=s: local.HadamardSketch(1.0, seed=s) for s in (-1, True, 1.0, "x")),
        *(lambda f=f: local.Rappor(f) for f in (0, 1, math.nan, -0.5, True)),
        lambda: local.Rappor(p=0.5, q=0.5),
        lambda: local.Rappor(p=0.6, q=0.5),
        lambda: local.Rappor(hashes=0),
        lambda: local.Rappor(cohorts=True),
        *(lambda u=u: local.OneBitMean(u, 1.0) for u in (0, -1, math.nan, math.inf, True, "1")),
        lambda: local.OneBitMean(1e308, 1.0, lower=-1e308),
        *(lambda n=n: local.HeavyHitters(n, 1.0) for n in (0, 49, True, 8.0)),
        lambda: local.HeavyHitters(8, 1.0, first=0),
        lambda: local.HeavyHitters(8, 1.0, step=0),
        lambda: local.HeavyHitters(8, 1.0, keep=0),
        lambda: local.best(1 << 20, 1.0, report_bits=8),
        lambda: local.best(5, 1.0, report_bits=0),
    ],
)
def test_bad_parameters(make: Callable[[], Any]) -> None:
    with pytest.raises(InputError):
        make()
