"""The numbers of the theory's tables (beta = 0.05), met by the functions. They were printed with some 6
bits."""

from __future__ import annotations

import math

import pytest

from holdfast import validity

ROWS = (10**4, 10**5, 10**6, 10**7)

# name, parameters: the printed counts at alpha = 0.05, then at 0.1, for n = 1e4 .. 1e7
TABLE = [
    ("splitting", {}, (8, 63, 504, 4158), (28, 219, 1788, 15015)),
    ("description-length", {}, (9, 88, 879, 8795), (41, 415, 4152, 41527)),
    ("fish", {}, (0, 0, 0, 0), (0, 0, 0, 1)),
    ("dfhprr", {}, (0, 0, 2, 110), (0, 0, 41, 2496)),
    ("bnsssu", {}, (0, 18, 1424, 115_000), (3, 256, 20224, 1_640_000)),
    ("feldman-steinke", {}, (0, 0, 1, 29), (0, 0, 7, 304)),
    ("xu-raginsky", {}, (0, 22, 1632, 121_000), (3, 299, 21632, 1_660_000)),
    ("rogers", {}, (0, 55, 5520, 442_000), (6, 932, 77824, 6_210_000)),
    ("jlnrss", {}, (0, 11, 832, 64512), (2, 152, 11520, 933_888)),
    ("jlnrss-exact", {}, (0, 23, 1760, 143_000), (4, 320, 25088, 2_060_000)),
    ("t1", {}, (3, 188, 12352, 909_000), (37, 2296, 162_816, 12_500_000)),
    ("t2", {}, (3, 204, 13376, 987_000), (40, 2488, 176_640, 13_600_000)),
    ("t4", {}, (8, 498, 33664, 2_530_000), (97, 6208, 449_000, 35_000_000)),
    ("t3", {}, (2, 160, 11136, 852_000), (30, 2032, 150_500, 11_900_000)),
    ("t4v", {"flip": 0.3}, (5, 336, 24064, 1_850_000), (63, 4320, 326_000, 26_100_000)),
    ("transfer", {}, (9, 541, 36736, 2_750_000), (105, 6720, 488_448, 38_100_000)),
    ("gaussian", {}, (11, 602, 39680, 2_930_000), (119, 7360, 524_288, 40_400_000)),
    ("votes", {}, (8, 456, 30208, 2_210_000), (88, 5568, 397_312, 30_400_000)),
]


@pytest.mark.parametrize(("name", "parameters", "at_05", "at_10"), TABLE, ids=[row[0] for row in TABLE])
def test_a_bound_meets_its_row(
    name: str, parameters: dict[str, float], at_05: tuple[int, ...], at_10: tuple[int, ...]
) -> None:
    for within, printed in ((0.05, at_05), (0.1, at_10)):
        for rows, count in zip(ROWS, printed, strict=True):
            found = validity.most_queries(name, rows=rows, within=within, confidence=0.95, **parameters)
            assert count <= found <= count * (1 + 1 / 48) + 1, (name, rows, within, count, found)


# name, parameters, rows, half-width: the printed counts of the leave-out theorem
LEAVE_OUT = [
    ("leave-out", {}, 10**6, 0.05, 518_824),
    ("leave-out", {}, 10**6, 0.1, 7_118_321),
    ("leave-out", {"epochs": 1}, 10**6, 0.05, 229_990),
    ("leave-out", {"epochs": 1}, 10**6, 0.1, 3_121_920),
]


@pytest.mark.parametrize(("name", "parameters", "rows", "within", "count"), LEAVE_OUT)
def test_the_leave_out_theorem_meets_its_counts(
    name: str, parameters: dict[str, int], rows: int, within: float, count: int
) -> None:
    found = validity.most_queries(name, rows=rows, within=within, confidence=0.95, **parameters)
    assert found == pytest.approx(count, rel=0.01)


def test_votes_by_epochs_are_nearly_as_good_as_noise() -> None:
    for rows, within in ((10**5, 0.05), (10**6, 0.05)):
        ask = {"rows": rows, "within": within, "confidence": 0.95}
        noise = validity.most_queries("leave-out", **ask)
        for flip in (0.25, 1 / 16):
            assert 0.97 * noise < validity.most_queries("leave-out-votes", flip=flip, **ask) <= noise


def test_queries_fixed_beforehand_are_counted_in_digits() -> None:
    for within, printed in ((0.05, (20.1, 215.5, 2169.9, 21713.1)), (0.1, (85.3, 867.0, 8684.3, 86857.3))):
        for rows, digits in zip(ROWS, printed, strict=True):
            found = validity.most_queries("hoeffding", rows=rows, within=within, confidence=0.95)
            assert math.isclose(math.log10(found), digits, abs_tol=0.06)


def test_the_trade_off_of_votes_by_their_flip() -> None:
    printed = {0.05: 78_336, 0.1: 145_408, 0.2: 251_904, 0.25: 292_864, 0.3: 325_632}
    for flip, count in printed.items():
        found = validity.most_queries("t4v", rows=10**6, within=0.1, confidence=0.95, flip=flip)
        assert count <= found <= 1.01 * count


def test_rows_read_by_votes() -> None:
    printed = [(10**5, 456, 0.05, 23_769), (10**6, 30_208, 0.05, 36_174), (10**6, 397_312, 0.1, 11_001)]
    for rows, queries, within, read in printed:
        narrowest, best = validity.votes_noise(rows, queries, 0.05)
        fewest = validity.fewest_votes(rows, queries, 0.05, within)
        assert narrowest <= within
        assert fewest is not None
        assert fewest <= read <= 1.05 * best
        assert validity.votes_width(rows, queries, 0.05, fewest) <= within
        assert validity.votes_width(rows, queries, 0.05, fewest - 1) > within


def test_odds_intervals_are_as_narrow_as_promised() -> None:
    assert validity.gaussian_odds_noise(10**6, 10**5, 0.05, 0.01)[0] < 0.0245
    assert validity.gaussian_odds_noise(10**6, 10**5, 0.05, 0.001)[0] < 0.0185
    assert 0.06 < validity.width("gaussian", rows=10**6, queries=10**5, confidence=0.95) < 0.066
    for at, queries in ((0.1, 520), (0.01, 8576), (0.001, 28_672)):
        assert validity.gaussian_odds_noise(10**6, queries, 0.05, at)[0] <= 0.01


def test_rounding_wins_for_small_tables() -> None:
    for rows, within in ((5_000, 0.1), (20_000, 0.05)):
        counts = [
            validity.most_queries(name, rows=rows, within=within, confidence=0.95)
            for name in ("discretised", "gaussian", "description-length", "splitting")
        ]
        assert counts[0] == max(counts)
    assert validity.most_queries("discretised", rows=10**4, within=0.1, confidence=0.95) == 79


def test_the_ladder_meets_its_figures() -> None:
    for rows, queries, printed in ((4000, 400, 0.185), (10**5, 10**4, 0.071), (10**6, 10**6, 0.037)):
        assert validity.width("ladder", rows=rows, queries=queries, confidence=0.95) <= printed


def test_what_is_printed_but_not_proved_is_marked() -> None:
    marked = {bound.name for bound in validity.bounds() if not bound.certified}
    assert marked == {"fish-printed"}
