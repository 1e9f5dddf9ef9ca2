"""Lines that a machine reads: what happened, to whom, in which request; and why, in kinds and places."""

from __future__ import annotations

import importlib
import json
import logging
import logging.handlers
import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gateway import people

from holdfast.errors import LedgerError
from holdfast.ledger import ChainedLedger
from holdfast.service.logs import JsonLines, log, place_of
from holdfast.service.serve import _logging
from service.site import Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-5}


class Lines(logging.Handler):
    """What a log file would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def written() -> Iterator[list[dict[str, Any]]]:
    handler, level = Lines(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler.lines
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture
def here() -> Iterator[Site]:
    with site({"people": people(1_000)}) as made:
        yield made


def test_a_line_for_each_request(here: Site, written: list[dict[str, Any]]) -> None:
    reply = here.call("GET", "/me", headers={"X-Request-Id": "proxy-7"})
    assert reply.headers["x-request-id"] == "proxy-7"
    here.client.get("/v1/health")
    first, second = written
    assert first["request"] == "proxy-7"
    assert first["person"] == here.started.person(here.started.analyst).id
    assert (first["event"], first["level"], first["logger"]) == ("request", "info", "holdfast.gateway")
    assert (first["method"], first["route"], first["status"]) == ("GET", "/v1/me", 200)
    assert first["ms"] > 0 and first["time"].endswith("Z")
    assert abs((datetime.fromisoformat(first["time"]) - datetime.now(UTC)).total_seconds()) < 60
    assert "person" not in second and re.fullmatch("[0-9a-f]{16}", second["request"])


@pytest.mark.parametrize("lie", ["x" * 65, 'a"b', "a b", "", "\xe9", "a\\nb"])
def test_an_id_that_is_none_is_not_taken_over(here: Site, lie: str) -> None:
    reply = here.call("GET", "/me", headers={"X-Request-Id": lie.encode("latin-1")})  # type: ignore[dict-item]
    assert re.fullmatch("[0-9a-f]{16}", reply.headers["x-request-id"])


def reason(
    here: Site, written: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """What is logged as an error when a full disk stops a commit."""
    assert here.ask(QUESTION).status_code == 200

    def full(self: ChainedLedger, tickets: Any) -> bool:
        try:
            error = sqlite3.OperationalError("database or disk is full, a row says: secret")
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        except sqlite3.OperationalError:
            raise LedgerError("the ledger cannot be written; secret") from None

    monkeypatch.setattr(ChainedLedger, "_transaction", full)
    written.clear()
    assert here.ask(QUESTION | {"where": "age > 1"}).status_code == 503
    return [line for line in written if line["level"] == "error"]


def test_the_reason_of_a_failure_is_told_in_kinds_and_places(
    here: Site, written: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = reason(here, written, monkeypatch)
    assert line["event"] == "unavailable"
    assert line["kind"].startswith("LedgerError")
    assert line["place"].startswith(("ledger/", "desk/", "session/"))
    assert line["request"] == written[-1]["request"] and line["person"]
    assert "secret" not in json.dumps(written)
    metrics = here.call("GET", "/metrics", token=here.started.owner).text
    assert 'holdfast_failures_total{code="503"} 1' in metrics


def test_kinds_name_what_led_to_an_error() -> None:
    def broken() -> None:
        try:
            raise OSError(28, "No space left: secret")
        except OSError:
            raise LedgerError("secret") from None

    with pytest.raises(LedgerError) as caught:
        broken()
    error = caught.value
    record = log.makeRecord("x", logging.ERROR, "", 0, "m", (), (type(error), error, error.__traceback__))
    line = json.loads(JsonLines().format(record))
    assert line["kind"] == "LedgerError < OSError 28"
    assert place_of(error) == "unknown", "no place of ours"
    assert "secret" not in json.dumps(line)


def test_a_mistake_is_told_with_its_request(
    here: Site, written: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, *_: object) -> object:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(type(here.started.gateway), "budget", broken)
    assert here.call("GET", "/datasets/people/budget").status_code == 500
    (line,) = [line for line in written if line["level"] == "error"]
    assert (line["event"], line["kind"]) == ("internal", "ZeroDivisionError")
    assert line["place"].startswith("service/api.py:budget:")


class Spans:
    """A tracer that remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def start_as_current_span(self, name: str, **how: Any) -> Spans:
        self.told.append({"how": how})
        return self

    def __enter__(self) -> Spans:
        return self

    def __exit__(self, *_: object) -> None: ...

    def update_name(self, name: str) -> None:
        self.told[-1]["name"] = name

    def set_attributes(self, known: dict[str, Any]) -> None:
        self.told[-1] |= known


def test_telemetry_has_routes_and_ids_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = Spans()
    monkeypatch.setattr("opentelemetry.trace.get_tracer", lambda name: spans)
    with site({"people": people(1_000)}, telemetry=True) as here:
        assert here.ask(QUESTION).status_code == 200
        person = here.started.person(here.started.analyst).id
    told = spans.told[-1]
    assert told.pop("how")["record_exception"] is False
    assert re.fullmatch("[0-9a-f]{16}", told.pop("holdfast.request"))
    route = "/v1/datasets/{dataset}/ask"
    assert told == {
        "name": f"POST {route}", "http.request.method": "POST", "http.route": route,
        "http.response.status_code": 200, "enduser.id": person,
    }  # fmt: skip
    assert "age" not in json.dumps(spans.told, default=str)


def _moved_away(path: Path, config: dict[str, Any]) -> list[int]:
    """How many lines are in the log that was moved away, and in the new one."""
    handler = config["handlers"]["out"]
    module, _, name = handler["class"].rpartition(".")
    made = getattr(importlib.import_module(module), name)(filename=handler["filename"])
    try:
        made.handle(log.makeRecord("x", logging.INFO, "", 0, "before", (), None))
        path.rename(f"{path}.1")
        made.handle(log.makeRecord("x", logging.INFO, "", 0, "after", (), None))
    finally:
        made.close()
    return [len(file.read_text().split()) if file.exists() else 0 for file in (Path(f"{path}.1"), path)]


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    """The broken twin keeps writing where nobody looks."""
    path = tmp_path / "log"
    assert _moved_away(path, _logging(path)) == [1, 1]
    twin = {"handlers": {"out": {"class": "logging.FileHandler", "filename": str(tmp_path / "twin")}}}
    assert _moved_away(tmp_path / "twin", twin) == [2, 0]
