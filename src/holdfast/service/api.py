"""The HTTP API: thin routes over the gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from holdfast.errors import InputError
from holdfast.service.answering import brief
from holdfast.service.boards import Board, Scored
from holdfast.service.bodies import (
    BYTES_A_ROW,
    Budget,
    Id,
    Key,
    NewBoard,
    NewDataset,
    NewIdentity,
    NewPerson,
    NewToken,
    PartId,
    Predictions,
    Scoring,
    Share,
)
from holdfast.service.catalog import Person, Token
from holdfast.service.fast_route import (
    FastRoute,
    OnceRoute,
    Sent,
    asker_of,
    body_of,
    looked_up,
    read_json,
)
from holdfast.service.gateway import Gateway
from holdfast.service.problem import CODES, Problem

Told = TypeVar("Told", bound=Predictions)


def _large(model: type[BaseModel]) -> dict[str, Any]:
    """A body that is read only after the token was looked at, and beside the event loop."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


async def _body(request: Request, board: Board) -> bytes:
    """The bytes of predictions for a board: refused unread if they are far too many for its rows."""
    arrays = 1 if board.kind == "leaderboard" else 3  # two predictions and weights
    if (
        int(request.headers.get("content-length", "0"))
        > 4096 + arrays * BYTES_A_ROW * board.rows * board.columns
    ):
        raise Problem("too-large", f"that is far more than {board.rows:,} predictions")
    return await body_of(request)


_LISTS = ("predictions", "against", "sample_weight")


def _read(text: bytes, model: type[Told]) -> Told:
    """Predictions from their JSON. The list is looked at by `as_array`, which is quick."""
    try:
        body = read_json(text)
    except (ValueError, RecursionError):
        raise Problem("invalid", "body: expected JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("predictions"), list):
        raise Problem("invalid", 'body: expected {"predictions": [...]}')
    lists = {name: body[name] for name in _LISTS if isinstance(body.get(name), list)}
    try:
        checked = model.model_validate(body | {name: [0.0] for name in lists})
    except ValidationError as error:
        first = error.errors()[0]
        raise Problem("invalid", f"body.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return checked.model_copy(update=lists)


class ProblemBody(BaseModel):
    """What every refusal looks like (RFC 9457)."""

    type: str
    title: str
    status: int
    code: Annotated[str, Field(json_schema_extra={"enum": sorted(CODES)})]
    detail: str = ""


_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemBody, "description": "refused"}
    for status in sorted({status for status, _ in CODES.values()})
}
router = APIRouter(prefix="/v1", responses=_REFUSALS, route_class=OnceRoute)


async def gateway_of(request: Request) -> Gateway:
    """The gateway of this worker."""
    return request.app.state.gateway  # type: ignore[no-any-return]


_bearer = HTTPBearer(auto_error=False, description="a token that an owner has issued")


async def asking(request: Request, sent: Annotated[object, Depends(_bearer)]) -> Person:
    """Who asks. What is `sent` stands for the OpenAPI document."""
    return await asker_of(request)


Guard = Annotated[Gateway, Depends(gateway_of)]
Asker = Annotated[Person, Depends(asking)]


async def charged(request: Request, work: Callable[[], str]) -> Response:
    """Do charged work beside the event loop. Its reply, good or bad, leaves at a public time."""
    return Response(await request.app.state.work.charged(request, work), media_type="application/json")


# The busiest routes come first: routes are tried in order.


async def estimate(request: Request, guard: Guard, asker: Asker, dataset: PartId, body: Sent) -> JSONResponse:
    """What a question would cost and how wide its answer would be; nothing is read or charged."""
    work = request.app.state.work
    return JSONResponse(await work.planned(request, lambda: guard.estimate(asker, dataset, body)))


