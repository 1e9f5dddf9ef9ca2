"""Theorem 50 on small tables: every table, every set of keys that may be shown, every number of rows left out."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest

from holdfast.privacy.event import KeysByLogistic
from holdfast.validity.leave_out import kappa, ladder
from holdfast.validity.leave_out_keys import keys_charge, keys_told

KEYS = "abc"
PRIOR = 1e-12
LETTERS = 1_112_063


def log_law(shown: frozenset[str], rows: tuple[str, ...], event: KeysByLogistic) -> float:
    """ln p(shown | rows), by definition."""
    total = 0.0
    for key in KEYS:
        count = rows.count(key)
        power = float(event.rate) * (count - event.threshold)
        if key in shown:
            total += -math.log1p(math.exp(-power)) if count >= event.least else -math.inf
        elif count >= event.least:
            total -= math.log1p(math.exp(power))
    return total


def log_reference(
    shown: frozenset[str], rows: tuple[str, ...], n: int, mu: float, event: KeysByLogistic
) -> float:
    """ln of the reference on the rows that stay: independent keys with odds 1{present} e^{mu x' - lam T} + eps_e; of
    all keys that do not occur, the mass of their prior."""
    total = -PRIOR
    for key in KEYS:
        share = rows.count(key) / len(rows)
        odds = (math.exp(mu * share - float(event.rate) * event.threshold) if share else 0.0) + PRIOR / (
            2 * LETTERS
        )
        total += (math.log(odds) if key in shown else 0.0) - math.log1p(odds)
    return total


Charge = Callable[[frozenset[str], tuple[str, ...]], float]


def worst(n: int, m: int, event: KeysByLogistic, charge: Charge) -> float:
    """The largest of ln p - E_J ln reference - charge: above 0 the charge is too small."""
    mu, found = tilt(n, m, event), -math.inf
    for counts in itertools.product(range(n + 1), repeat=len(KEYS)):
        if sum(counts) > n:
            continue
        rows = tuple("".join(key * c for key, c in zip(KEYS, counts, strict=True)).ljust(n, "-"))
        stays = Counter(tuple(sorted(stay)) for stay in itertools.combinations(rows, n - m))
        for size in range(len(KEYS) + 1):
            for shown in map(frozenset, itertools.combinations(KEYS, size)):
                mine = log_law(shown, rows, event)
                if mine == -math.inf:
                    continue
                others = math.fsum(k * log_reference(shown, stay, n, mu, event) for stay, k in stays.items())
                found = max(found, mine - others / stays.total() - charge(shown, rows))
    return found


def tilt(n: int, m: int, event: KeysByLogistic) -> float:
    """The largest mu with mu + m(e^{-mu/n'} - 1 + mu/n') <= lam."""
    lam = float(event.rate) * n
    low, high = 0.0, lam
    for _ in range(200):
        mu = (low + high) / 2
        fits = mu + m * (math.exp(-mu / (n - m)) - 1 + mu / (n - m)) <= lam
        low, high = (mu, high) if fits else (low, mu)
    return low


def parts(n: int, m: int, event: KeysByLogistic) -> tuple[float, float, Charge]:
    """R, a, and what keys cost that may have been left out altogether, with the exact chance of that."""
    rate, beyond = float(event.rate), float(event.rate) * event.threshold
    crowd = max(n / j * math.exp(rate * j - beyond) for j in range(1, event.least))
    hidden = max(0.0, math.log(2 * LETTERS / PRIOR) - beyond)

    def absent(shown: frozenset[str], rows: tuple[str, ...]) -> float:
        counts = [rows.count(key) for key in shown]
        return hidden * sum(math.comb(n - c, m - c) / math.comb(n, m) for c in counts if c <= m)

    return crowd, rate * n - tilt(n, m, event), absent


GAMES = [
    (6, 1, KeysByLogistic(1, 1, 2, Fraction(1, 2), 5)),
    (6, 3, KeysByLogistic(1, 1, 3, 1, 4)),
    (7, 2, KeysByLogistic(1, 1, 2, 2, 3)),
    (7, 5, KeysByLogistic(1, 1, 4, Fraction(3, 2), 6)),
    (8, 4, KeysByLogistic(1, 1, 3, Fraction(1, 4), 9)),
]


@pytest.mark.parametrize(("n", "m", "event"), GAMES)
def test_the_charge_is_enough_on_every_table(n: int, m: int, event: KeysByLogistic) -> None:
    charge = keys_charge(n, m, event, 1)
    assert worst(n, m, event, lambda shown, rows: charge) <= 1e-9
    crowd, a, absent = parts(n, m, event)
    sharp = worst(n, m, event, lambda shown, rows: PRIOR + crowd + bool(shown) * a + absent(shown, rows))
    assert sharp <= 1e-9
    assert charge >= (PRIOR + crowd + a) * (1 - 1e-9)


TWINS: dict[str, Callable[[float, float, float, bool], float]] = {
    "keys of few rows tell nothing": lambda crowd, a, absent, shown: shown * a + absent,
    "what is shown tells nothing": lambda crowd, a, absent, shown: crowd + absent,
    "a key is never left out altogether": lambda crowd, a, absent, shown: crowd + shown * a,
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_is_caught(twin: str) -> None:
    found = []
    for n, m, event in GAMES:
        crowd, a, absent = parts(n, m, event)
        found.append(
            worst(
                n, m, event, lambda s, r, c=crowd, a=a, f=absent: PRIOR + TWINS[twin](c, a, f(s, r), bool(s))
            )  # type: ignore[misc]
        )
    assert max(found) > 1e-6


def test_one_number_holds_for_every_rung() -> None:
    event = KeysByLogistic(1, 1, 500, Fraction(1, 100), 2000)
    told = keys_told(100_000, event, 40)
    assert all(keys_charge(100_000, m, event, 40) <= kappa(100_000, m) * told / 4 for m in ladder(100_000))
    assert 4 * 1000**2 <= told <= 24 * 1000**2  # four scalar questions of sigma = 1/lam, for small m


def test_rows_of_one_owner_are_not_covered() -> None:
    assert keys_charge(100, 10, KeysByLogistic(1, 2, 5, 1, 30), 4) == math.inf


def test_an_example() -> None:
    """n = 1e6, m = 2e4, B = 1/lam = .001, T = .021: a = .0104, and R = .0008 for keys of one row."""
    event = KeysByLogistic(1, 1, 1000, Fraction(1, 1000), 21_000)
    assert keys_charge(10**6, 20_000, event, 10) == pytest.approx(
        0.0104 + 1e6 * math.exp(1e-3 - 21), rel=0.01
    )
