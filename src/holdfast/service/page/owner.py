"""What owners do (people, tokens, tables and their analysts), and what auditors read."""

from __future__ import annotations

import json
import tomllib
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, ValidationError

from holdfast.errors import HoldfastError
from holdfast.service.bodies import Budget, Id, NewDataset, NewIdentity, NewPerson, NewToken, PartId, Share
from holdfast.service.page import forms
from holdfast.service.page.shell import PageRoute, form_page, invalid, page
from holdfast.service.page.visits import Posted, Signed, Visitor, chosen, field, number, typed_in, whole
from holdfast.service.problem import REFUSALS, Problem, problem_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
Model = TypeVar("Model", bound=BaseModel)


@router.get("/people")
def people(request: Request, visitor: Signed) -> Response:
    """Everybody."""
    return _people(request, visitor, {})


@router.post("/people")
def add_person(request: Request, visitor: Signed, form: Posted) -> Response:
    """Register somebody, and go on to give them a token."""
    try:
        new = declared(
            NewPerson, name=field(form, "name"), scope=field(form, "scope"), team=field(form, "team"),
            identity=field(form, "identity"),
        )  # fmt: skip
        person = visitor.guard.add_person(visitor.person, new.name, new.scope, new.team, new.identity)
    except REFUSALS as error:
        return _people(request, visitor, typed_in(form), problem_of(error))
    return RedirectResponse(f"/people/{person.id}", 303)


@router.get("/people/{key}")
def person(request: Request, visitor: Signed, key: Id) -> Response:
    """Somebody and their tokens."""
    return _person(request, visitor, key, {})


