"""Expectations and variances, computed from the walked laws: no simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import holdfast.local as local
from holdfast.local.affine import bucket_edges, top_bits

from .clients import COINS, FREQUENCY, HASHED, RAPPOR, SKETCHES, Client, rappor_law
from .walking import Law


def supported(client: Client, items: np.ndarray, laws: list[Law] | None = None) -> list[list[Fraction]]:
    """For each value and each item: the exact mean of the votes which the value's report gives the item."""
    table = []
    for law in laws or client.laws():
        chance = [Fraction(0)] * items.size
        for outcome, mass in law.items():
            votes = client.oracle.counts(client.report(outcome), items)
            chance = [old + mass * int(vote) for old, vote in zip(chance, votes, strict=True)]
        table.append(chance)
    return table


@pytest.mark.parametrize("client", FREQUENCY, ids=str)
def test_p_and_q_are_exact(client: Client) -> None:
    """So (C/n - q)/(p - q) has expectation f exactly, for every population."""
    k, support = client.oracle.domain, client.oracle.support
    found = supported(client, np.arange(k))
    claimed = [[support.p if x == v else support.q for v in range(k)] for x in range(k)]
    assert found == claimed
    wrong = replace(support, q=support.q * Fraction(999, 1000))
    assert found != [[wrong.p if x == v else wrong.q for v in range(k)] for x in range(k)]


@pytest.mark.parametrize("client", HASHED, ids=str)
def test_hashed_support_given_the_function(client: Client) -> None:
    """Given (a, b): p where the function joins item and value, the chance of that lie where it does not."""
    oracle, items = client.oracle, np.array(client.values)
    word = np.uint32 if oracle.domain <= 1 << 16 else np.uint64
    a, b = (np.array([w], dtype=word) for w in client.words)
    bucket = [math.floor(Fraction(int(h) * oracle.buckets, 1 << 16)) for h in top_bits(a, b, items)]
    p, lie = oracle.support.p, (1 - oracle.support.p) / (oracle.buckets - 1)
    joined = [[p if mine == other else lie for other in bucket] for mine in bucket]
    assert supported(client, items) == joined
    assert any(first == second for first, second in itertools.combinations(bucket, 2)), (
        "no collision was tried"
    )


@pytest.mark.parametrize("buckets", [2, 3, 4, 7, 100, 4096])
def test_hashed_q_averages_over_the_functions(buckets: int) -> None:
    """Two independent uniform 16-bit hash values (test_hashing) meet as often as q assumes."""
    support = local.LocalHashing(9, 1.0, buckets=buckets).support
    share = np.bincount(np.arange(1 << 16) * buckets >> 16)
    assert np.array_equal(np.cumsum(share), bucket_edges(buckets)[1:])
    meet = Fraction(sum(int(s) ** 2 for s in share), 1 << 32)
    assert support.q == meet * support.p + (1 - meet) * (1 - support.p) / (buckets - 1)
    assert abs(support.q - Fraction(1, buckets)) < Fraction(1, 10**5)
    assert (support.q == Fraction(1, buckets)) == (buckets in (2, 4, 4096))


@pytest.mark.parametrize("client", SKETCHES, ids=str)
def test_sketches_given_the_rows(client: Client) -> None:
    """Given the public functions: base + (p - base) * (share of rows that join item and value)."""
    oracle, items = client.oracle, np.array(client.values)
    rows = np.arange(oracle.hashes)[:, np.newaxis]
    places = oracle._functions.places(rows, items[np.newaxis, :])
    p, share = oracle.support.p, oracle.support.hashing.share
    base = (oracle.support.q - share * p) / (1 - share)
    met = [
        [Fraction(int(np.sum(places[:, x] == places[:, v])), oracle.hashes) for v in range(items.size)]
        for x in range(items.size)
    ]
    assert supported(client, items) == [[base + (p - base) * m for m in row] for row in met]
    assert share == Fraction(1, oracle.width)


@pytest.mark.parametrize("client", RAPPOR, ids=str)
def test_rappor_given_the_cohorts(client: Client) -> None:
    """Given the public functions: p* + (q* - p*) * (share of the item's bits that the value sets)."""
    oracle, items = client.oracle, np.array(client.values)
    places = oracle._functions.places(
        np.arange(oracle.cohorts * oracle.hashes)[:, np.newaxis], items[np.newaxis, :]
    )
    by_cohort = places.reshape(oracle.cohorts, oracle.hashes, items.size)
    one, share = oracle.support.p, oracle.support.hashing.share
    zero = (oracle.support.q - share * one) / (1 - share)
    f, p, q = oracle.noise, oracle.p, oracle.q
    assert (zero, one) == (f * (p + q) / 2 + (1 - f) * p, f * (p + q) / 2 + (1 - f) * q)
    met = [
        [
            sum(int(bit in cohort[:, x]) for cohort in by_cohort for bit in cohort[:, v])
            for v in range(items.size)
        ]
        for x in range(items.size)
    ]
    claimed = [
        [oracle.hashes * zero + (one - zero) * Fraction(m, oracle.cohorts) for m in row] for row in met
    ]
    assert supported(client, items, [rappor_law(oracle, value) for value in client.values]) == claimed
    assert share == 1 - Fraction(oracle.width - 1, oracle.width) ** oracle.hashes


