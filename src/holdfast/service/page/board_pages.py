"""Leaderboards and holdouts: standings, looks, and predictions by file."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData, UploadFile

from holdfast.holdout.design import MODES
from holdfast.service import auth
from holdfast.service.boards import Scored
from holdfast.service.bodies import Id, NewBoard, Scoring
from holdfast.service.page import forms, look
from holdfast.service.page.owner import declared
from holdfast.service.page.routes import call_of, charged, new_call, next_call
from holdfast.service.page.shell import PageRoute, form_page, page, told
from holdfast.service.page.visits import Posted, Signed, Visitor, field, number, typed_in, whole
from holdfast.service.problem import REFUSALS, Problem, problem_of
from holdfast.session import Answer

router = APIRouter(route_class=PageRoute, include_in_schema=False)
HOMES = {"leaderboard": "boards", "holdout": "holdouts"}
"""Where the pages of each kind are."""


@router.get("/boards")
def boards(request: Request, visitor: Signed) -> Response:
    """All leaderboards."""
    return _boards(request, visitor, "leaderboard", {})


@router.get("/holdouts")
def holdouts(request: Request, visitor: Signed) -> Response:
    """All holdouts."""
    return _boards(request, visitor, "holdout", {})


@router.post("/boards")
def register(request: Request, visitor: Signed, form: Posted) -> Response:
    """Register a leaderboard (owner)."""
    return _register(request, visitor, form, "leaderboard")


@router.post("/holdouts")
def register_holdout(request: Request, visitor: Signed, form: Posted) -> Response:
    """Register a holdout (owner)."""
    return _register(request, visitor, form, "holdout")


@router.get("/boards/{key}")
def board(request: Request, visitor: Signed, key: Id) -> Response:
    """A leaderboard; teams that nobody can tell apart share a rank."""
    return page(request, "board.html", visitor, **_board(visitor, key), scored=None, problem=None)


@router.get("/holdouts/{key}")
def holdout(request: Request, visitor: Signed, key: Id) -> Response:
    """A holdout, and a form for a look at it."""
    return page(request, "holdout.html", visitor, **_holdout(visitor, key), **_unscored())


@router.post("/boards/{key}/submissions")
async def submit(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """Submit a file of predictions for one's team."""
    scored, problem, status = None, None, 200
    try:
        text = await forms.uploaded(form, "predictions")
        call = call_of(form, auth.digest(text))
        body = await charged(request, lambda: _submitted(visitor, key, text, call))
        scored = Answer.from_json(json.dumps(json.loads(body)["answers"][0]))
    except REFUSALS as error:
        refused = problem_of(error)
        problem, status = told(refused), refused.status
    known = await request.app.state.work.planned(request, lambda: _board(visitor, key))
    shown = known | next_call(form, done=problem is None)
    return page(request, "board.html", visitor, status=status, **shown, scored=scored, problem=problem)


