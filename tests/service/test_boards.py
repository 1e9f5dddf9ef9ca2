"""Boards behind the gateway: labels that stay, looks that no second board refreshes."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from gateway import LABELS, Running, labels, prepared
from oracles.statistics import FALSE_ALARM, binomial

from holdfast.errors import BudgetError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout, design, label_release
from holdfast.holdout.fingerprint import fingerprint
from holdfast.holdout.guess import check_guess
from holdfast.holdout.labels import Labels
from holdfast.holdout.metric import GRID, METRICS, on_grid
from holdfast.ledger import export, verify
from holdfast.service import create_app
from holdfast.service.gateway import Gateway
from holdfast.service.problem import Problem
from service.process import database_of


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


def test_people_with_several_labels_count_once(started: Running) -> None:
    """Forty people who have ten labels each, by their keys in the file; the keys themselves stay in it."""
    rng = np.random.default_rng(4)
    people, labels = np.repeat(np.arange(40), 10), rng.integers(0, 2, 40)[np.repeat(np.arange(40), 10)]
    root, client = started.settings.roots[0], TestClient(started.app)
    lines = "".join(f"{label},zoe-{key}\n" for label, key in zip(labels, people, strict=True))
    (root / "people.csv").write_text("label,who\n" + lines)
    np.save(root / "bare.npy", labels)
    how = {"units": "who", "rows_per_unit": 10, "metric": "balanced-accuracy", "mode": "gaussian"}
    for wrong in ({"units": "nobody"}, {"rows_per_unit": None}, {"units": None}, {"rows_per_unit": 0}):
        refused = registered(started, client, "people", "people.csv", column="label", **how | wrong)
        assert refused.status_code == 422 and "zoe" not in refused.text
    assert registered(started, client, "people", "bare.npy", **how).status_code == 422
    assert not list((started.settings.folder / "boards").glob("people-*")), "nothing is left of them"
    made = registered(started, client, "people", "people.csv", within=None, **how)
    assert made.status_code == 201
    assert made.json()["rows"] == 400 and made.json()["rows_per_unit"] == 10 and "units" not in made.json()
    terms: dict[str, Any] = {"queries": 20, "mode": "gaussian", "metric": "balanced-accuracy"}
    own = Leaderboard(labels, units=people, rows_per_unit=10, **terms)
    alone = Leaderboard(labels, **terms)
    with TestClient(create_app(started.settings)) as later:  # as after a restart
        scored = submit(started, later, "people", labels).json()["answers"][0]
        board = later.get("/v1/leaderboards/people", headers=ann(started)).json()
    assert scored["question"] == "balanced-accuracy, where a unit weighs one"
    assert board["width"] == own.width > alone.width
    kept = [path for path in (started.settings.folder / "boards").rglob("*") if path.is_file()]
    assert not any(b"zoe" in path.read_bytes() for path in kept)
    by_rows = registered(started, client, "rows", "people.csv", column="label")
    assert by_rows.status_code != 201, "these labels have a ledger, which knows whose they are"


def holdout(started: Running, client: TestClient, key: str, labels: Any, **terms: Any) -> Any:
    np.save(started.settings.roots[0] / f"{key}.npy", labels)
    body = {"id": key, "labels": f"{key}.npy", "queries": 60} | terms
    return client.post("/v1/holdouts", json=body, headers=owner(started))


def score(started: Running, client: TestClient, key: str, said: Any, **more: Any) -> Any:
    body = {"predictions": said if isinstance(said, list) else np.asarray(said).tolist()} | more
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


EVEN = {"brier": (0.25, 1.0), "log-loss": (math.log(2), 5.0)}
"""What even chances score on any label, and the score of a chance of 0 for what came."""


def labels_read(
    started: Running, client: TestClient, key: str, labels: Any, looks: int, metric: str = "brier"
) -> int:
    """How many labels are told right by somebody who sends even chances everywhere but at one row.

    The score is then that of even chances and a little less, or more. A guess is placed so that it just stands for
    more; where nothing can be placed, because the plan takes no guesses, the score itself is compared with the middle.
    """
    told = client.get(f"/v1/holdouts/{key}", headers=ann(started)).json()
    plan = design(rows=told["rows"], queries=told["queries"], mode=told["mode"], within=told["within"])
    kind = METRICS[metric]
    even, worst = EVEN[metric]
    assert kind.values is not None
    step = int(on_grid(kind.values(np.array([0.5]), np.array([0])), 1, 1)[0])
    read, failed = [], 0
    for row in range(looks):
        said = np.full(len(labels), 0.5)
        said[row] = 1.0
        held = (len(labels) - 1) * step
        if plan.mode == "guess-and-check":
            low, high = (held + GRID) / (len(labels) * GRID), 1.0
            for _ in range(60):
                middle = (low + high) / 2
                stands = check_guess(plan, row + 1, failed, held + GRID, middle) is None
                low, high = (middle, high) if stands else (low, middle)
            guess = kind.on_scale(low - 0.25 / len(labels))  # away from the edge by less than a row
            fine = score(started, client, key, said, train_score=guess).json()["fine"]
            failed += not fine
            read.append(int(not fine))
        else:
            value = score(started, client, key, said).json()["answers"][0]["value"]
            middle = even + (worst / 2 - even) / len(labels)
            read.append(int(value < middle))
    return int(np.sum(np.array(read) == labels[:looks]))


def compared_labels_read(
    started: Running, client: TestClient, key: str, labels: Any, looks: int, **more: Any
) -> int:
    """How many labels are told right by somebody who compares two submissions that differ in one row."""
    first, read = np.zeros(len(labels), dtype=int), []
    for row in range(looks):
        second = first.copy()
        second[row] = 1
        told = score(started, client, key, second, against=first.tolist(), **more)
        read.append(int(told.json()["answers"][0]["value"] > 0))
    return int(np.sum(np.array(read) == labels[:looks]))


@pytest.mark.parametrize("metric", EVEN)
def test_labels_cannot_be_read_one_a_look(started: Running, metric: str) -> None:
    client, labels = TestClient(started.app), np.random.default_rng([79, len(metric)]).integers(0, 2, 1000)
    key = f"guarded-{metric}"
    assert holdout(started, client, key, labels, metric=metric).json()["private"] is True
    assert binomial(labels_read(started, client, key, labels, 20, metric), 20, 0.5) > FALSE_ALARM


@pytest.mark.parametrize("metric", EVEN)
def test_labels_of_a_board_that_is_not_private_are_read_one_a_look(started: Running, metric: str) -> None:
    """The broken twin: the same attack on what only an owner's word makes."""
    client, labels = TestClient(started.app), np.random.default_rng([80, len(metric)]).integers(0, 2, 1000)
    key = f"open-{metric}"
    made = holdout(started, client, key, labels, metric=metric, mode="guess-and-check", private=False)
    assert made.status_code == 201
    assert labels_read(started, client, key, labels, 32, metric) == 32
    assert binomial(32, 32, 0.5) < FALSE_ALARM


