"""The one walker: every path once, likely ones first, exact masses, and nothing swallowed."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Hashable
from fractions import Fraction
from pathlib import Path

import pytest
from oracles import choice_tree
from oracles.choice_tree import ChoiceBits, Law, walk

from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.noise.subset import with_replacement

HALF = Fraction(1, 2)


def test_a_loop_without_end_leaves_a_known_mass() -> None:
    law = walk(lambda bits: _tails(bits), tolerance=Fraction(1, 1000))
    assert law.leftover <= Fraction(1, 1000)
    assert law.probabilities[3] == Fraction(1, 16)
    assert sum(law.probabilities.values()) + law.leftover == 1


def test_subsets_with_and_without_replacement_are_told_apart() -> None:
    """Drawing with replacement can hit the same row twice, and then its law is another one."""

    def count(draw: object) -> dict[object, Fraction]:
        law = walk(lambda bits: int((draw(3, 2, bits) == 0).sum()))  # type: ignore[operator]
        assert law.leftover == 0
        return dict(law.probabilities)

    assert count(with_replacement) == {0: Fraction(4, 9), 1: Fraction(4, 9), 2: Fraction(1, 9)}


def test_the_walk_stops_where_it_is_told() -> None:
    law = walk(lambda bits: bits.below(100), runs=11)
    assert law.leftover == Fraction(89, 100)
    with pytest.raises(InputError, match="at most"):
        walk(lambda bits: int(bits.words(1)[0]))


def _tails(bits: Bits) -> int:
    count = 0
    while bits.below(2):
        count += 1
    return count


def crooked(bits: ChoiceBits) -> tuple[int, ...]:
    """A tree whose branches differ in width and depth."""
    first = bits.below(3)
    return (
        first,
        *(bits.below(2 + first) for _ in range(first)),
        bits.choose([Fraction(1, 7), Fraction(6, 7)]),
    )


def enumerated() -> dict[Hashable, Fraction]:
    """The law of `crooked`, written down."""
    return {
        (first, *rest, last): Fraction(1, 3) * Fraction(1, (2 + first) ** first) * Fraction(1 + 5 * last, 7)
        for first in range(3)
        for rest in itertools.product(range(2 + first), repeat=first)
        for last in range(2)
    }


def test_every_path_is_walked_once() -> None:
    assert walk(crooked) == Law(enumerated(), Fraction(0))


def test_a_walker_that_gives_up_a_branch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin drops what was too rare at first."""
    monkeypatch.setattr(choice_tree, "_FIRST", 4)
    assert walk(crooked).probabilities == enumerated()
    assert walk(crooked, floor=Fraction(1, 4)).probabilities != enumerated()


def test_likely_paths_are_walked_before_rare_ones() -> None:
    """However deep the first branch is: one that never ends keeps the walk from nothing else."""

    def first_is_endless(bits: Bits) -> int:
        if bits.below(2):
            return bits.below(2)
        return next(i for i in itertools.count(2) if bits.below(2))

    law = walk(first_is_endless, tolerance=Fraction(1, 10**6))
    assert 0 < law.leftover <= Fraction(1, 10**6)
    assert law.probabilities[0] == law.probabilities[1] == Fraction(1, 4)
    assert law.probabilities[2] == HALF * HALF


def test_what_is_rarer_than_the_floor_is_left_over() -> None:
    law = walk(_tails, floor=Fraction(1, 16))
    assert law == Law({i: Fraction(1, 2 ** (i + 1)) for i in range(4)}, Fraction(1, 16))


def test_branches_without_a_chance_are_not_in_the_law() -> None:
    assert walk(lambda bits: bits.choose([Fraction(0), Fraction(1)])) == Law({1: Fraction(1)}, Fraction(0))


def test_a_mechanism_that_passes_over_errors_is_walked_all_the_same() -> None:
    def careless(bits: Bits) -> int:
        with contextlib.suppress(Exception):
            return _tails(bits)
        return -1

    assert -1 not in walk(careless, floor=Fraction(1, 64)).probabilities


def test_other_randomness_is_noticed() -> None:
    """A mechanism that has asked another question when it comes by again."""
    sizes = itertools.count(2)
    with pytest.raises(InputError, match="same questions"):
        walk(lambda bits: bits.below(next(sizes)))


def test_a_claim_is_contradicted_beyond_what_is_left_over() -> None:
    law = walk(_tails, floor=Fraction(1, 16))
    truth = {i: Fraction(1, 2 ** (i + 1)) for i in range(4)}
    assert law.contradicts(truth | {4: Fraction(1, 32)}) is None
    assert law.contradicts(truth | {4: Fraction(1, 15)}) == f"4: {1 / 15} is not in [0.0, 0.0625]"
    for wrong in ({0: HALF - Fraction(1, 10**6)}, {0: HALF + Fraction(1, 15)}):
        assert law.contradicts(truth | wrong) is not None


ROOT = Path(__file__).resolve().parents[2]
DRAWING = {
    "src/holdfast/noise/bits.py": "the bits themselves",
    "tests/oracles/choice_tree.py": "the walker",
    "tests/weights/test_answerer.py": "notes when it is asked",
}


def kinds_of_bits(root: Path) -> set[str]:
    """The files that make bits of their own, as a second walker would."""
    files = [path for part in ("src", "tests") for path in (root / part).rglob("*.py")]
    return {
        path.relative_to(root).as_posix()
        for path in files
        if re.search(r"^ +def below\(self, \w+", path.read_text(), re.MULTILINE)
    }


def test_there_is_one_walker() -> None:
    assert kinds_of_bits(ROOT) == set(DRAWING)


def test_a_second_walker_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "walking.py").write_text("class Walker:\n    def below(self, n: int) -> int: ...\n")
    assert kinds_of_bits(tmp_path) == {"tests/walking.py"}
