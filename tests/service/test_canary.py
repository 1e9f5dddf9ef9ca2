"""Row 24 of docs/threats.md: a value that is in the rows alone is found nowhere else, whatever happens."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway import LABELS
from opentelemetry.trace import NoOpTracer, Tracer, TracerProvider

import holdfast as hf
from holdfast.data.deferred import DeferredSource
from holdfast.errors import DataError
from holdfast.service import app as app_module
from holdfast.service import envelope, logs
from holdfast.service.problem import Problem
from service.site import Reply, Site, register_csv, site

CANARY = secrets.token_hex(16)
ROWS = 200
SCHEMA = hf.Schema(age=hf.Integer(0, 99), income=hf.Real(0, 1000), smoker=hf.Category("no", "yes"))
COLUMNS: dict[str, list[Any]] = {
    "age": [i % 100 for i in range(ROWS - 1)] + [CANARY],
    "income": [CANARY] + [i * 4.0 for i in range(ROWS - 1)],
    "smoker": ["yes", "no"] * (ROWS // 2 - 1) + ["yes", CANARY],
    "note": [CANARY] * ROWS,
}
AMOUNT = {"rho": 1e-3, "confirm": True}
QUESTIONS: list[dict[str, Any]] = [
    {"kind": "fraction", "where": "age > 40"} | AMOUNT,
    {"kind": "count", "by": "smoker"} | AMOUNT,
    {"kind": "histogram", "column": "age", "edges": [0, 50, 99]} | AMOUNT,
    {"kind": "mean", "column": "income", "where": "smoker IS NULL"} | AMOUNT,
    {"kind": "quantile", "column": "income", "by": "smoker"} | AMOUNT,
    {"kind": "sql", "text": "SELECT smoker, sum(age) FROM t GROUP BY smoker"} | AMOUNT,
    {"kind": "sample", "where": "age > 40"},
    {"kind": "select", "candidates": ["smoker = 'yes'", "smoker IS NULL"]} | AMOUNT,
    {"kind": "above", "where": "age > 40", "threshold": 0.3, "hits": 2} | AMOUNT,
    {
        "kind": "weigh",
        "columns": ["smoker"],
        "where": "smoker = 'yes'",
        "queries": 9,
        "rho": 0.5,
        "confirm": True,
    },
    {"kind": "fraction", "where": "note = 'x'"} | AMOUNT,
    {"kind": "fraction", "where": "smoker = 'maybe'"} | AMOUNT,
    {"kind": "sql", "text": "SELECT max(note) FROM t"},
    {"kind": "sql", "text": "SELECT * FROM t"},
]
FAILURES: dict[str, Callable[[], Exception]] = {
    "data": lambda: DataError(f"cannot cast {CANARY!r} to a number"),
    "engine": lambda: RuntimeError(f"Conversion Error: {CANARY}"),
    "memory": lambda: MemoryError(CANARY),
    "system": lambda: OSError(5, CANARY, CANARY),
    "key": lambda: KeyError(CANARY),
}


class Watch:
    """Calls a gateway, and keeps every byte that came back."""

    def __init__(self, here: Site) -> None:
        self.here, self.said, self.statuses = here, b"", set[int]()

    def note(self, reply: Reply) -> None:
        """Keep a reply, headers and all."""
        self.said += repr(dict(reply.headers)).encode() + reply.content
        self.statuses.add(reply.status_code)

    def questions(self, table: str, mark: int = 0) -> None:
        """Every kind of question, new ones for every mark."""
        for question in QUESTIONS:
            fresh = question | ({"where": f"age > {mark}"} if question.get("where") == "age > 40" else {})
            self.note(self.here.estimate(fresh, table=table))
            self.note(self.here.ask(fresh, table=table, key=f"{mark} {question['kind']}"))

    def reading(self, table: str) -> None:
        """Everything that can be read, by everybody."""
        paths = ["", "/analysts", "/answers", "/budget", "/ledger"]
        for token in (self.here.started.analyst, self.here.started.owner, self.here.started.auditor):
            for path in [f"/datasets/{table}{part}" for part in paths] + ["/metrics", "/datasets", "/people"]:
                self.note(self.here.call("GET", path, token=token))


def whole_life(here: Site, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Questions, refusals, sources that fail in every way, files that are cut, changed and gone."""
    watch, owner = Watch(here), here.started.owner
    place = register_csv(here, "t", COLUMNS, SCHEMA)
    watch.questions("t", 1)
    for mark, failure in enumerate(FAILURES.values(), 2):
        for name in ("totals", "draw", "gather", "scan"):
            monkeypatch.setattr(DeferredSource, name, raising(failure()))
        watch.questions("t", mark)
    for name in ("totals", "draw", "gather", "scan"):
        monkeypatch.setattr(DeferredSource, name, WHOLE[name])
    text = place.read_text()
    here.started.gateway.tables.table("t").close()
    changes = [text[: len(text) // 2], text + text[-100:], f"{CANARY}\n" * 50, "\x00\xff" + CANARY, ""]
    for mark, changed in enumerate(changes, 10):
        place.write_text(changed)
        watch.questions("t", mark)
        here.started.gateway.tables.table("t").close()
        for schema in (None, {"columns": [{"name": "age", "type": "integer", "lo": 0, "hi": 1}]}):
            body = {"id": f"new-{mark}", "path": place.name, "schema": schema, "budget": {"rho": 1}}
            watch.note(here.call("POST", "/datasets", body, token=owner))
        board = {"id": f"board-{mark}", "labels": place.name, "column": "note", "queries": 10}
        watch.note(here.call("POST", "/leaderboards", board, token=owner))
        watch.note(
            here.call("POST", f"/leaderboards/board-{mark}/submissions", {"predictions": [0] * LABELS})
        )
    place.unlink()
    watch.questions("t", 30)
    watch.reading("t")
    return watch


WHOLE = {name: getattr(DeferredSource, name) for name in ("totals", "draw", "gather", "scan")}


def raising(error: Exception) -> Callable[..., Any]:
    """A method that fails."""

    def fails(*_: object, **__: object) -> Any:
        raise error

    return fails


def sinks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> tuple[set[str], set[int]]:
    """Where the canary was found after a whole life, and which statuses were met in it."""
    caplog.set_level(logging.DEBUG)
    caplog.handler.setFormatter(logs.JsonLines())
    with site({}) as here:
        watch = whole_life(here, monkeypatch)
        folder = here.started.settings.folder
        files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "data"]
        assert [path for path in files if path.suffix == ".sqlite"], "there is something to look into"
        found = {f"file {path.name}" for path in files if CANARY.encode() in path.read_bytes()}
    shown = capfd.readouterr()
    heard = {
        "replies": watch.said.decode(errors="replace"),
        "log": caplog.text,
        "out": shown.out,
        "err": shown.err,
    }
    return found | {name for name, text in heard.items() if CANARY in text}, watch.statuses


def test_the_canary_stays_in_the_rows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    found, statuses = sinks(monkeypatch, caplog, capfd)
    assert not found
    assert {200, 201, 403, 422, 500, 503} <= statuses, "all of it happened"


def test_replies_with_the_words_of_a_source_are_caught(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """The broken twin: an error's text is sent, as debug pages do."""
    for module in (app_module, envelope):
        monkeypatch.setattr(module, "problem_of", lambda error: Problem("unavailable", str(error)))
    assert "replies" in sinks(monkeypatch, caplog, capfd)[0]


def test_logs_with_tracebacks_are_caught(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """The broken twin: what went wrong is logged as it is."""
    monkeypatch.setattr(logs, "place_of", lambda error: repr(error))
    assert "log" in sinks(monkeypatch, caplog, capfd)[0]


class Overheard(TracerProvider):
    """A tracing system that is set up for the whole process, as a host may do."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_tracer(self, instrumenting_module_name: str, *_: Any, **__: Any) -> Tracer:
        self.asked.append(instrumenting_module_name)
        return NoOpTracer()


def test_no_telemetry_of_the_host_hears_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI offers bodies, errors with their words, and the times of all steps to whatever is there."""
    listening = Overheard()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", listening)
    with site() as here:
        assert here.ask({"kind": "fraction", "where": "age > 40", "rho": 1e-5}).status_code == 200
        assert here.call("GET", "/datasets").status_code == 200
    assert listening.asked == []
    plain = FastAPI()
    with TestClient(plain) as client:
        client.get("/nowhere")
    assert "fastapi" in listening.asked, "the control: it does offer them"
