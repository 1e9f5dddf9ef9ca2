"""A real gateway for the tests: uvicorn on a free port, in a thread, over a folder that goes away with it."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI

import holdfast as hf
from holdfast.service import Settings, create_app
from holdfast.service.admission import Connection
from holdfast.service.catalog import Person
from holdfast.service.gateway import Gateway

ROWS = 20_000
LABELS = 5_000
BUDGET = {"epsilon": 30.0, "delta": 1e-6}
SHARE = {"epsilon": 10.0, "delta": 1e-6}


@dataclass(frozen=True)
class Running:
    """A gateway that answers at `url`, with a token for each scope. `analyst` may ask every table."""

    url: str
    app: FastAPI
    settings: Settings
    owner: str
    analyst: str
    auditor: str

    @property
    def gateway(self) -> Gateway:
        """What stands behind the API, for arranging things without HTTP."""
        gateway: Gateway = self.app.state.gateway
        return gateway

    def person(self, token: str) -> Person:
        """Whose token it is."""
        person = self.gateway.who(token)
        assert person is not None
        return person

    def somebody(self, name: str, share: dict[str, float] | None = None, *, scope: str = "analyst") -> str:
        """A token for somebody new, who may ask every table with this share unless it is empty."""
        owner = self.person(self.owner)
        person = self.gateway.add_person(owner, name, scope, None)
        chosen = SHARE if share is None else share
        for dataset in self.gateway.tables.all() if chosen and scope != "auditor" else []:
            self.gateway.admit(owner, dataset.id, person.id, chosen)
        return self.gateway.issue(owner, person.id, "test", None)

    def register_board(self, key: str, kind: str = "leaderboard", **terms: Any) -> None:
        """A leaderboard or a holdout over `labels(key)`."""
        from holdfast.service.bodies import NewBoard

        np.save(self.settings.roots[0] / f"{key}.npy", labels(key))
        wanted = NewBoard(id=key, labels=f"{key}.npy", **{"queries": 100, "within": 0.2} | terms)
        self.gateway.register_board(self.person(self.owner), wanted.board(kind))


def people(rows: int = ROWS, *, set_aside: float | None = None) -> hf.Table:
    """Rows of age, income, smoker and born."""
    draw = np.random.default_rng(7)
    columns = {
        "age": draw.integers(0, 100, rows),
        "income": draw.uniform(0, 1000, rows),
        "smoker": draw.choice(["no", "yes"], rows, p=[0.7, 0.3]),
        "born": np.datetime64("1950-01-01") + draw.integers(0, 20_000, rows),
    }
    schema = hf.Schema(
        age=hf.Integer(0, 99),
        income=hf.Real(0, 1000),
        smoker=hf.Category("no", "yes"),
        born=hf.Date("1950-01-01", "2010-12-31"),
    )
    return hf.open(columns, schema, set_aside=set_aside)


def labels(key: str) -> Any:
    """The labels of a board; each has its own, since labels are known again by their fingerprint."""
    return np.random.default_rng(list(key.encode())).integers(0, 2, LABELS)


@contextmanager
def prepared(
    tables: Mapping[str, hf.Table] | None = None,
    *,
    budget: dict[str, float] | None = None,
    share: dict[str, float] | None = None,
    declared: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Running]:
    """A gateway with these tables (one of `people` unless told), each under `budget`, the analyst under `share`.

    `declared` goes to the registration (confidence, queries, target); `settings` to `Settings`. Replies are not
    held back and nobody is slowed down unless the settings say so. Nothing serves it yet.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-gateway-") as place:
        folder = Path(place)
        quiet = Settings(
            folder, anchors=folder / "anchors", quantum=0.0, requests_per_second=0.0, strangers_per_second=0.0
        )
        chosen = replace(quiet, **settings)
        app = create_app(chosen)
        gateway: Gateway = app.state.gateway
        token = gateway.first_owner()
        assert token is not None
        owner = gateway.who(token)
        assert owner is not None
        terms = {"confidence": 0.95, "queries": None, "target": "population"} | dict(declared or {})
        for key, table in ({"people": people()} if tables is None else tables).items():
            table.save(chosen.roots[0] / f"{key}.hf")
            gateway.register(owner, key, f"{key}.hf", None, name=key, budget=budget or BUDGET, **terms)
        started = Running("", app, chosen, token, "", "")
        analyst, auditor = started.somebody("ann", share), started.somebody("audrey", scope="auditor")
        yield Running("", app, chosen, token, analyst, auditor)


@contextmanager
def running(tables: Mapping[str, hf.Table] | None = None, **how: Any) -> Iterator[Running]:
    """What `prepared` makes, served."""
    with prepared(tables, **how) as started, serving(started.app) as url:
        yield replace(started, url=url)


@contextmanager
def serving(app: FastAPI, **more: Any) -> Iterator[str]:
    """An application served by uvicorn in a thread, with `more` of its settings; its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=5,
        **{"http": Connection, "proxy_headers": False} | more,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the gateway did not start"
        time.sleep(0.005)
    try:
        yield f"{'https' if config.is_ssl else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
