"""The page: what the gateway shows to people. It reads declarations and ledgers, never a row."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from holdfast.service.page import (
    answer_pages,
    board_pages,
    entrance,
    live_attack,
    overview,
    owner,
    routes,
    taking_in,
)
from holdfast.service.page.shell import FILES, Files, shown_to_people


def install(app: FastAPI) -> None:
    """Put the page over the gateway of an application."""
    for part in (routes, entrance, answer_pages, board_pages, owner, taking_in, overview, live_attack):
        app.include_router(part.router)
    app.mount("/static", Files(directory=FILES), name="static")
    # What no route answers is told to a browser as a page, and to everybody else as before.
    told = app.exception_handlers[HTTPException]
    app.add_exception_handler(HTTPException, shown_to_people(told))
