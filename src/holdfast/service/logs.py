"""What the operator is told: one JSON object a line, in UTC, without a word of the rows."""

from __future__ import annotations

import json
import logging
import re
import secrets
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import Scope

log = logging.getLogger("holdfast.gateway")
_HOUSE = str(Path(__file__).resolve().parents[1])
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_request: ContextVar[Scope | None] = ContextVar("request", default=None)


def begin(scope: Scope) -> str:
    """A request begins: its id, which the proxy may have given, and which lines that are logged meanwhile carry."""
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    name = given if _ID.match(given) else _fresh_name()
    scope.setdefault("state", {})["request_id"] = name
    _request.set(scope)
    return name


def _fresh_name() -> str:
    """16 random letters. They are drawn many at a time: each draw would let another thread go on."""
    while True:
        try:
            return _names.pop()
        except IndexError:
            many = secrets.token_hex(8 * _NAMES)
            _names.extend(many[first : first + 16] for first in range(0, len(many), 16))


_NAMES = 256
_names: list[str] = []


def note(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its fields. Requires: none of them is from the rows."""
    if log.isEnabledFor(level):
        log.log(level, event, extra={"fields": fields})


def note_failure(error: BaseException, code: str) -> None:
    """Tell the owner why a request failed: the kinds of the error and of what led to it, and the place. Its words may
    hold what was read, and are not told."""
    note(code, logging.ERROR, kind=" < ".join(_kinds(error)), place=place_of(error))


def place_of(error: BaseException) -> str:
    """Where an error was raised: the innermost file, function and line of ours, or of anybody."""
    trace, found = error.__traceback__, "unknown"
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_HOUSE):
            found = f"{code.co_filename.removeprefix(_HOUSE)[1:]}:{code.co_name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _kinds(error: BaseException | None) -> list[str]:
    """The error's class and those of its causes, with the number or word that a database or the system gives."""
    found: list[str] = []
    while error is not None and len(found) < 4:
        words = (getattr(error, name, None) for name in ("sqlite_errorname", "sqlstate", "errno"))
        found.append(" ".join([type(error).__name__, *(str(word) for word in words if word)]))
        error = error.__cause__ or error.__context__
    return found


class JsonLines(logging.Formatter):
    """A line for each record. Of an exception in it only kind and place are told."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"), "level": record.levelname.lower(), "logger": record.name,
            "event": record.getMessage(),
        }  # fmt: skip
        scope = _request.get()
        if scope is not None:
            line["request"] = scope["state"]["request_id"]
            person = scope["state"].get("person")
            line |= {} if person is None else {"person": person.id}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"kind": " < ".join(_kinds(record.exc_info[1])), "place": place_of(record.exc_info[1])}
        return json.dumps(line)
