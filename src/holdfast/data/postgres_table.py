"""What PostgreSQL's catalogue says about a table: its columns, its heaps, and where rows lie in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.data.postgres_link import Link, Query
from holdfast.errors import DataError

_CLASS = """
SELECT CAST(c.oid AS bigint), CAST(c.relkind AS text), format('%I.%I', n.nspname, c.relname),
       EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)
"""
_LEAVES = """
SELECT format('%I.%I', n.nspname, c.relname), CAST(c.oid AS bigint), COALESCE(a.amname = 'heap', false)
FROM pg_partition_tree({oid}) p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am a ON a.oid = c.relam
WHERE p.isleaf ORDER BY c.oid
"""
_STORAGE = "SELECT a.amname = 'heap' FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = {oid}"
_TYPES = """
WITH RECURSIVE base AS (
    SELECT a.attname, a.attnum, t.oid, t.typbasetype FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attname, b.attnum, t.oid, t.typbasetype FROM base b JOIN pg_type t ON t.oid = b.typbasetype
)
SELECT CAST(b.attname AS text), CASE WHEN t.typtype = 'e' THEN 'enum'
    WHEN t.typnamespace = CAST('pg_catalog' AS regnamespace) THEN CAST(t.typname AS text) ELSE 'other' END
FROM base b JOIN pg_type t ON t.oid = b.oid WHERE b.typbasetype = 0 ORDER BY b.attnum
"""
_PAGES = "SELECT pg_relation_size({oid}) / CAST(current_setting('block_size') AS int)"
_COUNT = """
SELECT COUNT(*), MAX(get_byte(tidsend(ctid), 4) * 256 + get_byte(tidsend(ctid), 5)) FROM {relation}
"""
_FILE = "SELECT CAST(pg_relation_filenode({oid}) AS bigint)"
_OLDEST = "pg_snapshot_xmin(pg_current_snapshot())"


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """What stands behind FROM, the heaps below it with their ids, and the types of the columns."""

    relation: str
    heaps: tuple[tuple[str, int], ...]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the rows lie: in slots 1 to `slots` of the pages of each heap. Public, as `rows` is.

    A *place* is a page and a slot in one number; every row has exactly one, and many places are empty.
    """

    rows: int
    slots: int
    pages: tuple[int, ...]

    @property
    def places(self) -> int:
        """The number of places in all heaps."""
        return self.slots * sum(self.pages)


@dataclass(frozen=True, slots=True)
class Birth:
    """The oldest transaction that a snapshot does not see, as 32 and as 64 bits."""

    short: str
    long: int


def find_table(link: Link, table: str) -> PostgresTable:
    """A table, a materialized view or a partitioned table, by its name in SQL."""
    found = link.rows(_CLASS, (table,))
    if not found:
        raise DataError(f"expected a table, got nothing under the name {table!r}")
    oid, kind, name, parent = found[0]
    if kind not in ("r", "m", "p") or (kind == "r" and parent):
        raise DataError(
            f"expected a table, a partitioned table or a materialized view, got something else: {table!r}; "
            "make a materialized view of it"
        )
    if kind == "p":
        heaps: list[tuple[Any, ...]] = link.rows(_LEAVES.format(oid=oid))
    else:
        heaps = [(name, oid, link.rows(_STORAGE.format(oid=oid))[0][0])]
    if not heaps or not all(is_heap for *_, is_heap in heaps):
        raise DataError(f"expected {table!r} to lie in ordinary heaps, got another kind of storage")
    types = dict(link.rows(_TYPES.format(oid=oid)))
    relation = name if kind == "p" else f"ONLY {name}"
    return PostgresTable(relation, tuple((f"ONLY {heap}", int(number)) for heap, number, _ in heaps), types)


def measure(query: Query, table: PostgresTable) -> Layout:
    """Count the rows, and find the highest slot and the number of pages. Cost: one pass on the server."""
    rows, slots = query(_COUNT.format(relation=table.relation))[0]
    pages = tuple(int(query(_PAGES.format(oid=oid))[0][0]) for _, oid in table.heaps)
    return Layout(int(rows), int(slots or 1), pages)


def birth(query: Query) -> Birth:
    """Of the current snapshot: a row version that is not in it has a transaction at least this young."""
    short, long = query(
        f"SELECT CAST(CAST({_OLDEST} AS xid) AS text), CAST(CAST({_OLDEST} AS text) AS bigint)"
    )[0]
    return Birth(str(short), int(long))


def order(query: Query, table: PostgresTable, born: Birth) -> str:
    """What the order of the rows of a snapshot rests on: the files that they lie in, and how young they may be."""
    files = [int(query(_FILE.format(oid=oid))[0][0]) for _, oid in table.heaps]
    return json.dumps({"files": files, "short": born.short, "long": born.long})


def refuse_another_order(query: Query, table: PostgresTable, layout: Layout, kept: str) -> None:
    """DataError unless the rows lie in the order that `order` told of, of as many rows.

    A row keeps its place while it lives and its file is not rewritten (VACUUM FULL, CLUSTER, ALTER TABLE), and none is
    younger if none was inserted or changed; as many rows are then the same ones.
    """
    then = json.loads(kept)
    now = json.loads(order(query, table, Birth(then["short"], then["long"])))
    try:
        measure_again(query, table, layout, Birth(then["short"], then["long"]))
    except DataError:
        now = None
    if now != then:
        raise DataError(
            "expected the rows in the order in which units were set aside, got rows that were changed or moved since; "
            "put them back as they were; or save other rows as a store before units of them are set aside: its order "
            "stays"
        )


def measure_again(query: Query, table: PostgresTable, before: Layout, born: Birth) -> Layout:
    """The layout in a later snapshot, or DataError unless it holds the very row versions of the first one.

    A row that was inserted or changed since has a younger transaction; one that was deleted is missing from
    the count. Rows may have moved. Transaction numbers wrap around after 2^31, so nothing is believed then.
    """
    younger = query(
        f"SELECT COUNT(*) FROM {table.relation} WHERE age(xmin) <= age(CAST('{born.short}' AS xid))"
    )[0][0]
    layout = measure(query, table)
    if younger or layout.rows != before.rows or birth(query).long - born.long >= 2**30:
        raise DataError("expected the rows that were opened, got changed ones; open the table again")
    return layout
