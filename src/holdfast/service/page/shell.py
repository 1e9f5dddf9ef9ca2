"""What every page has: its templates, its files, and refusals that people can read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from holdfast.service.envelope import note_mistake
from holdfast.service.page import kinds, look
from holdfast.service.page.visits import Visitor, visitor_of
from holdfast.service.problem import CODES, REFUSALS, Problem, problem_of

HERE = Path(__file__).parent
FILES = HERE / "static"
# A page may say to its own host where a form comes from; to others it says nothing.
_HEADERS = {"Referrer-Policy": "same-origin", "Vary": "HX-Request"}


class Files(StaticFiles):
    """Our files. Their addresses hold a digest, so that browsers may keep them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


class PageRoute(APIRoute):
    """A route whose refusals are pages, or pieces of one where a piece was asked for."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except REFUSALS as error:
                problem = problem_of(error)
            except RequestValidationError as error:
                # No detail: an address that fits no route's pattern is an address of nothing.
                problem = Problem("not-found") if request.method == "GET" else invalid(error)
            except ClientDisconnect:
                problem = Problem("invalid", "the form ended before its length")
            except Exception as error:
                note_mistake(error)
                problem = Problem("internal")
            return await run_in_threadpool(refusal, request, problem)

        return handled


def page(
    request: Request, template: str, visitor: Visitor | None, *, status: int = 200, **known: Any
) -> HTMLResponse:
    """A rendered template."""
    text = _environment().get_template(template).render(
        visitor=visitor, path=request.url.path, piece=is_piece(request), **known
    )  # fmt: skip
    return HTMLResponse(text, status, headers=_HEADERS)


def form_page(
    request: Request,
    template: str,
    visitor: Visitor,
    typed: dict[str, str],
    problem: Problem | None,
    **known: Any,
) -> Response:
    """A page with a form: what was typed into it, and why that was refused, if it was."""
    status = 200 if problem is None else problem.status
    shown = None if problem is None else told(problem)
    return page(request, template, visitor, status=status, typed=typed, problem=shown, **known)


def is_piece(request: Request) -> bool:
    """Whether a script on the page asked, and wants only what has changed."""
    return request.headers.get("hx-request") == "true"


def refusal(request: Request, problem: Problem) -> Response:
    """A problem as a page; whoever has to sign in is led there."""
    if problem.code == "unauthorized":
        if is_piece(request):
            return HTMLResponse("", problem.status, headers=_HEADERS | {"HX-Redirect": "/sign-in"})
        return RedirectResponse("/sign-in", 303)
    template = "_problem.html" if is_piece(request) else "problem.html"
    wait = problem.more.get("retry_after")
    reply = page(request, template, visitor_of(request), status=problem.status, problem=told(problem))
    if wait is not None:
        reply.headers["Retry-After"] = str(int(wait) + 1)
    return reply


def told(problem: Problem) -> dict[str, Any]:
    """What a page shows of a problem."""
    return {"code": problem.code, "title": CODES[problem.code][1], "detail": problem.detail} | {
        "more": problem.more
    }


def invalid(error: RequestValidationError | Any) -> Problem:
    """Where a form is wrong, and how."""
    first = error.errors()[0]
    place = str(first["loc"][-1]) if first["loc"] else "form"
    return Problem("invalid", f"{place}: {first['msg']}")


def shown_to_people(otherwise: Any) -> Any:
    """A handler which tells browsers by a page what everybody else is told by `otherwise`."""

    def handler(request: Request, error: Any) -> Any:
        browser = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1")
        if browser and error.status_code == 404:
            return refusal(request, Problem("not-found"))
        return otherwise(request, error)

    return handler


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=lambda value: "" if value is None else value,
    )  # fmt: skip
    environment.filters |= look.FILTERS
    environment.globals["version"] = _version()
    environment.globals["sign"] = look.SIGNS
    environment.globals["amounts"] = look.AMOUNTS
    return environment


def _version() -> str:
    """A digest of all our files."""
    whole = hashlib.sha256(kinds.stylesheet().encode())
    for file in sorted(path for path in FILES.rglob("*") if path.is_file()):
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()[:12]