@pytest.mark.parametrize("more", [{}, {"expect": 0.05}], ids=["known", "expected"])
def test_labels_cannot_be_read_by_comparing_submissions(started: Running, more: dict[str, Any]) -> None:
    """Two submissions that differ in one row: the difference says its label, but for the noise."""
    client, labels = TestClient(started.app), np.random.default_rng([82, len(more)]).integers(0, 2, 1000)
    key = f"compared-{len(more)}"
    assert holdout(started, client, key, labels).json()["private"] is True
    assert binomial(compared_labels_read(started, client, key, labels, 20, **more), 20, 0.5) > FALSE_ALARM


def test_comparisons_without_noise_would_tell_every_label(
    started: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin."""
    client, labels = TestClient(started.app), np.random.default_rng(83).integers(0, 2, 1000)
    holdout(started, client, "compared-exactly", labels)
    monkeypatch.setattr(label_release, "add_gaussian", lambda held, variance: held)
    assert compared_labels_read(started, client, "compared-exactly", labels, 32) == 32
    assert binomial(32, 32, 0.5) < FALSE_ALARM


@pytest.mark.parametrize("metric", ["brier", "log-loss"])
def test_chances_for_each_class_and_weights_are_sent(started: Running, metric: str) -> None:
    client, draw = TestClient(started.app), np.random.default_rng(81)
    truth = draw.integers(0, 10, LABELS)
    key = f"ten-{metric}"
    assert holdout(started, client, key, truth, metric=metric).json()["columns"] == 10
    chances = np.full((LABELS, 10), 0.05)
    chances[np.arange(LABELS), truth] = 0.55
    good = score(started, client, key, chances).json()["answers"][0]
    poor = score(started, client, key, np.roll(chances, 1, axis=1)).json()["answers"][0]
    assert good["high"] < poor["low"]
    weighed = score(started, client, key, chances, sample_weight=[0.5, 2.0] * (LABELS // 2), most_weight=2.0)
    assert weighed.json()["answers"][0]["value"] < poor["value"]
    left = client.get(f"/v1/holdouts/{key}", headers=ann(started)).json()["looks_left"]
    for wrong, more in (
        (chances[:, 1], {}),
        (chances[:, :9], {}),
        (chances + 0.5, {}),
        (chances[:-1], {}),
        ([[0.1] * 10] * (LABELS - 1) + [[0.1]], {}),
        ([[0.1] * 9 + ["x"]] * LABELS, {}),
        ([[[0.1]] * 10] * LABELS, {}),
        (chances, {"sample_weight": [3.0] * LABELS, "most_weight": 2.0}),
        (chances, {"sample_weight": ["x"] * LABELS}),
        (chances, {"sample_weight": [1.0]}),
        (chances, {"sample_weight": [1.0] * LABELS, "train_score": 0.5}),
    ):
        refused = score(started, client, key, wrong, **more)
        assert refused.json().get("code") == "invalid", (refused.text[:200], np.shape(wrong), more.keys())
    assert client.get(f"/v1/holdouts/{key}", headers=ann(started)).json()["looks_left"] == left


@contextmanager
def two_hosts(key: str, **terms: Any) -> Iterator[tuple[Running, list[Gateway]]]:
    """Gateways on two hosts with one PostgreSQL and a board: each has its own folder, with a copy of the labels."""
    database = database_of("postgres")["HOLDFAST_DATABASE"]
    with prepared({}, database=database) as here:
        here.register_board(key, **terms)
        folder = here.settings.folder / "elsewhere"
        shutil.copytree(here.settings.folder / "boards", folder / "boards")
        there = Gateway(replace(here.settings, folder=folder, anchors=folder / "anchors"))
        yield here, [here.gateway, there]
        there.close()
        here.gateway.close()


@pytest.mark.parametrize("mode", [None, "ladder", "guess-and-check"])
def test_a_board_on_two_hosts_answers_exactly_the_looks_that_were_planned(mode: str | None) -> None:
    with two_hosts("board", queries=40, mode=mode, private=mode is None, within=None) as (here, hosts):
        people = [here.person(here.somebody(f"team {number}", {})) for number in range(8)]
        said, refused = labels("board").tolist(), []
        # The first by itself: those that come later guess what it was told, and do not fail all at once.
        answered = [hosts[0].submit(people[0], "board", said, "first")]

        def submit(number: int) -> None:
            for look in range(2):
                try:
                    answered.append(
                        hosts[number % 2].submit(people[number % 8], "board", said, f"{number} {look}")
                    )
                except BudgetError as error:
                    refused.append(error.remaining)

        threads = [Thread(target=submit, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(answered), len(refused), set(refused)) == (40, 25, {0})
        boards = [host.boards.leaderboard("board") for host in hosts]
        for board in boards:
            assert board.looks_left() == 0
            assert sum(board._summary.refresh().counts.values()) == 40
        assert boards[0].standings() == boards[1].standings()
        found = verify(boards[1].ledger)
        looks = 120 if mode is None else 40  # with two comparisons each
        assert (found.totals.units, found.totals.entries, found.answered) == (
            looks,
            41,
            41,
        )  # and the opening
        assert len({entry.key for entry in boards[0].ledger.entries()}) == 41


def test_a_call_on_one_host_is_found_on_the_other() -> None:
    with two_hosts("twice", queries=5, per_team=2) as (here, (first, second)):
        ann, said = here.person(here.analyst), labels("twice").tolist()
        told = [host.submit(ann, "twice", said, "call") for host in (first, second)]
        assert told[0] == told[1]
        assert second.leaderboard(ann, "twice")["team_looks_left"] == 1
        second.submit(ann, "twice", said, None)
        with pytest.raises(BudgetError):
            first.submit(ann, "twice", said, None)


def test_a_host_with_other_labels_serves_nothing() -> None:
    with two_hosts("same", queries=5) as (here, (first, second)):
        (kept,) = (here.settings.folder / "elsewhere" / "boards").glob("*.npy")
        np.save(kept, 1 - np.load(kept))
        ann, said = here.person(here.analyst), labels("same").tolist()
        first.submit(ann, "same", said, None)
        with pytest.raises(LedgerError, match="not those that it was registered with"):
            second.submit(ann, "same", said, None)
        assert first.boards.leaderboard("same").looks_left() == 4


def test_looks_that_were_counted_in_the_folder_go_along_to_the_database() -> None:
    with prepared({}) as here:
        here.register_board("early", queries=5)
        said = labels("early").tolist()
        here.gateway.submit(here.person(here.analyst), "early", said, None)
        here.gateway.close()
        anchors = here.settings.anchors
        database = database_of("postgres")["HOLDFAST_DATABASE"]
        with prepared({}, database=database, folder=here.settings.folder, anchors=anchors) as later:
            later.register_board("early", queries=5)
            assert later.gateway.boards.leaderboard("early").looks_left() == 4
            later.gateway.submit(later.person(later.analyst), "early", said, None)
            assert later.gateway.boards.leaderboard("early").looks_left() == 3
            later.gateway.close()
        (own,) = (here.settings.folder / "boards").glob("*.sqlite")
        with (
            pytest.raises(LedgerError, match="moved to postgresql"),
            ReusableHoldout(labels("early"), ledger=own, anchors=anchors) as holdout,
        ):
            holdout.score(said)


def test_a_board_whose_ledger_is_gone_is_not_served_afresh(started: Running) -> None:
    """Neither by the board nor by another one over the same labels."""
    started.register_board("lost", queries=5)
    ann, said = started.person(started.analyst), labels("lost").tolist()
    started.gateway.submit(ann, "lost", said, None)
    name = fingerprint(Labels(labels("lost")).values)
    for path in (started.settings.folder / "boards").glob(f"{name}*"):
        path.unlink()
    later = Gateway(started.settings)
    with pytest.raises(LedgerError):
        later.submit(ann, "lost", said, None)
    other = replace(later.boards.board("lost", "leaderboard"), id="again", labels="lost.npy", ledger="")
    with pytest.raises(Problem) as refused:
        later.register_board(started.person(started.owner), other)
    assert "is missing" in refused.value.detail
    later.close()


def test_the_ledger_of_a_board_can_be_verified_and_exported(started: Running) -> None:
    started.register_board("audited", queries=5)
    ann, said = started.person(started.analyst), labels("audited").tolist()
    started.gateway.submit(ann, "audited", said, None)
    ledger = started.gateway.boards.leaderboard("audited").ledger
    assert "3 looks in all" in str(verify(ledger))
    lines = list(export(ledger))
    assert any(f"team {ann.team}" in line for line in lines)
