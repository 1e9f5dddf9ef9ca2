"""Boards behind the gateway: labels that stay, looks that no second board refreshes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from gateway import LABELS, Running, prepared

from holdfast.service import create_app


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    with prepared({}) as running:
        yield running


def registered(started: Running, client: TestClient, key: str, labels: str, **terms: Any) -> Any:
    body = {"id": key, "labels": labels, "queries": 20, "within": 0.2, "per_team": 5} | terms
    return client.post("/v1/leaderboards", json=body, headers=owner(started))


def owner(started: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {started.owner}"}


def ann(started: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {started.analyst}"}


def submit(started: Running, client: TestClient, key: str, said: Any, call: str | None = None) -> Any:
    headers = ann(started) | ({} if call is None else {"Idempotency-Key": call})
    body = {"predictions": np.asarray(said).tolist()}
    return client.post(f"/v1/leaderboards/{key}/submissions", json=body, headers=headers)


def test_a_second_board_on_the_same_labels_has_no_fresh_looks(started: Running) -> None:
    labels = np.random.default_rng(1).integers(0, 2, LABELS)
    for name in ("one.npy", "two.npy"):
        np.save(started.settings.roots[0] / name, labels)
    client = TestClient(started.app)
    assert registered(started, client, "one", "one.npy").status_code == 201
    assert registered(started, client, "two", "two.npy").status_code == 201
    assert submit(started, client, "one", labels).status_code == 200
    left = client.get("/v1/leaderboards/two", headers=ann(started)).json()
    assert (left["looks_left"], left["team_looks_left"]) == (19, 4)
    assert registered(started, client, "three", "one.npy", queries=1000).json()["code"] == "taken"


def test_looks_end_for_a_team_and_a_retry_is_the_same_look(started: Running) -> None:
    labels = np.random.default_rng(2).integers(0, 2, LABELS)
    np.save(started.settings.roots[0] / "own.npy", labels)
    client = TestClient(started.app)
    assert registered(started, client, "own", "own.npy").status_code == 201
    first = submit(started, client, "own", labels, "call")
    assert first.status_code == 200
    assert submit(started, client, "own", labels, "call").content == first.content
    assert submit(started, client, "own", 1 - labels, "call").json()["code"] == "idempotency"
    for _ in range(4):
        assert submit(started, client, "own", labels).status_code == 200
    refused = submit(started, client, "own", labels)
    assert refused.json()["code"] == "budget"
    assert submit(started, client, "own", labels[1:]).json()["code"] == "invalid"
    board = client.get("/v1/leaderboards/own", headers=ann(started)).json()
    assert board["team_looks_left"] == 0
    assert board["standings"][0]["submissions"] == 5
    assert board["standings"][0]["low"] <= 1.0 <= board["standings"][0]["high"] + 0.2


def test_labels_that_are_removed_or_replaced_change_nothing(started: Running) -> None:
    labels = np.random.default_rng(3).integers(0, 2, LABELS)
    place = started.settings.roots[0] / "gone.npy"
    np.save(place, labels)
    client = TestClient(started.app)
    assert registered(started, client, "gone", "gone.npy").status_code == 201
    assert submit(started, client, "gone", labels).status_code == 200
    before = client.get("/v1/leaderboards/gone", headers=ann(started)).content
    place.unlink()
    with TestClient(create_app(started.settings)) as later:  # as after a restart
        assert later.get("/v1/leaderboards/gone", headers=ann(started)).content == before
        scored = submit(started, later, "gone", labels).json()["answers"][0]
    assert scored["value"] > 0.9
