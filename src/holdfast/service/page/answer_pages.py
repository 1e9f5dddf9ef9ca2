"""One answer: a page of its own, files to keep, and two of them side by side."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from holdfast.service.bodies import PartId
from holdfast.service.page import look
from holdfast.service.page.shell import PageRoute, page
from holdfast.service.page.visits import Signed, Visitor
from holdfast.service.problem import Problem
from holdfast.session import Answer

router = APIRouter(route_class=PageRoute, include_in_schema=False)
LAST = 100
"""Answers that can be chosen from; older ones are reached by their links."""
Mark = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]


@router.get("/tables/{key}/answers/{mark}")
def answer(request: Request, visitor: Signed, key: PartId, mark: Mark) -> Response:
    """An answer that one was given."""
    table = visitor.guard.dataset(visitor.person, key)
    return page(request, "answer.html", visitor, table=table, answer=_found(visitor, key, mark))


@router.get("/tables/{key}/answers/{mark}/answer.csv")
def as_csv(visitor: Signed, key: PartId, mark: Mark) -> Response:
    """The same as a spreadsheet reads it. A text that a spreadsheet would compute is quoted."""
    found = _found(visitor, key, mark)
    columns, text = found.to_dict(), io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["question", *columns])
    writer.writerows(
        [_cell(cell) for cell in (found.question, *row)] for row in zip(*columns.values(), strict=True)
    )
    return _file(text.getvalue().encode(), "text/csv; charset=utf-8", f"{key}-{mark}.csv")


@router.get("/tables/{key}/answers/{mark}/answer.arrow")
def as_arrow(visitor: Signed, key: PartId, mark: Mark) -> Response:
    """The same as an Arrow file, with the question and the promise in its metadata."""
    found = _found(visitor, key, mark)
    made = found.to_arrow()  # InputError says what to install where it cannot be made
    import pyarrow

    terms = {"question": found.question, "target": found.target, "confidence": str(found.confidence)}
    made, sink = made.replace_schema_metadata(terms), pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made)
    return _file(sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.file", f"{key}-{mark}.arrow")


@router.get("/tables/{key}/compare")
def compare(request: Request, visitor: Signed, key: PartId, first: str = "", second: str = "") -> Response:
    """Two answers side by side."""
    table = visitor.guard.dataset(visitor.person, key)
    released, _ = visitor.guard.last_released(visitor.person, key, LAST)
    answers = [each for each in released if isinstance(each, Answer)]
    known: dict[str, Any] = {"table": table, "answers": answers, "first": None, "second": None, "pairs": None}
    known |= {
        name: _found(visitor, key, mark) for name, mark in (("first", first), ("second", second)) if mark
    }
    if first and second:
        known["pairs"] = look.side_by_side(known["first"], known["second"])
    return page(request, "compare.html", visitor, **known)


def _found(visitor: Visitor, key: str, mark: str) -> Answer:
    """An answer among those that the visitor was given; whoever was not given it finds nothing."""
    found = visitor.guard.answer_marked(visitor.person, key, mark)
    if found is None:
        raise Problem("not-found")
    return found


def _cell(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _file(content: bytes, kind: str, name: str) -> Response:
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