@router.post("/holdouts/{key}/scores")
async def score(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """Score a file of predictions, check a training score, or compare with another file."""
    known, status = _unscored() | {"typed": _LOOK | typed_in(form)}, 200
    try:
        texts = {"predictions": await forms.uploaded(form, "predictions")}
        for name in ("against", "sample_weight"):
            if _was_sent(form, name):
                texts[name] = await forms.uploaded(form, name)
        asked = _scored(form)
        digests = {name: auth.digest(text) for name, text in texts.items()}
        call = call_of(form, auth.digest(f"{asked} {asked.most_weight} {digests}"))
        known["body"] = json.loads(await charged(request, lambda: _looked(visitor, key, texts, asked, call)))
        known["scored"] = Answer.from_json(json.dumps(known["body"]["answers"][0]))
    except REFUSALS as error:
        refused = problem_of(error)
        known["problem"], status = told(refused), refused.status
    shown = await request.app.state.work.planned(request, lambda: _holdout(visitor, key))
    shown |= next_call(form, done=known["problem"] is None) | known
    return page(request, "holdout.html", visitor, status=status, **shown)


@router.post("/holdouts/{key}/retire")
def retire_holdout(visitor: Signed, form: Posted, key: Id) -> Response:
    """Have a holdout take nothing any more."""
    visitor.guard.retire_board(visitor.person, key, "holdout")
    return RedirectResponse("/holdouts", 303)


@router.post("/boards/{key}/retire")
def retire(visitor: Signed, form: Posted, key: Id) -> Response:
    """Have a leaderboard take nothing any more."""
    visitor.guard.retire_board(visitor.person, key, "leaderboard")
    return RedirectResponse("/boards", 303)


def _submitted(visitor: Visitor, key: str, text: str, call: str) -> str:
    rows = visitor.guard.boards.board(key, "leaderboard").rows
    return visitor.guard.submit(visitor.person, key, forms.predictions(text, rows), call)


def _looked(visitor: Visitor, key: str, texts: dict[str, str], asked: Scored, call: str) -> str:
    rows = visitor.guard.boards.board(key, "holdout").rows
    sent = {name: forms.predictions(text, rows) for name, text in texts.items()}
    against, weights = sent.get("against"), sent.get("sample_weight")
    return visitor.guard.score(visitor.person, key, sent["predictions"], against, asked, call, weights)


def _scored(form: FormData) -> Scored:
    """What is asked besides the predictions, checked as the API checks it."""
    most = number(form, "most_weight")
    checked = declared(
        Scoring, predictions=[0.0], train_score=number(form, "train_score"), metric=field(form, "metric"),
        guess=number(form, "guess"), expect=number(form, "expect"), most_weight=1.0 if most is None else most,
    )  # fmt: skip
    return Scored(checked.train_score, checked.metric, checked.guess, checked.expect, checked.most_weight)


def _was_sent(form: FormData, name: str) -> bool:
    file = form.get(name)
    return isinstance(file, UploadFile) and bool(file.filename)


_LOOK = {"train_score": "", "metric": "", "guess": "", "expect": "", "most_weight": ""}


def _unscored() -> dict[str, Any]:
    return {"scored": None, "body": None, "problem": None, "typed": _LOOK}


def _holdout(visitor: Visitor, key: str) -> dict[str, Any]:
    return {"board": visitor.guard.holdout(visitor.person, key), "call": new_call()}


def _register(request: Request, visitor: Visitor, form: FormData, kind: str) -> Response:
    try:
        wanted = declared(
            NewBoard, id=field(form, "id"), name=field(form, "name"), labels=field(form, "labels"),
            column=field(form, "column"), units=field(form, "units"), rows_per_unit=whole(form, "rows_per_unit"),
            metric=field(form, "metric"), mode=field(form, "mode"),
            queries=whole(form, "queries"), per_team=whole(form, "per_team"), within=number(form, "within"),
            confidence=number(form, "confidence"), private=field(form, "privacy") != "not private",
        )  # fmt: skip
        board = visitor.guard.register_board(visitor.person, wanted.board(kind))
    except REFUSALS as error:
        return _boards(request, visitor, kind, typed_in(form), problem_of(error))
    return RedirectResponse(f"/{HOMES[kind]}/{board.id}", 303)


def _boards(
    request: Request, visitor: Visitor, kind: str, typed: dict[str, str], problem: Problem | None = None
) -> Response:
    """All boards of a kind, and for an owner the form with what was typed into it."""
    shown = visitor.guard.boards.all(kind)
    return form_page(
        request,
        "boards.html",
        visitor,
        typed,
        problem,
        boards=shown,
        kind=kind,
        home=f"/{HOMES[kind]}",
        modes=MODES,
    )


def _board(visitor: Visitor, key: str) -> dict[str, Any]:
    """The standings in groups of one rank, drawn on one axis."""
    found = visitor.guard.leaderboard(visitor.person, key)
    places = found["standings"]
    along = look.axis([0.0], [1.0])
    if places:
        along = look.axis((place["low"] for place in places), (place["high"] for place in places))
    drawn = [
        place
        | {
            "dot": along.place(place["value"]),
            "left": along.place(place["low"]),
            "width": round(along.place(place["high"]) - along.place(place["low"]), 3),
        }
        for place in places
    ]
    ranks = [(rank, list(group)) for rank, group in groupby(drawn, key=lambda place: place["rank"])]
    return {"board": found, "ranks": ranks, "call": new_call()}