def test_sketch_is_the_published_estimator() -> None:
    """m/(m-1) (mean over reports of the corrected cell - 1/m), with c = (e^(eps/2)+1)/(e^(eps/2)-1)."""
    oracle = local.CountMeanSketch(2.0, width=16, hashes=8, seed=3)
    values = np.arange(500) % 11
    reports = oracle.randomize(values)
    c, m, n = (math.e + 1) / (math.e - 1), oracle.width, values.size
    bits = np.unpackbits(reports["bits"], axis=1, bitorder="little").astype(float)
    table = np.zeros((oracle.hashes, m))
    np.add.at(table, reports["row"], oracle.hashes * (c / 2 * (2 * bits - 1) + 0.5))
    item = np.array([4])
    cells = table[np.arange(8), oracle._functions.places(np.arange(8), np.repeat(item, 8))]
    published = m / (m - 1) * (cells.mean() - n / m) / n
    assert oracle.estimate(reports, items=item).value[0] == pytest.approx(published, rel=1e-9)


@pytest.mark.parametrize("client", [*FREQUENCY[:1], FREQUENCY[4], FREQUENCY[10], FREQUENCY[14]], ids=str)
def test_expectation_of_the_whole_estimate(client: Client) -> None:
    """Two users, all pairs of reports: the estimates average to the truth, the squares to the variance."""
    laws = client.laws()[:2]
    mean = variance = 0.0
    for (first, p), (second, q) in itertools.product(laws[0].items(), laws[1].items()):
        reports = np.concatenate([client.report(first), client.report(second)])
        value = client.oracle.estimate(reports).value[0]
        mean += float(p * q) * value
        variance += float(p * q) * (value - 0.5) ** 2
    assert mean == pytest.approx(0.5, abs=1e-12)
    claimed = client.oracle.support.variance(0.5, 2)
    assert variance == pytest.approx(claimed, rel=1e-9)
    assert all(variance != pytest.approx(claimed * wrong, rel=1e-9) for wrong in (0.9, 1.1))


def test_warner_estimator() -> None:
    oracle = local.RandomizedResponse(truth=0.55)
    reports = np.array([1] * 47 + [0] * 53, dtype=np.uint8)
    found = oracle.estimate(reports)
    assert found.value == pytest.approx(10 * (0.47 - 0.45))
    assert oracle.support.variance(0.3) == oracle.support.variance(0.9) == pytest.approx(24.75)
    assert found.deviation == pytest.approx(math.sqrt(24.75 / 100))
    for client in COINS:
        truth = client.oracle.truth
        assert [law[b"\1"] for law in client.laws()] == [
            truth if value else 1 - truth for value in client.values
        ]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 16, 1000])
def test_variances_of_the_theory(k: int, epsilon: float) -> None:
    """The variance for a rare item in closed form."""
    e, half = math.exp(epsilon), math.exp(epsilon / 2)
    best = 4 * e / (e - 1) ** 2
    claimed = {
        local.KaryResponse(k, epsilon): (e + k - 2) / (e - 1) ** 2,
        local.SymmetricUnary(k, epsilon): half / (half - 1) ** 2,
        local.OptimisedUnary(k, epsilon): best,
        local.HadamardResponse(k, epsilon): ((e + 1) / (e - 1)) ** 2,
    }
    for oracle, variance in claimed.items():
        assert oracle.support.variance() == pytest.approx(variance, rel=1e-9), oracle
    hashed = local.LocalHashing(k, epsilon)
    g = round(e) + 1
    assert hashed.buckets == g
    assert hashed.support.variance() == pytest.approx((e - 1 + g) ** 2 / ((e - 1) ** 2 * (g - 1)), rel=1e-3)
    assert best * (1 - 1e-6) <= hashed.support.variance() <= best * 1.03
    assert local.SubsetSelection(k, epsilon).support.variance() <= min(claimed.values()) * (1 + 1e-9)
    coin = local.OneBitMean(1.0, epsilon).support
    assert (float(coin.p), float(coin.q)) == pytest.approx((e / (e + 1), 1 / (e + 1)), rel=1e-12)
