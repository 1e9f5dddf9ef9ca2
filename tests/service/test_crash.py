"""The gateway is killed at every step of an answer: nothing is delivered unpaid, and nothing paid is lost."""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast.ledger import Ledger, open_ledger, verify
from service.process import Server, database_of, register, served, table_in, token_of

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}
FRESH = {"kind": "sample", "where": "age > 40"}


@pytest.fixture(autouse=True)
def _anchors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_ANCHORS", str(tmp_path / "anchors"))


def put(server: Server, token: str, body: Any, key: str) -> tuple[int, str]:
    """(status, body as sent) of a charged call; OSError or HTTPException if the server died meanwhile."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", "/v1/datasets/people/ask", json.dumps(body), headers)
        with connection.getresponse() as reply:
            return reply.status, reply.read().decode()


def ledger_of(folder: Path, database: dict[str, str]) -> Ledger:
    address = database.get("HOLDFAST_DATABASE")
    return open_ledger(folder / "data/people.hf" if address is None else f"{address}#people")


STEPS = {
    # The first commit of a process opens the analyst's account, the second makes the charge.
    "sqlite": {"before reserve": False, "after commit:2": True},
    "postgres": {"after draw": True},
}
"""Where the gateway is killed, and whether the question is paid for by then. tests/ledger has every step."""


@pytest.mark.parametrize("kind", sorted(STEPS))
def test_killed_on_the_way_of_an_answer(tmp_path: Path, kind: str) -> None:
    """A retry gets an answer, paid for once, and the second retry the same bytes; a fresh draw is repeated too."""
    folder, database = tmp_path / "server", database_of(kind)
    table_in(folder, 2_000)
    with served(folder, **database) as server:
        ann = register(server, token_of(server))
    for asked, (place, paid) in enumerate(STEPS[kind].items()):
        server = Server(folder, HOLDFAST_FAILPOINT=place, **database)
        question = QUESTION | {"where": f"age > {asked}"}
        with pytest.raises((OSError, http.client.HTTPException)):
            put(server, ann, question, f"key {asked}")
        server.stop()
        assert server.process.returncode == -signal.SIGKILL
        with served(folder, **database) as server:
            before = _entries(folder, database)
            assert put(server, ann, QUESTION | {"where": "age > 77"}, f"key {asked}")[0] == 422  # not its key
            assert _entries(folder, database) == before
            status, first = put(server, ann, question, f"key {asked}")
            assert status == 200
            assert put(server, ann, question, f"key {asked}") == (200, first)
            assert put(server, ann, FRESH, f"fresh {asked}") == put(server, ann, FRESH, f"fresh {asked}")
            after = _entries(folder, database)
        # One charge for each question, whether it was made before the kill or after it.
        assert len(after) == 2 * asked + 2
        assert len(before) == 2 * asked + paid
        assert all(answer is not None for answer in after)
        assert json.loads(first)["answers"][0] in [
            json.loads(answer) for answer in after if answer is not None
        ]


def _entries(folder: Path, database: dict[str, str]) -> list[str | None]:
    ledger = ledger_of(folder, database)
    answers = [entry.answer for entry in ledger.entries()]
    ledger.close()
    return answers


def unpaid(delivered: dict[str, str], answers: list[str | None]) -> list[str]:
    """Keys whose delivered answer no ledger entry holds."""
    stored = [json.loads(answer) for answer in answers if answer is not None]
    return [key for key, text in delivered.items() if json.loads(text)["answers"][0] not in stored]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_killed_at_random_moments_under_load(tmp_path: Path, kind: str) -> None:
    folder, database, draw = tmp_path / "server", database_of(kind), random.Random(7)
    table_in(folder, 2_000)
    with served(folder, **database) as server:
        ann = register(server, token_of(server))
    delivered: dict[str, str] = {}
    questions: dict[str, dict[str, Any]] = {}
    serials = count()

    def load(server: Server, thread: int, moment: int) -> None:
        for number in range(10**6):
            key = f"{moment} {thread} {number}"
            serial = next(serials)
            where = f"age > {serial % 90} AND income > {serial // 90}"  # no two are the same question
            questions[key] = {"kind": "fraction", "where": where, "rho": 1e-6}
            try:
                status, text = put(server, ann, questions[key], key)
            except (OSError, http.client.HTTPException):
                return
            assert status == 200, text
            delivered[key] = text

    for moment in range(2):
        server = Server(folder, **database)
        threads = [threading.Thread(target=load, args=(server, thread, moment)) for thread in range(4)]
        for thread in threads:
            thread.start()
        before = len(delivered)
        while len(delivered) == before and any(thread.is_alive() for thread in threads):
            time.sleep(0.001)
        time.sleep(draw.uniform(0.0, 0.15))
        server.process.send_signal(signal.SIGKILL)
        server.stop()
        for thread in threads:
            thread.join()
    answers = _entries(folder, database)
    assert delivered
    assert not unpaid(delivered, answers)
    # The check would notice: without the last delivered answer's entry it is unpaid.
    last = json.loads(list(delivered.values())[-1])["answers"][0]
    assert unpaid(delivered, [answer for answer in answers if answer is None or json.loads(answer) != last])
    with served(folder, **database) as server:
        lost = [key for key in questions if key not in delivered]
        assert lost
        for key, question in questions.items():
            status, text = put(server, ann, question, key)
            assert status == 200
            known = json.loads(delivered.setdefault(key, text))
            assert json.loads(text)["answers"] == known["answers"]
    answers = _entries(folder, database)
    assert len(answers) == len(questions)
    assert None not in answers
    ledger = ledger_of(folder, database)
    verify(ledger)
    ledger.close()
