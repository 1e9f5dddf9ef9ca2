"""Tables, questions, budgets and histories."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from starlette.datastructures import FormData

from holdfast.planning.question import Interval, Question
from holdfast.service.bodies import PartId
from holdfast.service.dataset import Dataset
from holdfast.service.page import forms, kinds
from holdfast.service.page.shell import PageRoute, is_piece, page, told
from holdfast.service.page.visits import Posted, Signed, Visitor, field, typed_in
from holdfast.service.problem import REFUSALS, Problem, problem_of
from holdfast.session import Answer

router = APIRouter(route_class=PageRoute, include_in_schema=False)
Result = TypeVar("Result")
LAST = 100
"""Answers that a history shows; all of them can be downloaded."""


@router.get("/")
def home() -> Response:
    """The tables are where one begins."""
    return RedirectResponse("/tables", 303)


@router.get("/kinds.css")
def kinds_css() -> Response:
    """Which kind of question shows which fields; its address holds a digest, as those of files do."""
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(kinds.stylesheet(), media_type="text/css", headers=headers)


@router.get("/tables")
def tables(request: Request, visitor: Signed) -> Response:
    """The tables that one may see."""
    shown = [
        (table, visitor.guard.budget(visitor.person, table.id))
        for table in visitor.guard.datasets(visitor.person)
    ]
    return page(request, "tables.html", visitor, tables=shown)


@router.get("/tables/{key}")
def table(request: Request, visitor: Signed, key: PartId) -> Response:
    """A table: its columns, its promise, and a form to ask it."""
    return page(request, "table.html", visitor, **_table(visitor, key), **_unasked())


@router.post("/tables/{key}/estimate")
async def estimate(request: Request, visitor: Signed, form: Posted, key: PartId) -> Response:
    """What a question would cost, while it is typed. Unfinished questions are no errors here."""
    known: dict[str, Any] = {"estimate": None, "problem": None}
    try:
        known["estimate"] = await request.app.state.work.planned(
            request,
            lambda: visitor.guard.estimate(visitor.person, key, _question(visitor, key, form)),
        )
    except REFUSALS as error:
        known["problem"] = told(problem_of(error))
    return page(request, "_estimate.html", visitor, **known)


@router.post("/tables/{key}/ask")
async def ask(request: Request, visitor: Signed, form: Posted, key: PartId) -> Response:
    """Ask, and be charged; a question sent twice by one form is charged once."""
    known, status = _unasked(), 200
    try:
        asked = known["asked"] = forms.question(form)
        known["result"] = await charged(request, lambda: _answer(visitor, key, asked, form))
    except REFUSALS as error:
        problem = problem_of(error)
        known["problem"], status = told(problem), problem.status
        known["mark"] = forms.mark(known["asked"]) if problem.code == "confirm" else None
    known |= {"typed": kinds.DEFAULTS | typed_in(form)}
    table = await request.app.state.work.planned(request, lambda: _table(visitor, key))
    shown = table | next_call(form, done=known["problem"] is None) | known
    template = "_answered.html" if is_piece(request) else "table.html"
    reply = page(request, template, visitor, status=status, **shown)
    reply.headers["HX-Trigger"] = "asked"
    return reply


@router.get("/tables/{key}/history")
def history(request: Request, visitor: Signed, key: PartId) -> Response:
    """What was asked, what it was answered, and how the budget went."""
    known = _table(visitor, key)
    if not known["member"]:
        return page(request, "history.html", visitor, **known)
    released, more = visitor.guard.last_released(visitor.person, key, LAST)
    burn = json.dumps(visitor.guard.burn(visitor.person, key))
    return page(request, "history.html", visitor, released=released, more=more, burn=burn, **known)


@router.post("/tables/{key}/close")
def close(visitor: Signed, form: Posted, key: PartId) -> Response:
    """Close one's own session for ever; what was told stays."""
    visitor.guard.end(visitor.person, key, visitor.person.id)
    return RedirectResponse(f"/tables/{key}/history", 303)


@router.get("/tables/{key}/answers.json")
def answers(visitor: Signed, key: PartId) -> Response:
    """All that was released to one, to keep."""
    pieces, name = visitor.guard.answers(visitor.person, key), f"{key}-answers.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, media_type="application/json", headers=headers)


async def charged(request: Request, work: Callable[[], Result]) -> Result:
    """Do charged work beside the event loop; it goes on if the browser goes away."""
    done: Result = await request.app.state.work.charged(request, work)
    return done


def call_of(form: FormData, what: str) -> str:
    """The name of a call: what the page was given when it was made, and what is asked by it.

    So a double click is one call, and a form that was changed and sent again is another.
    """
    call = field(form, "call")[:64]
    if not call.isprintable():
        raise Problem("invalid", "this form is not as the page made it; open the page again")
    return f"page {call} {what}"


def new_call() -> str:
    """What makes a form that is shown now different from all others."""
    return secrets.token_hex(16)


def next_call(form: FormData, *, done: bool) -> dict[str, str]:
    """The call of the form that is shown next: while one is not answered the same, so that asking again resumes."""
    return {"call": new_call() if done else field(form, "call")[:64]}


def _table(visitor: Visitor, key: str) -> dict[str, Any]:
    """What every page of a table shows: the declaration and the budget."""
    dataset: Dataset = visitor.guard.dataset(visitor.person, key)
    budget = visitor.guard.budget(visitor.person, key)
    member, planned = "limit" in budget, dataset.queries is not None
    left = (
        visitor.guard.meter(visitor.person, key)
        if member
        else {"meter": None, "closed": False, "queries": None}
    )
    known = {"table": dataset, "budget": budget, "member": member, "call": new_call()}
    return known | {
        "meter": left["meter"],
        "closed": left["closed"],
        "queries": left["queries"],
        "groups": kinds.offered(dataset.schema),
        "kinds": kinds,
        "needed": json.dumps(kinds.needed(planned=planned)),
        "completions": json.dumps(kinds.completions(dataset.schema)),
        "amounts_of": json.dumps(kinds.amounts(dataset.rows, planned=planned)),
    }


def _unasked() -> dict[str, Any]:
    return {"asked": None, "result": None, "problem": None, "mark": None, "typed": kinds.DEFAULTS}


def _question(visitor: Visitor, key: str, form: FormData) -> Question:
    """The question of a form. How exactly must be said, unless the owner planned for a number of questions."""
    return _exact(visitor, key, forms.question(form))


def _exact(visitor: Visitor, key: str, asked: Question) -> Question:
    vague = isinstance(asked, Interval) and not (asked.within or asked.rho or asked.epsilon)
    if vague and visitor.guard.dataset(visitor.person, key).queries is None:
        raise Problem("invalid", "say how exactly: a half-width, or what it may cost")
    return asked


def _answer(visitor: Visitor, key: str, asked: Question, form: FormData) -> dict[str, Any]:
    """The answers, and what was left before and after."""
    guard, person = visitor.guard, visitor.person
    _exact(visitor, key, asked)
    before = guard.budget(person, key)
    body = json.loads(guard.ask(person, key, asked, call_of(form, forms.mark(asked))))
    after = guard.budget(person, key)
    answers = [Answer.from_json(json.dumps(part)) for part in body.get("answers", [])]
    return {"before": before, "after": after, "answers": answers, "body": body}
