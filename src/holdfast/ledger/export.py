"""A ledger as lines of JSON, for auditors; secret answers stay behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from holdfast.errors import LedgerError
from holdfast.formats import FORMATS, check_format
from holdfast.ledger.audit import Verified, audit
from holdfast.ledger.fact import Fact
from holdfast.ledger.protocol import Ledger


def export(ledger: Ledger) -> Iterator[str]:
    """One line for each fact: place, kind, fields, head; first the ledger's id, last its tip.

    An answer comes with its text and salt, a secret one only with the digest that the chain knows.
    """
    return map(_line, ledger.history())


def verify_export(lines: Iterable[str]) -> Verified:
    """Walk an export, without the ledger. See `holdfast.ledger.verify`; no anchor is asked."""
    return audit(_fact(number, line) for number, line in enumerate(lines, 1) if line.strip())


def _line(fact: Fact) -> str:
    line: dict[str, object] = {"place": fact.place, "kind": fact.kind, **fact.fields, "head": fact.head}
    if fact.kind == "ledger":
        line["format"] = FORMATS["ledger's export"]
    if fact.kind == "answered" and not fact.fields["secret"]:
        line |= {"answer": fact.answer, "salt": fact.salt}
    return json.dumps(line)


def _fact(number: int, text: str) -> Fact:
    try:
        line = json.loads(text)
        place, kind, head = line.pop("place"), line.pop("kind"), line.pop("head")
        answer, salt = line.pop("answer", None), line.pop("salt", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LedgerError(f"expected a fact as JSON, got something else in line {number}") from None
    if kind == "ledger":
        check_format("ledger's export", line.pop("format", None), f"line {number}")
    return Fact(place, kind, line, head, answer, salt)
