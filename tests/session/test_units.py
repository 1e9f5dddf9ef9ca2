"""People with many rows in several tables, from the opening to answers of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.hospital import BOUNDS, ORDER, SCHEMAS, hospital

import holdfast as hf
from holdfast.data.unit_source import UnitSource
from holdfast.errors import UndiscoveredError
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.session import keys as keys_room
from holdfast.session.session import Session

LARGE: dict[str, Any] = {"rho": 1e6, "target": "table"}
WARD = "exists(visits, ward = 'surgery')"


def opened(tables: Any = None, **more: Any) -> hf.Table:
    more.setdefault("ledger", MemoryLedger())
    return hf.open(tables or hospital(400), SCHEMAS, unit="person", rows_per_unit=BOUNDS, order=ORDER, **more)


@pytest.fixture(scope="module")
def table() -> hf.Table:
    return opened()


@pytest.fixture(scope="module")
def session(table: hf.Table) -> Session:
    return table.session(**LARGE)


def source(table: hf.Table) -> UnitSource:
    found = getattr(table._source, "whole", table._source)
    assert isinstance(found, UnitSource)
    return found


def test_units_are_counted_for_nothing_and_events_are_not(table: hf.Table, session: Session) -> None:
    spent = session.spent
    everybody = session.count()
    assert everybody.value == table.rows == 400 and session.spent == spent
    assert session.sql_one("SELECT count(*) FROM people").value == 400 and session.spent == spent
    events = session.sql_one("SELECT count(*) FROM visits", rho=1000.0)
    assert session.spent > spent
    assert abs(events.value - int(source(table).events("visits").offsets[-1])) < 5
    assert events.rows_read == 400


def _means(columns: Any) -> Any:
    some = columns["visits"] > 0
    return (columns["days"][some] / columns["visits"][some]).mean()


def _old(columns: Any, name: str) -> Any:
    return columns[name][columns["age"] > 50].sum()


@pytest.mark.parametrize(
    ("ask", "truth"),
    [
        (lambda s: s.fraction(WARD, rho=1e3), lambda a: a["surgery"].mean()),
        (lambda s: s.count("count(visits, urgent) >= 2", rho=1e3), lambda a: (a["urgent"] >= 2).sum()),
        (lambda s: s.sum("count(visits)", rho=1e3), lambda a: a["visits"].sum()),
        (lambda s: s.count("visits.urgent", rho=1e3), lambda a: a["urgent"].sum()),
        (lambda s: s.fraction("visits.urgent", rho=1e3), lambda a: a["urgent"].sum() / a["visits"].sum()),
        (lambda s: s.mean("visits.day", rho=1e3), lambda a: a["days"].sum() / a["visits"].sum()),
        (lambda s: s.mean("avg(visits.day)", rho=1e3), lambda a: _means(a)),
        (lambda s: s.mean("visits.day", "people.age > 50", rho=1e3), lambda a: _old(a, "days") / _old(a, "visits")),
    ],
)  # fmt: skip
def test_answers_cover_the_truth(ask: Any, truth: Any, table: hf.Table, session: Session) -> None:
    names = ["age", "count(visits)", "count(visits, urgent)", WARD, "sum(visits.day)"]
    blocks = list(source(table).scan(names))
    columns = {name: np.concatenate([block[name] for block in blocks]).astype(float) for name in names}
    short = dict(zip(["age", "visits", "urgent", "surgery", "days"], columns.values(), strict=True))
    answer = ask(session)
    assert answer.low <= truth(short) <= answer.high
    assert answer.high - answer.low < 0.2 * max(1.0, abs(answer.value))


def test_the_answer_says_what_it_estimates(session: Session) -> None:
    over = session.mean("visits.cost", rho=10.0)
    assert "over rows of visits, at most 4 a person" in str(over)
    assert "if every person has 4 rows that qualify" in over.explanation
    assert str(session.mean("avg(visits.cost)", rho=10.0)).startswith("mean(avg(visits.cost)): ")


def test_a_unit_costs_what_a_row_costs_and_events_so_many_times_more(session: Session) -> None:
    units = session.estimate.count(WARD, rho=0.5)
    events = session.estimate.count("visits.urgent", rho=0.5)
    row = hf.open({"x": np.arange(400) % 2}, hf.Schema(x=hf.Integer(0, 1)), ledger=MemoryLedger()).session(
        **LARGE
    )
    assert units.noise_parameter == row.estimate.count("x = 1", rho=0.5).noise_parameter
    assert events.noise_parameter == 16 * units.noise_parameter  # a variance: four rows a person


def test_everything_else_is_asked_of_units(session: Session) -> None:
    assert session.select([WARD, "count(visits) = 0"], epsilon=50.0).index in (0, 1)
    assert session.sparse_vector(0.01, hits=1, epsilon=100.0).above("age >= 0")
    assert isinstance(session.sample(WARD), bool)
    assert session.histogram("last(visits.ward)", rho=10.0).value.shape == (3,)
    assert 0 <= session.quantile("count(visits)", rho=100.0).value <= 4
    weights = session.multiplicative_weights(["region", "count(visits, day>100 )"], queries=5, within=0.2)
    assert 0 <= weights.fraction("count(visits, visits.day > 100) >= 2").value <= 1
    made = session.synthesize(["region", "exists(drugs)"], ["exists(drugs)"], rounds=1, rho=10.0)
    assert made is not None
    loss = hf.learn.squared(session.schema, ["count(visits)"], "age", radius=1.0)
    assert len(session.minimize(loss, rho=10.0, iterations=2).theta) == 2
    told = session.statistic(lambda rows: rows["count(visits)"] / 4, ["count(visits)"], rho=10.0)
    assert 0 <= told.value <= 1
    for refused in (
        lambda: session.select(["visits.cost > 3", WARD], epsilon=1.0),
        lambda: session.sample("visits.urgent"),
        lambda: session.statistic(lambda rows: rows["cost"], ["visits.cost"], rho=1.0),
        lambda: session.multiplicative_weights(["visits.ward"], queries=3, rho=1.0),
        lambda: session.fraction("visits.urgent", by="region", rho=1.0),
    ):
        spent = session.spent
        with pytest.raises(hf.HoldfastError):
            refused()
        assert session.spent == spent


def test_votes_draw_units(table: hf.Table) -> None:
    session = table.session(**LARGE)
    answer = session.fraction(WARD, within=0.2, mechanism="votes")
    assert answer.mechanism == "votes" and answer.rows_read < 400 * 100
    total = session.count("visits.urgent", within=600.0, mechanism="votes")
    assert total.mechanism == "votes" and total.low <= 400 * 4


def test_a_population_of_units_is_planned_as_one_of_rows() -> None:
    table = opened()
    planned = table.session(epsilon=1.0, delta=1e-6, keys_delta=0.0, queries=10)
    rows = hf.open({"x": np.arange(400)}, hf.Schema(x=hf.Integer(0, 400)), ledger=MemoryLedger())
    assert planned.plan == rows.session(epsilon=1.0, delta=1e-6, queries=10).plan
    assert table.session(queries=3, within=0.3).plan == rows.session(queries=3, within=0.3).plan


def test_a_saved_table_goes_on_with_its_ledger_and_its_secret(tmp_path: Path) -> None:
    table = opened()
    secret = table.ledger.secret
    table.session(epsilon=5.0, name="mine").count(WARD, epsilon=1.0)
    saved = table.save(tmp_path / "h.hf")
    assert saved.ledger.secret == secret
    assert saved.spent == table.spent > 0
    again = hf.open(tmp_path / "h.hf")
    assert (again.schema, again.rows, again.ledger.secret) == (table.schema, 400, secret)
    assert again.session(name="mine").count(WARD, epsilon=1.0).repeated
    with pytest.raises(hf.HoldfastError, match="rows_per_unit"):
        hf.open(tmp_path / "h.hf", rows_per_unit=3)


def test_the_same_ledger_keeps_the_same_rows(tmp_path: Path) -> None:
    first, second = (opened(ledger=tmp_path / "people.ledger") for _ in range(2))
    other = opened()
    kept = [
        source(t).gather(["sum(visits.day)"], np.arange(400))["sum(visits.day)"].tolist()
        for t in (first, second, other)
    ]
    assert kept[0] == kept[1] != kept[2]


def test_the_secret_leaves_in_no_export(tmp_path: Path) -> None:
    from holdfast.ledger.export import export

    table = opened(ledger=tmp_path / "people.ledger")
    table.session(epsilon=1.0).count(WARD, epsilon=0.5)
    assert table.ledger.secret.hex() not in "".join(export(table.ledger))


def test_one_person_with_a_million_rows_changes_nothing_that_is_shown() -> None:
    """Row 12 of docs/threats.md: D and D' differ in one person, who owns very many rows in the second."""
    told = []
    for many in (3, 10**6 // 50):
        tables = hospital(400)
        for place, values in enumerate(tables["visits"].values()):
            values.extend([["p250"], [1.0], ["heart"], [3], [True], ["ether"]][place] * many)
        table = opened(tables)
        session = table.session(epsilon=5.0, delta=1e-6, target="table")
        plan = session.estimate.count("visits.urgent", rho=0.1)
        answer = session.count("visits.urgent", rho=0.1)
        told.append(
            (repr(table), repr(table.schema), str(plan), answer.rows_read, answer.explanation, table.rows)
        )
        assert int(np.diff(source(table).events("visits").offsets).max()) <= 4
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"unit": None}, "unit="),
        ({"rows_per_unit": None}, "rows_per_unit"),
        ({"rows_per_unit": {"visits": 0, "drugs": 2}}, "rows_per_unit"),
        ({"rows_per_unit": {"visits": 2}}, "2 tables without a bound"),
        ({"rows_per_unit": {"people": 2, "visits": 2, "drugs": 2}}, "0 tables without a bound"),
        ({"rows_per_unit": {"nothere": 2, "visits": 2, "drugs": 2}}, "tables among"),
        ({"order": {"visits": "nothere"}}, "column of 'visits'"),
        ({"unit": "nothere"}, "nothere"),
        ({"schema": SCHEMAS["people"]}, "one bound"),
        ({"rows_per_unit": 4}, "dict"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(how: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"schema": SCHEMAS, "unit": "person", "rows_per_unit": BOUNDS} | how
    with pytest.raises(hf.HoldfastError, match=words):
        hf.open(hospital(), given.pop("schema"), **given)


def test_rows_per_unit_alone_keeps_its_meaning() -> None:
    table = hf.open(
        {"x": np.arange(40)}, hf.Schema(x=hf.Integer(0, 40)), rows_per_unit=2, ledger=MemoryLedger()
    )
    assert (table.rows, table.rows_per_unit) == (40, 2)
    assert table.session(epsilon=9.0).count("x > 3", epsilon=1.0).epsilon == 1.0


def kept(table: hf.Table) -> list[dict[str, Any]]:
    """The visits that are kept, with the texts that they and their person have."""
    held = source(table)
    events, towns = held.events("visits"), held.own.part(["town"], 0, held.rows)["town"]
    codes = events.columns.part(["drug", "day"], 0, int(events.offsets[-1]))
    owners = np.repeat(np.arange(held.rows), np.diff(events.offsets))
    words, places = (dict(enumerate(held.words[name].texts)) for name in ("visits.drug", "town"))
    return [
        {
            "person": int(who),
            "drug": words.get(int(drug)),
            "day": int(day),
            "town": places.get(int(towns[who])),
        }
        for who, drug, day in zip(owners, codes["drug"], codes["day"], strict=True)
    ]


def test_texts_of_units_and_of_events_are_asked_about_both(table: hf.Table, session: Session) -> None:
    rows, people = kept(table), {}
    for row in rows:
        people.setdefault(row["person"], []).append(row["drug"])
    asked = {
        "visits.drug = 'ether'": sum(row["drug"] == "ether" for row in rows),
        "drug LIKE 'x1%' AND people.town = 'Köln'": sum(
            (row["drug"] or "").startswith("x1") and row["town"] == "Köln" for row in rows
        ),
        "length(drug) <= 2 OR drug IS NULL": sum(
            row["drug"] is None or len(row["drug"]) <= 2 for row in rows
        ),
        "count(visits, drug = 'ether') >= 1": sum("ether" in drugs for drugs in people.values()),
        "exists(visits, starts_with(drug, 'caf') AND town = 'Ulm')": len(
            {row["person"] for row in rows if (row["drug"] or "").startswith("caf") and row["town"] == "Ulm"}
        ),
    }
    for where, true in asked.items():
        answer = session.count(where, rho=1e3)
        assert answer.low <= true <= answer.high and abs(answer.value - true) < 5 and true > 0, where
    by_town = session.sql_one(
        "SELECT count(*) FROM visits JOIN people USING (person) WHERE town IN ('Ulm', 'Bonn')", rho=1e3
    )
    assert abs(by_town.value - sum(row["town"] in ("Ulm", "Bonn") for row in rows)) < 5
    votes = session.count("visits.drug IS NOT NULL", within=600.0, mechanism="votes")
    assert votes.mechanism == "votes"


def picked(table: hf.Table, how: Any) -> list[Any]:
    """What is read off the visits of each unit that has some."""
    people: dict[int, list[Any]] = {}
    for row in kept(table):
        people.setdefault(row["person"], []).append(row)
    return [how(rows) for rows in people.values()]


def last_drug(rows: list[Any]) -> str | None:
    found: str | None = max(enumerate(rows), key=lambda each: (each[1]["day"], each[0]))[1]["drug"]
    return found


def least_drug(rows: list[Any]) -> str | None:
    return min((row["drug"] for row in rows if row["drug"] is not None), default=None)


def test_a_text_of_a_units_events_is_a_column_of_the_unit(table: hf.Table, session: Session) -> None:
    last, least = picked(table, last_drug), picked(table, least_drug)
    asked = {
        "last(visits.drug) = 'ether'": last.count("ether"),
        "min(drug) LIKE 'caf%'": sum((text or "").startswith("caf") for text in least),
        "exists(visits) AND last(drug) IS NULL": last.count(None),
        "length(min(visits.drug)) = 2": sum(len(text or "") == 2 for text in least),
    }
    for where, true in asked.items():
        answer = session.count(where, rho=1e3)
        assert answer.low <= true <= answer.high and abs(answer.value - true) < 5 and true > 0, where
    joined = "FROM visits WHERE visits.person = people.person"
    for subquery, name in (
        (f"(SELECT min(drug) {joined}) LIKE 'caf%'", "min(drug) LIKE 'caf%'"),
        (f"(SELECT last(drug) {joined}) = 'ether'", "last(visits.drug) = 'ether'"),
        (f"(SELECT drug {joined} ORDER BY day DESC LIMIT 1) = 'ether'", "last(visits.drug) = 'ether'"),
    ):
        told = session.sql_one(f"SELECT count(*) FROM people WHERE {subquery}", rho=1e3)
        assert abs(told.value - asked[name]) < 5, subquery
    rows = session.count("visits.day >= 0 AND last(visits.drug) = 'ether'", rho=1e3)
    true = sum(picked(table, lambda rows: len(rows) * (last_drug(rows) == "ether")))
    assert abs(rows.value - true) < 10
    assert isinstance(session.sample("last(visits.drug) = 'ether'"), bool)
    votes = session.fraction("last(visits.drug) = 'ether'", within=0.25, mechanism="votes")
    assert votes.mechanism == "votes" and votes.low <= last.count("ether") / 400 <= votes.high


def test_a_number_of_a_units_events_is_a_column_of_the_unit(table: hf.Table, session: Session) -> None:
    joined = "FROM visits WHERE visits.person = people.person"
    for kind, pick, subquery in (
        ("min", min, f"SELECT min(day) {joined}"),
        ("max", max, f"SELECT max(day) {joined}"),
        ("first", min, f"SELECT day {joined} ORDER BY day LIMIT 1"),
        ("last", max, f"SELECT last(day) {joined}"),
    ):
        days = picked(table, lambda rows, pick=pick: pick(row["day"] for row in rows))
        python = session.sum(f"{kind}(visits.day)", rho=1e4)
        sql = session.sql_one(f"SELECT sum(({subquery})) FROM people", rho=2e4)
        for answer in (python, sql):
            assert answer.low <= sum(days) <= answer.high and abs(answer.value - sum(days)) < 20, kind
    most = session.sql_one("SELECT max(day) FROM visits", rho=1e4)
    assert most.low <= max(row["day"] for row in kept(table)) <= most.high


def test_the_parts_of_a_table_know_the_texts_that_units_pick() -> None:
    table = opened(set_aside=0.3)
    where = "starts_with(last(visits.drug), 'x')"
    told = [part.session(rho=1e6).count(where, rho=1e3).value for part in (table.aside, table)]
    assert abs(sum(told) - sum((text or "").startswith("x") for text in picked(table, last_drug))) < 5
    assert min(told) > 5


def test_what_a_unit_picks_of_a_text_has_the_keys_of_the_events() -> None:
    table = opened()
    session = table.session(rho=1e6, delta=1e-3, target="table")
    with pytest.raises(UndiscoveredError, match=r"last\(visits\.drug\)"):
        session.estimate.count(by="last(visits.drug)", rho=1.0)
    found = session.keys("last(visits.drug)", rho=10.0, delta=1e-4)
    assert found.column == "visits.drug" and session.estimate.keys("visits.drug").cost == 0
    counts = session.histogram("last(visits.drug)", rho=1e3)
    last = picked(table, last_drug)
    assert counts.labels == tuple(found)
    assert np.abs(counts.value - [last.count(key) for key in found]).max() < 5


def test_keys_of_events_are_discovered_once_for_all_their_names(table: hf.Table) -> None:
    session = table.session(rho=1e6, delta=1e-3, target="table")
    with pytest.raises(UndiscoveredError, match=r"visits\.drug"):
        session.estimate.count(by="visits.drug", rho=1.0)
    found = session.keys("drug", rho=10.0, delta=1e-4)
    assert found.column == "visits.drug" and found.delta <= 1e-4 and found.rho == pytest.approx(10.0)
    assert "ether" in found and "caféine" in found
    spent = session.spent
    assert session.keys("visits.drug") == found and session.spent == spent
    assert session.estimate.keys("drug").cost == 0
    counts = session.histogram("drug", rho=1e3)
    assert counts.labels == tuple(found)
    assert "at most 4 a person" in str(counts)
    rows = kept(table)
    true = [sum(row["drug"] == key for row in rows) for key in found]
    assert np.abs(counts.value - true).max() < 10
    both = session.sql_one(
        "SELECT drug, town, count(*) FROM visits JOIN people USING (person) GROUP BY drug, town", rho=1e4
    )
    assert session.keys("people.town").column == "town" and "ether, Ulm" in both.labels
    other = table.session(rho=10.0, target="table")
    assert other.histogram("visits.drug", rho=1.0).labels == tuple(found)


def test_a_key_that_one_person_has_many_times_is_not_found_and_plain_group_by_finds_it() -> None:
    """Row 13 of docs/threats.md, where one person has several rows: each of them counts once for a key."""
    tables = hospital(400)
    for name, values in tables["visits"].items():
        extra = {"person": "p300", "drug": "secret", "cost": 1.0, "ward": "heart", "day": 3, "urgent": True}
        values.extend([extra[name]] * 4)
    table = opened(tables)
    terms: dict[str, Any] = {"rho": 1e6, "delta": 1e-3, "target": "table"}
    assert sum(row["drug"] == "secret" for row in kept(table)) >= 3
    found = table.session(**terms).keys("drug", rho=30.0, delta=1e-12)
    assert "secret" not in found and "ether" in found
    with pytest.MonkeyPatch.context() as patch:
        # The twin counts rows: with this threshold a person's many rows are a key.
        patch.setattr(keys_room, "unit_weights", rows_instead)
        assert "secret" in table.session(**terms, name="twin").keys("drug", rho=30.0, delta=2e-12)


def rows_instead(codes: Any, lengths: Any, size: int, event: Any) -> Any:
    return np.bincount(codes[codes < size], minlength=size) * event.scale * 2


def test_keys_of_events_for_the_population() -> None:
    table = opened(hospital(3000))
    session = table.session(epsilon=8.0, delta=1e-4, queries=5)
    found = session.keys("drug", rho=0.2)
    assert found.mechanism == "logistic" and "aspirin" in found
    assert table.ledger.totals().information < UNCOVERED
