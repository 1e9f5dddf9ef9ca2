"""A made hospital: people, their visits and prescriptions, with each person protected in all tables at once.

python examples/hospital.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast as hf

SCHEMAS = {
    "people": hf.Schema(age=hf.Integer(0, 110), region=hf.Category("north", "south", "east", "west")),
    "visits": hf.Schema(
        day=hf.Date("2024-01-01", "2024-12-31"),
        ward=hf.Category("surgery", "heart", "lungs", "other"),
        cost=hf.Real(0, 20_000, step=1.0),
    ),
    "prescriptions": hf.Schema(drug=hf.Category("statin", "beta blocker", "insulin"), days=hf.Integer(1, 90)),
}


def tables(people: int) -> dict[str, dict[str, Any]]:
    """People of whom a few are very ill: visits follow a long-tailed law, which grows with age."""
    rng = np.random.default_rng(2024)
    age = rng.integers(0, 100, people)
    visits = np.minimum(rng.pareto(1.6, people) * (0.5 + age / 50), 200).astype(int)
    drugs = rng.poisson(visits / 3)
    regions = rng.choice(["north", "south", "east", "west"], people)
    many = int(visits.sum())
    return {
        "people": {"person": np.arange(people), "age": age, "region": regions},
        "visits": {
            "person": np.repeat(np.arange(people), visits),
            "day": np.datetime64("2024-01-01") + rng.integers(0, 366, many),
            "ward": rng.choice(["surgery", "heart", "lungs", "other"], many, p=[0.1, 0.2, 0.2, 0.5]),
            "cost": rng.gamma(2, 400, many),
        },
        "prescriptions": {
            "person": np.repeat(np.arange(people), drugs),
            "drug": rng.choice(["statin", "beta blocker", "insulin"], int(drugs.sum())),
            "days": rng.integers(1, 91, int(drugs.sum())),
        },
    }


def main(people: int = 200_000) -> list[hf.Answer]:
    """Ask about people by what their events say of them, and about events with what is known of people."""
    table = hf.open(
        tables(people),
        SCHEMAS,
        unit="person",
        rows_per_unit={"visits": 20, "prescriptions": 10},
        order={"visits": "day"},
        ledger=hf.ledger.MemoryLedger(),
    )
    session = table.session(epsilon=2.0, delta=1e-6, target="table")
    surgery = "EXISTS (SELECT 1 FROM visits WHERE visits.person = people.person AND ward = 'surgery')"
    by_region = (
        "SELECT avg(cost) FROM visits JOIN people USING (person) WHERE people.age > 40 GROUP BY people.region"
    )
    answers = [
        session.fraction("count(visits, cost > 1000) >= 3", rho=0.005),
        session.mean("sum(visits.cost)", by="region", rho=0.005),
        session.fraction(
            "exists(prescriptions, drug = 'insulin') AND last(visits.ward) = 'heart'", rho=0.005
        ),
        *session.sql(f"SELECT count(*) FROM people WHERE {surgery}", rho=0.005),
        *session.sql(by_region, rho=0.02),
        session.quantile("prescriptions.days", rho=0.02),
    ]
    print(table)
    for answer in answers:
        print(answer)
    return answers


if __name__ == "__main__":
    main()