async def ask(
    request: Request, guard: Guard, asker: Asker, dataset: PartId, body: Sent, key: Key = None
) -> Response:
    """Ask, and be charged. The reply leaves at a public time; an Idempotency-Key makes it repeatable."""
    ready = guard.tables.ready(dataset, asker) if brief(body) else None
    if ready is not None:
        steps, ledger = guard.asking(asker, dataset, body, key, ready), guard.tables.ledger(dataset)
        text = await request.app.state.work.stepwise(request, steps, ledger)
        return Response(text, media_type="application/json")
    return await charged(request, lambda: guard.ask(asker, dataset, body, key))


for each in (estimate, ask):
    router.add_api_route(
        f"/datasets/{{dataset}}/{each.__name__}", each, methods=["POST"], route_class_override=FastRoute
    )


def busiest() -> dict[str, FastRoute]:
    """The routes that are taken without a router, by the last part of their path."""
    return {route.name: route for route in router.routes if isinstance(route, FastRoute)}


@router.get("/health")
async def health() -> dict[str, str]:
    """Whether the gateway is there."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request) -> JSONResponse:
    """Whether the gateway can answer: databases, disk, the writers of ledgers, the clock. 503 if one of them fails."""
    checks = await request.app.state.readiness.checked()
    whole = all(checks.values())
    return JSONResponse({"ready": whole, "checks": checks}, 200 if whole else 503)


@router.get("/me")
async def me(asker: Asker) -> dict[str, str]:
    """Who the token belongs to."""
    return _person(asker)


@router.get("/datasets")
def datasets(guard: Guard, asker: Asker) -> list[dict[str, Any]]:
    """The tables that you may see."""
    return [dataset.public() for dataset in guard.datasets(asker)]


@router.post("/datasets", status_code=201)
def register(guard: Guard, asker: Asker, body: NewDataset) -> dict[str, Any]:
    """Register a table (owner)."""
    return body.register(guard, asker).public()


@router.get("/datasets/{dataset}")
def dataset(guard: Guard, asker: Asker, dataset: PartId) -> dict[str, Any]:
    """A table: its schema, number of rows, budget and promise. `ID.aside` is what is set aside of it."""
    return guard.dataset(asker, dataset).public()


@router.get("/datasets/{dataset}/analysts")
def analysts(guard: Guard, asker: Asker, dataset: PartId) -> list[dict[str, Any]]:
    """Who may ask a table, and what they have spent (owner, auditor)."""
    return guard.analysts(asker, dataset)


@router.put("/datasets/{dataset}/analysts/{person}", status_code=204)
def admit(guard: Guard, asker: Asker, dataset: PartId, person: Id, body: Share) -> None:
    """Let somebody ask a table, with a share of their own (owner)."""
    guard.admit(asker, dataset, person, body.given())


@router.delete("/datasets/{dataset}/analysts/{person}")
def end(guard: Guard, asker: Asker, dataset: PartId, person: Id) -> dict[str, Any]:
    """Close a session for ever: nothing new is answered, what was told stays (yourself, or the owner)."""
    guard.end(asker, dataset, person)
    return {"closed": True}


@router.delete("/datasets/{dataset}/members/{person}", status_code=204)
def withdraw(guard: Guard, asker: Asker, dataset: PartId, person: Id) -> None:
    """Let somebody ask a table no more, for good (owner)."""
    guard.withdraw(asker, dataset, person)


@router.delete("/datasets/{dataset}", status_code=204)
def retire(guard: Guard, asker: Asker, dataset: Id) -> None:
    """Have a table answer nothing any more (owner); its ledger stays, and its rows cannot be registered again."""
    guard.retire(asker, dataset)


@router.get("/datasets/{dataset}/answers")
def answers(guard: Guard, asker: Asker, dataset: PartId) -> Response:
    """Everything that was released to you: answers, and what else was charged."""
    return StreamingResponse(guard.answers(asker, dataset), media_type="application/json")


@router.get("/datasets/{dataset}/budget")
def budget(guard: Guard, asker: Asker, dataset: PartId) -> dict[str, Any]:
    """What you have spent and have left, and the table as a whole."""
    return guard.budget(asker, dataset)


@router.put("/datasets/{dataset}/budget")
def set_cap(guard: Guard, asker: Asker, dataset: Id, body: Budget) -> dict[str, Any]:
    """Raise or lower a table's cap (owner); not below what was charged."""
    return guard.set_cap(asker, dataset, body.given()).public()


