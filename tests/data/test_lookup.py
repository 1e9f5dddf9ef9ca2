"""Public tables through every door: what is looked up is what a dict of the keys says, row by row."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import holdfast as hf
from data.tables import (
    AGES,
    LOOKUPS,
    NOTES,
    SCHEMA,
    SOURCES,
    Columns,
    from_postgres,
    generated,
    whole,
    write_csv,
)
from holdfast.data.lookup import Lookup, with_lookups
from holdfast.errors import DataError, HoldfastError, InputError
from holdfast.ledger import MemoryLedger

COLUMNS = generated(300, seed=4)
DOORS = SOURCES | {"postgres": from_postgres}
SPOKEN = [
    "dict",
    "pandas",
    "polars",
    "csv-in-duckdb",
    "parquet-in-place",
    "relation-in-duckdb",
    "store",
    "units",
    "store-of-units",
    "postgres",
]
"""One of each home of rows; Spark has one file for everything."""
NAMES = ["ages.age", "ages.stage", "notes.text", "notes.insured", "notes.weight"]


def told(columns: Columns) -> dict[str, list[Any]]:
    """The same join by hand. The key of a row is its value as declared: an age of 140 is 120."""
    ages = dict(zip(AGES["age"], AGES["stage"], strict=True))
    note = SCHEMA["note"]
    assert isinstance(note, hf.Text)
    keys = zip([note.canonical(text) for text in NOTES["text"]], NOTES["insured"], strict=True)
    notes = dict(zip(keys, NOTES["weight"], strict=True))
    clamped = [None if age is None else min(max(age, 0), 120) for age in columns["age"]]
    pairs = list(zip(map(note.canonical, columns["note"]), columns["insured"], strict=True))
    return {
        "ages.age": [age if age in ages and age is not None else None for age in clamped],
        "ages.stage": [ages.get(age) if age is not None else None for age in clamped],
        "notes.text": [pair[0] if pair in notes else None for pair in pairs],
        "notes.insured": [pair[1] if pair in notes else None for pair in pairs],
        "notes.weight": [notes.get(pair) for pair in pairs],
    }


def check_door(source: Any) -> None:
    """Scanned, gathered and drawn alike; spoken in values, since codes are our own."""
    beside = with_lookups(source, LOOKUPS)
    truth = told(COLUMNS)
    found = whole(beside, NAMES)
    ids = np.array([0, 299, 7, 7])
    some = beside.gather(["ages.stage", "age", "notes.weight"], ids)
    for name in NAMES:
        kind = beside.schema[name]
        assert not isinstance(kind, hf.Text)
        assert kind.decode(found[name]) == truth[name], name
        assert any(value is None for value in truth[name]) and any(truth[name])
    group = beside.schema["ages.stage"]
    assert isinstance(group, hf.Category) and group.decode(some["ages.stage"]) == [
        truth["ages.stage"][i] for i in ids
    ]
    drawn = beside.draw(["ages.age", "age"], 500)
    same = drawn["ages.age"] == drawn["age"]
    missing = drawn["ages.age"] == beside.schema["ages.age"].null_code
    assert np.all(same | missing) and same.any() and missing.any()
    beside.close()


@pytest.mark.parametrize("kind", SPOKEN)
def test_every_door_looks_up_the_same(kind: str, tmp_path: Path) -> None:
    check_door(DOORS[kind](COLUMNS, tmp_path))


def test_a_join_that_takes_the_next_row_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its twin: each row is given what its neighbour looks up."""
    from holdfast.data import lookup_join

    right = lookup_join.LookedUp.columns

    def wrong(self: Any, block: Any, names: Any, words: Any) -> Any:
        return {name: np.roll(codes, 1) for name, codes in right(self, block, names, words).items()}

    monkeypatch.setattr(lookup_join.LookedUp, "columns", wrong)
    with pytest.raises(AssertionError):
        check_door(SOURCES["dict"](COLUMNS, tmp_path))


CARRIERS = {"carrier": ["AA", "DL", "UA"], "name": ["American", "Delta", "United"], "planes": [3, 5, 8]}
FLIGHTS = {"carrier": ["AA", "AA", "DL", "XX", None] * 40, "delay": [1, 2, 3, 4, 5] * 40}
TABLE = hf.Schema(carrier=hf.Category("AA", "DL", "UA", "XX"), delay=hf.Integer(0, 9))


