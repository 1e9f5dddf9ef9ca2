"""Questions across the tables of one unit: what they are about, aggregates of events, joins on the unit's key.

count(visits, cost > 100) >= 3                        about units
EXISTS (SELECT 1 FROM visits WHERE visits.person = people.person AND ward = 'surgery')
SELECT avg(cost) FROM visits JOIN people USING (person) WHERE people.age > 40 GROUP BY people.region
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from holdfast.errors import QueryError
from holdfast.query.aggregate import KINDS, Aggregate
from holdfast.query.expression import Column, Expression
from holdfast.query.folding import FOLDED, Piece, closing, folded
from holdfast.query.joins import Join, read_joins, refuse_other_key, without_table
from holdfast.query.lookup_schema import Joined, LookupSchema
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Always, NotNull, Predicate, conjunction
from holdfast.query.quick_parser import plain_names
from holdfast.query.scan import check_length, is_word, split
from holdfast.query.schema import Schema
from holdfast.query.select import Select, parse_select
from holdfast.query.synonyms import respelt
from holdfast.query.table_aliases import without_aliases
from holdfast.query.unit_schema import RowSchema, UnitSchema

_CLAUSES = frozenset(["where", "group by", "having", "order by", "limit", "offset"])


def scope(schema: Schema, texts: Iterable[str | None], names: Iterable[str | None] = ()) -> Schema:
    """The columns that a question in these words may use: of units, or of the events of the one table that it names."""
    if not isinstance(schema, UnitSchema):
        return schema
    given = tuple(text for text in texts if isinstance(text, str))
    return _scope(schema, given, tuple(name for name in names if isinstance(name, str)))


@lru_cache(maxsize=4096)
def _scope(schema: UnitSchema, texts: tuple[str, ...], names: tuple[str, ...]) -> Schema:
    tables = {_table_of(schema, name) for name in names}
    for text in texts:
        check_length(text)
        tables |= {_table_of(schema, name) for name in _names(text)}
    found = sorted(table for table in tables if table is not None)
    if len(found) > 1:
        raise QueryError(_two_tables(schema, found))
    return schema.of_rows(found[0]) if found else schema


def _names(text: str) -> list[str]:
    """The columns in a text, other than those in aggregates."""
    plain = plain_names(text)
    if plain is not None:
        return plain
    pieces = folded(respelt(split(text)), text)
    return [
        piece.text
        for piece, follower in zip(pieces, [*pieces[1:], None], strict=True)
        if piece.quote not in ("'", FOLDED)
        and (piece.quote or (is_word(piece) and (follower is None or follower.sign != "(")))
    ]


def _table_of(schema: UnitSchema, name: str) -> str | None:
    """The table of events that a column belongs to; None if it is the unit's, or unknown."""
    table, dot, _ = name.partition(".")
    if dot and table in schema.events:
        return table
    owners = [] if name in schema.own else schema.owners(name)
    if len(owners) > 1:
        ways = " or ".join(f"{owner}.{name}" for owner in owners)
        raise QueryError(f"{name} is a column of several tables; write {ways}")
    return owners[0] if owners else None


def _two_tables(schema: UnitSchema, tables: Sequence[str]) -> str:
    return (
        f"a question is about the rows of one table, and this one names {' and '.join(tables)}: two rows of them have "
        f"nothing in common but the {schema.unit}; ask about the rows of one, and of the other what holds for the "
        f"{schema.unit}, as in exists({tables[1]}, ...) or count({tables[1]}, ...) >= 3"
    )


def read_aggregate(text: str, schema: UnitSchema) -> Aggregate:
    """What events say of a unit, in our words or as a subquery; QueryError for what is neither."""
    text = without_aliases(text)
    pieces = split(text)
    signs = [piece.sign for piece in pieces]
    if signs[:2] == ["(", "select"] and closing(pieces, 0) == len(pieces) - 1:
        return _subquery(text, pieces[1:-1], schema, exists=False)
    if signs[:1] == ["exists"] and signs[1:3] == ["(", "select"] and closing(pieces, 1) == len(pieces) - 1:
        return _subquery(text, pieces[2:-1], schema, exists=True)
    if len(signs) < 3 or signs[0] not in KINDS or signs[1] != "(" or closing(pieces, 1) != len(pieces) - 1:
        raise QueryError(
            f"expected an aggregate of events such as count({next(iter(schema.events))}), got another"
        )
    arguments = _arguments(text, pieces[2:-1], pieces[-1].start)
    if len(arguments) not in (1, 2):
        raise QueryError(
            f"{signs[0]} takes what is added up or looked at, and perhaps a condition; give one or two"
        )
    return _made(schema, signs[0], arguments[0], arguments[1] if len(arguments) == 2 else None)