@router.get("/datasets/{dataset}/meter")
def meter(guard: Guard, asker: Asker, dataset: PartId) -> dict[str, Any]:
    """What your answers were planned to be, and how many are left, each within which half-width."""
    return guard.meter(asker, dataset)


class Lines(StreamingResponse):
    """One JSON value in each line."""

    media_type = "application/x-ndjson"


@router.get("/datasets/{dataset}/ledger", response_class=Lines)
def ledger(guard: Guard, asker: Asker, dataset: Id) -> Lines:
    """The table's ledger as NDJSON, for auditors and owners; check it with `holdfast ledger verify FILE`."""
    lines = guard.export(asker, dataset)
    return Lines(f"{line}\n" for line in lines)


@router.get("/people")
def people(guard: Guard, asker: Asker) -> list[dict[str, str]]:
    """Everybody (owner)."""
    return [_person(person) for person in guard.people(asker)]


@router.post("/people", status_code=201)
def add_person(guard: Guard, asker: Asker, body: NewPerson) -> dict[str, str]:
    """Register somebody (owner)."""
    return _person(guard.add_person(asker, body.name, body.scope, body.team, body.identity))


@router.get("/people/{person}/identity")
def identity(guard: Guard, asker: Asker, person: Id) -> dict[str, str | None]:
    """By what single sign-on knows somebody (owner, or yourself); null is by nothing."""
    return {"identity": guard.identity(asker, person)}


@router.put("/people/{person}/identity", status_code=204)
def set_identity(guard: Guard, asker: Asker, person: Id, body: NewIdentity) -> None:
    """Let somebody enter the page by single sign-on (owner); the visits that they have end."""
    guard.set_identity(asker, person, body.identity)


@router.delete("/people/{person}/identity", status_code=204)
def end_identity(guard: Guard, asker: Asker, person: Id) -> None:
    """Let somebody enter by single sign-on no more (owner); the visits that they have end."""
    guard.set_identity(asker, person, None)


@router.get("/people/{person}/tokens")
def tokens(guard: Guard, asker: Asker, person: Id) -> list[dict[str, Any]]:
    """Somebody's tokens, without their secrets (owner, or your own)."""
    return [_token(token) for token in guard.tokens(asker, person)]


@router.post("/people/{person}/tokens", status_code=201)
def issue(guard: Guard, asker: Asker, person: Id, body: NewToken) -> dict[str, str]:
    """A new token for somebody, told once (owner)."""
    return {"token": guard.issue(asker, person, body.label, body.days)}


@router.delete("/people/{person}/tokens", status_code=204)
def end_tokens(guard: Guard, asker: Asker, person: Id) -> None:
    """End all tokens of somebody, at once (owner, or your own)."""
    guard.end_tokens(asker, person)


@router.delete("/people/{person}", status_code=204)
def disable(guard: Guard, asker: Asker, person: Id) -> None:
    """End all tokens of somebody, and have them never sign in again (owner)."""
    guard.disable(asker, person)


@router.get("/deeds", response_class=Lines)
def deeds(guard: Guard, asker: Asker) -> Lines:
    """Every change to people, tokens, tables and boards as NDJSON, chained like a ledger (owner, auditor)."""
    return Lines(f"{line}\n" for line in guard.deeds(asker))


@router.delete("/tokens/{token}", status_code=204)
def revoke(guard: Guard, asker: Asker, token: Id) -> None:
    """End a token, at once (owner, or your own)."""
    guard.revoke(asker, token)


@router.get("/leaderboards")
def leaderboards(guard: Guard, asker: Asker) -> list[dict[str, Any]]:
    """All leaderboards."""
    return [board.public() for board in guard.boards.all("leaderboard")]


