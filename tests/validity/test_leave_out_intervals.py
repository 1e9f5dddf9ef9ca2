"""Intervals for rare events, differences and ratios: exact coverage in small games, the published twins that break."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from oracles.leave_out_game import MENU, Game, discrete_gaussian

from holdfast.validity.leave_out import (
    GRID_SHARE,
    LeaveOut,
    kappa,
    planned_place,
    planned_sizes,
    recorded_grid,
)
from holdfast.validity.leave_out_charges import gaussian_charge, rare_charge
from holdfast.validity.leave_out_intervals import (
    difference_charge,
    difference_interval,
    difference_tangent,
    mixed_difference_interval,
    rare_interval,
    ratio_interval,
)

RARE = (0.85, 0.1, 0.05)


def rare_moment(game: Game, left_out: int, s: float, tilt: float, charge: Callable[[float], float]) -> float:
    """E exp(b q(S) - m Lambda_w(b/m) - charge(a)) for the best first question and, after its answer, the best q."""
    total, t = [], tilt / left_out
    for first in range(len(MENU)):
        value = 0.0
        reach = (len(discrete_gaussian(s)) - 1) // 2
        for answer, law in zip(range(-reach, game.rows + reach + 1), game._laws(first, s), strict=True):
            weight = game.chance * law * math.exp(-charge(answer / game.rows))
            ends = []
            for q, w in enumerate(game.true):
                bound = left_out * math.log1p(w * math.expm1(t))
                ends.append(float(np.exp(tilt * game.counts[q] / game.rows - bound) @ weight))
            value += max(ends)
        total.append(value)
    return max(total)


GAMES = [(5, 1, 1.0, 1.0), (5, 2, 0.6, 2.0), (6, 1, 2.0, 0.6), (6, 3, 1.0, 3.0)]


@pytest.mark.parametrize(("rows", "left_out", "s", "tilt"), GAMES)
@pytest.mark.parametrize("population", [RARE, (1 / 3, 1 / 3, 1 / 3)])
def test_rare_charges_carry_the_theorem_of_rare_events(
    rows: int, left_out: int, s: float, tilt: float, population: tuple[float, ...]
) -> None:
    game = Game(rows, population)
    assert (
        rare_moment(game, left_out, s, tilt, lambda a: rare_charge(rows, left_out, s / rows, a)) <= 1 + 1e-9
    )


def test_no_charge_or_the_smaller_of_two_breaks_it() -> None:
    """The twins: which charge holds is decided before the answer, never by which is smaller."""
    nothing = [rare_moment(Game(r, RARE), m, s, b, lambda _: 0.0) for r, m, s, b in GAMES]
    assert max(nothing) > 1.001
    rows, left_out, s = 6, 1, 0.5
    sigma = s / rows
    flat, least = gaussian_charge(rows, left_out, sigma), rare_charge(rows, left_out, sigma, 0.0)

    def mass(smaller: bool) -> float:
        """The greatest mass of the reference that belongs to the charges, over centres: at most 1 if they hold."""
        line = np.linspace(-8 * sigma - 1, 8 * sigma + 2, 40_001)
        k = kappa(rows, left_out)
        worst = 0.0
        for share in np.linspace(0, 1, 21):
            plain = np.exp(-((line - share) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
            more = k / (1 - 2 * k) * (share - share**2) / sigma**2
            read = np.array([rare_charge(rows, left_out, sigma, a) for a in line.tolist()[::40]])
            read = np.interp(line, line[::40], read)
            by_answer = plain * np.exp(more - read)
            both = np.maximum(by_answer, plain * np.exp(more - flat)) if smaller else by_answer
            worst = max(worst, float(both.sum() * (line[1] - line[0])))
        return worst

    assert least < flat
    assert mass(smaller=False) <= 1 + 1e-3
    assert mass(smaller=True) > 1.01


def covered(
    game: Game, first: float, second: float, interval: Callable[[float, float], tuple[float, float]]
) -> float:
    """The chance that the second interval misses, for the best pair of questions; interval(first, second answer)."""
    noise = discrete_gaussian(second)
    reach, rows = (len(noise) - 1) // 2, game.rows
    wide = (len(discrete_gaussian(first)) - 1) // 2
    worst = 0.0
    for asked in range(len(MENU)):
        total = 0.0
        for before, law in zip(range(-wide, rows + wide + 1), game._laws(asked, first), strict=True):
            ends = [interval(before / rows, after / rows) for after in range(-reach, rows + reach + 1)]
            chances = []
            for q, truth in enumerate(game.true):
                missed = np.array([not low - 1e-12 <= truth <= high + 1e-12 for low, high in ends])
                chances.append(
                    sum(
                        float((game.chance * law * answer) @ np.ones_like(law))
                        for answer, far in zip(game._laws(q, second), missed, strict=True)
                        if far
                    )
                )
            total += max(chances)
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize("sizes", [(1,), (3, 1)])
@pytest.mark.parametrize("beta", [0.05, 0.3])
def test_no_analyst_makes_a_rare_interval_miss_too_often(sizes: tuple[int, ...], beta: float) -> None:
    rows, first, second = 5, 1.0, 0.7
    left_out = LeaveOut(rows, sizes, (1 / len(sizes),) * len(sizes))

    def interval(before: float, after: float) -> tuple[float, float]:
        charged = [rare_charge(rows, m, first / rows, before) for m in sizes]
        return rare_interval(left_out, charged, second / rows, after, beta, 1 / rows)

    assert covered(Game(rows, RARE), first, second, interval) <= beta


def test_a_rare_interval_that_is_moved_misses() -> None:
    def interval(_: float, after: float) -> tuple[float, float]:
        low, high = rare_interval(LeaveOut(5, (1,)), (0.0,), 0.14, after, 0.05, 0.2)
        return low + (high - low) * 0.5, high - (high - low) * 0.2

    assert covered(Game(5, RARE), 1.0, 0.7, interval) > 0.05


CHARGED = (0.05, 0.1, 0.3)


def test_rare_intervals_are_narrow_where_the_event_is_rare() -> None:
    rows, sigma = 1_000_000, 0.0005
    sizes = (20_000, 60_000, 200_000)
    left_out = LeaveOut(rows, sizes, (0.3, 0.3, 0.3))
    low, high = rare_interval(left_out, CHARGED, sigma, 0.01, 1e-6)
    middle = rare_interval(left_out, CHARGED, sigma, 0.5, 1e-6)
    assert 0.005 < low < 0.01 < high < 0.015
    assert high - low < 0.4 * (middle[1] - middle[0])
    mirrored = rare_interval(left_out, CHARGED, sigma, 0.99, 1e-6)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)
    assert rare_interval(left_out, CHARGED, sigma, -3.0, 1e-6)[0] == 0.0


SIGNS = (-1, 0, 1)


def signed_tables(rows: int, law: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(chance, mean f, mean |f|) of every table whose rows have f in {-1, 0, 1}."""
    chance, mean, size = [], [], []
    for minus, plus in itertools.product(range(rows + 1), repeat=2):
        if minus + plus <= rows:
            none = rows - minus - plus
            ways = math.comb(rows, minus) * math.comb(rows - minus, plus)
            chance.append(ways * law[0] ** minus * law[1] ** none * law[2] ** plus)
            mean.append((plus - minus) / rows)
            size.append((plus + minus) / rows)
    return np.array(chance), np.array(mean), np.array(size)


