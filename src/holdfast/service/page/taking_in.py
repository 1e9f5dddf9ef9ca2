"""A new table: a file that is uploaded or lies below the data folders, columns that are suggested, a registration."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import FormData, UploadFile

from holdfast.service.page.owner import register_page_with
from holdfast.service.page.shell import PageRoute
from holdfast.service.page.visits import Posted, Signed, Visitor, typed_in
from holdfast.service.problem import REFUSALS, Problem, problem_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
NAMES = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(csv|parquet)"
"""What an uploaded file may be called: nothing that leads out of its folder, or hides in it."""


async def owning(visitor: Signed) -> Visitor:
    """Who is signed in, if it is an owner: others are refused before their file is read."""
    if visitor.person.scope != "owner":
        raise Problem("forbidden", "this needs a token of scope owner")
    return visitor


Owning = Annotated[Visitor, Depends(owning)]


@router.post("/register/suggest")
def suggest(request: Request, visitor: Owning, form: Posted) -> Response:
    """Propose columns for a file below the data folders, for the owner to edit. It reads the rows."""
    typed = typed_in(form)
    try:
        if not typed.get("path"):
            raise Problem("invalid", "say where the table is; its columns are then suggested")
        typed |= {"schema": visitor.guard.suggest(visitor.person, typed["path"])}
    except REFUSALS as error:
        return register_page_with(request, visitor, typed, problem_of(error))
    return register_page_with(request, visitor, typed, suggested=True)


@router.post("/register/upload")
def upload(request: Request, visitor: Owning, form: Posted) -> Response:
    """Keep a file in the first data folder, and propose its columns."""
    typed = typed_in(form)
    try:
        place = _kept(visitor, form)
        try:
            schema = visitor.guard.suggest(visitor.person, place.name)
        except BaseException:
            place.unlink()  # what cannot be read takes up no name
            raise
    except REFUSALS as error:
        return register_page_with(request, visitor, typed, problem_of(error))
    typed |= {"path": place.name, "id": place.stem.lower().replace(".", "-"), "schema": schema}
    return register_page_with(request, visitor, typed, suggested=True)


def _kept(visitor: Visitor, form: FormData) -> Path:
    """The uploaded file under its own name, readable by the gateway alone. No file is overwritten."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Problem("invalid", "choose a file first")
    if re.fullmatch(NAMES, file.filename) is None:
        raise Problem(
            "invalid", "expected a .csv or .parquet file named with letters, digits, - and _ only; rename it"
        )
    place = visitor.guard.settings.roots[0] / file.filename
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Problem("taken", f"there is a file {file.filename} already; rename yours") from None
    try:
        with os.fdopen(handle, "wb") as kept:
            shutil.copyfileobj(file.file, kept)
    except OSError:
        with suppress(OSError):
            place.unlink()
        raise
    return place
