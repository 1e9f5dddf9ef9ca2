"""What owners and auditors see at one glance: all tables, who asks them, and whether the gateway is well."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from holdfast.planning.budget import budget
from holdfast.privacy.filter import UNITS
from holdfast.service.api import metrics as api_metrics
from holdfast.service.dataset import Dataset
from holdfast.service.page.shell import PageRoute, page
from holdfast.service.page.visits import Signed, Visitor
from holdfast.service.parts import aside_of
from holdfast.service.problem import Problem

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_DAY = 86_400.0


@router.get("/overview")
async def overview(request: Request, visitor: Signed) -> Response:
    """All tables (budget, answers a day, who), and the checks of /v1/ready."""
    if visitor.person.scope not in ("owner", "auditor"):
        raise Problem("forbidden", "this needs a token of scope owner or auditor")
    checks = await request.app.state.readiness.checked()
    tables = await run_in_threadpool(lambda: _tables(visitor))
    return page(request, "overview.html", visitor, tables=tables, checks=checks)


@router.get("/deeds.ndjson")
def deeds(visitor: Signed) -> Response:
    """Every change to people, tokens, tables and boards, to keep and to check."""
    lines = (f"{line}\n" for line in visitor.guard.deeds(visitor.person))
    name = {"Content-Disposition": 'attachment; filename="deeds.ndjson"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=name)


@router.get("/metrics.txt")
async def metrics(request: Request, visitor: Signed) -> PlainTextResponse:
    """What Prometheus would read."""
    return await api_metrics(request, visitor.person)


def _tables(visitor: Visitor) -> list[dict[str, Any]]:
    """Each table with its cap, what was spent of it, and by whom. The ledger keeps no times: answers a day are those of
    all days since the table was registered."""
    guard, found = visitor.guard, []
    added = (deed.fields for deed in guard.catalog.deeds.all() if deed.kind == "table added")
    since = {fields["table"]: fields["moment"] for fields in added}
    for table in guard.datasets(visitor.person):
        whole = guard.budget(visitor.person, table.id)["table"]
        days = max(1.0, (time.time() - since.get(table.id, time.time())) / _DAY)
        cap = budget(**table.budget).filter.limit_units / UNITS
        found.append({
            "table": table, "share": max(0.0, 1 - whole["spent"]["amount"] / cap), "answers": whole["answers"],
            "daily": whole["answers"] / days, "who": _who(visitor, table),
        })  # fmt: skip
    return found


def _who(visitor: Visitor, table: Dataset) -> list[dict[str, Any]]:
    """Who asks a table, and who asks what is set aside of it."""
    apart = visitor.guard.analysts(visitor.person, aside_of(table.id)) if table.aside else []
    named = [analyst | {"name": f"{analyst['name']}, aside"} for analyst in apart]
    return visitor.guard.analysts(visitor.person, table.id) + named
