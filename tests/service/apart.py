"""A gateway with a file of which a tenth is set aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from service.site import Site, site, write_csv

ROWS, ASIDE = 2_000, 200
SCHEMA = {"columns": [{"name": "age", "type": "integer", "lo": 0, "hi": 99}]}
CAP, SHARE = {"rho": 2e3}, {"rho": 1e3}
LAPLACE = {"kind": "fraction", "where": "age < 50", "rho": 1e-3, "mechanism": "laplace"}
COUNT = {"kind": "count", "where": "age < 50", "rho": 500.0, "confirm": True}
BOTH = ("ages", "ages.aside")


@contextmanager
def divided(*parts: str, more: dict[str, Any] | None = None, **settings: Any) -> Iterator[Site]:
    """A gateway with a file of which a tenth is set aside. The analyst may ask these parts."""
    with site({}, **settings) as here:
        assert registered(here, **(more or {})).status_code == 201
        for part in parts:
            assert admit(here, part).status_code == 204
        yield here


def registered(here: Site, **more: Any) -> Any:
    ages = np.random.default_rng(3).integers(0, 100, ROWS).tolist()
    write_csv(here.started.settings.roots[0] / "ages.csv", {"age": ages})
    body = {"id": "ages", "path": "ages.csv", "schema": SCHEMA, "budget": CAP, "set_aside": 0.1} | more
    return here.call("POST", "/datasets", body, token=here.started.owner)


def admit(here: Site, part: str, share: dict[str, Any] = SHARE, token: str | None = None) -> Any:
    person = here.started.person(here.started.analyst if token is None else token).id
    return here.call("PUT", f"/datasets/{part}/analysts/{person}", share, token=here.started.owner)


def told(reply: Any) -> Any:
    """The one answer of a reply."""
    assert reply.status_code == 200, reply.text
    (answer,) = reply.json()["answers"]
    return answer


def spent(here: Site, part: str) -> float:
    return float(here.call("GET", f"/datasets/{part}/budget").json()["spent"]["amount"])
