"""Boards behind the gateway: labels that stay, looks that no second board refreshes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from gateway import LABELS, Running, prepared
from oracles.statistics import FALSE_ALARM, binomial

from holdfast.holdout import design
from holdfast.holdout.guess import check_guess
from holdfast.holdout.metric import GRID
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
    assert registered(started, client, "three", "one.npy", queries=30).json()["code"] == "taken"


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


def holdout(started: Running, client: TestClient, key: str, labels: Any, **terms: Any) -> Any:
    np.save(started.settings.roots[0] / f"{key}.npy", labels)
    body = {"id": key, "labels": f"{key}.npy", "queries": 60} | terms
    return client.post("/v1/holdouts", json=body, headers=owner(started))


def score(started: Running, client: TestClient, key: str, said: Any, **more: Any) -> Any:
    body = {"predictions": np.asarray(said).tolist()} | more
    return client.post(f"/v1/holdouts/{key}/scores", json=body, headers=ann(started))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("leaderboards", "guess-and-check"), ("leaderboards", "discretised"), ("leaderboards", "ladder"),
        ("holdouts", "guess-and-check"), ("holdouts", "discretised"),
    ],
)  # fmt: skip
def test_a_mode_that_is_not_private_needs_the_owners_word(started: Running, kind: str, mode: str) -> None:
    labels = np.random.default_rng(list(f"{kind} {mode}".encode())).integers(0, 2, LABELS)
    np.save(started.settings.roots[0] / f"{kind}-{mode}.npy", labels)
    client = TestClient(started.app)
    body = {"id": f"{kind}-{mode}", "labels": f"{kind}-{mode}.npy", "queries": 20, "mode": mode}
    for private in ({}, {"private": True}):
        refused = client.post(f"/v1/{kind}", json=body | private, headers=owner(started))
        assert refused.status_code >= 400
        assert "not private" in refused.text
    made = client.post(f"/v1/{kind}", json=body | {"private": False}, headers=owner(started))
    assert (made.status_code, made.json()["private"]) == (201, False)
    seen = client.get(f"/v1/{kind}/{kind}-{mode}", headers=ann(started)).json()
    assert seen["private"] is False
    scored = (submit if kind == "leaderboards" else score)(started, client, body["id"], labels)
    assert scored.json()["answers"][0]["private"] is False
    assert "nfinity" not in scored.text


def test_a_plan_that_is_private_anyway_is_declared_so(started: Running) -> None:
    client = TestClient(started.app)
    labels = np.random.default_rng(77).integers(0, 2, LABELS)
    made = holdout(started, client, "anyway", labels, private=False, within=0.2)
    assert (made.status_code, made.json()["private"]) == (201, True)


def test_all_planned_looks_of_a_default_board_are_answered(started: Running) -> None:
    client = TestClient(started.app)
    labels = np.random.default_rng(78).integers(0, 2, 1000)
    np.save(started.settings.roots[0] / "walked.npy", labels)
    terms = {"id": "walked", "labels": "walked.npy", "queries": 40}
    assert client.post("/v1/leaderboards", json=terms, headers=owner(started)).json()["private"] is True
    for number in range(40):
        assert submit(started, client, "walked", np.roll(labels, number)).status_code == 200
    seen = client.get("/v1/leaderboards/walked", headers=ann(started)).json()
    assert (seen["looks_left"], seen["looks_at_most"], seen["failures_left"]) == (0, 0, None)
    assert submit(started, client, "walked", labels).json()["code"] == "budget"


def labels_read(started: Running, client: TestClient, key: str, labels: Any, looks: int) -> int:
    """How many labels are told right by somebody who sends an impossible class everywhere but at one row.

    The accuracy is then 1/n or 0. A guess is placed so that it just stands for 1/n; where nothing can be placed,
    because the plan takes no guesses, the score itself is compared with the middle.
    """
    told = client.get(f"/v1/holdouts/{key}", headers=ann(started)).json()
    plan = design(rows=told["rows"], queries=told["queries"], mode=told["mode"], within=told["within"])
    read, failed = [], 0
    for row in range(looks):
        said = np.full(len(labels), 7)
        said[row] = 1
        if plan.mode == "guess-and-check":
            low, high = 0.0, 1.0
            for _ in range(60):
                middle = (low + high) / 2
                stands = check_guess(plan, row + 1, failed, GRID, middle) is None
                low, high = (middle, high) if stands else (low, middle)
            fine = score(started, client, key, said, train_score=low).json()["fine"]
            failed += not fine
            read.append(int(fine))
        else:
            value = score(started, client, key, said).json()["answers"][0]["value"]
            read.append(int(value > 0.5 / len(labels)))
    return int(np.sum(np.array(read) == labels[:looks]))


def test_labels_cannot_be_read_one_a_look(started: Running) -> None:
    client, labels = TestClient(started.app), np.random.default_rng(79).integers(0, 2, 1000)
    assert holdout(started, client, "guarded", labels).json()["private"] is True
    assert binomial(labels_read(started, client, "guarded", labels, 60), 60, 0.5) > FALSE_ALARM


def test_labels_of_a_board_that_is_not_private_are_read_one_a_look(started: Running) -> None:
    """The broken twin: the same attack on what only an owner's word makes."""
    client, labels = TestClient(started.app), np.random.default_rng(80).integers(0, 2, 1000)
    made = holdout(started, client, "open", labels, mode="guess-and-check", private=False)
    assert made.status_code == 201
    assert labels_read(started, client, "open", labels, 40) == 40
    assert binomial(40, 40, 0.5) < FALSE_ALARM


@pytest.mark.parametrize("metric", ["brier", "log-loss"])
def test_chances_are_asked_for_labels_0_and_1_only(started: Running, metric: str) -> None:
    client, draw = TestClient(started.app), np.random.default_rng(81)
    refused = holdout(started, client, f"ten-{metric}", draw.integers(0, 10, LABELS), metric=metric)
    assert refused.json()["code"] == "invalid"
    assert "labels 0 and 1" in refused.text
    two = draw.integers(0, 2, LABELS)
    assert holdout(started, client, f"two-{metric}", two, metric=metric).status_code == 201
    assert score(started, client, f"two-{metric}", np.full(LABELS, 0.5)).status_code == 200
