"""A gateway in this process, and whoever calls it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fastapi.testclient import TestClient
from gateway import Running, prepared

import holdfast as hf
from holdfast.ledger import Ledger, Totals


class Reply(Protocol):
    """What the test client gives, whichever HTTP library it stands on."""

    @property
    def status_code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def content(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def json(self) -> Any: ...


@dataclass(frozen=True)
class Site:
    """A gateway and a client of it. Calls are the analyst's unless another token is given."""

    started: Running
    client: TestClient

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request to /v1."""
        bearer = {"Authorization": f"Bearer {self.started.analyst if token is None else token}"}
        return self.client.request(
            method, f"/v1{path}", json=body, headers=bearer | dict(headers or {})
        )  # fmt: skip

    def ask(
        self, question: object, *, table: str = "people", token: str | None = None, key: str | None = None
    ) -> Reply:
        """Ask a table, under an idempotency key if one is given."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.call("POST", f"/datasets/{table}/ask", question, token=token, headers=headers)

    def estimate(self, question: object, *, table: str = "people", token: str | None = None) -> Reply:
        """What a question would cost."""
        return self.call("POST", f"/datasets/{table}/estimate", question, token=token)

    def ledger(self, table: str = "people") -> Ledger:
        """The ledger behind a table."""
        return self.started.gateway.tables.ledger(table)

    def totals(self, table: str = "people") -> Totals:
        """What was charged on a table."""
        return self.ledger(table).totals()


@contextmanager
def site(tables: Mapping[str, hf.Table] | None = None, **how: Any) -> Iterator[Site]:
    """A gateway as `prepared` makes it, called without a network."""
    with prepared(tables, **how) as started, TestClient(started.app) as client:
        yield Site(started, client)


def shape(value: object) -> object:
    """What JSON looks like when its numbers, dates and truth values are hidden."""
    if isinstance(value, dict):
        if set(value) == {"date"}:
            return "date"
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__ if isinstance(value, int | float | bool) else value


PLENTY = {"rho": 1000.0}


def write_csv(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    """Raw values as a file; None is an empty field."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            ["" if value is None else value for value in row] for row in zip(*columns.values(), strict=True)
        )


def register_csv(
    here: Site, key: str, columns: Mapping[str, Sequence[object]], schema: hf.Schema, **declared: object
) -> Path:
    """A table from a file, which the analyst may ask; where it lies."""
    path = here.started.settings.roots[0] / f"{key}.csv"
    write_csv(path, columns)
    body = {"id": key, "path": path.name, "schema": schema.to_json(), "budget": PLENTY} | declared
    owner, analyst = here.started.owner, here.started.person(here.started.analyst).id
    assert here.call("POST", "/datasets", body, token=owner).status_code == 201
    share = here.call("PUT", f"/datasets/{key}/analysts/{analyst}", body["budget"], token=owner)
    assert share.status_code == 204
    return path
