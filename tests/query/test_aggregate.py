"""Aggregates of events against the slow truth, unit by unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from data.hospital import SECRET, hospital
from data.test_unit_build import declared, plain

from holdfast.data.unit_open import open_units
from holdfast.data.unit_source import UnitSource
from holdfast.query.dictionary import text_behind
from holdfast.query.measurement import Measurement
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.statistic import Statistic, workload


@pytest.fixture(scope="module")
def source() -> UnitSource:
    return open_units(declared(hospital()), SECRET)


def units(source: UnitSource) -> list[list[dict[str, Any]]]:
    """The visits of each unit, as values."""
    events, schema = source.events("visits"), source.schema.events["visits"].schema
    codes, words = events.columns.part(tuple(schema), 0, int(events.offsets[-1])), source.words_of("visits")
    values = {
        name: plain(array, words[name]) if name in words else schema[name].decode(array)
        for name, array in codes.items()
    }
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return [rows[a:b] for a, b in zip(events.offsets[:-1], events.offsets[1:], strict=True)]


def first(rows: list[dict[str, Any]], name: str = "ward", *, last: bool = False) -> Any:
    days = [row["day"] for row in rows]
    if not rows:
        return None
    place = len(days) - 1 - days[::-1].index(max(days)) if last else days.index(min(days))
    return rows[place][name]


def costs(rows: list[dict[str, Any]]) -> list[float]:
    return known(rows, "cost")


def known(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


TRUTHS = {
    "count(visits)": len,
    "count(visits, cost > 100 AND urgent)": lambda rows: sum(
        c["cost"] is not None and c["cost"] > 100 and c["urgent"] for c in rows
    ),
    "exists(visits, ward = 'heart')": lambda rows: any(row["ward"] == "heart" for row in rows),
    "sum(visits.day)": lambda rows: sum(row["day"] for row in rows),
    "sum(day - 5, urgent)": lambda rows: sum(row["day"] - 5 for row in rows if row["urgent"]),
    "max(visits.cost)": lambda rows: max(costs(rows), default=None),
    "min(cost, urgent)": lambda rows: min(costs([row for row in rows if row["urgent"]]), default=None),
    "first(visits.ward)": first,
    "last(visits.ward)": lambda rows: first(rows, last=True),
    "min(visits.drug)": lambda rows: min(known(rows, "drug"), default=None),
    "max(drug, urgent)": lambda rows: max(
        known([row for row in rows if row["urgent"]], "drug"), default=None
    ),
    "first(drug, drug IS NOT NULL)": lambda rows: first(
        [row for row in rows if row["drug"] is not None], "drug"
    ),
    "last(visits.drug)": lambda rows: first(rows, "drug", last=True),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_each_unit_has_what_its_events_say(name: str, source: UnitSource) -> None:
    column = source.schema[name]
    (block,) = source.scan([name])
    assert block[name].dtype == column.dtype
    texts = text_behind(source.schema, name)
    found = column.decode(block[name]) if texts is None else plain(block[name], source.words[texts])
    assert found == [TRUTHS[name](rows) for rows in units(source)]
    ids = np.array([5, 0, 5, 59, 1])
    np.testing.assert_array_equal(source.gather([name], ids)[name], block[name][ids])


def test_sums_and_means_of_reals_are_on_their_grid(source: UnitSource) -> None:
    (block,) = source.scan(["sum(visits.cost)", "avg(visits.cost)"])
    step = 1000 / 2**20
    for place, rows in enumerate(units(source)):
        found = block["sum(visits.cost)"][place], block["avg(visits.cost)"][place]
        assert abs(found[0] - sum(costs(rows))) <= step * max(1, len(costs(rows)))
        if costs(rows):
            assert abs(found[1] - np.mean(costs(rows))) <= step
        else:
            assert np.isnan(found[1])


def test_a_question_about_events_is_the_sum_over_units(source: UnitSource) -> None:
    """Totals over the events, and what each unit contributes to them: within its range, and adding up to them."""
    rows = source.schema.of_rows("visits")
    for text in ("visits.cost > 100", "age > 40", "urgent AND count(drugs) > 1"):
        where = parse_predicate(text, rows)
        (asked,) = workload(
            Statistic("count", where, over=rows.over), source.schema, source.rows
        ).measurements
        assert isinstance(asked, Measurement)
        (total,) = source.totals(asked)
        each = asked.contributions(source.gather(asked.columns, np.arange(source.rows)))
        assert each.sum() == total > 0
        assert asked.low == 0 <= each.min() <= each.max() <= asked.high == 4
    everything = workload(
        Statistic("count", Always(), over=rows.over), source.schema, source.rows
    ).measurements[0]
    assert source.totals(everything)[0] == sum(map(len, units(source)))