@router.post("/leaderboards", status_code=201)
def add_leaderboard(guard: Guard, asker: Asker, body: NewBoard) -> dict[str, Any]:
    """Register a leaderboard (owner)."""
    return guard.register_board(asker, body.board("leaderboard")).public()


@router.get("/leaderboards/{board}")
def leaderboard(guard: Guard, asker: Asker, board: Id) -> dict[str, Any]:
    """A leaderboard, its standings, and the submissions that your team has left."""
    return guard.leaderboard(asker, board)


@router.delete("/leaderboards/{board}", status_code=204)
def retire_leaderboard(guard: Guard, asker: Asker, board: Id) -> None:
    """Have a leaderboard take nothing any more (owner)."""
    guard.retire_board(asker, board, "leaderboard")


@router.post("/leaderboards/{board}/submissions", openapi_extra=_large(Predictions))
async def submit(request: Request, guard: Guard, asker: Asker, board: Id, key: Key = None) -> Response:
    """Submit predictions for your team."""
    declared = await looked_up(lambda: guard.boards.board(board, "leaderboard"))
    text = await _body(request, declared)
    return await charged(
        request, lambda: guard.submit(asker, board, _read(text, Predictions).predictions, key)
    )


@router.get("/holdouts")
def holdouts(guard: Guard, asker: Asker) -> list[dict[str, Any]]:
    """All holdouts."""
    return [board.public() for board in guard.boards.all("holdout")]


@router.post("/holdouts", status_code=201)
def add_holdout(guard: Guard, asker: Asker, body: NewBoard) -> dict[str, Any]:
    """Register a holdout (owner)."""
    if body.per_team is not None:
        raise InputError("expected per_team with a leaderboard only, got it with a holdout; leave it out")
    return guard.register_board(asker, body.board("holdout")).public()


@router.get("/holdouts/{board}")
def holdout(guard: Guard, asker: Asker, board: Id) -> dict[str, Any]:
    """A holdout and the looks that are left."""
    return guard.holdout(asker, board)


@router.delete("/holdouts/{board}", status_code=204)
def retire_holdout(guard: Guard, asker: Asker, board: Id) -> None:
    """Have a holdout take nothing any more (owner)."""
    guard.retire_board(asker, board, "holdout")


@router.post("/holdouts/{board}/scores", openapi_extra=_large(Scoring))
async def score(request: Request, guard: Guard, asker: Asker, board: Id, key: Key = None) -> Response:
    """Score predictions, check a training score, or compare with other predictions."""
    declared = await looked_up(lambda: guard.boards.board(board, "holdout"))
    text = await _body(request, declared)

    def work() -> str:
        body = _read(text, Scoring)
        asked = Scored(body.train_score, body.metric, body.guess, body.expect, body.most_weight)
        return guard.score(asker, board, body.predictions, body.against, asked, key, body.sample_weight)

    return await charged(request, work)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, asker: Asker) -> PlainTextResponse:
    """What all workers have counted, and where tables stand (owner, or a token of scope metrics), in Prometheus' text
    format."""
    if asker.scope not in ("owner", "metrics"):
        raise Problem("forbidden", "this needs a token of scope owner or metrics")
    gauges = await request.app.state.readiness.gauges()
    return PlainTextResponse(await run_in_threadpool(request.app.state.metrics.text, gauges))


def describe(app: FastAPI) -> None:
    """Let /openapi.json say that a refusal is application/problem+json, whatever a route else tells."""
    plain = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            for path in plain()["paths"].values():
                for operation in path.values():
                    for status, response in operation["responses"].items():
                        if status >= "400":
                            response["content"] = {_PROBLEM: response["content"].popitem()[1]}
        return plain()

    app.openapi = document  # type: ignore[method-assign]


_PROBLEM = "application/problem+json"


def _person(person: Person) -> dict[str, str]:
    return {"id": person.id, "name": person.name, "scope": person.scope, "team": person.team}


def _token(token: Token) -> dict[str, Any]:
    names = ("id", "label", "created", "expires", "revoked")
    return {name: getattr(token, name) for name in names}
