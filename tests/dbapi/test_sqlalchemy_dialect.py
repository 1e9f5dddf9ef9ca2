"""SQLAlchemy's own tests of a dialect, those that fit one which only reads, against a gateway; and what that found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy
from gateway import running

import holdfast as hf
from holdfast import dbapi
from holdfast.dbapi import sqlalchemy_dialect

HERE = Path(__file__).parent
TABLE = hf.Schema(id=hf.Integer(0, 2000), data=hf.Text(50))
"""The table that their tests of tables look for: `test_table`."""


def suite(folder: Path, url: str) -> str:
    """What pytest says of the chosen tests, in a process of its own: their plugin changes all tests beside them."""
    settings = "requirement_cls=sqlalchemy_requirements:Requirements\nprofile_file=profiles.txt\n"
    (folder / "setup.cfg").write_text(f"[sqla_testing]\n{settings}")
    plugins = ["-p", "holdfast.dbapi.sqlalchemy_dialect", "-p", "sqlalchemy.testing.plugin.pytestplugin"]
    quiet = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-rsfE", "--tb=short", "-c", os.devnull]
    place = [
        "--rootdir",
        str(folder),
        "-o",
        "python_files=sqlalchemy_suite.py",
        str(HERE / "sqlalchemy_suite.py"),
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *quiet, "--dburi", url, *place],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(HERE)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return ran.stdout + ran.stderr


def test_sqlalchemys_own_tests_hold_and_charge_nothing(tmp_path: Path) -> None:
    rows = {"id": np.arange(2000), "data": np.array(["a", "b"] * 1000)}
    with running({"test_table": hf.open(rows, TABLE)}, declared={"target": "table"}) as started:
        host = started.url.removeprefix("http://")
        said = suite(tmp_path, f"holdfast://{started.analyst}@{host}/test_table?scheme=http&rho=0.001")
        spent = hf.connect(started.url, started.analyst).session("test_table").spent
    outcome = re.search(r"^(\d+) passed.*$", said, re.MULTILINE)
    assert outcome is not None and "failed" not in outcome[0] and "error" not in outcome[0], said[-6000:]
    assert int(outcome[1]) >= 50, outcome[0]
    assert float(spent) == 0


def test_what_nothing_is_asked_of_is_free() -> None:
    """A SELECT without FROM is about no rows; one that means a table and forgets it is told so."""
    session = hf.open({"age": [1, 2] * 50}, hf.Schema(age=hf.Integer(0, 9))).session(rho=1, target="table")
    connection = dbapi.connect(session, rho=0.1)
    assert connection.execute("SELECT 15 / 10, 'from' || 'a' AS \"from\"").fetchall() == [(1.5, "froma")]
    with pytest.raises(dbapi.ProgrammingError, match="write FROM t"):
        connection.execute("SELECT avg(age)")
    assert float(session.spent) == 0


def test_a_table_that_is_not_there_is_no_table() -> None:
    session = hf.open({"age": [1, 2] * 50}, hf.Schema(age=hf.Integer(0, 9))).session(rho=1, target="table")
    engine = sqlalchemy.create_engine(
        "holdfast+dbapi://", creator=lambda: dbapi.connect(session, table="people")
    )
    found = sqlalchemy.inspect(engine)
    assert found.has_table("people", schema="main") and not found.has_table("people", schema="other")
    for what in (found.get_columns, found.get_pk_constraint, found.get_foreign_keys, found.get_indexes):
        with pytest.raises(sqlalchemy.exc.NoSuchTableError):
            what("nobody")
    assert sqlalchemy_dialect.HoldfastDialect.driver == "dbapi"
