"""Laws that every source keeps. A new source is added to `tables`, or the first test fails.

Spark starts slowly, so `test_spark.py` imports these tests and runs them where its one session is.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.statistics import FALSE_ALARM, chi_square

import holdfast.data
from data.tables import SCHEMA, SERVERS, SOURCES, generated, whole
from holdfast.data import duckdb as behind_duckdb
from holdfast.data import frame, unit_source
from holdfast.data import postgres as behind_postgres
from holdfast.data import spark as behind_spark
from holdfast.data.deferred import DeferredSource
from holdfast.data.open import open_source
from holdfast.data.part import PartSource
from holdfast.data.source import Block, Measurement, Source
from holdfast.desk import RowAccess
from holdfast.errors import DataError, InputError
from holdfast.query.expression import Expression
from holdfast.query.group_keys import groups_of
from holdfast.query.grouping import KeyGroups, grouping
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.schema import Text
from holdfast.query.statistic import Statistic, workload
from holdfast.query.together import Together, together

ALL = SOURCES | SERVERS
ROWS = 4321
COLUMNS = generated(ROWS, seed=1)
NAMES = list(SCHEMA)
TRUTH = {name: SCHEMA[name].encode_array(np.array(COLUMNS[name], dtype=object)) for name in NAMES}


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Many blocks and ranges, without many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "BLOCK_ROWS", 1000)
        patch.setattr(unit_source, "BLOCK_ROWS", 1000)
        for module in (behind_duckdb, behind_postgres, behind_spark):
            patch.setattr(module, "BLOCK_ROWS", 1000)
            patch.setattr(module, "RANGE_ROWS", 2500)
        yield


@pytest.fixture(scope="module", params=sorted(ALL))
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    opened = ALL[request.param](COLUMNS, tmp_path_factory.mktemp(request.param))
    yield opened
    opened.close()


def questions() -> list[Measurement | Together]:
    """Totals of every kind: with and without a condition, a value, a grid, groups."""

    def expression(text: str) -> Expression:
        return parse_expression(text, SCHEMA)

    where = parse_predicate("age > 40 AND income <= 250000.5 OR insured", SCHEMA)
    rare = parse_predicate(
        "\"kind of \"\"thing\"\"\" IN ('it''s', 'ünï ☃') AND visit >= '2022-02-03'", SCHEMA
    )
    quotient = parse_predicate("wide / age > 7e14 OR month(visit) = 2 OR (age / (age - 3)) IS NULL", SCHEMA)
    empty = parse_predicate("age IS NULL AND age > 3", SCHEMA)
    nulls = parse_predicate("income IS NULL OR wide < -5 OR visit IS NULL", SCHEMA)
    by_kind, by_age = grouping(SCHEMA, 'kind of "thing"'), grouping(SCHEMA, "age")
    by_income = grouping(SCHEMA, "income", [-1.5, 0.25, 1000, 1e5])
    statistics = [
        Statistic("count", Always()),
        Statistic("count", where),
        Statistic("count", rare, by=by_kind),
        Statistic("count", empty, by=by_age),
        Statistic("histogram", nulls, by=by_income),
        Statistic("sum", where, expression("age")),
        Statistic("sum", Always(), expression("abs(age - 60) * 3 - greatest(age, 7)"), by=by_kind),
        Statistic("mean", where, expression("income"), by=by_age),
        Statistic("mean", nulls, expression("wide")),
        Statistic("sum", rare, expression("least(income, 1000) - age")),
        Statistic("mean", where, expression("income"), by=groups_of(SCHEMA, ["year(visit)", "insured"])),
        Statistic("count", nulls, by=groups_of(SCHEMA, ["floor(age / 20)", "date_trunc('year', visit)"])),
        Statistic("count", where, by=groups_of(SCHEMA, "CASE WHEN age < 40 THEN 'young' ELSE 'old' END")),
        Statistic("mean", quotient, expression("income / (age - 60)"), by=by_kind),
        Statistic(
            "sum", Always(), expression("coalesce(floor(income / 7), age, 3) + year(visit) * week(visit)")
        ),
        Statistic(
            "mean", Always(), expression("CASE WHEN dow(visit) > 4 THEN income WHEN insured THEN age END")
        ),
        Statistic(
            "sum", where, expression("greatest(nullif(age, 50), day(visit), doy(visit) - quarter(visit))")
        ),
    ]
    several = [
        Statistic("variance", where, expression("income"), by=by_kind),
        Statistic("correlation", quotient, expression("income"), values=(expression("age"),)),
        Statistic("ratio", nulls, expression("wide"), values=(expression("income / (age - 60)"),), by=by_age),
        Statistic("share", nulls, chosen=where, against=rare),
    ]
    made = [workload(statistic, SCHEMA, ROWS).measurements for statistic in (*statistics, *several)]
    joined = [each for each in map(together, made) if each is not None]
    assert len(joined) > len(several)
    return [*(m for measurements in made[: len(statistics)] for m in measurements), *joined]


def check_scan(source: Source) -> None:
    blocks = list(source.scan(NAMES))
    assert len(blocks) >= ROWS / 1000
    assert all(len(block["age"]) <= 1000 for block in blocks)
    for name in NAMES:
        found = np.concatenate([block[name] for block in blocks])
        assert found.dtype == SCHEMA[name].dtype
        np.testing.assert_array_equal(found, TRUTH[name])
    assert source.rows == ROWS
    assert {name: source.schema[name] for name in SCHEMA} == dict(SCHEMA)


def check_subsets(source: Source) -> None:
    for names in (["visit"], ["income", "age"], list(reversed(NAMES))):
        assert all(list(block) == names for block in source.scan(names))
        found = whole(source, names)
        for name in names:
            np.testing.assert_array_equal(found[name], TRUTH[name])


def check_gather(source: Source) -> None:
    ids = np.random.default_rng(3).integers(0, ROWS, 500)
    ids[:3] = [0, ROWS - 1, ROWS - 1]
    found = source.gather(["income", "age", "wide"], ids)
    assert list(found) == ["income", "age", "wide"]
    for name, codes in found.items():
        assert codes.dtype == SCHEMA[name].dtype
        np.testing.assert_array_equal(codes, TRUTH[name][ids])


def check_totals(source: Source, every: int = 1) -> None:
    for measurement in questions()[::every]:
        expected = measurement.totals(TRUTH)
        found = source.totals(measurement)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def rows_of(block: Block) -> list[tuple[Any, ...]]:
    """Rows as they can be counted; NaN does not equal itself."""
    columns = [np.nan_to_num(block[name], nan=-9.0) if name == "income" else block[name] for name in NAMES]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check_draw(source: Source) -> None:
    """Whole rows of the table, each as often as any other."""
    truth, seen = Counter(rows_of(TRUTH)), Counter(rows_of(source.draw(NAMES, 5 * ROWS)))
    assert set(seen) <= set(truth)
    kinds = list(truth)
    shares = [truth[kind] / ROWS for kind in kinds]
    # Neither uneven, nor more even than chance is.
    assert FALSE_ALARM < chi_square([seen[kind] for kind in kinds], shares) < 1 - FALSE_ALARM
    some = source.draw(["income", "age"], 10)
    assert list(some) == ["income", "age"]
    assert all(codes.dtype == SCHEMA[name].dtype and len(codes) == 10 for name, codes in some.items())


TESTS: dict[str, Callable[[str], bool]] = {
    "note = 'caf\u00e9'": lambda text: text == "caf\u00e9",
    "note <> 'cafe\u0301'": lambda text: text != "caf\u00e9",
    "note IN ('a', 'nothing', 'B_')": lambda text: text in ("a", "B_"),
    "note LIKE 'a%b'": lambda text: text[0] == "a" and text[-1] == "b" and len(text) > 1,
    "note NOT LIKE '_b%'": lambda text: text[1:2] != "b",
    "starts_with(note, 'a%')": lambda text: text.startswith("a%"),
    "length(note) >= 4": lambda text: len(text) >= 4,
    "length(note) <> 8 AND note <> 'a'": lambda text: len(text) != 8 and text != "a",
}


def check_texts(source: Source) -> None:
    """Every test of a text, of every row, in rows that were drawn, and by groups of keys."""
    rows, ids = RowAccess(source), np.arange(ROWS)[::7]
    kind = SCHEMA["note"]
    assert isinstance(kind, Text)
    texts = [kind.canonical(value) for value in COLUMNS["note"]]
    for condition, holds in TESTS.items():
        truth = np.array([text is not None and holds(text) for text in texts])
        assert 0 < truth.sum() < ROWS
        measurement = Statistic("count", parse_predicate(condition, SCHEMA))
        (asked,) = workload(measurement, SCHEMA, ROWS).measurements
        assert rows.totals(asked).tolist() == [truth.sum()]
        np.testing.assert_array_equal(asked.contributions(rows.gather(["note"], ids)), truth[ids])
    keys = KeyGroups("note", ("caf\u00e9", "nowhere", "a"))
    (asked,) = workload(Statistic("histogram", Always(), by=keys), SCHEMA, ROWS).measurements
    assert rows.totals(asked).tolist() == [texts.count(key) for key in keys.labels]


LAWS = [check_scan, check_subsets, check_gather, check_totals, check_draw, check_texts]


def test_every_source_is_under_the_laws(tmp_path: Path) -> None:
    classes = set()
    for module in pkgutil.iter_modules(holdfast.data.__path__):
        for value in vars(importlib.import_module(f"holdfast.data.{module.name}")).values():
            if isinstance(value, type) and all(hasattr(value, m) for m in ("scan", "gather", "totals")):
                classes.add(value)
    # The second is any of the others, opened later; the third is a part of any, with tests of its own (test_part.py).
    classes -= {Source, DeferredSource, PartSource}
    small = generated(40, seed=2)
    opened = set()
    for name, make in ALL.items():
        (tmp_path / name).mkdir()
        opened.add(type(make(small, tmp_path / name)))
    assert classes == opened | {behind_spark.SparkSource}


@pytest.mark.parametrize("law", LAWS)
def test_law(source: Source, law: Any) -> None:
    law(source)


def test_questions_are_not_empty() -> None:
    totals = [int(np.abs(m.totals(TRUTH)).sum()) for m in questions()]
    assert sum(total == 0 for total in totals) == 1
    assert len(totals) > 10


def test_scans_may_be_left_and_interleaved(source: Source) -> None:
    first, second = source.scan(["age"]), source.scan(["visit", "age"])
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left["age"], right["age"])
    next(iter(source.scan(["age"])))
    check_scan(source)


def test_eight_threads(source: Source) -> None:
    laws = [check_scan, check_gather, lambda source: check_totals(source, every=5), check_draw]

    def work(turn: int) -> bool:
        laws[turn % len(laws)](source)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_ids_are_clipped_and_may_repeat_or_be_none(source: Source) -> None:
    found = source.gather(["age"], np.array([-5, ROWS + 5, 7, 7]))["age"]
    np.testing.assert_array_equal(found, TRUTH["age"][[0, -1, 7, 7]])
    assert len(source.gather(["age"], np.array([], dtype=np.int64))["age"]) == 0


def test_bad_requests(source: Source) -> None:
    for columns in (["nothing"], [], ["age", "nothing"]):
        with pytest.raises(InputError):
            source.scan(columns)
        with pytest.raises(InputError):
            source.gather(columns, np.array([1]))
    for ids in (np.array([1.0]), np.array([[1]]), np.array(["a"])):
        with pytest.raises(InputError):
            source.gather(["age"], ids)


def test_writing_into_a_block_does_not_reach_the_rows(source: Source) -> None:
    for block in source.scan(NAMES):
        if block["age"].flags.writeable:
            block["age"][:] = 0
        else:
            with pytest.raises(ValueError, match="read-only"):
                block["age"][:] = 0
    check_scan(source)


def test_the_fingerprint_is_random(source: Source, tmp_path: Path) -> None:
    assert re.fullmatch("[0-9a-f]{32}", source.fingerprint)
    twin = open_source(TRUTH_AS_DATA, SCHEMA)
    assert twin.fingerprint != open_source(TRUTH_AS_DATA, SCHEMA).fingerprint != source.fingerprint


TRUTH_AS_DATA = {name: np.array(COLUMNS[name], dtype=object) for name in NAMES}


@pytest.mark.parametrize("name", sorted(ALL))
def test_closing_twice_is_allowed_and_reading_afterwards_is_not(name: str, tmp_path: Path) -> None:
    check_closing(ALL[name](generated(40, seed=2), tmp_path))


def check_closing(source: Source) -> None:
    source.close()
    source.close()
    if isinstance(source, frame.FrameSource):
        assert len(whole(source)["age"]) == 40
        return
    with pytest.raises(DataError, match="closed"):
        list(source.scan(["age"]))
    with pytest.raises(DataError, match="closed"):
        source.totals(questions()[0])


class Twin:
    """A source with a flaw, to see the laws catch it."""

    schema, rows, fingerprint = SCHEMA, ROWS, "0" * 32

    def __init__(self) -> None:
        self._inner = open_source(TRUTH_AS_DATA, SCHEMA)
        self.words = self._inner.words

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return self._inner.scan(columns)

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        return self._inner.gather(columns, ids)

    def draw(self, columns: Sequence[str], count: int) -> Block:
        return self._inner.draw(columns, count)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return self._inner.totals(measurement)

    def close(self) -> None:
        self._inner.close()


class ForgetsTheLastBlock(Twin):
    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return iter(list(super().scan(columns))[:-1])


class MixesTheOrder(Twin):
    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return iter(list(super().scan(columns))[::-1])


class GathersTheNextRow(Twin):
    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        return super().gather(columns, ids + 1)


class DrawsTheFirstRowsMoreOften(Twin):
    def draw(self, columns: Sequence[str], count: int) -> Block:
        ids = np.random.default_rng().integers(0, ROWS * 11 // 10, count) % ROWS
        return self._inner.gather(columns, ids)


class DrawsEachColumnForItself(Twin):
    def draw(self, columns: Sequence[str], count: int) -> Block:
        return {name: self._inner.draw([name], count)[name] for name in columns}


class DrawsWithoutReplacement(Twin):
    def draw(self, columns: Sequence[str], count: int) -> Block:
        return self._inner.gather(columns, np.resize(np.random.default_rng().permutation(ROWS), count))


class ReturnsColumnsInItsOwnOrder(Twin):
    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return ({name: block[name] for name in sorted(block)} for block in super().scan(columns))


class LosesOneRowOfTheTotals(Twin):
    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return measurement.totals({name: codes[1:] for name, codes in TRUTH.items()})


@pytest.mark.parametrize(
    "flawed",
    [
        ForgetsTheLastBlock,
        MixesTheOrder,
        GathersTheNextRow,
        DrawsTheFirstRowsMoreOften,
        DrawsEachColumnForItself,
        DrawsWithoutReplacement,
        ReturnsColumnsInItsOwnOrder,
        LosesOneRowOfTheTotals,
    ],
)
def test_the_laws_catch_a_broken_twin(flawed: type[Twin]) -> None:
    for law in LAWS:
        law(Twin())
    caught = 0
    for law in LAWS:
        try:
            law(flawed())
        except AssertionError:
            caught += 1
    assert caught > 0