@router.post("/people/{key}/tokens")
def issue(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """A new token, told once."""
    try:
        new = declared(NewToken, label=field(form, "label"), days=number(form, "days"))
        token = visitor.guard.issue(visitor.person, key, new.label, new.days)
    except REFUSALS as error:
        return _person(request, visitor, key, typed_in(form), problem=problem_of(error))
    return _person(request, visitor, key, {}, token=token)


@router.post("/people/{key}/tokens/{token}/revoke")
def revoke(visitor: Signed, form: Posted, key: Id, token: Id) -> Response:
    """End a token and every visit that began with it."""
    visitor.guard.revoke(visitor.person, token)
    return RedirectResponse(f"/people/{key}", 303)


@router.post("/people/{key}/tokens/end")
def end_tokens(visitor: Signed, form: Posted, key: Id) -> Response:
    """End all tokens of somebody."""
    visitor.guard.end_tokens(visitor.person, key)
    return RedirectResponse(f"/people/{key}", 303)


@router.post("/people/{key}/identity")
def set_identity(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """Let somebody enter by single sign-on, or no more if the field is empty."""
    try:
        text = field(form, "identity")
        identity = declared(NewIdentity, identity=text).identity if text else None
        visitor.guard.set_identity(visitor.person, key, identity)
    except REFUSALS as error:
        return _person(request, visitor, key, typed_in(form), problem=problem_of(error))
    return RedirectResponse(f"/people/{key}", 303)


@router.post("/people/{key}/disable")
def disable(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """End all tokens of somebody, who signs in no more."""
    try:
        visitor.guard.disable(visitor.person, key)
    except REFUSALS as error:
        return _person(request, visitor, key, {}, problem=problem_of(error))
    return RedirectResponse(f"/people/{key}", 303)


@router.get("/register")
def register_page(request: Request, visitor: Signed) -> Response:
    """A form for a new table."""
    visitor.guard.people(visitor.person)  # refuses whoever is no owner
    return register_page_with(request, visitor, {})


@router.post("/register")
def register(request: Request, visitor: Signed, form: Posted) -> Response:
    """Register a table."""
    try:
        new = declared(
            NewDataset, id=field(form, "id"), name=field(form, "name"), path=field(form, "path"),
            relation=field(form, "relation"), schema=_schema(field(form, "schema")), budget=forms.budget(form),
            confidence=number(form, "confidence"), rows_per_unit=whole(form, "rows_per_unit"),
            queries=whole(form, "queries"), target=field(form, "target"),
            allow_uncovered=bool(field(form, "allow_uncovered")), set_aside=number(form, "set_aside"),
            lookups=_lookups(field(form, "lookups")),
        )  # fmt: skip
        new.register(visitor.guard, visitor.person)
    except REFUSALS as error:
        return register_page_with(request, visitor, typed_in(form), problem_of(error))
    return RedirectResponse(f"/tables/{new.id}/analysts", 303)


@router.get("/tables/{key}/analysts")
def analysts(request: Request, visitor: Signed, key: PartId) -> Response:
    """Who may ask a table, and what they have spent."""
    return _analysts(request, visitor, key, {})


@router.post("/tables/{key}/analysts")
def admit(request: Request, visitor: Signed, form: Posted, key: PartId) -> Response:
    """Let somebody ask a table, or change their budget."""
    try:
        person = chosen(form, "person")
        # A form that has no field for the answers does not change them.
        known = visitor.guard.catalog.member(key, person) or {}
        queries = whole(form, "queries") if "queries" in form else known.get("queries")
        share = declared(Share, **forms.budget(form), queries=queries)
        visitor.guard.admit(visitor.person, key, person, share.given())
    except REFUSALS as error:
        return _analysts(request, visitor, key, typed_in(form), problem_of(error))
    return RedirectResponse(f"/tables/{key}/analysts", 303)


@router.post("/tables/{key}/analysts/{person}/withdraw")
def withdraw(visitor: Signed, form: Posted, key: PartId, person: Id) -> Response:
    """Let somebody ask a table no more."""
    visitor.guard.withdraw(visitor.person, key, person)
    return RedirectResponse(f"/tables/{key}/analysts", 303)


@router.post("/tables/{key}/budget")
def set_cap(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """Raise or lower a table's cap."""
    try:
        visitor.guard.set_cap(visitor.person, key, declared(Budget, **forms.budget(form)).given())
    except REFUSALS as error:
        return _analysts(request, visitor, key, typed_in(form), problem_of(error))
    return RedirectResponse(f"/tables/{key}/analysts", 303)


@router.post("/tables/{key}/retire")
def retire(visitor: Signed, form: Posted, key: Id) -> Response:
    """Have a table answer nothing any more."""
    visitor.guard.retire(visitor.person, key)
    return RedirectResponse("/tables", 303)


@router.get("/tables/{key}/ledger")
def ledger(request: Request, visitor: Signed, key: Id) -> Response:
    """The last charges of a table."""
    return _ledger(request, visitor, key, None)


@router.post("/tables/{key}/verify")
def verify(request: Request, visitor: Signed, form: Posted, key: Id) -> Response:
    """Walk the chain of a table's ledger."""
    return _ledger(request, visitor, key, _verified(visitor, key))


@router.get("/tables/{key}/ledger.ndjson")
def export(visitor: Signed, key: Id) -> Response:
    """The whole ledger, to keep and to check."""
    lines = visitor.guard.export(visitor.person, key)
    name = {"Content-Disposition": f'attachment; filename="{key}-ledger.ndjson"'}
    return StreamingResponse((f"{line}\n" for line in lines), media_type="application/x-ndjson", headers=name)


def register_page_with(
    request: Request,
    visitor: Visitor,
    typed: dict[str, str],
    problem: Problem | None = None,
    *,
    suggested: bool = False,
) -> Response:
    """The form for a new table, with what is in it."""
    roots = visitor.guard.settings.roots
    return form_page(request, "register.html", visitor, typed, problem, roots=roots, suggested=suggested)


def declared(model: type[Model], **fields: Any) -> Model:
    """What a form declares, checked by the same model as the API's, which also says what an empty field means."""
    try:
        return model.model_validate({name: part for name, part in fields.items() if part not in (None, "")})
    except ValidationError as error:
        raise invalid(error) from None


def _people(
    request: Request, visitor: Visitor, typed: dict[str, str], problem: Problem | None = None
) -> Response:
    everybody = visitor.guard.people(visitor.person)
    return form_page(request, "people.html", visitor, typed, problem, people=everybody)


def _person(
    request: Request, visitor: Visitor, key: str, typed: dict[str, str], *, token: str | None = None,
    problem: Problem | None = None,
) -> Response:  # fmt: skip
    tokens = visitor.guard.tokens(visitor.person, key)
    somebody = visitor.guard.catalog.person(key)
    if somebody is None:
        raise Problem("not-found")
    disabled = key in visitor.guard.catalog.disabled()
    known = {"somebody": somebody, "tokens": tokens, "token": token, "disabled": disabled}
    known |= {"identity": visitor.guard.identity(visitor.person, key)}
    return form_page(request, "person.html", visitor, typed, problem, **known)


def _analysts(
    request: Request, visitor: Visitor, key: str, typed: dict[str, str], problem: Problem | None = None
) -> Response:
    guard = visitor.guard
    shown = guard.analysts(visitor.person, key)
    admitted = {analyst["person"] for analyst in shown}
    people = guard.people(visitor.person) if visitor.person.scope == "owner" else []
    others = [
        person for person in people if person.scope in ("analyst", "owner") and person.id not in admitted
    ]
    return form_page(
        request, "analysts.html", visitor, typed, problem, table=guard.dataset(visitor.person, key),
        analysts=shown, people=others, budget=guard.budget(visitor.person, key),
    )  # fmt: skip


def _ledger(request: Request, visitor: Visitor, key: str, verified: str | None) -> Response:
    guard = visitor.guard
    return page(
        request, "ledger.html", visitor, table=guard.dataset(visitor.person, key), verified=verified,
        entries=guard.entries(visitor.person, key),
    )  # fmt: skip


def _verified(visitor: Visitor, key: str) -> str:
    """What the walk found. A ledger that was changed is told in the walk's own words, to owners and auditors."""
    try:
        return visitor.guard.verify(visitor.person, key)
    except HoldfastError as error:
        return f"not sound: {error}"


def _schema(text: str) -> dict[str, Any] | None:
    """A declaration as JSON or as TOML; None for a saved store, which has its own."""
    if not text:
        return None
    try:
        if text.startswith("{"):
            found = json.loads(text)
            return found if isinstance(found, dict) else {}
        columns = tomllib.loads(text).get("columns", {})
        return {"columns": [{"name": name, **fields} for name, fields in columns.items()]}
    except (ValueError, TypeError, AttributeError):
        raise Problem("invalid", "expected the columns as TOML or JSON, got something else") from None


def _lookups(text: str) -> dict[str, Any] | None:
    """Public tables by name, as TOML: a path and a key for each."""
    try:
        return tomllib.loads(text) if text else None
    except ValueError:
        raise Problem("invalid", "expected the public tables as TOML, got something else") from None
