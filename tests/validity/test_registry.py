"""Names, parameters, monotone widths, refusals; and the search that every bound relies on."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from holdfast import validity
from holdfast.check import whole
from holdfast.errors import InputError
from holdfast.privacy.rounding import miss
from holdfast.validity.search import first, first_within, last_within, least, most

NAMES = [bound.name for bound in validity.bounds()]
MUST_HAVE = {
    *("hoeffding", "splitting", "known-rounds", "description-length", "dfhprr", "bnsssu", "bnsssu-printed"),
    *(
        "jlnrss",
        "jlnrss-exact",
        "russo-zou",
        "xu-raginsky",
        "rogers",
        "feldman-steinke",
        "fish",
        "fish-printed",
    ),
    *("blanc", "guess-and-check", "ladder", "transfer", "gaussian", "votes", "discretised"),
    *("t1", "t2", "t3", "t4", "t4v", "leave-out", "leave-out-votes"),
}


def test_every_name_is_there_once_with_its_facts() -> None:
    assert sorted(NAMES) == sorted(MUST_HAVE)
    for bound in validity.bounds():
        assert bound.title
        assert bound.assumes
        assert bound.reference
        assert bound.compute.__doc__
        assert (
            "Reference" in bound.compute.__doc__
            or "docs/theorems.md" in bound.compute.__doc__
            or "`" in (bound.compute.__doc__)
        )
    own = {bound.name for bound in validity.bounds() if not bound.published}
    leave_out = {"leave-out", "leave-out-votes"}
    assert own - leave_out == {"transfer", "gaussian", "votes", "discretised", "t1", "t2", "t3", "t4", "t4v"}
    assert leave_out == {bound.name for bound in validity.bounds() if bound.slow} <= own
    assert {b.name for b in validity.bounds() if not b.adaptive} == {"hoeffding"}
    assert not next(b for b in validity.bounds() if b.name == "blanc").private


@pytest.mark.parametrize("name", NAMES)
def test_widths_grow_with_queries_and_confidence_and_fall_with_rows(name: str) -> None:
    def width(rows: int, queries: int, confidence: float) -> float:
        return validity.width(name, rows=rows, queries=queries, confidence=confidence)

    by_queries = [width(10**6, k, 0.9) for k in (1, 2, 7, 60, 900)]
    by_rows = [width(n, 20, 0.9) for n in (10**8, 10**6, 10**5, 10**4, 50)]
    by_confidence = [width(10**7, 20, c) for c in (0.5, 0.9, 0.999, 1 - 1e-9)]
    for series in (by_queries, by_rows, by_confidence):
        for less, more in pairwise(series):
            assert less <= more * (1 + 1e-6)
    assert all(0.0 < w < 1.0 or w == math.inf for w in by_queries + by_rows + by_confidence)


@pytest.mark.parametrize("name", NAMES)
def test_extreme_numbers_give_a_width_or_nothing_never_an_accident(name: str) -> None:
    for rows in (1, 2, 7, 6786, 10**12):
        for queries in (1, 2, 3_485_963_109, 10**30):
            for confidence in (1e-9, 0.5, 1 - 1e-15):
                width = validity.width(name, rows=rows, queries=queries, confidence=confidence)
                assert 0.0 < width < 1.0 or width == math.inf


@pytest.mark.parametrize("name", ["splitting", "rogers", "gaussian", "votes", "discretised", "known-rounds"])
def test_most_queries_is_the_last_that_fits(name: str) -> None:
    ask = {"rows": 50_000, "confidence": 0.95}
    count = validity.most_queries(name, within=0.08, **ask)
    assert count > 0
    assert validity.width(name, queries=count, **ask) <= 0.08 < validity.width(name, queries=count + 1, **ask)


@pytest.mark.parametrize("name", ["leave-out", "leave-out-votes"])
def test_most_queries_of_a_slow_bound_fit_and_a_part_in_400_more_do_not(name: str) -> None:
    ask = {"rows": 50_000, "confidence": 0.95}
    count = validity.most_queries(name, within=0.08, **ask)
    more = math.ceil(count * (1 + 1 / 400))
    assert validity.width(name, queries=count, **ask) <= 0.08 < validity.width(name, queries=more, **ask)


def test_searches_along_a_power_end_where_the_width_is_met() -> None:
    for edge in (1, 2, 3, 40, 12_345, 10**9):
        last = last_within(lambda k, edge=edge: (k / edge) ** 0.3, 1.0)
        assert edge * (1 - 1 / 500) - 1 <= last <= edge
        first_one = first_within(lambda n, edge=edge: math.inf if n < edge / 9 else (edge / n) ** 0.5, 1.0)
        assert first_one is not None
        assert edge <= first_one <= edge * (1 + 1 / 500) + 1
    assert last_within(lambda _: 2.0, 1.0) == 0
    assert last_within(lambda k: 0.5 if k < 77 else math.inf, 1.0) == 76
    assert last_within(lambda _: 0.5, 1.0) == 10**18
    assert first_within(lambda _: 2.0, 1.0) is None
    assert first_within(lambda _: 0.5, 1.0, 9) == 9


def test_parameters_are_taken_checked_and_limited_to_the_bound() -> None:
    ask = {"rows": 10**6, "queries": 100, "confidence": 0.95}
    assert validity.width("gaussian", standard_deviation=4000.0, **ask) > validity.width("gaussian", **ask)
    assert validity.width("votes", votes=5000, flip=0.3, **ask) > validity.width("votes", **ask)
    assert validity.width("known-rounds", rounds=3, **ask) < validity.width("known-rounds", **ask)
    assert validity.width("transfer", rho=1e-4, sample_error=0.01, **ask) > 0.01
    assert math.isclose(validity.width("transfer", epsilon=0.1, **ask), math.tanh(0.025), rel_tol=1e-9)
    assert validity.width("guess-and-check", failures=0, **ask) < validity.width("guess-and-check", **ask)
    for name, wrong in (
        ("gaussian", {"votes": 3}),
        ("gaussian", {"standard_deviation": -1.0}),
        ("gaussian", {"standard_deviation": math.nan}),
        ("gaussian", {"grid": 0}),
        ("votes", {"flip": 0.5}),
        ("votes", {"votes": True}),
        ("hoeffding", {"rounds": 2}),
        ("transfer", {"rho": -1.0}),
        ("no-such-bound", {}),
    ):
        with pytest.raises(InputError):
            validity.width(name, **ask, **wrong)
    for change in (
        {"rows": 0},
        {"rows": 2.5},
        {"queries": 0},
        {"confidence": 0.0},
        {"confidence": 1},
        {"rows": "9"},
    ):
        with pytest.raises(InputError):
            validity.width("gaussian", **(ask | change))
    with pytest.raises(InputError):
        validity.most_queries("gaussian", rows=10, within=-0.1, confidence=0.95)


def test_numbers_are_read_as_written_and_rounded_to_the_safe_side() -> None:
    assert miss(0.95) <= 0.05
    assert Fraction(miss(0.95)) <= Fraction(1, 20)
    assert miss(0.95) == pytest.approx(0.05, rel=1e-15)
    assert whole("rows", 1e6) == 10**6
    assert whole("rows", np.int64(7)) == 7
    assert miss(np.float64(0.5)) == 0.5


def test_the_searches_are_exact_on_what_they_promise() -> None:
    for edge in (0, 1, 2, 3, 4, 5, 31, 32, 33, 1000, 123_456_789):
        assert most(lambda k, edge=edge: k <= edge) == edge
    for edge in (1, 2, 3, 4, 7, 64, 12_345):
        assert first(lambda k, edge=edge: k >= edge) == edge
    assert first(lambda _: False) is None
    assert first(lambda k: k >= 3, start=5) == 5
    huge = most(lambda k: k <= 3**500)
    assert huge <= 3**500 < huge * (1 + Fraction(1, 2**50))
    value, place = least(lambda x: (x - 0.3) ** 2 + 2.0, -4.0, 9.0)
    assert value == pytest.approx(2.0)
    assert place == pytest.approx(0.3, abs=1e-6)


def test_public_numbers_only() -> None:
    """Nothing in this room can see data or chance: it imports neither, and asking twice gives the same."""
    import ast
    from pathlib import Path

    folder = Path(validity.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("holdfast."):
                assert node.module.split(".")[1] in ("check", "errors", "privacy", "validity"), (
                    path.name,
                    node.module,
                )
    ask = {"rows": 12_345, "queries": 67, "within": 0.2, "confidence": 0.9}
    assert str(validity.plan(**ask)) == str(validity.plan(**ask))
