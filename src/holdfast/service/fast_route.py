"""The fast way for the busiest requests: a question by a token, looked at without FastAPI's general machinery."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import cached_property
from inspect import signature
from typing import Annotated, Any, TypeVar, cast

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from holdfast.planning.any_question import AnyQuestion
from holdfast.planning.question import Question
from holdfast.service.catalog import Person
from holdfast.service.gateway_database import NotRemembered, at_once
from holdfast.service.parts import PART
from holdfast.service.problem import Problem, unreadable

Result = TypeVar("Result")
_PART = re.compile(PART)
_LONGEST_KEY = 200
_MACHINES = ("/v1/me", "/v1/metrics")
Sent = Annotated[AnyQuestion, Field(discriminator="kind")]
"""A question, as JSON."""
_question: TypeAdapter[Question] = TypeAdapter(Sent)


class FastRoute(APIRoute):
    """A route for POST …/{dataset}/… with a question as its body, and perhaps an Idempotency-Key.

    The endpoint's signature stands for the OpenAPI document, and says what is checked here: the token, the id,
    the key and the body, in this order. The endpoint gets them by name.
    """

    async def take(self, scope: Scope, receive: Receive, send: Send, dataset: str) -> None:
        """The same without the layers of a router and of FastAPI; refusals are for whoever calls."""
        scope["route"], scope["path_params"] = self, {"dataset": dataset}
        try:
            response = await self.handler(Request(scope, receive, send))
        except RequestValidationError as error:
            raise unreadable(error) from None
        await response(scope, receive, send)

    @cached_property
    def handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        return self.get_route_handler()

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Callable[..., Awaitable[Response]] = self.endpoint
        takes_key = "key" in signature(endpoint).parameters

        async def handle(request: Request) -> Response:
            sent = await sent_with(
                request
            )  # first: whoever hangs up during the look-up has asked all the same
            asker, dataset = await asker_of(request), request.path_params["dataset"]
            if _PART.fullmatch(dataset) is None:
                raise Problem("invalid", f"path.dataset: String should match pattern '{PART}'")
            key = {"key": key_of(request)} if takes_key else {}
            body = question_of(_json_text(request, sent))
            guard = request.app.state.gateway
            return await endpoint(
                request=request, guard=guard, asker=asker, dataset=dataset, body=body, **key
            )

        return handle


async def looked_up(look: Callable[[], Result]) -> Result:
    """What the catalog says: from memory, or by a thread that may wait for its database."""
    try:
        return at_once(look)
    except NotRemembered:
        return await run_in_threadpool(look)


async def asker_of(request: Request) -> Person:
    """Who asks: the owner of the bearer token; refused if unknown, or if they ask too often."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    gateway, person = request.app.state.gateway, cast("Person | None", None)
    if scheme.lower() == "bearer":
        person = await looked_up(lambda: gateway.who(token.strip()))
    if person is None:
        request.app.state.strangers.forget(request.scope)
        raise Problem("unauthorized", "send the header Authorization: Bearer TOKEN")
    request.app.state.strangers.welcome(request.scope)
    request.state.person = person
    refuse_haste(request, person.id)
    if person.scope == "metrics" and request.scope["path"] not in _MACHINES:
        raise Problem("forbidden", "a token of scope metrics reads /v1/metrics and nothing else")
    return person


def refuse_haste(request: Request, name: str) -> None:
    """Refuse who asks too often; the page's requests come out of the same bucket as the API's."""
    wait = request.app.state.rate.wait(name)
    if wait > 0:
        raise Problem("rate", f"wait {wait:.2f} seconds", retry_after=wait)


def key_of(request: Request) -> str | None:
    """The Idempotency-Key, if there is one."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (1 <= len(key) <= _LONGEST_KEY and key.isprintable()):
        raise Problem("invalid", f"header.Idempotency-Key: expected 1 to {_LONGEST_KEY} printable characters")
    return key


async def sent_with(request: Request) -> bytes | None:
    """The bytes of a body; None if it ended before its length."""
    pieces = []
    while True:
        message = await request.receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def body_of(request: Request) -> bytes:
    """The bytes of a JSON body."""
    _refuse_other_media(request)
    return _json_text(request, await sent_with(request))


def _refuse_other_media(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem("media")


def _json_text(request: Request, sent: bytes | None) -> bytes:
    _refuse_other_media(request)
    if sent is None:
        raise Problem("invalid", "the body ended before its length")
    return sent


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem("invalid", "body: a name is there twice; say each once")
    return found


_ONCE = json.JSONDecoder(object_pairs_hook=_once)


def read_json(body: bytes) -> Any:
    """JSON in which no object has a name twice: one of two values would count, and nobody knows which was meant."""
    return _ONCE.decode(body.decode(json.detect_encoding(body), "surrogatepass"))


class OnceRequest(Request):
    """A request whose JSON has each name once."""

    async def json(self) -> Any:
        return read_json(await self.body())


class OnceRoute(APIRoute):
    """A route for such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(OnceRequest(request.scope, request.receive))

        return handled


def question_of(body: bytes) -> Question:
    """The question that a body states."""
    with suppress(ValueError, RecursionError):  # told below, with its place; other encodings too
        _ONCE.decode(body.decode())
    try:
        return _question.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RequestValidationError([{**first, "loc": ("body", *first["loc"])}]) from None
