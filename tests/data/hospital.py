"""A made hospital, small: people, their visits and prescriptions, with everything that real tables get wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast as hf

PEOPLE = hf.Schema(age=hf.Integer(0, 120), region=hf.Category("north", "south"), town=hf.Text(max_length=8))
VISITS = hf.Schema(
    cost=hf.Real(0, 1000),
    ward=hf.Category("surgery", "heart", "other"),
    day=hf.Integer(0, 364),
    urgent=hf.Boolean(),
    drug=hf.Text(max_length=8),
)
TOWNS = ("Ulm", "Köln", "Bonn", "Ko\u0308ln", "Ochsenfurt am Main")
DRUGS_GIVEN = (
    "aspirin",
    "ether",
    "caféine",
    "cafe\u0301ine",
    "morphine sulphate",
    *(f"x{i}" for i in range(30)),
)
DRUGS = hf.Schema(dose=hf.Integer(0, 50))
SCHEMAS = {"people": PEOPLE, "visits": VISITS, "drugs": DRUGS}
BOUNDS = {"visits": 4, "drugs": 2}
ORDER = {"visits": "day"}
SECRET = bytes(range(16))


def hospital(people: int = 60, seed: int = 1) -> dict[str, dict[str, Any]]:
    """Tables of lists: people without visits, visits without people, people with too many, copies, NULLs."""
    random = np.random.default_rng(seed)
    own = {
        "person": [f"p{place}" for place in range(people)],
        "age": random.integers(0, 100, people).tolist(),
        "region": random.choice(["north", "south", "elsewhere"], people).tolist(),
    }
    texts = np.random.default_rng([seed, 1])  # the numbers above stay what they were
    own["town"] = [None if place % 13 == 0 else str(t) for place, t in enumerate(texts.choice(TOWNS, people))]
    many = 5 * people
    who = [f"p{place}" for place in random.integers(-3, people // 2, many)]
    visits = {
        "person": [None if place % 17 == 0 else name for place, name in enumerate(who)],
        "cost": [
            None if place % 11 == 0 else float(c) for place, c in enumerate(random.integers(-20, 1100, many))
        ],
        "ward": random.choice(["surgery", "heart", "other", "cellar"], many).tolist(),
        "day": random.integers(0, 365, many).tolist(),
        "urgent": [bool(b) for b in random.integers(0, 2, many)],
    }
    visits["drug"] = [
        None if place % 7 == 0 else str(t) for place, t in enumerate(texts.choice(DRUGS_GIVEN, many))
    ]
    for name, values in visits.items():  # one person with very many visits, most of them copies
        values.extend([["p1"], [7.5], ["heart"], [3], [True], ["ether"]][list(visits).index(name)] * 50)
    drugs = {
        "person": [f"p{place}" for place in random.integers(0, people, 3 * people)],
        "dose": random.integers(0, 50, 3 * people).tolist(),
    }
    return {"people": own, "visits": visits, "drugs": drugs}


def permuted(table: dict[str, Any], seed: int = 5) -> dict[str, Any]:
    """The same rows in another order."""
    order = np.random.default_rng(seed).permutation(len(table["person"]))
    return {name: [values[place] for place in order] for name, values in table.items()}
