"""What people type into forms, as the gateway takes it."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import FormData, UploadFile

from holdfast.planning.question import Question
from holdfast.service.fast_route import question_of
from holdfast.service.page.kinds import EXACT, KINDS, PARTS, SPENT
from holdfast.service.page.shell import invalid
from holdfast.service.page.visits import field, number, whole
from holdfast.service.problem import Problem


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
    return {PARTS.get(name, name): text} if text else {}


def _lines(form: FormData, name: str) -> dict[str, Any]:
    lines = [line.strip() for line in field(form, name).splitlines() if line.strip()]
    return {name: lines} if lines else {}


def _list(form: FormData, name: str) -> dict[str, Any]:
    parts = split(field(form, name))
    return {name: parts} if parts else {}


def _keys(form: FormData, name: str) -> dict[str, Any]:
    parts = split(field(form, name))
    return {name: parts[0] if len(parts) == 1 else parts} if parts else {}


def _edges(form: FormData, name: str) -> dict[str, Any]:
    """20, 40, 60; or with the columns that they cut: age = 20, 40; income = 100."""
    text = field(form, name)
    if "=" not in text:
        return {name: _values(text)} if _values(text) else {}
    cuts = [part.rpartition("=") for part in text.split(";") if part.strip()]
    return {name: {column.strip(): _values(cut) for column, _, cut in cuts}}


def _values(text: str) -> list[float | str]:
    return [_value(part.strip()) for part in text.split(",") if part.strip()]


def _ranks(form: FormData, name: str) -> dict[str, Any]:
    ranks = _values(field(form, name))
    return {name: ranks[0] if len(ranks) == 1 else ranks} if ranks else {}


def _number(form: FormData, name: str) -> dict[str, Any]:
    value = number(form, name)
    return {} if value is None else {name: value}


def _whole(form: FormData, name: str) -> dict[str, Any]:
    value = whole(form, name)
    return {} if value is None else {name: value}


def _flag(form: FormData, name: str) -> dict[str, Any]:
    return {name: True} if field(form, name) else {}


def _exact(form: FormData, name: str) -> dict[str, Any]:
    how, amount = field(form, "exact"), number(form, "amount")
    return {} if amount is None or how not in EXACT else {how: amount}


def _spend(form: FormData, name: str) -> dict[str, Any]:
    how, amount = field(form, "notion"), number(form, "spend")
    return {} if amount is None or how not in SPENT else {how: amount}


_READERS = {
    "edges": _edges, "rank": _ranks, "exact": _exact, "spend": _spend, "by": _keys, "columns": _list, "nulls": _list,
    "features": _lines, "candidates": _lines, "cumulative": _flag, "sample": _flag,
} | dict.fromkeys(("expect", "delta", "threshold"), _number) | dict.fromkeys(
    ("k", "rows", "hits", "questions", "queries"), _whole
)  # fmt: skip


def split(text: str) -> list[str]:
    """The parts between commas, but for commas in parentheses and in quotes."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == "'"
        depth += 0 if quoted else (sign == "(") - (sign == ")")
        if sign == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


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
    if first["type"] in ("missing", "missing_keyword_only_argument"):
        return Problem("invalid", f"this question needs {_WANTED.get(name, name)}; fill it in")
    if first["type"] == "unexpected_keyword_argument":
        return Problem("invalid", f"this question takes no {name}; leave it out")
    return invalid(error)


_WANTED = {
    "where": "a condition, such as age > 40", "column": "a column", "text": "an SQL text",
    "other": "another column or condition",
    "divisor": "what to divide by", "features": "columns to explain it by", "candidates": "conditions, one a line",
    "columns": "columns, with commas between them", "hits": "how often it may be above", "threshold": "a threshold",
    "queries": "how many questions will follow",
}  # fmt: skip
