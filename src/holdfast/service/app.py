"""The application: one gateway, with the API and the page over it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from holdfast import __version__
from holdfast.errors import HoldfastError
from holdfast.service import api, page
from holdfast.service.envelope import Envelope, reply
from holdfast.service.gateway import Gateway
from holdfast.service.limits import Rate
from holdfast.service.metrics import Metrics
from holdfast.service.problem import Problem, problem_of, unreadable
from holdfast.service.readiness import Readiness
from holdfast.service.settings import Settings, from_environment, refuse_seeds
from holdfast.service.strangers import Strangers
from holdfast.service.work import Work

_BY_STATUS = {
    401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "method", 413: "too-large", 415: "media",
}  # fmt: skip


_SWITCH_SECONDS = 0.0005
_BETWEEN_COLLECTIONS = 20_000

_SILENT = TelemetryConfig(
    tracing=False, metrics=False, logs=False, operation_spans=False, auto_configure=False
)
"""FastAPI would give bodies, the words of errors and the time of every step to whatever telemetry it finds."""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application for these settings, or for those of the environment."""
    refuse_seeds()
    chosen = from_environment() if settings is None else settings
    gateway, metrics = Gateway(chosen), Metrics(chosen.folder / "metrics")
    work, readiness = Work(chosen.answering_threads), Readiness(gateway)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        # Threads that answer give way to the event loop sooner than after Python's five milliseconds.
        sys.setswitchinterval(_SWITCH_SECONDS)
        beside = [asyncio.create_task(readiness.watch()), asyncio.create_task(_flushing(metrics))]
        with _few_collections():
            yield
        for task in beside:
            task.cancel()
        readiness.close()
        # What was charged is answered before the ledgers close: nothing paid for is left half done.
        await work.close()
        gateway.close()

    app = Application(
        title="Holdfast", version=__version__, lifespan=life, docs_url=None, redoc_url=None,
        description="Ask a dataset question after question: every answer is private, and its interval is honest.",
        telemetry=_SILENT,
    )  # fmt: skip
    app.state.gateway, app.state.work, app.state.metrics = gateway, work, metrics
    app.state.readiness = readiness
    app.state.rate = Rate(chosen.requests_per_second, chosen.burst)
    app.state.strangers = Strangers(chosen.strangers_per_second, chosen.strangers_burst)
    app.include_router(api.router)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    api.describe(app)
    page.install(app)
    app.add_middleware(
        Envelope, settings=chosen, metrics=metrics, strangers=app.state.strangers, busiest=api.busiest()
    )
    return app


class Application(FastAPI):
    """FastAPI without its outermost layers, which see to errors: the envelope lets none pass."""

    def build_middleware_stack(self) -> ASGIApp:
        stack: Any = super().build_middleware_stack()
        while not isinstance(stack, Envelope):
            stack = stack.app
        return stack


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Python's collector looks for cycles after some hundred new objects, and again and again at all that was loaded:
    a fifth of the time of an answer, which leaves hardly any. Meanwhile it looks more seldom, and not at what is here
    already."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def _flushing(metrics: Metrics) -> None:
    """The other workers hear of what this one counts."""
    while True:
        await asyncio.sleep(1.0)
        with contextlib.suppress(OSError):  # a full disk stops no answer; `Readiness` tells of it
            await asyncio.to_thread(metrics.flush)


def _problem(request: Request, error: Any) -> Response:
    return reply(error)


def _ours(request: Request, error: Any) -> Response:
    return reply(problem_of(error))


def _invalid(request: Request, error: Any) -> Response:
    return reply(unreadable(error))


def _http(request: Request, error: Any) -> Response:
    return reply(Problem(_BY_STATUS.get(error.status_code, "invalid")))


_HANDLERS: dict[type[Exception], Any] = {
    Problem: _problem,
    HoldfastError: _ours,
    RequestValidationError: _invalid,
    HTTPException: _http,
}
