"""Counters: noise that is drawn once, of the right size, and a state that survives."""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from oracles.sparse_vector_law import laplace
from scipy import stats

from holdfast.errors import BudgetError, InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.gaussian import gaussian
from holdfast.privacy import events, pure, zcdp
from holdfast.stream import Counter, HistogramCounter, UnboundedCounter
from holdfast.stream.factorisation import norm_squared
from holdfast.stream.square_root import SquareRoot
from holdfast.stream.tail import laplace_sum_half_width
from holdfast.stream.tree import Tree

METHODS = [{"rho": 0.5, "method": "tree"}, {"rho": 0.5, "method": "sqrt"}, {"epsilon": 1.0}]


@pytest.mark.parametrize("horizon", [1, 2, 3, 13, 64])
def test_tree_totals_are_sums_over_disjoint_blocks(horizon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noises are replaced by powers of a large base, so that a total tells which of them it holds."""
    tree, base, drawn = Tree(horizon, epsilon=None, rho=Fraction(1), largest=1), 10**6, []
    tree._draw = lambda: drawn.append(len(drawn) + 1) or base ** len(drawn)  # type: ignore[func-returns-value]
    blocks_of = [0] * (horizon + 1)
    for t in range(1, horizon + 1):
        tree.add(1)
        for s in range(t - (t & -t) + 1, t + 1):
            blocks_of[s] += 1
        total, held = tree.total(), []
        assert total % base == t, "the exact total of ones"
        total //= base
        for s in range(1, t + 1):
            held += [s] * (total % base)
            total //= base
        covered = sorted(x for s in held for x in range(s - (s & -s) + 1, s + 1))
        assert covered == list(range(1, t + 1)), "every arrival is covered once"
        assert len(held) == t.bit_count()
    assert max(blocks_of) == tree.height, "so the sensitivity is the height, and no less (twin: height - 1)"


@pytest.mark.parametrize("terms", METHODS)
def test_the_event_is_known_first_and_is_the_budget(terms: dict) -> None:
    counter = Counter(1000, **terms)
    event = counter.event
    if "rho" in terms:
        assert zcdp(event).rho == pytest.approx(0.5)
        assert Fraction(zcdp(event).rho) <= Fraction(0.5) * (1 + Fraction(1, 10**12))
    else:
        assert pure(event).epsilon == 1
    counter.extend([1] * 1000)
    assert counter.event == event


@pytest.mark.parametrize("terms", METHODS)
def test_a_total_is_the_same_until_the_next_arrival(terms: dict) -> None:
    counter = Counter(5000, **terms)
    one_by_one, ahead = [], []
    for _ in range(700):
        counter.add(1)
        one_by_one.append(counter.total())
        ahead.append(counter.total())
    assert one_by_one == ahead
    assert len({total - t for t, total in enumerate(one_by_one)}) > 10, "there is noise"


class FreshCounter(SquareRoot):
    """Twin: the published mistake. New noise for every prefix, each right on its own, together worthless."""

    __slots__ = ()

    def total(self) -> int:
        g = self.grid.steps
        noise = gaussian(self.variance * math.ceil(norm_squared(self.horizon)), self._bits)
        return (2 * (self.total_units + noise) + g) // (2 * g)


def averaged_away(kind: type[SquareRoot]) -> float:
    """The error that is left when a constant total is read again and again, in single standard deviations."""
    counter = kind(4096, Fraction(1, 200), 1, ReplayedBits(1))
    for _ in range(64):
        counter.add(0)
    readings = []
    for _ in range(400):
        readings.append(counter.total())
    return float(np.std(readings))


def test_reading_again_gives_nothing_new() -> None:
    assert averaged_away(SquareRoot) == 0
    assert averaged_away(FreshCounter) > 1


def test_noise_drawn_ahead_does_not_change_when_more_is_drawn() -> None:
    counter = SquareRoot(5000, Fraction(1), 1, ReplayedBits(3))
    first = counter._noise_at(200).copy()
    for count in (300, 1000, 5000):
        assert np.array_equal(counter._noise_at(count)[:200], first)


@pytest.mark.parametrize("terms", METHODS)
def test_extend_is_many_adds(terms: dict) -> None:
    values = np.random.default_rng(0).integers(0, 4, 600)
    first, second = (Counter(600, largest=3, bits=ReplayedBits(6), **terms) for _ in range(2))
    totals = []
    for value in values.tolist():
        first.add(value)
        totals.append(first.total())
    parts = [second.extend(part).tolist() for part in (values[:256], values[256:400], values[400:])]
    if terms.get("method") == "sqrt":
        # Pieces of noise are drawn with other sizes, hence from other bits; the exact part must agree.
        assert second.total() == parts[-1][-1]
        assert abs(second.total() - values.sum()) < second.half_width(1e-9)
    else:
        assert functools.reduce(operator.iadd, parts, []) == totals
    assert second.seen == first.seen == 600


def deviations(terms: dict, runs: int, horizon: int, bits: ReplayedBits | None) -> np.ndarray:
    out = []
    for _ in range(runs):
        counter = Counter(horizon, bits=bits, **terms)
        out.append(int(counter.extend([1] * horizon)[-1]) - horizon)
    return np.array(out, dtype=float)


@pytest.mark.parametrize(
    ("terms", "variance"),
    [
        ({"rho": 0.005, "method": "tree"}, 6 * 6 / 0.01),  # T = 63: six blocks of variance h/(2 rho), h = 6
        ({"rho": 0.005, "method": "sqrt"}, norm_squared(63) ** 2 / 0.01),
    ],
)
def test_the_noise_has_the_stated_size_and_not_its_neighbours(terms: dict, variance: float) -> None:
    # Seeded for the square root; single draws are quick from the system's bits only, where the test may fail
    # by accident with a probability below 1e-9.
    runs, bits = (4000, ReplayedBits(7)) if terms["method"] == "sqrt" else (12_000, None)
    errors = deviations(terms, runs, 63, bits)
    assert abs(errors.mean()) < 6.2 * math.sqrt(variance / runs)

    def p_value(scale: float) -> float:
        ratio = float((errors**2).sum()) / (variance * scale**2)
        return float(2 * min(stats.chi2.cdf(ratio, runs), stats.chi2.sf(ratio, runs)))

    assert p_value(1.0) > 1e-9
    assert max(p_value(0.9), p_value(1.1)) < 1e-9


def test_the_square_root_has_a_quarter_of_the_tree_s_noise() -> None:
    """At T = 2^16: the worst total of the tree has 16 blocks of variance 17/(2 rho)."""
    tree, root = Counter(2**16, rho=0.5, method="tree"), Counter(2**16, rho=0.5)
    tree._inner.seen = root._inner.seen = 2**16 - 1
    ratio = tree.half_width(0.05) / root.half_width(0.05)
    assert 3.3 < ratio < 3.75
    assert 17 / norm_squared(2**16) == pytest.approx(3.70, abs=0.01)


@pytest.mark.parametrize("terms", METHODS)
def test_the_half_width_holds_at_its_confidence(terms: dict) -> None:
    runs, beta, bits, misses = 80, 0.2, ReplayedBits(9), 0
    for _ in range(runs):
        counter = Counter(100, bits=bits, **terms)
        total = int(counter.extend([1] * 100)[-1])
        misses += abs(total - 100) > counter.half_width(beta)
    assert misses <= beta * runs
    assert counter.half_width(0.01) > counter.half_width(0.2)


def test_the_tail_of_laplace_sums_is_a_bound_and_not_far() -> None:
    one = laplace(3)
    law = one.mass
    for _ in range(3):
        law = np.convolve(law, one.mass)
    support = np.arange(law.size) - law.size // 2
    for beta in (0.3, 0.05, 1e-4, 1e-8):
        h = laplace_sum_half_width(Fraction(3), 4, beta)
        assert law[np.abs(support) > h].sum() <= beta
        assert law[np.abs(support) > 0.4 * h].sum() > beta, "twin: much less of it"
    assert laplace_sum_half_width(Fraction(1, 1000), 4, 0.05) < 1


class ForgetfulCounter(Counter):
    """Twin: loses its noise at a restart."""

    __slots__ = ()

    @classmethod
    def from_json(cls, saved, bits=None):  # type: ignore[no-untyped-def]
        counter = super().from_json(saved, bits)
        fresh = cls(counter.horizon, rho=0.01, method=saved["terms"]["method"], bits=bits)
        for _ in range(counter.seen):
            fresh.add(1)
        return fresh


def restart_changes_nothing(kind: type[Counter], method: str) -> bool:
    counter = kind(3000, rho=0.01, method=method)  # type: ignore[arg-type]
    for _ in range(777):
        counter.add(1)
    before = counter.total()
    again = kind.from_json(json.loads(json.dumps(counter.to_json())))
    return again.total() == before and again.seen == 777


@pytest.mark.parametrize("method", ["tree", "sqrt"])
def test_a_restart_draws_nothing_again(method: str) -> None:
    assert all(restart_changes_nothing(Counter, method) for _ in range(5))
    assert not all(restart_changes_nothing(ForgetfulCounter, method) for _ in range(5))


@pytest.mark.parametrize("terms", METHODS)
def test_after_a_restart_old_and_new_go_on_alike(terms: dict) -> None:
    counter = Counter(300, bits=ReplayedBits(2), **terms)
    counter.extend([1] * 100)
    again = Counter.from_json(json.loads(json.dumps(counter.to_json())), bits=ReplayedBits(8))
    assert again.to_json() == counter.to_json()
    assert again.event == counter.event
    if terms.get("method") == "sqrt":  # all 256 noises were drawn before
        assert again.extend([1] * 100).tolist() == counter.extend([1] * 100).tolist()


def test_state_of_the_tree_is_logarithmic() -> None:
    counter = Counter(10**12, rho=0.5, method="tree")
    counter.extend([1] * 1000)
    assert len(json.dumps(counter.to_json())) < 2000


def test_values_are_clamped_and_time_passes() -> None:
    counter = Counter(3, rho=10**6, largest=5)
    for value in (-7, 100, 3):
        counter.add(value)
    assert counter.total() == 8
    with pytest.raises(BudgetError, match="at most 3 arrivals"):
        counter.add(1)
    with pytest.raises(BudgetError):
        Counter(3, rho=1.0).extend([1, 1, 1, 1])
    assert Counter(3, rho=1.0).total() == 0


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Counter(0, rho=1.0),
        lambda: Counter(1.5, rho=1.0),
        lambda: Counter(True, rho=1.0),
        lambda: Counter(10),
        lambda: Counter(10, rho=1.0, epsilon=1.0),
        lambda: Counter(10, rho=0),
        lambda: Counter(10, rho=math.nan),
        lambda: Counter(10, rho=-1.0),
        lambda: Counter(10, rho=True),
        lambda: Counter(10, epsilon=1.0, method="sqrt"),
        lambda: Counter(10, rho=1.0, method="fft"),
        lambda: Counter(10, rho=1.0, largest=0),
        lambda: Counter(2**40, rho=1.0),
        lambda: Counter(10, rho=1e-30),
        lambda: Counter(10, rho=1.0).add(0.5),
        lambda: Counter(10, rho=1.0).add(True),
        lambda: Counter(10, rho=1.0).add([1, 2]),
        lambda: Counter(10, rho=1.0).extend([0.5]),
        lambda: Counter(10, rho=1.0).extend([[1], [2]]),
        lambda: Counter(10, rho=1.0).half_width(0),
        lambda: Counter.from_json({}),
        lambda: Counter.from_json({"terms": {"horizon": 3, "rho": "1"}, "secret": {}}),
        lambda: UnboundedCounter(),
        lambda: UnboundedCounter(rho=0),
        lambda: UnboundedCounter(rho=1.0, method="fft"),
        lambda: UnboundedCounter(rho=1.0).add(0.5),
        lambda: UnboundedCounter.from_json({}),
        lambda: HistogramCounter([], 10, rho=1.0),
        lambda: HistogramCounter(["a", "a"], 10, rho=1.0),
        lambda: HistogramCounter([1.5], 10, rho=1.0),
        lambda: HistogramCounter.from_json({}),
    ],
)
def test_bad_parameters_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        refused()


@pytest.mark.parametrize("terms", METHODS)
def test_unbounded_streams_cost_the_same_for_ever(terms: dict) -> None:
    counter = UnboundedCounter(**terms)
    event = counter.event
    inner = []
    for t in range(1, 8000):
        counter.add(t % 2)
        if counter._counter.seen == 1:
            inner.append((counter._counter.horizon, counter._counter.event))
    assert counter.event == event
    assert [horizon for horizon, _ in inner] == [1024, 2048, 4096, 8192]
    # An arrival is in one stretch: its running totals and its final total together stay within the budget.
    for _, running in inner:
        if "rho" in terms:
            closing = events.Gaussian(1, counter._parameter())
            assert zcdp(events.Sequence((running, closing))).rho <= 0.5 * (1 + 1e-9)
        else:
            closing = events.Laplace(1, counter._parameter())
            assert pure(events.Sequence((running, closing))).epsilon <= 1 + 1e-9
    assert counter.seen == 7999
    assert abs(counter.total() - 4000) < counter.half_width(1e-9)
    again = UnboundedCounter.from_json(json.loads(json.dumps(counter.to_json())))
    assert (again.total(), again.seen, again.half_width(0.1)) == (
        counter.total(),
        counter.seen,
        counter.half_width(0.1),
    )


def test_unbounded_stretches_of_square_roots_stop_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.stream import unbounded

    monkeypatch.setattr(unbounded, "LONGEST", 2048)
    counter = UnboundedCounter(rho=0.5)
    horizons = set()
    for _ in range(8000):
        counter.add(1)
        horizons.add(counter._counter.horizon)
    assert horizons == {1024, 2048}
    assert abs(counter.total() - 8000) < counter.half_width(1e-9)


@pytest.mark.parametrize("terms", METHODS)
def test_histograms_over_time(terms: dict) -> None:
    counter = HistogramCounter(["a", "b", "c"], 400, **terms)
    loss = zcdp(counter.event).rho if "rho" in terms else pure(counter.event).epsilon
    assert loss == pytest.approx(0.5 if "rho" in terms else 1.0)
    for i in range(400):
        counter.add(["a", "b", "a", "unknown"][i % 4])
    totals, h = counter.totals(), counter.half_width(1e-9)
    assert abs(totals["a"] - 200) < h
    assert abs(totals["b"] - 100) < h
    assert abs(totals["c"]) < h
    assert counter.totals() == totals
    assert [c.seen for c in counter._counters] == [400] * 3, "time passes everywhere, so it tells nothing"
    again = HistogramCounter.from_json(json.loads(json.dumps(counter.to_json())))
    assert (again.totals(), again.event, again.seen) == (totals, counter.event, 400)
