"""Rows only behind a committed charge: who may name a source, make a `Paid`, commit a charge, or call upwards."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laws import releases

from holdfast import HoldfastError
from holdfast.data.frame import FrameSource
from holdfast.session.session import Session

HOUSE = Path(__file__).resolve().parents[2] / "src" / "holdfast"
INSIDE = {"data", "desk"}
"""The rooms where rows are: sources, with their pools that draw ahead without looking; and the desk."""
OUTSIDE = {
    "cli.py": {
        "ingest": "writes the owner's store", "suggest_toml": "for the owner's eyes",
        "declared_units": "writes the owner's store", "ingest_units": "writes the owner's store",
    },
    "session/table.py": {
        "Source": "opening and saving", "save_store": "saving", "StoreSource": "opening", "open_source": "opening",
        "traces": "which rows are the same, without looking at them",
        "UnitSource": "opening and saving", "save_units": "saving", "open_store": "opening",
        "declared_units": "opening", "open_units": "opening", "Lookup": "public", "with_lookups": "opening",
        "more_lookups": "public tables beside the rows, none of which is read",
    },
    "session/looking_up.py": {"Lookup": "public", "Source": "handed to a session, and not kept"},
    "__init__.py": {"Lookup": "public, and offered by name"},
    "session/set_aside.py": {
        "Division": "which places are set aside, without looking at rows", "PartSource": "opening", "Source": "opening",
    },
    "session/session.py": {"Source": "handed to the desk, and not kept"},
    "session/opening.py": {"Span": "where rows are", "Trace": "where rows are"},
    "service/gateway.py": {"suggest_toml": "for the owner's eyes"},
    "service/tables.py": {
        "DeferredSource": "opening", "look": "opening", "Seen": "opening", "marks": "where rows are",
        "Lookup": "public",
    },
    "audit/session_cases.py": {"open_source": "opening rows that the opponent made up"},
    "audit/unit_cases.py": dict.fromkeys(
        ("declared_units", "open_units", "Lookup", "with_lookups"), "opening rows that the opponent made up"
    ),
}  # fmt: skip
"""Who else imports what from `data`, by nature. `mechanisms`, `stream` and `local` used alone know no source."""
READS = {"scan", "gather", "draw", "totals", "one"}
PAID = {"paid", "_paid", "rows"}
"""What a `Paid` (or the owner's `RowAccess`) is called."""
BELOW = {"noise", "ledger"}
"""Rooms that know neither a source nor a desk, with words of their own for other things."""
LEDGERS = {"ledger", "_ledger", "standing"}
OTHERS = {
    ("session/release.py", "measurement.totals"): "of a block that was read",
    ("demo.py", "people.draw"): "a simulated population",
    ("planning/width.py", "planned.totals"): "widths of totals",
    ("audit/moment_cases.py", "measurement.totals"): "the sums of a row that the opponent made up",
    ("audit/stream_cases.py", "counter.totals"): "a counter under continual observation",
    ("service/work.py", "asyncio.gather"): "tasks",
}
SOURCES = sorted(HOUSE.rglob("*.py"))


def said(node: ast.expr) -> str:
    """An expression in short: names and attributes, calls without their arguments."""
    if isinstance(node, ast.Attribute):
        return f"{said(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{said(node.func)}()"
    return node.id if isinstance(node, ast.Name) else "?"


def annotations(tree: ast.AST) -> set[ast.AST]:
    """Every node that is part of a type."""
    types = [
        getattr(node, field)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if getattr(node, field, None) is not None
    ]
    return {part for found in types for part in ast.walk(found)}


def trespasses(place: str, tree: ast.AST) -> Iterator[str]:
    """What a file outside of `data` and `desk` does to rows and charges that only they may do."""
    types = annotations(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(
            ("holdfast.data.", "holdfast.desk.")
        ):
            names = {alias.name for alias in node.names}
            if f"{node.module}.".startswith("holdfast.data."):
                yield from (f"imports {name}" for name in names - set(OUTSIDE.get(place, {})))
            yield from (
                f"renames {a.name}" for a in node.names if a.asname and a.name not in OUTSIDE.get(place, {})
            )
        elif isinstance(node, ast.Import):
            yield from (
                f"imports {a.name}"
                for a in node.names
                if a.name.startswith(("holdfast.data", "holdfast.desk"))
            )
        elif isinstance(node, ast.ImportFrom) and node.module == "holdfast":
            yield from (f"imports {alias.name}" for alias in node.names if alias.name in INSIDE)
        elif isinstance(node, ast.Name) and node not in types:
            if node.id in ("Paid", "RowAccess", "Reserve", "Record"):
                yield f"makes a {node.id}"
            if node.id == "Desk" and place != "session/session.py":
                yield "makes a Desk"
        elif isinstance(node, ast.Attribute):
            yield from _reached(place, node)


def _reached(place: str, node: ast.Attribute) -> Iterator[str]:
    whole, holder = said(node), said(node.value).rpartition(".")[2]
    if node.attr == "_source" and place != "session/table.py":
        yield f"names {whole}"
    if node.attr == "_admit" or (holder == "_desk" and node.attr.startswith("_")):
        yield f"reaches into the desk: {whole}"
    if node.attr == "for_the_owner" and place != "synthesis/quality.py":
        yield "takes the owner's rows"
    told = node.attr == "totals" and (holder in LEDGERS or holder == "widths")
    below = place.split("/")[0] in BELOW
    if node.attr in READS and not (below or told or holder in PAID or (place, whole) in OTHERS):
        yield f"reads rows: {whole}"
    if node.attr == "reserve" or (node.attr in ("record", "together") and holder in LEDGERS):
        yield f"writes to a ledger: {whole}"


OWN_LEDGER = ("ledger/", "holdout/", "service/public_times.py", "service/work.py")
"""A ledger, and what waits before one; holdouts hold no source."""


def found_in(place: str, text: str) -> list[str]:
    whole = list(trespasses(place, ast.parse(text)))
    if place.startswith(OWN_LEDGER):
        return [one for one in whole if "ledger" not in one and not one.startswith("makes a Re")]
    return whole


def test_only_the_desk_touches_rows_and_charges() -> None:
    seen = {}
    for path in SOURCES:
        place = path.relative_to(HOUSE).as_posix()
        if place.split("/")[0] not in INSIDE and (found := found_in(place, path.read_text())):
            seen[place] = found
    assert seen == {}


@pytest.mark.parametrize(
    "line",
    [
        "from holdfast.data.source import Source",
        "from holdfast.data.frame import FrameSource as rows",
        "from holdfast import data",
        "import holdfast.data.open",
        "from holdfast.desk import Paid as Entry",
        "def f(session): return session._source.rows",
        "def f(session): return session._desk._source",
        "def f(session): return getattr(session._desk._source, 'scan')",
        "def f(session, source): return [block for block in source.scan(['x'])]",
        "def f(session): read = session.table.draw",
        "def f(session, entry): return Paid(entry, session.rows, session.ledger)",
        "def f(session): return Paid.__new__(Paid)",
        "def f(session): return session._desk._paid(None)",
        "def f(paid): return paid._admit()",
        "def f(session): return Desk(None, session._ledger, session.name)",
        "def f(session): return session._desk.for_the_owner()",
        "def f(session): session._ledger.reserve('a', 'b', 'c', 'd', None)",
        "def f(session): session._ledger.record(1, 'told')",
        "def f(session): yield Reserve('a', 'b', 'c', 'd', None)",
        "def f(entry): yield Record(entry.id, 'told')",
    ],
)
def test_a_way_around_the_desk_would_be_noticed(line: str) -> None:
    assert found_in("learn/bad.py", line)


def test_what_is_outside_by_nature_is_still_there() -> None:
    for place, names in OUTSIDE.items():
        text = (HOUSE / place).read_text()
        assert all(name in text for name in names), place
    for place, whole in OTHERS:
        tree = ast.parse((HOUSE / place).read_text())
        assert whole in {said(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}, place


def upward_calls(place: str, text: str) -> list[str]:
    """Imports by a name, which the import contract cannot see."""
    names = {"import_module", "_import_module", "__import__", "importlib"}
    return [
        node.id if isinstance(node, ast.Name) else "an import"
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Import) and any(alias.name == "importlib" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "importlib")
    ]


LAZY = {"__init__.py", "learn/__init__.py", "service/__init__.py"}
"""Doors of rooms that load their own files, and lower ones, when they are asked for."""
STRANGERS = {"audit/peer_cases.py", "client/magic.py", "doctor.py", "session/answer_columns.py"}
"""Who loads a library of others by its name, or asks for its version."""


def test_nobody_calls_a_room_above_by_its_name() -> None:
    for path in SOURCES:
        place = path.relative_to(HOUSE).as_posix()
        if place not in LAZY | STRANGERS:
            assert not upward_calls(place, path.read_text()), place
    for place in STRANGERS & {path.relative_to(HOUSE).as_posix() for path in SOURCES}:
        assert 'import_module("holdfast' not in (HOUSE / place).read_text()
    assert upward_calls("x.py", "from importlib import import_module\nimport_module('holdfast.synthesis')")


class OutsideTheDesk(AssertionError):
    """Rows were read by somebody else than the desk, or before anything was charged."""


@pytest.fixture
def guarded_rows(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """While a session is in the list, its rows are for the desk only, and after a charge."""
    asked: list[Session] = []

    def guard(name: str) -> None:
        real = getattr(FrameSource, name)

        def read(self: FrameSource, *what: Any, **how: Any) -> Any:
            caller = sys._getframe(1).f_globals["__name__"]
            if asked and not caller.startswith(("holdfast.desk.", "holdfast.data.")):
                raise OutsideTheDesk(f"{caller} reads rows")
            if caller == "holdfast.data.lookup":  # a public table, of which a question may bring one
                return real(self, *what, **how)
            if asked and not asked[-1]._ledger.totals(asked[-1].name).units:
                raise OutsideTheDesk("rows were read before a charge")
            return real(self, *what, **how)

        monkeypatch.setattr(FrameSource, name, read)

    for name in ("scan", "gather", "draw", "totals"):
        guard(name)
    return asked


def test_every_release_reads_its_rows_at_the_desk(guarded_rows: list[Session]) -> None:
    """All that the laws know, in every currency; scores that were computed elsewhere are not the session's."""
    everything = [one for *_, one in releases.answered()] + [
        one for one in releases.others() if "scores" not in one.name
    ]
    answered = 0
    for release in everything:
        session = release.opened(release.base)
        guarded_rows.append(session)
        try:
            release.ask(session)
            answered += 1
        except HoldfastError:
            pass
        guarded_rows.clear()
    assert answered > len(everything) / 3


def test_a_release_beside_the_desk_would_be_noticed(guarded_rows: list[Session]) -> None:
    session = next(iter(releases.others())).opened(releases.BASE)
    guarded_rows.append(session)
    with pytest.raises(OutsideTheDesk, match="reads rows"):
        next(iter(session._desk._source.scan(["x"])))
    with pytest.raises(OutsideTheDesk, match="before a charge"):
        session._desk.for_the_owner().draw(["x"], 1)
