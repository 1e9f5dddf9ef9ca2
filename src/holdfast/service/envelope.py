"""What holds for every request: its size, the time at which its reply leaves, headers, counts and one log line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.service.clock import Release
from holdfast.service.fast_route import FastRoute
from holdfast.service.logs import begin, note, note_failure
from holdfast.service.metrics import Metrics
from holdfast.service.problem import REFUSALS, Problem, problem_of
from holdfast.service.settings import Settings
from holdfast.service.strangers import Proxies, Strangers

CHARGED = ("/ask", "/submissions", "/scores")
"""POSTs to paths that end so leave at public times, whatever becomes of them."""
_QUESTION = re.compile("/v1/datasets/([^/]+)/([a-z]+)")
_LARGE = ("/submissions", "/scores", "/register/upload")
_DIGITS = 18
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Envelope:
    """Wraps the application.

    Guarantee: no reply is a traceback. Replies to charged calls leave by `Release`, refusals included. Logs, counts and
    spans hold the method, the route's pattern, the status, the ids of person and request and the time taken; no more.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        strangers: Strangers,
        busiest: Mapping[str, FastRoute],
    ) -> None:
        self._app, self._settings, self._metrics, self._busiest = app, settings, metrics, busiest
        self._strangers, self._proxies = strangers, Proxies(settings.proxies, settings.identity_header)
        self._span = _spans() if settings.telemetry else lambda name: nullcontext()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, method, start = scope["path"], scope["method"], time.perf_counter()
        charged = method == "POST" and path.endswith(CHARGED)
        release = Release(self._settings.quantum if charged else 0.0)
        name = begin(scope).encode()
        scope["state"]["release"] = release
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                await release.wait()
                message["headers"] = [
                    *_missing(message["headers"]),
                    *message["headers"],
                    (b"x-request-id", name),
                ]
            await send(message)

        with self._span(method) as span:
            try:
                self._proxies.look_through(scope)
                self._strangers.refuse_haste(scope)
                self._refuse_size(scope)
                short = _QUESTION.fullmatch(path) if method == "POST" else None
                if short is not None and (route := self._busiest.get(short[2])) is not None:
                    await route.take(scope, receive, sending, short[1])
                else:
                    await self._app(scope, receive, sending)
            except REFUSALS as error:
                refusal = problem_of(error)
                let_go(error)
                await reply(refusal)(scope, receive, sending)
            except Exception as error:
                note_mistake(error)
                if status == 500:
                    await reply(Problem("internal"))(scope, receive, sending)
            finally:
                self._note(scope, method, status, time.perf_counter() - start, span)

    def _refuse_size(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if b"transfer-encoding" in headers:
            raise Problem("too-large", "send Content-Length instead of chunks")
        large = scope["path"].endswith(_LARGE)
        most = self._settings.most_prediction_bytes if large else self._settings.most_bytes
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _DIGITS or int(length) > most:
            raise Problem("too-large", f"at most {most} bytes are taken here", most=most)

    def _note(self, scope: Scope, method: str, status: int, seconds: float, span: Any) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        method = method if method in _METHODS else "other"
        self._metrics.count(method, route, status, seconds)
        if status >= _FAILED:
            self._metrics.failed(str(status))
        note("request", method=method, route=route, status=status, ms=round(1000 * seconds, 2))
        if span is not None:
            state = scope["state"]
            known = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
            known |= {"holdfast.request": state["request_id"]}
            known |= {"enduser.id": state["person"].id} if "person" in state else {}
            span.update_name(f"{method} {route}")
            span.set_attributes(known)


_FAILED = 500
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def reply(problem: Problem) -> JSONResponse:
    """A refusal as problem+json."""
    wait = problem.more.get("retry_after")
    headers = {} if wait is None else {"Retry-After": str(int(wait) + 1)}
    if problem.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(
        problem.body(), problem.status, headers=headers, media_type="application/problem+json"
    )


def let_go(error: BaseException) -> None:
    """Have an error that was told be free at once. The frames where it was raised hold it, and all requests that were
    answered together with its own: all would stay until Python's collector comes."""
    error.__traceback__ = None


def note_mistake(error: Exception) -> None:
    """Tell the owner of a mistake. Its words may hold what was read, so that only its kind and place are told."""
    note_failure(error, "internal")


def _spans() -> Callable[[str], AbstractContextManager[Any]]:
    """Spans of OpenTelemetry, by whatever its user has set up for this process. Only what `_note` writes is in them: no
    bodies, no paths, and of an error no words."""
    from opentelemetry.trace import SpanKind, get_tracer

    tracer = get_tracer("holdfast.gateway")
    return lambda name: tracer.start_as_current_span(
        name, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
    )


def _missing(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    present = dict(headers)
    return [header for header in _HEADERS if header[0] not in present]