def flights(carriers: Any = None, **more: Any) -> hf.Table:
    lookups = {"carriers": hf.Lookup(CARRIERS if carriers is None else carriers, "carrier")}
    return hf.open(FLIGHTS, TABLE, lookups=lookups, ledger=MemoryLedger(), **more)


def forms(folder: Path) -> dict[str, Any]:
    connection = duckdb.connect()
    frame = pd.DataFrame(CARRIERS)
    connection.register("given", frame)
    frame.to_parquet(folder / "carriers.parquet")
    return {
        "pandas": frame,
        "polars": pl.DataFrame(CARRIERS),
        "arrow": pl.DataFrame(CARRIERS).to_arrow(),
        "relation": connection.execute("CREATE TABLE c AS SELECT * FROM given") and connection.table("c"),
        "csv": write_csv(CARRIERS, folder / "carriers.csv"),
        "parquet": str(folder / "carriers.parquet"),
    }


def test_a_public_table_may_have_any_form(tmp_path: Path) -> None:
    expected = flights().session(rho=1e9, target="table").histogram("carriers.name", rho=1e7)
    assert (expected.labels, expected.value.tolist()) == (("American", "Delta", "United"), [80, 40, 0])
    for name, form in forms(tmp_path).items():
        found = flights(form).session(rho=1e9, target="table").histogram("name", rho=1e7)
        assert (found.labels, found.value.tolist()) == (expected.labels, expected.value.tolist()), name


def test_questions_of_every_kind_cost_what_declared_columns_cost() -> None:
    session = flights().session(rho=1e9, target="table")
    spent = session.estimate.fraction("carrier = 'DL'", rho=0.5)
    asked = session.estimate.fraction("carriers.name = 'Delta'", rho=0.5)
    assert (asked.noise_parameter, asked.rho) == (spent.noise_parameter, spent.rho)
    assert session.mean("2 * carriers.planes + delay", rho=1e7).value == pytest.approx(
        (80 * 7.5 + 40 * 13) / 120
    )
    assert session.fraction("carriers.name IS NULL", rho=1e7).value == pytest.approx(0.4)
    assert session.quantile("planes", 0.9, rho=1e6).value == 5
    weights = session.multiplicative_weights(["carriers.name"], queries=3, within=0.2)
    assert 0 <= weights.fraction("name = 'Delta'").value <= 1
    assert session.select(["carriers.planes = 3", "planes = 8"], epsilon=50.0).index == 0
    assert isinstance(session.sample("planes > 3"), bool)
    told_now = session.statistic(lambda rows: rows["carriers.planes"] / 10, ["carriers.planes"], rho=1e7)
    assert told_now.value == pytest.approx((80 * 0.3 + 40 * 0.5) / 120, abs=1e-3)


def test_texts_that_nobody_declared_get_public_groups() -> None:
    schema = hf.Schema(carrier=hf.Text(2), delay=hf.Integer(0, 9))
    lookups = {"carriers": hf.Lookup(CARRIERS, "carrier")}
    table = hf.open(FLIGHTS, schema, lookups=lookups, ledger=MemoryLedger())
    session = table.session(epsilon=1e6, delta=1e-6, target="table")
    found = session.count(by="carriers.carrier", rho=1e4)
    assert (found.labels, found.value.tolist()) == (("AA", "DL", "UA"), [80, 40, 0])
    assert len(session.history) == 1  # and nothing was discovered


def test_a_session_goes_on_with_the_tables_that_it_was_opened_with(tmp_path: Path) -> None:
    """An answer that stands is of the same question: another table under the same name is another question."""
    store = tmp_path / "flights.hf"
    saved = flights().save(store)
    first = saved.session(rho=9.0, target="table", name="mine").count("carriers.planes > 3", rho=1.0)
    saved.close()
    lookups = {"carriers": hf.Lookup({**CARRIERS, "planes": [9, 9, 9]}, "carrier")}
    with pytest.raises(HoldfastError, match="exists and promised"):
        hf.open(store, lookups=lookups).session(name="mine")
    shuffled = {name: values[::-1] for name, values in CARRIERS.items()}
    again = hf.open(store, lookups={"carriers": hf.Lookup(shuffled, "carrier")})
    assert again.session(name="mine").count("carriers.planes > 3", rho=1.0).value == first.value