def _made(
    schema: UnitSchema, kind: str, subject: str, condition: str | None, table: str | None = None
) -> Aggregate:
    if kind in ("count", "exists"):
        rows, value = _rows_of(schema, subject if table is None else table), None
    else:
        if table is None:
            found = scope(schema, [subject, condition])
            if not isinstance(found, RowSchema):
                raise QueryError(
                    f"{kind} needs a column of events; the tables are {', '.join(schema.events)}"
                )
            table = found.table
        rows = schema.of_rows(table)
        value = _value(kind, subject, rows)
    where: Predicate = (
        Always() if condition is None else parse_predicate(condition, _without_aggregates(condition, rows))
    )
    return Aggregate(rows, kind, value, where)  # type: ignore[arg-type]  # one of KINDS


def _value(kind: str, subject: str, rows: RowSchema) -> Expression:
    if kind in ("sum", "avg"):
        return parse_expression(subject, _without_aggregates(subject, rows))
    name = rows.spelling(subject.strip('"'))
    if name is None:
        raise QueryError(f"{kind} takes a column of events, and there is no {subject}; name one")
    return Column(name)


def _without_aggregates(text: str, rows: RowSchema) -> RowSchema:
    if any(piece.quote == FOLDED for piece in folded(split(text), text)):
        raise QueryError("an aggregate inside another is not in the language; ask twice")
    return rows


def _rows_of(schema: UnitSchema, name: str) -> RowSchema:
    table = name.strip().strip('"')
    if table not in schema.events:
        raise QueryError(f"there is no table of events {table!r}; there is {', '.join(schema.events)}")
    return schema.of_rows(table)


def _arguments(text: str, pieces: Sequence[Piece], end: int) -> list[str]:
    """What stands between the commas, up to `end`."""
    found, depth, start = [], 0, pieces[0].start if pieces else end
    for piece in pieces:
        depth += {"(": 1, ")": -1}.get(piece.sign, 0)
        if piece.sign == "," and depth == 0:
            found.append(text[start : piece.start].strip())
            start = piece.start + 1
    return [*found, text[start:end].strip()]


def _subquery(text: str, pieces: Sequence[Piece], schema: UnitSchema, *, exists: bool) -> Aggregate:
    """SELECT … FROM events WHERE events.key = units.key AND …"""
    signs = [piece.sign for piece in pieces]
    if schema.is_lone:
        raise QueryError("a subquery needs a table of units beside that of events; write count(rows, ...)")
    if signs.count("select") != 1 or "from" not in signs:
        raise QueryError(
            "a subquery is SELECT one aggregate FROM one table WHERE the keys are equal; write it so"
        )
    first = signs.index("from")
    after = pieces[first + 1 :]
    if not after or (len(after) > 1 and after[1].sign != "where"):
        raise QueryError("a subquery has one table, and a WHERE that makes the keys equal; write it so")
    table = after[0].text
    rows = _rows_of(schema, table)
    after, arranged = _arranged(after)
    end = arranged[0].start if arranged else text.rindex(")")
    condition = _beside_the_key(text, after[2:], rows, end)
    if exists:
        return _made(schema, "exists", table, condition, table)
    called = pieces[1:first]
    if arranged:
        kind = _first_or_last(arranged, rows)
        return _made(schema, kind, text[called[0].start : pieces[first].start].strip(), condition, table)
    kind = called[0].sign if called else ""
    if kind not in KINDS or kind == "exists" or len(called) < 4 or called[1].sign != "(":
        raise QueryError(
            "a scalar subquery selects count(*), or sum, avg, min, max, first or last of a column of events; take one"
        )
    subject = text[called[2].start : called[-1].start].strip()
    if kind == "count" and subject != "*":
        condition = (
            f"{subject} IS NOT NULL" if condition is None else f"({condition}) AND {subject} IS NOT NULL"
        )
    return _made(schema, kind, subject, condition, table)


