"""A session behind PEP 249: statements are questions, what is public is free, and pandas reads it."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy
from gateway import running

import holdfast as hf
from holdfast import dbapi
from holdfast.dbapi import sqlalchemy_dialect

ROWS = 2000
SCHEMA = hf.Schema(
    age=hf.Integer(0, 99),
    smoker=hf.Category("no", "yes"),
    visit=hf.Date("2020-01-01", "2021-12-31"),
    insured=hf.Boolean(),
)
DATA = {
    "age": np.arange(ROWS) % 100,
    "smoker": np.where(np.arange(ROWS) % 100 < 30, "yes", "no"),
    "visit": np.datetime64("2020-01-01") + (np.arange(ROWS) % 731),
    "insured": np.arange(ROWS) % 2 == 0,
}


@pytest.fixture
def session() -> hf.Session:
    return hf.open(DATA, SCHEMA).session(target="table", rho=50)


@pytest.fixture
def connection(session: hf.Session) -> dbapi.Connection:
    return dbapi.connect(session, table="people", rho=0.5)


def test_the_module_is_what_the_standard_says() -> None:
    assert dbapi.apilevel == "2.0"
    assert dbapi.paramstyle == "qmark"
    assert dbapi.threadsafety in (0, 1, 2, 3)
    for name in (
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    ):
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert not issubclass(dbapi.Warning, dbapi.Error)
    assert dbapi.Date(2020, 1, 2) == datetime.date(2020, 1, 2)
    assert dbapi.TimestampFromTicks(0).date() == dbapi.DateFromTicks(0)


def test_a_select_is_a_question(connection: dbapi.Connection, session: hf.Session) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    text = "SELECT smoker, count(*) AS n, low(n) AS least, high(n) FROM t WHERE age >= ? GROUP BY smoker ORDER BY n;"
    cursor.execute(text, (10,))
    assert [part[0] for part in cursor.description or []] == ["smoker", "n", "least", "high(n)"]
    assert [part[1] == dbapi.STRING for part in cursor.description or []] == [True, False, False, False]
    first = cursor.fetchone()
    assert first is not None
    assert first[0] == "yes"
    assert first[2] <= first[1] <= first[3]
    assert abs(first[1] - 400) < 200  # the noise is below 5 a standard deviation
    assert [row[0] for row in cursor.fetchall()] == ["no"]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    spent = session.spent
    assert float(spent) == pytest.approx(0.5)
    again = connection.execute(text, (10,))
    assert [row[0] for row in again] == ["yes", "no"]
    assert session.spent == spent
    assert again.answers[0].repeated
    when = connection.execute("SELECT median(visit) FROM people")
    assert isinstance(when.fetchone()[0], datetime.date)
    assert (when.description or [])[0][1] == dbapi.DATETIME


PROBES = [
    "SELECT 1",
    "select 'x' as y",
    "SELECT version()",
    "select current_schema()",
    "SHOW TABLES",
    "DESCRIBE people",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'",
    "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people'",
    "SELECT relname FROM pg_catalog.pg_class WHERE relname = 'people'",
    "SELECT * FROM people LIMIT 0",
    "SELECT age, smoker FROM people WHERE 1=0",
    "BEGIN",
    "SET timezone = 'UTC'",
    "COMMIT",
]


@pytest.mark.parametrize("probe", PROBES)
def test_what_tools_want_to_know_of_tables_is_free(
    connection: dbapi.Connection, session: hf.Session, probe: str
) -> None:
    cursor = connection.execute(probe)
    rows = [] if cursor.description is None else cursor.fetchall()
    assert float(session.spent) == 0
    assert not session.history
    if "table_name FROM" in probe or "relname" in probe:
        assert rows == [("people",)]
    if "column_name" in probe:
        assert dict(rows)["visit"] == "DATE"
    if "LIMIT 0" in probe or "1=0" in probe:
        assert rows == []
        assert (cursor.description or [])[0][0] == "age"


@pytest.mark.parametrize(
    ("statement", "parameters", "error", "message"),
    [
        (
            "SELECT avg(agee) FROM people",
            None,
            dbapi.ProgrammingError,
            r"did you mean age\?\n  SELECT avg\(agee\)",
        ),
        ("SELECT * FROM people", None, dbapi.ProgrammingError, "expected an aggregate"),
        ("SELECT age FROM people", None, dbapi.ProgrammingError, "in an aggregate"),
        ("DROP TABLE people", None, dbapi.ProgrammingError, "only SELECT"),
        ("INSERT INTO people VALUES (1)", None, dbapi.ProgrammingError, "only SELECT"),
        ("SELECT count(*) FROM people WHERE age > ?", (), dbapi.ProgrammingError, "1 parameters, got 0"),
        ("SELECT count(*) FROM people WHERE age > ?", (None,), dbapi.ProgrammingError, "IS NULL"),
        ("SELECT count(*) FROM people WHERE age > ?", "3", dbapi.ProgrammingError, "tuple or a list"),
        ("SELECT count(*) FROM people WHERE smoker = ?", ("x' OR 'a'='a",), dbapi.ProgrammingError, "labels"),
        ("SELECT read_csv('/etc/passwd') FROM pg_class", None, dbapi.ProgrammingError, "."),
        (3, None, dbapi.ProgrammingError, "text"),
    ],
)
def test_what_is_no_question_is_refused_at_no_cost(
    connection: dbapi.Connection,
    session: hf.Session,
    statement: Any,
    parameters: Any,
    error: type,
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        connection.execute(statement, parameters)
    assert float(session.spent) == 0


def test_ends_of_a_connection(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="execute a SELECT"):
        cursor.fetchall()
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany("SELECT count(*) FROM t", [()])
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="closed"):
        cursor.execute("SELECT 1")
    with connection:
        connection.commit()
        connection.rollback()
    with pytest.raises(dbapi.InterfaceError, match="closed"):
        connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="a session or the address"):
        dbapi.connect(3)  # type: ignore[arg-type]
    with pytest.raises(dbapi.ProgrammingError, match="timeout with a session"):
        dbapi.connect(connection.session, timeout=3)


def test_a_budget_that_is_spent_is_an_operational_error() -> None:
    poor = hf.open({name: column[:99] for name, column in DATA.items()}, SCHEMA).session(
        target="table", rho=0.1
    )
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(poor, rho=5).execute("SELECT count(*) FROM t WHERE age > 3")


def test_pandas_and_sqlalchemy_ask(session: hf.Session) -> None:
    engine = sqlalchemy.create_engine(
        "holdfast://", creator=lambda: dbapi.connect(session, table="people", rho=0.5)
    )
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["people"]
    assert inspector.has_table("people")
    assert not inspector.has_table("other")
    people = sqlalchemy.Table("people", sqlalchemy.MetaData(), autoload_with=engine)
    assert [column.name for column in people.columns] == list(SCHEMA)
    assert float(session.spent) == 0, "reflection is free"
    with engine.connect() as connection:
        frame = pd.read_sql(
            "SELECT smoker, avg(age) AS mean, low(mean) AS low, high(mean) AS high FROM people GROUP BY smoker",
            connection,
        )
        assert list(frame.columns) == ["smoker", "mean", "low", "high"]
        assert frame.smoker.tolist() == ["no", "yes"]
        assert (frame.low <= frame["mean"]).all()
        assert np.allclose(frame["mean"], [64.5, 14.5], atol=10)
        count = sqlalchemy.func.count().label("n")
        asked = (
            sqlalchemy.select(people.c.smoker, count)
            .where(people.c.age > 40, people.c.visit >= datetime.date(2020, 2, 1), people.c.insured)
            .group_by(people.c.smoker)
            .order_by(count.desc())
            .limit(1)
        )
        (row,) = connection.execute(asked).all()
        assert row.smoker == "no"
        band = sqlalchemy.case((people.c.age < 50, 1), else_=0)
        assert abs(connection.execute(sqlalchemy.select(sqlalchemy.func.avg(band))).scalar_one() - 0.5) < 0.2
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="did you mean age"):
            connection.execute(sqlalchemy.text("SELECT avg(agee) FROM people"))
    assert len(session.history) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas knows SQLAlchemy and no other connection
        plain = pd.read_sql(
            "SELECT count(*) AS n FROM people WHERE age > 40", dbapi.connect(session, rho=0.5)
        )
    assert abs(plain.n[0] - 1180) < 200


def test_over_a_gateway() -> None:
    with running(declared={"target": "table"}) as started:
        host = started.url.removeprefix("http://")
        name = hf.connect(started.url, started.analyst).tables[0].id
        url = f"holdfast://{started.analyst}@{host}/{name}?scheme=http&rho=0.001"
        with sqlalchemy.create_engine(url).connect() as connection:
            assert sqlalchemy.inspect(connection).get_table_names() == [name]
            frame = pd.read_sql(
                f"SELECT smoker, count(*) AS n, low(n) FROM {name} GROUP BY smoker ORDER BY n", connection
            )
        assert list(frame.columns) == ["smoker", "n", "low(n)"]
        with pytest.raises(dbapi.OperationalError):
            dbapi.connect(started.url, "wrong", table=name)


def test_the_dialect_says_what_it_is() -> None:
    assert sqlalchemy_dialect.HoldfastDialect.import_dbapi() is dbapi
    made = sqlalchemy_dialect.HoldfastDialect().create_connect_args(
        sqlalchemy.make_url("holdfast://tok@host:81/people?within=5&table_note=x")
    )
    assert made == (["https://host:81", "tok"], {"table": "people", "within": 5.0, "table_note": "x"})


def test_what_others_call_by_name_is_there(connection: dbapi.Connection) -> None:
    """Methods that PEP 249 and SQLAlchemy name, and nobody here calls."""
    cursor = connection.cursor()
    assert cursor.setinputsizes([3]) is None
    assert cursor.setoutputsize(3) is None
    assert dbapi.TimeFromTicks(0).microsecond == 0
    assert dbapi.BINARY != "text" and dbapi.ROWID != "number" and dbapi.Binary(b"x") == b"x"
    dialect = sqlalchemy_dialect.HoldfastDialect()
    assert dialect.get_schema_names(None) == ["main"] == [dialect._get_default_schema_name(None)]
    assert dialect.get_view_names(None) == []
    with sqlalchemy.create_engine("holdfast://", creator=lambda: connection).connect() as opened:
        assert dialect.get_foreign_keys(opened, "people") == dialect.get_indexes(opened, "people") == []
        assert dialect.get_pk_constraint(opened, "people")["constrained_columns"] == []
    assert dialect._get_server_version_info(None) == (1,)
    assert dialect.do_rollback(None) is None
    assert not dialect.supports_alter
    assert callable(dialect.get_columns)
