"""JOINs with public tables, as they may be written, against DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.ledger import MemoryLedger
from holdfast.planning.sql_question import Sql
from holdfast.session.session import Session

rng = np.random.default_rng(3)
FLIGHTS = pd.DataFrame(
    {
        "carrier": rng.choice(["AA", "DL", "XX"], 900),
        "origin": rng.choice(["EWR", "JFK"], 900),
        "hour": rng.integers(0, 24, 900),
        "delay": rng.integers(0, 60, 900),
    }
)
CARRIERS = pd.DataFrame(
    {"code": ["AA", "DL", "UA"], "name": ["American", "Delta", "United"], "fleet": [3, 5, 8]}
)
WEATHER = pd.DataFrame(
    {"origin": ["EWR"] * 24 + ["JFK"] * 12, "hour": [*range(24), *range(12)], "temp": range(36)}
)
SCHEMA = hf.Schema(
    carrier=hf.Category("AA", "DL", "UA", "XX"),
    origin=hf.Category("EWR", "JFK"),
    hour=hf.Integer(0, 23),
    delay=hf.Integer(0, 60),
)
LOOKUPS = {
    "carriers": hf.Lookup(CARRIERS, {"carrier": "code"}),
    "weather": hf.Lookup(WEATHER, ["origin", "hour"]),
}


@pytest.fixture(scope="module")
def session() -> Session:
    table = hf.open(FLIGHTS, SCHEMA, lookups=LOOKUPS, ledger=MemoryLedger())
    return table.session(rho=9e9, target="table")


ON = "flights.carrier = carriers.code"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT count(*) FROM flights JOIN carriers ON {ON}",
        "SELECT count(*) FROM (SELECT delay / 2 AS half, hour FROM flights WHERE hour > 6) AS f WHERE half > 15",
        "SELECT count(*) FROM flights INNER JOIN carriers ON carriers.code = flights.carrier",
        f"SELECT count(*) FROM flights LEFT JOIN carriers ON {ON} WHERE carriers.name IS NULL",
        f"SELECT count(carriers.fleet) FROM flights LEFT OUTER JOIN carriers ON {ON}",
        f"SELECT sum(fleet) FROM flights JOIN carriers ON {ON} WHERE flights.delay > 30",
        "SELECT avg(delay) FROM flights JOIN weather USING (origin, hour) WHERE weather.temp > 11",
        "SELECT avg(flights.delay) FROM flights JOIN weather USING (hour, origin)",
        f"SELECT count(*) FROM flights JOIN carriers ON {ON} JOIN weather USING (origin, hour) WHERE fleet > 3",
        "SELECT count(*) FROM flights JOIN weather ON flights.hour = weather.hour AND weather.origin = flights.origin",
        f"SELECT count(*) FROM flights LEFT JOIN weather USING (origin, hour) JOIN carriers ON {ON} WHERE temp IS NULL",
        f"SELECT sum(fleet * 2 - delay) FROM flights JOIN carriers ON {ON}",
    ],
)
def test_they_mean_what_they_mean_in_sql(text: str, session: Session) -> None:
    connection = duckdb.connect()
    for name, frame in (("flights", FLIGHTS), ("carriers", CARRIERS), ("weather", WEATHER)):
        connection.register(name, frame)
    row = connection.execute(text).fetchone()
    assert row is not None
    assert session.sql_one(text, rho=1e8).value == pytest.approx(float(row[0]), rel=1e-5)


def test_a_plain_join_that_kept_rows_without_a_match_is_noticed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of the test above: a JOIN that is always a LEFT JOIN."""
    from holdfast.query import across, joins

    right = joins.read_joins
    monkeypatch.setattr(
        across,
        "read_joins",
        lambda *a: [joins.Join(j.table, True, j.using, j.equal, j.start) for j in right(*a)],
    )
    text = f"SELECT count(*) FROM flights JOIN carriers ON {ON}"
    with pytest.raises(AssertionError):
        test_they_mean_what_they_mean_in_sql(text, session)


def test_groups_and_their_order(session: Session) -> None:
    text = f"SELECT carriers.name, avg(delay) AS late FROM flights LEFT JOIN carriers ON {ON} GROUP BY carriers.name"
    (answer,) = session.sql(text, rho=1e6)
    assert answer.labels == ("American", "Delta", "United")
    (arranged,) = session.sql(f"{text} ORDER BY carriers.name DESC LIMIT 2", rho=1e6)
    assert tuple(arranged.labels or ()) == ("United", "Delta")
    python = session.mean("delay", by="carriers.name", rho=1e6)
    assert python.repeated and python.value.tolist() == answer.value.tolist()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT count(*) FROM flights JOIN weather USING (origin)", "joined by its key"),
        ("SELECT count(*) FROM flights JOIN weather USING (origin, hour, delay)", "joined by its key"),
        ("SELECT count(*) FROM flights JOIN carriers USING (code)", "joined by its key"),
        ("SELECT count(*) FROM flights JOIN carriers ON flights.origin = carriers.code", "joined by its key"),
        ("SELECT count(*) FROM flights JOIN carriers ON other.carrier = carriers.code", "joined by its key"),
        (f"SELECT count(*) FROM flights JOIN carriers ON {ON} OR delay = 3", "equal keys"),
        (f"SELECT count(*) FROM flights JOIN carriers ON {ON} AND", "equal keys"),
        ("SELECT count(*) FROM flights JOIN carriers ON flights.carrier > carriers.code", "equal keys"),
        ("SELECT count(*) FROM flights JOIN carriers", "USING or ON"),
        ("SELECT count(*) FROM flights JOIN weather USING origin", "in parentheses"),
        ("SELECT count(*) FROM flights RIGHT JOIN weather USING (origin, hour)", "LEFT JOIN"),
        ("SELECT count(*) FROM flights CROSS JOIN weather", "LEFT JOIN"),
        ("SELECT count(*) FROM flights NATURAL JOIN weather", "LEFT JOIN"),
        ("SELECT count(*) FROM flights JOIN flights USING (hour)", "joined twice"),
        ("SELECT count(*) FROM flights f g JOIN weather USING (origin, hour)", "another word"),
        ("SELECT count(*) FROM flights WHERE carriers.tail = 3", "no column"),
        ("SELECT sum(code) FROM flights", "not a number"),
    ],
)
def test_what_is_no_join_by_the_key_is_refused(text: str, words: str, session: Session) -> None:
    spent = session.spent
    with pytest.raises(QueryError, match=words):
        session.sql(text, rho=1.0)
    assert session.spent == spent


def test_canonical_texts_are_read_back(session: Session) -> None:
    for text in ("carriers.name = 'Delta' AND weather.temp > 3", "fleet + delay > 9", "weather.hour IS NULL"):
        answer = session.fraction(text, rho=1e3)
        told = str(answer).removeprefix("fraction where ").split(": ")[0]
        assert session.fraction(told, rho=1e3).repeated


def test_what_travels_is_read_alike(session: Session) -> None:
    asked = Sql(text=f"SELECT sum(fleet) FROM flights JOIN carriers ON {ON}")
    read: Any = asked.read(session.schema)
    assert str(read.statistics[0]) == "sum(carriers.fleet) where carriers.code IS NOT NULL"