LAWS = [(0.5, 0.0, 0.5), (0.2, 0.6, 0.2), (0.05, 0.9, 0.05), (0.0, 0.3, 0.7)]


def difference_moment(
    law: tuple[float, float, float], left_out: int, tilts: tuple[float, ...], clamp: bool, rows: int = 6
) -> float:
    """E of what the proof bounds by 1, e with Gaussian noise su = 1/2; with several tilts, the best one for each e."""
    noise = 0.5
    chance, mean, size = signed_tables(rows, law)
    line = np.linspace(-6, 7, 6001)
    density = np.exp(-((line[:, None] - size) ** 2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi))
    e = np.clip(line, 0, 1) if clamp else line
    best = np.full(len(line), -np.inf)
    for t in tilts:
        gain = left_out * math.log(math.cosh(t))
        bound = left_out * math.log1p((law[2] - law[0]) * math.tanh(t))
        inner = density @ (chance * np.exp(left_out * t * mean - bound))
        best = np.maximum(best, inner * np.exp(-gain * e - (gain * noise) ** 2 / 2))
    return float(best.sum() * (line[1] - line[0]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("left_out", [1, 3, 5])
@pytest.mark.parametrize("t", [0.05, 0.3, 1.0, 2.0])
def test_the_disagreement_pays_for_the_spread_of_a_difference(
    law: tuple[float, float, float], left_out: int, t: float
) -> None:
    assert difference_moment(law, left_out, (t,), clamp=False) <= 1 + 1e-6


def test_a_clamped_disagreement_or_a_tilt_that_is_chosen_after_it_breaks_it() -> None:
    assert difference_moment(LAWS[0], 19, (0.25,), clamp=True, rows=20) > 1.03
    assert difference_moment(LAWS[1], 5, (0.0, 0.5, 1.0, 2.0), clamp=False) > 1.5


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("left_out", "beta"), [(1, 0.1), (3, 0.1), (3, 0.4)])
def test_a_difference_is_covered(law: tuple[float, float, float], left_out: int, beta: float) -> None:
    assert difference_misses(law, left_out, beta, 1.0) <= beta
    assert difference_misses(law, left_out, beta, 1.0, tangent=1.3307) <= beta


def test_three_fifths_of_a_difference_interval_miss() -> None:
    assert (
        difference_misses(LAWS[0], 28, 0.1, 1.0, rows=30)
        <= 0.1
        < difference_misses(LAWS[0], 28, 0.1, 0.6, rows=30)
    )


def difference_misses(
    law: tuple[float, float, float],
    left_out: int,
    beta: float,
    scale: float,
    rows: int = 4,
    tangent: float | None = None,
) -> float:
    su, sf = 1.5, 0.8 if rows == 4 else 4.0
    chance, mean, size = signed_tables(rows, law)
    truth = law[2] - law[0]
    first, second = discrete_gaussian(su), discrete_gaussian(sf)
    wide, reach = (len(first) - 1) // 2, (len(second) - 1) // 2
    total = 0.0
    for e, a in itertools.product(range(-wide, rows + wide + 1), range(-rows - reach, rows + reach + 1)):
        low, high = difference_interval(
            left_out, 0.0, e / rows, su / rows, a / rows, sf / rows, beta, 1 / rows, tangent
        )
        middle, half = (low + high) / 2, scale * (high - low) / 2
        if abs(truth - middle) > half + 1e-12:
            at_e = e - np.rint(size * rows).astype(int) + wide
            at_a = a - np.rint(mean * rows).astype(int) + reach
            inside = (at_e >= 0) & (at_e < len(first)) & (at_a >= 0) & (at_a < len(second))
            both = first[np.clip(at_e, 0, len(first) - 1)] * second[np.clip(at_a, 0, len(second) - 1)]
            total += float((chance * both)[inside].sum())
    return total


def test_a_tangent_that_is_chosen_beforehand_narrows_precise_differences() -> None:
    """The last of a hundred looks at 10,000 rows: noise far below the sampling error. Theorem 53."""
    rows, left_out, known, sigma, beta = 10_000, 3406, 0.05, 0.0011, 5e-4
    charged = gaussian_charge(rows, left_out, 1 / math.sqrt(1.4e6))
    told = (left_out, charged, known, 0.0, 0.0, sigma, beta)
    plain = difference_interval(*told)[1]
    tangent = difference_tangent(left_out, charged, known, 0.0, sigma, beta)
    assert difference_interval(*told, tangent=tangent)[1] < 0.75 * plain
    # At the tangent that 2 Q(z) = beta gives, both are the same.
    z = NormalDist().inv_cdf(1 - beta / 2)
    assert difference_interval(*told, tangent=z)[1] == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("left_out", [1, 2, 4])
@pytest.mark.parametrize("guess", [0.0, 0.2, 0.7])
def test_a_pair_charges_what_is_said(left_out: int, guess: float) -> None:
    """Against the definition: a reference of mass 1 on the rows that stay, that loses no more than the charge."""
    rows, su, sf = 5, 0.4, 0.3
    k, stay = kappa(rows, left_out), rows - left_out
    gain = k / sf**2 + k * (1 - 2 * guess) / su**2
    for values in itertools.combinations_with_replacement((-1.0, -0.5, 0.0, 1.0), rows):
        f = np.array(values)
        kept = [list(each) for each in itertools.combinations(range(rows), stay)]
        for e, a in ((-0.3, 0.1), (0.2, -0.4), (1.1, 0.9)):
            lost = gain * e + gain**2 * su**2 / 2
            for each in kept:
                r, d = np.abs(f[each]).mean(), f[each].mean()
                lost -= (gain * r - (e - r) ** 2 / (2 * su**2) - (a - d) ** 2 / (2 * sf**2)) / len(kept)
            lost -= (e - np.abs(f).mean()) ** 2 / (2 * su**2) + (a - f.mean()) ** 2 / (2 * sf**2)
            assert lost <= difference_charge(rows, left_out, e, su, sf, guess) + 1e-9


def test_a_pair_with_little_disagreement_charges_little() -> None:
    rows, left_out, su, sf = 10_000, 1_000, 0.02, 0.01
    little = difference_charge(rows, left_out, 0.03, su, sf, 0.03)
    assert little < 0.2 * gaussian_charge(rows, left_out, sf) * 4


def ratio_misses(left_out: int, beta: float, sigma: float, scale: float) -> float:
    """Rows are outside the condition, or inside with a value of 0 or 1; noise by Gauss-Hermite quadrature."""
    rows, law = 5, (0.3, 0.3, 0.4)
    truth = law[2] / (law[1] + law[2])
    chance, mean, size = signed_tables(rows, law)
    inside = size_to_inside(mean, size)
    chosen = LeaveOut(rows, (left_out,))
    points = np.linspace(-5, 5, 61)
    weights = np.exp(-(points**2) / 2)
    weights /= weights.sum()
    total = 0.0
    for c, yes, both in zip(chance, inside[0], inside[1], strict=True):
        for i, j in itertools.product(range(61), repeat=2):
            if weights[i] * weights[j] * c < 1e-7:
                continue
            off = yes + sigma * points[i] - truth * (both + sigma * points[j])
            noise = sigma * math.hypot(1, truth)
            if abs(off) > scale * WIDTHS[left_out, beta, sigma](chosen, noise):
                total += c * weights[i] * weights[j]
    return total


def size_to_inside(mean: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(share inside with value 1, share inside), where -1 stands for outside, 0 for a value of 0, 1 for 1."""
    outside = (size - mean) / 2
    return (size + mean) / 2, 1 - outside


class Width(dict):
    """Half-widths, computed once."""

    def __missing__(self, key: tuple[int, float, float]) -> Callable[[LeaveOut, float], float]:
        _, beta, _ = key
        found: list[float] = []

        def width(chosen: LeaveOut, noise: float) -> float:
            if not found:
                found.append(chosen.half_width((0.0,), noise, beta))
            return found[0]

        self[key] = width
        return width


WIDTHS = Width()


@pytest.mark.parametrize(("left_out", "beta"), [(1, 0.1), (4, 0.1), (4, 0.3)])
def test_the_test_behind_a_ratio_misses_no_more_than_it_may(left_out: int, beta: float) -> None:
    assert ratio_misses(left_out, beta, 0.2, 1.0) <= beta
    assert ratio_misses(left_out, beta, 0.2, 0.3) > 0.1


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(0.03, 0.1), (0.3, 0.5), (0.0, 0.4), (0.4, 0.4), (0.01, 0.02)]
)
@pytest.mark.parametrize("step", [0.0, 1e-5])
def test_a_ratio_interval_holds_every_ratio_that_its_test_keeps(
    numerator: float, denominator: float, step: float
) -> None:
    chosen, charged, sigma, beta = LeaveOut(100_000, (20_000,)), (0.1,), 0.002, 0.01
    low, high = ratio_interval(chosen, charged, numerator, denominator, sigma, beta, step)
    assert 0 <= low <= numerator / denominator <= high <= 1
    kept = [
        c
        for c in np.linspace(0, 1, 201)
        if abs(numerator - c * denominator) <= chosen.half_width(charged, sigma * math.hypot(1, c), beta)
    ]
    assert low <= min(kept)
    assert max(kept) <= high
    if not step:
        wide = chosen.half_width(charged, sigma * math.hypot(1, 1), beta)
        assert high - low <= 2.1 * wide / denominator + 1e-9


def test_a_ratio_with_nothing_below_says_nothing() -> None:
    chosen = LeaveOut(1000, (200,))
    assert ratio_interval(chosen, (0.0,), 0.0, 0.0, 0.05, 0.05) == (0.0, 1.0)
    assert ratio_interval(chosen, (0.0,), 0.9, -0.9, 0.001, 0.05) == (0.0, 1.0)
    assert ratio_interval(chosen, (0.0,), 0.9, 0.0, 0.001, 0.05) == (0.0, 1.0)


@pytest.mark.parametrize("e", [-0.02, 0.03, 0.3])
@pytest.mark.parametrize("a", [-0.2, 0.0, 0.05])
def test_one_number_of_rows_gives_the_closed_form(e: float, a: float) -> None:
    rows, left_out, sigma, beta = 10_000, 1_500, 0.01, 1e-3
    alone = LeaveOut(rows, (left_out,))
    mixed = mixed_difference_interval(alone, (0.2,), e, 2 * sigma, a, sigma, beta, 1 / rows)
    closed = difference_interval(left_out, 0.2, e, 2 * sigma, a, sigma, beta, 1 / rows)
    assert mixed == pytest.approx(closed, abs=1e-6)


def test_every_reading_of_a_place_has_the_same_rows_to_leave_out() -> None:
    """Theorem 91: whoever chooses the reading chooses among weights whose largest, added up over m, are at most one.
    The twin: claims by the whole grid beside plain answers, 1.4 times the chance and more."""
    rows = 100_000
    grid = recorded_grid(rows)
    for place in (planned_place(rows, 20_000), planned_place(rows, 9_000, 30_000, 400)):
        assert math.fsum(place.weights) <= 1
        assert planned_place(rows, *planned_sizes(rows, place)) == place
        own = dict.fromkeys((*place.sizes, *grid.sizes), 0.0)
        for size, weight in zip(place.sizes, place.weights, strict=True):
            own[size] += weight
        claimed = {size: GRID_SHARE * weight for size, weight in zip(grid.sizes, grid.weights, strict=True)}
        assert math.fsum(max(own[size], claimed.get(size, 0.0)) for size in own) <= 1
        whole = dict(zip(grid.sizes, grid.weights, strict=True))
        assert math.fsum(max(own[size], whole.get(size, 0.0)) for size in own) > 1.4, "the twin"
    assert planned_sizes(rows, grid) == ()


def test_a_mixture_covers_a_difference() -> None:
    """Every pair of answers, weighed by its chance, with the interval of a mixture; half of it misses."""
    rows, law, beta, su, sf = 30, LAWS[0], 0.1, 1.5, 4.0
    left_out = LeaveOut(rows, (28, 15), (0.9, 0.1))
    chance, mean, _ = signed_tables(rows, law)
    first, second = discrete_gaussian(su), discrete_gaussian(sf)
    reach = (len(second) - 1) // 2
    missed = {1.0: 0.0, 0.5: 0.0}
    for noise, likely in enumerate(first):  # with this law the conditions always disagree
        if likely < 1e-6:
            continue
        e = 1 + (noise - (len(first) - 1) // 2) / rows
        for a in range(-rows - reach, rows + reach + 1):
            place = a - np.rint(mean * rows).astype(int) + reach
            inside = (place >= 0) & (place < len(second))
            both = float((chance * second[np.clip(place, 0, len(second) - 1)])[inside].sum()) * likely
            ends = mixed_difference_interval(
                left_out, (0.0, 0.0), e, su / rows, a / rows, sf / rows, beta, 1 / rows
            )
            for scale in missed:
                missed[scale] += both * (abs(sum(ends) / 2) > scale * (ends[1] - ends[0]) / 2)
    assert missed[1.0] <= beta < missed[0.5]


def pair_moment(game: Game, left_out: int, sf: float, tilt: float, charge: Callable[[float], float]) -> float:
    """E exp(b q(S) - m Lambda_w(b/m) - charge(e)) for the best difference of a menu and, after it, the best q."""
    rows, su = game.rows, 2 * sf
    samples = np.array(list(itertools.combinations_with_replacement(range(3), rows)))  # as in Game
    t = tilt / left_out
    ends = np.array(
        [
            np.exp(tilt * game.counts[q] / rows - left_out * math.log1p(w * math.expm1(t)))
            for q, w in enumerate(game.true)
        ]
    )
    laws = {s: dict(enumerate(discrete_gaussian(s), -(len(discrete_gaussian(s)) // 2))) for s in (su, sf)}
    worst = 0.0
    for first, second in ((0, 2), (1, 3), (0, 5)):
        f = (MENU[first] - MENU[second])[samples]
        kinds, which = np.unique(np.stack([f.sum(1), np.abs(f).sum(1)], 1), axis=0, return_inverse=True)
        weights = np.array(
            [np.bincount(which.ravel(), game.chance * end, minlength=len(kinds)) for end in ends]
        )
        total = 0.0
        for e in range(min(laws[su]), rows + max(laws[su]) + 1):
            likely = np.array([laws[su].get(e - r, 0.0) for _, r in kinds.tolist()])
            for a in range(-rows + min(laws[sf]), rows + max(laws[sf]) + 1):
                both = likely * np.array([laws[sf].get(a - d, 0.0) for d, _ in kinds.tolist()])
                total += math.exp(-charge(e / rows)) * float((weights @ both).max())
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize(("left_out", "sf", "tilt"), [(1, 1.0, 0.5), (2, 0.7, 2.0), (3, 1.0, 1.0)])
def test_no_analyst_gains_by_a_difference_that_is_charged(left_out: int, sf: float, tilt: float) -> None:
    """Every difference of the menu, every pair of answers, every next question; uncharged it breaks."""
    game, sigma = Game(4, (0.4, 0.2, 0.4)), sf / 4

    def charge(e: float) -> float:
        return difference_charge(4, left_out, e, 2 * sigma, sigma, 0.05)

    assert pair_moment(game, left_out, sf, tilt, charge) <= 1 + 1e-9
    assert pair_moment(game, left_out, sf, tilt, lambda _: 0.0) > 1.01


def test_a_clamped_disagreement_or_the_smaller_of_two_charges_is_not_paid() -> None:
    """The mass of the reference that belongs to a charge, over the centres of e: at most 1 where the charge holds."""
    rows, left_out, su, sf, guess = 40, 25, 0.2, 0.15, 0.05
    k = kappa(rows, left_out)
    gain = k / sf**2 + k * (1 - 2 * guess) / su**2
    flat = 4 * gaussian_charge(rows, left_out, sf) + gaussian_charge(rows, left_out, su)
    line = np.linspace(-3, 4, 20_001)

    def mass(charge: Callable[[float], float]) -> float:
        charges = np.array([charge(e) for e in line.tolist()])
        worst = 0.0
        for r in np.linspace(0, 1, 11):  # v_f <= r and v_|f| <= c^2 + (1 - 2c) r is what each r may lose
            law = np.exp(-((line - r) ** 2) / (2 * su**2)) / (su * math.sqrt(2 * math.pi))
            lost = k * guess**2 / su**2 + gain * r
            worst = max(worst, float((law * np.exp(lost - charges)).sum() * (line[1] - line[0])))
        return worst

    def raw(e: float) -> float:
        return difference_charge(rows, left_out, e, su, sf, guess)

    assert mass(raw) <= 1 + 1e-6
    assert mass(lambda e: raw(min(max(e, 0.0), 1.0))) > 1.05
    assert mass(lambda e: min(raw(e), flat)) > 1.05
