"""The keys of a text column, discovered: charged once, stored in the ledger, public from then on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.ledger.entry import is_replayed
from holdfast.mechanisms.shown_keys import shown_keys, unit_weights
from holdfast.planning.keys_plan import keys_event, keys_information
from holdfast.privacy.event import Event, KeysByGaussian, KeysByLogistic, from_json
from holdfast.privacy.rule import number
from holdfast.query.across import scope
from holdfast.query.dictionary import text_behind, texts_of
from holdfast.query.schema import ColumnType, Schema, Text
from holdfast.query.unit_schema import no_column, table_of

if TYPE_CHECKING:
    from holdfast.desk import Paid
    from holdfast.session.session import Session


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that were found, in the order of their code points.

    A key of one unit alone (of one row, unless the table says rows_per_unit) is among them with probability at most
    `delta`; one with `threshold` rows is, with probability one half. Of events it is units instead of rows, and those
    that have no other key: by Gaussian noise a unit with t keys counts 1/sqrt(t) for each. How many rows a key has is
    another question.
    """

    column: str
    labels: tuple[str, ...]
    threshold: int
    rho: float
    delta: float
    mechanism: str

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> str:
        return self.labels[place]

    def __str__(self) -> str:
        return (
            f"{len(self)} keys of {self.column!r} ({self.mechanism}, rho {self.rho:.3g}, delta {self.delta:.2g}; "
            f"those of about {self.threshold:,} rows and more): {', '.join(self.labels[:10])}"
            f"{', …' if len(self) > 10 else ''}"
        )


def discovered(session: Session, column: str, rho: float | None = None, delta: float | None = None) -> Keys:
    """The keys of a text column: those that were found before, or found now and charged.

    What any session on the ledger found is public, and costs the others nothing; who names other terms pays for a
    discovery of their own.
    Guarantee: delta-approximate rho-zCDP; a key of one unit alone is found with probability at most `delta`, which
    comes from the part of its delta that the session keeps for keys. For the population by logistic noise, which is
    on the meter of the leave-out theorem; for a table, or rows that share owners, by Gaussian noise, which ends it.
    Reference: docs/theorems.md, Theorems 49 and 50.
    """
    column, kind = text_column(session.schema, column)
    asked = rho is not None or delta is not None
    if not asked and (shared := shared_keys(session, column)) is not None:
        return shared
    standing = session._desk.find(keys_key(column))
    if standing is None or asked:
        event: Event = keys_event(session._terms, column, rho, delta)
    else:
        event = from_json(json.loads(standing.entry.event))
    assert isinstance(event, KeysByGaussian | KeysByLogistic)
    tells = keys_information(event, kind, session._terms)
    paid = session.pay("keys", f"keys of {column}", event, key=keys_key(column), tells=tells)
    found = paid.outcome or paid.record(json.dumps(_texts(paid, session.schema, column, event)))
    return _keys(column, event, found)


def _keys(column: str, event: Event, found: str) -> Keys:
    assert isinstance(event, KeysByGaussian | KeysByLogistic)
    gaussian, scale = (True, event.scale) if isinstance(event, KeysByGaussian) else (False, 1)
    return Keys(
        column,
        tuple(json.loads(found)),
        -(-event.threshold // scale),
        number(event, "zcdp"),
        number(event, "failure"),
        "gaussian" if gaussian else "logistic",
    )


def keys_key(column: str) -> str:
    """The key under which a session's ledger keeps the discovery."""
    return json.dumps(["keys", column])


def shared_keys(session: Session, column: str) -> Keys | None:
    """What was told of a column's keys before: in this session, or else in the first that discovered them.

    It was charged to whoever asked, and to the table; told is told, so it is free for everybody.
    """
    ledger, key = session._ledger, keys_key(column)
    others = (account.name for account in ledger.accounts() if account.name != session.name)
    for name in (session.name, *others):
        entry = ledger.find(name, key)
        if (
            entry is not None
            and entry.answer is not None
            and (name == session.name or not is_replayed(entry.plan))
        ):
            return _keys(column, from_json(json.loads(entry.event)), entry.answer)
    return None


def known_keys(session: Session) -> dict[str, tuple[str, ...]]:
    """What is known already, by column."""
    found = {name: shared_keys(session, name) for name in session._terms.schema.texts}
    return {name: keys.labels for name, keys in found.items() if keys is not None}


def with_keys(schema: Schema, known: dict[str, tuple[str, ...]]) -> Schema:
    """The schema in which discovered keys stand."""
    texts: dict[str, ColumnType] = {
        name: Text(schema.texts[name].max_length, keys) for name, keys in known.items()
    }
    return schema.retyped(texts) if texts else schema


def text_column(schema: Schema, column: object) -> tuple[str, Text]:
    """The one name of a text column, however it is written, and its declaration; refused for any other."""
    if not isinstance(column, str):
        raise InputError(f"expected the name of a text column, got {shown(column)}")
    within = scope(schema, (), (column,))
    name = within.spelling(column)
    if name is None:
        raise QueryError(no_column(within, column))
    texts = text_behind(schema, name)
    if texts is None:
        kind = within[name].kind
        raise InputError(
            f"expected a text column, got {column!r}, a {kind} column: its groups are declared; use by={column!r}"
        )
    return texts, schema.texts[texts]


def _texts(paid: Paid, schema: Schema, column: str, event: KeysByGaussian | KeysByLogistic) -> list[str]:
    """The texts that are shown. Each row weighs 1: it has one key, or none; of events, see `unit_weights`."""
    table = table_of(schema, column)
    weights = np.zeros(0, dtype=np.int64)
    texts: tuple[str, ...] = ()
    for block in paid.scan([column] if table is None else [column, table]):
        codes = texts_of(block[column])
        texts = codes.words.texts
        if not len(weights):
            weights = np.zeros(len(texts), dtype=np.int64)
        plain = np.asarray(codes)
        if table is None:
            weights += np.bincount(plain[plain < len(texts)], minlength=len(texts))
        else:
            weights += unit_weights(plain, block[table], len(texts), event)
    return [texts[place] for place in shown_keys(weights, event)]
