"""What is public: the `__all__` of the package and of every room, and the documents use nothing else."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_origin

import pytest

import holdfast as hf

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ROOT / "src" / "holdfast"
ROOMS = ["holdfast", *(f"holdfast.{door.parent.name}" for door in sorted(HOUSE.glob("*/__init__.py")))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def exported(room: str) -> list[str]:
    return list(importlib.import_module(room).__all__)


def brought_in(source: str) -> set[str]:
    """The names that a room's door brings in from its files, for a type checker or at run time."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in found if (node.module or "").startswith("holdfast") and node.col_offset <= 4]
    named = {alias.asname or alias.name for node in ours for alias in node.names}
    return {name for name in named if not name.startswith("_")}


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_brings_in_what_it_exports_and_nothing_else(room: str) -> None:
    source = Path(str(importlib.import_module(room).__file__)).read_text()
    names = exported(room)
    assert len(set(names)) == len(names)
    assert set(names) == brought_in(source) - {"estimators"}
    for name in names:
        thing = getattr(importlib.import_module(room), name)
        assert thing.__doc__ or name.isupper() or get_origin(thing) is not None, name


def test_a_name_that_is_not_exported_would_be_noticed() -> None:
    assert brought_in("from holdfast.noise.bits import Bits as B, system_bits") == {"B", "system_bits"}


def uses(code: str) -> Iterator[tuple[str, str]]:
    """Each (module, name) of ours that a piece of code imports, or reaches by a dot from a room that it imported."""
    nodes, modules = list(ast.walk(ast.parse(code))), {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, *inside = alias.name.split(".")
                if first == "holdfast":
                    modules[alias.asname or first] = alias.name if alias.asname else first
                    yield from [(".".join([first, *inside[:-1]]), inside[-1])] if inside else []
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "holdfast":
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield str(node.module), alias.name
    for node in nodes:
        if isinstance(node, ast.Attribute) and re.fullmatch(r"[\w.]+", ast.unparse(node)):
            first, *names = ast.unparse(node).split(".")
            place = modules.get(first)
            for name in names:
                if place in ROOMS:
                    yield place, name
                place = f"{place}.{name}"


def hidden(code: str) -> set[str]:
    """What a piece of code uses that is not public."""
    return {
        f"{module}.{name}"
        for module, name in uses(code)
        if module not in ROOMS or name not in exported(module)
    }


def code_of(page: Path) -> str:
    """The code of a page; its pieces follow one another."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documents_use_public_names_only(page: Path) -> None:
    assert hidden(code_of(page)) == set()


def test_the_documents_use_enough_to_be_compared() -> None:
    used = {use for page in PAGES for use in uses(code_of(page))}
    assert {("holdfast", "open"), ("holdfast.synthesis", "compare"), ("holdfast.learn", "logistic")} <= used
    assert len(used) > 40


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from holdfast.weights.terms_choice import compare", "holdfast.weights.terms_choice.compare"),
        ("from holdfast.privacy import filter", "holdfast.privacy.filter"),
        ("import holdfast as hf\nhf.session.Terms", "holdfast.session"),
        ("from holdfast import learn\nlearn.decode(1)", "holdfast.learn.decode"),
        ("import holdfast.noise.bits", "holdfast.noise.bits"),
        ("import holdfast\nholdfast.opne(1)", "holdfast.opne"),
    ],
)
def test_a_page_that_reaches_inside_would_be_noticed(code: str, found: str) -> None:
    assert found in hidden(code)
    assert hidden("import holdfast as hf\nhf.learn.logistic(1)\nhf.Schema.from_toml('')") == set()


def test_the_statement_says_what_may_change_and_when() -> None:
    text = (ROOT / "docs" / "house.md").read_text()
    assert "## What is public" in text
    assert int(hf.__version__.split(".")[0]) == 0, "after 1.0 the statement must be rewritten"
