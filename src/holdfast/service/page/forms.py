"""What people type into forms, as the gateway takes it."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import MISSING, fields, replace
from typing import Any, get_args, get_type_hints

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import FormData, UploadFile

from holdfast.planning.question import AnyQuestion, Question
from holdfast.service.fast_route import question_of
from holdfast.service.page.shell import invalid
from holdfast.service.page.visits import field, number
from holdfast.service.problem import Problem

KINDS = {
    "fraction": ("where", "by", "edges", "exact"),
    "count": ("where", "by", "edges", "exact"),
    "mean": ("column", "where", "by", "edges", "exact"),
    "sum": ("column", "where", "by", "edges", "exact"),
    "histogram": ("column", "where", "edges", "exact"),
    "quantile": ("column", "rank", "where", "by", "edges", "exact"),
    "sql": ("text", "exact"),
    "sample": ("where",),
}
"""The questions that the page asks, with the fields that each of them has."""
EXACT = {"within": "within ±", "rho": "for ρ", "epsilon": "for ε"}
"""How an accuracy is said: as a half-width, or as what may be spent."""
DEFAULTS = {
    "kind": "fraction", "where": "", "column": "", "by": "", "edges": "", "rank": "0.5", "text": "",
    "exact": "within", "amount": "",
}  # fmt: skip
"""The fields of the form before anybody has typed."""

_KINDS: dict[str, type[Question]] = {
    kind: form for form in get_args(AnyQuestion) for kind in get_args(get_type_hints(form)["kind"])
}


def question(form: FormData) -> Question:
    """The question of a form. Fields that its kind does not have are left out."""
    kind = field(form, "kind")
    parts: dict[str, Any] = {"kind": kind}
    for name in KINDS.get(kind, ()):
        parts |= _READERS.get(name, _text)(form, name)
    try:
        asked = question_of(json.dumps(parts).encode())
    except RequestValidationError as error:
        raise _missing(error) from None
    return replace(asked, confirm=field(form, "confirm") == mark(asked))


def needed(*, planned: bool) -> dict[str, list[str]]:
    """The fields that a question of each kind cannot do without; `planned` tables say how exactly by themselves."""
    wanted = {kind: {each.name for each in fields(_KINDS[kind]) if each.default is MISSING} for kind in KINDS}
    return {
        kind: [name for name in names if name in wanted[kind]]
        + (["amount"] if "exact" in names and not planned else [])
        for kind, names in KINDS.items()
    }


def mark(asked: Question) -> str:
    """A short name of a question: whoever confirms says by it what they have seen."""
    return hashlib.sha256(asked.identity.encode()).hexdigest()[:32]


def predictions(text: str, rows: int) -> list[Any]:
    """The predictions in a file: a JSON list, or one a line (of several columns the last), perhaps with a head."""
    if text.lstrip().startswith("["):
        return _json_list(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == rows + 1:
        del lines[0]
    return [_value(line.rsplit(",", 1)[-1].strip().strip('"')) for line in lines]


async def uploaded(form: FormData, name: str) -> str:
    """The text of a file that was sent with a form."""
    file = form.get(name)
    if not isinstance(file, UploadFile) or not file.filename:
        raise Problem("invalid", "choose a file with your predictions first")
    try:
        return (await file.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem("invalid", "expected a text file (CSV or JSON), got another kind") from None


def budget(form: FormData) -> dict[str, float]:
    """epsilon, epsilon and delta, or rho: those that were filled in."""
    amounts = {name: number(form, name) for name in ("epsilon", "delta", "rho")}
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _text(form: FormData, name: str) -> dict[str, Any]:
    text = field(form, name)
    return {name: text} if text else {}


def _edges(form: FormData, name: str) -> dict[str, Any]:
    parts = [part.strip() for part in field(form, name).split(",") if part.strip()]
    return {name: [_value(part) for part in parts]} if parts else {}


def _number(form: FormData, name: str) -> dict[str, Any]:
    value = number(form, name)
    return {} if value is None else {name: value}


def _exact(form: FormData, name: str) -> dict[str, Any]:
    how, amount = field(form, "exact"), number(form, "amount")
    return {} if amount is None or how not in EXACT else {how: amount}


_READERS = {"edges": _edges, "rank": _number, "exact": _exact}


def _value(text: str) -> float | str:
    """A number if it is one, and finite; otherwise the text itself."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _json_list(text: str) -> list[Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = [None]
    if not all(type(part) is str or (type(part) in (int, float) and math.isfinite(part)) for part in said):
        raise Problem("invalid", "expected a JSON list of numbers or labels, got something else")
    return list(said)


def _missing(error: RequestValidationError) -> Problem:
    """The commonest mistake is an empty field, and is told in the words of the form."""
    first = error.errors()[0]
    name = str(first["loc"][-1]) if first["loc"] else ""
    if first["type"] == "missing":
        words = {"where": "a condition, such as age > 40", "column": "a column", "text": "an SQL text"}
        return Problem("invalid", f"this question needs {words.get(name, name)}; fill it in")
    return invalid(error)