def _arranged(pieces: Sequence[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """What stands before ORDER BY or LIMIT, and from there on."""
    signs = [piece.sign for piece in pieces]
    place = next((place for place, sign in enumerate(signs) if sign in ("order by", "limit")), len(pieces))
    return pieces[:place], pieces[place:]


def _first_or_last(pieces: Sequence[Piece], rows: RowSchema) -> str:
    """Which event is taken by ORDER BY … LIMIT 1, which has to be the declared order."""
    order = rows.of.events[rows.table].order
    words = [
        piece.text if piece.sign not in ("order by", "asc", "desc", "limit") else piece.sign
        for piece in pieces
    ]
    named = [[rows.table, ".", order], [order]]
    for kind, ways in (("first", ([], ["asc"])), ("last", (["desc"],))):
        if words in [["order by", *name, *way, "limit", "1"] for name in named for way in ways]:
            return kind
    raise QueryError(
        f"a scalar subquery takes the first or last row by the declared order of {rows.table}, which is "
        f"{order or 'none'}; write ORDER BY {order or 'it'} LIMIT 1, or DESC"
    )


def _beside_the_key(text: str, pieces: Sequence[Piece], rows: RowSchema, end: int) -> str | None:
    """The condition of a subquery without the one that joins it to its unit."""
    depth, start, parts = 0, 0, []
    for place, piece in enumerate(pieces):
        depth += {"(": 1, ")": -1}.get(piece.sign, 0)
        if depth == 0 and piece.sign == "or":
            raise QueryError("beside the equal keys of a subquery stands AND; put an OR into parentheses")
        if depth == 0 and piece.sign == "and":
            parts.append(pieces[start:place])
            start = place + 1
    parts.append(pieces[start:])
    kept = [part for part in parts if not _is_key(part, rows)]
    if len(kept) == len(parts):
        unit = rows.of
        raise QueryError(
            f"a subquery is joined to its unit by {rows.table}.{unit.unit} = {unit.table}.{unit.unit}; "
            "another key may tie rows of different people together"
        )
    return " AND ".join(_slice(text, pieces, part, end) for part in kept) or None


def _slice(text: str, pieces: Sequence[Piece], part: Sequence[Piece], end: int) -> str:
    if not part:
        raise QueryError("a condition is missing beside AND; write it")
    after = [piece.start for piece in pieces if piece.start > part[-1].start]
    return text[part[0].start : min([*after, end])].strip()


def _is_key(part: Sequence[Piece], rows: RowSchema) -> bool:
    written = "".join(piece.text for piece in part)
    mine, *others = (f"{table}.{rows.of.unit}" for table in (rows.table, rows.of.table, *rows.of.events))
    return any(written in (f"{mine}={other}", f"{other}={mine}") for other in others if other != mine)


def parse_statement(text: str, schema: Schema) -> tuple[Select, Schema]:
    """The question in a SELECT statement, and the columns that it uses: of the table, of units, or of events."""
    inner: list[Joined] = []
    several = isinstance(schema, UnitSchema | LookupSchema)
    if isinstance(text, str):
        text = without_aliases(text, alone=not several)
        if isinstance(schema, UnitSchema | LookupSchema):
            text, schema, inner = statement(text, schema)
    select = parse_select(text, schema)
    if inner:
        # A plain JOIN leaves out the rows that find nothing.
        select = replace(select, where=conjunction(select.where, *(NotNull(each.matched) for each in inner)))
    return select, schema


def statement(text: str, schema: UnitSchema | LookupSchema) -> tuple[str, Schema, list[Joined]]:
    """A SELECT without its JOINs, letter for letter in place, the columns that it may use, and the public tables that
    its rows have to be found in."""
    check_length(text)
    pieces = split(text)
    signs = [piece.sign for piece in pieces]
    start = _from(signs)
    if start is None:
        return text, schema, []
    if start + 1 >= len(pieces):
        raise QueryError("FROM needs a plain name; write FROM t", text, len(text))
    first = pieces[start + 1]
    alone = isinstance(schema, LookupSchema) or schema.is_lone
    if first.sign == "(" and alone:  # a subquery, which is put into the statement when it is read
        return text, _of_rows(schema), []
    rest = signs[start + 2 :]
    stop = next((place for place, sign in enumerate(rest) if sign in _CLAUSES), len(rest))
    clause = pieces[start + 2 : start + 2 + stop]
    joins, lookups = read_joins(text, clause), schema.lookups
    others = [first.text, *(join.table for join in joins)]
    found = [join for join in joins if join.table in lookups]
    for join in found:
        refuse_other_key(text, join, lookups[join.table], others)
    inner = [lookups[join.table] for join in found if not join.outer]
    rest_of = [join for join in joins if join.table not in lookups]
    twice = next((join for place, join in enumerate(joins, 1) if join.table in others[:place]), None)
    if twice is not None:
        raise QueryError(_with_itself(schema, twice.table), text, twice.start)
    bare = text
    if clause:
        end = pieces[start + 2 + stop].start if start + 2 + stop < len(pieces) else len(text)
        bare = text[: clause[0].start] + " " * (end - clause[0].start) + text[end:]
    if alone:
        if rest_of:
            raise QueryError(_nothing_to_join(lookups), text, rest_of[0].start)
        if first.text not in (*lookups, *([] if isinstance(schema, LookupSchema) else schema.events)):
            bare = without_table(bare, pieces, first.text)
        return bare, _of_rows(schema), inner
    assert isinstance(schema, UnitSchema)
    tables = [first.text, *(_joined(text, join, first.text, schema) for join in rest_of)]
    if len(tables) > 2:
        raise QueryError(
            "a question joins one table of events with that of the units, and no third; leave it out",
            text,
            rest_of[1].start,
        )
    unknown = [table for table in tables if table not in (*schema.events, schema.table)]
    if unknown:
        known = ", ".join((str(schema.table), *schema.events, *lookups))
        raise QueryError(f"there is no table {unknown[0]!r}; there is {known}", text, first.start)
    events = sorted({table for table in tables if table in schema.events})
    if len(events) > 1:
        raise QueryError(_two_tables(schema, events), text, clause[0].start)
    return bare, schema.of_rows(events[0]) if events else schema, inner


def _with_itself(schema: UnitSchema | LookupSchema, table: str) -> str:
    if isinstance(schema, UnitSchema) and table in schema.events:
        return (
            f"{table} joined with itself would be about pairs of rows; ask about its rows, and say of the "
            f"{schema.unit} what the others have to be, as in exists({table}, ...) or count({table}, ...) >= 3"
        )
    return f"{table} is joined twice; leave one out"


def _of_rows(schema: UnitSchema | LookupSchema) -> Schema:
    """The columns of the rows of a table that stands alone."""
    return schema if isinstance(schema, LookupSchema) else schema.of_rows(next(iter(schema.events)))


def _nothing_to_join(lookups: Mapping[str, Joined]) -> str:
    if not lookups:
        return "there is one table here, and nothing to join it with; leave JOIN out"
    return f"only public tables are joined with it; there is {', '.join(lookups)}"


def _from(signs: Sequence[str]) -> int | None:
    """The place of the outer FROM."""
    depth = 0
    for place, sign in enumerate(signs):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "from" and depth == 0:
            return place
    return None


def _joined(text: str, join: Join, first: str, schema: UnitSchema) -> str:
    """The second table of a JOIN on the unit's key."""
    key = schema.unit
    if join.outer:
        raise QueryError(
            "only a plain JOIN on the unit's key is in the language; write it so", text, join.start
        )
    if not join.by([(key, key)], [first]) or any("." not in side for pair in join.equal for side in pair):
        raise QueryError(
            f"tables are joined by the unit's key, USING ({key}); another may tie rows of different people together",
            text,
            join.start,
        )
    return join.table
