"""Leaderboards: standings, and submissions by file."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.service import auth
from holdfast.service.bodies import Id, NewBoard
from holdfast.service.page import forms, look
from holdfast.service.page.owner import declared
from holdfast.service.page.routes import call_of, charged, new_call, next_call
from holdfast.service.page.shell import PageRoute, form_page, page, told
from holdfast.service.page.visits import Posted, Signed, Visitor, field, number, typed_in, whole
from holdfast.service.problem import REFUSALS, Problem, problem_of
from holdfast.session import Answer

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/boards")
def boards(request: Request, visitor: Signed) -> Response:
    """All leaderboards."""
    return _boards(request, visitor, {})


@router.post("/boards")
def register(request: Request, visitor: Signed, form: Posted) -> Response:
    """Register a leaderboard (owner)."""
    try:
        wanted = declared(
            NewBoard, id=field(form, "id"), name=field(form, "name"), labels=field(form, "labels"),
            column=field(form, "column"), metric=field(form, "metric"),
            queries=whole(form, "queries"), per_team=whole(form, "per_team"), within=number(form, "within"),
            private=field(form, "privacy") != "not private",
        )  # fmt: skip
        board = visitor.guard.register_board(visitor.person, wanted.board("leaderboard"))
    except REFUSALS as error:
        return _boards(request, visitor, typed_in(form), problem_of(error))
    return RedirectResponse(f"/boards/{board.id}", 303)


@router.get("/boards/{key}")
def board(request: Request, visitor: Signed, key: Id) -> Response:
    """A leaderboard; teams that nobody can tell apart share a rank."""
    return page(request, "board.html", visitor, **_board(visitor, key), scored=None, problem=None)


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


@router.post("/boards/{key}/retire")
def retire(visitor: Signed, form: Posted, key: Id) -> Response:
    """Have a leaderboard take nothing any more."""
    visitor.guard.retire_board(visitor.person, key, "leaderboard")
    return RedirectResponse("/boards", 303)


def _submitted(visitor: Visitor, key: str, text: str, call: str) -> str:
    rows = visitor.guard.boards.board(key, "leaderboard").rows
    return visitor.guard.submit(visitor.person, key, forms.predictions(text, rows), call)


def _boards(
    request: Request, visitor: Visitor, typed: dict[str, str], problem: Problem | None = None
) -> Response:
    """All leaderboards, and for an owner the form with what was typed into it."""
    shown = visitor.guard.boards.all("leaderboard")
    return form_page(request, "boards.html", visitor, typed, problem, boards=shown)


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
