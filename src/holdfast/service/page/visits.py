"""Who looks at the page: a cookie that stands for a token, and proof that a form is our own."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from holdfast.service import auth
from holdfast.service.catalog import Person
from holdfast.service.fast_route import looked_up, refuse_haste
from holdfast.service.gateway import Gateway
from holdfast.service.parts import ID
from holdfast.service.problem import Problem

Number = TypeVar("Number", int, float)
COOKIE = "holdfast"
SECONDS = 12 * 3600.0
"""How long a visit lasts."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is signed in, the secret of their cookie, and the gateway as they may use it."""

    person: Person
    secret: str
    guard: Gateway

    @property
    def form_token(self) -> str:
        """What every form of this visit carries. Another site can neither read nor guess it."""
        return auth.digest(f"form {self.secret}")


def sign_in(guard: Gateway, token: str) -> str | None:
    """The secret of a new cookie, or None if the token is not valid."""
    key = auth.token_id(token)
    if key is None or guard.who(token) is None:
        return None
    secret, moment = secrets.token_hex(32), guard.catalog.now()
    guard.catalog.add_visit(auth.digest(secret), key, moment + SECONDS, moment)
    return secret


def set_cookie(reply: Response, secret: str, *, secure: bool) -> None:
    """Give a browser its cookie: no script reads it, and no other site sends it."""
    reply.set_cookie(
        COOKIE, secret, max_age=int(SECONDS), path="/", secure=secure, httponly=True, samesite="strict"
    )


def guard_of(request: Request) -> Gateway:
    """The gateway of this worker."""
    return request.app.state.gateway  # type: ignore[no-any-return]


def visitor_of(request: Request) -> Visitor | None:
    """Who is signed in, if anybody."""
    secret, guard = request.cookies.get(COOKIE), guard_of(request)
    if not secret:
        return None
    person = guard.catalog.visitor(auth.digest(secret), guard.catalog.now())
    if person is None or person.scope == "metrics":
        return None
    # Whom a proxy names now counts, and not who was here before in the same browser.
    other = guard.sign_on.is_other(person, getattr(request.state, "identity", None))
    return None if other else Visitor(person, secret, guard)


async def signed_in(request: Request) -> Visitor:
    """Who is signed in; `unauthorized` if nobody is, `rate` if they are too quick."""
    visitor = await looked_up(lambda: visitor_of(request))
    if visitor is None:
        request.app.state.strangers.forget(request.scope)
        raise Problem("unauthorized", "sign in first")
    request.app.state.strangers.welcome(request.scope)
    request.state.person = visitor.person
    refuse_haste(request, visitor.person.id)
    return visitor


Signed = Annotated[Visitor, Depends(signed_in)]


def refuse_foreign(request: Request) -> None:
    """Refuse a POST that did not come from a page of this host. Browsers say from where, and scripts cannot lie."""
    scheme, _, host = request.headers.get("origin", "").partition("://")
    schemes = ("https",) if guard_of(request).settings.secure_cookies else ("http", "https")
    if not host or host != request.headers.get("host") or scheme not in schemes:
        raise Problem(
            "forbidden", "this form was not sent from a page of this gateway; open the page and try again"
        )


async def posted(request: Request, visitor: Signed) -> AsyncIterator[FormData]:
    """A form that one of our own pages made for this visit; its files are closed when it was answered."""
    refuse_foreign(request)
    async with request.form() as form:
        if not is_own(form, visitor):
            raise Problem(
                "forbidden", "this form is not of your visit; open the page again and repeat it there"
            )
        yield form


def is_own(form: FormData, visitor: Visitor) -> bool:
    """Whether a form carries the token of this visit; compared in constant time."""
    return hmac.compare_digest(field(form, "form_token").encode(), visitor.form_token.encode())


Posted = Annotated[FormData, Depends(posted)]


def field(form: FormData, name: str) -> str:
    """A field of a form as text, without blanks around it; empty if it is missing."""
    text = form.get(name)
    return text.strip() if isinstance(text, str) else ""


def number(form: FormData, name: str) -> float | None:
    """A decimal number of a form; None if the field is empty."""
    return _read(form, name, float, "a number")


def whole(form: FormData, name: str) -> int | None:
    """A whole number of a form; None if the field is empty."""
    return _read(form, name, int, "a whole number")


def _read(form: FormData, name: str, kind: Callable[[str], Number], what: str) -> Number | None:
    text = field(form, name)
    try:
        return kind(text) if text else None
    except ValueError:
        raise Problem("invalid", f"expected {what} in {name.replace('_', ' ')}, got other text") from None


def chosen(form: FormData, name: str) -> str:
    """An id that was chosen in a form; `not-found` for what is no id at all."""
    text = field(form, name)
    if re.fullmatch(ID, text) is None:
        raise Problem("not-found")
    return text


def typed_in(form: FormData) -> dict[str, str]:
    """What was typed, to be shown again when it was refused."""
    return {name: field(form, name) for name in form}
