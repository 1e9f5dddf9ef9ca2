"""Which control of the page does what each route of the API does; docs/reference/page.md is made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from pydantic import BaseModel

from holdfast.service.bodies import (
    Budget,
    NewBoard,
    NewDataset,
    NewIdentity,
    NewPerson,
    NewToken,
    Scoring,
    Share,
)
from holdfast.service.page.kinds import FORMS, KINDS, PARTS

CONTROLS = {
    "GET /v1/health": ("GET /overview", "it is shown at all"),
    "GET /v1/ready": ("GET /overview", "the gateway's checks"),
    "GET /v1/me": ("GET /tables", "your name, in the head of every page"),
    "GET /v1/metrics": ("GET /metrics.txt", "Metrics, on the overview"),
    "GET /v1/deeds": ("GET /deeds.ndjson", "Every change, on the overview"),
    "GET /v1/datasets": ("GET /tables", "Tables"),
    "POST /v1/datasets": ("POST /register", "Register a table"),
    "GET /v1/datasets/{dataset}": ("GET /tables/{key}", "a table's columns and promise"),
    "DELETE /v1/datasets/{dataset}": ("POST /tables/{key}/retire", "Retire this table"),
    "POST /v1/datasets/{dataset}/estimate": ("POST /tables/{key}/estimate", "the price, while a question is typed"),
    "POST /v1/datasets/{dataset}/ask": ("POST /tables/{key}/ask", "Ask"),
    "GET /v1/datasets/{dataset}/analysts": ("GET /tables/{key}/analysts", "Analysts"),
    "PUT /v1/datasets/{dataset}/analysts/{person}": ("POST /tables/{key}/analysts", "Admit, and Change"),
    "DELETE /v1/datasets/{dataset}/analysts/{person}": ("POST /tables/{key}/close", "Close my session"),
    "DELETE /v1/datasets/{dataset}/members/{person}": (
        "POST /tables/{key}/analysts/{person}/withdraw", "Withdraw",
    ),
    "GET /v1/datasets/{dataset}/answers": ("GET /tables/{key}/answers.json", "Download all, in the history"),
    "GET /v1/datasets/{dataset}/budget": ("GET /tables/{key}/history", "Your budget"),
    "PUT /v1/datasets/{dataset}/budget": ("POST /tables/{key}/budget", "Set the cap"),
    "GET /v1/datasets/{dataset}/meter": ("GET /tables/{key}", "the line of answers left, under the budget"),
    "GET /v1/datasets/{dataset}/ledger": ("GET /tables/{key}/ledger.ndjson", "Export as NDJSON"),
    "GET /v1/people": ("GET /people", "People"),
    "POST /v1/people": ("POST /people", "Add somebody"),
    "DELETE /v1/people/{person}": ("POST /people/{key}/disable", "Disable"),
    "GET /v1/people/{person}/identity": ("GET /people/{key}", "Single sign-on"),
    "PUT /v1/people/{person}/identity": ("POST /people/{key}/identity", "Single sign-on"),
    "DELETE /v1/people/{person}/identity": ("POST /people/{key}/identity", "Single sign-on, left empty"),
    "GET /v1/people/{person}/tokens": ("GET /people/{key}", "Tokens"),
    "POST /v1/people/{person}/tokens": ("POST /people/{key}/tokens", "Issue a token"),
    "DELETE /v1/people/{person}/tokens": ("POST /people/{key}/tokens/end", "End all tokens"),
    "DELETE /v1/tokens/{token}": ("POST /people/{key}/tokens/{token}/revoke", "Revoke"),
    "GET /v1/leaderboards": ("GET /boards", "Leaderboards"),
    "POST /v1/leaderboards": ("POST /boards", "Register a leaderboard"),
    "GET /v1/leaderboards/{board}": ("GET /boards/{key}", "Standings"),
    "DELETE /v1/leaderboards/{board}": ("POST /boards/{key}/retire", "Retire this board"),
    "POST /v1/leaderboards/{board}/submissions": ("POST /boards/{key}/submissions", "Submit"),
    "GET /v1/holdouts": ("GET /holdouts", "Holdouts"),
    "POST /v1/holdouts": ("POST /holdouts", "Register a holdout"),
    "GET /v1/holdouts/{board}": ("GET /holdouts/{key}", "a holdout and its looks"),
    "DELETE /v1/holdouts/{board}": ("POST /holdouts/{key}/retire", "Retire this holdout"),
    "POST /v1/holdouts/{board}/scores": ("POST /holdouts/{key}/scores", "Look"),
}  # fmt: skip
"""For each route of the API: the page's route, and what it is called there."""
FIELDS = {
    "exact": ("within", "rho", "epsilon"),
    "spend": ("rho", "epsilon"),
    **{name: (part,) for name, part in PARTS.items()},
}
"""Fields of the page's question form that are several, or others, in the API."""
BODIES: dict[type[BaseModel], str] = {
    NewDataset: "/register", Share: "/tables/{key}/analysts", Budget: "/tables/{key}/budget", NewPerson: "/people",
    NewToken: "/people/{key}/tokens", NewIdentity: "/people/{key}/identity", NewBoard: "/boards",
    Scoring: "/holdouts/{key}/scores",
}  # fmt: skip
"""Which form declares what a body of the API declares."""


def without_field() -> Iterator[tuple[str, str]]:
    """(kind, part) of every part of a question that the API takes and the page has no field for."""
    for kind, form in FORMS.items():
        shown = {part for name in KINDS.get(kind, ()) for part in FIELDS.get(name, (name,))}
        yield from (
            (kind, each.name) for each in fields(form) if each.name not in shown | {"kind", "confirm"}
        )


def table() -> str:
    """The page's reference, as Markdown."""
    routes = "\n".join(f"| `{api}` | `{ours}` | {words} |" for api, (ours, words) in sorted(CONTROLS.items()))
    kinds = "\n".join(
        f"| `{kind}` | {', '.join(f'`{name}`' for name in names)} |" for kind, names in KINDS.items()
    )
    missing = "\n".join(f"| `{kind}` | `{part}` |" for kind, part in without_field())
    return f"""# The page

Whatever the API does, the page does; this table is made from the code, and a test compares it with the routes.

| API | page | called |
|---|---|---|
{routes}

## Questions

| kind | fields |
|---|---|
{kinds}

What the API takes and the form has no field for:

| kind | part |
|---|---|
{missing or "| none | none |"}
"""
