"""Days, moments and times of day: declared, read, written back, asked about."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from holdfast.errors import DataError, InputError, QueryError, SchemaError
from holdfast.query.evaluate import evaluate
from holdfast.query.group_keys import groups_of
from holdfast.query.parse import parse_predicate
from holdfast.query.schema import Date, Schema, Time, Timestamp
from holdfast.query.select import parse_select

UTC = datetime.UTC
SCHEMA = Schema(
    left=Timestamp("2020-02-28", "2020-03-01"),
    back=Timestamp("2020-02-28", "2020-03-02"),
    hourly=Timestamp("2020-02-28", "2020-03-01", "hour"),
    at=Time(),
    day=Date("2020-02-28", "2020-03-01"),
)


def codes(column: Timestamp | Time, *values: Any) -> list[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return column.decode(column.encode_array(array))


def test_a_date_as_the_end_means_all_of_it() -> None:
    for step, last in {"second": "23:59:59", "minute": "23:59:00", "hour": "23:00:00"}.items():
        for end in ("2020-03-01", datetime.date(2020, 3, 1)):
            column = Timestamp("2020-02-28", end, step)
            assert str(column.last) == f"2020-03-01 {last}"
            assert Schema.from_json(Schema(a=column).to_json())["a"] == column
    assert str(Timestamp("2020-02-28", "2020-03-01 00:00").last) == "2020-03-01 00:00:00"


def test_what_has_a_zone_is_taken_in_utc_and_what_has_none_as_it_is_written() -> None:
    noon, late = (
        datetime.datetime(2020, 2, 29, 12),
        datetime.timezone(datetime.timedelta(hours=5, minutes=30)),
    )
    column = SCHEMA["left"]
    assert isinstance(column, Timestamp)
    found = codes(
        column, "2020-02-29 12:00", "2020-02-29T12:00:00.9Z", "2020-02-29 17:30+05:30", "2020-02-29 17:30+0530",
        "2020-02-29 10:00-02", noon, noon.replace(tzinfo=UTC), datetime.datetime(2020, 2, 29, 17, 30, tzinfo=late),
        np.datetime64("2020-02-29T12:00"),
    )  # fmt: skip
    assert found == [noon] * 9
    assert codes(Time(), noon.time(), "12:00", noon, "12:00:00.5", "12:00Z") == [noon.time()] * 4 + [None]


def test_outside_is_clamped_and_what_cannot_be_read_is_null() -> None:
    column = SCHEMA["left"]
    assert isinstance(column, Timestamp)
    first, last = column.first, column.last
    assert codes(column, "1990-01-01", "0001-01-01 00:00+23:59", "9999-12-31 23:59-01:00") == [
        first,
        first,
        last,
    ]
    bad = (
        "2020-02-30 12:00",
        "2020-02-29 24:00",
        "2020-02-29 12:60",
        "2020-02-29 12",
        "noon",
        None,
        5,
        "12:00",
    )
    assert codes(column, *bad, float("nan")) == [None] * 9
    assert codes(Time("08:00", "09:00", "minute"), "07:00", "08:30:59", "23:00", "25:00", "8:30") == [
        datetime.time(8), datetime.time(8, 30), datetime.time(9), None, None,
    ]  # fmt: skip
    for unit in ("Y", "D", "h", "s", "ms", "us", "ns"):
        array = np.array(["1969-12-31", "2020-02-29", "NaT"], dtype=f"datetime64[{unit}]")
        first_of = {"Y": "2020-01-01"}.get(unit, "2020-02-29")
        wanted = [datetime.datetime(1969, 12 if unit != "Y" else 1, 31 if unit != "Y" else 1), first_of, None]
        found = column.widest.decode(column.widest.encode_array(array))
        assert [found[0], str(found[1])[:10], found[2]] == wanted
    edge = np.array([np.iinfo(np.int64).max, -np.iinfo(np.int64).max], dtype="datetime64[D]")
    assert column.encode_array(edge).tolist() == [column.codes - 1, 0]
    with pytest.raises(DataError, match="cannot be read as time"):
        Time().encode_array(np.array(["2020-01-01"], dtype="datetime64[D]"))
    with pytest.raises(DataError, match="cannot be read as timestamp"):
        column.encode_array(np.array([1, 2]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Timestamp("2020-01-02", "2020-01-01"), "swap them"),
        (lambda: Timestamp("2020-01-01 12:00", "2020-01-01 11:00"), "swap them"),
        (lambda: Timestamp("2020-01-01", "2020-02-30"), "must be a datetime"),
        (lambda: Timestamp("12:00", "13:00"), "must be a datetime"),
        (lambda: Timestamp("2020-01-01", "2021-01-01", "day"), "'hour', 'minute'"),
        (lambda: Timestamp("2020-01-01", "2021-01-01", 60), "'hour', 'minute'"),
        (lambda: Time("12:00", "11:00"), "swap them"),
        (lambda: Time("2020-01-01", "11:00"), "must be a time"),
        (lambda: Time(3), "must be a time"),
    ],
)
def test_bad_declarations(make: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("left > TIMESTAMP '2020-02-29 12:00'", "left >= '2020-02-29 12:00:01'"),
        ("left < '2020-02-29 12:00:00.5'", "left <= '2020-02-29 12:00:00'"),
        ("left = '2020-02-29 12:00:00.5'", "FALSE"),
        ("left BETWEEN '2020-02-29' AND '2020-02-29T12:00Z'",
         "left BETWEEN '2020-02-29 00:00:00' AND '2020-02-29 12:00:00'"),
        ("CAST(left AS DATE) = DATE '2020-02-29'", "left BETWEEN '2020-02-29 00:00:00' AND '2020-02-29 23:59:59'"),
        ("left::date >= '2020-02-29'", "left >= '2020-02-29 00:00:00'"),
        ("date(left) <> '2020-02-29'", "left <= '2020-02-28 23:59:59' OR left >= '2020-03-01 00:00:00'"),
        ("date_trunc('hour', left) = '2020-02-29 05:00'",
         "left BETWEEN '2020-02-29 05:00:00' AND '2020-02-29 05:59:59'"),
        ("date_trunc('month', left) = '2020-02-01'", "left <= '2020-02-29 23:59:59'"),
        ("date_trunc('hour', left) = '2020-02-29 05:30'", "FALSE"),
        ("at >= TIME '08:30'", "at >= '08:30:00'"),
        ("hour(at) = 8", "at BETWEEN '08:00:00' AND '08:59:59'"),
        ("extract(hour FROM left) = 8", "hour(left) = 8"),
        ("date_part('minute', left) < 30", "minute(left) <= 29"),
        ("hour(hourly) >= 22", "hourly IN ('2020-02-28 22:00:00')"),
        ("left <= back", "left <= back"),
        ("CAST(day AS DATE) = '2020-02-29'", "day = '2020-02-29'"),
    ],
)  # fmt: skip
def test_conditions(text: str, canonical: str) -> None:
    found = parse_predicate(text, SCHEMA)
    if text.startswith("hour(hourly)"):
        assert str(found).startswith("hourly BETWEEN '2020-02-28 22:00:00' AND '2020-02-28 23:00:00' OR")
    else:
        assert str(found) == canonical
    assert parse_predicate(str(found), SCHEMA) == found


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("left = ¦'yesterday'", "such as '2024-12-31 08:30:00'"),
        ("left = ¦3", "such as"),
        ("at = ¦'2020-02-29'", "such as '08:30:00'"),
        ("year(¦at) = 3", "which has no year"),
        ("¦left < hourly", "kind and step"),
        ("¦left < at", "kind and step"),
        ("¦left = day", "kind and step"),
        ("¦left + 1 > 3", "timestamp column and has no arithmetic"),
        ("cast(¦left AS int) = 3", "not a number"),
        ("¦date(left + 1) = '2020-02-29'", "not in the language"),
    ],
)
def test_refusals_point_at_the_place(marked: str, message: str) -> None:
    text, place = marked.replace("¦", ""), marked.index("¦")
    with pytest.raises(QueryError, match=message) as caught:
        parse_predicate(text, SCHEMA)
    assert caught.value.position == place


def test_groups() -> None:
    hours = groups_of(SCHEMA, "hour(left)")
    assert hours.labels == tuple(map(str, range(24)))
    days = groups_of(SCHEMA, "CAST(left AS DATE)")
    assert days.labels == ("2020-02-28", "2020-02-29", "2020-03-01") and days == groups_of(
        SCHEMA, "left::date"
    )
    cut = groups_of(SCHEMA, "date_trunc('hour', left)")
    assert cut.labels[:2] == ("2020-02-28 00:00:00", "2020-02-28 01:00:00") and cut.size == 72
    assert groups_of(SCHEMA, "date_trunc('hour', at)").labels[8] == "08:00:00"
    binned = groups_of(SCHEMA, "left", ["2020-02-28", "2020-02-29 12:00", "2020-03-01 23:59:59"])
    assert binned.labels[0] == "2020-02-28 00:00:00 to 2020-02-29 11:59:59"
    block = {
        name: kind.encode_array(np.array(["2020-02-29 08:30:00"], dtype=object))
        for name, kind in SCHEMA.items()
    }
    block["at"] = Time().encode_array(np.array(["08:30"], dtype=object))
    assert [groups.groups(block)[0] for groups in (hours, days, cut, binned)] == [8, 1, 32, 0]
    assert evaluate(
        parse_predicate("hour(left) = hour(at) AND minute(left) = 30", SCHEMA), block, SCHEMA
    ).all()
    with pytest.raises(InputError, match="timestamps for the edges"):
        groups_of(SCHEMA, "left", [1, 2])
    with pytest.raises(QueryError, match="cut it coarser"):
        groups_of(Schema(long=Timestamp("1900-01-01", "2100-01-01")), "date_trunc('minute', long)")
    select = parse_select("SELECT left::date AS d, count(*) FROM t GROUP BY d", SCHEMA)
    assert select.by == (days,)
