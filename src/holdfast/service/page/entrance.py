"""The door of the page: by a token, by a provider's word, by a proxy's; and the way out."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.service import auth
from holdfast.service.catalog import Person
from holdfast.service.fast_route import refuse_haste
from holdfast.service.openid import RETURN
from holdfast.service.page.shell import PageRoute, page, told
from holdfast.service.page.visits import (
    COOKIE,
    SECONDS,
    Posted,
    Signed,
    field,
    guard_of,
    refuse_foreign,
    set_cookie,
    sign_in,
    visitor_of,
)
from holdfast.service.problem import Problem

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ENTRANCE = "holdfast-entrance"
_ENTRANCE_SECONDS = 600


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """A form for a token and a link to the provider; whoever comes with a proxy's word is let in by it."""
    said = getattr(request.state, "identity", None)
    if said is None:
        return _door(request)
    refuse_haste(request, f"sign-in {_address(request)}")
    try:
        return _entered(request, guard_of(request).sign_on.known(said))
    except Problem as problem:
        return _door(request, problem)


async def _token(request: Request) -> str:
    """What a stranger sent to sign in by, from a page of ours and not too often."""
    refuse_foreign(request)
    refuse_haste(request, f"sign-in {_address(request)}")
    async with request.form() as form:
        return field(form, "token")


@router.post("/sign-in")
def signing_in(request: Request, token: Annotated[str, Depends(_token)]) -> Response:
    """Take a token and give a cookie for it."""
    guard = guard_of(request)
    secret = sign_in(guard, token)
    if secret is None:
        return _door(request, wrong=True)
    reply = RedirectResponse("/tables", 303)
    set_cookie(reply, secret, secure=guard.settings.secure_cookies)
    return reply


@router.get("/sign-in/provider")
def to_provider(request: Request) -> Response:
    """Send the browser to the provider, with a cookie that knows it again when it comes back from that other site."""
    guard, secret = guard_of(request), secrets.token_hex(32)
    if guard.sign_on.provider is None:
        raise Problem("not-found")
    refuse_haste(request, f"sign-in {_address(request)}")
    reply = RedirectResponse(guard.sign_on.provider.address(secret), 303)
    reply.set_cookie(
        ENTRANCE, secret, max_age=_ENTRANCE_SECONDS, path="/sign-in", secure=guard.settings.secure_cookies,
        httponly=True, samesite="lax",
    )  # fmt: skip
    return reply


@router.get(RETURN)
def from_provider(request: Request) -> Response:
    """Whoever comes back from the provider, if it was this browser that had been sent there."""
    refuse_haste(request, f"sign-in {_address(request)}")
    secret, sent = request.cookies.get(ENTRANCE, ""), dict(request.query_params)
    try:
        if not secret or len(sent) < len(request.query_params.multi_items()):
            raise Problem("forbidden", "this sign-in did not begin in this browser; begin it here")
        reply = _entered(request, guard_of(request).sign_on.by_provider(secret, sent))
    except Problem as problem:
        reply = _door(request, problem)
    reply.delete_cookie(ENTRANCE, path="/sign-in")
    return reply


@router.post("/sign-out")
def sign_out(visitor: Signed, form: Posted) -> Response:
    """End the visit."""
    visitor.guard.catalog.end_visit(auth.digest(visitor.secret))
    reply = RedirectResponse("/sign-in", 303)
    reply.delete_cookie(COOKIE, path="/")
    return reply


def _entered(request: Request, person: Person) -> Response:
    """A page that leads on. Browsers send the visit's cookie only where a page of ours led, and not along a redirect
    that another site began."""
    guard = guard_of(request)
    secret = sign_in(guard, guard.sign_on.token(person, SECONDS))
    assert secret is not None
    reply = page(request, "entered.html", None, name=person.name)
    set_cookie(reply, secret, secure=guard.settings.secure_cookies)
    return reply


def _door(request: Request, problem: Problem | None = None, *, wrong: bool = False) -> Response:
    shown, status = None if problem is None else told(problem), 401 if wrong else 200
    return page(
        request, "sign_in.html", None if problem or wrong else visitor_of(request), wrong=wrong, problem=shown,
        provider=guard_of(request).sign_on.provider is not None, status=status if problem is None else problem.status,
    )  # fmt: skip


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
