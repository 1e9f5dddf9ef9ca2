"""A pytest plugin: which functions of the package does each test call, and how long does it take?

Loaded before the package (`pytest -p mutants.touch`), it compiles the rooms with one more line at the head of every
function. What it finds is written to the file named by MUTANTS_TOUCHED, one part for each worker.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutants.plant import SOURCES, Function, defined, functions

_touched: set[str] = set()
_found: dict[str, dict[str, object]] = {}
builtins._holdfast_touched = _touched.add  # type: ignore[attr-defined]


class _Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, *, _optimize=-1):  # type: ignore[no-untyped-def]
        file = Path(os.fsdecode(path))
        tree = ast.parse(data)
        for name in [function.name for function in functions(file)]:
            _mark(tree, Function(file, name))
        return compile(ast.fix_missing_locations(tree), str(file), "exec")

    def get_code(self, fullname):  # type: ignore[no-untyped-def]
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)  # never from the cache, never into it


def _mark(tree: ast.AST, function: Function) -> None:
    node = dict(defined(tree))[function.name]
    line = ast.parse(f"_holdfast_touched({str(function)!r})").body[0]
    has_docstring = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
    node.body.insert(1 if has_docstring else 0, line)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name.split(".")[0] != "holdfast":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not spec.origin.startswith(str(SOURCES)):
            return spec
        spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _touched.clear()
    yield
    _found.setdefault(item.nodeid, {})["functions"] = sorted(_touched)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    test = _found.setdefault(report.nodeid, {})
    test["seconds"] = report.duration + float(test.get("seconds", 0.0))  # type: ignore[arg-type]
    test["failed"] = report.failed or bool(test.get("failed"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    mine = {name: test for name, test in _found.items() if "functions" in test}
    if mine:
        Path(f"{os.environ['MUTANTS_TOUCHED']}.{worker}").write_text(json.dumps(mine))