def one_row_twice() -> Any:
    return {"carrier": ["AA", "AA"], "name": ["a", "b"]}


@pytest.mark.parametrize(
    ("lookups", "words"),
    [
        (lambda: {"carriers": Lookup(one_row_twice(), "carrier")}, "each key once"),
        (lambda: {"carriers": CARRIERS}, "dict of Lookups"),
        (lambda: [Lookup(CARRIERS, "carrier")], "dict of Lookups"),
        (lambda: {"the carriers": Lookup(CARRIERS, "carrier")}, "plain words"),
        (lambda: {"delay": Lookup(CARRIERS, "carrier")}, "different names"),
        (lambda: {"carriers": Lookup(CARRIERS, "tail")}, "among the declared columns"),
        (lambda: {"carriers": Lookup(CARRIERS, {"carrier": "code"})}, "a column 'code'"),
        (lambda: {"carriers": Lookup(CARRIERS, [])}, "names of columns"),
        (lambda: {"carriers": Lookup(CARRIERS, 3)}, "names of columns"),
        (lambda: {"carriers": Lookup(CARRIERS, ["carrier", "carrier"])}, "once"),
        (lambda: {"carriers": Lookup(7, "carrier")}, "a frame or a path"),
        (lambda: {"carriers": Lookup({"carrier": ["AA"], "x": [{}]}, "carrier")}, "declare it"),
        (lambda: {"carriers": Lookup({"carrier": [], "x": []}, "carrier")}, "column 'carrier'"),
        (lambda: {"carriers": Lookup(CARRIERS, "carrier", schema={})}, "as a Schema"),
        (lambda: {"c": Lookup({"delay": [1.0], "x": [1]}, "delay")}, None),
    ],
)  # fmt: skip
def test_bad_public_tables_are_refused_at_the_opening(lookups: Any, words: str | None) -> None:
    if words is None:  # and this one is none: a whole number as a float is the same key
        hf.open(FLIGHTS, TABLE, lookups=lookups(), ledger=MemoryLedger())
        return
    with pytest.raises((InputError, DataError), match=words):
        hf.open(FLIGHTS, TABLE, lookups=lookups(), ledger=MemoryLedger())


def test_real_keys_are_refused() -> None:
    with pytest.raises(InputError, match="whole numbers, dates or texts"):
        hf.open({"x": [1.5]}, hf.Schema(x=hf.Real(0, 2)), lookups={"t": Lookup({"x": [1.5]}, "x")})


def test_keys_of_every_type_and_columns_of_odd_names() -> None:
    days = [date(2024, 1, 1), date(2024, 1, 2), date(1800, 1, 1)]
    public = {"day": days, "flag": [True, True, True], "wind speed": [1.5, 2.5, 3.5], "date": [7, 8, 9]}
    rows = {"day": [*days[:2], None], "flag": [True, False, True]}
    schema = hf.Schema(day=hf.Date("2024-01-01", "2024-12-31"), flag=hf.Boolean())
    lookups = {"weather": Lookup(public, ["day", "flag"])}
    session = hf.open(rows, schema, lookups=lookups, ledger=MemoryLedger()).session(rho=1e9, target="table")
    assert session.sum('weather."wind speed"', rho=1e7).value == pytest.approx(1.5, abs=1e-2)
    answer = session.count('weather."date" = 7', rho=1e7)
    assert answer.value == 1 and str(answer).startswith('count where weather."date" = 7')
    assert session.count('"wind speed" > 1', rho=1e7).value == 1
    # A day before the declared range is clamped to its first one; a key there is nobody's.
    clamped = hf.open({"day": [days[2]], "flag": [True]}, schema, lookups=lookups, ledger=MemoryLedger())
    assert clamped.session(rho=1e9, target="table").sum("weather.date", rho=1e7).value == 7
